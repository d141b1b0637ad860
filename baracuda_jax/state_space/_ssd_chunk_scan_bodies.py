"""The state-space model of Mamba-2: its definition in plain JAX, and its kernel calls.

Arrays are x [*batch, b, l, h, p], steps [*batch, b, l, h], A and the bias [*batch, h], B and C [*batch, b, l, g, n], D
[*batch, h, p] or [*batch, h, 1], states [*batch, b, h, p, n]. A z whose last dimension, and segment_ids whose length, is 0
stand for none."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from ._activation import silu
from ._segments import starts

MOST_COLUMNS = 128  # of a state in kernels, as ffi/kernels/chunk_scan.h has it


def chunk(dtype):
    """The positions of a kernel's chunk: the states before each are saved."""
    return 32 if jnp.dtype(dtype).itemsize == 8 else 64


def saved_dtype(dtype):
    """What the states before chunks are saved in: with bfloat16 they are factors of products in it."""
    return jnp.dtype(jnp.bfloat16) if dtype == jnp.bfloat16 else wide_dtype(dtype)


# ---------------------------------------------------------------------------------------------------------------------
# References


def _batched(fun):
    """Of operands that have dimensions before those above."""

    def run(*operands, **params):
        each = functools.partial(fun, **params)
        for _ in range(operands[2].ndim - 1):
            each = jax.vmap(each)
        return each(*operands)

    return run


def outputs(x, dt, a, b, c, skip, z, dt_bias, state, segment_ids, *, chunk_size, softplus):
    """y and the final state."""
    product = functools.partial(
        jnp.einsum, precision=lax.Precision.DEFAULT if x.dtype.itemsize == 2 else lax.Precision.HIGHEST
    )
    run = functools.partial(_chunk, product, a, dt_bias, softplus)
    # The gate alone reads z, whose chunks are not needed.
    y, state, _ = _by_chunks(run, chunk_size, state, (x, dt, b, c, _starts(x, segment_ids)))
    y = y.reshape(x.shape) + skip[None, None] * wide(x)
    y = y * silu(wide(z)) if z.shape[-1] else y
    return y.astype(x.dtype), state


def _saved(x, dt, a, b, c, dt_bias, state, segment_ids, *, softplus):
    """The states before each of a kernel's chunks, [b, h, chunk, p, n]."""
    product = functools.partial(jnp.einsum, precision=lax.Precision.HIGHEST)
    run = functools.partial(_chunk, product, a, dt_bias, softplus)
    each = x, dt, b, c, _starts(x, segment_ids)
    return jnp.moveaxis(_by_chunks(run, chunk(x.dtype), state, each)[2], 0, 2).astype(saved_dtype(x.dtype))


def _starts(x, segment_ids):
    return starts(segment_ids) if segment_ids.shape[-1] else jnp.zeros(x.shape[:2], bool)


def _by_chunks(run, size, state, each):
    """y, the state after all chunks, and those before each."""
    length = each[0].shape[1]
    count = length // size
    parts, before = [], []
    if count:
        split = lambda v: v[:, : count * size].reshape(v.shape[0], count, size, *v.shape[2:]).swapaxes(0, 1)

        def step(h, positions):
            after, y = run(h, positions)
            return after, (y, h)

        state, (y, states) = lax.scan(jax.checkpoint(step), state, jax.tree.map(split, each))
        parts.append(y.swapaxes(0, 1).reshape(y.shape[1], count * size, *y.shape[3:]))
        before.append(states)
    if length > count * size or not count:
        if length:
            before.append(state[None])
        state, y = run(state, jax.tree.map(lambda v: v[:, count * size :], each))
        parts.append(y)
    before = before or [jnp.zeros((0, *state.shape), state.dtype)]
    return jnp.concatenate(parts, 1), state, jnp.concatenate(before)


def _chunk(product, a, dt_bias, softplus, state, positions):
    """The state after a chunk, and y of it without D. Of heads [g, k], k of them share B and C."""
    x, dt, b, c, is_start = positions
    x, dt, b, c = map(wide, (x, dt, b, c))
    groups, length = b.shape[2], x.shape[1]
    grouped = lambda v, axis: v.reshape(
        *v.shape[:axis], groups, v.shape[axis] // max(groups, 1), *v.shape[axis + 1 :]
    )  # fmt: skip
    step = dt + dt_bias[None, None]
    step = grouped(jnp.logaddexp(step, 0) if softplus else step, 2)
    decay = jnp.cumsum(step * grouped(a, 0)[None, None], 1)  # logarithms of what is kept of the state, [b, l, g, k]
    run = jnp.cumsum(is_start, 1)  # the segment of each position, 0 being that of the state
    x, h = grouped(x, 2), grouped(state, 1)

    is_seen = (run[:, :, None] == run[:, None, :]) & jnp.tril(jnp.ones((1, length, length), bool))
    kept = _where_exp(is_seen[..., None, None], decay[:, :, None] - decay[:, None])  # [b, i, j, g, k]
    scores = product("bign,bjgn->bijg", c, b)[..., None] * kept * step[:, None]
    y = product("bijgk,bjgkp->bigkp", scores, x)
    before = _where_exp((run == 0)[..., None, None], decay)
    y = y + before[..., None] * product("bign,bgkpn->bigkp", c, h)

    if not length:
        return state, y.reshape(y.shape[0], 0, *state.shape[1:3])
    after = _where_exp((run == run[:, -1:])[..., None, None], decay[:, -1:] - decay) * step
    h = before[:, -1, ..., None, None] * h + product("bjgkp,bjgn->bgkpn", after[..., None] * x, b)
    return h.reshape(state.shape), y.reshape(*y.shape[:2], *state.shape[1:3])


