"""1.5-entmax: between softmax and sparsemax."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core.api import api
from .._core.types import Implementation
from ._projection import declared, differences, gradient, prefixes, projected, root, where_finite


@api
def entmax15(
    x: ArrayLike, axis: int = -1, *, where: ArrayLike | None = None, implementation: Implementation = None
) -> Array:
    """1.5-entmax: probabilities of each slice, between softmax and sparsemax, of which small ones are 0.

    Formula:
        y = max(x / 2 - t, 0)^2, with the number t at which the y of a slice add up to 1.
        dx = w (dy - sum(w dy) / sum(w)) with w = sqrt(y).

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

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The kernel finds t by Newton's method, without
        a sort, and reads x once. It adds in a fixed order: results are the same bits every time.

    Source: Peters et al., Sparse Sequence-to-Sequence Models (2019); entmax.entmax15.
    """
    return projected("entmax15", _entmax15, x, axis, where, implementation)


@api
def entmax15_backward(y: ArrayLike, dy: ArrayLike, axis: int = -1, *, implementation: Implementation = None) -> Array:
    """The gradient of `entmax15`: dx = w (dy - sum(w dy) / sum(w)) with w = sqrt(y).

    Args:
        y: floats, the result of `entmax15`.
        dy: the cotangent of y, of its shape and dtype.
        axis: as in `entmax15`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return gradient("entmax15_backward", _entmax15, y, dy, axis, implementation)


def _reference(x, axis):
    """The support is the first k sorted elements, for the largest k of which the last is above the threshold of all k."""
    largest, z, ordered = differences(x, axis, 0.5)
    rank, above = prefixes(ordered, axis)
    mean, square = (jnp.cumsum(a, axis) / rank for a in (above, above**2))
    inside = mean - jnp.sqrt(jnp.maximum(1 / rank - (square - mean**2), 0)) < above
    over = lambda a: jnp.where(inside, a, 0).sum(axis, keepdims=True)
    count = over(jnp.ones_like(z))
    mean = over(ordered) / count
    threshold = mean - jnp.sqrt(jnp.maximum(1 - over((ordered - mean) ** 2), 0) / count)
    y = jnp.where(z > -1, jnp.maximum(z - threshold, 0) ** 2, 0 * z)  # else rounding may add elements that are 1 below
    return where_finite(largest, y, x.dtype)


_entmax15 = declared("entmax15", entmax15, _reference, root)
