"""Four-bit weights in AWQ's layout: as floats, and products with them."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.facade import facade, facade_api
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from . import _arguments as arguments
from . import _kernels
from . import _multiply as multiply
from ._layouts import awq_rows, awq_weights
from ._weight import PackedWeight

_CONSTANT = dict.fromkeys(("qweight", "scales", "qzeros"), "the weights are packed")

# Of the kernel: 128 blocks, one a multiprocessor, of 64 columns each, or as many for each of several parts of the rows.
BLOCK_COLUMNS, ENOUGH_BLOCKS, PART_ROWS, MOST_SPLITS = 64, 132, 1024, 8


@facade_api("xla")
def int4_awq_dequantize(
    qweight: ArrayLike,
    scales: ArrayLike,
    qzeros: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    """Weights in AWQ's layout, as floats.

    Formula:
        w[k, n] = (q[k, n] - zero[g, n]) scales[g, n], with g the group of row k. q and zero are four bits each, eight
        columns in a word: its fields, from the lowest, are columns 0, 2, 4, 6, 1, 3, 5, 7.

    Args:
        qweight: int32 or uint32 [K, N / 8].
        scales: floats [groups, N]; groups divides K.
        qzeros: int32 or uint32 [groups, N / 8].
        dtype: static, float32, float64, float16 or bfloat16; None for that of scales.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [K, N] of the dtype. Packed weights carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: a difference and a product in float32, rounded once to other dtypes.

    Source: Lin et al., AWQ (2023).
    """
    op = "int4_awq_dequantize"
    qweight, scales, qzeros = _awq(op, qweight, scales, qzeros)
    dtype = arguments.result_dtype(op, scales.dtype if dtype is None else dtype)
    return awq_weights(qweight, scales, qzeros, dtype=dtype)


@api
def int4_awq_gemm(
    x: ArrayLike, qweight: ArrayLike, scales: ArrayLike, qzeros: ArrayLike, *, implementation: Implementation = None
) -> Array:
    """Product with weights in AWQ's layout.

    Formula:
        y[..., n] = the sum of x[..., k] w[k, n], where w is int4_awq_dequantize(qweight, scales, qzeros).

    Args:
        x: floats [..., K].
        qweight: int32 or uint32 [K, N / 8].
        scales: floats [groups, N]; groups of a multiple of 32 rows.
        qzeros: int32 or uint32 [groups, N / 8].
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., N] of x's dtype. It is differentiable in x.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: of up to 16 rows of x, on CUDA 64 of 16-bit floats, products are added in float32, or in float64 for that, in
    an order that shapes decide, and rounded once. Of more rows, and in gradients, the weights are rounded to x's dtype, and
    XLA multiplies.

    Source: Lin et al., AWQ (2023).
    """
    op = "int4_awq_gemm"
    packed = _grouped(op, qweight, scales, qzeros)
    x = multiply.vectors(op, x, "AWQ", packed[0].shape[0])
    rows = x if x.ndim > 1 else multiply.as_row(x)
    y = COLUMNS(rows, *packed, implementation=implementation)
    return y if x.ndim > 1 else multiply.of_row(y)


@api
def int4_awq_gemm_backward(
    qweight: ArrayLike, scales: ArrayLike, qzeros: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> Array:
    """The gradient of `int4_awq_gemm` in x: dx[..., k] = sum of dy[..., n] w[k, n].

    Args:
        qweight, scales, qzeros: the weights, as for `int4_awq_gemm`.
        dy: floats [..., N], the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [..., K].
    """
    op = "int4_awq_gemm_backward"
    packed = _grouped(op, qweight, scales, qzeros)
    dy = checks.floats(op, "dy", dy)
    columns = 8 * packed[0].shape[1]
    if dy.ndim < 1 or dy.shape[-1] != columns:
        raise ValueError(f"{op}: dy must have rows of {columns} elements, as the weights, got shape {tuple(dy.shape)}")
    rows = dy if dy.ndim > 1 else multiply.as_row(dy)
    dx = COLUMNS.vjp(*packed, rows, implementation=implementation)
    return dx if dy.ndim > 1 else multiply.of_row(dx)


def from_awq(qweight: ArrayLike, scales: ArrayLike, qzeros: ArrayLike) -> PackedWeight:
    """The transpose [N, K] of a matrix in AWQ's layout, for `x @ w.T`; arguments are those of `int4_awq_gemm`."""
    return PackedWeight("int4", *awq_rows(*_awq("from_awq", qweight, scales, qzeros)))


