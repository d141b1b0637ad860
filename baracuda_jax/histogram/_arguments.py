"""The arguments of searches and histograms: what they may be, and their checks."""

import jax.numpy as jnp

from .._core import checks

NUMBERS = (*checks.FLOATS, *checks.INTEGERS)
MOST = 2**31 - 1


def numbers(op, name, value, least_rank=0, dtypes=NUMBERS):
    x = checks.array(op, name, value)
    checks.dtype(op, name, x, dtypes)
    if x.ndim < least_rank:
        raise ValueError(f"{op}: {name} must have at least one dimension, got a scalar")
    return x


def vector(op, name, value, dtypes=NUMBERS):
    x = checks.array(op, name, value)
    checks.dtype(op, name, x, dtypes)
    if x.ndim != 1:
        raise ValueError(f"{op}: {name} must have one dimension, got shape {tuple(x.shape)}")
    return x


def limit(op, name, count):
    """Places are int32."""
    if isinstance(count, int) and count > MOST:
        raise ValueError(f"{op}: {name} may have at most {MOST} cells, got {count}")


def floating(x):
    """Integers as the floats that jax.numpy makes of them."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        return x
    return x.astype(jnp.float64 if x.dtype.itemsize == 8 else jnp.float32)
