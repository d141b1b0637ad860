"""LU factorizations with partial pivoting, and determinants."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case, definite, one_matrix
from ._matrices import matrices, rounded


@facade_api("cusolver")
def lu(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array, Array]:
    """LU factorization with partial pivoting, as three matrices.

    Formula:
        x = P L U, with a permutation P, L lower trapezoidal with a diagonal of ones, and U upper trapezoidal. For a
        square x and F = L^-1 P^T dx U^-1: dL = L tril(F, -1) and dU = triu(F) U.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (p, l, u) of shapes (..., m, m), (..., m, k) and (..., k, n) for k = min(m, n), in x's dtype. A singular matrix
        has zeros on the diagonal of u.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.lu; jax.scipy.linalg.lu; scipy.linalg.lu.
    """
    return _lu(matrices("lu", "x", x))


@compiled()
def _lu(x):
    p, lower, upper = _of_each(jax.scipy.linalg.lu, wide(x))
    return rounded(x.dtype, p.astype(lower.dtype), lower, upper)


@facade_api("cusolver")
def lu_factor(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array]:
    """LU factorization with partial pivoting, as one matrix and pivots, which `jax.scipy.linalg.lu_solve` takes.

    Formula:
        x = P L U, as for `lu`. Row i was exchanged with row pivots[i], for i = 0, 1, ... in this order.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (lu, pivots). lu, of x's shape and dtype, has U on and above the diagonal and L below it. pivots is int32 of shape
        (..., min(m, n)) and counts from 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.lu_factor, whose pivots count from 1; jax.scipy.linalg.lu_factor; scipy.linalg.lu_factor.
    """
    return _lu_factor(matrices("lu_factor", "x", x))


@compiled()
def _lu_factor(x):
    packed, pivots = _of_each(jax.scipy.linalg.lu_factor, wide(x))
    return rounded(x.dtype, packed), pivots.astype(jnp.int32)


def _of_each(fun, x):
    """fun of each matrix. Versions of SciPy's functions in JAX differ in whether they take batches."""
    for _ in x.shape[:-2]:
        fun = jax.vmap(fun)
    return fun(x)


@facade_api("cusolver")
def det(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Determinant of square matrices.

    Formula:
        y = det(x); dy = y trace(x^-1 dx), or the trace of the adjugate times dx where x is singular.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of shape (...) and x's dtype; 1 for empty matrices.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Second derivatives need a regular matrix.

    Source: torch.linalg.det; jax.numpy.linalg.det; numpy.linalg.det.
    """
    return _det(matrices("det", "x", x, square=True))


@compiled()
def _det(x):
    if x.shape[-1] == 0:  # where JAX has no derivative
        return jnp.ones(x.shape[:-2], x.dtype)
    # Of a batch JAX's derivative gathers rows by indices of the batch, which XLA partitions wrongly into unequal shards.
    return rounded(x.dtype, _of_each(jnp.linalg.det, wide(x)))


@facade_api("cusolver")
def slogdet(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array]:
    """Sign and logarithm of the magnitude of the determinant, which neither over- nor underflows.

    Formula:
        det(x) = sign exp(logabsdet); dlogabsdet = trace(x^-1 dx), its real part.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (sign, logabsdet) of shape (...): sign in x's dtype, 0 for a singular matrix, of magnitude 1 otherwise; logabsdet
        in the real dtype, -infinity for a singular matrix.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.slogdet; jax.numpy.linalg.slogdet; numpy.linalg.slogdet.
    """
    return _slogdet(matrices("slogdet", "x", x, square=True))


@compiled()
def _slogdet(x):
    sign, logabsdet = jnp.linalg.slogdet(wide(x))
    return rounded(x.dtype, sign, logabsdet)


_CASES = case("tall", (2, 4, 3)), case("wide", (2, 3, 4)), case("square", (2, 3, 3))
_SQUARE = tuple(
    case(name, shape, draw=lambda rng, *shape: 0.3 * definite(rng, *shape))
    for name, shape in (("a batch", (2, 4, 4)), ("two batches", (2, 1, 3, 3)))
)
one_matrix("lu", lu, _CASES, dtypes=checks.INEXACT, outputs=("p", "l", "u"))
one_matrix("lu_factor", lu_factor, _CASES, dtypes=checks.INEXACT, outputs=("lu",))
one_matrix("det", det, _SQUARE, dtypes=checks.INEXACT)
one_matrix("slogdet", slogdet, _SQUARE, outputs=("sign", "logabsdet"))
