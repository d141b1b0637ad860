"""QR factorizations, also as Householder vectors, which JAX has no derivative of."""

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
from ._declared import case
from ._matrices import adjoint, diagonal, identity, matmul, matrices, rounded, skew, triangular
from ._reflectors import product, product_by_op
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def qr(
    x: ArrayLike,
    *,
    mode: Literal["reduced", "complete", "r", "raw"] = "reduced",
    implementation: Implementation = None,
) -> tuple[Array, Array] | Array:
    """QR factorization.

    Formula:
        x = Q R, with orthonormal columns of Q and R upper triangular. For a square or tall x, W = dx R^-1, C = Q^H W, and S
        the anti-Hermitian matrix that equals C below the diagonal: dQ = W + Q (S - C) and dR = (C - S) R.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        mode: static, "reduced", "complete", "r", or "raw" for Householder vectors.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        In x's dtype, with k = min(m, n): (q, r) of shapes (..., m, k) and (..., k, n), or (..., m, m) and (..., m, n) for
        "complete"; r of shape (..., k, n) for "r"; (h, tau) for "raw", where h of shape (..., n, m) is the transpose of what
        `geqrf` returns.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The signs are LAPACK's: the diagonal of r is
    real, of either sign.

    Source: torch.linalg.qr, which has no "raw" and no gradient of "complete" where m > n; jax.numpy.linalg.qr;
    numpy.linalg.qr.
    """
    op = "qr"
    x = matrices(op, "x", x)
    mode = checks.choice(op, "mode", mode, ("reduced", "complete", "r", "raw"))
    if not is_small(op, implementation, x):
        return _qr(x, mode=mode)
    w, (m, n) = wide(x), x.shape[-2:]
    if mode == "raw":
        packed, tau = _packed_op(w, implementation=implementation, save=True)
        return _transposed(x, packed), rounded(x.dtype, tau)
    if mode == "complete" and m > n:
        packed, tau = _packed_op(w, implementation=implementation, save=True)
        return _completed(x, product_by_op(packed, tau, m, implementation), packed)
    q, r = _op(w, implementation=implementation, save=True)
    return rounded(x.dtype, r) if mode == "r" else rounded(x.dtype, q, r)


@compiled()
def _transposed(x, packed):
    return rounded(x.dtype, packed.mT)


@compiled()
def _completed(x, q, packed):
    return rounded(x.dtype, q, jnp.triu(packed))


@compiled("mode")
def _qr(x, *, mode):
    w, (m, n) = wide(x), x.shape[-2:]
    if mode == "raw":
        packed, tau = packed_qr(w)
        return rounded(x.dtype, packed.mT, tau)
    if mode == "complete" and m > n:
        packed, tau = packed_qr(w)
        return rounded(x.dtype, product(packed, tau, m), jnp.triu(packed))
    q, r = jnp.linalg.qr(w)
    return rounded(x.dtype, r) if mode == "r" else rounded(x.dtype, q, r)


@facade_api("cusolver", has_kernels=True)
def geqrf(x: ArrayLike, *, implementation: Implementation = None) -> tuple[Array, Array]:
    """QR factorization as Householder vectors, of which `householder_product` and `ormqr` make products with Q.

    Formula:
        x = Q R, Q = H_1 ... H_k, H_i = I - tau_i v_i v_i^H. With Q's first k columns, I - Q = V U for U = T V_1^H, the LU
        factorization without pivoting, whose U has the diagonal tau: so dV and dtau follow from the dQ of `qr`.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (y, tau). y, of x's shape and dtype, has R on and above the diagonal, and below it the vectors v_i, whose ones on the
        diagonal are not stored. tau has shape (..., min(m, n)).

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. There is no derivative where a
    column has only zeros below the diagonal already: tau jumps there.

    Source: torch.geqrf, without a gradient; jax.numpy.linalg.qr(mode="raw"), which transposes y and has no derivative.
    """
    op = "geqrf"
    x = matrices(op, "x", x)
    if not is_small(op, implementation, x):
        return _geqrf(x)
    return rounded(x.dtype, *_packed_op(wide(x), implementation=implementation, save=True))


