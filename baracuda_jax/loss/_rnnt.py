"""The transducer's loss: the probability of a sequence of labels, however they are written while frames are read."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide_dtype
from . import _rnnt_kernels, _rnnt_reference
from ._alignments import arguments, case
from ._arguments import INDEX, Reduction, reduced, reductions


@api
def rnnt_loss(
    x: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike | None = None,
    target_lengths: ArrayLike | None = None,
    *,
    blank: int = 0,
    reduction: Reduction = "mean",
    log_probs: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Loss of a transducer (RNN-T), which writes labels while it reads a sequence of frames.

    Formula:
        l = -log(sum over the paths of prod over their steps of p[t, u, c]), with p = softmax(x). After t frames and u labels
        a step is the blank, which reads the next frame, or the next label of the target, which writes it. A path begins at
        (0, 0), and ends with the blank that reads the last frame after the last label.
        dx[t, u, c] = (p[t, u, c] q[t, u] - q[t, u, c]) dl, q[t, u, c] being the posterior probability that a path has c at
        (t, u), and q[t, u] that it is there, the sum of these. With `log_probs`, p = exp(x) and dx = -q dl.

    Args:
        x: floats [..., T, U + 1, C], a score of each class after each number of frames and of labels.
        targets: integers [..., U], the labels of each sample. A sample whose labels are not all in [0, C), or of which one
            is the blank, has no path.
        input_lengths: integers [...], how many frames of each sample count, at most T; None for all. Derivatives in the
            others are 0, whatever these have.
        target_lengths: integers [...], how many labels of each sample count, at most U; None for all.
        blank: static integer, the class that reads a frame.
        reduction: "mean", "sum", or "none" for all losses.
        log_probs: static, whether x are logarithms of probabilities, as of `log_softmax`, and not logits. Scores that are
            not normalized may have losses below 0.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype: a number, or, with reduction "none", [...]. A sample without a path, as one of labels and no
        frames, is infinity and has gradient 0. A loss of logits is never below 0. NaN propagates.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32, and the result is rounded once, after the reduction. Sums over
        paths are floats with an exponent of their own, which never underflow. Everything is added in a fixed order: results
        are the same bits every time, and so are gradients.

    Source: torchaudio.functional.rnnt_loss; Graves, Sequence Transduction with Recurrent Neural Networks (2012).
    """
    op = "rnnt_loss"
    arrays, params = _arguments(op, x, targets, input_lengths, target_lengths, blank, log_probs)
    reduction = reductions(op, reduction)
    losses = _RNNT(*arrays, **params, implementation=implementation)
    return _reduced(losses, reduction=reduction, dtype=arrays[0].dtype.name)


@api
def rnnt_loss_backward(
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
    """The gradient of `rnnt_loss` with reduction "none": dx[t, u, c] = (p[t, u, c] q[t, u] - q[t, u, c]) dy for logits, and
    -q[t, u, c] dy with `log_probs`; 0 for a sample without a path.

    Args:
        x, targets, input_lengths, target_lengths: as in `rnnt_loss`.
        dy: floats [...] of x's dtype, the cotangent of each sample's loss.
        blank, log_probs: as in `rnnt_loss`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [..., T, U + 1, C].
    """
    op = "rnnt_loss_backward"
    arrays, params = _arguments(op, x, targets, input_lengths, target_lengths, blank, log_probs)
    x, dy = arrays[0], checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, x.shape[:-3], "one for each sample")
    _, *saved = _RNNT(*arrays, save=True, **params, implementation=implementation)
    return _RNNT.vjp(*arrays, *saved, dy.astype(wide_dtype(x.dtype)), **params, implementation=implementation)


def _arguments(op, *args):
    arrays, params = arguments(op, *args, ("frames", "numbers of labels", "classes"))
    x, targets = arrays[:2]
    if x.shape[-2] != targets.shape[-1] + 1:
        raise ValueError(
            f"{op}: x must have scores after each number of labels, 0 to {targets.shape[-1]}, along its last dimension but "
            f"one, got shape {tuple(x.shape)}"
        )
    return arrays, params


@compiled("reduction", "dtype")
def _reduced(losses, *, reduction, dtype):
    return reduced(losses, reduction, dtype)


def _case(name, batch, frames, classes, labels, **kwargs):
    return case(name, batch, (frames, labels + 1, classes), labels, 1, 0, **kwargs)


_RNNT = declare(
    "rnnt_loss",
    family="loss",
    category=OpCategory.LOSS,
    public=rnnt_loss,
    dtypes=checks.FLOATS,
    cases=(
        _case("all losses", (4,), 5, 4, 3, reduction="none"),
        _case("mean", (3,), 4, 5, 4, is_full=True, blank=2),
        _case("log probabilities", (2,), 3, 4, 2, is_full=True, reduction="sum", log_probs=True),
        _case("one sample", (), 4, 3, 2, is_full=True),
    ),
    operands=("x", "targets", "input_lengths", "target_lengths"),
    results=("y", "logs", "sums", "total"),
    differentiable=("x",),
    constant={name: INDEX for name in ("targets", "input_lengths", "target_lengths")},
    residuals=("x", "targets", "input_lengths", "target_lengths", "logs", "sums", "total"),
    batched=as_they_are,
    cut="a path goes through all frames and labels of a sample, whose probabilities are those of all classes",
    forward=Body(_rnnt_reference.forward, _rnnt_kernels.forward),
    tangent=Body(_rnnt_reference.tangent, _rnnt_kernels.tangent),
    backward=Body(_rnnt_reference.backward, _rnnt_kernels.backward),
    kernels={
        "forward": ("rnnt_loss",),
        "tangent": ("rnnt_loss_backward",),
        "backward": ("rnnt_loss_backward",),
    },
)
