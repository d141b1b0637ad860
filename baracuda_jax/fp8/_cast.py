"""Casts to 8-bit floats and back, by a scale of the whole array."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.float8 import to_float8
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import FLOAT8, FLOATS, dtype_name, float32, floats

QUANTIZED = "floats of 8 bits are quantized values"


@facade_api("xla")
def fp8_cast(
    x: ArrayLike, scale: ArrayLike, dtype: DTypeLike = "float8_e4m3fn", *, implementation: Implementation = None
) -> tuple[Array, Array]:
    """Quantize x to 8-bit floats with a given scale, and find the largest magnitude.

    Formula:
        q = clip(x * scale) to the finite range of the dtype, rounded to nearest, ties to even; amax = max |x|

    Args:
        x: float32, float16 or bfloat16 [...].
        scale: float32 of shape [], a factor, as in Transformer Engine; that of `quantize_per_tensor` is a divisor.
        dtype: that of q, "float8_e4m3fn" (largest value 448) or "float8_e5m2" (57344).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (q, amax): q of x's shape and the dtype, where an infinity becomes the largest finite value of its sign, and NaN
        stays; amax, float32 of shape [], is 0 for an empty x, and NaN if x has a NaN. Neither is differentiable.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: multiplied in float32, and rounded once.

    Source: Transformer Engine's quantization; Micikevicius et al., FP8 formats for deep learning (2022).
    """
    op = "fp8_cast"
    x = floats(op, "x", x)
    scale = float32(op, "scale", scale, (), "one scale for the whole array")
    return cast(x, scale, dtype=dtype_name(op, dtype, FLOAT8))


@facade_api("xla")
def fp8_dequant(
    q: ArrayLike, scale: ArrayLike, *, dtype: DTypeLike = "float32", implementation: Implementation = None
) -> Array:
    """Dequantize 8-bit floats: the inverse of `fp8_cast`, except for rounding.

    Formula:
        y = q / scale

    Args:
        q: float8_e4m3fn or float8_e5m2 [...].
        scale: float32 of shape [], the factor that q was quantized with.
        dtype: that of the result, "float32", "float16" or "bfloat16".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of q's shape and the dtype. It is differentiable in scale.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: divided in float32, and rounded once.

    Source: Transformer Engine's dequantization; torch.dequantize.
    """
    op = "fp8_dequant"
    q = checks.array(op, "q", q)
    checks.dtype(op, "q", q, FLOAT8)
    scale = float32(op, "scale", scale, (), "one scale for the whole array")
    return _dequant(q, scale, dtype=dtype_name(op, dtype, FLOATS))


@compiled("dtype")
def cast(x, scale, *, dtype):
    x, scale = jax.lax.stop_gradient((x, scale))
    wide, largest = x.astype(jnp.float32), float(jnp.finfo(dtype).max)
    return to_float8(jnp.clip(wide * scale, -largest, largest), dtype), jnp.max(jnp.abs(wide), initial=0)


@compiled("dtype")
def _dequant(q, scale, *, dtype):
    return (jax.lax.stop_gradient(q).astype(jnp.float32) / scale).astype(dtype)


def _case(name, shape, scale, dtype):
    return Case(name, lambda rng: (rng.standard_normal(shape), np.float32(scale)), {"dtype": dtype})


facade(
    "fp8_cast",
    family="fp8",
    category=OpCategory.QUANTIZATION,
    public=fp8_cast,
    cases=(
        _case("four bits of exponent", (5, 7), 3.0, "float8_e4m3fn"),
        _case("five bits of exponent", (2, 3, 4), 0.5, "float8_e5m2"),
        _case("out of range", (31,), 400.0, "float8_e4m3fn"),
    ),
    dtypes=FLOATS,
    operands=("x", "scale"),
    constant=dict.fromkeys(("x", "scale"), QUANTIZED),
    outputs=("q", "amax"),
)


def _quantized(name, shape, dtype, **kwargs):
    draw = lambda rng: (rng.standard_normal(shape).astype(jnp.dtype(dtype)), np.asarray(0.5 + rng.random()))
    return Case(name, draw, kwargs)


facade(
    "fp8_dequant",
    family="fp8",
    category=OpCategory.QUANTIZATION,
    public=fp8_dequant,
    cases=(
        _quantized("four bits of exponent", (5, 7), "float8_e4m3fn"),
        _quantized("five bits of exponent", (2, 3, 4), "float8_e5m2"),
    ),
    dtypes=("float32",),
    operands=("q", "scale"),
    differentiable=("scale",),
    constant={"q": QUANTIZED},
)
