"""Losses with a term for each element."""

import functools
import math
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.compiled import compiled
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import (
    LABEL,
    WITH_BATCHMEAN,
    Reduction,
    alike,
    broadcasting,
    cases,
    hinge,
    inside,
    loss,
    normal,
    number,
    positive,
    reduced,
    reductions,
    signs,
)


@compiled("value", "reduction", "by_weight", "parameters")
def _reduced(value, x, others, weight, *, reduction, by_weight, parameters):
    terms = value(wide(x), *map(wide, others), **dict(parameters))
    if weight is None:
        return reduced(terms, reduction, x.dtype)
    weight = wide(weight)
    count = jnp.broadcast_to(weight, terms.shape).sum() if by_weight else None
    return reduced(terms * weight, reduction, x.dtype, count)


def _computed(op, value, x, others, reduction, weight=None, *, by_weight=False, allowed=None, **parameters):
    """`value(x, *others, **parameters)` are the terms. `by_weight`: a mean divides by the sum of the weights."""
    reduction = reductions(op, reduction, *([allowed] if allowed else []))
    parameters = tuple(parameters.items())
    weight = None if weight is None else broadcasting(op, "weight", weight, x)
    return _reduced(value, x, others, weight, reduction=reduction, by_weight=by_weight, parameters=parameters)


def _of_difference(op, value, x, target, *rest, **options):
    x = checks.floats(op, "x", x)
    return _computed(op, value, x, (alike(op, "target", target, x),), *rest, **options)


_WEIGHTED = cases((normal, normal, positive))


@loss(
    "l = (x - target)^2; dx = 2 (x - target) dl; dtarget = -dx. A weighted mean is sum(weight l) / sum(weight).",
    "torch.nn.functional.mse_loss; optax.losses.squared_error",
    _WEIGHTED,
)
def mse_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Squared differences."""
    return _of_difference("mse_loss", _square, x, target, reduction, weight, by_weight=True)


def _square(x, target):
    return jnp.square(x - target)


@loss(
    "l = |x - target|; dx = sign(x - target) dl, 0 where they are equal; dtarget = -dx.\n"
    "A weighted mean is sum(weight l) / sum(weight).",
    "torch.nn.functional.l1_loss",
    _WEIGHTED,
)
def l1_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Absolute differences."""
    return _of_difference("l1_loss", _absolute, x, target, reduction, weight, by_weight=True)


def _absolute(x, target):
    return jnp.abs(x - target)


@loss(
    "l = d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), for d = x - target; dx = clip(d, -delta, delta) dl;\n"
    "dtarget = -dx.",
    "torch.nn.functional.huber_loss; optax.losses.huber_loss",
    cases((normal, normal, positive), {}, {"delta": 0.5}),
    args={"delta": "static number greater than 0, the largest difference that is squared."},
)
def huber_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, delta: float = 1.0,
    reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Squares of small differences, and absolute values of large ones."""
    op = "huber_loss"
    return _of_difference(op, _huber, x, target, reduction, weight, delta=number(op, "delta", delta, above=0))


def _huber(x, target, *, delta):
    # Without squares of large differences, which overflow; the derivative of a select, unlike that of clip, has no 0 inf.
    d = x - target
    near = jnp.where(jnp.abs(d) < delta, d, delta * jnp.sign(d))
    return near * (d - near / 2)


@loss(
    "l = d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, for d = x - target; dx = clip(d / beta, -1, 1) dl;\n"
    "dtarget = -dx.",
    "torch.nn.functional.smooth_l1_loss",
    cases((normal, normal), {"beta": 0.7}, {"beta": 0}),
    args={
        "beta": "static number of at least 0, the largest difference that is squared; 0 for absolute values alone.",
    },
)
def smooth_l1_loss(
    x: ArrayLike, target: ArrayLike, *, beta: float = 1.0, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Absolute differences that are rounded off at 0: `huber_loss` / beta."""
    op = "smooth_l1_loss"
    beta = number(op, "beta", beta, 0)
    return _of_difference(op, _smooth if beta else _absolute, x, target, reduction, **({"beta": beta} if beta else {}))


def _smooth(x, target, *, beta):
    return _huber(x, target, delta=beta) / beta


