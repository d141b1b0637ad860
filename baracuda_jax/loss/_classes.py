"""Losses of scores for classes, of which each row has one, or a probability for each."""

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
    class_axis,
    class_index,
    class_weight,
    hinge,
    loss,
    number,
    reduced,
    reduced_rows,
    reductions,
)
from ._scores import at_class, counted, dot, from_peak, is_class, limited, share, weights_of

DESCRIBED = {
    "x": "floats of rank 1 or more: scores of the classes along `axis`.",
    "weight": "floats, a factor for each class; None for 1.",
    "axis": "static integer, that of the classes; None for 1, and 0 of a vector, as in PyTorch.",
}
CLASS = "integers of x's shape without `axis`: the class of each row. Rows with a class outside [0, C) are ignored."


def case(name, shape, axis=1, weighted=True, **kwargs):
    """Random classes, some of which are to be ignored."""

    def draw(rng):
        rows = np.delete(shape, axis)
        target = rng.integers(0, shape[axis], rows).astype(np.int32)
        target[rng.random(rows) < 0.2] = -100
        arrays = rng.standard_normal(shape), target, rng.uniform(0.2, 2, shape[axis])
        return arrays if weighted else arrays[:2]

    return Case(name, draw, kwargs if axis == 1 else kwargs | {"axis": axis})


def soft_case(name, shape, axis=1, **kwargs):
    def draw(rng):
        target = rng.uniform(0.1, 1, shape)
        return rng.standard_normal(shape), target / target.sum(axis, keepdims=True), rng.uniform(0.2, 2, shape[axis])

    return Case(name, draw, kwargs if axis == 1 else kwargs | {"axis": axis})


@loss(
    "l = -weight[t] x[t] for the class t of a row, and 0 for rows that are ignored; a mean is sum(l) / sum(weight[t]) over\n"
    "the rows that are not, NaN where there is none.",
    "torch.nn.functional.nll_loss",
    (
        case("rows", (6, 5)),
        case("images", (3, 4, 2, 3), reduction="none", ignore_index=1),
        case("first axis", (7, 4), axis=0, reduction="sum"),
    ),
    constant={"target": INDEX},
    args={
        "target": CLASS,
        **DESCRIBED | {"x": "floats of rank 1 or more: logarithms of the probabilities of the classes along `axis`."},
    },
    returns=ROWS,
)
def nll_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None,
    ignore_index: int = -100, reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Negative logarithm of the probability of each row's class."""
    op = "nll_loss"
    x, axis = scores(op, x, axis)
    target, weight = class_index(op, target, x, axis), class_weight(op, weight, x, axis)
    ignore_index = checks.integer(op, "ignore_index", ignore_index, -(2**63))
    return _nll(x, target, weight, axis=axis, ignore_index=ignore_index, reduction=reductions(op, reduction))


def scores(op, x, axis):
    x = checks.floats(op, "x", x)
    return x, class_axis(op, x, axis)


@compiled("axis", "ignore_index", "reduction")
def _nll(x, target, weight, *, axis, ignore_index, reduction):
    counts, _, index = counted(target, x.shape[axis], axis, ignore_index)
    terms = -at_class(index, wide(x), axis)
    weights = weights_of(weight, counts, index, axis, terms.dtype)
    return reduced_rows(terms * weights, reduction, x.dtype, weights)


def soft(op, x, target, weight, axis, label_smoothing, reduction, softcap=None):
    x, axis = scores(op, x, axis)
    target, weight = alike(op, "target", target, x), class_weight(op, weight, x, axis)
    smoothing, reduction = share(op, label_smoothing), reductions(op, reduction)
    return _soft_entropy(x, target, weight, axis=axis, smoothing=smoothing, softcap=softcap, reduction=reduction)


@compiled("axis", "smoothing", "softcap", "reduction")
def _soft_entropy(x, target, weight, *, axis, smoothing, softcap, reduction):
    q = wide(target)
    q = (1 - smoothing) * q + smoothing / max(x.shape[axis], 1) if smoothing else q
    q = q if weight is None else q * wide(weight)
    return reduced(-dot(q, *from_peak(limited(wide(x), softcap), axis)[:2], axis), reduction, x.dtype)


@loss(
    "With p = log_softmax(x), l = -sum(weight q p); dx = (softmax(x) sum(weight q) - weight q) dl; dq = -weight p dl.\n"
    "Where q is 0 and p is -inf there is no term. With label_smoothing e, q is (1 - e) target + e / C.",
    "torch.nn.functional.cross_entropy (of probabilities); optax.losses.softmax_cross_entropy",
    (
        soft_case("rows", (6, 5)),
        soft_case("images", (3, 4, 2), reduction="none", label_smoothing=0.1),
        soft_case("first axis", (7, 4), axis=0, reduction="sum"),
    ),
    args={
        "target": "array of x's shape and dtype: the probabilities of the classes.",
        **DESCRIBED,
    },
    returns=ROWS,
)
def cross_entropy_soft_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None,
    label_smoothing: float = 0.0, reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Cross entropy of logits with probabilities."""
    return soft("cross_entropy_soft_loss", x, target, weight, axis, label_smoothing, reduction)


@loss(
    "l = weight[t] / C sum of max(0, margin - x[t] + x[c])^p over the other classes c than t, that of a row; 0 for rows\n"
    "with a class outside [0, C). A mean divides by the number of the others.",
    "torch.nn.functional.multi_margin_loss; optax.losses.multiclass_hinge_loss",
    (
        case("rows", (6, 5)),
        case("images", (3, 4, 5), reduction="none", p=2, margin=0.5),
        case("one row", (6,), axis=0, reduction="sum"),
    ),
    constant={"target": INDEX},
    args={
        "target": CLASS,
        "p": "static integer, 1 or 2.",
        **DESCRIBED,
    },
    returns=ROWS,
)
def multi_margin_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None, p: int = 1,
    margin: float = 1.0, reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """What scores of other classes lack of a margin below that of each row's class."""
    op = "multi_margin_loss"
    x, axis = scores(op, x, axis)
    target, weight = class_index(op, target, x, axis), class_weight(op, weight, x, axis)
    margin, p = number(op, "margin", margin), checks.choice(op, "p", p, (1, 2))
    return _margins(x, target, weight, axis=axis, p=p, margin=margin, reduction=reductions(op, reduction))


@compiled("axis", "p", "margin", "reduction")
def _margins(x, target, weight, *, axis, p, margin, reduction):
    counts, along, index = counted(target, x.shape[axis], axis)
    scores = wide(x) if p == 1 else jnp.where(along, wide(x), 0)  # the gradient of a square is a product with h
    h = hinge(margin - jnp.expand_dims(at_class(index, scores, axis), axis) + scores, slope_at_0=0)
    h = jnp.where(is_class(index, x.shape[axis], axis), 0, h)
    terms = jnp.where(counts, (jnp.square(h) if p == 2 else h).sum(axis) / x.shape[axis], 0)
    terms = terms if weight is None else terms * at_class(index, wide(weight), axis)
    return reduced_rows(terms, reduction, x.dtype, counts.astype(terms.dtype))
