"""Products of matrices of integers of 4 bits and of single bits, exact."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import dtype_name, matrix
from ._int8 import int8_gemm

_NARROW = ("int4", "uint4")


@facade_api("cublaslt")
def int4_gemm(
    a: ArrayLike,
    b: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    activation: str = "identity",
    dtype: DTypeLike | None = None,
    transpose_b: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Product of two matrices of 4-bit integers, exact in int32, or scaled and quantized.

    Formula:
        n = a b. Without `scale`, y = n + bias, int32. With it, z = act(scale n + bias), and y = z, or y = clip(round(z)) of
        4 bits; round is to even on ties. Not differentiable.

    Args:
        a: matrix [M, K] of int4 or uint4.
        b: matrix [K, N] of int4 or uint4, which may be the other one.
        scale: float32 of shape [] or [N]; None for the exact product.
        bias: vector [N], int32 without `scale`, float32 or int32 with it; None for 0.
        activation: static: "identity", "relu", "gelu" (with erf) or "silu". Others than "identity" need a scale.
        dtype: that of the result. Without `scale`, int32; with it "int4", "uint4", "float32", "bfloat16" or "float16", by
            default that of a.
        transpose_b: static, whether b is [N, K].
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [M, N] of the dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: that of `int8_gemm`, by which it is computed: GPUs since Hopper have no instructions for integers of 4 bits.

    Source: CUTLASS's products of int4b_t.
    """
    op = "int4_gemm"
    a, b = (matrix(op, name, x, 2, _NARROW) for name, x in (("a", a), ("b", b)))
    allowed = ("int32",) if scale is None else (*_NARROW, "float32", "bfloat16", "float16")
    wanted = checks.choice(op, "dtype", dtype_name(op, dtype or ("int32" if scale is None else a.dtype)), allowed)
    y = int8_gemm(
        _widened(a),
        _widened(b),
        scale,
        bias,
        activation=activation,
        dtype="float32" if wanted in _NARROW else wanted,
        transpose_b=transpose_b,
    )
    return _narrowed(y, dtype=wanted) if wanted in _NARROW else y


@compiled()
def _widened(x):
    return x.astype(jnp.int8)


@compiled("dtype")
def _narrowed(z, *, dtype):
    to = jnp.iinfo(dtype)
    z = jnp.round(z)
    return jnp.where(jnp.isnan(z), 0, jnp.clip(z, int(to.min), int(to.max))).astype(jnp.int32).astype(dtype)


@facade_api("xla")
def bin_gemm(a: ArrayLike, b: ArrayLike, *, signs: bool = False, implementation: Implementation = None) -> Array:
    """Product of two matrices of single bits: in how many bits rows differ.

    Formula:
        y[m, n] = the number of k with a[m, k] != b[n, k]; with `signs`, K - 2 y, which is the product of matrices of 1 and
        -1. Not differentiable.

    Args:
        a: uint8 [M, K / 8], eight bits in each.
        b: uint8 [N, K / 8], in the same order.
        signs: static, whether the bits are signs.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array int32 [M, N].

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact.

    Source: CUTLASS's products of b1 with xor and popcount.
    """
    op = "bin_gemm"
    a, b = (matrix(op, name, x, 2, ("uint8",)) for name, x in (("a", a), ("b", b)))
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"{op}: b must have rows of {a.shape[1]} bytes, as a has, got shape {tuple(b.shape)}")
    return _different(a, b, signs=checks.flag(op, "signs", signs))


@compiled("signs")
def _different(a, b, *, signs):
    """Of many rows a product of 1 and -1, for which GPUs have instructions; of few the bits are counted."""
    count = 8 * a.shape[1]
    if isinstance(a.shape[0], int) and a.shape[0] <= 16:
        differ = jax.lax.population_count(a[:, None] ^ b[None]).astype(jnp.int32).sum(-1)
        return count - 2 * differ if signs else differ
    product = jax.lax.dot_general(_signs(a), _signs(b), (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    return product if signs else (count - product) // 2


def _signs(x):
    """Bits as 1 and -1 for 0 and 1, filled with zeros: of some sizes XLA's products of int8 on GPUs are wrong."""
    bits = (x[..., None] >> jnp.arange(8, dtype=jnp.uint8).reshape(1, 1, 8)) & 1
    signs = 1 - 2 * bits.astype(jnp.int8)
    signs = signs.reshape(x.shape[0], 8 * x.shape[1])
    return jnp.pad(signs, ((0, 0), (0, -signs.shape[1] % 16)))


def _draw(rng):
    draw = lambda *shape: rng.standard_normal(shape) * 2
    return draw(3, 8), draw(8, 5)


facade(
    "int4_gemm",
    family="gemm",
    category=OpCategory.GEMM,
    public=int4_gemm,
    cases=(Case("exact", _draw),),
    dtypes=("int4", "uint4"),
    operands=("a", "b", "scale", "bias"),
    constant=dict.fromkeys(("a", "b", "scale", "bias"), "integers carry no derivative"),
)
facade(
    "bin_gemm",
    family="gemm",
    category=OpCategory.GEMM,
    public=bin_gemm,
    cases=(
        Case("few rows", lambda rng: tuple(rng.integers(0, 256, (n, 5), "uint8") for n in (3, 4))),
        Case("signs", lambda rng: tuple(rng.integers(0, 256, (n, 3), "uint8") for n in (17, 2)), {"signs": True}),
    ),
    dtypes=("uint8",),
    operands=("a", "b"),
    constant=dict.fromkeys(("a", "b"), "integers carry no derivative"),
)
