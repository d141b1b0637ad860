"""Cross entropy of logits with classes.

Of long rows a kernel reads logits once, for the logarithm of their sum of exponentials; XLA's program reads them twice. The
gradient reads them once more and writes, by a kernel too where XLA's program has more instructions than memory takes."""

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core import prefer as preference
from .._core.api import api
from .._core.body import filled, selected
from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import Body, compose, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype, with_rest
from ..reduce._kernels import reduce
from ..reduce._partition import log_sum_exp_of_shards
from ..reduce._references import log_sum_exp_reference
from ..softmax._log_sum import total, weights
from ..softmax._rows import Rows
from ..sort import argmax
from ._arguments import INDEX, ROWS, Reduction, class_index, class_weight, describe, number, reduced_rows, reductions
from ._classes import CLASS, DESCRIBED, case, scores, soft
from ._scores import at_class, counted, is_class, limit, limited, share, weights_of

BACKWARD = "cross_entropy_terms_backward"
TERMS = "nll", "lse"


@api
def cross_entropy_terms(
    x: ArrayLike, target: ArrayLike, *, axis: int | None = None, ignore_index: int = -100, softcap: float | None = None,
    return_lse: bool = False, return_correct: bool = False, donate: bool = False, implementation: Implementation = None,
) -> Array | tuple[Array, ...]:  # fmt: skip
    """Cross entropy of each row's logits with its class, and the logarithm of their sum of exponentials.

    Formula:
        lse = log(sum of exp(x[c])), nll = lse - x[t] for the class t of a row; both are 0 for rows that are ignored.
        dx[c] = softmax(x)[c] (dnll + dlse) - (c = t) dnll. With softcap, x is softcap tanh(x / softcap) first.

    Args:
        x: floats of rank 1 or more: scores of the classes along `axis`.
        target: integers of x's shape without `axis`: the class of each row. Rows with a class outside [0, C) are ignored.
        axis: static integer, that of the classes; None for 1, and 0 of a vector, as in PyTorch.
        ignore_index: static integer, a class of rows that are ignored.
        softcap: static number above 0, which no logit exceeds; None for no limit.
        return_lse: static, whether lse is returned too, as for a loss of its own or to compare models.
        return_correct: static, whether it is returned too if a row's class has the largest logit, the first of several. For
            the accuracy: its mean over the rows that are not ignored. Logits are read once more.
        donate: static, whether the gradient may be stored in x's memory, as of logits that nobody reads afterwards. If
            somebody does, XLA copies x first. Not with softcap.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        nll, of x's shape without `axis`, in float32 for float16 and bfloat16; with `return_lse` or `return_correct`, (nll,
        lse), (nll, correct) or (nll, lse, correct). nll and lse have derivatives. correct is a bool, False of rows that are
        ignored.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32. lse is kept with what rounding took from it: nll is as exact as
        of logits from which the largest is subtracted. Sums are added in a fixed order.

    Source: torch.nn.functional.cross_entropy; optax.losses.softmax_cross_entropy_with_integer_labels; P. Hsu et al., Liger
        Kernel, arXiv:2410.10989, for lse.
    """
    op = "cross_entropy_terms"
    x, index, how = _arguments(op, x, target, axis, ignore_index, softcap, donate)
    save, knows = checks.flag(op, "return_lse", return_lse), checks.flag(op, "return_correct", return_correct)
    outs = _terms(x, index, **how, save=save, implementation=implementation)
    outs = tuple(outs[:2]) if save else (outs,)
    if knows:
        outs = (*outs, _is_largest(lax.stop_gradient(x), index, how["axis"]))
    return outs if len(outs) > 1 else outs[0]


def _is_largest(x, index, axis):
    """Whether a row's class has the largest element."""
    if not x.shape[axis]:
        return index >= 0  # no class
    return argmax(x, axis).astype(index.dtype) == index


