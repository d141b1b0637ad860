"""Dequantization: quantized values to floats."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import F, Implementation
from . import _kernels as k
from ._arguments import DTYPES, granularity, scales
from ._family import BY_ELEMENT, FAMILY, SIGNATURES, cases, float_values
from ._granularity import compact, expanded, sum_to

_DOC = """Dequantize q, with a scale and a zero point per {kind}.

    Formula:
        y = (q - zero_point) * scale

    Args:
        q: int8, uint8, int4, uint4, float8_e4m3fn, float8_e5m2, or floats of the result's dtype [...].
        scale: floats, {shape}.
        zero_point: integers of the shape of scale; None for 0.
{more}        dtype: that of the result, float32, float64, float16 or bfloat16; by default that of q where that is floats of
            such a dtype, else float32.
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        The floats, shaped as q. They are differentiable in scale, and in q where that is floats.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32, or in float64 for float64, and rounded once.

    Source: torch.dequantize.
    """

_BACKWARD_DOC = """The gradients of `{name}`: dq = dy * scale, dscale = the sum of dy * (q - zero_point).

    Args:
        q, scale, zero_point{names}, implementation: as for `{name}`.
        dy: floats shaped as q, the cotangent of the result.

    Returns:
        (dq, dscale): the cotangents of q, floats of dy's dtype even where q is integers, and of scale.
    """


def _reference(q, scale, zero_point, *, by, dtype):
    y = k.dequantize_reference(by.elements(q), by.per_channel(scale), by.per_channel(zero_point), dtype)
    return (y.reshape(q.shape),)


def _native(q, scale, zero_point, *, save=False, by, dtype):
    elements = by.elements(q, whole_rows=q.dtype.name in ("int4", "uint4"))
    return (k.dequantize(elements, by.per_channel(scale), by.per_channel(zero_point), dtype).reshape(q.shape),)


def _tangent(dequantize):
    def body(q, scale, zero_point, dq, dscale, *, by, dtype):
        (of_q,) = dequantize(dq, scale, jnp.zeros_like(zero_point), by=by, dtype=dtype)
        (of_scale,) = dequantize(q, dscale, zero_point, by=by, dtype=dtype)
        return (of_q + of_scale,)

    return body


def _backward(dequantize):
    def body(q, scale, zero_point, dy, *, by, dtype):
        (dq,) = dequantize(dy, scale, jnp.zeros_like(zero_point), by=by, dtype=dtype)
        elements, change = by.elements(q).astype(scale.dtype), by.elements(dy).astype(scale.dtype)
        per_channel, zero = expanded(by.per_channel(scale), elements), k.offset(by.per_channel(zero_point), elements)
        elements, change, per_channel, zero = compact(elements, change, per_channel, zero)
        return dq, sum_to(change * (elements - zero), per_channel).reshape(scale.shape).astype(scale.dtype)

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


def _arguments(op, kind, q, scale, zero_point, dtype, **more):
    q = checks.array(op, "q", q)
    checks.dtype(op, "q", q, (*DTYPES, *checks.FLOATS))
    is_float = q.dtype.name in checks.FLOATS
    dtype = jnp.dtype(dtype if dtype is not None else q.dtype if is_float else jnp.float32)
    if dtype.name not in checks.FLOATS or (is_float and dtype != q.dtype):
        allowed = q.dtype.name if is_float else ", ".join(checks.FLOATS)
        raise TypeError(f"{op}: dtype must be {allowed}, got {dtype.name}")
    by = granularity(op, q, kind, **more)
    low, high = -(2.0**24), 2.0**24
    scale, zero_point = scales(op, q, dtype, by, scale, zero_point, low, high)
    return (q, scale, zero_point), {"by": by, "dtype": dtype}


def _forward(kind, *arguments, implementation, **more):
    operands, params = _arguments(f"dequantize_per_{kind}", kind, *arguments, **more)
    return _OPS[kind](*operands, **params, implementation=implementation)


def _gradient(kind, dy, *arguments, implementation, **more):
    op = f"dequantize_per_{kind}_backward"
    dy = checks.floats(op, "dy", dy)
    operands, params = _arguments(op, kind, *arguments, dy.dtype, **more)
    checks.shape(op, "dy", dy, operands[0].shape, "that of q")
    return tuple(_OPS[kind].vjp(*operands, dy, **params, implementation=implementation))


@api
@_document
def dequantize_per_tensor(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("tensor", q, scale, zero_point, dtype, implementation=implementation)


@api
@_document
def dequantize_per_channel(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("channel", q, scale, zero_point, dtype, axis=axis, implementation=implementation)


@api
@_document
def dequantize_per_token(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("token", q, scale, zero_point, dtype, implementation=implementation)


@api
@_document
def dequantize_per_group(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    group_size: int = 128,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    return _forward("group", q, scale, zero_point, dtype, group_size=group_size, implementation=implementation)


@api
@_document
def dequantize_per_tensor_backward(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("tensor", dy, q, scale, zero_point, implementation=implementation)


@api
@_document
def dequantize_per_channel_backward(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    axis: int = -1,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("channel", dy, q, scale, zero_point, axis=axis, implementation=implementation)


@api
@_document
def dequantize_per_token_backward(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("token", dy, q, scale, zero_point, implementation=implementation)


@api
@_document
def dequantize_per_group_backward(
    q: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    group_size: int = 128,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return _gradient("group", dy, q, scale, zero_point, group_size=group_size, implementation=implementation)


_OPS = {
    kind: declare(
        public.__name__,
        **FAMILY,
        cut=BY_ELEMENT,
        public=public,
        operands=("q", "scale", "zero_point"),
        differentiable=("q", "scale"),
        constant={"zero_point": "it is made of integers"},
        residuals=("q", "scale", "zero_point"),
        cases=cases(kind, float_values),
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
