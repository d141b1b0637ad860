"""Decoding over a cache that is one array: each sequence has one page."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled, full
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._decode import as_int32, results, slopes_of, static


@api
def flash_decoding(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    lengths: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Attention of one query of each sequence over a cache of keys and values.

    Formula:
        `batch_paged_decode` of sequences that have a page each: y = softmax(s) value, lse = log(sum(exp(s))), s[j] =
        cap(scale query . key[j]) + slopes (j - (lengths - 1)) over the keys j < lengths, in a window those that are not more
        than `window` before the last. A query that sees no key has y = 0, lse = -inf and gradient 0.

    Args:
        query: floats [..., heads, d].
        key: array of query's dtype, [..., keys, heads of keys, d]. The heads of queries are a multiple of those of keys.
        value: array of query's dtype, [..., keys, heads of keys, d of values].
        lengths: integers [...], the number of keys of each sequence; None for all.
        slopes: floats [heads], those of `alibi`; None for 0.
        scale: static number; None for 1 / sqrt(d).
        softcap: static number above 0.
        window: static integer, how many keys before its own a query sees; None for all.
        return_lse: static bool, whether lse is returned too.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y, of query's dtype, [..., heads, d of values]; with `return_lse` a tuple of it and lse, [..., heads], float32, or
        float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `batch_paged_decode`. The keys of a sequence are split in fixed chunks, which are read in parallel.

    Source: Flash-Decoding (Dao, Haziza, Massa and Sizov, 2023); flash_attn_with_kvcache.
    """
    op = "flash_decoding"
    query, key, value = (checks.floats(op, n, x) for n, x in (("query", query), ("key", key), ("value", value)))
    for name, x in (("key", key), ("value", value)):
        checks.same_dtype(op, name, x, "query", query)
    if query.ndim < 2 or key.ndim != query.ndim + 1 or (*key.shape[:-3], key.shape[-1]) != (
        *query.shape[:-2], query.shape[-1],
    ):  # fmt: skip
        raise ValueError(
            f"{op}: query must be [..., heads, d] and key [..., keys, heads of keys, d], got {query.shape} and {key.shape}"
        )
    if value.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            f"{op}: value must have the shape of key, {key.shape}, except for the last dimension, got {value.shape}"
        )
    if not key.shape[-2] or query.shape[-2] % key.shape[-2]:
        raise ValueError(
            f"{op}: query must have a multiple of the {key.shape[-2]} heads of key, got {query.shape[-2]} heads"
        )
    checks.positions(op, "key", key.shape[-3], "keys")
    slopes, params = slopes_of(op, slopes, query), static(op, query, scale, softcap, window)
    arrays = _as_pages(op, query, key, value, lengths, slopes)
    of_y = lambda y: explicit.reshape(y.astype(query.dtype), *query.shape[:-1], value.shape[-1])
    of_lse = lambda lse: explicit.reshape(lse, *query.shape[:-1])
    return results(op, arrays, params, return_lse, implementation, of_y, of_lse)


def _as_pages(op, query, key, value, lengths, slopes):
    """The operands of a decoding whose batches have one sequence of one page."""
    batch = query.shape[:-2]
    if lengths is None:
        lengths = full(batch, key.shape[-3], np.dtype("int32"))
    else:
        lengths = checks.array(op, "lengths", lengths)
        checks.dtype(op, "lengths", lengths, checks.INTEGERS)
        checks.shape(op, "lengths", lengths, batch, "the batch dimensions of query")
        lengths = as_int32(full((0,), 0, np.dtype("int32")), lengths, pages=1)[1]
    one = lambda x, rank: explicit.reshape(x, *batch, 1, *x.shape[x.ndim - rank :])
    slopes = _repeated(slopes, batch=batch)
    table = full((*batch, 1, 1), 0, np.dtype("int32"))
    return one(wide(query), 2), one(key, 3), one(value, 3), table, explicit.reshape(lengths, *batch, 1), slopes


@compiled("batch")
def _repeated(slopes, *, batch):
    return jnp.broadcast_to(slopes, (*batch, *slopes.shape))


def _draw(batch, keys, groups, d, values, heads, lengths):
    def draw(rng):
        arrays = (
            rng.standard_normal((*batch, heads, d)), rng.standard_normal((*batch, keys, groups, d)),
            rng.standard_normal((*batch, keys, groups, values)), np.array(lengths, np.int32),
        )  # fmt: skip
        return *arrays, rng.uniform(0, 1, heads)

    return draw


compose(
    "flash_decoding",
    family="attention",
    category=OpCategory.ATTENTION,
    public=flash_decoding,
    cases=(
        Case("grouped heads", _draw((3,), 7, 2, 8, 8, 4, [7, 0, 4]), dict(softcap=2.0, return_lse=True)),
        Case("batches, a window", _draw((2, 2), 9, 1, 5, 3, 3, [[9, 2], [1, 6]]), dict(window=3)),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "key", "value", "lengths", "slopes"),
    outputs=("y", "lse"),
    differentiable=("query", "key", "value", "slopes"),
    constant={"lengths": "they are integers"},
    made_of=("batch_paged_decode",),
)
