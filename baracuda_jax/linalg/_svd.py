"""Singular value decompositions, with derivatives also of full matrices and of repeated singular values."""

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
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._declared import case
from ._matrices import (
    adjoint,
    degenerate_of,
    diagonal,
    finite,
    fixed_phases,
    gaps,
    matmul,
    matrices,
    reciprocal,
    rounded,
    sums,
)
from ._qr import packed_qr
from ._reflectors import product
from ._small import is_small, of_small_matrices


@facade_api("cusolver", has_kernels=True)
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = False,
    degenerate: Literal["nan", "zero"] = "nan",
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """Singular value decomposition.

    Formula:
        x = U diag(s) V^H, with orthonormal columns of U and V and s descending. With E = U^H dx V: ds = real(diag(E)),
        dU = U A + (I - U U^H) dx V / s and dV = V B + (I - V V^H) dx^H U / s, where 2 A and 2 B are the sum and the
        difference of (E + E^H)_ij / (s_j - s_i), 0 for i = j, and (E - E^H)_ij / (s_j + s_i).

    Args:
        x: floats or complex numbers of shape (..., m, n).
        full_matrices: static, whether U and V are square. The further columns are those of the complete QR factorization of
            the first ones, and have a gradient too.
        degenerate: static, what derivatives of singular vectors are where singular values are equal, or 0: "nan", NaN or
            infinite, or "zero", without the terms of pairs whose difference is about the rounding error. That is right
            for the first derivatives of sums over all of s, such as norms, of projections to the vectors of all equal
            values, and of U V^H, the nearest orthogonal matrix.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (u, s, vh) of shapes (..., m, k), (..., k) and (..., k, n) for k = min(m, n), or (..., m, m), (..., k) and (...,
        n, n) with full_matrices; s is real. In each column of u the first element that is about as large as any is
        positive and real. NaN where a matrix has elements that are not finite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Vectors are exact up to the rounding error
    divided by the distance of their singular value from others.

    Source: torch.linalg.svd, which has no gradient of full matrices; jax.numpy.linalg.svd, numpy.linalg.svd, where
    full_matrices is True by default.
    """
    op = "svd"
    x = matrices(op, "x", x)
    full_matrices = checks.flag(op, "full_matrices", full_matrices)
    degenerate, rank = degenerate_of(op, degenerate), min(x.shape[-2:])
    if not is_small(op, implementation, x):
        return _svd(x, full_matrices=full_matrices, degenerate=degenerate, rank=rank)
    found = _op(wide(x), degenerate=degenerate, implementation=implementation, save=True)
    return _as_wanted(x, *found, full_matrices=full_matrices, rank=rank)


batched_svd = svd


