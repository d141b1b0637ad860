"""Decoding: attention of one new query of each sequence over a cache that is made of pages."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled, full
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from . import _decode_bodies
from ._call import FAR, positive, scale_of
from ._paged import table_of


@api
def batch_paged_decode(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    page_table: ArrayLike,
    lengths: ArrayLike,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Attention of one query of each sequence over a cache that is made of pages.

    Formula:
        Key j of the sequence b is k[j] = k_pages[page_table[b, j // n], j % n], with pages of n rows, and so is its value.
        The query is at the last key: s[j] = cap(scale query . k[j]) + slopes (j - (lengths[b] - 1)), with cap(s) = softcap
        tanh(s / softcap); y = softmax(s) v and lse = log(sum(exp(s))), over the keys 0 <= j < lengths[b] that, in a
        window, are not more than `window` before the query's. Keys whose page is none of those that there are, are not
        seen. A query that sees no key has y = 0, lse = -inf and gradient 0.

    Args:
        query: floats [batch, heads, d].
        k_pages: array of query's dtype, [number of pages, n, heads of keys, d], as `paged_kv_append` writes it. The heads
            of queries are a multiple of those of keys: each of these is used by as many successive ones.
        v_pages: array of query's dtype, [number of pages, n, heads of keys, d of values].
        page_table: integers [batch, pages of a sequence].
        lengths: integers [batch], the number of keys of each sequence, with that of the query. More than the table has room
            for are as many as it has.
        slopes: floats [heads], those of `alibi`; None for 0.
        scale: static number; None for 1 / sqrt(d).
        softcap: static number above 0.
        window: static integer, how many keys before its own a query sees; None for all.
        return_lse: static bool, whether lse is returned too.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y, of query's dtype, [batch, heads, d of values]; with `return_lse` a tuple of it and lse, [batch, heads],
        float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Keys are added in chunks whose size depends on
    how many keys a row of the table has room for, so a sequence has the same bits alone and in any batch. The kernel reads
    each key and value once for up to eight heads of queries, on CUDA of float16 and bfloat16 for up to sixteen; plain JAX,
    and the gradient, gather all of them first.

    Source: flashinfer.BatchDecodeWithPagedKVCacheWrapper, whose lse has base 2; vLLM's paged_attention_v2.
    """
    op = "batch_paged_decode"
    arrays, params = arguments(
        op, query, k_pages, v_pages, page_table, lengths, slopes, scale=scale, softcap=softcap, window=window
    )
    query, *others = arrays
    of_y = lambda y: y.astype(query.dtype)
    return results(op, (wide(query), *others), params, return_lse, implementation, of_y)


