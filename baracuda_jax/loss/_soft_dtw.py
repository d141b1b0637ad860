"""Soft dynamic time warping: a distance of two series, however they are aligned, with a gradient."""

import math

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide_dtype
from . import _soft_dtw_kernels, _soft_dtw_reference
from ._alignments import lengths
from ._arguments import INDEX, number


@api
def soft_dtw(
    x: ArrayLike,
    row_lengths: ArrayLike | None = None,
    column_lengths: ArrayLike | None = None,
    *,
    gamma: float = 1.0,
    implementation: Implementation = None,
) -> Array:
    """Soft dynamic time warping: the soft minimum of the cost of aligning two series.

    Formula:
        y = -gamma log(sum over the paths of exp(-(sum over a path's elements of x[n, m]) / gamma)). A path leads from the
        first element of the matrix to the last, by steps to the next row, the next column or both.
        dx[n, m] = e[n, m] dy, e being the expected alignment: the probability that a path has an element, where paths
        have probabilities in proportion to what is summed.

    Args:
        x: floats [..., N, M], the cost of aligning element n of one series to element m of the other, such as the squared
            distance.
        row_lengths: integers [...], how many rows of each matrix count, at most N; None for all. Derivatives in the others
            are 0, whatever these have.
        column_lengths: integers [...], how many columns of each matrix count, at most M; None for all.
        gamma: static number above 0. For small ones the result is near the minimum, that of dynamic time warping.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [...] of x's dtype. It may be negative. That of two series without elements is 0, and that of one is
        infinity, with gradient 0, as where each path has an element that costs infinity. NaN propagates, as which -infinity
        counts.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32, and the result is rounded once. Sums over paths are floats with
        an exponent of their own, which never underflow. Everything is added in a fixed order: results are the same bits
        every time, and so are gradients.

    Source: tslearn.metrics.soft_dtw; Cuturi and Blondel, Soft-DTW: a Differentiable Loss Function for Time-Series (2017).
    """
    arrays, gamma, _ = _arguments("soft_dtw", x, row_lengths, column_lengths, gamma)
    y = _SOFT_DTW(*arrays, gamma=gamma, implementation=implementation)
    return _rounded(y, dtype=arrays[0].dtype.name)


@api
def soft_dtw_backward(
    x: ArrayLike,
    dy: ArrayLike,
    row_lengths: ArrayLike | None = None,
    column_lengths: ArrayLike | None = None,
    *,
    gamma: float = 1.0,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `soft_dtw`: dx[n, m] = e[n, m] dy, the expected alignment times dy.

    Args:
        x, row_lengths, column_lengths, gamma: as in `soft_dtw`.
        dy: floats [...] of x's dtype, the cotangent of each result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [..., N, M].
    """
    op = "soft_dtw_backward"
    arrays, gamma, is_turned = _arguments(op, x, row_lengths, column_lengths, gamma)
    x, dy = arrays[0], checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, x.shape[:-2], "one for each matrix")
    _, *saved = _SOFT_DTW(*arrays, save=True, gamma=gamma, implementation=implementation)
    dy = dy.astype(wide_dtype(x.dtype))
    dx = _SOFT_DTW.vjp(*arrays, *saved, dy, gamma=gamma, implementation=implementation)
    return dx.mT if is_turned else dx


def _arguments(op, x, row_lengths, column_lengths, gamma):
    """Of the matrix, or of its transpose where that has columns that a kernel has states for."""
    x = checks.floats(op, "x", x)
    if x.ndim < 2:
        raise ValueError(f"{op}: x must have two dimensions or more, rows and columns, got shape {tuple(x.shape)}")
    *batch, rows, columns = x.shape
    row_lengths = lengths(op, "row_lengths", row_lengths, rows, tuple(batch))
    column_lengths = lengths(op, "column_lengths", column_lengths, columns, tuple(batch))
    gamma = number(op, "gamma", gamma, above=0)
    if gamma == math.inf:
        raise ValueError(f"{op}: gamma must be finite, got {gamma!r}")
    if columns > max(rows, _soft_dtw_kernels.MOST_COLUMNS):
        return (x.mT, column_lengths, row_lengths), gamma, True
    return (x, row_lengths, column_lengths), gamma, False


@compiled("dtype")
def _rounded(y, *, dtype):
    return y.astype(dtype)


def _case(name, batch, rows, columns, is_full=False, **kwargs):
    """Matrices of several sizes, of which the last has no columns."""

    def draw(rng):
        cost = np.abs(rng.standard_normal((*batch, rows, columns)))
        if is_full:
            return (cost,)
        row_lengths = rng.integers(1, rows + 1, batch).astype(np.int32)
        column_lengths = rng.integers(1, columns + 1, batch).astype(np.int32)
        column_lengths[-1] = 0
        return cost, row_lengths, column_lengths

    return Case(name, draw, kwargs)


_SOFT_DTW = declare(
    "soft_dtw",
    family="loss",
    category=OpCategory.LOSS,
    public=soft_dtw,
    dtypes=checks.FLOATS,
    cases=(
        _case("lengths", (4,), 6, 5),
        _case("a small gamma", (2,), 3, 7, is_full=True, gamma=0.25),
        _case("one matrix", (), 5, 5, is_full=True, gamma=2),
    ),
    operands=("x", "row_lengths", "column_lengths"),
    results=("y", "sums", "total"),
    differentiable=("x",),
    constant={name: INDEX for name in ("row_lengths", "column_lengths")},
    residuals=("x", "row_lengths", "column_lengths", "sums", "total"),
    batched=as_they_are,
    cut="a path goes through all rows and columns of a matrix",
    forward=Body(_soft_dtw_reference.forward, _soft_dtw_kernels.forward),
    tangent=Body(_soft_dtw_reference.tangent, _soft_dtw_kernels.tangent),
    backward=Body(_soft_dtw_reference.backward, _soft_dtw_kernels.backward),
    kernels={
        "forward": ("soft_dtw",),
        "tangent": ("soft_dtw_backward",),
        "backward": ("soft_dtw_backward",),
    },
)
