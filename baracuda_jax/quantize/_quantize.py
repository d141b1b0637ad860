"""Quantization with scales that are given."""

from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import F, Implementation
from . import _kernels as k
from ._arguments import code_range, granularity, scales
from ._family import BY_ELEMENT, FAMILY, SIGNATURES, cases, normal, shared_ranks

_DOC = """Quantize x, with a scale and a zero point per {kind}.

    Formula:
        q = clamp(round(x / scale) + zero_point, qmin, qmax), rounding half to even
        with dtype float8_*: q = x / scale, rounded to nearest even, saturating at the largest finite number

    Edges: NaN gets the code of zero_point, or NaN in float8_*. An infinite or huge x saturates. Where the scale is 0,
    x / scale is infinite or NaN; where it is infinite, 0; where it is NaN, NaN; a negative one flips the sign.

    Args:
        x: floats [...].
        scale: floats, {shape}. As a Python number it must be finite and above 0.
        zero_point: integers of the shape of scale; None for 0.
{more}        dtype: that of q: int8, uint8, int4, uint4, float8_e4m3fn or float8_e5m2.
        qmin, qmax: static range of q; by default the dtype's.
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        q, shaped as x. It carries no derivative: see `fake_quantize`, and `{name}_backward`.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: x / scale is rounded once, in float32, or in float64 for float64.

    Source: {source}
    """

_BACKWARD_DOC = """The straight-through gradient of `{name}`: dx = dy / scale where the code is not clamped, else 0.

    Args:
        x, scale, zero_point{names}, dtype, qmin, qmax, implementation: as for `{name}`.
        dy: floats shaped as x, the cotangent of q, which JAX itself has not.

    Returns:
        The cotangent of x.
    """

_SOURCES = {
    "tensor": "torch.quantize_per_tensor, which multiplies by 1 / scale.",
    "channel": "torch.quantize_per_channel, which multiplies by 1 / scale.",
    "token": "Yao et al., ZeroQuant (2022).",
    "group": "Frantar et al., GPTQ (2022), which quantizes weights in groups.",
}


def _reference(x, scale, zero_point, *, by, **params):
    q = k.quantize_reference(by.elements(x), by.per_channel(scale), by.per_channel(zero_point), **params)
    return (q.reshape(x.shape),)


def _native(x, scale, zero_point, *, save, by, code, low, high):
    elements = by.elements(x, whole_rows=code in ("int4", "uint4"))
    q = k.quantize(elements, by.per_channel(scale), by.per_channel(zero_point), code=code, low=low, high=high)
    return (q.reshape(x.shape),)


def _derivative(straight_through, divides):
    def body(x, scale, zero_point, change, *, by, low, high, **_):
        out = straight_through(
            by.elements(x), by.elements(change), by.per_channel(scale), by.per_channel(zero_point),
            low=low, high=high, divides=divides,
        )  # fmt: skip
        return (out.reshape(x.shape),)

    return body


STRAIGHT_THROUGH = Body(_derivative(k.straight_through_reference, False), _derivative(k.straight_through, False))
_OVER_SCALE = Body(_derivative(k.straight_through_reference, True), _derivative(k.straight_through, True))


# ---------------------------------------------------------------------------------------------------------------------
# Public functions


def _document(fun: F) -> F:
    kind = fun.__name__.removesuffix("_backward").removeprefix("quantize_per_")
    more, more_doc, shape = SIGNATURES[kind]
    if fun.__name__.endswith("_backward"):
        names = "".join(f", {argument}" for argument in more)
        fun.__doc__ = _BACKWARD_DOC.format(name=f"quantize_per_{kind}", names=names)
    else:
        fun.__doc__ = _DOC.format(kind=kind, shape=shape, more=more_doc, name=fun.__name__, source=_SOURCES[kind])
    return fun


def _arguments(op, kind, x, scale, zero_point, dtype, qmin, qmax, **more):
    x = checks.floats(op, "x", x)
    params = code_range(op, dtype, qmin, qmax)
    by = granularity(op, x, kind, **more)
    return (x, *scales(op, x, x.dtype, by, scale, zero_point, **params)), {"by": by, **params}


def _forward(kind, *arguments, implementation, **more):
    operands, params = _arguments(f"quantize_per_{kind}", kind, *arguments, **more)
    return _OPS[kind](*operands, **params, implementation=implementation)


def _backward(kind, dy, *arguments, implementation, **more):
    op = f"quantize_per_{kind}_backward"
    operands, params = _arguments(op, kind, *arguments, **more)
    dy = checks.array(op, "dy", dy)
    checks.shape(op, "dy", dy, operands[0].shape, "that of x")
    checks.same_dtype(op, "dy", dy, "x", operands[0])
    return _OPS[kind].vjp(*operands, dy, **params, implementation=implementation)


@api
@_document
def quantize_per_tensor(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _forward("tensor", x, scale, zero_point, dtype, qmin, qmax, implementation=implementation)


@api
@_document
def quantize_per_channel(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    axis: int = -1,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _forward("channel", x, scale, zero_point, dtype, qmin, qmax, axis=axis, implementation=implementation)


@api
@_document
def quantize_per_token(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _forward("token", x, scale, zero_point, dtype, qmin, qmax, implementation=implementation)


@api
@_document
def quantize_per_group(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    group_size: int = 128,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _forward(
        "group", x, scale, zero_point, dtype, qmin, qmax, group_size=group_size, implementation=implementation
    )


@api
@_document
def quantize_per_tensor_backward(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _backward("tensor", dy, x, scale, zero_point, dtype, qmin, qmax, implementation=implementation)


@api
@_document
def quantize_per_channel_backward(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    axis: int = -1,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _backward("channel", dy, x, scale, zero_point, dtype, qmin, qmax, axis=axis, implementation=implementation)


@api
@_document
def quantize_per_token_backward(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _backward("token", dy, x, scale, zero_point, dtype, qmin, qmax, implementation=implementation)


@api
@_document
def quantize_per_group_backward(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    group_size: int = 128,
    dtype: DTypeLike = "int8",
    *,
    qmin: int | None = None,
    qmax: int | None = None,
    implementation: Implementation = None,
) -> Array:
    return _backward(
        "group", dy, x, scale, zero_point, dtype, qmin, qmax, group_size=group_size, implementation=implementation
    )


_OPS = {
    kind: declare(
        public.__name__,
        **FAMILY,
        cut=BY_ELEMENT,
        public=public,
        operands=("x", "scale", "zero_point"),
        differentiable=("x",),
        constant=dict.fromkeys(("scale", "zero_point"), "the output is quantized"),
        residuals=("x", "scale", "zero_point"),
        shared=shared_ranks(kind),
        cases=cases(kind, normal),
        quantized=True,
        surrogate=True,
        forward=Body(_reference, _native),
        tangent=_OVER_SCALE,
        backward=_OVER_SCALE,
        kernels={"forward": ("quantize",), "tangent": ("quantize_backward",), "backward": ("quantize_backward",)},
    )
    for kind, public in {
        "tensor": quantize_per_tensor,
        "channel": quantize_per_channel,
        "token": quantize_per_token,
        "group": quantize_per_group,
    }.items()
}
