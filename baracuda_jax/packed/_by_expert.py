"""Products of rows with a matrix of packed weights each, as of the experts of a mixture."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from .._core.within import within
from ..gemm._by_group import by_group, native_by_group
from . import _arguments as arguments
from . import _kernels
from . import _multiply as multiply
from ._family import CONSTANT, gguf_blocks, random_blocks
from ._formats import FORMATS, unpacked

MOST_ROWS = 64  # that the kernel multiplies; of more, the weights of all experts are unpacked for a library


@api
def gguf_mmvq_batched(
    x: ArrayLike, data: ArrayLike, experts: ArrayLike, format: str | int, *, implementation: Implementation = None
) -> Array:
    """Products of rows with the packed weights of the expert of each, of a block format of GGUF files.

    Formula:
        y[t, n] = the sum of x[t, k] W[experts[t]][n, k], where W is gguf_dequantize(data, format); dx[t, k] is the sum of
        dy[t, n] W[experts[t]][n, k].

    Args:
        x: floats [T, K].
        data: uint8 [E, N, bytes of a row], whole blocks, as they are in the file.
        experts: integers [T], the matrix of each row. A row whose expert is outside [0, E), a negative one too, is 0.
        format: static, a format of `gguf_dequantize`.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [T, N] of x's dtype. It is differentiable in x.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: of up to 64 rows, products of float32 weights are added in float32, or in float64 for that, and rounded once.
    Of more rows, and in gradients, the weights are rounded to x's dtype before they are multiplied.

    Source: llama.cpp's mul_mat_id.
    """
    op = "gguf_mmvq_batched"
    data, experts, of = _matrices(op, data, experts, format)
    x = multiply.vectors(op, x, of.name, data.shape[-1] // of.bytes * of.block)
    checks.shape(op, "experts", experts, x.shape[:-1], "one for each row of x")
    if x.ndim != 2:
        raise ValueError(f"{op}: x must have two dimensions, got shape {tuple(x.shape)}")
    packed = (data, *arguments.no_factors(data))
    return BY_EXPERT(x, *packed, experts, format=of.name, implementation=implementation)


@api
def gguf_mmvq_batched_backward(
    data: ArrayLike, experts: ArrayLike, dy: ArrayLike, format: str | int, *, implementation: Implementation = None
) -> Array:
    """The gradient of `gguf_mmvq_batched` in x: dx[t, k] = sum of dy[t, n] W[experts[t]][n, k].

    Args:
        data, experts, format: as for `gguf_mmvq_batched`.
        dy: floats [T, N], the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [T, K].
    """
    op = "gguf_mmvq_batched_backward"
    data, experts, of = _matrices(op, data, experts, format)
    dy = checks.floats(op, "dy", dy)
    expected = (*experts.shape, data.shape[-2])
    checks.shape(op, "dy", dy, expected, "a row for each of experts, of one element for each row of the matrices")
    packed = (data, *arguments.no_factors(data))
    return BY_EXPERT.vjp(*packed, experts, dy, format=of.name, implementation=implementation)


def _matrices(op, data, experts, format):
    data, of = arguments.data(op, "data", data), arguments.gguf_format(op, format)
    if data.ndim != 3:
        raise ValueError(
            f"{op}: data must have three dimensions, experts, rows and bytes; got shape {tuple(data.shape)}"
        )
    arguments.whole_blocks(op, data, of)
    experts = checks.array(op, "experts", experts)
    checks.dtype(op, "experts", experts, checks.INTEGERS)
    if experts.ndim != 1:
        raise ValueError(f"{op}: experts must have one dimension, got shape {tuple(experts.shape)}")
    return data, experts, of


def _names(experts, count):
    """int32, -1 for those that are not there."""
    return jnp.where(within(experts, count), experts.astype(jnp.int32), -1)


def _aligned(x, data, scale, zero, experts):
    """The parts of the weights with the batches of the one that has most, and each row's expert with those of x."""
    names = _names(experts, data.shape[-3])
    return *_kernels.aligned(data, scale, zero, core=3), _kernels.repeated(names, x.shape[:-2], 1)


def _reference(x, data, scale, zero, experts, *, format):
    *packed, names = _aligned(x, data, scale, zero, experts)
    w = unpacked(*packed, format=format, dtype=wide_dtype(x.dtype))
    return (by_group(wide(x), w, names, transpose_b=True, precision="highest").astype(x.dtype),)


def _native(x, data, scale, zero, experts, *, save=False, format):
    *packed, names = _aligned(x, data, scale, zero, experts)
    if multiply.is_many(x.shape[-2], MOST_ROWS) or 0 in data.shape:
        w = _kernels.unpack(*packed, format=format, dtype=x.dtype)
        return (native_by_group(x, w, names, transpose_b=True, precision="highest"),)
    of = FORMATS[format]
    out = jax.ShapeDtypeStruct((*x.shape[:-1], data.shape[-2]), x.dtype)
    dims = "...tk, ...enb, ...eng, ...enz, ...t -> ...tn"
    return tuple(
        kernel(f"packed_rows_by_expert_{of.targets}", dims, x, *packed, names, out=[out], format=of.kernel_of(zero))
    )


def _backward_reference(data, scale, zero, experts, dy, *, format):
    *packed, names = _aligned(dy, data, scale, zero, experts)
    w = unpacked(*packed, format=format, dtype=wide_dtype(dy.dtype))
    return (by_group(wide(dy), w, names, precision="highest").astype(dy.dtype),)


def _backward_native(data, scale, zero, experts, dy, *, format):
    *packed, names = _aligned(dy, data, scale, zero, experts)
    w = _kernels.unpack(*packed, format=format, dtype=dy.dtype)
    return (native_by_group(dy, w, names, precision="highest"),)


_LAST = {
    "x": ("t", "k"), "data": ("e", "n", "b"), "scale": ("e", "n", "g"), "zero": ("e", "n", "z"), "experts": ("t",),
    "y": ("t", "n"),
}  # fmt: skip


def _labels(names, types, params):
    """Rows of the matrices are columns of y; tokens are apart from each other."""
    of = lambda name, rank: (*(f"batch{i}" for i in range(rank - len(_LAST[name]))), *_LAST[name])
    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _case(name, format, tokens, experts, rows, weights, outside=0):
    def draw(rng):
        data = random_blocks(rng, format, experts, rows, weights // 256 * gguf_blocks(format))
        return rng.standard_normal((tokens, weights)), data, rng.integers(-outside, experts + outside, tokens, "int32")

    return Case(name, draw, {"format": format})


BY_EXPERT = declare(
    "gguf_mmvq_batched",
    family="packed",
    category=OpCategory.MOE,
    public=gguf_mmvq_batched,
    cases=(
        _case("tokens", "Q4_K", 5, 3, 4, 256, outside=1),
        _case("another format", "Q6_K", 4, 2, 3, 256),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "data", "scale", "zero", "experts"),
    differentiable=("x",),
    constant={**CONSTANT, "experts": "they are integers"},
    residuals=("data", "scale", "zero", "experts"),
    linear=as_they_are,
    shared={"data": 3, "scale": 3, "zero": 3, "experts": 1},
    batched=as_they_are,
    cut=Partition(_labels, frozenset({"e", "k", "b", "g", "z"})),
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("packed_rows_by_expert_k",),
        "backward": ("unpack_k", "segment_index", "grouped_products"),
    },
    sometimes=("packed_rows_by_expert_legacy", "unpack_legacy", "unpack_k", "segment_index", "grouped_products"),
    regime=lambda call: {"length": call.operand("experts").shape[-1], "inner": call.operand("data").shape[-2]},
    fused=True,
)
