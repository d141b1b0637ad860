"""Attention of sequences in one array: in plain JAX a batch that is padded to the longest, and its kernels.

Arrays are [..., rows, heads, d], starts int32 [..., n + 1], slopes wide, [..., heads], positions int32 [..., keys], or [...,
0] where key j is at j. The gradient of the kernels needs no
order of keys: with lse known, a weight is exp(score - lse), and sum(dy y) - dlse is all that a row's others give."""

import jax
import jax.numpy as jnp

from .._core import explicit
from .._core.compiled import full
from .._core.kernel import kernel
from .._core.wide import wide_dtype
from ._call import Operands, call
from ._ragged import bounds, packed, padded


def regime(call):
    """The keys of a sequence at most, the columns of a row, how many times more queries there are when padded, and whether
    the kernel has tensor cores: times with and without say nothing of each other."""
    *_, rows, _, columns = call.operand("query").shape
    (most, most_keys), sequences = call.params["most"], call.operand("cu_seqlens_q").shape[-1] - 1
    return {
        "length": most_keys, "inner": columns, "padding": sequences * most / max(rows, 1),
        "tensor cores": _has_mma(call.operand("query").dtype, columns, call.operand("value").shape[-1]),
    }  # fmt: skip


def _has_mma(dtype, *columns):
    """As `has_mma` of ffi/patterns/varlen_mma_cuda.h."""
    return dtype.itemsize == 2 and all(0 < n <= 128 and n % 8 == 0 for n in columns)


def reference(q, k, v, starts_q, starts_k, slopes, positions, **params):
    """Batch dimension by batch dimension: rows are found by indices of one array."""
    fun = lambda *arrays: _one(*arrays, **params)
    return explicit.mapped(fun, q.ndim - 3)(q, k, v, starts_q, starts_k, slopes, positions)


def _one(q, k, v, starts_q, starts_k, slopes, positions, *, most, spec, alignment, biased):
    (begin, rows), (begin_k, columns) = bounds(starts_q, q.shape[0]), bounds(starts_k, k.shape[0])
    batch = (padded(q, begin, rows, most[0]), *(padded(x, begin_k, columns, most[1]) for x in (k, v)))
    at = padded(positions, begin_k, columns, most[1]) if positions.size else None
    x = Operands(*batch, rows=rows, columns=columns, slopes=slopes if biased else None, positions=at)
    # Scores of few queries take no more memory than the keys: a loop over blocks would only cut what is done at once.
    if most[0] * (q.shape[-2] // k.shape[-2]) <= k.shape[-1]:
        spec = spec._replace(block=None)
    y, lse = call(x, spec=spec, alignment=alignment, save=True)
    back = lambda y, fill: packed(y, begin, rows, q.shape[0], fill)
    return back(y, 0), back(lse, -jnp.inf)


def native(*operands, save=False, **params):
    q, v = operands[0], operands[2]
    out = [jax.ShapeDtypeStruct((*q.shape[:-1], v.shape[-1]), q.dtype), _rows_of(q)]
    found = _called("varlen_attention", "...qhf, ...qh", operands, out, **params)
    return tuple(found) if save else (found[0],)


def _rows_of(q):
    """A number for each row and head."""
    return jax.ShapeDtypeStruct(q.shape[:-1], wide_dtype(q.dtype))


def _called(target, results, operands, out, more="", *, most, spec, alignment, biased):
    q, k, v, starts_q, starts_k, slopes, positions, *others = operands
    # What does not ascend is no sequence.
    starts = [jax.lax.cummax(x, axis=x.ndim - 1) for x in (starts_q, starts_k)]
    right = 0 if spec.is_causal else -1 if spec.right is None else spec.right
    return kernel(
        target, f"...qhd, ...kgd, ...kgf, ...s, ...s, ...h, ...p{more} -> {results}",
        q, k, v, *starts, slopes, positions, *others,
        out=out, scale=spec.scale, softcap=spec.softcap or 0.0, left=-1 if spec.left is None else spec.left, right=right,
        bottom_right=alignment == "bottom_right", biased=biased, most_queries=most[0], most_keys=most[1],
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# Derivatives


def tangent(q, k, v, starts_q, starts_k, slopes, positions, y, lse, tq, tk, tv, tslopes, **params):
    fun = lambda q, k, v, slopes: reference(q, k, v, starts_q, starts_k, slopes, positions, **params)
    return tuple(jax.jvp(fun, (q, k, v, slopes), (tq, tk, tv, tslopes))[1])


def backward(q, k, v, starts_q, starts_k, slopes, positions, y, lse, dy, dlse, **params):
    fun = lambda q, k, v, slopes: reference(q, k, v, starts_q, starts_k, slopes, positions, **params)
    return jax.vjp(fun, q, k, v, slopes)[1](_cotangents(y, lse, dy, dlse))


def _cotangents(y, lse, dy, dlse):
    return tuple(full(x.shape, 0, x.dtype) if d is None else d for x, d in ((y, dy), (lse, dlse)))


def backward_native(q, k, v, starts_q, starts_k, slopes, positions, y, lse, dy, dlse, **params):
    dy, dlse = _cotangents(y, lse, dy, dlse)
    out = [*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (q, k, v)), _rows_of(q), _rows_of(q)]
    dq, dk, dv, rows, _ = _called(
        "varlen_attention_backward", "...qhd, ...kgd, ...kgf, ...qh, ...qh",
        (q, k, v, starts_q, starts_k, slopes, positions, y, lse, dy, dlse), out, ", ...qhf, ...qh, ...qhf, ...qh", **params,
    )  # fmt: skip
    return dq, dk, dv, rows.sum(-2)
