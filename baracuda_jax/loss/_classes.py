"""Losses of scores for classes, of which each row has one, or a probability for each."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
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
    reductions,
)

_DESCRIBED = {
    "x": "floats of rank 1 or more: scores of the classes along `axis`.",
    "weight": "floats, a factor for each class; None for 1.",
    "axis": "static integer, that of the classes; None for 1, and 0 of a vector, as in PyTorch.",
}
_INDEX = "integers of x's shape without `axis`: the class of each row. Rows with a class outside [0, C) are ignored."
_IGNORE = "static integer, a class of rows that are ignored."
_SMOOTHING = "static number in [0, 1], how much of each target is distributed evenly over all classes."


def _rows(target, classes, axis, ignore_index=None):
    """Which rows count; the same along `axis`; and the classes along `axis`, -1 of rows that do not count."""
    counts = (target >= 0) & (target < classes)
    if ignore_index is not None and jnp.iinfo(target.dtype).min <= ignore_index <= jnp.iinfo(target.dtype).max:
        counts &= target != ignore_index
    return counts, jnp.expand_dims(counts, axis), jnp.expand_dims(jnp.where(counts, target, -1), axis)


def _is_class(index, classes, axis):
    sizes = [classes if i == axis else 1 for i in range(index.ndim)]
    return jax.lax.broadcasted_iota(index.dtype, sizes, axis) == index


def _selected(index, x, axis):
    return jnp.where(_is_class(index, x.shape[axis], axis), x, 0).sum(axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _at(index, x, axis):
    """x's element at the class of each row, 0 of rows without. x may have size 1 along other axes."""
    if (
        not x.size or explicit.is_sharded(x) or explicit.is_sharded(index)
    ):  # a comparison is sharded as its operands are
        return _selected(index, x, axis)
    first = jnp.maximum(index, 0)
    if all(size == 1 for i, size in enumerate(x.shape) if i != axis):
        found = explicit.take(x.reshape(-1), first)
    else:
        found = jnp.take_along_axis(x, first, axis, mode="promise_in_bounds")
    return jnp.where(index < 0, 0, found).squeeze(axis)


@_at.defjvp
def _at_tangent(axis, primals, tangents):
    """By comparison, unlike the value: a gather's transpose is a scatter, which has an order and does not fuse."""
    index, x = primals
    return _at(index, x, axis), _selected(index, tangents[1], axis)


def _shifted(x, axis):
    """(x minus the largest of each row, the logarithm of the sum of its exponentials): log_softmax(x) is the difference,
    which is written nowhere where both are used in sums."""
    peak = jax.lax.stop_gradient(x).max(axis, keepdims=True, initial=-jnp.inf)
    shifted = x - jnp.where(jnp.isfinite(peak), peak, 0)
    return shifted, jnp.log(jnp.exp(shifted).sum(axis))


def _dot(q, shifted, log_sum, axis):
    """The sum of q log(p). Where q is 0 and log(p) is -inf there is no term."""
    is_none = (q == 0) & (shifted == -jnp.inf)
    of = lambda x: jnp.where(is_none, 0, x)
    return (q * of(shifted)).sum(axis) - log_sum * of(q).sum(axis)


def _weights(weight, counts, index, axis, dtype):
    """Those of the rows, by their classes."""
    return counts.astype(dtype) if weight is None else _at(index, wide(weight), axis)


def _case(name, shape, axis=1, **kwargs):
    """Random classes, some of which are to be ignored."""

    def draw(rng):
        rows = np.delete(shape, axis)
        target = rng.integers(0, shape[axis], rows).astype(np.int32)
        target[rng.random(rows) < 0.2] = -100
        return rng.standard_normal(shape), target, rng.uniform(0.2, 2, shape[axis])

    return Case(name, draw, kwargs if axis == 1 else kwargs | {"axis": axis})


def _soft_case(name, shape, axis=1, **kwargs):
    def draw(rng):
        target = rng.uniform(0.1, 1, shape)
        return rng.standard_normal(shape), target / target.sum(axis, keepdims=True), rng.uniform(0.2, 2, shape[axis])

    return Case(name, draw, kwargs if axis == 1 else kwargs | {"axis": axis})


