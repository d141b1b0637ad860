"""Codes to floats."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import F, Implementation
from . import _kernels as k
from ._arguments import CODES, granularity, scales
from ._family import BY_CELL, FAMILY, SIGNATURES, cases, float_codes
from ._granularity import beside, compact, sum_to

_DOC = """Floats from codes, with a scale and a zero point per {kind}.

    Formula:
        y = (codes - zero_point) * scale

    Args:
        codes: int8, uint8, int4, uint4, float8_e4m3fn, float8_e5m2, or floats of the result's dtype [...].
        scale: floats, {shape}.
        zero_point: integers of the shape of scale; None for 0.
{more}        dtype: that of the result, float32, float64, float16 or bfloat16; by default that of codes which are floats of
            such a dtype, else float32.
        implementation: "native" (our kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        The floats, shaped as the codes. They are differentiable in scale, and in the codes where these are floats.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32, or in float64 for float64, and rounded once.

    Source: torch.dequantize.
    """

_BACKWARD_DOC = """The gradients of `{name}`: dcodes = dy * scale, dscale = the sum of dy * (codes - zero_point).

    Args:
        codes, scale, zero_point{names}, implementation: as for `{name}`.
        dy: floats shaped as the codes, the cotangent of the result.

    Returns:
        (dcodes, dscale): the cotangents of the codes, a float of dy's dtype even where these are integers, and of scale.
    """


def _reference(codes, scale, zero_point, *, by, dtype):
    y = k.dequantize_reference(by.cells(codes), by.per_channel(scale), by.per_channel(zero_point), dtype)
    return (y.reshape(codes.shape),)


def _native(codes, scale, zero_point, *, save=False, by, dtype):
    cells = by.cells(codes, whole_rows=codes.dtype.name in ("int4", "uint4"))
    return (k.dequantize(cells, by.per_channel(scale), by.per_channel(zero_point), dtype).reshape(codes.shape),)


def _tangent(dequantize):
    def body(codes, scale, zero_point, dcodes, dscale, *, by, dtype):
        (of_codes,) = dequantize(dcodes, scale, jnp.zeros_like(zero_point), by=by, dtype=dtype)
        (of_scale,) = dequantize(codes, dscale, zero_point, by=by, dtype=dtype)
        return (of_codes + of_scale,)

    return body


def _backward(dequantize):
    def body(codes, scale, zero_point, dy, *, by, dtype):
        (dcodes,) = dequantize(dy, scale, jnp.zeros_like(zero_point), by=by, dtype=dtype)
        cells, change = by.cells(codes).astype(scale.dtype), by.cells(dy).astype(scale.dtype)
        per_channel, zero = beside(by.per_channel(scale), cells), k.offset(by.per_channel(zero_point), cells)
        cells, change, per_channel, zero = compact(cells, change, per_channel, zero)
        return dcodes, sum_to(change * (cells - zero), per_channel).reshape(scale.shape).astype(scale.dtype)

    return body


# ---------------------------------------------------------------------------------------------------------------------
# Public functions


def _document(fun: F) -> F:
    kind = fun.__name__.removesuffix("_backward").removeprefix("dequantize_per_")
    more, more_doc, shape = SIGNATURES[kind]
    if fun.__name__.endswith("_backward"):
        names = "".join(f", {argument}" for argument in more)
        fun.__doc__ = _BACKWARD_DOC.format(name=f"dequantize_per_{kind}", names=names)
    else:
        fun.__doc__ = _DOC.format(kind=kind, shape=shape, more=more_doc)
    return fun


def _arguments(op, kind, codes, scale, zero_point, dtype, **more):
    codes = checks.array(op, "codes", codes)
    checks.dtype(op, "codes", codes, (*CODES, *checks.FLOATS))
    is_float = codes.dtype.name in checks.FLOATS
    dtype = jnp.dtype(dtype if dtype is not None else codes.dtype if is_float else jnp.float32)
    if dtype.name not in checks.FLOATS or (is_float and dtype != codes.dtype):
        allowed = codes.dtype.name if is_float else ", ".join(checks.FLOATS)
        raise TypeError(f"{op}: dtype must be {allowed}, got {dtype.name}")
    by = granularity(op, codes, kind, **more)
    low, high = -(2.0**24), 2.0**24
    scale, zero_point = scales(op, codes, dtype, by, scale, zero_point, low, high)
    return (codes, scale, zero_point), {"by": by, "dtype": dtype}


def _forward(kind, *arguments, implementation, **more):
    operands, params = _arguments(f"dequantize_per_{kind}", kind, *arguments, **more)
    return _OPS[kind](*operands, **params, implementation=implementation)


def _gradient(kind, dy, *arguments, implementation, **more):
    op = f"dequantize_per_{kind}_backward"
    dy = checks.array(op, "dy", dy)
    checks.dtype(op, "dy", dy, checks.FLOATS)
    operands, params = _arguments(op, kind, *arguments, dy.dtype, **more)
    checks.shape(op, "dy", dy, operands[0].shape, "that of codes")
    return tuple(_OPS[kind].vjp(*operands, dy, **params, implementation=implementation))


@api
@_document
def dequantize_per_tensor(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("tensor", codes, scale, zero_point, dtype, implementation=implementation)


@api
@_document
def dequantize_per_channel(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("channel", codes, scale, zero_point, dtype, axis=axis, implementation=implementation)


@api
@_document
def dequantize_per_token(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("token", codes, scale, zero_point, dtype, implementation=implementation)


@api
@_document
def dequantize_per_group(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    group_size: int = 128,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("group", codes, scale, zero_point, dtype, group_size=group_size, implementation=implementation)


@api
@_document
def dequantize_per_tensor_backward(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("tensor", dy, codes, scale, zero_point, implementation=implementation)


@api
@_document
def dequantize_per_channel_backward(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    axis: int = -1,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("channel", dy, codes, scale, zero_point, axis=axis, implementation=implementation)


@api
@_document
def dequantize_per_token_backward(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("token", dy, codes, scale, zero_point, implementation=implementation)


@api
@_document
def dequantize_per_group_backward(
    codes: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    group_size: int = 128,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("group", dy, codes, scale, zero_point, group_size=group_size, implementation=implementation)


_OPS = {
    kind: declare(
        public.__name__,
        **FAMILY,
        cut=BY_CELL,
        public=public,
        operands=("codes", "scale", "zero_point"),
        differentiable=("codes", "scale"),
        constant={"zero_point": "it is made of integers"},
        residuals=("codes", "scale", "zero_point"),
        cases=cases(kind, float_codes),
        forward=Body(_reference, _native),
        tangent=Body(_tangent(_reference), _tangent(_native)),
        backward=Body(_backward(_reference), _backward(_native)),
        kernels={"forward": ("dequantize",), "tangent": ("dequantize",), "backward": ("dequantize",)},
    )
    for kind, public in {
        "tensor": dequantize_per_tensor,
        "channel": dequantize_per_channel,
        "token": dequantize_per_token,
        "group": dequantize_per_group,
    }.items()
}
