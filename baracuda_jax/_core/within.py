"""Integers that name one of so many rows."""

import jax.numpy as jnp


def within(ids, count):
    """Whether each integer is in [0, count), also where its dtype does not hold count: compared with that, JAX would let it
    wrap."""
    info = jnp.iinfo(ids.dtype)
    inside = ids >= 0 if info.min < 0 else jnp.ones(ids.shape, bool)
    return inside & (ids < count) if info.max >= count else inside