@loss(
    "l = -weight[t] x[t] for the class t of a row, and 0 for rows that are ignored; a mean is sum(l) / sum(weight[t]) over\n"
    "the rows that are not, NaN where there is none.",
    "torch.nn.functional.nll_loss",
    (
        _case("rows", (6, 5)),
        _case("images", (3, 4, 2, 3), reduction="none", ignore_index=1),
        _case("first axis", (7, 4), axis=0, reduction="sum"),
    ),
    constant={"target": INDEX},
    args={
        "target": _INDEX,
        "ignore_index": _IGNORE,
        **_DESCRIBED | {"x": "floats of rank 1 or more: logarithms of the probabilities of the classes along `axis`."},
    },
    returns=ROWS,
)
def nll_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None,
    ignore_index: int = -100, reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Negative logarithm of the probability of each row's class."""
    op = "nll_loss"
    x, axis = _scores(op, x, axis)
    target, weight = class_index(op, target, x, axis), class_weight(op, weight, x, axis)
    ignore_index = checks.integer(op, "ignore_index", ignore_index, -(2**63))
    return _nll(x, target, weight, axis=axis, ignore_index=ignore_index, reduction=reductions(op, reduction))


def _scores(op, x, axis):
    x = checks.floats(op, "x", x)
    return x, class_axis(op, x, axis)


@compiled("axis", "ignore_index", "reduction")
def _nll(x, target, weight, *, axis, ignore_index, reduction):
    counts, _, index = _rows(target, x.shape[axis], axis, ignore_index)
    terms = -_at(index, wide(x), axis)
    weights = _weights(weight, counts, index, axis, terms.dtype)
    return reduced(terms * weights, reduction, x.dtype, weights.sum())


@loss(
    "With p = log_softmax(x), l = -weight[t] p[t] for the class t of a row, or l = -sum(weight q p) for probabilities q;\n"
    "dx = (softmax(x) - q) dl for weights 1, where q is 1 at t; dq = -weight p dl. With label_smoothing e,\n"
    "l = -(1 - e) weight[t] p[t] - e sum(weight p) / C, and q becomes (1 - e) q + e / C. Rows that are ignored have no\n"
    "term. A mean is sum(l) / sum(weight[t]) over the rows that are not, NaN where there is none; of probabilities it\n"
    "divides by the number of rows.",
    "torch.nn.functional.cross_entropy; optax.losses.softmax_cross_entropy_with_integer_labels, softmax_cross_entropy",
    (
        _case("rows", (6, 5), label_smoothing=0.1),
        _case("images", (3, 4, 2, 3), reduction="none"),
        _soft_case("probabilities", (5, 4, 3), reduction="none", label_smoothing=0.2),
    ),
    args={
        "target": _INDEX + " Or\n    floats of x's shape: probabilities.",
        "ignore_index": _IGNORE,
        "label_smoothing": _SMOOTHING,
        **_DESCRIBED,
    },
    returns=ROWS,
)
def cross_entropy_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None,
    ignore_index: int = -100, label_smoothing: float = 0.0, reduction: Reduction = "mean",
    implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Cross entropy of logits with classes, or with probabilities of them."""
    op = "cross_entropy_loss"
    ignore_index = checks.integer(op, "ignore_index", ignore_index, -(2**63))
    target = checks.array(op, "target", target)
    if jnp.issubdtype(target.dtype, jnp.floating):
        return _soft(op, x, target, weight, axis, label_smoothing, reduction)
    x, axis = _scores(op, x, axis)
    target, weight = class_index(op, target, x, axis), class_weight(op, weight, x, axis)
    return _entropy(
        x, target, weight, axis=axis, ignore_index=ignore_index, smoothing=_smoothing(op, label_smoothing),
        reduction=reductions(op, reduction),
    )  # fmt: skip


@compiled("axis", "ignore_index", "smoothing", "reduction")
def _entropy(x, target, weight, *, axis, ignore_index, smoothing, reduction):
    counts, along, index = _rows(target, x.shape[axis], axis, ignore_index)
    # Selected before it is computed with: what is in an ignored row is in no gradient.
    shifted, log_sum = _shifted(jnp.where(along, wide(x), 0), axis)
    terms = jnp.where(counts, log_sum - _at(index, shifted, axis), 0)
    weights = _weights(weight, counts, index, axis, terms.dtype)
    terms = terms if weight is None else terms * weights
    if smoothing:
        factors = jnp.ones_like(shifted) if weight is None else jnp.broadcast_to(wide(weight), shifted.shape)
        even = _dot(factors, shifted, log_sum, axis)
        terms = (1 - smoothing) * terms - jnp.where(counts, even, 0) * (smoothing / x.shape[axis])
    return reduced(terms, reduction, x.dtype, weights.sum())


def _smoothing(op, value):
    value = number(op, "label_smoothing", value, 0)
    if value > 1:
        raise ValueError(f"{op}: label_smoothing must be at most 1, got {value}")
    return value


def _soft(op, x, target, weight, axis, label_smoothing, reduction):
    x, axis = _scores(op, x, axis)
    target, weight = alike(op, "target", target, x), class_weight(op, weight, x, axis)
    smoothing, reduction = _smoothing(op, label_smoothing), reductions(op, reduction)
    return _soft_entropy(x, target, weight, axis=axis, smoothing=smoothing, reduction=reduction)


@compiled("axis", "smoothing", "reduction")
def _soft_entropy(x, target, weight, *, axis, smoothing, reduction):
    q = wide(target)
    q = (1 - smoothing) * q + smoothing / x.shape[axis] if smoothing else q
    q = q if weight is None else q * wide(weight)
    return reduced(-_dot(q, *_shifted(wide(x), axis), axis), reduction, x.dtype)


@loss(
    "With p = log_softmax(x), l = -sum(weight q p); dx = (softmax(x) sum(weight q) - weight q) dl; dq = -weight p dl.\n"
    "Where q is 0 and p is -inf there is no term. With label_smoothing e, q is (1 - e) target + e / C.",
    "torch.nn.functional.cross_entropy (of probabilities); optax.losses.softmax_cross_entropy",
    (
        _soft_case("rows", (6, 5)),
        _soft_case("images", (3, 4, 2), reduction="none", label_smoothing=0.1),
        _soft_case("first axis", (7, 4), axis=0, reduction="sum"),
    ),
    args={
        "target": "array of x's shape and dtype: the probabilities of the classes.",
        "label_smoothing": _SMOOTHING,
        **_DESCRIBED,
    },
    returns=ROWS,
)
def cross_entropy_soft_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None,
    label_smoothing: float = 0.0, reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Cross entropy of logits with probabilities."""
    return _soft("cross_entropy_soft_loss", x, target, weight, axis, label_smoothing, reduction)


