"""Products of groups of rows with a matrix each, as of the experts of a mixture."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.body import Body
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import contracted, known_precision, matrix, sizes
from ._by_group import by_group, native_by_group, native_sums_by_group, sums_by_group


@api
def grouped_gemm(
    a: ArrayLike,
    b: ArrayLike,
    group_sizes: ArrayLike,
    *,
    transpose_b: bool = False,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Products of adjacent groups of rows with a matrix each.

    Formula:
        y[i] = a[i] b[g], for row i of group g: the first group_sizes[0] rows are those of group 0, and so on. Rows after the
        last group are 0. da[i] = dy[i] b[g]^T, and db[g] is the sum of the outer products of a[i] and dy[i] over its rows.

    Args:
        a: matrix [M, K] of floats, its rows sorted by group.
        b: matrices [G, K, N] of a's dtype.
        group_sizes: integers [G] of at least 0, the numbers of rows. Their sum is at most M.
        transpose_b: static, whether b is [G, N, K].
        precision: that of jax.lax.dot_general: None, "default", "high", "highest", a jax.lax.Precision or an algorithm.
        implementation: "native" (the kernel), "xla" (a library's products), a PlanPreference, or None for automatic.

    Returns:
        Array [M, N] of a's dtype. The arithmetic is that of M rows, and of at most one tile of 16 to 1024 rows more for each
        group, 32 to 128 in the kernel, whatever their sizes are.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are accumulated in float32 and rounded once. Their gradients are products of what is
    rounded to 16 bits, accumulated in float32. The kernel multiplies float32 as such, whatever `precision` is.

    Source: jax.lax.ragged_dot; torch._grouped_mm.
    """
    op = "grouped_gemm"
    a, b, groups = _arguments(op, a, b, group_sizes, transpose_b)
    params = dict(transpose_b=bool(transpose_b), precision=known_precision(op, precision))
    return GROUPED(a, b, groups, **params, implementation=implementation)


@api
def grouped_gemm_backward(
    a: ArrayLike,
    b: ArrayLike,
    dy: ArrayLike,
    group_sizes: ArrayLike,
    *,
    transpose_b: bool = False,
    precision: Any = None,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradient of `grouped_gemm`: da[i] = dy[i] b[g]^T for row i of group g, and db[g] = the sum of the outer products
    of a[i] and dy[i] over its rows.

    Args:
        a, b, group_sizes, transpose_b, precision, implementation: as in `grouped_gemm`.
        dy: floats [M, N] of a's dtype, the cotangent of the result.

    Returns:
        The cotangents of a and b.
    """
    op = "grouped_gemm_backward"
    a, b, groups = _arguments(op, a, b, group_sizes, transpose_b)
    dy = matrix(op, "dy", dy, 2)
    checks.same_dtype(op, "dy", dy, "a", a)
    checks.shape(op, "dy", dy, (a.shape[0], b.shape[1 if transpose_b else 2]), "the result's")
    params = dict(transpose_b=bool(transpose_b), precision=known_precision(op, precision))
    return tuple(GROUPED.vjp(a, b, groups, dy, **params, implementation=implementation))


def _arguments(op, a, b, group_sizes, transpose_b):
    """(a, b, the group of each row)"""
    a, b = matrix(op, "a", a, 2), matrix(op, "b", b, 3)
    checks.same_dtype(op, "b", b, "a", a)
    contracted(op, "b", b, sizes(op, b, transpose_b, name="transpose_b")[0], a, a.shape[1])
    group_sizes = checks.array(op, "group_sizes", group_sizes)
    checks.dtype(op, "group_sizes", group_sizes, checks.INTEGERS)
    checks.shape(op, "group_sizes", group_sizes, b.shape[:1], f"one for each matrix of b of shape {b.shape}")
    return a, b, group_of_rows(group_sizes, rows=a.shape[0])


@compiled("rows")
def group_of_rows(group_sizes, *, rows):
    """The group of each row; the number of groups after the last."""
    ends = jnp.cumsum(group_sizes.astype(jnp.int32))
    return (jnp.arange(rows, dtype=jnp.int32)[:, None] >= ends[None]).sum(1, dtype=jnp.int32)


def _bodies(product_of, sums_of):
    """Of the op and its derivatives, by what multiplies rows by group, and what adds up their outer products."""

    def forward(a, b, groups, *, save=False, transpose_b, precision):
        return (product_of(a, b, groups, transpose_b=transpose_b, precision=precision),)

    def tangent(a, b, groups, da, db, **params):
        return (forward(da, b, groups, **params)[0] + forward(a, db, groups, **params)[0],)

    def backward(a, b, groups, dy, *, transpose_b, precision):
        of_b = (dy, a) if transpose_b else (a, dy)
        da = product_of(dy, b, groups, transpose_b=not transpose_b, precision=precision)
        return da, sums_of(*of_b, groups, b.shape[-3], precision=precision)

    return forward, tangent, backward


_REFERENCE, _NATIVE = _bodies(by_group, sums_by_group), _bodies(native_by_group, native_sums_by_group)
_FORWARD, _TANGENT, _BACKWARD = map(Body, _REFERENCE, _NATIVE)


def _labels(names, types, params):
    b = ("g", "n", "k") if params["transpose_b"] else ("g", "k", "n")
    last = {"a": ("m", "k"), "b": b, "groups": ("m",), "y": ("m", "n")}
    of = lambda name, rank: (*(f"batch{i}" for i in range(rank - len(last[name]))), *last[name])
    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _case(name, a, b, sizes, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(a), rng.standard_normal(b), np.array(sizes, np.int32)), kwargs)


GROUPED = declare(
    "grouped_gemm",
    family="gemm",
    category=OpCategory.GEMM,
    public=grouped_gemm,
    cases=(
        _case("groups", (9, 5), (3, 5, 4), [4, 0, 5]),
        _case("whole chunks", (9, 16), (3, 16, 8), [4, 0, 5]),
        _case("rows without a group", (8, 4), (2, 3, 4), [3, 2], transpose_b=True),
    ),
    dtypes=checks.FLOATS,
    operands=("a", "b", "groups"),
    differentiable=("a", "b"),
    constant={"groups": "integers carry no derivative"},
    residuals=("a", "b", "groups"),
    multilinear=True,
    batched=as_they_are,
    cut=Partition(_labels, whole=frozenset("g"), plain=True),
    forward=_FORWARD,
    tangent=_TANGENT,
    backward=_BACKWARD,
    kernels={
        "forward": ("segment_index", "grouped_products"),
        "tangent": ("segment_index", "grouped_products"),
        "backward": ("segment_index", "grouped_products", "grouped_sums"),
    },
    regime=lambda call: {"length": call.operand("groups").shape[-1], "matrices": call.operand("b").shape[-3]},
    fused=True,
)
