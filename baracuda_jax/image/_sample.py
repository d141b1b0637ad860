"""Elements of images at indices that are computed, weighted and summed."""

import math

import jax
import jax.numpy as jnp

from .._core import explicit


def weighted(x, index, weight, inside):
    """y[n, c, ...] = sum over t of weight[n, ..., t] x[n, c, index[n, ..., t]] of x [N, C, elements], 0 for an element that
    is not inside.

    A term for each t: one array of all of them would be as large as t results."""
    n, channels, _ = x.shape
    shape = index[0].shape[1:]
    y = 0
    for i, w, is_in in zip(index, weight, inside, strict=True):
        flat = explicit.reshape(i, n, math.prod(shape))
        taken = jax.vmap(lambda a, i: jnp.take(a, i, axis=-1, mode="clip"))(x, flat)
        taken = jnp.where(is_in[:, None], explicit.reshape(taken, n, channels, *shape), 0)
        y = y + (taken if w is None else taken * w[:, None])
    return y
