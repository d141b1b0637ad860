"""Attention in parts: results over different keys, and the one over all of them."""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._attend import finite
from ._call import Operands, call, heads, operands, static


@facade_api("xla")
def cascade_merge_states(
    x: ArrayLike, lse: ArrayLike, axis: int = 0, *, implementation: Implementation = None
) -> tuple[Array, Array]:
    """Merge results of attention over different keys into the one over all of them.

    Formula:
        merged lse = log(sum(exp(lse))), y = sum(exp(lse - merged lse) x), over the axis. Where each lse is -inf, y = 0 and
        the merged lse is -inf, with gradient 0.

    Args:
        x: floats, results of attention, [..., d], stacked along the axis.
        lse: floats of x's shape without the last dimension: the natural logarithms of the sums of exponentials, as of
            `sdpa(return_lse=True)`.
        axis: static integer, an axis of lse, which is also one of x when counted from the first.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        y, of x's dtype and shape without the axis; the merged lse, float32, or float64 for float64.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: flashinfer.merge_states, whose logarithms are of base 2.
    """
    op = "cascade_merge_states"
    x, lse = checks.floats(op, "x", x), checks.floats(op, "lse", lse)
    if x.ndim < 2:
        raise ValueError(f"{op}: x must have at least two dimensions, got shape {x.shape}")
    checks.shape(op, "lse", lse, x.shape[:-1], "that of x without the last dimension")
    return _merge(x, lse, axis=checks.axis(op, "lse", lse, axis))


@compiled("axis")
def _merge(x, lse, *, axis):
    y, lse = merged(wide(x), wide(lse), axis)
    return y.astype(x.dtype), lse


def merged(x, lse, axis):
    """(y, lse) of wide states."""
    top = jax.lax.stop_gradient(finite(jnp.max(lse, axis, keepdims=True, initial=-jnp.inf)))
    p = jnp.exp(lse - top)
    total = p.sum(axis, keepdims=True)
    some = total > 0
    total = jnp.where(some, total, 1)
    y = (x * (p / total)[..., None]).sum(axis)
    return y, jnp.where(some, top + jnp.log(total), -jnp.inf).squeeze(axis)


_BLOCK = 512
_SCORES = 2**23  # of a block, 32 MiB in float32: few queries are not worth a loop over many blocks


