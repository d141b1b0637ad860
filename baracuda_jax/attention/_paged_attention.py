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
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..segment import segment_take
from ._attend import NOWHERE
from ._call import Operands, _lengths, call, static
from ._decode import draw, numbers, pages_of, slopes_of
from ._paged import table_of
from ._ragged import clipped, most_of, starts_of
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
        block_size: static integer, the number of keys in a block.
        implementation: "native" (pages are gathered, and their gradients added up, by kernels), "xla" (plain JAX), a
            PlanPreference, or None for automatic. For one query of each sequence `batch_paged_decode` gathers nothing.

    Returns:
        y, of query's dtype, [batch, queries, heads, d of values]; with `return_lse` a tuple of it and lse, [batch, queries,
        heads], float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The gradient of a page that several sequences
    have is a sum in the order of the table: the same bits every time.

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
    keys = gathered(pages, table, implementation)
    y, lse = _attend(query, *keys, table, lengths, rows, slopes, spec=spec, pages=_count(pages), save=return_lse)
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
        block_size: static integer, the number of keys in a block of plain JAX.
        implementation: "native" (kernels of `flash_sdpa_varlen`; pages are gathered, and their gradients added up, by
            kernels too), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y, of query's dtype, [queries, heads, d of values]; with `return_lse` a tuple of it and lse, [queries, heads],
        float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `flash_sdpa_varlen`. The gradient of a page that several sequences have is a sum in the order of the table:
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
    params = dict(spec=spec, pages=_count(pages), save=return_lse, implementation=implementation)
    y, lse = _prefill(
        query, *gathered(pages, table, implementation), table, lengths, starts, slopes, most=most, **params
    )
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
    checks.positions(op, "page_table", page_table.shape[1] * k_pages.shape[1], "keys in a row")
    return (k_pages, v_pages), *numbers(page_table, lengths, pages=k_pages.shape[0])


def _count(pages):
    return pages[0].shape[0]


def gathered(pages, table, implementation):
    """The pages of each sequence, [entries of the table, n, heads, d]."""
    ids = _flat(table)
    return [segment_take(x, ids, implementation=implementation) for x in pages]


@compiled()
def _flat(x):
    return x.reshape(x.size)


def _exist(table, pages, n):
    """Which keys of a sequence have a page, [batch, keys]."""
    return jnp.repeat((table >= 0) & (table < pages), n, 1)


def _is_key(exists, lengths):
    """Which of these are among the first of each sequence."""
    return exists & (jax.lax.broadcasted_iota(jnp.int32, exists.shape, 1) < lengths[:, None])


@compiled("spec", "pages", "save")
def _attend(query, k, v, table, lengths, rows, slopes, *, spec, pages, save):
    batch, size = table.shape[0], table.shape[1] * k.shape[1]
    exists = _exist(table, pages, k.shape[1])
    is_key = _is_key(exists, lengths)
    # What is after the end may be anything, NaN too.
    # In two steps: of sharded arrays dimensions are split or merged.
    by_page = (explicit.reshape(x, *table.shape, *x.shape[1:]) for x in (k, v))
    rows_of = (explicit.reshape(x, batch, size, *x.shape[3:]) for x in by_page)
    keys = [jnp.where(is_key[..., None, None], x, 0) for x in rows_of]
    columns = jnp.minimum(lengths, size)
    x = Operands(query, *keys, None, exists[:, None, None], rows, columns, slopes=slopes)
    return call(x, spec=spec, alignment="bottom_right", save=save)


@compiled("most", "spec", "pages", "save", "implementation")
def _prefill(query, k, v, table, lengths, starts, slopes, *, most, spec, pages, save, implementation):
    batch, size = table.shape[0], table.shape[1] * k.shape[1]
    is_key = _is_key(_exist(table, pages, k.shape[1]), lengths)
    keys = [explicit.reshape(x, batch * size, *x.shape[2:]) for x in (k, v)]
    keys = [jnp.where(is_key.reshape(batch * size, 1, 1), x, 0) for x in keys]
    # The last query is at the last key of the table, and so is the last one that there is.
    after = size - jnp.minimum(lengths, size)
    at = jax.lax.broadcasted_iota(jnp.int32, (batch, size), 1) + after[:, None]
    positions = jnp.where(is_key, at, NOWHERE).reshape(batch * size)
    starts_k = size * jnp.arange(batch + 1, dtype=jnp.int32)
    arrays = query, *keys, clipped(starts, query.shape[0]), starts_k, slopes, positions
    params = dict(most=(most, size), spec=spec, alignment="bottom_right", save=save, implementation=implementation)
    return listed(*arrays, **params)


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
    made_of=("segment_take",),
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
    made_of=("segment_take", "flash_sdpa_varlen"),
)  # fmt: skip
