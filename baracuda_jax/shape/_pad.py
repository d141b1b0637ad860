"""Elements added before the first and after the last along axes, or removed there.

Outside of x there is a constant, or x again: mirrored, with or without its ends once more, its ends alone, or as it is. With
a constant the gradient is the other way round, dy without what was put on. Else each element of dx adds all elements of dy
that came from it."""

import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bytes, to_bytes
from .._core.op import Body, declare
from .._core.types import Implementation, PadWidth
from .._core.wide import wide
from ._family import OF_X, case, operand
from ._map import (
    CLAMP,
    CONSTANT,
    REFLECT,
    SYMMETRIC,
    WRAP,
    Axis,
    Map,
    Origin,
    Term,
    index_map,
    index_map_adjoint,
    strides,
)
from ._partition import whole_along

FOLDS = {"reflect": REFLECT, "symmetric": SYMMETRIC, "replicate": CLAMP, "circular": WRAP}
JAX_MODES = {"reflect": "reflect", "symmetric": "symmetric", "replicate": "edge", "circular": "wrap"}
ALIASES = {"edge": "replicate", "wrap": "circular"}
MODES = ("constant", *FOLDS, *ALIASES)


@api
def pad(
    x: ArrayLike,
    pad_width: PadWidth,
    mode: Literal["constant", "reflect", "symmetric", "replicate", "circular"] = "constant",
    constant_values: ArrayLike = 0,
    *,
    implementation: Implementation = None,
) -> Array:
    """Pad x with elements before its first and after its last, along its axes.

    Formula:
        y[i_1, ..., i_k] = x[f(i_1 - low_1), ..., f(i_k - low_k)], with n + low + high elements along an axis of n; where
        f(q) is q inside of x, and outside max(0, min(q, n - 1)) for "replicate", q mod n for "circular", and q mirrored as
        often as needed, at the first and the last element for "reflect", before and after them for "symmetric", which
        repeats them. For "constant", y is constant_values there.
        dx[j] = sum of dy over the elements that came from j.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        pad_width: static integers: one pair (low, high) for each axis; or one pair, or one number, for all. Below 0 that
            many elements are taken away.
        mode: "constant", "reflect", "symmetric", "replicate" or "circular"; the last two are also named "edge" and "wrap".
            With "circular" elements are taken away first: what is left goes round.
        constant_values: a static number, for mode "constant" alone.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it; ValueError for more than 6 padded axes,
            or 5 that are not padded with a constant, and for such of an axis without elements.

    Precision: values are moved as they are. The gradient's sums are formed in float32 for float16 and bfloat16, in the dtype
        itself for others, in a fixed order: results are the same bits every time.

    Source: jax.numpy.pad; torch.nn.functional.pad.
    """
    op = "pad"
    x = operand(op, "x", x)
    mode, widths = _mode(op, mode), _widths(op, x.shape, pad_width)
    if mode == "constant":
        return _pad(x, widths=widths, value=_value(op, constant_values, x.dtype), implementation=implementation)
    _check_constant(op, mode, constant_values)
    less, more = _parts(widths, mode)
    if less:
        x = _pad(x, widths=less, value=bytes(x.dtype.itemsize), implementation=implementation)
    _check_folds(op, x.shape, more, mode)
    return _pad_folded(x, widths=more, mode=mode, implementation=implementation)


