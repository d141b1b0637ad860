"""Channels moved into pixels and back, and among each other: axes that are split, put into another order, and joined."""

import math

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from ._family import Way, case, operand, rearrangement
from ._map import Axis, Map, strides
from ._partition import whole_along

_RANK = 3  # channels, rows and columns


@api
def pixel_shuffle(x: ArrayLike, upscale_factor: int, *, implementation: Implementation = None) -> Array:
    """Images of r times the rows and columns, whose pixels were channels.

    Formula:
        y[..., c, r h + i, r w + j] = x[..., r r c + r i + j, h, w] with r = upscale_factor; dx is pixel_unshuffle of dy.

    Args:
        x: array [..., C r r, H, W]: floats, integers, bool or complex.
        upscale_factor: r, a static integer of at least 1.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., C, H r, W r] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: values are moved as they are.

    Source: torch.nn.functional.pixel_shuffle.
    """
    x, r = _pixels("pixel_shuffle", "x", x, upscale_factor, True)
    return _shuffle(x, r=r, implementation=implementation)


@api
def pixel_unshuffle(x: ArrayLike, downscale_factor: int, *, implementation: Implementation = None) -> Array:
    """Images of one row and column for r, whose other pixels became channels.

    Formula:
        y[..., r r c + r i + j, h, w] = x[..., c, r h + i, r w + j] with r = downscale_factor; dx is pixel_shuffle of dy.

    Args:
        x: array [..., C, H r, W r]: floats, integers, bool or complex.
        downscale_factor: r, a static integer of at least 1.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., C r r, H, W] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: values are moved as they are.

    Source: torch.nn.functional.pixel_unshuffle.
    """
    x, r = _pixels("pixel_unshuffle", "x", x, downscale_factor, False)
    return _unshuffle(x, r=r, implementation=implementation)


@api
def pixel_shuffle_backward(dy: ArrayLike, upscale_factor: int, *, implementation: Implementation = None) -> Array:
    """The gradient of `pixel_shuffle`: `pixel_unshuffle` of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        upscale_factor: as for `pixel_shuffle`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    dy, r = _pixels("pixel_shuffle_backward", "dy", dy, upscale_factor, False, checks.INEXACT)
    return _shuffle.vjp(dy, r=r, implementation=implementation)


@api
def pixel_unshuffle_backward(dy: ArrayLike, downscale_factor: int, *, implementation: Implementation = None) -> Array:
    """The gradient of `pixel_unshuffle`: `pixel_shuffle` of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        downscale_factor: as for `pixel_unshuffle`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    dy, r = _pixels("pixel_unshuffle_backward", "dy", dy, downscale_factor, True, checks.INEXACT)
    return _unshuffle.vjp(dy, r=r, implementation=implementation)


@api
def channel_shuffle(x: ArrayLike, groups: int, *, axis: int = -3, implementation: Implementation = None) -> Array:
    """Interleave the channels of several groups: the first of each, the second of each, and so on.

    Formula:
        y[..., groups i + g, ...] = x[..., g C / groups + i, ...] along an axis of C channels; dx is dy with them put back.

    Args:
        x: array with an axis of channels: floats, integers, bool or complex.
        groups: a static integer that divides the number of channels.
        axis: that of the channels: by default the one before rows and columns.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: values are moved as they are.

    Source: torch.nn.functional.channel_shuffle, which takes axis 1.
    """
    op = "channel_shuffle"
    x = operand(op, "x", x)
    return _channels(x, **_channel_params(op, "x", x, groups, axis), implementation=implementation)


