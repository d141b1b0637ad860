"""Arrays of one axis, spread over others: the coordinates of a grid."""

import math

import jax
import jax.numpy as jnp

from .._core import checks
from .._core.op import Body, declare
from .._core.wide import wide
from ._family import OF_X, case, operand, sizes
from ._partition import whole_behind_batches
from ._repeat import copies, sum_of_copies


def meshgrid(*xs, indexing="xy", implementation=None):
    """The coordinates of the points of a grid, from those along each axis: each `spread` over the grid.

    Args:
        xs: arrays of rank 1, or numbers: floats, integers, bool or complex.
        indexing: "ij", where axis k of the grid is that of xs[k], or "xy", where the first two axes are exchanged.
        implementation: "native" (our kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        List of as many arrays as xs, each of its x's dtype and of the shape of the grid.
    """
    op = "meshgrid"
    checks.choice(op, "indexing", indexing, ("xy", "ij"))
    xs = [operand(op, f"xs[{i}]", x) for i, x in enumerate(xs)]
    for i, x in enumerate(xs):
        if x.ndim > 1:
            raise ValueError(f"{op}: xs[{i}] must have at most one dimension, got shape {tuple(x.shape)}")
    places = list(range(len(xs)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    shape = tuple(xs[place].size for place in places)
    return [
        spread(x.reshape(-1), shape, place, implementation=implementation) for x, place in zip(xs, places, strict=True)
    ]


def spread(x, shape, axis, *, implementation=None):
    """x along one axis of an array, and copies of it along the others.

    Formula:
        y[i_1, ..., i_k] = x[i_axis]; dx[i] = sum of dy over all cells with i_axis = i.

    Args:
        x: array of rank 1: floats, integers, bool or complex.
        shape: of the result, static integers.
        axis: the one of the result that is x's, a static integer.
        implementation: "native" (our kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [*shape] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: values are moved as they are. The gradient's sums are formed in float32 for float16 and bfloat16, in the dtype
        itself for others, in an order that depends on the shapes alone: the same bits every time.

    Source: jax.lax.broadcast_in_dim; jax.numpy.meshgrid and torch.meshgrid, which do it for each axis of a grid.
    """
    op = "spread"
    x = operand(op, "x", x)
    shape = sizes(op, shape)
    axis = checks.axis(op, "the result", jax.ShapeDtypeStruct(shape, x.dtype), axis)
    checks.shape(op, "x", x, shape[axis : axis + 1], f"the size of axis {axis} of shape {shape}")
    return _spread(x, shape=shape, axis=axis, implementation=implementation)


def spread_backward(dy, axis, *, implementation=None):
    """The gradient of `spread`: the sum of dy over all axes but one.

    Args:
        dy: floats or complex, the cotangent of the result.
        axis: as for `spread`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "spread_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    return _spread.vjp(dy, shape=tuple(dy.shape), axis=checks.axis(op, "dy", dy, axis), implementation=implementation)


def _reference(x, *, shape, axis):
    *batch, n = x.shape
    spread = x.reshape(*batch, *(1,) * axis, n, *(1,) * (len(shape) - axis - 1))
    return (jnp.broadcast_to(spread, (*batch, *shape)),)


def _backward_reference(dy, *, shape, axis):
    lead = dy.ndim - len(shape)
    others = [lead + i for i in range(len(shape)) if i != axis]
    return (wide(dy).sum(others).astype(dy.dtype),)


def _tiled(shape, axis):
    """The grid as copies of an array [1, n, 1]."""
    return dict(shape=(1, shape[axis], 1), repeats=(math.prod(shape[:axis]), 1, math.prod(shape[axis + 1 :])))


def _native(x, *, save=False, shape, axis):
    *batch, n = x.shape
    return [copies(x.reshape(*batch, 1, n, 1), **_tiled(shape, axis)).reshape(*batch, *shape)]


def _backward_native(dy, *, shape, axis):
    batch, params = dy.shape[: dy.ndim - len(shape)], _tiled(shape, axis)
    grid = [n * r for n, r in zip(params["shape"], params["repeats"], strict=True)]
    return [sum_of_copies(dy.reshape(*batch, *grid), **params).reshape(*batch, shape[axis])]


_spread = declare(
    "spread",
    **OF_X,
    public=spread,
    cases=(
        case("plane", (5,), shape=(5, 7), axis=0),
        case("last", (8,), shape=(3, 8), axis=1),
        case("space", (4,), shape=(3, 4, 5), axis=1),
        case("copies", (6,), shape=(2, 3, 6), axis=-1),
    ),
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    cut=whole_behind_batches(lambda params: (1, len(params["shape"]))),
    kernels={"forward": ("repeat",), "backward": ("repeat_backward",)},
    default="xla",
)
