"""The kernel calls that the native bodies are made of: each token's slots name its rows, so nothing is sorted."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.wide import wide_dtype
from ..graph._kernels import rows
from ..segment._kernels import flat, result_type, unflat
from ._slots import slots_of_rows


def total(x, row_map, weights=None, *, axis):
    """The sum of each token's rows of x, times weights [*batch, T, k]; slots out of range name no row."""
    data = flat(x, axis)
    out = result_type(data, axis, row_map.shape[-2])
    operands = data, rows(row_map, x.shape[axis]), _factors(data, row_map, weights)
    (y,) = kernel("slot_sum", "...rd, ...tk, ...tk -> ...td", *operands, out=[out])
    return unflat(y, x, axis)


def spread(x, row_map, *, axis, num_rows):
    """Each token in the rows of its slots, 0 in rows that no slot names."""
    data = flat(x, axis)
    row, owner = _names(row_map, num_rows)
    operands = data, row, owner, _factors(data, row_map, None)
    out = result_type(data, axis, num_rows)
    (y,) = kernel("slot_spread", "...td, ...tk, ...r, ...tk -> ...rd", *operands, out=[out])
    return unflat(y, x, axis)


def gradient(x, row_map, weights, dy, *, axis):
    """dx of the weighted total, and the dot product of each slot's row and its token's dy."""
    data = flat(x, axis)
    out = [result_type(data, axis, x.shape[axis]), jax.ShapeDtypeStruct(weights.shape, weights.dtype)]
    operands = data, *_names(row_map, x.shape[axis]), weights, flat(dy, axis)
    dims = "...rd, ...tk, ...r, ...tk, ...td -> ...rd, ...tk"
    dx, dots = kernel("slot_gradient", dims, *operands, out=out)
    return unflat(dx, x, axis), dots


def _names(row_map, num_rows):
    """The row of each slot, and the slot of each row."""
    return rows(row_map, num_rows), slots_of_rows(row_map, num_rows)


def _factors(data, row_map, weights):
    """Those of all batches of the data."""
    if weights is not None:
        return weights
    return jnp.ones((*data.shape[:-2], *row_map.shape[-2:]), wide_dtype(data.dtype))
