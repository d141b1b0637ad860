"""The commands of `baracuda-jax`, a file each."""