@facade_api("cusolver", has_kernels=True)
def svdvals(x: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Singular values alone, descending.

    Formula:
        s of x = U diag(s) V^H; ds = real(diag(U^H dx V)).

    Args:
        x: floats or complex numbers of shape (..., m, n).
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        Array of shape (..., min(m, n)), in the real dtype. NaN where a matrix has elements that are not finite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Values are exact up to the rounding error of
    the largest.

    Source: torch.linalg.svdvals; jax.numpy.linalg.svdvals; numpy.linalg.svdvals.
    """
    op = "svdvals"
    x = matrices(op, "x", x)
    if not is_small(op, implementation, x):
        return _svdvals(x)
    return rounded(x.dtype, _values_op(wide(x), implementation=implementation))


@compiled()
def _svdvals(x):
    known, back = finite(wide(x))
    return rounded(x.dtype, back(jnp.linalg.svd(known, compute_uv=False)))


@facade_api("cusolver", has_kernels=True)
def batched_svda(
    x: ArrayLike, rank: int, *, degenerate: Literal["nan", "zero"] = "nan", implementation: Implementation = None
) -> tuple[Array, Array, Array]:
    """Largest singular values and their vectors: the best approximation of a given rank.

    Formula:
        x is about U diag(s) V^H, with `rank` columns of U and V; the derivatives are those of `svd`.

    Args:
        x: floats or complex numbers of shape (..., m, n).
        rank: static integer, how many singular values are returned, at most min(m, n).
        degenerate: static, "nan" or "zero", as for `svd`.
        implementation: "native" (the kernel, of real matrices of at most 64 x 64), "xla" (plain JAX), a PlanPreference, or
            None for automatic.

    Returns:
        (u, s, vh) of shapes (..., m, rank), (..., rank) and (..., rank, n), with signs as of `svd`.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: that of `svd`, of which it is a part: nothing is drawn at random.

    Source: torch.svd_lowrank, which draws random vectors and returns V instead of V^H.
    """
    op = "batched_svda"
    x, degenerate = matrices(op, "x", x), degenerate_of(op, degenerate)
    rank = checks.integer(op, "rank", rank, 0)
    if rank > min(x.shape[-2:]):
        raise ValueError(f"{op}: rank must be at most {min(x.shape[-2:])} for x of shape {x.shape}, got {rank}")
    if not is_small(op, implementation, x):
        return _svd(x, full_matrices=False, degenerate=degenerate, rank=rank)
    found = _op(wide(x), degenerate=degenerate, implementation=implementation, save=True)
    return _as_wanted(x, *found, full_matrices=False, rank=rank)


@compiled("full_matrices", "rank")
def _as_wanted(x, u, s, vh, *, full_matrices, rank):
    if full_matrices:
        return rounded(x.dtype, _completed(u), s, adjoint(_completed(adjoint(vh))))
    return rounded(x.dtype, u[..., :rank], s[..., :rank], vh[..., :rank, :])


@compiled("full_matrices", "degenerate", "rank")
def _svd(x, *, full_matrices, degenerate, rank):
    known, back = finite(wide(x))
    u, s, vh = _thin(known, degenerate)
    phases = fixed_phases(u)
    u, v = u * phases, adjoint(vh) * phases
    if full_matrices:
        u, v = _completed(u), _completed(v)
    else:
        u, s, v = u[..., :rank], s[..., :rank], v[..., :rank]
    return rounded(x.dtype, back(u), back(s), back(adjoint(v)))


def _completed(q):
    """q with columns that make it square: the last ones of its complete QR factorization."""
    m, k = q.shape[-2:]
    return q if m == k else jnp.concatenate([q, product(*packed_qr(q), m)[..., k:]], -1)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _thin(x, degenerate):
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return u, s, vh


@_thin.defjvp
def _thin_jvp(degenerate, primals, tangents):
    (x,), (dx,) = primals, tangents
    u, s, vh = _thin(x, degenerate)
    return (u, s, vh), _tangent(u, s, vh, dx, degenerate=degenerate)


def _tangent(u, s, vh, dx, *, degenerate):
    v, dxh = adjoint(vh), adjoint(dx)
    e = matmul(adjoint(u), matmul(dx, v))
    of_gaps = (e + adjoint(e)) * gaps(s, degenerate).astype(dx.dtype)
    of_sums = (e - adjoint(e)) * sums(s, degenerate).astype(dx.dtype)
    du, dv = matmul(u, of_gaps + of_sums) / 2, matmul(v, of_gaps - of_sums) / 2
    m, n = dx.shape[-2:]
    if m != n:
        most = jnp.finfo(s.dtype).eps * 16 * s.shape[-1] * jax.lax.stop_gradient(s.max(-1, initial=0, keepdims=True))
        inverse = reciprocal(s, most, degenerate).astype(dx.dtype)[..., None, :]
        if m > n:
            outside = matmul(dx, v)
            du = du + (outside - matmul(u, matmul(adjoint(u), outside))) * inverse
        else:
            outside = matmul(dxh, u)
            dv = dv + (outside - matmul(v, matmul(adjoint(v), outside))) * inverse
    return du, diagonal(e).real, adjoint(dv)


def _native(x, *, degenerate, save):
    u, s, vh = _kernel(x)
    return (u, s, vh)[: None if save else 1]


def _kernel(x):
    (m, n), batch = x.shape[-2:], x.shape[:-2]
    k = min(m, n)
    out = [jax.ShapeDtypeStruct((*batch, *shape), x.dtype) for shape in ((m, k), (k,), (k, n))]
    return kernel("svd", "...mn -> ...mk, ...k, ...kn", x, out=out)


def _values_native(x, *, save):
    """Without vectors, which the derivative alone needs."""
    if save:
        u, s, vh = _kernel(x)
        return s, u, vh
    s = jax.ShapeDtypeStruct((*x.shape[:-2], min(x.shape[-2:])), x.dtype)
    return kernel("svd_values", "...mn -> ...k", x, out=[s])


def _values_reference(x):
    u, s, vh = _svd(x, full_matrices=False, degenerate="nan", rank=min(x.shape[-2:]))
    return s, u, vh


def _values_tangent(x, s, u, vh, dx):
    du, ds, dvh = _tangent(u, s, vh, dx, degenerate="nan")
    return ds, du, dvh


_op = of_small_matrices(
    "svd",
    svd,
    (
        case("tall", (2, 4, 3)),
        case("wide", (2, 2, 4)),
        case("of a team", (2, 5, 5)),
        case("full", (2, 4, 2), full_matrices=True),
        case("full, wide", (2, 2, 3), full_matrices=True, degenerate="zero"),
    ),
    forward=(
        lambda x, *, degenerate: _svd(x, full_matrices=False, degenerate=degenerate, rank=min(x.shape[-2:])),
        _native,
    ),
    tangent=(lambda x, u, s, vh, dx, *, degenerate: _tangent(u, s, vh, dx, degenerate=degenerate),),
    residuals=("x", "u", "s", "vh"),
    results=("u", "s", "vh"),
    outputs=("u", "s", "vh"),
    like="x",
    fused=True,
)
_values_op = of_small_matrices(
    "svdvals",
    svdvals,
    (case("tall", (2, 4, 3)), case("wide", (2, 2, 4)), case("of a team", (2, 5, 5))),
    forward=(_values_reference, _values_native),
    tangent=(_values_tangent,),
    residuals=("x", "s", "u", "vh"),
    results=("s", "u", "vh"),
    outputs=("s", "u", "vh"),
    like="x",
    kernels={"forward": ("svd_values",)},
    fused=True,
    sometimes=("svd",),
)
compose(
    "batched_svda",
    family="linalg",
    category=OpCategory.LINALG,
    public=batched_svda,
    cases=(case("tall", (2, 5, 3), rank=2), case("wide", (2, 3, 4), rank=1)),
    dtypes=checks.FLOATS,
    operands=("x",),
    made_of=("svd",),
    outputs=("u", "s", "vh"),
    differentiable=("x",),
)
