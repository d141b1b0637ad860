"""A few queries of each sequence over pages, as heads of one decoding, which reads every key once and gathers none.

What is decoded are the keys that all queries of a sequence see. Causal attention shows some of them a few more, fewer than
there are queries: these are gathered, and merged with the sums of the others in plain JAX."""

import jax
import jax.numpy as jnp

from .._core import explicit
from .._core.compiled import compiled, full
from .._core.wide import wide, wide_dtype
from ..segment import segment_take
from ._attend import finite
from ._call import grouped, lse_of_heads, ungrouped
from ._decode import DECODE

# Queries that share a head of keys. Above, products take more time than to gather the keys for other kernels, first
# where no tensor cores compute them.
MOST, MOST_WIDE = 64, 16


def fits(spec, t, query, k_pages, table):
    """Whether decoding computes t queries of each sequence: all see the same keys, except for causal attention."""
    if not (t and query.size and k_pages.size and table.size):
        return False
    has_window = spec.left is not None or (spec.right is not None and not spec.is_causal)
    most = MOST if query.dtype.itemsize == 2 else MOST_WIDE
    return t * query.shape[-2] // k_pages.shape[-2] <= most and (t == 1 or not has_window)


def key_rows(table, at, is_key, n):
    """Which of all pages' rows are the keys at positions [batch, ...] of their sequences; -1 for those that are hidden."""
    page = jnp.take_along_axis(table, jnp.clip(at // n, 0, table.shape[1] - 1), 1)
    return jnp.where(is_key & (page >= 0), page * n + at % n, -1)


def taken(pages, rows, implementation):
    """Those rows of pages, [batch, keys, heads, d], 0 for -1."""
    flat = explicit.reshape(pages, pages.shape[0] * pages.shape[1], *pages.shape[2:])
    found = segment_take(flat, rows.reshape(rows.size), implementation=implementation)
    return explicit.reshape(found, *rows.shape, *pages.shape[2:])


@compiled("spec", "save", "implementation")
def attend(query, k_pages, v_pages, table, lengths, rows, slopes, *, spec, save, implementation):
    """(y, lse or None) of queries [batch, t, heads, d], of which the first `rows` [batch] are some; None for all."""
    (batch, t, heads, _), (_, n, groups, _) = query.shape, k_pages.shape
    lengths = jnp.minimum(lengths, table.shape[1] * n)
    rows = full((batch,), t, jnp.int32) if rows is None else rows
    is_query = (jax.lax.broadcasted_iota(jnp.int32, (batch, t), 1) < rows[:, None])[..., None]
    q = grouped(jnp.where(is_query[..., None], wide(query), 0), groups)
    slopes = full((heads,), 0, wide_dtype(query.dtype)) if slopes is None else slopes
    has_more = spec.is_causal and t > 1
    own = lengths - rows  # the position of the first query
    common = jnp.clip(own + 1, 0, lengths) if has_more else lengths
    arrays = explicit.reshape(q, batch, heads * t, q.shape[-1]), k_pages, v_pages, table, common, jnp.repeat(slopes, t)
    how = dict(scale=spec.scale, softcap=spec.softcap, left=spec.left, float8=None)
    found = DECODE(*arrays, **how, save=save or has_more, implementation=implementation)
    y, lse = tuple(found) if save or has_more else (found, None)
    by_group = lambda x: explicit.reshape(x, *q.shape[:-1], *x.shape[2:])
    y, lse = by_group(y), None if lse is None else by_group(lse)
    if lse is not None:  # whose distances are from the last of the common keys
        slopes = explicit.reshape(slopes, *q.shape[1:3], 1)
        at = own[:, None] + jax.lax.broadcasted_iota(jnp.int32, (batch, t), 1)
        lse = lse + slopes[None] * (common[:, None] - 1 - at)[:, None, None].astype(lse.dtype)
    if has_more:
        y, lse = _with_more(y, lse, q, (k_pages, v_pages), table, own + 1, lengths, slopes, spec, implementation)
    y = jnp.where(is_query[..., None], ungrouped(y), 0).astype(query.dtype)
    return y, jnp.where(is_query, lse_of_heads(lse), -jnp.inf) if save else None


def _with_more(y, lse, q, pages, table, first, lengths, slopes, spec, implementation):
    """Those of the keys from the position `first` on too: query i sees i of them."""
    count = q.shape[-2] - 1
    at = first[:, None] + jax.lax.broadcasted_iota(jnp.int32, (q.shape[0], count), 1)
    rows = key_rows(table, at, (at >= 0) & (at < lengths[:, None]), pages[0].shape[1])
    k, v = (wide(taken(x, rows, implementation)) for x in pages)
    i, j = (jax.lax.broadcasted_iota(jnp.int32, (count + 1, count), axis) for axis in (0, 1))
    # In the precision of the kernel.
    s = jnp.einsum("bkgtd,bskd->bkgts", q, k, precision="highest") * spec.scale
    if spec.softcap is not None:
        s = spec.softcap * jnp.tanh(s / spec.softcap)
    s = s + (slopes[..., None] * (j + 1 - i).astype(s.dtype)[None, None])[None]
    s = jnp.where((rows >= 0)[:, None, None, None] & (j < i)[None, None, None], s, -jnp.inf)
    top = jax.lax.stop_gradient(finite(jnp.maximum(lse, s.max(-1))))
    weight, p = jnp.exp(lse - top), jnp.exp(s - top[..., None])
    total = weight + p.sum(-1)
    some = total != 0
    total = jnp.where(some, total, 1)
    y = weight[..., None] * y + jnp.einsum("bkgts,bskd->bkgtd", p, v, precision="highest")
    return y / total[..., None], jnp.where(some, top + jnp.log(total), -jnp.inf)
