"""The Cholesky factorization."""

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
from ._declared import case, definite
from ._matrices import adjoint, diagonal, hermitian, matmul, matrices, rounded, scaled_identity, triangular
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def cholesky(x: ArrayLike, *, upper: bool = False, implementation: Implementation = None) -> Array:
    """Cholesky factor of positive definite matrices.

    Formula:
        (x + x^H) / 2 = L L^H, with L lower triangular and a positive diagonal. dL = L phi(L^-1 dx L^-H), where phi keeps
        what is below the diagonal and half of the diagonal, of the Hermitian part of dx.

    Args:
        x: floats or complex numbers of shape (..., n, n). Its Hermitian part is factorized.
        upper: static, whether to return L^H instead of L.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of x's shape and dtype; NaN for a matrix that is not positive definite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.cholesky, which reads the lower triangle alone; jax.numpy.linalg.cholesky; numpy.linalg.cholesky.
    """
    op = "cholesky"
    x, upper = matrices(op, "x", x, square=True), checks.flag(op, "upper", upper)
    if not is_small(op, implementation, x):
        return _cholesky(x, upper=upper)
    return rounded(x.dtype, _op(wide(x), upper=upper, implementation=implementation))


@compiled("upper")
def _cholesky(x, *, upper):
    return rounded(x.dtype, *_reference(x, upper=upper))


def _reference(x, *, upper):
    y = jnp.linalg.cholesky(hermitian(x), symmetrize_input=False)
    is_whole = jnp.isfinite(y).all((-2, -1), keepdims=True)
    y = jnp.where(is_whole, y, jnp.nan)
    return (adjoint(y) if upper else y,)


def _native(x, *, upper, save):
    y = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return kernel("cholesky", "...nm -> ...nm", x, out=[y], upper=upper)


def _tangent(y, dx, *, upper):
    lower = adjoint(y) if upper else y
    inner = triangular(lower, triangular(lower, hermitian(dx), lower=True).mT, lower=True)
    half = jnp.tril(inner) - scaled_identity(diagonal(inner) / 2)
    dy = matmul(lower, half)
    return (adjoint(dy) if upper else dy,)


def _backward(y, dy, *, upper):
    dx = jax.ShapeDtypeStruct(y.shape, y.dtype)
    return kernel("cholesky_backward", "...nm, ...nm -> ...nm", y, dy, out=[dx], upper=upper)


_op = of_small_matrices(
    "cholesky",
    cholesky,
    (
        case("lower", (2, 4, 4), draw=definite),
        case("upper", (2, 1, 3, 3), draw=definite, upper=True),
        case("of a team", (3, 7, 7), draw=definite),
    ),
    forward=(_reference, _native),
    tangent=(_tangent,),
    backward=_backward,
    residuals=("y",),
    like="y",
)
