"""Decoding over pages: what it computes in plain JAX, and its kernels.

Queries are [..., b, heads, d] and wide, pages [..., pages, n, heads of keys, d]: floats, or the bits of those of the type
`float8`, which have no derivative. The derivatives need no order of keys: with
lse known, y is the sum of exp(score - lse) v, whose derivative is JAX's. They are of gathered keys, which in native bodies
kernels gather, and add up in the order of the pages."""

import functools
import math

import jax
import jax.numpy as jnp

from .._core.compiled import full
from .._core.float8 import of_bits
from .._core.kernel import kernel
from .._core.wide import wide
from ..segment import _kernels, _references
from ._attend import finite

# As in ffi/patterns/attention.h, which has twice as many keys of 8 bits in a chunk.
CHUNK, MOST_CHUNKS = 512, 128


def _keys(pages, page_table, float8, gather):
    """The rows of each sequence, wide, [..., b, s, heads, d]; 0 where there is no page."""
    axis = pages.ndim - 4
    shape = (*page_table.shape[:-1], page_table.shape[-1] * pages.shape[-3], *pages.shape[-2:])
    ids = page_table.reshape(*page_table.shape[:axis], math.prod(page_table.shape[axis:]))
    rows = gather(pages, ids, axis=axis)
    return (wide(rows) if float8 is None else of_bits(rows, float8).astype(jnp.float32)).reshape(shape)


def _seen(pages, page_table, lengths, left):
    """(which keys a query sees, [..., b, s]; their positions relative to the query)"""
    n, count = pages.shape[-3], pages.shape[-4]
    capacity = n * page_table.shape[-1]
    exists = jnp.repeat((page_table >= 0) & (page_table < count), n, -1)
    length = jnp.clip(lengths, 0, capacity)[..., None]
    j = jax.lax.broadcasted_iota(jnp.int32, exists.shape, exists.ndim - 1)
    seen = exists & (j < length)
    return (seen if left is None else seen & (j >= length - 1 - left)), j - (length - 1)


