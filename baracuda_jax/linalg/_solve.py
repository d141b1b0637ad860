"""Linear systems and least squares."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case, declared
from ._matrices import adjoint, finite, matmul, matrices, rounded
from ._right_sides import as_it_came, right_sides, same_batches
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def solve(a: ArrayLike, b: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Solution of square linear systems.

    Formula:
        a y = b; dy = a^-1 (db - da y).

    Args:
        a: floats or complex numbers of shape (..., n, n).
        b: array of a's dtype, of shape (n,), or (..., n, k), whose batch dimensions broadcast with a's.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of shape (..., n) or (..., n, k) and a's dtype. A singular matrix gives infinities or NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.solve, which also takes batches of vectors; jax.numpy.linalg.solve; numpy.linalg.solve.
    """
    op = "solve"
    a, b = right_sides(op, matrices(op, "a", a, square=True), b)
    matrix, sides = same_batches(a, b)
    if is_small(op, implementation, matrix, sides):
        return as_it_came(a, b, _op(matrix, sides, implementation=implementation))
    return as_it_came(a, b, _solve(matrix, sides))


@compiled()
def _solve(a, b):
    return jnp.linalg.solve(a, b)


def _native(a, b, *, save):
    return kernel("solve", "...nm, ...nk -> ...nk", a, b, out=[jax.ShapeDtypeStruct(b.shape, b.dtype)])


def _tangent(a, y, da, db):
    return (jnp.linalg.solve(a, db - matmul(da, y)),)


def _backward(a, y, dy):
    db = jnp.linalg.solve(a.mT, dy)
    return -matmul(db, y.mT), db


def _backward_native(a, y, dy):
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (a, y)]
    return kernel("solve_backward", "...nm, ...nk, ...nk -> ...nm, ...nk", a, y, dy, out=out)