@loss(
    "l = weight[t] / C sum of max(0, margin - x[t] + x[c])^p over the other classes c than t, that of a row; 0 for rows\n"
    "with a class outside [0, C). A mean divides by the number of the others.",
    "torch.nn.functional.multi_margin_loss; optax.losses.multiclass_hinge_loss",
    (
        _case("rows", (6, 5)),
        _case("images", (3, 4, 5), reduction="none", p=2, margin=0.5),
        _case("one row", (6,), axis=0, reduction="sum"),
    ),
    constant={"target": INDEX},
    args={
        "target": _INDEX,
        "p": "static integer, 1 or 2.",
        **_DESCRIBED,
    },
    returns=ROWS,
)
def multi_margin_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None, p: int = 1,
    margin: float = 1.0, reduction: Reduction = "mean", implementation: Implementation = None,
) -> Array:  # fmt: skip
    """What scores of other classes lack of a margin below that of each row's class."""
    op = "multi_margin_loss"
    x, axis = _scores(op, x, axis)
    target, weight = class_index(op, target, x, axis), class_weight(op, weight, x, axis)
    margin, p = number(op, "margin", margin), checks.choice(op, "p", p, (1, 2))
    return _margins(x, target, weight, axis=axis, p=p, margin=margin, reduction=reductions(op, reduction))


@compiled("axis", "p", "margin", "reduction")
def _margins(x, target, weight, *, axis, p, margin, reduction):
    counts, along, index = _rows(target, x.shape[axis], axis)
    scores = jnp.where(along, wide(x), 0)
    h = hinge(margin - jnp.expand_dims(_at(index, scores, axis), axis) + scores, slope_at_0=0)
    h = jnp.where(_is_class(index, x.shape[axis], axis) | ~along, 0, h)
    terms = (jnp.square(h) if p == 2 else h).sum(axis) / x.shape[axis]
    terms = terms if weight is None else terms * _at(index, wide(weight), axis)
    return reduced(terms, reduction, x.dtype, counts.astype(terms.dtype).sum())