def _scores(q, k, slopes, seen, distance, scale, softcap):
    """[..., b, heads of keys, group, s]"""
    groups = k.shape[-2]
    grouped = q.reshape(*q.shape[:-2], groups, q.shape[-2] // groups, q.shape[-1])
    s = jnp.einsum("...kgd,...skd->...kgs", grouped, k) * scale
    if softcap is not None:
        s = softcap * jnp.tanh(s / softcap)
    slopes = slopes.reshape(*slopes.shape[:-1], 1, *grouped.shape[-3:-1], 1)
    s = s + slopes * distance[..., None, None, :].astype(s.dtype)
    return jnp.where(seen[..., None, None, :], s, -jnp.inf)


def _heads(x, values=()):
    """[..., heads of keys, group, *values] -> [..., heads, *values]"""
    last = x.ndim - len(values)
    return x.reshape(*x.shape[: last - 2], x.shape[last - 2] * x.shape[last - 1], *values)


def _gathered(k_pages, v_pages, page_table, lengths, left, float8, gather):
    seen, distance = _seen(k_pages, page_table, lengths, left)
    return *(_seen_keys(p, page_table, seen, float8, gather) for p in (k_pages, v_pages)), seen, distance


def _seen_keys(pages, page_table, seen, float8, gather):
    """What is after the end may be anything, NaN too."""
    return jnp.where(seen[..., None, None], _keys(pages, page_table, float8, gather), 0)


def reference(q, k_pages, v_pages, page_table, lengths, slopes, *, scale, softcap, left, float8):
    k, v, seen, distance = _gathered(k_pages, v_pages, page_table, lengths, left, float8, _references.take)
    s = _scores(q, k, slopes, seen, distance, scale, softcap)
    top = jax.lax.stop_gradient(finite(jnp.max(s, -1, initial=-jnp.inf)))
    p = jnp.exp(s - top[..., None])
    total = p.sum(-1)
    some = total != 0
    total = jnp.where(some, total, 1)
    y = jnp.einsum("...kgs,...skd->...kgd", p, v) / total[..., None]
    return _heads(y, v.shape[-1:]), _heads(jnp.where(some, top + jnp.log(total), -jnp.inf))


def native(q, k_pages, v_pages, page_table, lengths, slopes, *, scale, softcap, left, float8, save=False):
    values, capacity = v_pages.shape[-1], k_pages.shape[-3] * page_table.shape[-1]
    if float8 is not None:
        k_pages, v_pages = of_bits(k_pages, float8), of_bits(v_pages, float8)
    y = jax.ShapeDtypeStruct((*q.shape[:-1], values), q.dtype)
    found = kernel(
        "paged_decode", "...bhd, ...pnkd, ...pnkf, ...bm, ...b, ...h -> ...bhf, ...bh",
        q, k_pages, v_pages, page_table, lengths, slopes,
        out=[y, jax.ShapeDtypeStruct(q.shape[:-1], q.dtype)],
        workspace=_workspace(q.shape[-3] * q.shape[-2], capacity, values, q.dtype.itemsize, float8),
        scale=scale, softcap=0.0 if softcap is None else softcap, left=-1 if left is None else left,
    )  # fmt: skip
    return tuple(found) if save else (found[0],)


def _workspace(queries, capacity, values, itemsize, float8):
    """The states and sums of each query's chunks of keys, and how many of them are done."""
    unit = CHUNK if float8 is None else 2 * CHUNK
    chunk = unit * max(1, -(-capacity // (unit * MOST_CHUNKS)))
    return queries * (-(-capacity // chunk) * (values + 2) * itemsize + 4) + 3 * 256


# ---------------------------------------------------------------------------------------------------------------------
# Derivatives


def _sums(lse, seen, distance, scale, softcap):
    """The function of q, k, v and slopes that gives the sums of exp(score - lse) v and of exp(score - lse)."""

    def sums(q, k, v, slopes):
        s = _scores(q, k, slopes, seen, distance, scale, softcap)
        lse_ = lse.reshape(*s.shape[:-1], 1)
        p = jnp.exp(s - finite(lse_))
        return _heads(jnp.einsum("...kgs,...skd->...kgd", p, v), v.shape[-1:]), _heads(p.sum(-1))

    return sums


def tangent(
    gather, q, k_pages, v_pages, page_table, lengths, slopes, lse, tq, tk, tv, ts, *, scale, softcap, left, float8
):
    k, v, seen, distance = _gathered(k_pages, v_pages, page_table, lengths, left, float8, gather)
    if float8 is None:
        tk, tv = (_seen_keys(t, page_table, seen, None, gather) for t in (tk, tv))
    else:
        tk, tv = (full(x.shape, 0, x.dtype) for x in (k, v))
    sums = _sums(lse, seen, distance, scale, softcap)
    (y, _), (dy, dlse) = jax.jvp(sums, (q, k, v, slopes), (tq, tk, tv, ts))
    return dy - y * dlse[..., None], dlse


def backward(
    gather, add_up, q, k_pages, v_pages, page_table, lengths, slopes, lse, dy, dlse, *, scale, softcap, left,
    float8,
):  # fmt: skip
    k, v, seen, distance = _gathered(k_pages, v_pages, page_table, lengths, left, float8, gather)
    dy = full((*q.shape[:-1], v.shape[-1]), 0, q.dtype) if dy is None else dy
    dlse = full(lse.shape, 0, lse.dtype) if dlse is None else dlse
    (y, _), pull = jax.vjp(_sums(lse, seen, distance, scale, softcap), q, k, v, slopes)
    dq, dk, dv, dslopes = pull((dy, dlse - (dy * y).sum(-1)))

    def pages(d, like):
        if float8 is not None:
            return full(like.shape, 0, q.dtype)
        return add_up(jnp.where(seen[..., None, None], d, 0), page_table, like)

    return dq, pages(dk, k_pages), pages(dv, v_pages), dslopes


def _add_up(by_segment):
    """[..., b, s, heads, d] as pages: the sum over all sequences that have the page."""

    def add_up(rows, page_table, like):
        axis = like.ndim - 4
        ids = page_table.reshape(*page_table.shape[:axis], math.prod(page_table.shape[axis:]))
        each = rows.reshape(*ids.shape, *like.shape[-3:])
        return by_segment(each, ids, axis, like.shape[axis]).astype(like.dtype)

    return add_up


def _plain_sum(x, ids, axis, count):
    return _references.reduce_by(
        lambda x, ids: jax.ops.segment_sum(x, ids, count), 0, x, ids, axis=axis, num_segments=count, empty_bits=0
    )


def _kernel_sum(x, ids, axis, count):
    return _kernels.reduce("segment_sum", x, ids, [x.dtype], axis=axis, num_segments=count, empty_bits=0)[0]


TANGENTS = functools.partial(tangent, _references.take), functools.partial(tangent, _kernels.gathered)
BACKWARDS = (
    functools.partial(backward, _references.take, _add_up(_plain_sum)),
    functools.partial(backward, _kernels.gathered, _add_up(_kernel_sum)),
)