@facade_api("cudnn")
def cascade_attention(
    query: ArrayLike,
    prefix_key: ArrayLike,
    prefix_value: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    softcap: float | None = None,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    return_lse: bool = False,
    block_size: int | None = None,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Attention over a prefix that all sequences share, followed by keys of their own. The prefix is read once for all.

    Formula:
        `flash_sdpa` over the keys of the prefix and, aligned at the bottom right, over those of each sequence, merged by
        `cascade_merge_states`: as over the keys of the prefix followed by those of the sequence. Causal attention sees the
        whole prefix.

    Args:
        query: floats [..., queries, heads, d].
        prefix_key: array of query's dtype, [keys of the prefix, heads of keys, d], without batches.
        prefix_value: array of query's dtype, [keys of the prefix, heads of keys, d of values].
        key: array of query's dtype, [..., keys, heads of keys, d], those after the prefix.
        value: array of query's dtype, [..., keys, heads of keys, d of values].
        scale: static number; None for 1 / sqrt(d).
        is_causal: static bool, whether the last query is at the last key, and sees none after its own.
        softcap: static number above 0.
        query_seq_lengths: integers [...], the number of queries.
        key_value_seq_lengths: integers [...], the number of keys after the prefix.
        return_lse: static bool, whether lse is returned too.
        block_size: static integer, the number of keys in a block of plain JAX; None for 512, or for more of the prefix
            where queries are so few that the scores of a block are at most 2^23.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        As `sdpa`.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32; the two results are rounded before they are merged.

    Source: flashinfer.MultiLevelCascadeAttentionWrapper.
    """
    op = "cascade_attention"
    x = operands(op, query, key, value, None, None, query_seq_lengths, key_value_seq_lengths)
    names = "query", "prefix_key", "prefix_value"
    _, prefix_key, prefix_value = heads(op, x.query, prefix_key, prefix_value, names, batch=())
    if prefix_key.shape[-2] != x.key.shape[-2] or prefix_value.shape[-2:] != x.value.shape[-2:]:
        raise ValueError(
            f"{op}: prefix_key and prefix_value must have the heads and d of key and value, {x.key.shape[-2:]} and "
            f"{x.value.shape[-2:]}, got {prefix_key.shape[-2:]} and {prefix_value.shape[-2:]}"
        )
    own = _BLOCK if block_size is None else block_size
    spec, _ = static(op, x.query, scale=scale, is_causal=is_causal, softcap=softcap, block_size=own)
    block = max(_BLOCK, _SCORES // max(math.prod(x.query.shape[:-1]), 1)) if block_size is None else spec.block
    y, lse = _cascade(x, prefix_key, prefix_value, spec=spec, block=block)
    return (y, lse) if checks.flag(op, "return_lse", return_lse) else y


@compiled("spec", "block")
def _cascade(x, prefix_key, prefix_value, *, spec, block):
    *batch, t, n, d = x.query.shape
    together = explicit.reshape(x.query, math.prod(batch) * t, n, d)
    prefix = Operands(together, prefix_key, prefix_value)
    y, lse = call(prefix, spec=spec._replace(is_causal=False, block=block), alignment="top_left", save=True)
    y, lse = explicit.reshape(y, *batch, t, n, y.shape[-1]), explicit.reshape(lse, *batch, t, n)
    if x.rows is not None:  # queries that there are not see nothing of the prefix either
        at = jax.lax.broadcasted_iota(jnp.int32, lse.shape, lse.ndim - 2)
        lse = jnp.where(at < jnp.clip(x.rows, 0, t).astype(jnp.int32)[..., None, None], lse, -jnp.inf)
    own_y, own_lse = call(x, spec=spec, alignment="bottom_right", save=True)
    y, lse = merged(wide(jnp.stack([y, own_y])), jnp.stack([lse, own_lse]), 0)
    return y.astype(x.query.dtype), lse


def _states(shape, some):
    def draw(rng):
        lse = rng.standard_normal(shape[:-1])
        lse[some] = -jnp.inf
        return rng.standard_normal(shape), lse

    return draw


facade(
    "cascade_merge_states",
    family="attention",
    category=OpCategory.ATTENTION,
    public=cascade_merge_states,
    cases=(
        Case("two, some empty", _states((2, 5, 3, 4), (0, 1))),
        Case("three", _states((4, 3, 5), (slice(None), slice(None, 1))), dict(axis=1)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "lse"),
    differentiable=("x", "lse"),
    outputs=("y", "lse"),
)


def _draw(batch, t, n, groups, prefix, keys):
    return lambda rng: tuple(
        rng.standard_normal(shape)
        for shape in (
            (*batch, t, n, 4), (prefix, groups, 4), (prefix, groups, 3),
            (*batch, keys, groups, 4), (*batch, keys, groups, 3),
        )
    )  # fmt: skip


facade(
    "cascade_attention",
    family="attention",
    category=OpCategory.ATTENTION,
    public=cascade_attention,
    cases=(
        Case("causal, and lse", _draw((2,), 3, 4, 2, 5, 4), dict(is_causal=True, return_lse=True, block_size=2)),
        Case("one sequence", _draw((), 2, 2, 2, 3, 4), dict(softcap=2.0)),
    ),
    dtypes=checks.FLOATS,
    operands=("query", "prefix_key", "prefix_value", "key", "value"),
    differentiable=("query", "prefix_key", "prefix_value", "key", "value"),
    outputs=("y", "lse"),
    own_rules=True,
)