@api
def pad_backward(
    dy: ArrayLike,
    pad_width: PadWidth,
    mode: Literal["constant", "reflect", "symmetric", "replicate", "circular"] = "constant",
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `pad`: dx[j] = sum of dy over the elements that came from j.

    Args:
        dy: floats or complex, the cotangent of the result.
        pad_width, mode: as for `pad`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "pad_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    mode, widths = _mode(op, mode), _widths(op, dy.shape, pad_width, -1)
    if mode == "constant":
        return _pad.vjp(dy, widths=widths, value=bytes(dy.dtype.itemsize), implementation=implementation)
    less, more = _parts(widths, mode)
    _check_folds(op, _grown(dy.shape, _turned(more)), more, mode)
    dx = _pad_folded.vjp(dy, widths=more, mode=mode, implementation=implementation)
    return _pad.vjp(dx, widths=less, value=bytes(dy.dtype.itemsize), implementation=implementation) if less else dx


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _mode(op, mode):
    return ALIASES.get(checks.choice(op, "mode", mode, MODES), mode)


def _widths(op, shape, pad_width, sign=1):
    """(low, high) of the last axes, from the first that is padded on; of an array of `shape`, or, with the sign -1, that
    became one of `shape`."""
    number = lambda name, n: checks.integer(op, name, n, -(2**62))
    is_list = lambda value: isinstance(value, tuple | list | np.ndarray) and np.ndim(value) != 0
    pairs = list(pad_width) if is_list(pad_width) else [(pad_width, pad_width)]
    if len(pairs) == 2 and not any(map(is_list, pairs)):
        pairs = [pairs]
    pairs = [pair if is_list(pair) else (pair, pair) for pair in pairs]
    if len(pairs) == 1:
        pairs = pairs * len(shape)
    if len(pairs) != len(shape) or any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"{op}: pad_width must be a number, a pair (low, high), or one for each of {len(shape)} axes, got {pad_width}"
        )
    pairs = tuple(tuple(number(f"pad_width[{i}][{j}]", n) for j, n in enumerate(pair)) for i, pair in enumerate(pairs))
    for i, (n, (low, high)) in enumerate(zip(shape, pairs, strict=True)):
        if n + sign * (low + high) < 0:
            raise ValueError(f"{op}: pad_width[{i}] must leave 0 elements or more of {n}, got {(low, high)}")
    stay = next((i for i, pair in enumerate(pairs) if pair != (0, 0)), len(pairs))
    return pairs[stay:]


def _value(op, value, dtype):
    """Its bytes: a static parameter that tells zeros apart, and is equal to itself."""
    if isinstance(value, jax.core.Tracer) or np.ndim(value) != 0 or isinstance(value, str) or value is None:
        raise TypeError(f"{op}: constant_values must be a static number, got {value!r}")
    value = np.asarray(value)
    if not np.can_cast(value.dtype, np.complex128) or (value.dtype.kind == "c" and dtype.kind != "c"):
        raise TypeError(f"{op}: constant_values must be a number for x of dtype {dtype.name}, got {value}")
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        if value.dtype.kind == "f" or not info.min <= value.item() <= info.max:
            raise ValueError(
                f"{op}: constant_values must be an integer in [{info.min}, {info.max}], for {dtype.name}, got {value}"
            )
    return to_bytes(value, dtype)


def _check_constant(op, mode, value):
    if not (isinstance(value, int | float) and value == 0):
        raise ValueError(f"{op}: constant_values must be left out with mode {mode!r}, got {value!r}")


def _parts(widths, mode):
    """What is taken away before, and what is put on. Only where the rest goes round is the order seen."""
    if mode != "circular" or min((n for pair in widths for n in pair), default=0) >= 0:
        return (), widths
    return tuple(tuple(tuple(bound(n, 0) for n in pair) for pair in widths) for bound in (min, max))


def _check_folds(op, shape, widths, mode):
    for n, (low, high) in zip(shape[len(shape) - len(widths) :], widths, strict=True):
        if n == 0 and low + high > 0:
            raise ValueError(
                f"{op}: x must have elements along axes that are padded with mode {mode!r}, got shape {tuple(shape)}"
            )


def _turned(widths):
    return tuple((-low, -high) for low, high in widths)


def _grown(shape, widths):
    lead = len(shape) - len(widths)
    return (*shape[:lead], *(n + low + high for n, (low, high) in zip(shape[lead:], widths, strict=True)))


# ---------------------------------------------------------------------------------------------------------------------
# Maps


def _map(shape, widths, fold):
    axes, terms, base = [], [], 0
    for n, stride, (low, high) in zip(shape, strides(shape), widths, strict=True):
        if low <= 0 and high <= 0:
            axes.append(Axis(n + low + high, stride))
            base -= low * stride
        else:
            axes.append(Axis(n + low + high, 0, len(terms), 1))
            terms.append(Term(fold, n, -low, stride))
    result = tuple(axis.size for axis in axes)
    return Map(tuple(axes), tuple(terms), base if math.prod(result) else 0), result


def _native(x, *, save=False, widths, value):
    lead = x.ndim - len(widths)
    of, shape = _map(x.shape[lead:], widths, CONSTANT)
    return [index_map("pad", x, lead, of, shape, value)]


