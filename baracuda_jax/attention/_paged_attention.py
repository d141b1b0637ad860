"""Attention over a cache that is made of pages, of any number of queries of each sequence."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import OPS, compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _paged_few
from ._attend import NOWHERE
from ._call import _lengths, static
from ._decode import draw, numbers, pages_of, slopes_of
from ._paged import table_of
from ._ragged import bounds, clipped, most_of, packed, padded, starts_of
from ._varlen import listed

Window = int | tuple[int | None, int | None] | None


@api
def paged_attention(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    page_table: ArrayLike,
    lengths: ArrayLike,
    query_seq_lengths: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = True,
    window: Window = None,
    softcap: float | None = None,
    return_lse: bool = False,
    block_size: int = 512,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Attention of the last queries of each sequence over a cache that is made of pages.

    Formula:
        `flash_sdpa`, aligned at the bottom right, over the keys of each sequence: key j of the sequence b is
        k_pages[page_table[b, j // n], j % n], with pages of n rows, for 0 <= j < lengths[b], and so is its value. Slopes add
        slopes (j - i - o) to the scores, o = lengths[b] less the number of queries. Keys whose page is none of those that
        there are, are not seen. A query that sees no key has y = 0, lse = -inf and gradient 0.

    Args:
        query: floats [batch, queries, heads, d]: the last queries of each sequence, whose keys are in the cache.
        k_pages: array of query's dtype, [number of pages, n, heads of keys, d], as `paged_kv_append` writes it.
        v_pages: array of query's dtype, [number of pages, n, heads of keys, d of values].
        page_table: integers [batch, pages of a sequence].
        lengths: integers [batch], the number of keys of each sequence, with those of the queries.
        query_seq_lengths: integers [batch], the number of queries, where later ones are padding; None for all.
        slopes: floats [heads], those of `alibi`; None for none.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool, whether a query sees no key after its own.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        return_lse: static bool, whether lse is returned too.
        block_size: static integer, the number of keys in a block of plain JAX of more queries.
        implementation: "native" (the kernels of `batch_paged_decode`, which gather nothing, for few queries: one of each
            sequence, or, without a window, up to 64 that share a head of keys, 16 in float32 and float64; for others those
            of `flash_sdpa_varlen`, and pages are gathered by a kernel), "xla" (plain JAX), a PlanPreference, or None for
            automatic.

    Returns:
        y, of query's dtype, [batch, queries, heads, d of values]; with `return_lse` a tuple of it and lse, [batch, queries,
        heads], float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `batch_paged_decode` for few queries, as `flash_sdpa_varlen` for others. The gradient gathers the keys, and
    that of a page that several sequences have is a sum in the order of the table: the same bits every time.

    Source: vLLM's paged attention; flashinfer.BatchPrefillWithPagedKVCacheWrapper, whose lse has base 2.
    """
    op = "paged_attention"
    query = checks.floats(op, "query", query)
    if query.ndim != 4:
        raise ValueError(f"{op}: query must be [batch, queries, heads, d], got shape {query.shape}")
    pages, table, lengths = cache_of(op, query, k_pages, v_pages, page_table, lengths, query.shape[0])
    rows = _lengths(op, "query_seq_lengths", query_seq_lengths, query)
    slopes = None if slopes is None else slopes_of(op, slopes, query)
    spec, _ = static(
        op, query, scale=scale, is_causal=is_causal, window=window, softcap=softcap, block_size=block_size
    )  # fmt: skip
    return_lse = checks.flag(op, "return_lse", return_lse)
    params = dict(spec=spec, save=return_lse, implementation=implementation)
    y, lse = _attend(query, pages, table, lengths, rows, slopes, **params)
    return (y, lse) if return_lse else y


