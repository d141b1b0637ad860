"""LU factorizations with partial pivoting, and determinants."""

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.compiled import compiled
from .._core.facade import facade_api
from .._core.kernel import kernel
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case, definite
from ._matrices import identity, matmul, matrices, rounded, triangular
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def lu(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array, Array]:
    """LU factorization with partial pivoting, as three matrices.

    Formula:
        x = P L U, with a permutation P, L lower trapezoidal with a diagonal of ones, and U upper trapezoidal. For a
        square x and F = L^-1 P^T dx U^-1: dL = L tril(F, -1) and dU = triu(F) U.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (p, l, u) of shapes (..., m, m), (..., m, k) and (..., k, n) for k = min(m, n), in x's dtype. A singular matrix
        has zeros on the diagonal of u.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.lu; jax.scipy.linalg.lu; scipy.linalg.lu.
    """
    op = "lu"
    x = matrices(op, "x", x)
    if not is_small(op, implementation, x):
        return _lu(x)
    packed, _, order = _op(wide(x), implementation=implementation, save=True)
    return _parts(x, packed, order)


@compiled()
def _parts(x, packed, order):
    rank = min(packed.shape[-2:])
    # Of a slice alone, and of more columns than rank that are sharded, XLA partitions the cotangent wrongly.
    columns = jnp.where(jnp.arange(packed.shape[-1]) < rank, packed, 0)[..., :rank]
    lower, upper = (
        jnp.tril(columns, -1) + identity(packed.shape[-2], rank, packed),
        jnp.triu(packed)[..., :rank, :],
    )
    return rounded(x.dtype, _permutation(order, packed.dtype).mT, lower, upper)


@compiled()
def _lu(x):
    p, lower, upper = _of_each(jax.scipy.linalg.lu, wide(x))
    return rounded(x.dtype, p.astype(lower.dtype), lower, upper)


@facade_api("cusolver", has_kernels=True)
def lu_factor(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array]:
    """LU factorization with partial pivoting, as one matrix and pivots, which `jax.scipy.linalg.lu_solve` takes.

    Formula:
        x = P L U, as for `lu`. Row i was exchanged with row pivots[i], for i = 0, 1, ... in this order.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (lu, pivots). lu, of x's shape and dtype, has U on and above the diagonal and L below it. pivots is int32 of shape
        (..., min(m, n)) and counts from 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.lu_factor, whose pivots count from 1; jax.scipy.linalg.lu_factor; scipy.linalg.lu_factor.
    """
    op = "lu_factor"
    x = matrices(op, "x", x)
    if not is_small(op, implementation, x):
        return _lu_factor(x)
    packed, pivots, _ = _op(wide(x), implementation=implementation, save=True)
    return rounded(x.dtype, packed), pivots


@compiled()
def _lu_factor(x):
    packed, pivots = _of_each(jax.scipy.linalg.lu_factor, wide(x))
    return rounded(x.dtype, packed), pivots.astype(jnp.int32)


def _reference(x):
    packed, pivots = _of_each(jax.scipy.linalg.lu_factor, x)
    return packed, pivots.astype(jnp.int32), lax.linalg.lu_pivots_to_permutation(pivots, x.shape[-2])


def _native(x, *, save):
    rank = min(x.shape[-2:])
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
    out += [jax.ShapeDtypeStruct((*x.shape[:-2], count), jnp.int32) for count in (rank, x.shape[-2])]
    return kernel("lu", "...mn -> ...mn, ...k, ...m", x, out=out)[: None if save else 1]


def _permutation(order, dtype):
    """The matrix that puts rows into this order."""
    return jax.nn.one_hot(order, order.shape[-1], dtype=dtype)


def _tangent(packed, order, dx):
    """With L and U made square, which neither F nor what is kept of their tangents depends on."""
    m, n = packed.shape[-2:]
    rank = min(m, n)
    pad = [(0, 0)] * (packed.ndim - 2)
    lower = jnp.pad(jnp.tril(packed[..., :rank], -1), (*pad, (0, 0), (0, m - rank))) + identity(m, m, packed)
    upper = jnp.pad(jnp.triu(packed)[..., :rank, :], (*pad, (0, n - rank), (0, 0)))
    upper = upper + jnp.broadcast_to(jnp.diag((jnp.arange(n) >= rank).astype(packed.dtype)), upper.shape)
    moved = matmul(_permutation(order, dx.dtype), dx)
    inner = triangular(upper, triangular(lower, moved, lower=True, unit=True), left=False)
    return (matmul(lower, jnp.tril(inner, -1)) + matmul(jnp.triu(inner), upper),)


def _backward(packed, order, dpacked):
    dx = jax.ShapeDtypeStruct(packed.shape, packed.dtype)
    return kernel("lu_backward", "...mn, ...m, ...mn -> ...mn", packed, order, dpacked, out=[dx])


def _of_each(fun, x):
    """fun of each matrix. Versions of SciPy's functions in JAX differ in whether they take batches."""
    return explicit.mapped(fun, x.ndim - 2)(x)


