"""Sparsemax: the nearest point of the simplex."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core.api import api
from .._core.types import Implementation
from ._projection import declared, differences, gradient, prefixes, projected, support, where_finite


@api
def sparsemax(
    x: ArrayLike, axis: int = -1, *, where: ArrayLike | None = None, implementation: Implementation = None
) -> Array:
    """Sparsemax: the point of the simplex that is nearest to each slice, most of whose elements are often 0.

    Formula:
        y = max(x - t, 0), with the number t at which the y of a slice add up to 1. dx = dy - mean(dy) where y > 0, the mean
        being over these elements, and 0 elsewhere.

    Args:
        x: floats, of rank 1 or more.
        axis: static integer, the axis of a slice.
        where: bool array that broadcasts to x's shape: the elements that take part. The others give 0, whatever they are.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype. A slice of which nothing takes part is 0, and so is its gradient. A slice with NaN,
        with +infinity, or with -infinity alone is NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once; in float16, an element above 0 is at least the
        smallest number. The kernel finds t by Newton's method, without a sort, and reads x once. It adds in a fixed order:
        results are the same bits every time.

    Source: Martins and Astudillo, From Softmax to Sparsemax (2016); entmax.sparsemax; optax.projections.projection_simplex.
    """
    return projected("sparsemax", _sparsemax, x, axis, where, implementation)


@api
def sparsemax_backward(y: ArrayLike, dy: ArrayLike, axis: int = -1, *, implementation: Implementation = None) -> Array:
    """The gradient of `sparsemax`: dx = dy - mean(dy) where y > 0, the mean being over these elements, and 0 elsewhere.

    Args:
        y: floats, the result of `sparsemax`.
        dy: the cotangent of y, of its shape and dtype.
        axis: as in `sparsemax`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return gradient("sparsemax_backward", _sparsemax, y, dy, axis, implementation)


def _reference(x, axis):
    """The support is the first k sorted elements, for the largest k of which the last is above the threshold of all k."""
    largest, z, ordered = differences(x, axis, 1)
    rank, above = prefixes(ordered, axis)
    inside = 1 + rank * above > jnp.cumsum(above, axis)
    total, count = (jnp.where(inside, a, 0).sum(axis, keepdims=True) for a in (ordered, jnp.ones_like(ordered)))
    y = jnp.maximum(z - (total - 1) / count, 0)
    if x.dtype == jnp.float16:  # whose range alone is less than that of y
        y = jnp.where(y > 0, jnp.maximum(y, 2.0**-24), y)
    return where_finite(largest, y, x.dtype)


_sparsemax = declared("sparsemax", sparsemax, _reference, support)
