"""The kernel calls of soft dynamic time warping."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from . import _soft_dtw_reference

MOST_COLUMNS = 2048  # that the states of a CUDA block are
_OPERANDS = "...nm, ..., ..."
_SAVED = "...rjm, ...q"


def _bytes(cost, per_row, per_sample):
    """Of a workspace, whose chunks are aligned, for each of cost's batches: numbers for each of a row's states."""
    rows, columns = cost.shape[-2:]
    return columns * ((rows + columns) * per_row + per_sample) * wide_dtype(cost.dtype).itemsize + 2 * 256


def forward(cost, row_lengths, column_lengths, *, save, gamma):
    *batch, rows, columns = cost.shape
    if columns > MOST_COLUMNS:
        return _soft_dtw_reference.forward(cost, row_lengths, column_lengths, gamma=gamma)[: 3 if save else 1]
    antidiagonals = rows + columns - 1 if rows and columns else 0
    shapes = [batch, [*batch, antidiagonals, 2, columns], [*batch, 2]]
    out = [jax.ShapeDtypeStruct(tuple(shape), wide_dtype(cost.dtype)) for shape in shapes[: 3 if save else 1]]
    return kernel(
        "soft_dtw", f"{_OPERANDS} -> ..., {_SAVED}" if save else f"{_OPERANDS} -> ...",
        cost, row_lengths, column_lengths, out=out, workspace=_bytes(cost, 2, 8), gamma=gamma,
    )  # fmt: skip


def backward(cost, row_lengths, column_lengths, sums, total, dy, *, gamma):
    if cost.shape[-1] > MOST_COLUMNS:
        return _soft_dtw_reference.backward(cost, row_lengths, column_lengths, sums, total, dy, gamma=gamma)
    return kernel(
        "soft_dtw_backward", f"{_OPERANDS}, {_SAVED}, ... -> ...nm",
        cost, row_lengths, column_lengths, sums, total, dy,
        out=[jax.ShapeDtypeStruct(cost.shape, cost.dtype)], workspace=_bytes(cost, 4, 0), gamma=gamma,
    )  # fmt: skip


def tangent(cost, row_lengths, column_lengths, sums, total, t, *, gamma):
    """From the gradient of each sample, before it is rounded."""
    ones = jnp.ones(cost.shape[:-2], sums.dtype)
    (slopes,) = backward(wide(cost), row_lengths, column_lengths, sums, total, ones, gamma=gamma)
    # Nothing is added of elements that do not count, whatever their tangents are.
    return (jnp.where(slopes == 0, 0, slopes * wide(t)).sum((-2, -1)),)