def _awq(op, qweight, scales, qzeros):
    qweight, qzeros = arguments.words(op, "qweight", qweight), arguments.words(op, "qzeros", qzeros)
    scales = checks.floats(op, "scales", scales)
    rows, columns = qweight.shape[0], 8 * qweight.shape[1]
    if scales.ndim != 2 or scales.shape[1] != columns or (scales.shape[0] == 0 or rows % scales.shape[0]):
        raise ValueError(
            f"{op}: scales must be [groups, {columns}], with groups that divide {rows}, got shape {tuple(scales.shape)}"
        )
    checks.shape(op, "qzeros", qzeros, (scales.shape[0], columns // 8), "as scales")
    return qweight, scales, qzeros


def _grouped(op, qweight, scales, qzeros):
    """With groups that kernels take."""
    qweight, scales, qzeros = _awq(op, qweight, scales, qzeros)
    rows, groups = qweight.shape[0], scales.shape[0]
    if rows % (arguments.UNIT * groups):
        raise ValueError(
            f"{op}: scales must have groups of a multiple of {arguments.UNIT} rows: expected a divisor of "
            f"{rows // arguments.UNIT} for {rows}, got {groups}"
        )
    return qweight, arguments.as_float32(scales) if scales.dtype == jnp.float64 else scales, qzeros


def _split(rows, columns):
    """Into how many parts blocks cut the rows of W, a power of two. It depends on W alone, as results do."""
    blocks, parts = -(-columns // BLOCK_COLUMNS), 1
    while 2 * parts <= MOST_SPLITS and 2 * parts * blocks <= ENOUGH_BLOCKS and 2 * parts * PART_ROWS <= rows:
        parts *= 2
    return parts


def _product(x, w, contracted):
    """Over a dimension of w [*batch, K, N], whose batches x has first."""
    batch = tuple(range(w.ndim - 2))
    dims = ((x.ndim - 1,), (w.ndim - 2 + contracted,)), (batch, batch)
    y = jax.lax.dot_general(x, w, dims, precision="highest", preferred_element_type=wide_dtype(x.dtype))
    return y.astype(x.dtype)


def _reference(x, qweight, scales, qzeros):
    w = awq_weights(*_kernels.aligned(qweight, scales, qzeros), dtype=wide_dtype(x.dtype).name)
    return (_product(wide(x), w, 0).astype(x.dtype),)


def _by_kernel(x, qweight, scales, qzeros):
    rows, columns = qweight.shape[-2], 8 * qweight.shape[-1]
    splits = _split(rows, columns)
    out = jax.ShapeDtypeStruct((*x.shape[:-1], columns), x.dtype)
    scratch = splits * x.shape[-2] * columns * wide_dtype(x.dtype).itemsize if splits > 1 else 0
    scratch = -(-scratch // 256) * 256
    dims = "...mk, ...kw, ...gn, ...gw -> ...mn"
    return kernel("packed_columns", dims, x, qweight, scales, qzeros, out=[out], workspace=scratch, splits=splits)[0]


def _native(x, *packed, save=False):
    packed = _kernels.aligned(*packed)
    return (multiply.by_rows(x, packed, _by_kernel, lambda x, *packed: _product(x, _rounded(x, packed), 0)),)


def _rounded(x, packed):
    """The weights in x's dtype."""
    q, scales, zeros = packed
    out = jax.ShapeDtypeStruct((*q.shape[:-1], 8 * q.shape[-1]), x.dtype)
    return kernel("unpack_columns", "...kw, ...gn, ...gw -> ...kn", q, scales, zeros, out=[out])[0]


def _backward_reference(qweight, scales, qzeros, dy):
    w = awq_weights(*_kernels.aligned(qweight, scales, qzeros), dtype=wide_dtype(dy.dtype).name)
    return (_product(wide(dy), w, 1).astype(dy.dtype),)


def _backward_native(*operands):
    *packed, dy = operands
    return (_product(dy, _rounded(dy, _kernels.aligned(*packed)), 1),)


def _by_count(call):
    x, q = (call.operand("x") if call.kind == "forward" else call.operands[-1]), call.operand("qweight")
    return {"length": multiply.per_matrix(x, q), "inner": 8 * q.shape[-1]}


_LAST = {"x": ("k",), "qweight": ("k", "n"), "scales": ("g", "n"), "qzeros": ("g", "n"), "y": ("n",)}


def _labels(names, types, params):
    """Columns of W are columns of y, eight for each word."""
    of = lambda name, rank: (*(f"batch{i}" for i in range(rank - len(_LAST[name]))), *_LAST[name])
    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _awq_draw(rows, columns, groups, *of, with_x=True):
    def draw(rng):
        words = lambda *shape: rng.integers(-(2**31), 2**31, shape, "int32")
        scales = rng.uniform(0.02, 0.2, (groups, columns)).astype("float32")
        packed = words(rows, columns // 8), scales, words(groups, columns // 8)
        return (rng.standard_normal((*of, rows)), *packed) if with_x else packed

    return draw


facade(
    "int4_awq_dequantize",
    family="packed",
    category=OpCategory.QUANTIZATION,
    public=int4_awq_dequantize,
    cases=(Case("groups", _awq_draw(64, 16, 2, with_x=False)),),
    dtypes=("int32",),
    operands=("qweight", "scales", "qzeros"),
    constant=_CONSTANT,
)
COLUMNS = declare(
    "int4_awq_gemm",
    family="packed",
    category=OpCategory.GEMM,
    public=int4_awq_gemm,
    cases=(Case("groups", _awq_draw(64, 16, 2, 3)), Case("one row", _awq_draw(96, 24, 1))),
    dtypes=checks.FLOATS,
    operands=("x", "qweight", "scales", "qzeros"),
    differentiable=("x",),
    constant=_CONSTANT,
    residuals=("qweight", "scales", "qzeros"),
    linear=as_they_are,
    shared={"qweight": 2, "scales": 2, "qzeros": 2},
    batched=as_they_are,
    cut=Partition(_labels, frozenset({"k", "g"})),
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    kernels={"forward": ("packed_columns",), "backward": ("unpack_columns",)},
    sometimes=("unpack_columns",),
    regime=_by_count,
    fused=True,
)