def _where_exp(condition, exponent):
    """e^exponent, or 0: without the infinities of what is not taken, of which the gradient would be NaN."""
    return jnp.where(condition, jnp.exp(jnp.where(condition, exponent, 0)), 0)


def _forward(x, dt, a, b, c, skip, z, dt_bias, state, segment_ids, *, chunk_size, softplus):
    found = outputs(
        x, dt, a, b, c, skip, z, dt_bias, state, segment_ids, chunk_size=chunk_size, softplus=softplus
    )  # fmt: skip
    return *found, _saved(x, dt, a, b, c, dt_bias, state, segment_ids, softplus=softplus)


forward = _batched(_forward)
_outputs = _batched(outputs)
NUMBERS = 9  # operands that are floats


def tangent(*values, **params):
    operands, segment_ids, tangents = values[:NUMBERS], values[NUMBERS], values[NUMBERS + 2 :]
    return jax.jvp(lambda *arrays: _outputs(*arrays, segment_ids, **params), operands, tangents)[1]


def backward(*values, **params):
    operands, segment_ids, (_, dy, dfinal) = values[:NUMBERS], values[NUMBERS], values[NUMBERS + 1 :]
    fun = lambda *arrays: _outputs(*arrays, segment_ids, **params)
    return jax.vjp(fun, *operands)[1](_cotangents(operands, dy, dfinal))


def _cotangents(operands, dy, dfinal):
    """Zeros for what does not take part."""
    x, state = operands[0], operands[-1]
    return jnp.zeros_like(x) if dy is None else dy, jnp.zeros_like(state) if dfinal is None else dfinal


# ---------------------------------------------------------------------------------------------------------------------
# Kernels

_OPERANDS = "...blhp, ...blh, ...h, ...blgn, ...blgn, ...hq, ...blhz, ...h, ...bhpn, ...bs"


def _of(array):
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def forward_native(*operands, save, chunk_size, softplus):
    *numbers, segment_ids = operands
    x, state = numbers[0], numbers[-1]
    out = [_of(x)]
    if save:
        chunks = -(-x.shape[-3] // chunk(x.dtype))
        states = (*state.shape[:-2], chunks, *state.shape[-2:])
        out += [_of(state), jax.ShapeDtypeStruct(states, saved_dtype(x.dtype))]
    return kernel(
        "ssd_chunk_scan", f"{_OPERANDS} -> {'...blhp, ...bhpn, ...bhkpn' if save else '...blhp'}",
        *numbers, starts(segment_ids), out=out, workspace=_of_cb(x, numbers[3]) + _of_decays(x), softplus=softplus,
    )  # fmt: skip


def _of_cb(x, b):
    """Bytes, for each batch, of what ffi/patterns/chunk_cb_mma_cuda.h keeps: ten blocks of 16 x 16 of a C B^T."""
    batches, length, groups, _ = b.shape[-4:]
    chunks = -(-length // chunk(x.dtype))
    return (batches * groups * chunks * 10 * 16 * 16 * 4 if x.dtype == jnp.bfloat16 else 0) + 1024


def backward_native(*values, chunk_size, softplus):
    numbers, segment_ids, (states, dy, dfinal) = values[:NUMBERS], values[NUMBERS], values[NUMBERS + 1 :]
    results = "...blhp, ...blh, ...h, ...blgn, ...blgn, ...hq, ...blhz, ...h, ...bhpn"
    return kernel(
        "ssd_chunk_scan_backward", f"{_OPERANDS}, ...bhkpn, ...blhp, ...bhpn -> {results}",
        *numbers, starts(segment_ids), states, *_cotangents(numbers, dy, dfinal),
        out=list(map(_of, numbers)), workspace=_workspace(numbers[0], numbers[3], numbers[5]), softplus=softplus,
    )  # fmt: skip


def _workspace(x, b, skip):
    """Bytes, for each batch, of what ffi/patterns/chunk_scan_backward_cuda.h keeps: the cotangents of states, and sums of
    blocks and of chunks."""
    (batches, length, heads, rows), (groups, columns) = x.shape[-4:], b.shape[-2:]
    chunks = -(-length // chunk(x.dtype))
    computed = saved_dtype(x.dtype).itemsize
    of_states = batches * heads * chunks * rows * columns * computed
    parts = head_parts(batches * chunks * groups, heads // max(groups, 1))
    of_shared = length * groups * parts * 2 * columns if parts > 1 else 0
    sums = batches * (of_shared + heads * chunks * (2 + skip.shape[-1]))
    return of_states + sums * wide_dtype(x.dtype).itemsize + _of_decays(x) + 1024


def _of_decays(x):
    """Bytes, for each batch, of what ffi/patterns/chunk_decays_cuda.h keeps: six numbers for each position, and two."""
    batches, length, heads, _ = x.shape[-4:]
    chunks = -(-length // chunk(x.dtype))
    return batches * heads * chunks * 1552 if x.dtype == jnp.bfloat16 else 0


def head_parts(blocks, heads):
    """In how many parts the heads of a group are cut, each a block's, so that there are some blocks for each multiprocessor;
    as `head_parts` of that file."""
    return max(1, min(heads, -(-256 // max(blocks, 1))))


def regime(call):
    """The length of sequences, how many rows of states there are, and of how many columns."""
    *batch, columns = call.operand("initial_state").shape
    return {"length": call.operand("x").shape[-3], "inner": math.prod(batch), "states": columns}
