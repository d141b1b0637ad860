"""JAX's own functions with native implementations: the table of mirrors, and `patch_jax`."""
