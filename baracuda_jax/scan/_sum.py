"""The cumulative sum."""

from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from ._arguments import arguments, backward_arguments, document
from ._family import CUMULATIVE, cases
from ._kernels import call
from ._partition import sum_by_totals
from ._references import prefixes


@api
@document(
    "y_i = x_0 + ... + x_i, and exclusive x_0 + ... + x_{i-1}; dx_i = dy_i + dy_{i+1} + ...",
    nothing="0",
    source="jax.lax.cumsum; torch.cumsum",
)
def cumsum(
    x: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Sum of what comes before each element along an axis."""
    x, params = arguments("cumsum", x, axis, reverse, exclusive, checks.NUMBERS)
    return _sum(x, **params, implementation=implementation)


@api
def cumsum_backward(
    dy: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `cumsum`: the cumulative sum of dy in the other direction.

    Args:
        dy: floats, the cotangent of the result.
        axis, reverse, exclusive: as in `cumsum`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    (dy,), params = backward_arguments("cumsum_backward", {"dy": dy}, axis, reverse, exclusive)
    return _sum.vjp(dy, **params, implementation=implementation)


def _native(x, *, save=False, **params):
    return call("cumsum", x, **params)


def _reference(x, **params):
    return (prefixes(lax.cumsum, x, 0, **params).astype(x.dtype),)


def _turned(body):
    return lambda dy, *, reverse, **params: body(dy, reverse=not reverse, **params)


_sum = declare(
    "cumsum",
    **CUMULATIVE,
    public=cumsum,
    dtypes=checks.NUMBERS,
    cases=cases(),
    linear=lambda params: params,
    cut=sum_by_totals,
    forward=Body(_reference, _native),
    backward=Body(_turned(_reference), _turned(_native)),
    kernels={"forward": ("cumsum",), "backward": ("cumsum",)},
)
