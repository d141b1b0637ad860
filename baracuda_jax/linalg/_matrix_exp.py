"""The matrix exponential."""

import math

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case, definite
from ._matrices import finite, identity, matmul, matrices, rounded
from ._small import is_small, of_small_matrices

SQUARES = 16  # at most; a loop of a known length has a gradient
# Padé's approximation: its degree, and the norm up to which it is exact in the dtype (Higham, 2005).
NARROW, WIDE = (7, 3.925724783138660), (13, 5.371920351148152)


@facade_api("cusolver", has_kernels=True)
def matrix_exp(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Exponential of square matrices.

    Formula:
        y = I + x + x^2 / 2 + x^3 / 6 + ..., computed by scaling, a rational approximation and repeated squares.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "native" (the kernel, of real matrices of at most 32 x 32), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of x's shape and dtype. NaN where a matrix has elements that are not finite, or a norm of more than about 2^18.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.matrix_exp; jax.scipy.linalg.expm; scipy.linalg.expm.
    """
    op = "matrix_exp"
    x = matrices(op, "x", x, square=True)
    if not is_small(op, implementation, x):
        return _matrix_exp(x)
    return rounded(x.dtype, _op(wide(x), implementation=implementation))


@compiled()
def _matrix_exp(x):
    if x.size == 0:
        return x
    known, back = finite(wide(x))
    return rounded(x.dtype, back(_exponential(known)))


def _exponential(x):
    degree, largest = NARROW if jnp.finfo(x.dtype).bits == 32 else WIDE
    norm = lax.stop_gradient(jnp.abs(x).sum(-2).max(-1))
    count = jnp.ceil(jnp.log2(jnp.maximum(norm / largest, 1))).astype(jnp.int32)[..., None, None]
    scale = jnp.ldexp(jnp.ones((), norm.dtype), -jnp.minimum(count, SQUARES))

    def square(i, y):
        is_due = i < count
        # What is not due is not squared, lest it overflows.
        known = jnp.where(is_due, y, 0)
        return jnp.where(is_due, matmul(known, known), y)

    y = lax.fori_loop(0, SQUARES, square, _rational(x * scale.astype(x.dtype), degree))
    return jnp.where(count <= SQUARES, y, jnp.nan)


def _rational(x, m):
    """p(-x)^-1 p(x), with odd and even powers apart."""
    powers = [identity(*x.shape[-2:], x), matmul(x, x)]
    while len(powers) < m // 2 + 1:
        powers.append(matmul(powers[1], powers[-1]))
    b = [math.comb(m, j) * math.factorial(2 * m - j) / math.factorial(2 * m) for j in range(m + 1)]
    odd = matmul(x, sum(b[2 * k + 1] * power for k, power in enumerate(powers)))
    even = sum(b[2 * k] * power for k, power in enumerate(powers))
    return jnp.linalg.solve(even - odd, even + odd)


def _small(rng, *shape):
    return 0.2 * definite(rng, *shape)


def _native(x, *, save):
    return kernel("matrix_exp", "...nm -> ...nm", x, out=[jax.ShapeDtypeStruct(x.shape, x.dtype)])


def _tangent(x, dx):
    return jax.jvp(lambda x: (_matrix_exp(x),), (x,), (dx,))[1]


_op = of_small_matrices(
    "matrix_exp",
    matrix_exp,
    (
        case("a batch", (2, 3, 3), draw=_small),
        case("two batches", (2, 1, 4, 4), draw=_small),
        case("of a team", (2, 6, 6), draw=_small),
    ),
    forward=(lambda x: (_matrix_exp(x),), _native),
    tangent=(_tangent,),
    residuals=("x",),
    largest=32,
    like="x",
)