@loss(
    "l = -target log(x) - (1 - target) log(1 - x), where logarithms are -100 at least;\n"
    "dx = ((1 - target) / max(1 - x, 1e-12) - target / max(x, 1e-12)) dl; dtarget = (log(1 - x) - log(x)) dl.",
    "torch.nn.functional.binary_cross_entropy",
    cases((inside, inside, positive)),
    args={"x": "floats in [0, 1], of any shape: probabilities."},
    precision="NaN outside [0, 1].",
    own_rules=True,
)
def bce_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Binary cross entropy of probabilities."""
    return _of_difference("bce_loss", _binary, x, target, reduction, weight)


@jax.custom_jvp
def _log(x):
    return jnp.maximum(jnp.log(x), -100)


@jax.custom_jvp
def _log_complement(x):
    return jnp.maximum(jnp.log1p(-x), -100)


# Finite at 0 and 1, where the logarithm is clamped.
_log.defjvps(lambda t, y, x: t / jnp.maximum(x, 1e-12))
_log_complement.defjvps(lambda t, y, x: -t / jnp.maximum(1 - x, 1e-12))


def _binary(x, target):
    return (target - 1) * _log_complement(x) - target * _log(x)


@loss(
    "l = pos_weight target softplus(-x) + (1 - target) softplus(x), with softplus(x) = log(1 + exp(x));\n"
    "dx = ((1 - target) sigmoid(x) - pos_weight target sigmoid(-x)) dl;\n"
    "dtarget = (pos_weight softplus(-x) - softplus(x)) dl.",
    "torch.nn.functional.binary_cross_entropy_with_logits; optax.losses.sigmoid_binary_cross_entropy",
    cases((normal, inside, positive, positive)),
    args={
        "x": "floats of any shape: logits.",
        "pos_weight": "floats that broadcast to x's shape, factors of the positive examples; None for 1.",
    },
)
def bce_with_logits_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, pos_weight: ArrayLike | None = None, *,
    reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Binary cross entropy of logits."""
    op = "bce_with_logits_loss"
    x = checks.floats(op, "x", x)
    others = [alike(op, "target", target, x)]
    others += [] if pos_weight is None else [broadcasting(op, "pos_weight", pos_weight, x)]
    return _computed(op, binary_of_logits, x, others, reduction, weight)


def binary_of_logits(x, target, pos_weight=None):
    # As (1 - target) x + softplus(-x): one softplus for both parts. logaddexp is smooth at 0 in all orders.
    positives = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    return (1 - target) * x + positives * jnp.logaddexp(-x, jnp.zeros_like(x))


