"""Softmax and its logarithm."""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from ..reduce import logsumexp
from ._log_sum import declared, from_mean, total, weighted
from ._where import among


@api
def softmax(
    x: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Softmax: exponentials of each slice, divided by their sum.

    Formula:
        y = exp(x - m) / sum(exp(x - m)), with the maximum m of the slice. dx = y (dy - sum(y dy)).

    Args:
        x: floats, of rank 1 or more.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        where: bool array that broadcasts to x's shape: the elements that take part. The others give 0, whatever they are.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype. A slice of which nothing takes part is 0, and so is its gradient. A slice with NaN,
        with +infinity, or with -infinity alone is NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The gradient is computed from x, so that what
        rounding took from y is in no gradient. Everything is added in a fixed order: results are the same bits every time.

    Source: torch.nn.functional.softmax, jax.nn.softmax, scipy.special.softmax.
    """
    return _among("softmax", _softmax, x, axis, where, implementation, nothing=0)


softmax_strided = softmax


@api
def softmax_backward(
    x: ArrayLike, dy: ArrayLike, axis: int | Sequence[int] = -1, *, implementation: Implementation = None
) -> Array:
    """The gradient of `softmax`: dx = y (dy - sum(y dy)).

    Args:
        x: floats, as in `softmax`.
        dy: the cotangent of y, of x's shape and dtype.
        axis: as in `softmax`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _gradient("softmax_backward", _softmax, x, dy, axis, implementation)


@api
def log_softmax(
    x: ArrayLike,
    axis: int | Sequence[int] = -1,
    *,
    where: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    """Logarithm of softmax, also where softmax is so small that it is rounded to 0.

    Formula:
        y = x - m - log(sum(exp(x - m))), with the maximum m of the slice. dx = dy - exp(y) sum(dy).

    Args:
        x: floats, of rank 1 or more.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        where: bool array that broadcasts to x's shape: the elements that take part. The others give -infinity, whatever they
            are.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype. A slice of which nothing takes part is -infinity, and its gradient is 0. A slice with
        NaN, with +infinity, or with -infinity alone is NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The gradient is computed from x. Everything is
        added in a fixed order: results are the same bits every time.

    Source: torch.nn.functional.log_softmax, jax.nn.log_softmax, scipy.special.log_softmax.
    """
    return _among("log_softmax", _log_softmax, x, axis, where, implementation, nothing=-jnp.inf)


@api
def log_softmax_backward(
    x: ArrayLike, dy: ArrayLike, axis: int | Sequence[int] = -1, *, implementation: Implementation = None
) -> Array:
    """The gradient of `log_softmax`: dx = dy - softmax(x) sum(dy).

    Args:
        x: floats, as in `log_softmax`.
        dy: the cotangent of y, of x's shape and dtype.
        axis: as in `log_softmax`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _gradient("log_softmax_backward", _log_softmax, x, dy, axis, implementation)


def _among(op, bound, x, axis, where, implementation, nothing):
    x = checks.floats(op, "x", x)
    axes = checks.axes(op, "x", x, axis)
    return among(op, bound, x, where, nothing=nothing, axes=axes, implementation=implementation)


def _gradient(op, bound, x, dy, axis, implementation):
    x, dy = checks.floats(op, "x", x), checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, x.shape, "that of x")
    axes = checks.axes(op, "x", x, axis)
    lse, rest = logsumexp(x, axes, return_residuals=True, implementation=implementation)
    return bound.vjp(x, lse, rest, dy, axes=axes, implementation=implementation)


def _slope(p, t, axes, over):
    return weighted(p, from_mean(p, t, axes, over))


_softmax = declared(
    "softmax",
    softmax,
    lambda shifted, powers, total: powers / total,
    tangent=_slope,
    backward=_slope,
    targets=("softmax_backward", "softmax_backward"),
)
_log_softmax = declared(
    "log_softmax",
    log_softmax,
    lambda shifted, powers, total: shifted - jnp.log(total),
    tangent=from_mean,
    backward=lambda p, dy, axes, over: dy - weighted(p, total(dy, axes, over)),
    targets=("log_softmax_tangent", "log_softmax_backward"),
)
