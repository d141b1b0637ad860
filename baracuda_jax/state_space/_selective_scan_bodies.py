"""The selective scan's definition in plain JAX, and its kernel calls.

Arrays of positions are [*batch, b, d, l], B and C [*batch, b, g, n, l], A [*batch, d, n], states [*batch, b, d, n]. z and
segment_ids of length 0 stand for none."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from ..scan._kernels import linear_scan
from ._activation import silu
from ._segments import starts

SAVED = 16  # positions between states that are saved, as ffi/kernels/selective_scan.h has it
_CHUNK = 64  # positions that plain JAX computes at once: states of all would be N times as much memory as the result
MOST_STATES = 256

# ---------------------------------------------------------------------------------------------------------------------
# References, by chunks of a recurrence h_l = a_l h_{l-1} + b_l, where `is_start` says that h_{l-1} counts as 0


def _associative(a, b, is_start, h):
    """The states [..., l, n] after the state h [..., n]."""

    def combine(before, after):
        (a1, b1, cut1), (a2, b2, cut2) = before, after
        return jnp.where(cut2, a2, a1 * a2), jnp.where(cut2, b2, a2 * b1 + b2), cut1 | cut2

    flags = jnp.broadcast_to(is_start, a.shape)
    a, b, is_cut = lax.associative_scan(combine, (a, b, flags), axis=a.ndim - 2)
    return jnp.where(is_cut, b, a * h[..., None, :] + b)


def _previous(h, states):
    """What precedes each of the states, h being before the first."""
    return jnp.concatenate([h[..., None, :], states[..., :-1, :]], -2)


@jax.custom_jvp
def _by_kernel(a, b, is_start, h):
    """The same as `_associative`."""
    a = jnp.where(is_start, 0, a)
    first = jnp.where(is_start[..., :1, :], 0, a[..., :1, :] * h[..., None, :]) + b[..., :1, :]
    return linear_scan(a, jnp.concatenate([first, b[..., 1:, :]], -2), axis=a.ndim - 2, reverse=False)


@_by_kernel.defjvp
def _by_kernel_jvp(primals, tangents):
    (a, b, is_start, h), (da, db, _, dh) = primals, tangents
    states = _by_kernel(a, b, is_start, h)
    added = db + jnp.where(is_start, 0, da * _previous(h, states))
    return states, _by_kernel(a, added, is_start, dh)


def _chunk(recurrence, a, h, positions):
    """One chunk: the state after it, and of it y without D and the states before each of its parts."""
    step, input_, b, c, is_start = positions
    grouped = lambda x: x.reshape(*x.shape[:-2], *a.shape[-3:-1], x.shape[-1])  # [..., b, g, channels of it, l]
    spread = lambda x: x.swapaxes(-1, -2)[..., :, None, :, :]  # [..., b, g, 1, l, n]
    factors = jnp.exp(grouped(step)[..., None] * a[..., None, :, :, None, :])
    added = grouped(input_)[..., None] * spread(b)
    states = recurrence(factors, added, is_start[..., None, None, :, None], h)
    y = (spread(c) * states).sum(-1)
    saved = _previous(h, states)[..., ::SAVED, :]
    return states[..., -1, :], (y, saved)


def _forward(recurrence, u, dt, a, b, c, skip, z, dt_bias, initial_state, segment_ids, *, softplus):
    groups, length, dtype = b.shape[-3], u.shape[-1], u.dtype
    u, dt, b, c, z = map(wide, (u, dt, b, c, z))
    row = lambda x: x[..., None, :, None]  # of channels, for [..., b, d, l]
    step = dt + row(dt_bias)
    step = jnp.logaddexp(step, 0) if softplus else step
    is_start = starts(segment_ids) if segment_ids.shape[-1] else jnp.zeros((*u.shape[:-2], length), bool)
    by_group = lambda x: x.reshape(*x.shape[:-2], groups, x.shape[-2] // max(groups, 1), x.shape[-1])
    run = functools.partial(_chunk, recurrence, by_group(a))
    positions, h = (step, step * u, b, c, is_start), by_group(initial_state)
    count = length // _CHUNK
    parts = []
    if count:
        split = lambda x: jnp.moveaxis(
            x[..., : count * _CHUNK].reshape(*x.shape[:-1], count, _CHUNK), -2, 0
        )  # fmt: skip
        h, (y, saved) = lax.scan(jax.checkpoint(run), h, jax.tree.map(split, positions))
        y = jnp.moveaxis(y, 0, -2)
        saved = jnp.moveaxis(saved, 0, -3)
        saved_shape = *saved.shape[:-3], count * (_CHUNK // SAVED), saved.shape[-1]
        parts.append((y.reshape(*y.shape[:-2], count * _CHUNK), saved.reshape(saved_shape)))
    if length > count * _CHUNK:
        h, last = run(h, jax.tree.map(lambda x: x[..., count * _CHUNK :], positions))
        parts.append(last)
    if not parts:
        empty = jnp.zeros((*u.shape[:-1], 0, a.shape[-1]), u.dtype)
        return jnp.zeros(u.shape, dtype), initial_state, empty
    y, saved = (jnp.concatenate(some, axis) for some, axis in zip(zip(*parts, strict=True), (-1, -2), strict=True))
    y = y.reshape(u.shape) + row(skip) * u
    y = y * silu(z) if z.shape[-1] else y
    saved = saved.reshape(*u.shape[:-1], *saved.shape[-2:])
    return y.astype(dtype), h.reshape(initial_state.shape), saved


forward = functools.partial(_forward, _associative)
NUMBERS = 9  # operands that are floats


def _tangent(recurrence):
    def tangent(*values, **params):
        operands, segment_ids, tangents = values[:NUMBERS], values[NUMBERS], values[NUMBERS + 2 :]
        fun = lambda *arrays: _forward(recurrence, *arrays, segment_ids, **params)[:2]
        return jax.jvp(fun, operands, tangents)[1]

    return tangent


tangent, tangent_native = _tangent(_associative), _tangent(_by_kernel)


def backward(*values, **params):
    operands, segment_ids, (_, dy, dfinal) = values[:NUMBERS], values[NUMBERS], values[NUMBERS + 1 :]
    fun = lambda *arrays: forward(*arrays, segment_ids, **params)[:2]
    return jax.vjp(fun, *operands)[1](_cotangents(operands, dy, dfinal))


def _cotangents(operands, dy, dfinal):
    """Zeros for what does not take part."""
    u, initial_state = operands[0], operands[-1]
    return jnp.zeros_like(u) if dy is None else dy, jnp.zeros_like(initial_state) if dfinal is None else dfinal


# ---------------------------------------------------------------------------------------------------------------------
# Kernels

_OPERANDS = "...bdl, ...bdl, ...dn, ...bgnl, ...bgnl, ...d, ...bdz, ...d, ...bdn, ...bs"


def _of(array):
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def forward_native(*operands, save, softplus):
    *numbers, segment_ids = operands
    u, a, initial_state = numbers[0], numbers[2], numbers[-1]
    out = [_of(u)]
    if save:
        chunks = -(-u.shape[-1] // SAVED)
        out += [_of(initial_state), jax.ShapeDtypeStruct((*u.shape[:-1], chunks, a.shape[-1]), wide_dtype(u.dtype))]
    return kernel(
        "selective_scan", f"{_OPERANDS} -> {'...bdl, ...bdn, ...bdcn' if save else '...bdl'}",
        *numbers, starts(segment_ids), out=out, softplus=softplus,
    )  # fmt: skip


def backward_native(*values, softplus):
    numbers, segment_ids, (states, dy, dfinal) = values[:NUMBERS], values[NUMBERS], values[NUMBERS + 1 :]
    results = "...bdl, ...bdl, ...dn, ...bgnl, ...bgnl, ...d, ...bdz, ...d, ...bdn"
    return kernel(
        "selective_scan_backward", f"{_OPERANDS}, ...bdcn, ...bdl, ...bdn -> {results}",
        *numbers, starts(segment_ids), states, *_cotangents(numbers, dy, dfinal),
        out=list(map(_of, numbers)), workspace=_workspace(numbers[0], numbers[3]), softplus=softplus,
    )  # fmt: skip


def _workspace(u, b):
    """Bytes, for each batch, of the sums of blocks and of sequences (ffi/patterns/state_scan_backward_cuda.h)."""
    (batches, channels, length), (groups, states) = u.shape[-3:], b.shape[-3:-1]
    each = channels // max(groups, 1)
    numbers = batches * (
        groups * _tiles(batches * channels, each, states) * 2 * states * length + channels * (states + 2)
    )
    return numbers * wide_dtype(u.dtype).itemsize + 512


def _tiles(rows, each, states):
    """How many blocks have channels that share B and C, as SelectiveBlocks has it."""
    at_once, fewest = 2 * 132, 16
    most = 32 if states <= 16 else 16 if states <= 64 else 8
    times = max(1, -(-rows // (most * at_once)))
    channels = max(min(fewest, most), -(-rows // (times * at_once)))
    return -(-each // max(1, min(channels, each)))


def regime(call):
    """The length of sequences, how many channels there are, and of how many states."""
    *batch, channels, states = call.operand("initial_state").shape
    count = channels
    for n in batch:
        count *= n
    return {"length": call.operand("u").shape[-1], "inner": count, "states": states}
