"""The parts of plain JAX that the references are made of."""

import math

import jax.numpy as jnp
from jax import lax

from .._core.wide import wide


def sort(x, *, axis, descending, k=None):
    """The first k along the axis, or all, and where they were. A descending sort is an ascending one of the elements in
    reverse, from its end: so it is stable too."""
    both = x, lax.broadcasted_iota(jnp.int32, x.shape, axis)
    turn = (lambda a: lax.rev(a, (axis,))) if descending else lambda a: a
    both = [turn(a) for a in lax.sort([turn(a) for a in both], dimension=axis, is_stable=True, num_keys=1)]
    return tuple(both if k is None else (lax.slice_in_dim(a, 0, k, axis=axis) for a in both))


def take(x, index, axis):
    if not index.shape[axis]:
        return jnp.zeros(index.shape, x.dtype)
    return jnp.take_along_axis(x, index, axis, mode="clip")


def scatter(index, dy, count, axis, *, unique):
    """Zeros with dy added where the index says."""
    index, dy = (jnp.moveaxis(a, axis, -1) for a in (index, dy))
    *batch, many = dy.shape
    rows = math.prod(batch)
    row = lax.broadcasted_iota(jnp.int32, (rows, many), 0)
    at = jnp.zeros((rows, count), wide(dy).dtype).at[row, index.reshape(rows, many)]
    dx = at.add(wide(dy).reshape(rows, many), mode="drop", unique_indices=unique)
    return jnp.moveaxis(dx.astype(dy.dtype).reshape(*batch, count), -1, axis)