@api
def channel_shuffle_backward(
    dy: ArrayLike, groups: int, *, axis: int = -3, implementation: Implementation = None
) -> Array:
    """The gradient of `channel_shuffle`: dy with its channels put back.

    Args:
        dy: floats or complex, the cotangent of the result.
        groups, axis: as for `channel_shuffle`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "channel_shuffle_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    return _channels.vjp(dy, **_channel_params(op, "dy", dy, groups, axis), implementation=implementation)


def _pixels(op, name, x, factor, grows, dtypes=checks.EVERY):
    """x and the factor, by which the pixels grow, or the channels."""
    x = operand(op, name, x, dtypes)
    argument = "upscale_factor" if "unshuffle" not in op else "downscale_factor"
    r = checks.integer(op, argument, factor, 1)
    if x.ndim < _RANK:
        raise ValueError(f"{op}: {name} must have channels, rows and columns, got shape {tuple(x.shape)}")
    if grows and x.shape[-3] % r**2:
        raise ValueError(f"{op}: {argument} squared must divide the {x.shape[-3]} channels of {name}, got {r}")
    if not grows and (x.shape[-1] % r or x.shape[-2] % r):
        raise ValueError(f"{op}: {argument} must divide the rows and columns of {name}, {x.shape[-2:]}, got {r}")
    return x, r


def _channel_params(op, name, x, groups, axis):
    axis = checks.axis(op, name, x, axis)
    groups = checks.integer(op, "groups", groups, 1)
    if x.shape[axis] % groups:
        raise ValueError(f"{op}: groups must divide the {x.shape[axis]} channels of {name}, got {groups}")
    return dict(axis=axis - x.ndim, groups=groups)


# ---------------------------------------------------------------------------------------------------------------------
# Maps, and references: dimensions are split, [channels, r, r, rows, columns] or [channels, rows, r, columns, r]


def _reordered(sizes, order, shape):
    steps = strides(sizes)
    return Map(tuple(Axis(sizes[i], steps[i]) for i in order)), shape


def _shuffle_map(shape, *, r):
    channels, rows, columns = shape
    return _reordered(
        (channels // r**2, r, r, rows, columns), (0, 3, 1, 4, 2), (channels // r**2, rows * r, columns * r)
    )


def _unshuffle_map(shape, *, r):
    channels, rows, columns = shape
    return _reordered(
        (channels, rows // r, r, columns // r, r), (0, 2, 4, 1, 3), (channels * r**2, rows // r, columns // r)
    )


def _channel_map(shape, *, axis, groups):
    channels, *rest = shape
    return _reordered((groups, channels // groups, math.prod(rest)), (1, 0, 2), shape)


def _groups_back(channels, groups):
    return max(channels // groups, 1)  # of no channels too


def _channel_map_back(shape, *, axis, groups):
    return _channel_map(shape, axis=axis, groups=_groups_back(shape[0], groups))


def _shuffle_reference(x, *, r):
    *batch, channels, rows, columns = x.shape
    b, split = len(batch), x.reshape(*batch, channels // r**2, r, r, rows, columns)
    moved = split.transpose(*range(b), b, b + 3, b + 1, b + 4, b + 2)
    return moved.reshape(*batch, channels // r**2, rows * r, columns * r)


def _unshuffle_reference(x, *, r):
    *batch, channels, rows, columns = x.shape
    b, split = len(batch), x.reshape(*batch, channels, rows // r, r, columns // r, r)
    moved = split.transpose(*range(b), b, b + 2, b + 4, b + 1, b + 3)
    return moved.reshape(*batch, channels * r**2, rows // r, columns // r)


def _channel_reference(x, *, axis, groups):
    axis += x.ndim
    split = x.reshape(*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])
    return split.swapaxes(axis, axis + 1).reshape(x.shape)


def _channel_reference_back(x, *, axis, groups):
    return _channel_reference(x, axis=axis, groups=_groups_back(x.shape[axis], groups))


def _pixel_op(public, cases, forward, backward):
    return rearrangement(
        public.__name__,
        public=public,
        cases=cases,
        rank_of=lambda params: _RANK,
        forward=forward,
        backward=backward,
        cut=whole_along(lambda params: (-1, -2, -3)),
    )


_there, _back = Way(_shuffle_map, _shuffle_reference), Way(_unshuffle_map, _unshuffle_reference)
_shuffle = _pixel_op(
    pixel_shuffle,
    (
        case("images", (2, 8, 3, 5), upscale_factor=2),
        case("one image", (9, 4, 2), upscale_factor=3),
        case("wide", (2, 3, 4, 2, 8), upscale_factor=2),
    ),
    _there, _back,
)  # fmt: skip
_unshuffle = _pixel_op(
    pixel_unshuffle,
    (
        case("images", (2, 2, 6, 10), downscale_factor=2),
        case("one image", (3, 9, 6), downscale_factor=3),
        case("wide", (2, 3, 2, 4, 16), downscale_factor=2),
    ),
    _back, _there,
)  # fmt: skip
_channels = rearrangement(
    "channel_shuffle",
    public=channel_shuffle,
    cases=(
        case("images", (2, 6, 3, 5), groups=2),
        case("channels last", (4, 12), groups=3, axis=-1),
        case("wide", (2, 4, 3, 16), groups=2, axis=1),
    ),
    rank_of=lambda params: -params["axis"],
    forward=Way(_channel_map, _channel_reference),
    backward=Way(_channel_map_back, _channel_reference_back),
    cut=whole_along(lambda params: (params["axis"],)),
)
