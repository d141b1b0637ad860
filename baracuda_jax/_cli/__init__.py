"""The commands of `python -m baracuda_jax`, a file each."""
