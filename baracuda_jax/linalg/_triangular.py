"""Linear systems of triangular matrices."""

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case
from ._matrices import adjoint, matmul, matrices, rounded
from ._right_sides import as_it_came, right_sides, same_batches
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    upper: bool = False,
    left: bool = True,
    transpose: bool = False,
    unit_diagonal: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Solution of linear systems of triangular matrices.

    Formula:
        A y = b, or y A = b, where A is the lower triangle of a, or the upper one, or its conjugate transpose. With A on the
        left dy = A^-1 (db - dA y), where dA is the same triangle of da.

    Args:
        a: floats or complex numbers of shape (..., n, n). The other triangle is not read.
        b: array of a's dtype, of shape (n,), or (..., n, k), or (..., k, n) where A is on the right. Its batch dimensions
            broadcast with a's.
        upper: static, whether A is the upper triangle.
        left: static, whether A is on the left.
        transpose: static, whether A is the conjugate transpose of the triangle.
        unit_diagonal: static, whether the diagonal of A is ones. That of a is then not read.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of a's dtype, of shape (n,), (..., n, k) or (..., k, n). A zero on the diagonal gives infinities or NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.solve_triangular; jax.lax.linalg.triangular_solve, where A is on the right by default;
    scipy.linalg.solve_triangular.
    """
    op = "triangular_solve"
    upper, transpose, unit = _flags(op, upper, transpose, unit_diagonal)
    left = checks.flag(op, "left", left)
    a, b = right_sides(op, matrices(op, "a", a, square=True), b, left)
    flags = {"upper": upper, "transpose": transpose if left else not transpose, "unit": unit}
    matrix, sides = same_batches(a, b if left else _turned(b))
    if is_small(op, implementation, matrix, sides):
        y = _op(matrix, sides, implementation=implementation, **flags)
    else:
        y = _solve(matrix, sides, **flags)
    y = as_it_came(a, b, y)
    return y if left else _turned(y)


@api
def triangular_solve_backward(
    a: ArrayLike,
    y: ArrayLike,
    dy: ArrayLike,
    *,
    upper: bool = False,
    left: bool = True,
    transpose: bool = False,
    unit_diagonal: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradient of `triangular_solve`: with A on the left db = A^-T dy, and da has the triangle of -db y^T.

    Args:
        a: floats of shape (..., n, n), as for `triangular_solve`.
        y: its result, of a's dtype, of shape (..., n, k), or (..., k, n) where A is on the right, with a's batch dimensions.
        dy: the cotangent of y, of its shape and dtype.
        upper, left, transpose, unit_diagonal: as in `triangular_solve`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of a, zeros where it is not read, and of b.
    """
    op = "triangular_solve_backward"
    upper, transpose, unit = _flags(op, upper, transpose, unit_diagonal)
    left = checks.flag(op, "left", left)
    a = matrices(op, "a", a, square=True)
    checks.dtype(op, "a", a, checks.FLOATS)
    y, dy = matrices(op, "y", y), matrices(op, "dy", dy)
    for name, x in (("y", y), ("dy", dy)):
        checks.same_dtype(op, name, x, "a", a)
    if y.shape[:-2] != a.shape[:-2]:
        raise ValueError(f"{op}: y must have the batch dimensions of a, {a.shape[:-2]}, got shape {y.shape}")
    if y.shape[-2 if left else -1] != a.shape[-1]:
        side = "rows" if left else "columns"
        raise ValueError(f"{op}: y must have {a.shape[-1]} {side}, as a has, got shape {y.shape}")
    checks.shape(op, "dy", dy, y.shape, "that of y")
    flags = {"upper": upper, "transpose": transpose if left else not transpose, "unit": unit}
    values = wide(a), *(wide(x if left else _turned(x)) for x in (y, dy))
    if is_small(op, implementation, *values):
        da, db = _op.vjp(*values, **flags, implementation=implementation)
    else:
        da, db = _backward_of_large(*values, **flags)
    return rounded(a.dtype, da, db if left else _turned(db))


def _flags(op, upper, transpose, unit_diagonal):
    flag = functools.partial(checks.flag, op)
    return flag("upper", upper), flag("transpose", transpose), flag("unit_diagonal", unit_diagonal)


@compiled("upper", "transpose", "unit")
def _backward_of_large(*values, **flags):
    return _backward_by(_reference)(*values, **flags)


@compiled()
def _turned(b):
    """y A = b is A^H y^H = b^H."""
    return b.conj() if b.ndim == 1 else adjoint(b)


@compiled("upper", "transpose", "unit")
def _solve(a, b, *, upper, transpose, unit):
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=not upper, transpose_a=transpose, conjugate_a=transpose, unit_diagonal=unit
    )


def _kernel(a, b, **flags):
    return kernel(
        "triangular_solve", "...nm, ...nk -> ...nk", a, b, out=[jax.ShapeDtypeStruct(b.shape, b.dtype)], **flags
    )


def _tangent_by(solve):
    def tangent(a, y, da, db, *, upper, transpose, unit):
        moved = _triangle(da, upper, unit)
        moved = matmul(moved.mT if transpose else moved, y)
        return tuple(solve(a, db - moved, upper=upper, transpose=transpose, unit=unit))

    return tangent


def _backward_by(solve):
    def backward(a, y, dy, *, upper, transpose, unit):
        (db,) = solve(a, dy, upper=upper, transpose=not transpose, unit=unit)
        da = -matmul(y, db.mT) if transpose else -matmul(db, y.mT)
        return _triangle(da, upper, unit), db

    return backward


def _triangle(x, upper, unit):
    return jnp.triu(x, int(unit)) if upper else jnp.tril(x, -int(unit))


def _reference(a, b, **flags):
    return (_solve(a, b, **flags),)


def _mild(rng, *shape):
    return 0.5 * rng.standard_normal(shape)


_op = of_small_matrices(
    "triangular_solve",
    triangular_solve,
    (
        case("lower", (2, 3, 3), (2, 3, 2)),
        case("upper, of a team", (2, 6, 6), (2, 6, 3), upper=True),
        case("transposed", (2, 4, 4), (1, 4, 3), transpose=True),
        case("on the right", (2, 3, 3), (2, 2, 3), upper=True, left=False),
        case("ones", (2, 1, 5, 5), (2, 1, 5, 2), draw=_mild, upper=True, transpose=True, unit_diagonal=True),
    ),
    forward=(_reference, lambda a, b, *, save, **flags: _kernel(a, b, **flags)),
    tangent=(_tangent_by(_reference), _tangent_by(_kernel)),
    backward=(_backward_by(_reference), _backward_by(_kernel)),
    operands=("a", "b"),
    residuals=("a", "y"),
    kernels={kind: ("triangular_solve",) for kind in ("forward", "tangent", "backward")},
)
