"""Stacks of matrices: their checks, and the products and solutions that formulas of factorizations are made of."""

import functools

import jax.numpy as jnp
from jax import lax

from .._core import checks, explicit
from .._core.wide import wide

# A product of float32 is one of float32: GPUs would round its factors.
matmul = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)


def matrices(op, name, x, square=False):
    """x, each of its matrices on one device."""
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, checks.INEXACT)
    if x.ndim < 2:
        raise ValueError(f"{op}: {name} must have at least two dimensions, got shape {x.shape}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{op}: {name} must be square matrices, of shape (..., n, n), got shape {x.shape}")
    return explicit.whole(x, (x.ndim - 2, x.ndim - 1))


def same_batch(op, name, x, batch, other_name):
    if x.shape[: len(batch)] != batch:
        raise ValueError(f"{op}: {name} must have the batch dimensions of {other_name}, {batch}, got shape {x.shape}")


def rounded(dtype, *results):
    """Results of a computation that was wide, in the operand's dtype; singular values are real."""
    is_narrow = jnp.dtype(dtype).itemsize == 2
    found = [y.astype(dtype) if is_narrow and y.dtype == jnp.float32 else y for y in results]
    return found[0] if len(found) == 1 else tuple(found)


def adjoint(x):
    return x.mT.conj() if jnp.iscomplexobj(x) else x.mT


def hermitian(x):
    """The Hermitian part of x, of whose elements none overflows."""
    half = wide(x) * 0.5
    return half + adjoint(half)


def identity(m, n, like):
    """For each matrix of `like`."""
    one = jnp.broadcast_to(jnp.eye(m, n, dtype=like.dtype), (*like.shape[:-2], m, n))
    return explicit.like(one, like, like.ndim - 2)


def diagonal(x):
    return jnp.diagonal(x, axis1=-2, axis2=-1)


def scaled_identity(d):
    """Diagonal matrices."""
    return d[..., None] * jnp.broadcast_to(jnp.eye(d.shape[-1], dtype=d.dtype), (*d.shape, d.shape[-1]))


def skew(x):
    """What x has below the diagonal, and the anti-Hermitian matrix of it with the imaginary part of x's diagonal."""
    below = jnp.tril(x, -1)
    found = below - adjoint(below)
    return found + scaled_identity(1j * diagonal(x).imag.astype(x.dtype)) if jnp.iscomplexobj(x) else found


def triangular(a, b, *, lower=False, left=True, unit=False):
    """a^-1 b, or b a^-1."""
    return lax.linalg.triangular_solve(a, b, left_side=left, lower=lower, unit_diagonal=unit)


def finite(x):
    """x with zeros for matrices that have NaN or infinite elements, of which LAPACK may never end; and a function that makes
    their results NaN."""
    ok = jnp.isfinite(x).all((-2, -1), keepdims=True)

    def back(y):
        return jnp.where(ok if y.ndim == ok.ndim else ok[..., 0], y, jnp.nan)

    return jnp.where(ok, x, jnp.zeros((), x.dtype)), back


def fixed_phases(v):
    """The factor of each column by which its first element that is about as large as any becomes positive and real."""
    size = jnp.abs(lax.stop_gradient(v))
    if 0 in v.shape:
        return jnp.ones((*v.shape[:-2], 1, v.shape[-1]), v.dtype)
    near = 1 - 16 * float(jnp.finfo(v.dtype).eps) ** 0.5
    first = jnp.argmax(size >= near * size.max(-2, keepdims=True), axis=-2, keepdims=True)
    chosen = jnp.where(lax.broadcasted_iota(first.dtype, v.shape, v.ndim - 2) == first, v, 0).sum(-2, keepdims=True)
    if not jnp.iscomplexobj(v):
        return jnp.where(chosen < 0, -1, 1).astype(v.dtype)
    is_zero = lax.stop_gradient(chosen) == 0
    chosen = jnp.where(is_zero, 1, chosen)
    return chosen.conj() / jnp.abs(chosen).astype(v.dtype)


def gaps(w, degenerate):
    """1 / (w_j - w_i), and 0 on the diagonal; with "zero" also where w_j and w_i are equal up to their error."""
    difference = w[..., None, :] - w[..., :, None]
    dropped = jnp.broadcast_to(jnp.eye(w.shape[-1], dtype=bool), difference.shape)
    if degenerate == "zero":
        dropped |= jnp.abs(difference) <= _error(w)
    return jnp.where(dropped, 0, 1 / jnp.where(dropped, 1, difference))


def sums(s, degenerate):
    """1 / (s_j + s_i); with "zero" 0 where it is about 0."""
    total = s[..., None, :] + s[..., :, None]
    return reciprocal(total, _error(s), degenerate)


def reciprocal(x, error, degenerate):
    if degenerate != "zero":
        return 1 / x
    dropped = jnp.abs(x) <= error
    return jnp.where(dropped, 0, 1 / jnp.where(dropped, 1, x))


def _error(w):
    """About the error of eigenvalues and singular values, for differences [..., n, n]."""
    most = lax.stop_gradient(jnp.abs(w).max(-1, initial=0))
    return 16 * w.shape[-1] * float(jnp.finfo(w.dtype).eps) * most[..., None, None]


def degenerate_of(op, value):
    return checks.choice(op, "degenerate", value, ("nan", "zero"))
