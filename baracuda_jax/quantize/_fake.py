"""Quantized and dequantized at once, with a gradient: training for quantization."""

from typing import Literal

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, declare
from .._core.types import Implementation
from . import _kernels as k
from ._arguments import check_range, granularity, scales
from ._family import BY_ELEMENT, FAMILY, normal, random_scale, random_zero
from ._granularity import compact, expanded, sum_to
from ._quantize import STRAIGHT_THROUGH

_KINDS = ("straight_through", "lsq")


@api
def fake_quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    qmin: int = -128,
    qmax: int = 127,
    *,
    axis: int | None = None,
    group_size: int | None = None,
    gradient: Literal["straight_through", "lsq"] = "straight_through",
    implementation: Implementation = None,
) -> Array:
    """Quantize and dequantize x: what a network computes with quantized values.

    Formula:
        y = (clamp(round(x / scale) + zero_point, qmin, qmax) - zero_point) * scale
        dx = dy where the code is not clamped, else 0
        and with gradient="lsq" also, summed over the elements that share a scale,
        dscale = dy * (round(x / scale) - x / scale) where the code is not clamped, else dy * (code - zero_point)
        dzero_point = 0 where the code is not clamped, else -dy * scale

    Args:
        x: floats [...].
        scale: floats: a scalar, or [channels] with `axis`, or x's shape with last dimension / group_size as the last size
            with `group_size`.
        zero_point: integers of the shape of scale, None for 0; with gradient="lsq" floats too, which are rounded.
        qmin, qmax: static integers, the range of the quantized values.
        axis: static, the dimension of channels; None for one scale.
        group_size: static, the number of neighbors along the last dimension that share a scale; it must divide it.
        gradient: "straight_through", with none for scale and zero_point, or "lsq".
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        Floats of x's shape and dtype. NaN becomes 0; an infinite x saturates.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32, or in float64 for float64, and rounded once.

    Source: torch.fake_quantize_per_tensor_affine and _per_channel_affine; Esser et al., Learned step size quantization
    (2020); Bhalgat et al., LSQ+ (2020).
    """
    op = "fake_quantize"
    operands, params = _arguments(op, x, scale, zero_point, qmin, qmax, axis, group_size, gradient)
    which = _straight_through if gradient == "straight_through" else _learned
    return which(*operands, **params, implementation=implementation)


