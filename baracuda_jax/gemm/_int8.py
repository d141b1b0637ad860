"""Products of matrices of 8-bit integers, exact, and their quantized results."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import dtype_name, operand, pair
from ._product import ACTIVATIONS, dimensions

NARROW = ("int8", "uint8")


@facade_api("cublaslt")
def int8_gemm(
    a: ArrayLike,
    b: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    a_zero_point: ArrayLike | None = None,
    b_zero_point: ArrayLike | None = None,
    zero_point: ArrayLike | None = None,
    *,
    activation: str = "identity",
    dtype: DTypeLike | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Product of two matrices of 8-bit integers, exact in int32, or scaled and quantized.

    Formula:
        n = (a - a_zero_point) (b - b_zero_point). Without `scale`, y = n + bias, int32. With it, z = act(scale n +
        bias), and y = z, or y = clip(round(z) + zero_point) of 8 bits; round is to even on ties. Not differentiable.

    Args:
        a: matrix [M, K] of int8 or uint8.
        b: matrix [K, N] of int8 or uint8, which may be the other one.
        scale: float32 of shape [] or [N]; None for the exact product.
        bias: vector [N], int32 without `scale`, float32 or int32 with it; None for 0.
        a_zero_point: integer of shape [] or [M], within the range of a's dtype; None for 0.
        b_zero_point: integer of shape [] or [N], within the range of b's dtype; None for 0.
        zero_point: integer of shape [], of a result of 8 bits; None for 0.
        activation: static: "identity", "relu", "gelu" (with erf) or "silu". Others than "identity" need a scale.
        dtype: that of the result. Without `scale`, int32; with it "int8", "uint8", "float32", "bfloat16" or "float16", by
            default that of a.
        transpose_a: static, whether a is [K, M].
        transpose_b: static, whether b is [N, K].
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [M, N] of the dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: sums are exact up to 2^15 columns, and beyond as long as they fit in int32; others wrap. What is scaled
    is computed in float32 and rounded once; results of 8 bits saturate, and NaN becomes 0.

    Source: torch._int_mm, jax.lax.dot_general with preferred_element_type=int32; ONNX's MatMulInteger and QLinearMatMul.
    """
    op = "int8_gemm"
    a, b, (m, n) = pair(op, a, b, 2, transpose_a, transpose_b, NARROW, same=False)
    checks.choice(op, "activation", activation, tuple(ACTIVATIONS))
    scale = operand(op, "scale", scale, ("float32",), ((), (n,)))
    bias = operand(op, "bias", bias, ("int32",) if scale is None else ("float32", "int32"), ((n,),))
    zeros = (
        operand(op, "a_zero_point", a_zero_point, checks.INTEGERS, ((), (m,))),
        operand(op, "b_zero_point", b_zero_point, checks.INTEGERS, ((), (n,))),
        operand(op, "zero_point", zero_point, checks.INTEGERS, ((),)),
    )
    allowed = ("int32",) if scale is None else (*NARROW, "float32", "bfloat16", "float16")
    dtype = checks.choice(op, "dtype", dtype_name(op, dtype or ("int32" if scale is None else a.dtype)), allowed)
    if scale is None and activation != "identity":
        raise ValueError(f"{op}: activation must be 'identity' without a scale, got {activation!r}")
    if zero_point is not None and dtype not in NARROW:
        raise ValueError(f"{op}: zero_point must be None for a result of {dtype}, got an array")
    dims = dimensions(2, 2, transpose_a, transpose_b)
    return _int8(a, b, scale, bias, *zeros, dims=dims, activation=activation, dtype=dtype)


@compiled("dims", "activation", "dtype")
def _int8(a, b, scale, bias, a_zero, b_zero, zero, *, dims, activation, dtype):
    n = _exact(a, b, a_zero, b_zero, dims)
    along_rows = lambda x: x if x.ndim == 0 else x[None]
    if scale is None:
        return n if bias is None else n + along_rows(bias)
    z = n.astype(jnp.float32) * along_rows(scale)
    z = ACTIVATIONS[activation](z if bias is None else z + along_rows(bias.astype(jnp.float32)))
    if dtype not in NARROW:
        return z.astype(dtype)
    z = jnp.round(z) + (0 if zero is None else zero.astype(jnp.float32))
    to = jnp.iinfo(dtype)
    return jnp.where(jnp.isnan(z), 0, jnp.clip(z, to.min, to.max)).astype(dtype)


def _exact(a, b, a_zero, b_zero, dims):
    """The product is one of int8, for which GPUs have instructions: what is subtracted from a and b is multiplied out. As
    everything wraps, it is exact where the result is in range."""
    ((of_a,), (of_b,)), _ = dims
    (a, a_zero), (b, b_zero) = _signed(a, a_zero), _signed(b, b_zero)
    n = jax.lax.dot_general(_filled(a, of_a), _filled(b, of_b), dims, preferred_element_type=jnp.int32)
    total = lambda x, axis: x.sum(axis, dtype=jnp.int32)
    column = lambda zero: zero if zero.ndim == 0 else zero[:, None]
    row = lambda zero: zero if zero.ndim == 0 else zero[None]
    if a_zero is not None:
        n = n - column(a_zero) * total(b, of_b)[None]
    if b_zero is not None:
        n = n - total(a, of_a)[:, None] * row(b_zero)
    if a_zero is not None and b_zero is not None:
        n = n + a.shape[of_a] * column(a_zero) * row(b_zero)
    return n


def _filled(x, axis):
    """With zeros up to a multiple of 16 along the axis that is summed. Of 6 or 9 elements XLA's products on GPUs are wrong
    (with jaxlib 0.11.2), of 8 or 16 they are right."""
    if x.shape[axis] % 16 == 0:
        return x
    sizes = [(0, 0, 0)] * x.ndim
    sizes[axis] = (0, -x.shape[axis] % 16, 0)
    return jax.lax.pad(explicit.whole(x, [axis]), jnp.zeros((), x.dtype), sizes)


def _signed(x, zero):
    """As int8, with the zero point moved along, int32 or None."""
    zero = None if zero is None else zero.astype(jnp.int32)
    if x.dtype == jnp.int8:
        return x, zero
    moved = jax.lax.bitcast_convert_type(x ^ 128, jnp.int8)  # x - 128
    return moved, (jnp.full((), -128, jnp.int32) if zero is None else zero - 128)


def _integers(rng, low, high, *shape):
    return rng.integers(low, high, shape, np.int32)


facade(
    "int8_gemm",
    family="gemm",
    category=OpCategory.GEMM,
    public=int8_gemm,
    cases=(
        Case("exact", lambda rng: (8 * rng.standard_normal((5, 16)), 8 * rng.standard_normal((16, 3)))),
        Case(
            "quantized",
            lambda rng: (
                8 * rng.standard_normal((6, 4)), 8 * rng.standard_normal((5, 6)), np.float32(0.0625),
                _integers(rng, -9, 9, 5), _integers(rng, 0, 9), _integers(rng, 0, 9, 5), _integers(rng, 0, 50),
            ),
            {"activation": "relu", "transpose_a": True, "transpose_b": True},
        ),
    ),
    dtypes=NARROW,
    operands=("a", "b", "scale", "bias", "a_zero_point", "b_zero_point", "zero_point"),
    constant=dict.fromkeys(
        ("a", "b", "scale", "bias", "a_zero_point", "b_zero_point", "zero_point"), "integers carry no derivative"
    ),
)  # fmt: skip
