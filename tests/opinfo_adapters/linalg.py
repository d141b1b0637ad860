"""PyTorch's linear algebra. Vectors whose signs are a choice are compared in test_linalg.py; here are their values."""

import jax.numpy as jnp
import numpy as np
from onnx_adapters import NotApplicable

import baracuda_jax as bj


def linalg_cholesky(x, upper=False):
    return bj.cholesky(x, upper=upper)


def geqrf(x):
    return bj.geqrf(x)


def matrix_exp(x):
    return bj.matrix_exp(x)


def ormqr(x, tau, c, left=True, transpose=False):
    return bj.ormqr(x, tau, c, left=left, transpose=transpose)


def linalg_det(x):
    return bj.det(x)


def linalg_eigvals(x):
    return bj.eig(x)[0]


def linalg_eigvalsh(x, UPLO="L"):
    triangle = np.tril(x) if UPLO == "L" else np.triu(x)
    other = np.tril(x, -1) if UPLO == "L" else np.triu(x, 1)
    return bj.eigh(triangle + np.swapaxes(other, -1, -2).conj())[0]


def linalg_householder_product(x, tau):
    return bj.householder_product(x, tau)


def linalg_inv(x):
    return bj.inverse(x)


def linalg_lstsq(a, b, driver="gelsy"):
    """PyTorch's drivers leave results out."""
    y, residuals, rank, s = bj.lstsq(a, b)
    nothing = jnp.zeros(0)
    has_residuals = a.shape[-2] > a.shape[-1] and driver != "gelsy"
    results = y, residuals if has_residuals else nothing, rank, s if driver in ("gelss", "gelsd") else nothing
    return (*results[:2], nothing, nothing) if driver == "gels" else results


def linalg_lu(x, pivot=True):
    if not pivot:
        raise NotApplicable("there are always pivots")
    return bj.lu(x)


def linalg_lu_factor(x, pivot=True):
    if not pivot:
        raise NotApplicable("there are always pivots")
    packed, pivots = bj.lu_factor(x)
    return packed, pivots + 1


def linalg_qr(x, mode="reduced"):
    if mode == "r":
        raise NotApplicable("r comes alone")
    return bj.qr(x, mode=mode)


def linalg_slogdet(x):
    return bj.slogdet(x)


def linalg_solve(a, b, left=True):
    if not left:
        return jnp.matrix_transpose(bj.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)))
    is_vector = b.ndim > 1 and b.shape == a.shape[:-1]
    return bj.solve(a, b[..., None])[..., 0] if is_vector else bj.solve(a, b)


def linalg_solve_triangular(a, b, upper, left=True, unitriangular=False):
    return bj.triangular_solve(a, b, upper=upper, left=left, unit_diagonal=unitriangular)


def linalg_svdvals(x):
    return bj.svdvals(x)
