"""Eigenvalues and eigenvectors of Hermitian matrices and of others."""

import functools
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case, one_matrix
from ._matrices import (
    adjoint,
    degenerate_of,
    diagonal,
    finite,
    fixed_phases,
    gaps,
    hermitian,
    matmul,
    matrices,
    rounded,
)
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def eigh(
    x: ArrayLike, *, degenerate: Literal["nan", "zero"] = "nan", implementation: Implementation = None
) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Formula:
        (x + x^H) / 2 = V diag(w) V^H. With E = V^H dx V, of the Hermitian part of dx: dw = diag(E) and dV = V A, where
        A_ij = E_ij / (w_j - w_i), 0 for i = j.

    Args:
        x: floats or complex numbers of shape (..., n, n). Its Hermitian part is decomposed.
        degenerate: static, what derivatives of eigenvectors are where eigenvalues are equal: "nan", NaN or infinite, or
            "zero", without the terms of pairs whose difference is about the rounding error. That is right for the first
            derivatives of sums over all of w, such as traces, and of projections to the vectors of all equal values. It
            is not for V f(w) V^H.
        implementation: "native" (the kernel, of real matrices of at most 32 x 32), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (w, v) of shapes (..., n) and (..., n, n), w real. In each column of v the first element that is about as large as
        any is positive and real. NaN where a matrix has elements that are not finite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Vectors are exact up to the rounding error
    divided by the distance of their eigenvalue from others.

    Source: torch.linalg.eigh and numpy.linalg.eigh, which read one triangle alone; jax.numpy.linalg.eigh.
    """
    op = "eigh"
    x, degenerate = matrices(op, "x", x, square=True), degenerate_of(op, degenerate)
    if not is_small(op, implementation, x):
        return _eigh(x, degenerate=degenerate)
    return rounded(x.dtype, *_op(wide(x), degenerate=degenerate, implementation=implementation, save=True))


@compiled("degenerate")
def _eigh(x, *, degenerate):
    known, back = finite(hermitian(x))
    w, v = _of_hermitian(known, degenerate)
    return rounded(x.dtype, back(w), back(v * fixed_phases(v)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _of_hermitian(x, degenerate):
    w, v = jnp.linalg.eigh(x, symmetrize_input=False)
    return w, v


@_of_hermitian.defjvp
def _of_hermitian_jvp(degenerate, primals, tangents):
    (x,), (dx,) = primals, tangents
    w, v = _of_hermitian(x, degenerate)
    return (w, v), _tangent(w, v, dx, degenerate=degenerate)


def _tangent(w, v, dx, *, degenerate):
    """Of a Hermitian dx."""
    e = matmul(adjoint(v), matmul(dx, v))
    return diagonal(e).real, matmul(v, e * gaps(w, degenerate).astype(v.dtype))


def _native(x, *, degenerate, save):
    out = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in (x.shape[:-1], x.shape)]
    return kernel("eigh", "...nm -> ...n, ...nm", x, out=out)[: None if save else 1]


def _backward(w, v, dw, dv, *, degenerate):
    dx = [jax.ShapeDtypeStruct(v.shape, v.dtype)]
    if dv is None:
        return kernel("eigenvalues_backward", "...nm, ...m -> ...nm", v, dw, out=dx)
    dw = jnp.zeros_like(w) if dw is None else dw
    dims, drops_equal = "...m, ...nm, ...m, ...nm -> ...nm", degenerate == "zero"
    return kernel("eigh_backward", dims, w, v, dw, dv, out=dx, drops_equal=drops_equal)


@facade_api("cusolver")
def eig(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array]:
    """Eigenvalues and right eigenvectors of square matrices.

    Formula:
        x V = V diag(w), with columns of V of norm 1. With C = V^-1 dx V: dw = diag(C), and dV is V A, where
        A_ij = C_ij / (w_j - w_i), 0 for i = j, and what keeps norms and phases.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (w, v) of shapes (..., n) and (..., n, n), both complex, in LAPACK's order. In each column of v the first element
        that is about as large as any is positive and real. NaN where a matrix has elements that are not finite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.
        NotImplementedError: on platforms where JAX has no such decomposition. It runs on CPUs, and on GPUs by what this
            version of JAX has for them.

    Precision: float16 and bfloat16 are computed in complex64. Derivatives are infinite or NaN at repeated eigenvalues:
    there are none.

    Source: torch.linalg.eig; numpy.linalg.eig; jax.numpy.linalg.eig, which has no derivative of v by default.
    """
    return _eig(matrices("eig", "x", x, square=True))


@compiled()
def _eig(x):
    known, back = finite(wide(x))
    w, v = _general(known)
    v = v / jnp.sqrt((jnp.square(v.real) + jnp.square(v.imag)).sum(-2, keepdims=True)).astype(v.dtype)
    return back(w), back(v * fixed_phases(v))


@jax.custom_jvp
def _general(x):
    w, v = jnp.linalg.eig(x)
    return w, v


@_general.defjvp
def _general_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    w, v = _general(x)
    c = jnp.linalg.solve(v, matmul(dx.astype(v.dtype), v))
    return (w, v), (diagonal(c), matmul(v, c * gaps(w, "nan")))


_CASES = case("a batch", (2, 4, 4)), case("two batches", (2, 1, 3, 3))
_op = of_small_matrices(
    "eigh",
    eigh,
    (*_CASES, case("degenerate", (2, 3, 3), degenerate="zero"), case("of a team", (2, 5, 5))),
    forward=(lambda x, *, degenerate: _eigh(x, degenerate=degenerate), _native),
    tangent=(lambda w, v, dx, *, degenerate: _tangent(w, v, hermitian(dx), degenerate=degenerate),),
    backward=_backward,
    residuals=("w", "v"),
    results=("w", "v"),
    outputs=("w", "v"),
    like="v",
    sometimes=("eigenvalues_backward",),
    largest=32,
)
one_matrix("eig", eig, _CASES, dtypes=checks.COMPLEX, outputs=("w",), own_rules=True)
