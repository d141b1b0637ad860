"""Connectionist temporal classification: the probability of a sequence of labels, whichever frames they are in."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide_dtype
from . import _ctc_kernels, _ctc_reference
from ._alignments import arguments, case
from ._arguments import INDEX, Reduction, reduced, reductions

_DIMENSIONS = ("frames", "classes")


@api
def ctc_loss(
    x: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike | None = None,
    target_lengths: ArrayLike | None = None,
    *,
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
    log_probs: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Connectionist temporal classification: the loss of labels that are somewhere in a sequence of frames.

    Formula:
        l = -log(sum over the alignments a of prod over t of p[t, a[t]]), with p = softmax(x). An alignment has a class for
        each frame: what is left of it when neighbors that are equal are merged and blanks are removed is the target.
        dx[t, c] = (p[t, c] - q[t, c]) dl, q[t, c] being the posterior probability that alignments have class c in frame t.
        With `log_probs`, p = exp(x) and dx = -q dl.

    Args:
        x: floats [..., T, C], a score of each class in each of T frames.
        targets: integers [..., S], the labels of each sample. A sample whose labels are not all in [0, C), or of which one
            is the blank, has no alignment.
        input_lengths: integers [...], how many frames of each sample count, at most T; None for all. Derivatives in the
            others are 0, whatever these have.
        target_lengths: integers [...], how many labels of each sample count, at most S; None for all.
        blank: static integer, the class of frames that have no label.
        reduction: "mean", "sum", or "none" for all losses. A mean is that of losses divided by the number of labels, or by
            1 where there is none, as in PyTorch.
        zero_infinity: static, whether the loss of a sample without an alignment is 0 and not infinity.
        log_probs: static, whether x are logarithms of probabilities, as of `log_softmax`, and not logits. Scores that are
            not normalized may have losses below 0.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype: a number, or, with reduction "none", [...]. A sample without an alignment, as one with fewer
        frames than its labels and the blanks between equal ones need, is infinity and has gradient 0. A loss of logits is
        never below 0. NaN propagates.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32, and the result is rounded once, after the reduction. Sums over
        alignments are floats with an exponent of their own, which never underflow: nothing is rounded as a large logarithm
        would be. Everything is added in a fixed order: results are the same bits every time, and so are gradients.

    Source: torch.nn.functional.ctc_loss; optax.losses.ctc_loss; Graves et al., Connectionist Temporal Classification (2006).
    """
    op = "ctc_loss"
    arrays, params = arguments(op, x, targets, input_lengths, target_lengths, blank, log_probs, _DIMENSIONS)
    reduction, zero_infinity = reductions(op, reduction), checks.flag(op, "zero_infinity", zero_infinity)
    losses = _CTC(*arrays, **params, implementation=implementation)
    options = dict(reduction=reduction, zero_infinity=zero_infinity, dtype=arrays[0].dtype.name)
    return _reduced(losses, *arrays[1::2], **options)


ctc_loss_cudnn = ctc_loss


@api
def ctc_loss_backward(
    x: ArrayLike,
    targets: ArrayLike,
    dy: ArrayLike,
    input_lengths: ArrayLike | None = None,
    target_lengths: ArrayLike | None = None,
    *,
    blank: int = 0,
    log_probs: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `ctc_loss` with reduction "none": dx[t, c] = (p[t, c] - q[t, c]) dy for logits, and -q[t, c] dy with
    `log_probs`; 0 for a sample without an alignment.

    Args:
        x, targets, input_lengths, target_lengths: as in `ctc_loss`.
        dy: floats [...] of x's dtype, the cotangent of each sample's loss.
        blank, log_probs: as in `ctc_loss`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [..., T, C].
    """
    op = "ctc_loss_backward"
    arrays, params = arguments(op, x, targets, input_lengths, target_lengths, blank, log_probs, _DIMENSIONS)
    x, dy = arrays[0], checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, x.shape[:-2], "one for each sample")
    _, sums = _CTC(*arrays, save=True, **params, implementation=implementation)
    return _CTC.vjp(*arrays, sums, dy.astype(wide_dtype(x.dtype)), **params, implementation=implementation)


@compiled("reduction", "zero_infinity", "dtype")
def _reduced(losses, targets, target_lengths, *, reduction, zero_infinity, dtype):
    losses = jnp.where(losses == jnp.inf, 0, losses) if zero_infinity else losses
    if reduction == "mean":
        losses = losses / jnp.clip(target_lengths, 1, max(1, targets.shape[-1])).astype(losses.dtype)
    return reduced(losses, reduction, dtype)


def _case(name, batch, frames, classes, labels, **kwargs):
    """Some labels repeat."""
    return case(name, batch, (frames, classes), labels, 2 * labels, labels - 1, **kwargs)


_CTC = declare(
    "ctc_loss",
    family="loss",
    category=OpCategory.LOSS,
    public=ctc_loss,
    dtypes=checks.FLOATS,
    cases=(
        _case("all losses", (4,), 9, 5, 3, reduction="none"),
        _case("mean", (3,), 11, 4, 4, is_full=True, blank=2),
        _case("log probabilities", (3,), 8, 5, 2, reduction="sum", log_probs=True, zero_infinity=True),
        _case("one sample", (), 7, 6, 2, is_full=True),
    ),
    operands=("x", "targets", "input_lengths", "target_lengths"),
    results=("y", "sums"),
    differentiable=("x",),
    constant={name: INDEX for name in ("targets", "input_lengths", "target_lengths")},
    residuals=("x", "targets", "input_lengths", "target_lengths", "sums"),
    batched=as_they_are,
    cut="an alignment goes through all frames of a sample, whose probabilities are those of all classes",
    forward=Body(_ctc_reference.forward, _ctc_kernels.forward),
    tangent=Body(_ctc_reference.tangent, _ctc_kernels.tangent),
    backward=Body(_ctc_reference.backward, _ctc_kernels.backward),
    kernels={
        "forward": ("ctc_loss",),
        "tangent": ("ctc_loss_backward",),
        "backward": ("ctc_loss_backward",),
    },
)