@api
def cross_entropy_terms_backward(
    x: ArrayLike, target: ArrayLike, dnll: ArrayLike, dlse: ArrayLike | None = None, *, axis: int | None = None,
    ignore_index: int = -100, softcap: float | None = None, donate: bool = False, implementation: Implementation = None,
) -> Array:  # fmt: skip
    """The gradient of `cross_entropy_terms`: dx[c] = softmax(x)[c] (dnll + dlse) - (c = t) dnll, 0 in rows that are ignored.

    Args:
        x: floats, as in `cross_entropy_terms`.
        target: integers, as in `cross_entropy_terms`.
        dnll: the cotangent of nll, of target's shape and of nll's dtype.
        dlse: that of lse; None for 0.
        axis, ignore_index, softcap, donate: static, as in `cross_entropy_terms`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "cross_entropy_terms_backward"
    x, index, how = _arguments(op, x, target, axis, ignore_index, softcap, donate)
    how |= {"implementation": implementation}
    cotangents = [
        None if d is None else _cotangent(op, name, d, x, index) for name, d in (("dnll", dnll), ("dlse", dlse))
    ]
    _, lse, rest = _terms(x, index, save=True, **how)
    return _terms.vjp(x, index, lse, rest, *cotangents, **how)


def _arguments(op, x, target, axis, ignore_index, softcap, donate):
    """(x, the class of each row, -1 of those that do not count, the parameters of the terms)"""
    x, axis = scores(op, x, axis)
    target, softcap = class_index(op, target, x, axis), limit(op, softcap)
    ignore_index = checks.integer(op, "ignore_index", ignore_index, -(2**63))
    index = _index(target, classes=x.shape[axis], ignore_index=ignore_index)
    return x, index, {"axis": axis, "softcap": softcap, "donate": checks.flag(op, "donate", donate)}


def _cotangent(op, name, d, x, index):
    d = checks.array(op, name, d)
    checks.shape(op, name, d, index.shape, "that of target")
    if d.dtype != wide_dtype(x.dtype):
        raise TypeError(f"{op}: {name} must have dtype {wide_dtype(x.dtype)} for x of dtype {x.dtype}, got {d.dtype}")
    return d


@api
def cross_entropy_loss(
    x: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, axis: int | None = None,
    ignore_index: int = -100, label_smoothing: float = 0.0, z_loss: float = 0.0, softcap: float | None = None,
    reduction: Reduction = "mean", donate: bool = False, implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Cross entropy of logits with classes, or with probabilities of them."""
    op = "cross_entropy_loss"
    ignore_index = checks.integer(op, "ignore_index", ignore_index, -(2**63))
    target = checks.array(op, "target", target)
    z_loss, softcap, donate = number(op, "z_loss", z_loss, 0), limit(op, softcap), checks.flag(op, "donate", donate)
    if jnp.issubdtype(target.dtype, jnp.floating):
        if z_loss:
            raise ValueError(f"{op}: z_loss must be 0 for a target of probabilities, got {z_loss}")
        preference.refuse_native(op, implementation, "xla")
        return soft(op, x, target, weight, axis, label_smoothing, reduction, softcap)
    x, axis = scores(op, x, axis)
    target, weight = class_index(op, target, x, axis), class_weight(op, weight, x, axis)
    options = dict(smoothing=share(op, label_smoothing), z_loss=z_loss, reduction=reductions(op, reduction))
    index = _index(target, classes=x.shape[axis], ignore_index=ignore_index)
    how = {"axis": axis, "softcap": softcap, "donate": donate}
    nll, lse, _ = _terms(x, index, **how, save=True, implementation=implementation)
    return _loss(x, index, nll, lse, weight, axis=axis, softcap=softcap, **options)


@compiled("classes", "ignore_index")
def _index(target, *, classes, ignore_index):
    """The class of each row, -1 of those that do not count."""
    return counted(target, classes, 0, ignore_index)[2].squeeze(0)


@compiled("axis", "smoothing", "z_loss", "softcap", "reduction")
def _loss(x, index, nll, lse, weight, *, axis, smoothing, z_loss, softcap, reduction):
    counts, along = index >= 0, jnp.expand_dims(index, axis)
    of_rows = weights_of(weight, counts, along, axis, nll.dtype)
    terms = nll if weight is None else nll * of_rows
    if smoothing:
        # Selected before it is computed with: what is in an ignored row is in no gradient.
        log_p = limited(jnp.where(along >= 0, wide(x), 0), softcap) - jnp.expand_dims(lse, axis)
        log_p = log_p if weight is None else jnp.where((weight == 0) & (log_p == -jnp.inf), 0, wide(weight) * log_p)
        terms = (1 - smoothing) * terms - jnp.where(counts, log_p.sum(axis), 0) * (smoothing / max(x.shape[axis], 1))
    if z_loss:
        terms = terms + z_loss * jnp.square(lse)
    return reduced_rows(terms, reduction, x.dtype, of_rows)


