"""Products of matrices of 8-bit floats with scales."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.float8 import product, rounded_product
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import dtype_name, known_precision, operand, pair
from ._product import dimensions

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
RESULTS = ("float32", "bfloat16", "float16", *FLOAT8)


@facade_api("cublaslt")
def fp8_gemm(
    a: ArrayLike,
    b: ArrayLike,
    a_scale: ArrayLike | None = None,
    b_scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    out_scale: ArrayLike | None = None,
    *,
    dtype: DTypeLike = "bfloat16",
    transpose_a: bool = False,
    transpose_b: bool = False,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Product of two matrices of 8-bit floats, which scales make the numbers that they stand for.

    Formula:
        z = (a_scale a) (b_scale b) + bias, and y = z; of 8 bits, y = clip(z / out_scale) to the finite range of the dtype.

    Args:
        a: matrix [M, K] of float8_e4m3fn or float8_e5m2.
        b: matrix [K, N] of these, also of the other one.
        a_scale: float32 of shape [] or [M], a factor for a or for each row; None for 1.
        b_scale: float32 of shape [] or [N], a factor for b or for each column; None for 1.
        bias: float32 [N]; None for 0.
        out_scale: float32 of shape [], what a result of 8 bits is to be multiplied with; None for 1.
        dtype: that of the result: "float32", "bfloat16", "float16", "float8_e4m3fn" or "float8_e5m2".
        transpose_a: static, whether a is [K, M].
        transpose_b: static, whether b is [N, K].
        precision: that of jax.lax.dot_general. Hopper's tensor cores accumulate in fewer bits than float32's unless it is
            "highest".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [M, N] of the dtype. Results of 8 bits saturate: infinity becomes the largest number, NaN stays.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: accumulated in float32, scaled after that, and rounded once.

    Source: torch._scaled_mm, torch.nn.functional.scaled_mm; jax.nn.scaled_matmul, whose scales are those of blocks.
    """
    op = "fp8_gemm"
    a, b, (m, n) = pair(op, a, b, 2, transpose_a, transpose_b, FLOAT8, same=False)
    float32 = lambda name, value, *shapes: operand(op, name, value, ("float32",), shapes)
    arrays = (
        float32("a_scale", a_scale, (), (m,)), float32("b_scale", b_scale, (), (n,)), float32("bias", bias, (n,)),
        float32("out_scale", out_scale, ()),
    )  # fmt: skip
    dtype = checks.choice(op, "dtype", dtype_name(op, dtype), RESULTS)
    if out_scale is not None and dtype not in FLOAT8:
        raise ValueError(f"{op}: out_scale must be None for a result of {dtype}, got an array")
    dims = dimensions(2, 2, transpose_a, transpose_b)
    return _float8(a, b, *arrays, dims=dims, dtype=dtype, precision=known_precision(op, precision))


@compiled("dims", "dtype", "precision")
def _float8(a, b, a_scale, b_scale, bias, out_scale, *, dims, dtype, precision):
    a, b = map(jax.lax.stop_gradient, (a, b))
    if a_scale is None and b_scale is None and bias is None and dtype not in FLOAT8:
        return rounded_product(a, b, dims, precision, dtype)
    z = product(a, b, dims, precision)
    if a_scale is not None:
        z = z * (a_scale if a_scale.ndim == 0 else a_scale[:, None])
    for value, combine in ((b_scale, jnp.multiply), (bias, jnp.add)):
        if value is not None:
            z = combine(z, value if value.ndim == 0 else value[None])
    if dtype in FLOAT8:
        largest = float(jnp.finfo(dtype).max)
        z = jnp.clip(z if out_scale is None else z / out_scale, -largest, largest)
    return z.astype(dtype)


def _case(name, a, b, *shapes, **kwargs):
    def draw(rng):
        of = lambda shape, dtype: rng.standard_normal(shape).astype(jnp.dtype(dtype))
        scales = (np.asarray(0.5 + rng.random(shape)) for shape in shapes)
        return of(a, "float8_e4m3fn"), of(b, "float8_e5m2"), *scales

    return Case(name, draw, {"dtype": "float32"} | kwargs)


facade(
    "fp8_gemm",
    family="gemm",
    category=OpCategory.GEMM,
    public=fp8_gemm,
    cases=(
        _case("a scale each", (5, 16), (16, 3), (), (), (3,)),
        _case("scales of rows and columns", (16, 5), (3, 16), (5,), (3,), (3,), transpose_a=True, transpose_b=True),
    ),
    dtypes=("float32",),
    operands=("a", "b", "a_scale", "b_scale", "bias", "out_scale"),
    differentiable=("a_scale", "b_scale", "bias"),
    constant={
        "a": "floats of 8 bits are quantized values",
        "b": "floats of 8 bits are quantized values",
        "out_scale": "floats of 8 bits are quantized values",
    },
)
