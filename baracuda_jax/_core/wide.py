"""What is computed in: float32 for floats of 16 bits, the dtype itself otherwise."""

import jax.numpy as jnp


def wide_dtype(dtype):
    return jnp.dtype(jnp.float32) if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize == 2 else jnp.dtype(dtype)


def wide(x):
    return x.astype(wide_dtype(x.dtype))