batched_qr = geqrf


@compiled()
def _geqrf(x):
    return rounded(x.dtype, *packed_qr(wide(x)))


@jax.custom_jvp
def packed_qr(x):
    transposed, tau = jnp.linalg.qr(x, mode="raw")
    return transposed.mT, tau


@packed_qr.defjvp
def _packed_qr_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    packed, tau = packed_qr(x)
    return (packed, tau), _packed_tangent(packed, tau, dx)


def _factors_tangent(q, r, dx):
    """Of q, of k columns, and of r, of k rows."""
    k = q.shape[-1]
    w = triangular(r[..., :k], dx[..., :k], left=False)
    c = matmul(adjoint(q), w)
    s = skew(c)
    return w + matmul(q, s - c), jnp.triu(matmul(adjoint(q), dx) - matmul(s, r))


def _packed_tangent(packed, tau, dx):
    x = packed  # of its shape and dtype
    m, n = x.shape[-2:]
    k = min(m, n)
    q, r = product(packed, tau, k), jnp.triu(packed[..., :k, :])
    dq, dr = _factors_tangent(q, r, dx)

    # V U = I - Q. In a square matrix nothing is below the last element, and no column of V is divided by the last tau.
    v = jnp.tril(packed[..., :k], -1) + identity(m, k, x)
    top, bottom = v[..., :k, :], v[..., k:, :]
    u = jnp.triu(triangular(top, (identity(m, k, x) - q)[..., :k, :], lower=True, unit=True))
    found = triangular(top, -dq[..., :k, :], lower=True, unit=True)
    safe = jnp.where(diagonal(u) == 0, jnp.ones((), x.dtype), 0)
    regular = u + safe[..., None] * identity(k, k, x)
    inner = jnp.tril(triangular(regular, found, left=False), -1)
    du = jnp.triu(found - matmul(inner, u))
    dv = matmul(top, inner)
    if m > k:
        rest = triangular(regular, -dq[..., k:, :] - matmul(bottom, du), left=False)
        dv = jnp.concatenate([dv, rest], -2)
    below = jnp.concatenate([jnp.tril(dv, -1), jnp.zeros((*x.shape[:-1], n - k), x.dtype)], -1)
    above = jnp.concatenate([dr, jnp.zeros((*x.shape[:-2], m - k, n), x.dtype)], -2)
    return above + below, diagonal(du)


def _native(x, *, save):
    (m, n), batch = x.shape[-2:], x.shape[:-2]
    out = [jax.ShapeDtypeStruct((*batch, *shape), x.dtype) for shape in ((m, min(m, n)), (min(m, n), n))]
    return kernel("qr", "...mn -> ...mk, ...kn", x, out=out)[: None if save else 1]


def _packed_native(x, *, save):
    out = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in (x.shape, (*x.shape[:-2], min(x.shape[-2:])))]
    return kernel("geqrf", "...mn -> ...mn, ...k", x, out=out)[: None if save else 1]


_CASES = case("tall", (2, 4, 3)), case("square", (2, 3, 3)), case("wide", (2, 3, 4))
_TEAM = case("of a team", (2, 6, 5))
_op = of_small_matrices(
    "qr",
    qr,
    (*_CASES, _TEAM, case("complete", (2, 3, 4), mode="complete")),
    forward=(lambda x: tuple(jnp.linalg.qr(x)), _native),
    tangent=(lambda x, q, r, dx: _factors_tangent(q, r, dx),),
    residuals=("x", "q", "r"),
    results=("q", "r"),
    outputs=("q", "r"),
    like="x",
)
_packed_op = of_small_matrices(
    "geqrf",
    geqrf,
    (*_CASES, _TEAM),
    forward=(packed_qr, _packed_native),
    tangent=(_packed_tangent,),
    residuals=("y", "tau"),
    results=("y", "tau"),
    outputs=("y", "tau"),
    like="y",
)
