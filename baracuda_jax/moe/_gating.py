"""The experts that each token is sent to, and their weights."""

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.types import Implementation
from .._core.wide import wide
from ..segment._family import spaced
from ..sort import topk
from ._family import FAMILY

SCORES = ("softmax", "sigmoid")
GROUP_SCORES = ("top2", "max")


@api
def moe_gating_topk(
    logits: ArrayLike,
    k: int,
    *,
    score: Literal["softmax", "sigmoid"] = "softmax",
    softmax_after: bool = False,
    bias: ArrayLike | None = None,
    num_groups: int | None = None,
    topk_groups: int | None = None,
    group_score: Literal["top2", "max"] = "top2",
    renormalize: bool = False,
    scale: float = 1.0,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Weights and numbers of the k experts that each token is sent to.

    Formula:
        s = softmax(logits), or sigmoid(logits), or the logits with softmax_after; experts = those of the k largest s + bias,
        in descending order; weights = scale s[experts], divided by their sum with renormalize, or scale
        softmax(s[experts]) with softmax_after. The gradient is that of the weights, with the experts held constant.

    Args:
        logits: floats [..., E], a score for each expert.
        k: static integer, how many experts a token has; from 1 to E.
        score: "softmax", over all experts, or "sigmoid".
        softmax_after: whether the softmax is over the chosen logits, and not over all; with score="softmax".
        bias: floats [E], added to the scores for the choice alone, not in the weights. It has no gradient.
        num_groups: static integer, the number of equal groups of adjacent experts; None for no groups.
        topk_groups: static integer, how many groups, those with the best scores, a token chooses its experts from.
        group_score: the score of a group: "top2", the sum of its two largest biased scores, as in DeepSeek-V3, or "max", the
            largest, as in DeepSeek-V2.
        renormalize: whether weights are divided by their sum. Weights that are all 0 stay so.
        scale: static number that the weights are multiplied with.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic, of `topk`.

    Returns:
        (weights, experts): arrays [..., k], of float32 for float16 and bfloat16 and of logits' dtype else, and of int32. Of
        experts that tie the lowest comes first, and so of groups.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32, and the weights are not rounded: `moe_combine` multiplies in
    float32. A NaN among the logits makes all weights of its token NaN with score="softmax"; with "sigmoid" it counts as the
    largest score, and its weight is NaN.

    Source: transformers' MixtralTopKRouter, DeepseekV2MoEGate and DeepseekV3TopkRouter.
    """
    op = "moe_gating_topk"
    logits = checks.floats(op, "logits", logits)
    if logits.ndim < 1:
        raise ValueError(f"{op}: logits must have at least one dimension, the experts; got a scalar")
    num_experts = logits.shape[-1]
    k = _at_most(op, "k", k, num_experts, "the number of experts")
    checks.choice(op, "score", score, SCORES)
    is_after = checks.flag(op, "softmax_after", softmax_after)
    if is_after and score != "softmax":
        raise ValueError(f"{op}: softmax_after must be False with score={score!r}, got True")
    checks.choice(op, "group_score", group_score, GROUP_SCORES)
    groups = _groups(op, num_experts, k, num_groups, topk_groups)
    if not checks.is_number(scale):
        raise TypeError(f"{op}: scale must be a static number, got {scale!r}")
    renormalize = checks.flag(op, "renormalize", renormalize)
    is_plain = bias is None and groups is None
    # What a softmax over all divides by cancels, and the largest logits have the largest scores.
    is_after = is_after or (is_plain and renormalize and score == "softmax")
    renormalize = renormalize and not is_after
    finish = dict(is_after=is_after, renormalize=renormalize, scale=float(scale))
    if is_plain:
        scores = logits if is_after else _scores(logits, score=score)
        chosen, experts = topk(scores, k, implementation=implementation)
        return _weights(chosen, **finish), experts
    scores = _scores(logits, score="none" if is_after else score)
    ranks = _ranks(scores, _bias(op, bias, num_experts))
    if groups is not None:
        ranks = _of_best_groups(ranks, *groups, group_score, implementation)
    experts = topk(ranks, k, implementation=implementation)[1]
    return _weights(_chosen(scores, experts), **finish), experts


def _at_most(op, name, value, most, because):
    value = checks.integer(op, name, value, 1)
    if value > most:
        raise ValueError(f"{op}: {name} must be at most {most}, {because}, got {value}")
    return value


def _groups(op, num_experts, k, num_groups, topk_groups):
    """(their number, how many are taken), or None."""
    if (num_groups is None) != (topk_groups is None):
        missing = "topk_groups" if topk_groups is None else "num_groups"
        other = "num_groups" if topk_groups is None else "topk_groups"
        raise TypeError(f"{op}: {missing} must be given with {other}, got None")
    if num_groups is None:
        return None
    num_groups = checks.integer(op, "num_groups", num_groups, 1)
    if num_experts % num_groups:
        raise ValueError(f"{op}: num_groups must divide the number of experts, {num_experts}, got {num_groups}")
    topk_groups = _at_most(op, "topk_groups", topk_groups, num_groups, "the number of groups")
    _at_most(op, "k", k, topk_groups * (num_experts // num_groups), "the number of experts in topk_groups groups")
    return num_groups, topk_groups


def _bias(op, bias, num_experts):
    if bias is None:
        return None
    bias = checks.floats(op, "bias", bias)
    checks.shape(op, "bias", bias, (num_experts,), "one for each expert")
    return bias


@compiled("score")
def _scores(logits, *, score):
    x = wide(logits)
    return {"softmax": jax.nn.softmax, "sigmoid": jax.nn.sigmoid, "none": lambda x: x}[score](x)


@compiled()
def _ranks(scores, bias):
    """What the choice is by."""
    return jax.lax.stop_gradient(scores if bias is None else scores + bias.astype(scores.dtype))


def _of_best_groups(ranks, num_groups, topk_groups, group_score, implementation):
    """ranks, -inf outside of each token's best groups."""
    grouped = _grouped(ranks, num_groups=num_groups)
    best = min(2 if group_score == "top2" else 1, grouped.shape[-1])
    of_groups = _sum(topk(grouped, best, implementation=implementation)[0])
    groups = topk(of_groups, topk_groups, implementation=implementation)[1]
    return _masked(grouped, groups)


@compiled("num_groups")
def _grouped(ranks, *, num_groups):
    return explicit.reshape(ranks, *ranks.shape[:-1], num_groups, ranks.shape[-1] // num_groups)


@compiled()
def _sum(x):
    return x.sum(-1)


def _is_each(ids, count):
    """[..., count]: whether an id is each number below `count`."""
    return ids[..., None] == jax.lax.broadcasted_iota(ids.dtype, (*ids.shape, count), ids.ndim)


@compiled()
def _masked(grouped, groups):
    is_best = _is_each(groups, grouped.shape[-2]).any(-2)
    return jnp.where(is_best[..., None], grouped, -jnp.inf).reshape(*grouped.shape[:-2], math.prod(grouped.shape[-2:]))


@compiled()
def _chosen(scores, experts):
    """scores[experts], as a masked sum, whose gradient scatters nothing."""
    return jnp.where(_is_each(experts, scores.shape[-1]), scores[..., None, :], 0).sum(-1)


@compiled("is_after", "renormalize", "scale")
def _weights(chosen, *, is_after, renormalize, scale):
    w = jax.nn.softmax(wide(chosen)) if is_after else chosen
    if renormalize:
        total = w.sum(-1, keepdims=True)
        w = w / jnp.where(total == 0, 1, total)
    return w if scale == 1 else w * scale


def _case(name, shape, **kwargs):
    return Case(name, lambda rng: (spaced(rng, *shape),), kwargs)


compose(
    "moe_gating_topk",
    family=FAMILY["family"],
    category=FAMILY["category"],
    public=moe_gating_topk,
    cases=(
        _case("tokens", (7, 6), k=2, renormalize=True),
        _case("softmax after", (3, 2, 5), k=3, softmax_after=True),
        _case("groups of the best two", (5, 12), k=3, score="sigmoid", num_groups=4, topk_groups=2, scale=2.5),
        _case("groups of the best", (4, 8), k=2, num_groups=4, topk_groups=2, group_score="max"),
    ),
    dtypes=FAMILY["dtypes"],
    operands=("logits",),
    made_of=("topk",),
    differentiable=("logits",),
)