@api
def fake_quantize_backward(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    qmin: int = -128,
    qmax: int = 127,
    *,
    axis: int | None = None,
    group_size: int | None = None,
    gradient: Literal["straight_through", "lsq"] = "straight_through",
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """The gradient of `fake_quantize`: see its formula.

    Args:
        x, scale, zero_point, qmin, qmax, axis, group_size, gradient, implementation: as for `fake_quantize`.
        dy: floats of x's shape and dtype, the cotangent of the result.

    Returns:
        The cotangent of x, or with gradient="lsq" those of (x, scale, zero_point).
    """
    op = "fake_quantize_backward"
    operands, params = _arguments(op, x, scale, zero_point, qmin, qmax, axis, group_size, gradient)
    dy = checks.array(op, "dy", dy)
    checks.shape(op, "dy", dy, operands[0].shape, "that of x")
    checks.same_dtype(op, "dy", dy, "x", operands[0])
    if gradient == "straight_through":
        return _straight_through.vjp(*operands, dy, **params, implementation=implementation)
    return tuple(_learned.vjp(*operands, dy, **params, implementation=implementation))


def _arguments(op, x, scale, zero_point, qmin, qmax, axis, group_size, gradient):
    x = checks.floats(op, "x", x)
    checks.choice(op, "gradient", gradient, _KINDS)
    if axis is not None and group_size is not None:
        raise ValueError(f"{op}: axis and group_size exclude each other, got {axis} and {group_size}")
    low, high = map(float, check_range(op, qmin, qmax))
    kind = "channel" if axis is not None else "group" if group_size is not None else "tensor"
    by = granularity(op, x, kind, axis=axis, group_size=group_size)
    params = {"by": by, "low": low, "high": high}
    if gradient == "lsq" and zero_point is not None and jnp.issubdtype(jnp.result_type(zero_point), jnp.floating):
        scale, _ = scales(op, x, x.dtype, by, scale, None, low, high)
        zero_point = checks.array(op, "zero_point", zero_point)
        checks.shape(op, "zero_point", zero_point, scale.shape, "that of scale")
        return (x, scale, zero_point.astype(scale.dtype)), params
    return (x, *scales(op, x, x.dtype, by, scale, zero_point, low, high)), params


def _body(fake_quantize):
    def body(x, scale, zero_point, *, by, low, high, save=False):
        y = fake_quantize(
            by.elements(x), by.per_channel(scale), _rounded(by.per_channel(zero_point)), low=low, high=high
        )
        return (y.reshape(x.shape),)

    return body


def _rounded(zero_point):
    return zero_point if zero_point.dtype == jnp.int32 else jnp.round(zero_point).astype(jnp.int32)


def _slopes(x, scale, zero_point, low, high):
    """dy / dscale and dy / dzero_point of each element."""
    wide, s = k.wide(x), expanded(scale, x)
    inside = k.inside_reference(x, scale, zero_point, low=low, high=high)
    code = k.clamped_reference(x, scale, zero_point, low=low, high=high)
    return code - k.offset(zero_point, code) - jnp.where(inside, wide / s, 0), jnp.where(inside, 0, -s)


def _learned_tangent(straight_through):
    def body(x, scale, zero_point, dx, dscale, dzero, *, by, low, high):
        elements, per_channel = (
            by.elements(x),
            [by.per_channel(a) for a in (scale, _rounded(zero_point), dscale, dzero)],
        )
        (of_x,) = straight_through(x, scale, _rounded(zero_point), dx, by=by, low=low, high=high)
        to_scale, to_zero = _slopes(elements, *per_channel[:2], low, high)
        more = to_scale * expanded(per_channel[2], elements) + to_zero * expanded(per_channel[3], elements).astype(
            to_zero.dtype
        )
        return (of_x + more.reshape(x.shape).astype(x.dtype),)

    return body


def _learned_backward(straight_through):
    def body(x, scale, zero_point, dy, *, by, low, high):
        (dx,) = straight_through(x, scale, _rounded(zero_point), dy, by=by, low=low, high=high)
        elements, zero = by.elements(x), _rounded(by.per_channel(zero_point))
        elements, change, per_channel, zero = compact(
            elements, k.wide(by.elements(dy)), expanded(by.per_channel(scale), elements), expanded(zero, elements)
        )
        to_scale, to_zero = _slopes(elements, per_channel, zero, low, high)
        of = lambda slope: sum_to(change * slope, per_channel).reshape(scale.shape).astype(scale.dtype)
        return dx, of(to_scale), of(to_zero)

    return body


_QUANTIZED = Body(_body(k.fake_quantize_reference), _body(k.fake_quantize))
_KERNELS = {"forward": ("fake_quantize",), "tangent": ("quantize_backward",), "backward": ("quantize_backward",)}


def _cases(**kwargs):
    scale, zero = random_scale, random_zero
    return (
        Case("tensor", lambda r: (normal(r, 4, 9), scale(r), zero(r)), kwargs),
        Case("channel", lambda r: (normal(r, 3, 5, 4), scale(r, 5), zero(r, 5)), {"axis": 1, **kwargs}),
        Case("group", lambda r: (normal(r, 3, 12), scale(r, 3, 3), zero(r, 3, 3)), {"group_size": 4, **kwargs}),
    )


_straight_through = declare(
    "fake_quantize",
    **FAMILY,
    cut=BY_ELEMENT,
    public=fake_quantize,
    operands=("x", "scale", "zero_point"),
    differentiable=("x",),
    constant=dict.fromkeys(("scale", "zero_point"), 'learned with gradient="lsq" alone'),
    residuals=("x", "scale", "zero_point"),
    cases=_cases(),
    surrogate=True,
    forward=_QUANTIZED,
    tangent=STRAIGHT_THROUGH,
    backward=STRAIGHT_THROUGH,
    kernels=_KERNELS,
)
_learned = declare(
    "fake_quantize_lsq",
    **FAMILY,
    cut=BY_ELEMENT,
    public=fake_quantize,
    operands=("x", "scale", "zero_point"),
    differentiable=("x", "scale", "zero_point"),
    residuals=("x", "scale", "zero_point"),
    cases=_cases(gradient="lsq"),
    surrogate=True,
    forward=_QUANTIZED,
    tangent=Body(_learned_tangent(STRAIGHT_THROUGH.reference), _learned_tangent(STRAIGHT_THROUGH.native)),
    backward=Body(_learned_backward(STRAIGHT_THROUGH.reference), _learned_backward(STRAIGHT_THROUGH.native)),
    kernels=_KERNELS,
)
