"""Permutation of axes. The gradient permutes them back."""

import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.partition import Partition
from .._core.types import Implementation, Integers
from ._family import Way, case, operand, rearrangement
from ._map import Axis, Map, strides


@api
def permute(x: ArrayLike, axes: Integers | None = None, *, implementation: Implementation = None) -> Array:
    """The axes of x in another order.

    Formula:
        axis k of y is axis axes[k] of x; dx is dy with its axes permuted back.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        axes: static integers, each axis of x once; None turns their order round.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it; ValueError for more than 9 axes, after
            those are merged that stay side by side.

    Precision: values are moved as they are.

    Source: jax.numpy.transpose; torch.permute.
    """
    x = operand("permute", "x", x)
    return _permute(x, axes=_axes("permute", x, axes), implementation=implementation)


transpose = permute


@api
def permute_backward(dy: ArrayLike, axes: Integers | None = None, *, implementation: Implementation = None) -> Array:
    """The gradient of `permute`: dy with its axes permuted back.

    Args:
        dy: floats or complex, the cotangent of the result.
        axes: as for `permute`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "permute_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    return _permute.vjp(dy, axes=_axes(op, dy, axes), implementation=implementation)


def _axes(op, x, axes):
    """Of the last dimensions alone: leading ones that stay are batches."""
    if axes is None:
        axes = tuple(reversed(range(x.ndim)))
    if not isinstance(axes, tuple | list | np.ndarray):
        raise TypeError(f"{op}: axes must be a tuple of integers, got {axes!r}")
    positions = [checks.axis(op, "x", x, axis, f"axes[{i}]") for i, axis in enumerate(axes)]
    if sorted(positions) != list(range(x.ndim)):
        raise ValueError(f"{op}: axes must name each of the {x.ndim} axes of x once, got {tuple(axes)}")
    stay = next((i for i, position in enumerate(positions) if position != i), x.ndim)
    return tuple(position - x.ndim for position in positions[stay:])


def _map(shape, *, axes):
    steps = strides(shape)
    return Map(tuple(Axis(shape[axis], steps[axis]) for axis in axes)), tuple(shape[axis] for axis in axes)


def _inverse(params):
    axes = params["axes"]
    return {"axes": tuple(axes.index(i) - len(axes) for i in range(-len(axes), 0))}


def _reference(x, *, axes):
    lead = x.ndim - len(axes)
    return lax.transpose(x, (*range(lead), *(axis + x.ndim for axis in axes)))


def _labels(names, types, params):
    """A dimension is cut alike before and after."""
    axes = params["axes"]

    def of(name, rank):
        moved = axes if name == "y" else range(-len(axes), 0)
        return (*(f"d{i}" for i in range(rank, len(axes), -1)), *(f"d{-axis}" for axis in moved))

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


_way = Way(_map, _reference)
_permute = rearrangement(
    "permute",
    public=permute,
    cases=(
        case("matrix", (5, 7)),
        case("last two", (3, 20, 33), axes=(0, 2, 1)),
        case("channels last", (2, 3, 4, 5), axes=(0, 2, 3, 1)),
        case("any", (2, 3, 4, 5, 2), axes=(3, -1, 0, 2, 1)),
        case("blocks", (4, 5, 16), axes=(1, 0, 2)),
    ),
    rank_of=lambda params: len(params["axes"]),
    forward=_way,
    backward=_way.turned(_inverse),
    cut=Partition(_labels),
)