@loss(
    "l = target (log(target) - x), or exp(target) (target - x) with log_target; 0 where the target's probability is 0;\n"
    "dx = -target dl, or -exp(target) dl; dtarget = (log(target) + 1 - x) dl, or exp(target) (target + 1 - x) dl, and 0\n"
    "where the target's probability is 0.",
    "torch.nn.functional.kl_div; optax.losses.kl_divergence, kl_divergence_with_log_targets",
    (
        *cases((normal, inside), {}, {"reduction": "batchmean"}),
        *cases((normal, normal), {"log_target": True})[:1],
    ),
    args={
        "x": "floats of any shape: logarithms of probabilities.",
        "target": "array of x's shape and dtype: probabilities, or their logarithms.",
        "log_target": "static bool, whether target has logarithms.",
        "reduction": '"mean", "sum", "none", or "batchmean", which divides the sum by x\'s first size.',
    },
)
def kl_div_loss(
    x: ArrayLike, target: ArrayLike, *, log_target: bool = False,
    reduction: Literal["mean", "batchmean", "sum", "none"] = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Kullback-Leibler divergence of probabilities from those whose logarithms are x."""
    op = "kl_div_loss"
    log_target = checks.flag(op, "log_target", log_target)
    return _of_difference(op, _divergence, x, target, reduction, allowed=WITH_BATCHMEAN, log_target=log_target)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _divergence(x, target, log_target):
    terms = jnp.exp(target) * (target - x) if log_target else target * (jnp.log(target) - x)
    return jnp.where(_has_none(target, log_target), 0, terms)


@_divergence.defjvp
def _divergence_tangent(log_target, primals, tangents):
    x, target = primals
    dx, dtarget = tangents
    # Selected before anything is computed, so that no infinity meets a 0, also in further derivatives.
    none = _has_none(target, log_target)
    apart = jnp.where(none, 1, target), jnp.where(none, 0, x)
    share = jnp.exp(target) if log_target else target
    slope = share * (apart[0] + 1 - apart[1]) if log_target else jnp.log(apart[0]) + 1 - apart[1]
    return _divergence(x, target, log_target), jnp.where(none, 0, slope) * dtarget - share * dx


def _has_none(target, log_target):
    """Where the target's probability is 0."""
    return target == (-jnp.inf if log_target else 0)


@loss(
    "l = exp(x) - target x, or x - target log(x + eps) without log_input; with full also\n"
    "target log(target) - target + log(2 pi target) / 2 where target > 1.",
    "torch.nn.functional.poisson_nll_loss",
    cases((positive, positive), {}, {"full": True}, {"log_input": False}),
    args={
        "x": "floats of any shape: logarithms of the expectation, or the expectation.",
        "log_input": "static bool, whether x has logarithms.",
        "full": "static bool, whether to add Stirling's approximation of log(target!).",
        "eps": "static number of at least 0, what is added to x in its logarithm.",
    },
)
def poisson_nll_loss(
    x: ArrayLike, target: ArrayLike, *, log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Negative log likelihood of counts with a Poisson distribution."""
    op = "poisson_nll_loss"
    flags = {"log_input": checks.flag(op, "log_input", log_input), "full": checks.flag(op, "full", full)}
    return _of_difference(op, _poisson, x, target, reduction, **flags, eps=number(op, "eps", eps, 0))


def _poisson(x, target, *, log_input, full, eps):
    terms = jnp.exp(x) - target * x if log_input else x - target * jnp.log(x + eps)
    if full:
        t = jnp.where(target > 1, target, 1)
        stirling = t * jnp.log(t) - t + jnp.log(2 * math.pi * t) / 2
        terms += jnp.where(target > 1, stirling, 0)
    return terms


@loss(
    "l = (log(v) + (x - target)^2 / v) / 2 with v = max(var, eps); with full also log(2 pi) / 2. The gradient in var is\n"
    "that in v, also where var < eps.",
    "torch.nn.functional.gaussian_nll_loss",
    cases((normal, normal, positive), {}, {"full": True}),
    args={
        "x": "floats of any shape: expectations.",
        "var": "floats that broadcast to x's shape: variances.",
        "full": "static bool, whether to add the constant term.",
        "eps": "static number greater than 0, the smallest variance.",
    },
)
def gaussian_nll_loss(
    x: ArrayLike, target: ArrayLike, var: ArrayLike, *, full: bool = False, eps: float = 1e-6,
    reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Negative log likelihood with a normal distribution for each element."""
    op = "gaussian_nll_loss"
    x = checks.floats(op, "x", x)
    others = [alike(op, "target", target, x), broadcasting(op, "var", var, x)]
    options = {"full": checks.flag(op, "full", full), "eps": number(op, "eps", eps, above=0)}
    return _computed(op, _gaussian, x, others, reduction, **options)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _at_least(eps, var):
    """The larger of both, whose derivative is 1 also where it is eps."""
    return jnp.maximum(var, eps)


@_at_least.defjvp
def _at_least_tangent(eps, primals, tangents):
    return _at_least(eps, *primals), tangents[0]


def _gaussian(x, target, var, *, full, eps):
    var = _at_least(eps, var)
    terms = (jnp.log(var) + jnp.square(x - target) / var) / 2
    return terms + math.log(2 * math.pi) / 2 if full else terms


@loss(
    "l = x where target is 1, max(0, margin - x) where it is -1, and the sum of both elsewhere.",
    "torch.nn.functional.hinge_embedding_loss",
    cases((normal, signs), {}, {"margin": 0.3}),
    constant={"target": LABEL},
    args={"target": "floats or integers of x's shape: 1 or -1."},
)
def hinge_embedding_loss(
    x: ArrayLike, target: ArrayLike, *, margin: float = 1.0, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Distances of similar pairs, and what those of others lack of a margin."""
    op = "hinge_embedding_loss"
    x = checks.floats(op, "x", x)
    target = alike(op, "target", target, x, labels=True)
    return _computed(op, _embedding, x, (target,), reduction, margin=number(op, "margin", margin))


def _embedding(x, target, *, margin):
    # One selection in another, which a compiler does in the loop that adds up; of two next to each other it stores both.
    return jnp.where(target == 1, x, hinge(margin - x) + jnp.where(target == -1, 0, x))


@loss(
    "l = max(0, margin - target (x1 - x2)); where l is not cut to 0: dx1 = -target dl, dx2 = target dl,\n"
    "dtarget = (x2 - x1) dl.",
    "torch.nn.functional.margin_ranking_loss",
    cases((normal, normal, signs), {}, {"margin": 0.3}),
    args={"target": "floats or integers that broadcast to x1's shape: 1 where x1 is to be larger, or -1."},
)
def margin_ranking_loss(
    x1: ArrayLike, x2: ArrayLike, target: ArrayLike, *, margin: float = 0.0, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """What differences in a wanted direction lack of a margin."""
    op = "margin_ranking_loss"
    x1 = checks.floats(op, "x1", x1)
    target = broadcasting(op, "target", target, x1, "x1", labels=True)
    others = alike(op, "x2", x2, x1, "x1"), target
    return _computed(op, _ranking, x1, others, reduction, margin=number(op, "margin", margin))


def _ranking(x1, x2, target, *, margin):
    return hinge(margin - target * (x1 - x2))
