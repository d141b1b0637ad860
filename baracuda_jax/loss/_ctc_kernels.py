"""The kernel calls of connectionist temporal classification."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from . import _ctc_reference

MOST_LABELS = 2047  # that the states of a CUDA block have
_OPERANDS = "...tc, ...s, ..., ..."


def _bytes(x, per_frame, per_sample):
    """Of a workspace, whose chunks are aligned, for each of x's batches."""
    return (x.shape[-2] * per_frame + per_sample) * wide_dtype(x.dtype).itemsize + 3 * 256


def _sums_of(x, targets):
    return jax.ShapeDtypeStruct((*x.shape[:-1], 4, targets.shape[-1] + 1), wide_dtype(x.dtype))


def forward(x, targets, input_lengths, target_lengths, *, save, **params):
    if targets.shape[-1] > MOST_LABELS:
        return _ctc_reference.forward(x, targets, input_lengths, target_lengths, **params)[: 2 if save else 1]
    pairs = targets.shape[-1] + 1
    out = [jax.ShapeDtypeStruct(x.shape[:-2], wide_dtype(x.dtype)), _sums_of(x, targets)][: 2 if save else 1]
    return kernel(
        "ctc_loss", f"{_OPERANDS} -> ..., ...tkp" if save else f"{_OPERANDS} -> ...",
        x, targets, input_lengths, target_lengths,
        out=out, workspace=_bytes(x, 2 * pairs, 8 * pairs), **params,
    )  # fmt: skip


def backward(x, targets, input_lengths, target_lengths, sums, dy, **params):
    if targets.shape[-1] > MOST_LABELS:
        return _ctc_reference.backward(x, targets, input_lengths, target_lengths, sums, dy, **params)
    pairs = targets.shape[-1] + 1
    return kernel(
        "ctc_loss_backward", f"{_OPERANDS}, ...tkp, ... -> ...tc",
        x, targets, input_lengths, target_lengths, sums, dy,
        out=[jax.ShapeDtypeStruct(x.shape, x.dtype)], workspace=_bytes(x, 6 * pairs + 2, 0), **params,
    )  # fmt: skip


def tangent(x, targets, input_lengths, target_lengths, sums, t, **params):
    """From the gradient of each sample, before it is rounded."""
    ones = jnp.ones(x.shape[:-2], sums.dtype)
    (slopes,) = backward(wide(x), targets, input_lengths, target_lengths, sums, ones, **params)
    # Nothing is added of frames that do not count, whatever their tangents are.
    return (jnp.where(slopes == 0, 0, slopes * wide(t)).sum((-2, -1)),)
