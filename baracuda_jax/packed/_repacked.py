"""Products with four-bit weights in the layout of Marlin, and activations of 8 bits as ggml has them."""

import jax.numpy as jnp
from jax import Array
from jax.lax import bitcast_convert_type
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from . import _arguments as arguments
from ._layouts import MARLIN_TILE, marlin_rows
from ._multiply import q8_blocks
from ._rows import int4_mmvq
from ._weight import PackedWeight

_CONSTANT = dict.fromkeys(("qweight", "scales"), "the weights are packed")


@api
def int4_marlin_gemm(
    x: ArrayLike, qweight: ArrayLike, scales: ArrayLike, *, implementation: Implementation = None
) -> Array:
    """Product with weights in Marlin's layout, symmetric integers of four bits.

    Formula:
        y[..., n] = the sum of x[..., k] (q[k, n] - 8) s[g, n], with g the group of row k, where q and s are what the
        permuted words and scales stand for.

    Args:
        x: floats [..., K].
        qweight: int32 or uint32 [K / 16, 2 N], in the order of Marlin's tiles; N is a multiple of 64.
        scales: floats [groups, N], permuted too; groups of a multiple of 32 rows.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., N] of x's dtype. It is differentiable in x. The weights are packed in rows first, in plain JAX; what is
        used often is converted once, by `baracuda_jax.packed.from_marlin`.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: as `int4_mmvq`, which multiplies.

    Source: Frantar et al., Marlin (2024).
    """
    op = "int4_marlin_gemm"
    return int4_mmvq(x, *marlin_rows(*_marlin(op, qweight, scales)), implementation=implementation)


@facade_api("xla")
def quantize_q8_1(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Activations as blocks of ggml's format Q8_1: 32 integers of 8 bits, their scale, and their sum times it.

    Formula:
        d = max |x| / 127, q = round(x / d), s = d (the sum of q), of each 32 neighbors; d and s in half precision.

    Args:
        x: floats [..., K], K a multiple of 32.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        uint8 [..., K / 32 * 36], the bytes of d, of s, and q. They carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32, or in float64 for float64; round is to even on ties.

    Source: ggml's quantize_row_q8_1.
    """
    op = "quantize_q8_1"
    x = checks.floats(op, "x", x)
    if x.ndim < 1 or x.shape[-1] % 32:
        raise ValueError(f"{op}: x must have rows of a multiple of 32 elements, got shape {tuple(x.shape)}")
    return _q8_1(x)


def _two_bytes(x):
    """Half precision [..., 1] as bytes [..., 2]."""
    bits = bitcast_convert_type(x, jnp.uint16)
    return jnp.concatenate([bits & 255, bits >> 8], -1).astype(jnp.uint8)


@compiled()
def _q8_1(x):
    blocks = wide(x).reshape(*x.shape[:-1], x.shape[-1] // 32, 32)
    d, q = q8_blocks(blocks)
    scale = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True, initial=0) / 127
    total = (q.sum(-1, keepdims=True) * scale).astype(jnp.float16)
    parts = [_two_bytes(part) for part in (d, total)]
    y = jnp.concatenate([*parts, bitcast_convert_type(q.astype(jnp.int8), jnp.uint8)], -1)
    return y.reshape(*x.shape[:-1], y.shape[-2] * y.shape[-1])


def from_marlin(qweight: ArrayLike, scales: ArrayLike) -> PackedWeight:
    """The transpose [N, K] of a matrix in Marlin's layout, for `x @ w.T`; arguments are those of `int4_marlin_gemm`."""
    return PackedWeight("int4", *marlin_rows(*_marlin("from_marlin", qweight, scales)))


def _marlin(op, qweight, scales):
    qweight, scales = arguments.words(op, "qweight", qweight), checks.floats(op, "scales", scales)
    rows, columns = MARLIN_TILE * qweight.shape[0], qweight.shape[1] // 2
    if qweight.shape[1] % 128:
        raise ValueError(
            f"{op}: qweight must be [K / 16, 2 N] with N a multiple of 64, got shape {tuple(qweight.shape)}"
        )
    if scales.ndim != 2 or scales.shape[1] != columns or (scales.shape[0] == 0 or rows % scales.shape[0]):
        raise ValueError(
            f"{op}: scales must be [groups, {columns}], with groups that divide {rows}, got shape {tuple(scales.shape)}"
        )
    return qweight, scales


def _marlin_draw(rng):
    words = rng.integers(-(2**31), 2**31, (4, 128), "int32")
    return rng.standard_normal((3, 64)), words, rng.uniform(0.02, 0.2, (2, 64)).astype("float32")


compose(
    "int4_marlin_gemm",
    family="packed",
    category=OpCategory.GEMM,
    public=int4_marlin_gemm,
    cases=(Case("groups", _marlin_draw),),
    dtypes=checks.FLOATS,
    operands=("x", "qweight", "scales"),
    made_of=("int4_mmvq",),
    differentiable=("x",),
    constant=_CONSTANT,
)
facade(
    "quantize_q8_1",
    family="packed",
    category=OpCategory.QUANTIZATION,
    public=quantize_q8_1,
    cases=(Case("rows", lambda rng: (rng.standard_normal((3, 64)),)),),
    dtypes=checks.FLOATS,
    operands=("x",),
    constant={"x": "the output is quantized"},
)