# ---------------------------------------------------------------------------------------------------------------------
# The op of rows: results nll, lse, and what rounding took from lse. `over` are axes of a mesh along which classes are
# sharded.


def _of_log_sum(index, lse, rest, at):
    counts = index >= 0
    return tuple(jnp.where(counts, y, 0) for y in ((lse - wide(at)) + rest, lse, rest))


def _reference(x, index, *, axis, softcap, donate):
    z = limited(wide(x), softcap)
    lse, rest = with_rest(*log_sum_exp_reference(z, (axis,)), z.dtype)
    return _of_log_sum(index, lse, rest, at_class(jnp.expand_dims(index, axis), z, axis))


def _native(x, index, *, axis, softcap, donate, save):
    z = x if softcap is None else limited(wide(x), softcap)
    y, taken = reduce("reduce_logsumexp", z, (axis,), [z.dtype, wide_dtype(z.dtype)])
    lse = wide(y) + taken
    rest = jnp.where(jnp.isfinite(lse), (wide(y) - lse) + taken, 0)
    at = at_class(jnp.expand_dims(index, axis), z, axis)
    return _of_log_sum(index, lse, rest, at)[: None if save else 1]


def _first_class(x, index, axis, over):
    """That of this shard."""
    return lax.axis_index(over).astype(index.dtype) * x.shape[axis] if over else 0


def _on_shards(run, over, x, index, *, axis, softcap, donate, save):
    every = jnp.zeros_like(index)  # all rows count
    _, *log_sums = run["forward"](x, every, axis=axis, softcap=softcap, donate=donate, save=True)
    lse, rest = log_sum_exp_of_shards(log_sums, over, log_sums[0].dtype)
    classes = x.shape[axis]
    own = index - _first_class(x, index, axis, over)
    own = jnp.expand_dims(jnp.where((own >= 0) & (own < classes), own, -1), axis)
    z = limited(wide(x), softcap)
    at = lax.psum(at_class(own, z, axis), over)
    return list(_of_log_sum(index, lse, rest, at))[: None if save else 1]


class _Slope:
    """The derivatives of a row's results: softmax, and 1 at its class; for rows that do not count 0, whatever they have."""

    def __init__(self, x, index, lse, rest, axis, softcap, over=()):
        along = jnp.expand_dims(index, axis)
        self.counts = along >= 0
        z = limited(jnp.where(self.counts, wide(x), 0), softcap)
        self.softmax = weights(z, lse, rest, (axis,), over)
        self.is_class = is_class(along - _first_class(x, index, axis, over), x.shape[axis], axis)
        self.of_limit = 1 if softcap is None else 1 - jnp.square(z / softcap)


def _tangent(x, index, lse, rest, t, *, axis, softcap, donate, over=()):
    slope = _Slope(x, index, lse, rest, axis, softcap, over)
    t = jnp.where(slope.counts, wide(t) * slope.of_limit, 0)
    mean = total(slope.softmax * t, axis, over).squeeze(axis)
    return mean - total(jnp.where(slope.is_class, t, 0), axis, over).squeeze(axis), mean


def _backward(x, index, lse, rest, dnll, dlse, *, axis, softcap, donate, over=()):
    slope = _Slope(x, index, lse, rest, axis, softcap, over)
    every = sum(jnp.expand_dims(d, axis) for d in (dnll, dlse) if d is not None)
    dz = slope.softmax * every
    if dnll is not None:
        dz = dz - jnp.where(slope.is_class, jnp.expand_dims(dnll, axis), 0)
    return (jnp.where(slope.counts, dz * slope.of_limit, 0).astype(x.dtype),)


def _backward_native(x, index, lse, rest, dnll, dlse, *, axis, softcap, donate):
    z = x if softcap is None else limited(wide(x), softcap)
    rows = Rows(z, (axis,))
    of_rows = (jnp.zeros_like(lse) if d is None else d for d in (dnll, dlse))
    dims = "...c, ..., ..., ..., ..., ... -> ...c"
    aliases = ((0, 0),) if donate and softcap is None else ()
    arrays = (rows.of(z), index.astype(jnp.int32), lse, rest, *of_rows)
    (dz,) = kernel(BACKWARD, dims, *arrays, out=[rows.like(z.dtype)], aliases=aliases)
    dz = rows.back(dz)
    if softcap is not None:
        counts = jnp.expand_dims(index, axis) >= 0
        dz = jnp.where(counts, dz * (1 - jnp.square(z / softcap)), 0).astype(x.dtype)
    return (dz,)


