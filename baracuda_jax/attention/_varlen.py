"""Attention of sequences that follow each other in one array, without padding between them."""

from typing import Literal

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._call import Operands, call, heads, static
from ._decode import slopes_of
from ._ragged import bounds, most_of, packed, padded, starts_of


@facade_api("cudnn")
def flash_sdpa_varlen(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    cu_seqlens_q: ArrayLike,
    cu_seqlens_k: ArrayLike,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    alignment: Literal["top_left", "bottom_right"] = "bottom_right",
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    return_lse: bool = False,
    block_size: int = 512,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Scaled dot-product attention of sequences that follow each other in one array.

    Formula:
        `flash_sdpa` of each sequence b by itself: its queries are the rows cu_seqlens_q[b] to cu_seqlens_q[b + 1] - 1 of
        query, its keys and values the rows of cu_seqlens_k alike. Slopes add slopes (j - i - o) to the scores, with query i
        at the key i + o, as `alignment` says. Rows that are no sequence's have y = 0, lse = -inf and gradient 0.

    Args:
        query: floats [queries, heads, d], of all sequences.
        key: array of query's dtype, [keys, heads of keys, d]. The heads of queries are a multiple of those of keys.
        value: array of query's dtype, [keys, heads of keys, d of values].
        cu_seqlens_q: integers [n + 1], ascending: where each of n sequences begins in query, and the end of the last.
        cu_seqlens_k: integers [n + 1], the same of key and value.
        max_seqlen_q: static integer, at least the length of the longest sequence's queries; later ones are left out. None
            for the number of all queries, which takes memory for n times as many.
        max_seqlen_k: static integer, the same of the keys.
        slopes: floats [heads], those of `alibi`; None for none.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool.
        alignment: static "bottom_right", where a sequence's last query is at its last key, or "top_left", where the first
            is at the first.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        return_lse: static bool, whether lse is returned too.
        block_size: static integer, the number of keys in a block of plain JAX.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        y, of query's dtype, [queries, heads, d of values]; with `return_lse` a tuple of it and lse, [queries, heads],
        float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `flash_sdpa`. Sequences are computed as a batch that is padded to the longest; no scores are stored. On
    CUDA, cuDNN computes it where the two arrays of lengths are one, or where it is not causal.

    Source: flash_attn.flash_attn_varlen_func; flashinfer.BatchPrefillWithRaggedKVCacheWrapper, whose lse has base 2.
    """
    op = "flash_sdpa_varlen"
    query, key, value = heads(op, query, key, value, batch=())
    if query.ndim != 3:
        raise ValueError(f"{op}: query must be [queries, heads, d], got shape {query.shape}")
    is_same = cu_seqlens_q is cu_seqlens_k
    starts = starts_of(op, "cu_seqlens_q", cu_seqlens_q)
    starts_k = starts_of(op, "cu_seqlens_k", cu_seqlens_k, starts.shape[0] - 1)
    most = (
        most_of(op, "max_seqlen_q", max_seqlen_q, query.shape[0]), most_of(op, "max_seqlen_k", max_seqlen_k, key.shape[0])
    )  # fmt: skip
    spec, alignment = static(
        op, query, scale=scale, is_causal=is_causal, alignment=_word(op, alignment), window=window, softcap=softcap,
        block_size=block_size,
    )  # fmt: skip
    if is_same and query.shape[0] == key.shape[0] and most[0] == most[1]:
        alignment = "top_left"  # which is the same of sequences of the same lengths
    slopes = None if slopes is None else slopes_of(op, slopes, query)
    return_lse = checks.flag(op, "return_lse", return_lse)
    y, lse = _varlen(
        query, key, value, starts, starts_k, slopes, most=most, spec=spec, alignment=alignment, save=return_lse
    )
    return (y, lse) if return_lse else y


batch_ragged_prefill = flash_sdpa_varlen  # whose arguments are named indptr elsewhere


def _word(op, alignment):
    if not isinstance(alignment, str):
        raise TypeError(f'{op}: alignment must be "top_left" or "bottom_right", got {alignment!r}')
    return alignment


@compiled("most", "spec", "alignment", "save")
def _varlen(query, key, value, starts, starts_k, slopes, *, most, spec, alignment, save):
    (begin, rows), (begin_k, columns) = bounds(starts, query.shape[0]), bounds(starts_k, key.shape[0])
    batch = (padded(query, begin, rows, most[0]), *(padded(x, begin_k, columns, most[1]) for x in (key, value)))
    x = Operands(*batch, rows=rows, columns=columns, slopes=slopes)
    y, lse = call(x, spec=spec, alignment=alignment, save=save)
    back = lambda y, fill: packed(y, begin, rows, query.shape[0], fill)
    return back(y, 0), back(lse, -np.inf) if save else None


def _draw(shape, keys, groups, values, starts, starts_k):
    def draw(rng):
        integers = (np.array(x, np.int32) for x in (starts, starts_k))
        return (
            rng.standard_normal(shape), rng.standard_normal((keys, groups, shape[-1])),
            rng.standard_normal((keys, groups, values)), *integers,
        )  # fmt: skip

    return draw


facade(
    "flash_sdpa_varlen",
    family="attention",
    category=OpCategory.ATTENTION,
    public=flash_sdpa_varlen,
    cases=(
        Case(
            "grouped heads, causal",
            _draw((9, 4, 3), 12, 2, 2, [0, 4, 4, 8], [0, 5, 7, 12]),
            dict(max_seqlen_q=4, max_seqlen_k=5, is_causal=True, softcap=3.0, block_size=2),
        ),
        Case(
            "a window, and lse",
            _draw((6, 2, 4), 5, 1, 4, [1, 3, 6], [0, 3, 4]),
            dict(window=(2, 1), alignment="top_left", return_lse=True),
        ),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "key", "value", "cu_seqlens_q", "cu_seqlens_k"),
    differentiable=("query", "key", "value"),
    constant={"cu_seqlens_q": "they are integers", "cu_seqlens_k": "they are integers"},
    outputs=("y", "lse"),
    own_rules=True,
)