@api
def batch_paged_decode_backward(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    page_table: ArrayLike,
    lengths: ArrayLike,
    lse: ArrayLike,
    dy: ArrayLike,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `batch_paged_decode`.

    Args:
        query, k_pages, v_pages, page_table, lengths, slopes: as in `batch_paged_decode`.
        lse: floats [batch, heads], as `batch_paged_decode` returns it.
        dy: floats [batch, heads, d of values], the cotangent of y.
        scale, softcap, window: as in `batch_paged_decode`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of query, k_pages, v_pages and slopes, that of slopes in float32 for float16 and bfloat16.
    """
    op = "batch_paged_decode_backward"
    arrays, params = arguments(
        op, query, k_pages, v_pages, page_table, lengths, slopes, scale=scale, softcap=softcap, window=window
    )
    q = arrays[0]
    lse, dy = checks.floats(op, "lse", lse), checks.floats(op, "dy", dy)
    checks.shape(op, "lse", lse, q.shape[:-1], "that of query without the last dimension")
    checks.shape(op, "dy", dy, (*q.shape[:-1], arrays[2].shape[-1]), "that of y")
    wide_q, lse, dy = (x.astype(wide_dtype(q.dtype)) for x in (q, lse, dy))
    dq, *others = DECODE.vjp(wide_q, *arrays[1:], lse, dy, **params, implementation=implementation)
    return dq.astype(q.dtype), *others


def arguments(op, query, k_pages, v_pages, page_table, lengths, slopes, *, scale, softcap, window, stored=None):
    """(operands, parameters), checked; `stored` are the dtypes of pages, by default query's."""
    query, k_pages, v_pages = checks.floats(op, "query", query), *pages_of(op, k_pages, v_pages, stored)
    if stored is None:
        checks.same_dtype(op, "k_pages", k_pages, "query", query)
    checks.same_dtype(op, "v_pages", v_pages, "k_pages", k_pages)
    if query.ndim != 3 or query.shape[-1] != k_pages.shape[-1]:
        raise ValueError(
            f"{op}: query must be [batch, heads, d] with the d of k_pages, {k_pages.shape[-1]}, got shape {query.shape}"
        )
    if not k_pages.shape[-2] or query.shape[-2] % k_pages.shape[-2]:
        raise ValueError(
            f"{op}: query must have a multiple of the {k_pages.shape[-2]} heads of k_pages, got {query.shape[-2]} heads"
        )
    batch = query.shape[0]
    with_batch = f"the batch of query, {batch}"
    page_table, lengths = table_of(op, page_table, "lengths", lengths, batch, with_batch, "the batch of query")
    checks.positions(op, "k_pages", k_pages.shape[0] * k_pages.shape[1], "rows")
    checks.positions(op, "page_table", page_table.shape[1] * k_pages.shape[1], "keys in a row")
    slopes = slopes_of(op, slopes, query)
    table, lengths = as_int32(page_table, lengths, pages=k_pages.shape[0])
    return (query, k_pages, v_pages, table, lengths, slopes), static(op, query, scale, softcap, window)


def pages_of(op, k_pages, v_pages, stored):
    k_pages, v_pages = checks.array(op, "k_pages", k_pages), checks.array(op, "v_pages", v_pages)
    for name, x in (("k_pages", k_pages), ("v_pages", v_pages)):
        checks.dtype(op, name, x, stored or checks.FLOATS)
    if k_pages.ndim != 4 or v_pages.shape[:-1] != k_pages.shape[:-1]:
        raise ValueError(
            f"{op}: k_pages must be [number of pages, n, heads of keys, d], and v_pages alike with a d of its own, got "
            f"shapes {k_pages.shape} and {v_pages.shape}"
        )
    return k_pages, v_pages


def slopes_of(op, slopes, query):
    """Slopes in the dtype that is computed in."""
    if slopes is None:
        return full(query.shape[-2:-1], 0, wide_dtype(query.dtype))
    slopes = checks.floats(op, "slopes", slopes)
    checks.shape(op, "slopes", slopes, query.shape[-2:-1], "one for each head of query")
    return slopes.astype(wide_dtype(query.dtype))


def static(op, query, scale, softcap, window):
    return dict(
        scale=scale_of(op, scale, query),
        softcap=None if softcap is None else positive(op, "softcap", softcap),
        left=None if window is None else min(checks.integer(op, "window", window, 0), FAR),
        float8=None,
    )


def as_int32(page_table, lengths, *, pages):
    """Both as decoding takes them: it sees itself which numbers of int32 are out of range."""
    if page_table.dtype == lengths.dtype == np.int32:
        return page_table, lengths
    return numbers(page_table, lengths, pages=pages)


@compiled("pages")
def numbers(page_table, lengths, *, pages):
    """Both as int32: -1 for pages that there are not."""
    at_most = lambda x, most: min(most, jnp.iinfo(x.dtype).max)
    exists = (page_table >= 0) & (page_table <= at_most(page_table, pages - 1)) if pages else page_table != page_table
    lengths = jnp.clip(lengths, 0, at_most(lengths, checks.MOST_POSITIONS)).astype(jnp.int32)
    return jnp.where(exists, jnp.where(exists, page_table, 0).astype(jnp.int32), -1), lengths


def results(op, operands, params, return_lse, implementation, of_y, of_lse=lambda lse: lse):
    """What is made of y, and of lse where that is asked for."""
    save = checks.flag(op, "return_lse", return_lse)
    found = DECODE(*operands, **params, save=save, implementation=implementation)
    return (of_y(found[0]), of_lse(found[1])) if save else of_y(found)


_DIMS = {
    "query": ("sequences", "heads", "d"), "k_pages": ("pages", "n", "heads", "d"),
    "v_pages": ("pages", "n", "heads", "values"), "page_table": ("sequences", "table"), "lengths": ("sequences",),
    "slopes": ("heads",), "y": ("sequences", "heads", "values"), "lse": ("sequences", "heads"),
}  # fmt: skip


def _labels(names, types, params):
    """Heads are cut together, a single head of keys is for all of them."""
    single = types[names.index("k_pages")].shape[-2] == 1

    def of(name, x):
        dims = tuple("head" if single and "pages" in name and dim == "heads" else dim for dim in _DIMS[name])
        return (*(f"batch{i}" for i in range(x.ndim - len(dims))), *dims)

    return [of(name, x) for name, x in zip(names, types, strict=True)]


def draw(pages, n, groups, d, values, heads, table, lengths):
    """Queries, pages, a table of them, the lengths of sequences, and slopes. The table may have pages that there are not."""

    def drawn(rng):
        arrays = (
            rng.standard_normal((len(lengths), heads, d)), rng.standard_normal((pages, n, groups, d)),
            rng.standard_normal((pages, n, groups, values)), np.array(table, np.int32), np.array(lengths, np.int32),
        )  # fmt: skip
        return *arrays, rng.uniform(0, 1, heads)

    return drawn


DECODE = declare(
    "batch_paged_decode",
    family="attention",
    category=OpCategory.ATTENTION,
    public=batch_paged_decode,
    cases=(
        Case("grouped heads", draw(6, 3, 2, 8, 8, 4, [[4, 1], [0, 2], [5, 3]], [4, 6, 1]), dict(softcap=3.0)),
        Case(
            "holes, a window, and lse",
            draw(5, 4, 1, 5, 3, 2, [[1, -1, 3], [0, 4, 7], [2, 2, 0]], [11, 12, 0]),
            dict(window=6, return_lse=True),
        ),
        Case("one head", draw(3, 2, 3, 16, 4, 3, [[2], [0]], [2, 9]), dict(scale=0.3)),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "k_pages", "v_pages", "page_table", "lengths", "slopes"),
    results=("y", "lse"),
    outputs=("y", "lse"),
    differentiable=("query", "k_pages", "v_pages", "slopes"),
    constant={"page_table": "numbers of pages are integers", "lengths": "they are integers"},
    residuals=("query", "k_pages", "v_pages", "page_table", "lengths", "slopes", "lse"),
    forward=Body(_decode_bodies.reference, _decode_bodies.native),
    tangent=Body(*_decode_bodies.TANGENTS),
    backward=Body(*_decode_bodies.BACKWARDS),
    batched=as_they_are,
    cut=Partition(_labels, whole=frozenset({"pages", "n", "head", "d", "values", "table"})),
    kernels={"forward": ("paged_decode",), "tangent": ("take_rows",), "backward": ("take_rows", "segment_sum")},
    sometimes=("segment_index",),
)
