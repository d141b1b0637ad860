"""Attention of sequences that follow each other in one array, without padding between them."""

from typing import Literal

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
from .._core.wide import wide_dtype
from . import _varlen_bodies
from ._call import heads, static
from ._decode import slopes_of
from ._ragged import clipped, most_of, starts_of


@api
def flash_sdpa_varlen(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    cu_seqlens_q: ArrayLike,
    cu_seqlens_k: ArrayLike,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    slopes: ArrayLike | None = None,
    key_positions: ArrayLike | None = None,
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
        at the position i + o among the keys, as `alignment` says, and key j at j or where key_positions has it. Rows that
        are no sequence's have y = 0, lse = -inf and gradient 0.

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
        key_positions: integers [keys], where each key is for causal attention, windows and slopes, in any order, -2^31 for
            keys that no query sees; None for 0, 1, 2 and so on in each sequence.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool.
        alignment: static "bottom_right", where a sequence's last query is at its last key, or "top_left", where the first
            is at the first.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        return_lse: static bool, whether lse is returned too.
        block_size: static integer, the number of keys in a block of plain JAX.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        y, of query's dtype, [queries, heads, d of values]; with `return_lse` a tuple of it and lse, [queries, heads],
        float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `flash_sdpa`; no scores are stored, except by plain JAX those that take less memory than the keys. The
    kernel reads sequences where they are, and a sequence has the same bits alone and next to others; on a GPU, weights of
    float16 and bfloat16 are rounded to these for their products, whose sums are of float32. The kernel multiplies float32
    as such, plain JAX as `jax_default_matmul_precision` says: by default as TF32 on a GPU, where that is faster and the
    automatic choice. Plain JAX computes a batch that is padded to the longest, on CUDA by cuDNN where the two arrays of
    lengths are one, or where it is not causal.

    Source: flash_attn.flash_attn_varlen_func; flashinfer.BatchPrefillWithRaggedKVCacheWrapper, whose lse has base 2.
    """
    arrays, params = _arguments(
        "flash_sdpa_varlen", query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, slopes,
        key_positions, scale=scale, is_causal=is_causal, alignment=alignment, window=window, softcap=softcap,
        block_size=block_size,
    )  # fmt: skip
    save = checks.flag("flash_sdpa_varlen", "return_lse", return_lse)
    found = _VARLEN(*arrays, **params, save=save, implementation=implementation)
    return tuple(found) if save else found


@api
def flash_sdpa_varlen_backward(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    cu_seqlens_q: ArrayLike,
    cu_seqlens_k: ArrayLike,
    y: ArrayLike,
    lse: ArrayLike,
    dy: ArrayLike,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    slopes: ArrayLike | None = None,
    key_positions: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    alignment: Literal["top_left", "bottom_right"] = "bottom_right",
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    block_size: int = 512,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `flash_sdpa_varlen`.

    Args:
        query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, slopes, key_positions: as in
            `flash_sdpa_varlen`.
        scale, is_causal, alignment, window, softcap, block_size: as in `flash_sdpa_varlen`.
        y, lse: as `flash_sdpa_varlen` returns them.
        dy: the cotangent of y, of its shape and dtype.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of query, key, value and slopes, that of slopes in float32 for float16 and bfloat16.
    """
    op = "flash_sdpa_varlen_backward"
    arrays, params = _arguments(
        op, query, key, value, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, slopes,
        key_positions, scale=scale, is_causal=is_causal, alignment=alignment, window=window, softcap=softcap,
        block_size=block_size,
    )  # fmt: skip
    shape = (*arrays[0].shape[:-1], arrays[2].shape[-1])
    y, lse, dy = (checks.floats(op, name, x) for name, x in (("y", y), ("lse", lse), ("dy", dy)))
    for name, x in (("y", y), ("dy", dy)):
        checks.same_dtype(op, name, x, "query", arrays[0])
        checks.shape(op, name, x, shape, "that of query with the columns of value")
    checks.shape(op, "lse", lse, shape[:-1], "that of query without the last dimension")
    lse = lse.astype(wide_dtype(arrays[0].dtype))
    return tuple(_VARLEN.vjp(*arrays, y, lse, dy, None, **params, implementation=implementation))


def _arguments(op, query, key, value, starts, starts_k, most_q, most_k, slopes, positions, *, alignment, **options):
    """The primitive's operands and parameters."""
    query, key, value = heads(op, query, key, value, batch=())
    if query.ndim != 3:
        raise ValueError(f"{op}: query must be [queries, heads, d], got shape {query.shape}")
    is_same = starts is starts_k
    starts = starts_of(op, "cu_seqlens_q", starts)
    starts_k = starts_of(op, "cu_seqlens_k", starts_k, starts.shape[0] - 1)
    most = most_of(op, "max_seqlen_q", most_q, query.shape[0]), most_of(op, "max_seqlen_k", most_k, key.shape[0])
    spec, alignment = static(op, query, alignment=_word(op, alignment), **options)
    positions = _positions(op, positions, key)
    if is_same and query.shape[0] == key.shape[0] and most[0] == most[1]:
        alignment = "top_left"  # which is the same of sequences of the same lengths
    biased = slopes is not None
    slopes = slopes_of(op, slopes, query)
    arrays = (
        query,
        key,
        value,
        _rows(starts, rows=query.shape[0]),
        _rows(starts_k, rows=key.shape[0]),
        slopes,
        positions,
    )
    return arrays, dict(most=most, spec=spec, alignment=alignment, biased=biased)


def _positions(op, positions, key):
    """int32 [keys], or [0] for the order of keys."""
    if positions is None:
        return full((0,), 0, np.dtype("int32"))
    positions = checks.array(op, "key_positions", positions)
    checks.dtype(op, "key_positions", positions, checks.INTEGERS)
    checks.shape(op, "key_positions", positions, key.shape[:1], "one for each key")
    return _int32(positions)


@compiled()
def _int32(x):
    info, of_x = jnp.iinfo(jnp.int32), jnp.iinfo(x.dtype)
    return jnp.clip(x, max(info.min, of_x.min), min(info.max, of_x.max)).astype(jnp.int32)


_rows = compiled("rows")(lambda starts, *, rows: clipped(starts, rows))


def listed(query, key, value, starts, starts_k, slopes, positions, *, most, spec, alignment, save, implementation):
    """(y, lse or None) of sequences whose keys are at positions, all int32 and of any batch dimensions; slopes or None."""
    biased = slopes is not None
    slopes = slopes if biased else full(query.shape[-2:-1], 0, wide_dtype(query.dtype))
    of_batch = lambda x: jnp.broadcast_to(x, (*query.shape[:-3], x.shape[-1]))
    arrays = query, key, value, *map(of_batch, (starts, starts_k, slopes, positions))
    params = dict(most=most, spec=spec, alignment=alignment, biased=biased)
    found = _VARLEN(*arrays, **params, save=save, implementation=implementation)
    return tuple(found) if save else (found, None)


batch_ragged_prefill = flash_sdpa_varlen  # whose arguments are named indptr elsewhere


def _word(op, alignment):
    if not isinstance(alignment, str):
        raise TypeError(f'{op}: alignment must be "top_left" or "bottom_right", got {alignment!r}')
    return alignment


_DIMS = {
    "query": ("rows", "heads", "d"), "key": ("keys", "heads", "d"), "value": ("keys", "heads", "values"),
    "cu_seqlens_q": ("sequences",), "cu_seqlens_k": ("sequences",), "slopes": ("heads",), "key_positions": ("keys",),
    "y": ("rows", "heads", "values"), "lse": ("rows", "heads"),
}  # fmt: skip


def _labels(names, types, params):
    """Heads are cut together; a single head of keys is for all of them."""
    single = types[names.index("key")].shape[-2] == 1

    def of(name, x):
        if name == "key_positions" and not x.shape[-1]:
            return (*(f"batch{i}" for i in range(x.ndim - 1)), "none")
        dims = tuple("head" if single and name in ("key", "value") and dim == "heads" else dim for dim in _DIMS[name])
        return (*(f"batch{i}" for i in range(x.ndim - len(dims))), *dims)

    return [of(name, x) for name, x in zip(names, types, strict=True)]


def _draw(shape, keys, groups, values, starts, starts_k, slopes=False, positions=None):
    def draw(rng):
        integers = (np.array(x, np.int32) for x in (starts, starts_k))
        arrays = (
            rng.standard_normal(shape), rng.standard_normal((keys, groups, shape[-1])),
            rng.standard_normal((keys, groups, values)), *integers,
        )  # fmt: skip
        more = (None, None, rng.uniform(0, 1, shape[-2])) if slopes else ()
        return (*arrays, *more) if positions is None else (*arrays, *more, np.array(positions, np.int32))

    return draw


_VARLEN = declare(
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
        Case(
            "listed keys",
            _draw(
                (7, 2, 4),
                9,
                1,
                3,
                [0, 3, 7],
                [0, 4, 9],
                positions=[2, 0, -(2**31), 1, -1, 7, 3, 3, -(2**31)],
                slopes=True,
            ),
            dict(is_causal=True, return_lse=True, block_size=2),
        ),
        Case(
            "slopes",
            _draw((70, 2, 8), 70, 2, 8, [0, 66, 70], [0, 65, 70], slopes=True),
            dict(is_causal=True, block_size=16),
        ),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "key", "value", "cu_seqlens_q", "cu_seqlens_k", "slopes", "key_positions"),
    results=("y", "lse"),
    outputs=("y", "lse"),
    differentiable=("query", "key", "value", "slopes"),
    constant=dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k", "key_positions"), "they are integers"),
    residuals=("query", "key", "value", "cu_seqlens_q", "cu_seqlens_k", "slopes", "key_positions", "y", "lse"),
    forward=Body(_varlen_bodies.reference, _varlen_bodies.native),
    tangent=Body(_varlen_bodies.tangent),
    backward=Body(_varlen_bodies.backward, _varlen_bodies.backward_native),
    batched=as_they_are,
    regime=_varlen_bodies.regime,
    cut=Partition(_labels, whole=frozenset({"rows", "keys", "none", "sequences", "head", "d", "values"}), plain=True),
    kernels={"forward": ("varlen_attention",), "backward": ("varlen_attention_backward",)},
    library="cudnn",
)
