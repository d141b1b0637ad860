"""Weights of four bits, and of eight, with a scale for each group of neighbors, in an array of its own."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.types import Implementation
from . import _arguments as arguments
from ._family import declare_dequantize
from ._formats import FORMATS


class NestedAbsmax(NamedTuple):
    """Quantized scales of NF4 and FP4: absmax = code[q] * scale + offset.

    q       uint8 [groups], or [..., groups]
    code    floats [256], what q stands for
    scale   floats, one for each `group_size` neighbors of q in the order of memory, of which the last may be fewer
    offset  a float, which is added
    """

    q: Array
    code: Array
    scale: Array
    offset: Array


def absmax_of(op, absmax):
    """Scales as an array."""
    if not isinstance(absmax, NestedAbsmax):
        return checks.array(op, "absmax", absmax)
    q, code, scale, offset = (checks.array(op, f"absmax.{name}", x) for name, x in absmax._asdict().items())
    checks.dtype(op, "absmax.q", q, ("uint8",))
    checks.shape(op, "absmax.code", code, (256,), "one for each value of q")
    for name, x in (("code", code), ("scale", scale), ("offset", offset)):
        checks.dtype(op, f"absmax.{name}", x, checks.FLOATS)
    expected = -(-q.size // NESTED_GROUP)
    checks.shape(op, "absmax.scale", scale, (expected,), f"one for each {NESTED_GROUP} elements of q")
    checks.shape(op, "absmax.offset", offset, (), "one for all")
    return _nested(q, code, scale, offset)


NESTED_GROUP = 256


@compiled()
def _nested(q, code, scale, offset):
    of_group = jnp.repeat(scale.astype(jnp.float32), NESTED_GROUP, total_repeat_length=scale.size * NESTED_GROUP)
    value = jnp.take(code.astype(jnp.float32), q.astype(jnp.int32), axis=0, mode="clip")
    return value * of_group[: q.size].reshape(q.shape) + offset.astype(jnp.float32)


@api
def nf4_dequantize(
    data: ArrayLike,
    absmax: ArrayLike | NestedAbsmax,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = "float32",
    *,
    code: str = "nf4",
    implementation: Implementation = None,
) -> Array:
    """Weights of NF4 or FP4, of bitsandbytes, as floats.

    Formula:
        y[2 i] = table[data[i] >> 4] absmax[g], y[2 i + 1] = table[data[i] & 15] absmax[g], with g the weight's group.

    Args:
        data: uint8 [..., bytes of a row], two weights in each, the first in the high four bits; or [n, 1], as bitsandbytes
            has it, which is one row.
        absmax: floats [..., groups], the scale of each group of neighbors of a row; groups have a multiple of 32 weights. Or
            a NestedAbsmax, of scales that are quantized.
        shape: static, the shape of the result; None for [..., weights of a row].
        dtype: static, float32, float64, float16 or bfloat16.
        code: static, "nf4" or "fp4", which table it is.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of the dtype. Packed weights carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: one product in float32, rounded once to other dtypes.

    Source: Dettmers et al., QLoRA (2023); bitsandbytes.functional.dequantize_4bit.
    """
    op = "nf4_dequantize"
    code = checks.choice(op, "code", code, arguments.TABLES)
    data, absmax = arguments.data(op, "data", data), absmax_of(op, absmax)
    data = arguments.column(data, absmax)
    scale = arguments.factors(op, "absmax", absmax, data, code)
    return _dequantized(NF4_DEQUANTIZE, op, data, scale, None, code, shape, dtype, implementation)


@api
def int4_dequantize(
    data: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = "float32",
    *,
    bits: int = 4,
    implementation: Implementation = None,
) -> Array:
    """Weights of four-bit integers, or of eight bits, with a scale for each group, as floats.

    Formula:
        y[2 i] = (data[i] & 15 - zero_point[g]) scale[g], y[2 i + 1] = (data[i] >> 4 - zero_point[g]) scale[g], with g the
        weight's group. Of eight bits y[i] = (data[i] - zero_point[g]) scale[g].

    Args:
        data: uint8 [..., bytes of a row], two unsigned integers in each, the first in the low four bits; or with eight bits
            the byte of a signed one in each.
        scale: floats [..., groups], for each group of neighbors of a row; groups have a multiple of 32 weights.
        zero_point: integers or floats of scale's shape; None for 8, and for 0 with eight bits.
        shape: static, the shape of the result; None for [..., weights of a row].
        dtype: static, float32, float64, float16 or bfloat16.
        bits: static, 4 or 8, of an integer.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of the dtype. Packed weights carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: a difference and a product in float32, rounded once to other dtypes.

    Source: torchao's and GPTQ's integers by group; JAX's order of int4 in bytes.
    """
    op = "int4_dequantize"
    data, format = arguments.data(op, "data", data), arguments.integers(op, bits)
    scale = arguments.factors(op, "scale", scale, data, format)
    zero = arguments.zero_points(op, zero_point, scale)
    return _dequantized(INT4_DEQUANTIZE, op, data, scale, zero, format, shape, dtype, implementation)


def _dequantized(call, op, data, scale, zero, format, shape, dtype, implementation):
    zero = arguments.no_factors(data)[0] if zero is None else zero
    of = FORMATS[format]
    shape = arguments.result_shape(op, shape, (*data.shape[:-1], data.shape[-1] // of.bytes * of.block))
    dtype = arguments.result_dtype(op, dtype)
    return call(data, scale, zero, format=format, dtype=dtype, implementation=implementation).reshape(shape)


def random_scaled(rng, rows, weights, groups, zeros=False, bits=4):
    """(data, scale[, zero points]) of a matrix."""
    data = rng.integers(0, 256, (*rows, weights * bits // 8), "uint8")
    scale = (rng.uniform(0.02, 0.3, (*rows, groups)) * 2.0 ** (4 - bits)).astype("float32")
    lowest = 0 if bits == 4 else -128
    return (data, scale, rng.integers(lowest, lowest + 2**bits, (*rows, groups), "int32")) if zeros else (data, scale)


NF4_DEQUANTIZE = declare_dequantize(
    "nf4_dequantize",
    nf4_dequantize,
    (
        Case("NF4", lambda rng: random_scaled(rng, (3,), 192, 3)),
        Case("FP4", lambda rng: random_scaled(rng, (2, 3), 64, 2), {"code": "fp4", "shape": (3, 128)}),
    ),
    ("unpack_scaled",),
)
INT4_DEQUANTIZE = declare_dequantize(
    "int4_dequantize",
    int4_dequantize,
    (
        Case("zero points", lambda rng: random_scaled(rng, (3,), 128, 2, zeros=True)),
        Case("centered", lambda rng: random_scaled(rng, (2, 3), 64, 1)),
        Case("eight bits", lambda rng: random_scaled(rng, (3,), 96, 3, zeros=True, bits=8), {"bits": 8}),
        Case("eight bits, centered", lambda rng: random_scaled(rng, (2, 3), 64, 1, bits=8), {"bits": 8}),
    ),
    ("unpack_scaled",),
)
