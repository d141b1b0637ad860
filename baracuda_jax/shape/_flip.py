"""The order of elements turned round along axes. Its gradient is itself."""

from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Axes, Implementation
from ._family import Way, axes_of, case, operand, rearrangement
from ._map import Axis, Map, strides
from ._partition import whole_along


@api
def flip(x: ArrayLike, axis: Axes = None, *, implementation: Implementation = None) -> Array:
    """Reverse the elements of x along axes.

    Formula:
        y[..., i, ...] = x[..., n - 1 - i, ...] along each of the axes, of n elements; dx is dy turned round.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        axis: a static integer, or several, each axis once; None for all.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it.

    Precision: values are moved as they are.

    Source: jax.numpy.flip; torch.flip.
    """
    x = operand("flip", "x", x)
    return _flip(x, axes=axes_of("flip", x, axis), implementation=implementation)


@api
def flip_backward(dy: ArrayLike, axis: Axes = None, *, implementation: Implementation = None) -> Array:
    """The gradient of `flip`: dy turned round.

    Args:
        dy: floats or complex, the cotangent of the result.
        axis: as for `flip`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "flip_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    return _flip.vjp(dy, axes=axes_of(op, dy, axis), implementation=implementation)


def _map(shape, *, axes):
    turned = [i - len(shape) in axes for i in range(len(shape))]
    steps = [-stride if is_turned else stride for stride, is_turned in zip(strides(shape), turned, strict=True)]
    base = sum((n - 1) * -step for n, step in zip(shape, steps, strict=True) if step < 0)
    return Map(tuple(map(Axis, shape, steps)), base=base if 0 not in shape else 0), shape


_way = Way(_map, lambda x, *, axes: lax.rev(x, [axis + x.ndim for axis in axes]))
_flip = rearrangement(
    "flip",
    public=flip,
    cases=(
        case("rows", (5, 7), axis=-1),
        case("columns", (6, 8), axis=0),
        case("all", (3, 4, 5)),
        case("middle", (2, 9, 4), axis=1),
        case("ends", (3, 2, 16), axis=(0, 2)),
        case("vector", (40,)),
    ),
    rank_of=lambda params: max((-axis for axis in params["axes"]), default=0),
    forward=_way,
    backward=_way,
    cut=whole_along(lambda params: params["axes"]),
)