@facade_api("cusolver", has_kernels=True)
def det(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Determinant of square matrices.

    Formula:
        y = det(x); dy = y trace(x^-1 dx), or the trace of the adjugate times dx where x is singular.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of shape (...) and x's dtype; 1 for empty matrices.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Second derivatives need a regular matrix.

    Source: torch.linalg.det; jax.numpy.linalg.det; numpy.linalg.det.
    """
    op = "det"
    x = matrices(op, "x", x, square=True)
    if not is_small(op, implementation, x):
        return _det(x)
    return rounded(x.dtype, _det_op(wide(x), implementation=implementation))


def _det_native(x, *, save):
    return kernel("lu_determinant", "...nm -> ...", x, out=[jax.ShapeDtypeStruct(x.shape[:-2], x.dtype)])


def _det_tangent(x, dx):
    return jax.jvp(lambda x: (_det(x),), (x,), (dx,))[1]


def _of_number(target, x, dy):
    """The cotangent of x, of that of a number of each matrix."""
    return kernel(target, "...nm, ... -> ...nm", x, dy, out=[jax.ShapeDtypeStruct(x.shape, x.dtype)])


def _det_backward(x, dy):
    return _of_number("det_backward", x, dy)


@compiled()
def _det(x):
    if x.shape[-1] == 0:  # where JAX has no derivative
        return jnp.ones(x.shape[:-2], x.dtype)
    # Of a batch JAX's derivative gathers rows by indices of the batch, which XLA partitions wrongly into unequal shards.
    return rounded(x.dtype, _of_each(jnp.linalg.det, wide(x)))


@facade_api("cusolver", has_kernels=True)
def slogdet(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array]:
    """Sign and logarithm of the magnitude of the determinant, which neither over- nor underflows.

    Formula:
        det(x) = sign exp(logabsdet); dlogabsdet = trace(x^-1 dx), its real part.

    Args:
        x: floats or complex numbers of shape (..., n, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (sign, logabsdet) of shape (...): sign in x's dtype, 0 for a singular matrix, of magnitude 1 otherwise; logabsdet
        in the real dtype, -infinity for a singular matrix.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.linalg.slogdet; jax.numpy.linalg.slogdet; numpy.linalg.slogdet.
    """
    op = "slogdet"
    x = matrices(op, "x", x, square=True)
    if not is_small(op, implementation, x):
        return _slogdet(x)
    return rounded(x.dtype, *_slogdet_op(wide(x), implementation=implementation, save=True))


def _slogdet_native(x, *, save):
    """From the diagonal of U and the sign of the permutation."""
    out = [jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), jax.ShapeDtypeStruct(x.shape[:-2], x.dtype)]
    found, sign = kernel("lu_diagonal", "...nm -> ...n, ...", x, out=out)
    signs, logs = jnp.sign(found), jnp.log(jnp.abs(found))
    outs = sign * _along_diagonal(jnp.multiply, signs, 1), _along_diagonal(jnp.add, logs, 0)
    return outs[: None if save else 1]


def _along_diagonal(combine, x, empty):
    """Element by element: the order of a reduction would depend on the number of matrices."""
    first = jnp.full(x.shape[:-1], empty, x.dtype)
    return functools.reduce(combine, (x[..., i] for i in range(x.shape[-1])), first)


def _slogdet_tangent(x, dx):
    of_size = jnp.trace(jnp.linalg.solve(x, dx), axis1=-2, axis2=-1)
    return jnp.zeros_like(of_size), of_size


def _slogdet_backward(x, dsign, dlogabsdet):
    return (jnp.zeros_like(x),) if dlogabsdet is None else _of_number("slogdet_backward", x, dlogabsdet)


@compiled()
def _slogdet(x):
    return rounded(x.dtype, *_slogdet_reference(wide(x)))


def _slogdet_reference(x):
    sign, logabsdet = jnp.linalg.slogdet(x)
    return jnp.where(jnp.isnan(logabsdet), jnp.nan, sign), logabsdet  # LAPACK's pivots say nothing of NaN's sign


_CASES = case("tall", (2, 4, 3)), case("wide", (2, 3, 4)), case("square", (2, 3, 3))
_SQUARE = tuple(
    case(name, shape, draw=lambda rng, *shape: 0.3 * definite(rng, *shape))
    for name, shape in (("a batch", (2, 4, 4)), ("two batches", (2, 1, 3, 3)), ("of a team", (2, 5, 5)))
)
_op = of_small_matrices(
    "lu_factor",
    lu_factor,
    (*_CASES, case("of a team", (2, 6, 6))),
    forward=(_reference, _native),
    tangent=(_tangent,),
    residuals=("lu", "order"),
    results=("lu", "pivots", "order"),
    like="lu",
    backward=_backward,
    kernels={"forward": ("lu",), "backward": ("lu_backward",)},
)
compose(
    "lu",
    family="linalg",
    category=OpCategory.LINALG,
    public=lu,
    cases=_CASES,
    dtypes=checks.FLOATS,
    operands=("x",),
    made_of=("lu_factor",),
    outputs=("p", "l", "u"),
    differentiable=("x",),
)
_det_op = of_small_matrices(
    "det",
    det,
    _SQUARE,
    forward=(lambda x: (_det(x),), _det_native),
    tangent=(_det_tangent,),
    backward=_det_backward,
    residuals=("x",),
    like="x",
    kernels={"forward": ("lu_determinant",)},
)
_slogdet_op = of_small_matrices(
    "slogdet",
    slogdet,
    _SQUARE,
    forward=(_slogdet_reference, _slogdet_native),
    tangent=(_slogdet_tangent,),
    backward=_slogdet_backward,
    residuals=("x",),
    results=("sign", "logabsdet"),
    outputs=("sign", "logabsdet"),
    like="x",
    kernels={"forward": ("lu_diagonal",)},
)
