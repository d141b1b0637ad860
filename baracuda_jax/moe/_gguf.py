"""Products of rows that are sorted by expert with the experts' matrices, as floats or packed."""

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..gemm import grouped_gemm
from ..gemm._grouped import group_of_rows
from ..packed._by_expert import gguf_mmvq_batched
from ..packed._family import gguf_blocks, random_blocks


@api
def moe_wmma(x: ArrayLike, w: ArrayLike, group_sizes: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Products of rows that are sorted by expert with the matrices of the experts.

    Formula:
        y[r, n] = the sum of x[r, k] w[e, n, k], for row r of expert e: the first group_sizes[0] rows are those of expert 0,
        and so on. Rows after the last expert's are 0.

    Args:
        x: floats [R, K], as `moe_permute` returns them.
        w: floats [E, N, K] of x's dtype.
        group_sizes: integers [E] of at least 0, the numbers of rows. Their sum is at most R.
        implementation: "native" (the kernel), "xla" (a library's products), a PlanPreference, or None for automatic.

    Returns:
        Array [R, N] of x's dtype. `moe_combine` adds the rows of each token.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: that of `grouped_gemm`.

    Source: jax.lax.ragged_dot.
    """
    op = "moe_wmma"
    x, w = checks.floats(op, "x", x), checks.floats(op, "w", w)
    checks.same_dtype(op, "w", w, "x", x)
    if x.ndim != 2 or w.ndim != 3 or w.shape[-1] != x.shape[-1]:
        raise ValueError(f"{op}: x must be [R, K] and w [E, N, K], got shapes {tuple(x.shape)} and {tuple(w.shape)}")
    sizes = _sizes(op, group_sizes, w.shape[0])
    return grouped_gemm(x, w, sizes, transpose_b=True, implementation=implementation)


@api
def moe_scalar_gguf(
    x: ArrayLike,
    data: ArrayLike,
    group_sizes: ArrayLike,
    format: str | int,
    *,
    implementation: Implementation = None,
) -> Array:
    """Products of rows that are sorted by expert with the packed weights of the experts, of a block format of GGUF files.

    Formula:
        y[r, n] = the sum of x[r, k] W[e][n, k], for row r of expert e, where W is gguf_dequantize(data, format): the first
        group_sizes[0] rows are those of expert 0, and so on. Rows after the last expert's are 0.

    Args:
        x: floats [R, K], as `moe_permute` returns them.
        data: uint8 [E, N, bytes of a row], whole blocks, as they are in the file.
        group_sizes: integers [E] of at least 0, the numbers of rows.
        format: static, a format of `gguf_dequantize`.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [R, N] of x's dtype. `moe_combine` adds the rows of each token. It is differentiable in x.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: that of `gguf_mmvq_batched`, which it calls.

    Source: llama.cpp's mul_mat_id.
    """
    op = "moe_scalar_gguf"
    x, data = checks.floats(op, "x", x), checks.array(op, "data", data)
    if x.ndim != 2 or data.ndim != 3:
        raise ValueError(
            f"{op}: x must have two dimensions and data three, got shapes {tuple(x.shape)} and {tuple(data.shape)}"
        )
    experts = group_of_rows(_sizes(op, group_sizes, data.shape[0]), rows=x.shape[0])
    return gguf_mmvq_batched(x, data, experts, format, implementation=implementation)


def _sizes(op, group_sizes, count):
    group_sizes = checks.array(op, "group_sizes", group_sizes)
    checks.dtype(op, "group_sizes", group_sizes, checks.INTEGERS)
    checks.shape(op, "group_sizes", group_sizes, (count,), "one for each expert")
    return group_sizes


compose(
    "moe_wmma",
    family="moe",
    category=OpCategory.MOE,
    public=moe_wmma,
    cases=(
        Case(
            "groups",
            lambda rng: (rng.standard_normal((9, 5)), rng.standard_normal((3, 4, 5)), np.array([4, 0, 3], np.int32)),
        ),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "w", "group_sizes"),
    made_of=("grouped_gemm",),
    differentiable=("x", "w"),
    constant={"group_sizes": "they are integers"},
)


def _case(name, format, rows, sizes, out, weights):
    def draw(rng):
        data = random_blocks(rng, format, len(sizes), out, weights // 256 * gguf_blocks(format))
        return rng.standard_normal((rows, weights)), data, np.array(sizes, np.int32)

    return Case(name, draw, {"format": format})


compose(
    "moe_scalar_gguf",
    family="moe",
    category=OpCategory.MOE,
    public=moe_scalar_gguf,
    cases=(_case("groups", "Q4_K", 6, [2, 0, 3], 4, 256),),
    dtypes=checks.FLOATS,
    operands=("x", "data", "group_sizes"),
    made_of=("gguf_mmvq_batched",),
    differentiable=("x",),
    constant={"data": "the weights are packed", "group_sizes": "they are integers"},
)
