"""What is computed in: float32 for floats of 16 bits, the dtype itself otherwise. And what is saved of a result for its
gradient, which is to be as exact in 16 bits as the result."""

import jax.numpy as jnp
from jax import lax


def wide_dtype(dtype):
    return jnp.dtype(jnp.float32) if jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize == 2 else jnp.dtype(dtype)


def ranged_dtype(dtype):
    """What a product is saved in: float32 for float16, whose range products leave. One rounding in any other dtype is no
    more than one of the gradient."""
    return jnp.dtype(jnp.float32) if dtype == jnp.float16 else jnp.dtype(dtype)


def wide(x):
    return x.astype(wide_dtype(x.dtype))


def with_unrounded(call, dtype, saved, save):
    """A native body's results: y and, with `save`, y in the dtype `saved`. `call(dtypes)` runs the kernel, which writes y
    once where the two are one."""
    if not save:
        return call([dtype])
    return call([dtype, saved]) if saved != dtype else call([dtype]) * 2


def with_rest(most, log, dtype):
    """A reference's results: y, the rounding of most + log, and what it took from that; 0 where y is not finite."""
    total = most + log
    to = jnp.finfo(dtype)
    y = lax.reduce_precision(total, to.nexp, to.nmant)  # which, unlike a cast and its return, the compiler leaves alone
    return y.astype(dtype), jnp.where(jnp.isfinite(y), (most - y) + log, 0)