@facade_api("cusolver", has_kernels=True)
def inverse(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Inverse of square matrices.

    Formula:
        y = x^-1; dy = -y dx y.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of x's shape and dtype. A singular matrix gives infinities or NaN.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. `solve` is more exact than a product with y.

    Source: torch.linalg.inv, torch.inverse; jax.numpy.linalg.inv; numpy.linalg.inv.
    """
    op = "inverse"
    x = matrices(op, "x", x, square=True)
    if not is_small(op, implementation, x):
        return _inverse(x)
    return rounded(x.dtype, _inverse_op(wide(x), implementation=implementation))


@compiled()
def _inverse(x):
    return rounded(x.dtype, jnp.linalg.inv(wide(x)))


def _inverse_native(x, *, save):
    return kernel("inverse", "...nm -> ...nm", x, out=[jax.ShapeDtypeStruct(x.shape, x.dtype)])


def _inverse_tangent(y, dx):
    return (-matmul(y, matmul(dx, y)),)


def _inverse_backward(y, dy):
    return kernel("inverse_backward", "...nm, ...nm -> ...nm", y, dy, out=[jax.ShapeDtypeStruct(y.shape, y.dtype)])


@facade_api("cusolver")
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, implementation: Implementation = None
) -> tuple[Array, Array, Array, Array]:
    """Least-squares solution of smallest norm, for matrices of any rank.

    Formula:
        y = P b, P the pseudoinverse of a. With r = b - a y: dy = P (db - da y) + P P^H da^H r + (I - P a) da^H P^H y,
        where the rank stays the same.

    Args:
        a: floats or complex numbers of shape (..., m, n).
        b: array of a's dtype, of shape (m,), or (..., m, k), whose batch dimensions broadcast with a's.
        rcond: static number, relative to the largest singular value: smaller ones are taken for 0. None for the dtype's
            machine epsilon times max(m, n).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (y, residuals, rank, s): y of shape (..., n) or (..., n, k); residuals, the squared norms of the columns of b - a
        y, of shape (...) or (..., k); rank, int32, of shape (...); the singular values s of a, of shape (..., min(m, n)).
        The first has derivatives, also where singular values are equal. NaN where a matrix has elements that are not
        finite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.lstsq, whose default driver needs full rank; jax.numpy.linalg.lstsq, whose derivative is NaN
    where singular values are equal; numpy.linalg.lstsq, whose residuals are empty for matrices of lower rank.
    """
    op = "lstsq"
    a, b = right_sides(op, matrices(op, "a", a), b)
    if rcond is not None:
        if isinstance(rcond, jax.core.Tracer | bool) or not isinstance(rcond, int | float | np.floating):
            raise TypeError(f"{op}: rcond must be a static number or None, got {rcond!r}")
        if not rcond >= 0:
            raise ValueError(f"{op}: rcond must be at least 0, got {rcond!r}")
        rcond = float(rcond)
    return _lstsq(a, b, rcond=rcond)


@compiled("rcond")
def _lstsq(a, b, *, rcond):
    rows, sides = same_batches(a, b)
    known, back = finite(rows)
    rcond = float(jnp.finfo(known.dtype).eps) * max(known.shape[-2:]) if rcond is None else rcond
    s = jnp.linalg.svd(jax.lax.stop_gradient(known), compute_uv=False)
    rank = (s > rcond * s.max(-1, initial=0, keepdims=True)).sum(-1, dtype=jnp.int32)
    y = back(_least_squares(known, sides, rcond))
    r = sides - matmul(rows, y)
    squares = (jnp.square(r.real) + jnp.square(r.imag) if jnp.iscomplexobj(r) else jnp.square(r)).sum(-2)
    y, squares = (y, squares) if b.ndim > 1 else (y[..., 0], squares[..., 0])
    return *rounded(a.dtype, y, squares), rank, rounded(a.dtype, back(s))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _pseudoinverse(a, rcond):
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    is_kept = s > rcond * s.max(-1, initial=0, keepdims=True)
    inverse = jnp.where(is_kept, 1 / jnp.where(is_kept, s, 1), 0).astype(a.dtype)
    return matmul(adjoint(vh), inverse[..., :, None] * adjoint(u))


@_pseudoinverse.defjvp
def _pseudoinverse_jvp(rcond, primals, tangents):
    (a,), (da,) = primals, tangents
    p, dah = _pseudoinverse(a, rcond), adjoint(da)
    square = matmul(matmul(p, adjoint(p)), dah)
    other = matmul(dah, matmul(adjoint(p), p))
    dp = square - matmul(matmul(square, a), p) + other - matmul(p, matmul(a, other)) - matmul(p, matmul(da, p))
    return p, dp


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _least_squares(a, b, rcond):
    return matmul(_pseudoinverse(a, rcond), b)


@_least_squares.defjvp
def _least_squares_jvp(rcond, primals, tangents):
    (a, b), (da, db) = primals, tangents
    y, p = _least_squares(a, b, rcond), _pseudoinverse(a, rcond)
    dah, ph = adjoint(da), adjoint(p)
    outside = matmul(dah, matmul(ph, y))
    dy = matmul(p, db - matmul(da, y) + matmul(ph, matmul(dah, b - matmul(a, y))))
    return y, dy + outside - matmul(p, matmul(a, outside))


_op = of_small_matrices(
    "solve",
    solve,
    (
        case("a batch", (2, 3, 3), (2, 3, 3)),
        case("one right side", (2, 3, 3), (1, 3, 4)),
        case("of a team", (2, 6, 6), (2, 6, 1)),
    ),
    forward=(lambda a, b: (jnp.linalg.solve(a, b),), _native),
    tangent=(_tangent,),
    backward=(_backward, _backward_native),
    operands=("a", "b"),
    residuals=("a", "y"),
)
_inverse_op = of_small_matrices(
    "inverse",
    inverse,
    (case("a batch", (2, 4, 4)), case("two batches", (2, 1, 3, 3)), case("of a team", (2, 7, 7))),
    forward=(lambda x: (jnp.linalg.inv(x),), _inverse_native),
    tangent=(_inverse_tangent,),
    backward=_inverse_backward,
    residuals=("y",),
    like="y",
)
declared(
    "lstsq",
    public=lstsq,
    cases=(
        case("tall", (2, 4, 3), (2, 4, 3)),
        case("wide", (2, 2, 3), (2, 2, 3)),
    ),
    dtypes=checks.FLOATS,
    own_rules=True,
    operands=("a", "b"),
    differentiable=("a", "b"),
)