@api
def batch_paged_prefill(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    page_table: ArrayLike,
    lengths: ArrayLike,
    qo_indptr: ArrayLike,
    max_seqlen_q: int | None = None,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = True,
    window: Window = None,
    softcap: float | None = None,
    return_lse: bool = False,
    block_size: int = 512,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Attention over a cache that is made of pages, of queries that follow each other in one array.

    Formula:
        `paged_attention`, where the queries of the sequence b are the rows qo_indptr[b] to qo_indptr[b + 1] - 1 of query:
        its last ones. Rows that are no sequence's have y = 0, lse = -inf and gradient 0.

    Args:
        query: floats [queries, heads, d], of all sequences.
        k_pages: array of query's dtype, [number of pages, n, heads of keys, d], as `paged_kv_append` writes it.
        v_pages: array of query's dtype, [number of pages, n, heads of keys, d of values].
        page_table: integers [batch, pages of a sequence].
        lengths: integers [batch], the number of keys of each sequence, with those of the queries.
        qo_indptr: integers [batch + 1], ascending: where each sequence begins in query, and the end of the last.
        max_seqlen_q: static integer, at least the length of the longest sequence's queries; later ones are left out. None
            for the number of all queries, for which plain JAX takes memory for batch times as many.
        slopes: floats [heads], those of `alibi`; None for none.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool, whether a query sees no key after its own.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        return_lse: static bool, whether lse is returned too.
        block_size: static integer, the number of keys in a block of plain JAX of more queries.
        implementation: "native" (kernels, for few queries of at most `max_seqlen_q` those that gather nothing, as
            `paged_attention`), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y, of query's dtype, [queries, heads, d of values]; with `return_lse` a tuple of it and lse, [queries, heads],
        float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `paged_attention`. The gradient of a page that several sequences have is a sum in the order of the table:
    the same bits every time.

    Source: flashinfer.BatchPrefillWithPagedKVCacheWrapper, whose lse has base 2.
    """
    op = "batch_paged_prefill"
    query = checks.floats(op, "query", query)
    if query.ndim != 3:
        raise ValueError(f"{op}: query must be [queries, heads, d], got shape {query.shape}")
    starts = starts_of(op, "qo_indptr", qo_indptr)
    most = most_of(op, "max_seqlen_q", max_seqlen_q, query.shape[0])
    pages, table, lengths = cache_of(op, query, k_pages, v_pages, page_table, lengths, starts.shape[0] - 1)
    slopes = None if slopes is None else slopes_of(op, slopes, query)
    spec, _ = static(
        op, query, scale=scale, is_causal=is_causal, window=window, softcap=softcap, block_size=block_size
    )  # fmt: skip
    return_lse = checks.flag(op, "return_lse", return_lse)
    params = dict(spec=spec, save=return_lse, implementation=implementation)
    y, lse = _prefill(query, pages, table, lengths, starts, slopes, most=most, **params)
    return (y, lse) if return_lse else y


def cache_of(op, query, k_pages, v_pages, page_table, lengths, batch):
    """(pages, table, lengths), checked."""
    k_pages, v_pages = pages_of(op, k_pages, v_pages, None)
    for name, x in (("k_pages", k_pages), ("v_pages", v_pages)):
        checks.same_dtype(op, name, x, "query", query)
    if query.shape[-1] != k_pages.shape[-1] or not k_pages.shape[-2] or query.shape[-2] % k_pages.shape[-2]:
        raise ValueError(
            f"{op}: query must have the d of k_pages and a multiple of its heads, {k_pages.shape[-2:]}, got shape "
            f"{query.shape}"
        )
    with_batch = f"a batch of {batch}"
    page_table, lengths = table_of(op, page_table, "lengths", lengths, batch, with_batch, "one for each sequence")
    checks.positions(op, "k_pages", k_pages.shape[0] * k_pages.shape[1], "rows")
    checks.positions(op, "page_table", page_table.shape[1] * k_pages.shape[1], "keys in a row")
    return (k_pages, v_pages), *numbers(page_table, lengths, pages=k_pages.shape[0])


def _clipped(counts, most):
    """int32, from 0 to most."""
    return jnp.clip(counts, 0, min(most, jnp.iinfo(counts.dtype).max)).astype(jnp.int32)


@compiled("spec", "save", "implementation")
def _attend(query, pages, table, lengths, rows, slopes, *, spec, save, implementation):
    batch, t = query.shape[:2]
    rows = None if rows is None else _clipped(rows, t)
    params = dict(spec=spec, save=save, implementation=implementation)
    if _paged_few.fits(spec, t, query, pages[0], table):
        return _paged_few.attend(query, *pages, table, lengths, rows, slopes, **params)
    is_query = None if rows is None else jax.lax.broadcasted_iota(jnp.int32, (batch, t), 1) < rows[:, None]
    # What is padding may be anything, NaN too.
    query = query if is_query is None else jnp.where(is_query[..., None, None], query, 0)
    starts = t * jnp.arange(batch + 1, dtype=jnp.int32)
    flat = explicit.reshape(query, batch * t, *query.shape[2:])
    y, lse = _of_gathered(
        flat, pages, table, lengths, starts, slopes, most=t, padding=0 if rows is None else t - rows, **params
    )
    y, lse = (x if x is None else explicit.reshape(x, batch, t, *x.shape[1:]) for x in (y, lse))
    if is_query is None:
        return y, lse
    y = jnp.where(is_query[..., None, None], y, 0)
    return y, None if lse is None else jnp.where(is_query[..., None], lse, -jnp.inf)


@compiled("most", "spec", "save", "implementation")
def _prefill(query, pages, table, lengths, starts, slopes, *, most, spec, save, implementation):
    count = query.shape[0]
    params = dict(spec=spec, save=save, implementation=implementation)
    if not _paged_few.fits(spec, most, query, pages[0], table):
        starts = clipped(starts, count)
        return _of_gathered(query, pages, table, lengths, starts, slopes, most=most, padding=0, **params)
    begin, rows = bounds(starts, count)
    batch = padded(query, begin, rows, most)
    y, lse = _paged_few.attend(batch, *pages, table, lengths, jnp.minimum(rows, most), slopes, **params)
    return packed(y, begin, rows, count, 0), None if lse is None else packed(lse, begin, rows, count, -jnp.inf)


def _of_gathered(query, pages, table, lengths, starts, slopes, *, most, padding, spec, save, implementation):
    """By `flash_sdpa_varlen`, of keys that are gathered. The last `padding` queries of a sequence, of `most`, are none."""
    batch, n = table.shape[0], pages[0].shape[1]
    size = table.shape[1] * n
    j = jax.lax.broadcasted_iota(jnp.int32, (batch, size), 1)
    # What is after the end may be anything, NaN too: it is not read.
    rows = _paged_few.key_rows(table, j, j < lengths[:, None], n) if size else j
    keys = [_paged_few.taken(x, rows, implementation) for x in pages]
    keys = [explicit.reshape(x, batch * size, *x.shape[2:]) for x in keys]
    # The last query is at the last key of the table, and so is the last one that there is.
    after = size - jnp.minimum(lengths, size) - padding
    positions = jnp.where(rows >= 0, j + after[:, None], NOWHERE).reshape(batch * size)
    starts_k = size * jnp.arange(batch + 1, dtype=jnp.int32)
    params = dict(most=(most, size), spec=spec, alignment="bottom_right", save=save, implementation=implementation)
    return listed(query, *keys, starts, starts_k, slopes, positions, **params)


def _queries(drawn, shape, *more):
    """The arrays of a decoding with other queries, and without slopes."""

    def with_queries(rng):
        _, *arrays, _ = drawn(rng)
        return rng.standard_normal(shape), *arrays, *(np.array(x, np.int32) for x in more)

    return with_queries


_CACHES = (
    draw(6, 3, 2, 8, 8, 4, [[4, 1], [0, 2], [5, 3]], [4, 6, 2]),
    draw(5, 4, 1, 5, 3, 2, [[1, -1, 3], [0, 4, 7]], [11, 12]),
)

_PARTS = "segment_take", "batch_paged_decode", "flash_sdpa_varlen"
_OF_FEW = {
    kind: tuple(dict.fromkeys(t for part in _PARTS[:2] for t in OPS[part].kernels[kind]))
    for kind in ("forward", "tangent", "backward")
}
_OF_SOME = tuple(t for part in _PARTS[1:] for of_kind in OPS[part].kernels.values() for t in of_kind)

compose(
    "paged_attention",
    family="attention",
    category=OpCategory.ATTENTION,
    public=paged_attention,
    cases=(
        Case("grouped heads", _queries(_CACHES[0], (3, 2, 4, 8), [2, 1, 2]), dict(softcap=3.0, block_size=4)),
        Case(
            "holes, a window, and lse", _queries(_CACHES[1], (2, 3, 2, 5), [3, 3]),
            dict(window=(5, 0), is_causal=False, return_lse=True),
        ),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "k_pages", "v_pages", "page_table", "lengths", "query_seq_lengths"),
    outputs=("y", "lse"),
    differentiable=("query", "k_pages", "v_pages"),
    constant={
        "page_table": "numbers of pages are integers", "lengths": "they are integers",
        "query_seq_lengths": "they are integers",
    },
    made_of=_PARTS,
    kernels=_OF_FEW,
    sometimes=_OF_SOME,
)  # fmt: skip

compose(
    "batch_paged_prefill",
    family="attention",
    category=OpCategory.ATTENTION,
    public=batch_paged_prefill,
    cases=(
        Case("grouped heads", _queries(_CACHES[0], (6, 4, 8), [0, 3, 3, 5]), dict(max_seqlen_q=3, block_size=4)),
        Case("holes, a window, and lse", _queries(_CACHES[1], (5, 2, 5), [0, 2, 5]), dict(window=(5, None),
        return_lse=True)),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "k_pages", "v_pages", "page_table", "lengths", "qo_indptr"),
    outputs=("y", "lse"),
    differentiable=("query", "k_pages", "v_pages"),
    constant={
        "page_table": "numbers of pages are integers", "lengths": "they are integers", "qo_indptr": "they are integers",
    },
    made_of=_PARTS,
    kernels=_OF_FEW,
    sometimes=_OF_SOME,
)  # fmt: skip