def _reference(x, *, widths, value):
    none = ((0, 0),) * (x.ndim - len(widths))
    return (lax.pad(x, from_bytes(value, x.dtype), [(low, high, 0) for low, high in (*none, *widths)]),)


def _without(body):
    """dy without what was put on, and with zeros where elements were taken away."""
    return lambda dy, *, widths, value: body(dy, widths=_turned(widths), value=bytes(len(value)))


def _folded_native(x, *, save=False, widths, mode):
    lead = x.ndim - len(widths)
    of, shape = _map(x.shape[lead:], widths, FOLDS[mode])
    return [index_map("pad", x, lead, of, shape)]


def _folded_reference(x, *, widths, mode):
    if not widths:
        return (x,)
    lead = x.ndim - len(widths)
    more = [(max(low, 0), max(high, 0)) for low, high in widths]
    y = jnp.pad(x, [(0, 0)] * lead + more, JAX_MODES[mode])
    less = [(min(low, 0), min(high, 0), 0) for low, high in widths]
    return (lax.pad(y, np.zeros((), x.dtype), [(0, 0, 0)] * lead + less),)


def _folded_backward_reference(dy, *, widths, mode):
    x = jax.ShapeDtypeStruct(_grown(dy.shape, _turned(widths)), wide(dy).dtype)
    transposed = jax.linear_transpose(lambda x: _folded_reference(x, widths=widths, mode=mode)[0], x)
    return (transposed(wide(dy))[0].astype(dy.dtype),)


def _folded_backward_native(dy, *, widths, mode):
    lead = dy.ndim - len(widths)
    shape, axes, terms = dy.shape[lead:], [], []
    result = _grown(shape, _turned(widths))
    for n, m, stride, (low, high) in zip(result, shape, strides(shape), widths, strict=True):
        if (low, high) == (0, 0):
            axes.append(Axis(n, stride))
        else:
            axes.append(Axis(n, 0, len(terms)))
            # Where nothing was folded, elements that were taken away add nothing.
            fold = CONSTANT if low <= 0 and high <= 0 else FOLDS[mode]
            terms.append(Origin(fold, m, -low, stride))
    return [index_map_adjoint("pad", dy, lead, axes, terms, result)]


_pad = declare(
    "pad",
    **OF_X | dict(linear=lambda params: {**params, "value": bytes(len(params["value"]))}),
    public=pad,
    cases=(
        case("rows", (5, 7), pad_width=((0, 0), (2, 3))),
        case("all alike", (4, 5), pad_width=1, constant_values=2),
        case("columns", (6, 8), pad_width=((3, 0), (0, 0))),
        case("less", (7, 9), pad_width=((-2, 3), (1, -4))),
        case("middle", (2, 3, 4, 2), pad_width=((0, 0), (1, 2), (2, 1), (0, 0))),
        case("taken away", (9, 16), pad_width=((-1, -2), (-4, -4))),
    ),
    forward=Body(_reference, _native),
    backward=Body(_without(_reference), _without(_native)),
    cut=whole_along(lambda params: _padded(params["widths"])),
    kernels={"forward": ("move",), "backward": ("move",)},
    default="xla",
)


def _padded(widths):
    return [i - len(widths) for i, pair in enumerate(widths) if pair != (0, 0)]


_pad_folded = declare(
    "pad_folded",
    **OF_X,
    public=pad,
    cases=(
        case("reflect", (5, 7), pad_width=((0, 0), (2, 3)), mode="reflect"),
        case("replicate", (4, 5), pad_width=2, mode="replicate"),
        case("circular", (6, 8), pad_width=((3, 2), (0, 0)), mode="circular"),
        case("wide reflect", (3, 4), pad_width=((7, 8), (1, 5)), mode="reflect"),
        case("wide circular", (3, 4, 2), pad_width=((0, 0), (9, 6), (0, 0)), mode="circular"),
        case("less", (7, 9), pad_width=((-2, 3), (1, -4)), mode="replicate"),
        case("symmetric", (3, 4), pad_width=((7, 8), (-1, 5)), mode="symmetric"),
    ),
    forward=Body(_folded_reference, _folded_native),
    backward=Body(_folded_backward_reference, _folded_backward_native),
    cut=whole_along(lambda params: _padded(params["widths"])),
    kernels={"forward": ("move",), "backward": ("move_add",)},
)