def _labels(names, types, params):
    def of(name, x):
        kept = [f"kept{i}" for i in range(types[0].ndim - 1)]
        return (*kept[: params["axis"]], "classes", *kept[params["axis"] :]) if name == "x" else tuple(kept)

    return [of(name, x) for name, x in zip(names, types, strict=True)]


def _linear_on_shards(fun):
    return lambda run, over, *arrays, **params: list(fun(*arrays, over=over, **params))


def _regime(call):
    """A kernel reads logits that are limited from memory."""
    return along_axes(call) | {"softcap": call.params["softcap"] is not None}


_terms = declare(
    "cross_entropy_terms",
    family="loss",
    category=OpCategory.LOSS,
    public=cross_entropy_terms,
    dtypes=checks.FLOATS,
    cases=(
        case("rows", (6, 41), weighted=False, axis=-1),
        case("images, and lse", (3, 4, 2, 3), weighted=False, softcap=2.0, return_lse=True),
        case("first axis", (7, 4), weighted=False, axis=0),
    ),
    operands=("x", "target"),
    results=("nll", "lse", "rest"),
    outputs=TERMS,
    differentiable=("x",),
    constant={"target": INDEX},
    residuals=("x", "target", "lse", "rest"),
    regime=_regime,
    batched=lambda params: {**params, "axis": params["axis"] + 1},
    cut=Partition(
        _labels,
        combine={
            "classes": {
                "forward": _on_shards,
                "tangent": _linear_on_shards(selected(_tangent, TERMS)),
                "backward": _linear_on_shards(filled(_backward, TERMS)),
            }
        },
    ),
    forward=Body(_reference, _native),
    tangent=Body(_tangent),
    backward=Body(_backward, _backward_native),
    kernels={"forward": ("reduce_logsumexp",), "backward": (BACKWARD,)},
    library="xla",
    fused=True,
)

describe(
    cross_entropy_loss,
    "With p = log_softmax(x), l = -weight[t] p[t] for the class t of a row, or l = -sum(weight q p) for probabilities q;\n"
    "dx = (softmax(x) - q) dl for weights 1, where q is 1 at t; dq = -weight p dl. With label_smoothing e,\n"
    "l = -(1 - e) weight[t] p[t] - e sum(weight p) / C, and q becomes (1 - e) q + e / C. Rows that are ignored have no\n"
    "term. A mean is sum(l) / sum(weight[t]) over the rows that are not, NaN where there is none; of probabilities it\n"
    "divides by the number of rows. With softcap, x is softcap tanh(x / softcap) first. With z_loss, rows of classes have\n"
    "the further term z_loss lse^2, lse being the logarithm of the sum of exponentials of x.",
    "torch.nn.functional.cross_entropy; optax.losses.softmax_cross_entropy_with_integer_labels, softmax_cross_entropy",
    ROWS,
    args={
        "target": CLASS + " Or\n    floats of x's shape: probabilities.",
        "z_loss": "static number of at least 0, the factor of lse^2; 0 for probabilities.",
        "donate": "static, whether the gradient may be stored in x's memory, as of logits that nobody reads afterwards. If\n"
        "    somebody does, XLA copies x first. Not with softcap, nor of probabilities.",
        **DESCRIBED,
        "implementation": '"native" (the kernel; there is none for probabilities), "xla" (plain JAX), a PlanPreference,\n'
        "    or None for automatic.",
    },
)
compose(
    "cross_entropy_loss",
    family="loss",
    category=OpCategory.LOSS,
    public=cross_entropy_loss,
    dtypes=checks.FLOATS,
    cases=(
        case("rows", (6, 5), label_smoothing=0.1, z_loss=0.01),
        case("images", (3, 4, 2, 3), reduction="none", softcap=2.0),
        case("first axis", (7, 4), axis=0, reduction="sum"),
    ),
    operands=("x", "target", "weight"),
    made_of=("cross_entropy_terms",),
    differentiable=("x", "weight"),
    constant={"target": INDEX},
)
