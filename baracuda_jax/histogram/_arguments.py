"""The arguments of searches and histograms: what they may be, and their checks."""

import jax.numpy as jnp

from .._core import checks


def numbers(op, name, value, least_rank=0, dtypes=checks.NUMBERS):
    x = checks.array(op, name, value)
    checks.dtype(op, name, x, dtypes)
    if x.ndim < least_rank:
        raise ValueError(f"{op}: {name} must have at least one dimension, got a scalar")
    return x


def vector(op, name, value, dtypes=checks.NUMBERS):
    x = checks.array(op, name, value)
    checks.dtype(op, name, x, dtypes)
    if x.ndim != 1:
        raise ValueError(f"{op}: {name} must have one dimension, got shape {tuple(x.shape)}")
    return x


def floating(x):
    """Integers as the floats that jax.numpy makes of them."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return x.astype(jnp.float64 if x.dtype.itemsize == 8 else jnp.float32)
