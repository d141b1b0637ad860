"""Losses of scores for classes, of which each row may have several."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import (
    INDEX,
    ROWS,
    Reduction,
    alike,
    axis_of,
    broadcasting,
    cases,
    hinge,
    inside,
    loss,
    normal,
    positive,
    reduced,
    reductions,
)
from ._elementwise import binary_of_logits

_DESCRIBED = {
    "x": "floats of rank 1 or more: scores of the classes along `axis`.",
    "axis": "static integer, that of the classes.",
}


def _case(name, shape, axis=-1, **kwargs):
    """Each row has some classes, and others after -1, which are not among them."""

    def draw(rng):
        target = np.argsort(rng.random(shape), axis).astype(np.int32)
        np.moveaxis(target, axis, -1)[..., 2] = -1
        return rng.standard_normal(shape), target

    return Case(name, draw, {"axis": axis} | kwargs)


@loss(
    "l = 1 / C sum of max(0, 1 - x[t] + x[c]) over the classes t of a row, those in target before the\n"
    "first that is negative, and its other classes c. Classes of C and more are ignored.",
    "torch.nn.functional.multilabel_margin_loss",
    (
        _case("rows", (6, 5)),
        _case("middle axis", (3, 4, 2), 1, reduction="none"),
        _case("one row", (6,), reduction="sum"),
    ),
    constant={"target": INDEX},
    args={
        "target": "integers of x's shape except for `axis`, along which classes end at the first negative one.",
        **_DESCRIBED,
    },
    returns=ROWS,
)
def multilabel_margin_loss(
    x: ArrayLike, target: ArrayLike, *, axis: int = -1, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """What scores of other classes lack of a margin below those of each row's classes."""
    op = "multilabel_margin_loss"
    x = checks.floats(op, "x", x)
    axis, target = axis_of(op, "x", x, axis), checks.array(op, "target", target)
    checks.dtype(op, "target", target, checks.INTEGERS)
    sizes = (*x.shape[:axis], target.shape[axis], *x.shape[axis + 1 :]) if target.ndim == x.ndim else x.shape
    checks.shape(op, "target", target, sizes, f"that of x except for axis {axis}")
    target = target.astype(jnp.int64 if target.dtype.itemsize == 8 else jnp.int32)
    return _margins(x, target, axis=axis, reduction=reductions(op, reduction))


@compiled("axis", "reduction")
def _margins(x, target, *, axis, reduction):
    x_type, x, target = x.dtype, jnp.moveaxis(wide(x), axis, -1), jnp.moveaxis(target, axis, -1)
    classes, labels = x.shape[-1], target.shape[-1]
    if not classes or not labels:
        return reduced(jnp.zeros_like(x.sum(-1)) / classes, reduction, x_type)
    order = jax.lax.broadcasted_iota(jnp.int32, target.shape, target.ndim - 1)
    count = jnp.where(target < 0, order, labels).min(-1, keepdims=True)
    taken = jnp.where((order < count) & (target < classes), target, -1)
    return reduced(_sums(x, taken, count.max(initial=0)) / classes, reduction, x_type)


# Few enough that a compiler fuses them, so that x is read once for all.
_AT_ONCE = 4


def _over_labels(part, taken, count):
    """The sum of part(classes) over the label columns, `_AT_ONCE` classes of each row at a time, of shape [..., 1]. Columns
    from `count` on, which no row has, are not computed."""
    missing = -taken.shape[-1] % _AT_ONCE
    taken = jnp.pad(taken, [(0, 0)] * (taken.ndim - 1) + [(0, missing)], constant_values=-1)

    def at(i):
        some = jax.lax.dynamic_slice_in_dim(taken, i * _AT_ONCE, _AT_ONCE, -1)
        return part(jnp.split(some, _AT_ONCE, -1))

    first = at(0)
    if taken.shape[-1] == _AT_ONCE:
        return first
    end = (count.astype(jnp.int32) + _AT_ONCE - 1) // _AT_ONCE
    return jax.lax.fori_loop(1, end, lambda i, total: total + at(i), first)


def _numbers(x):
    return jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)


def _number_of_labels(x, taken, count):
    """How often a class is among the labels of its row."""
    position = _numbers(x).astype(taken.dtype)
    return _over_labels(lambda some: sum((t == position).astype(jnp.int32) for t in some), taken, count)


def _lacks(x, t, is_other):
    """The classes whose scores lack of the margin below that of class t, and how much."""
    score = jnp.take_along_axis(x, jnp.maximum(t, 0), -1, mode="promise_in_bounds")
    return (t >= 0) & is_other, 1 - score + x


@jax.custom_jvp
def _sums(x, taken, count):
    """The sum over label columns and other classes, of which a column at a time is in memory."""
    is_other = _number_of_labels(x, taken, count) == 0

    def part(some):
        terms = [jnp.where(where, hinge(h, slope_at_0=0), 0) for where, h in (_lacks(x, t, is_other) for t in some)]
        return sum(terms).sum(-1)

    return _over_labels(part, taken, count)


@_sums.defjvp
def _sums_tangent(primals, tangents):
    """Of piecewise constant slopes, which have no derivatives themselves."""
    x, taken, count = primals
    slopes = _slopes(jax.lax.stop_gradient(x), taken, count)
    return _sums(*primals), (slopes * tangents[0]).sum(-1)


def _slopes(x, taken, count):
    is_other = _number_of_labels(x, taken, count) == 0
    position = _numbers(x).astype(taken.dtype)

    def part(some):
        slopes = 0
        for t in some:
            where, h = _lacks(x, t, is_other)
            slope = (where & ~(h <= 0)).astype(x.dtype)
            slopes = slopes + slope - jnp.where(t == position, slope.sum(-1, keepdims=True), 0)
        return slopes

    return _over_labels(part, taken, count)


@loss(
    "l = 1 / C sum of weight (target softplus(-x) + (1 - target) softplus(x)) over the classes, with\n"
    "softplus(x) = log(1 + exp(x)): the mean of `bce_with_logits_loss` along `axis`.",
    "torch.nn.functional.multilabel_soft_margin_loss",
    cases((normal, inside, positive), {}, {}, {"axis": 1}),
    args={
        "target": "array of x's shape and dtype: 1 for the classes of a row, 0 for the others, or probabilities.",
        **_DESCRIBED,
    },
    returns=ROWS,
)
def multilabel_soft_margin_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int = -1, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Mean over the classes of the binary cross entropy of logits."""
    op = "multilabel_soft_margin_loss"
    x = checks.floats(op, "x", x)
    axis, target = axis_of(op, "x", x, axis), alike(op, "target", target, x)
    weight = None if weight is None else broadcasting(op, "weight", weight, x)
    return _soft_margins(x, target, weight, axis=axis, reduction=reductions(op, reduction))


@compiled("axis", "reduction")
def _soft_margins(x, target, weight, *, axis, reduction):
    terms = binary_of_logits(wide(x), wide(target))
    terms = terms if weight is None else terms * wide(weight)
    return reduced(terms.mean(axis), reduction, x.dtype)
