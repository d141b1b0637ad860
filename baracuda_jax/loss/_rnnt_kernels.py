"""The kernel calls of the transducer's loss."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from . import _rnnt_reference

MOST_LABELS = 2047  # that the states of a CUDA block have
_OPERANDS = "...tnc, ...s, ..., ..."
_SAVED = "...tkn, ...rjn, ...q"


def _bytes(x, per_row, per_frame, per_sample):
    """Of a workspace, whose chunks are aligned, for each of x's batches: numbers for each of a row's states."""
    frames, states = x.shape[-3:-1]
    count = (frames + states) * per_row + frames * per_frame + per_sample
    return states * count * wide_dtype(x.dtype).itemsize + 3 * 256


def forward(x, targets, input_lengths, target_lengths, *, save, **params):
    if targets.shape[-1] > MOST_LABELS:
        return _rnnt_reference.forward(x, targets, input_lengths, target_lengths, **params)[: 4 if save else 1]
    *batch, frames, states, _ = x.shape
    shapes = [batch, [*batch, frames, 4, states], [*batch, frames + states, 2, states], [*batch, 2]]
    out = [jax.ShapeDtypeStruct(tuple(shape), wide_dtype(x.dtype)) for shape in shapes[: 4 if save else 1]]
    return kernel(
        "rnnt_loss", f"{_OPERANDS} -> ..., {_SAVED}" if save else f"{_OPERANDS} -> ...",
        x, targets, input_lengths, target_lengths,
        out=out, workspace=_bytes(x, 4, 0 if save else 4, 4), **params,
    )  # fmt: skip


def backward(x, targets, input_lengths, target_lengths, logs, sums, total, dy, **params):
    if targets.shape[-1] > MOST_LABELS:
        return _rnnt_reference.backward(x, targets, input_lengths, target_lengths, logs, sums, total, dy, **params)
    return kernel(
        "rnnt_loss_backward", f"{_OPERANDS}, {_SAVED}, ... -> ...tnc",
        x, targets, input_lengths, target_lengths, logs, sums, total, dy,
        out=[jax.ShapeDtypeStruct(x.shape, x.dtype)], workspace=_bytes(x, 6, 0, 0), **params,
    )  # fmt: skip


def tangent(x, targets, input_lengths, target_lengths, logs, sums, total, t, **params):
    """From the gradient of each sample, before it is rounded."""
    ones = jnp.ones(x.shape[:-3], sums.dtype)
    (slopes,) = backward(wide(x), targets, input_lengths, target_lengths, logs, sums, total, ones, **params)
    # Nothing is added of nodes that do not count, whatever their tangents are.
    return (jnp.where(slopes == 0, 0, slopes * wide(t)).sum((-3, -2, -1)),)
