"""Scaled dot-product attention."""

from typing import Literal

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._call import aligned, call, operands, static


@facade_api("cudnn")
def sdpa(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    alignment: Literal["top_left", "bottom_right"] | ArrayLike = "top_left",
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    return_lse: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Scaled dot-product attention.

    Formula:
        s = cap(scale query . key) + bias, and -inf where a query does not see the key; y = softmax(s) value over the keys,
        lse = log(sum(exp(s))), cap(s) = softcap tanh(s / softcap). A query sees the keys where mask is True and that are
        within the lengths. With o = 0 for "top_left" and o = the number of keys less that of queries for "bottom_right",
        query i sees the keys j <= i + o where causal, and i + o - left <= j <= i + o + right in a window. A query that sees
        no key has y = 0, lse = -inf and gradient 0.

    Args:
        query: floats [..., queries, heads, d].
        key: array of query's dtype, [..., keys, heads of keys, d]. The heads of queries are a multiple of those of keys:
            each of these is used by as many successive ones (grouped-query attention).
        value: array of query's dtype, [..., keys, heads of keys, d of values].
        bias: floats that broadcast to [..., heads, queries, keys], added to the scores.
        mask: bool that broadcasts to [..., heads, queries, keys], True where a query sees the key.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool.
        alignment: static "top_left", where the first query is at the first key, or "bottom_right", where the last is at the
            last one: those of the sequence lengths, if they are given. Or integers [...], or one: the key, o, at which the
            first query is, such as the number of tokens before.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        query_seq_lengths: integers [...], the number of queries; those after see no key.
        key_value_seq_lengths: integers [...], the number of keys.
        return_lse: static bool, whether lse is returned too.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        y, of query's dtype, [..., queries, heads, d of values]; with `return_lse` a tuple of it and lse,
        [..., queries, heads], float32, or float64 for float64. Both have derivatives.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. On CUDA, cuDNN computes 16-bit floats without
    bias, mask, softcap and windows on the right; it rounds the weights to 16 bits, and its gradient is not
    deterministic unless XLA is told so, by --xla_gpu_deterministic_ops. Products of float32 are those of
    jax.default_matmul_precision. All scores are stored; `flash_sdpa` stores none.

    Source: jax.nn.dot_product_attention, torch.nn.functional.scaled_dot_product_attention.
    """
    x = operands("sdpa", query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths)
    spec, alignment = static(
        "sdpa", x.query, scale=scale, is_causal=is_causal, alignment=alignment, window=window, softcap=softcap
    )
    return _results("sdpa", x, spec, alignment, return_lse)


@facade_api("cudnn")
def flash_sdpa(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    alignment: Literal["top_left", "bottom_right"] | ArrayLike = "top_left",
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    return_lse: bool = False,
    block_size: int = 512,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Scaled dot-product attention that stores no scores, neither for the result nor for the gradient.

    Formula:
        That of `sdpa`, block by block of the keys: with the largest score m so far, total = sum(exp(s - m)) and
        y total = sum(exp(s - m) value) are scaled by exp(m - new m) at each block. For the gradient, the blocks of
        exp(s - lse) are computed again.

    Args:
        query: floats [..., queries, heads, d].
        key: array of query's dtype, [..., keys, heads of keys, d], as for `sdpa`.
        value: array of query's dtype, [..., keys, heads of keys, d of values].
        bias: floats that broadcast to [..., heads, queries, keys].
        mask: bool that broadcasts to [..., heads, queries, keys], True where a query sees the key.
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool.
        alignment: "top_left", "bottom_right" or integers, as for `sdpa`.
        window: static (left, right), how far a query sees on each side, None for no limit; one integer for both.
        softcap: static number above 0.
        query_seq_lengths: integers [...], the number of queries.
        key_value_seq_lengths: integers [...], the number of keys.
        return_lse: static bool, whether lse is returned too.
        block_size: static integer, the number of keys in a block; cuDNN has blocks of its own.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        As `sdpa`.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `sdpa`.

    Source: jax.nn.dot_product_attention(implementation="cudnn"), torch.nn.functional.scaled_dot_product_attention.
    """
    op = "flash_sdpa"
    x = operands(op, query, key, value, bias, mask, query_seq_lengths, key_value_seq_lengths)
    spec, alignment = static(
        op, x.query, scale=scale, is_causal=is_causal, alignment=alignment, window=window, softcap=softcap,
        block_size=block_size,
    )  # fmt: skip
    return _results(op, x, spec, alignment, return_lse)


flash_sdpa_sm89 = flash_sdpa  # of one architecture elsewhere; cuDNN knows it here


def _results(op, x, spec, alignment, return_lse):
    return_lse = checks.flag(op, "return_lse", return_lse)
    x, alignment = aligned(op, x, alignment)
    y, lse = call(x, spec=spec, alignment=alignment, save=return_lse)
    return (y, lse) if return_lse else y


def _draw(shape, keys, groups, values, mask):
    """Queries, keys, values, a bias, and a mask of these numbers of dimensions; one query sees nothing."""
    *batch, t, n, d = shape

    def draw(rng):
        seen = rng.random((*batch, n, t, keys)[-mask:]) > 0.3
        seen[..., t - 1, :] = False
        return (
            rng.standard_normal(shape), rng.standard_normal((*batch, keys, groups, d)),
            rng.standard_normal((*batch, keys, groups, values)), rng.standard_normal((n, 1, keys)), seen,
        )  # fmt: skip

    return draw


_CASES = (
    ("grouped heads", ((2, 4, 4, 3), 5, 2, 2, 2), dict(is_causal=True, softcap=3.0)),
    ("a window, and lse", ((5, 2, 4), 7, 1, 4, 3), dict(window=(2, 1), alignment="bottom_right", return_lse=True)),
)

for _name, _public, _more in (("sdpa", sdpa, {}), ("flash_sdpa", flash_sdpa, {"block_size": 3})):
    facade(
        _name,
        family="attention",
        category=OpCategory.ATTENTION,
        public=_public,
        cases=tuple(Case(name, _draw(*shapes), kwargs | _more) for name, shapes, kwargs in _CASES),
        dtypes=checks.FLOATS,
        operands=("query", "key", "value", "bias", "mask"),
        differentiable=("query", "key", "value", "bias"),
        constant={"mask": "a mask is bool"},
        outputs=("y", "lse"),
        own_rules=bool(_more),
    )
