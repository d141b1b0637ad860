"""Linear algebra by NumPy and SciPy, matrix by matrix."""

import numpy as np
import scipy.linalg


def _each(fun):
    """A function of single matrices, for batches."""

    def of(*arrays, **kwargs):
        dims = [1 if fun.__name__ in ("_product", "_apply") and i == 1 else 2 for i in range(len(arrays))]
        batch = np.broadcast_shapes(*(x.shape[: x.ndim - d] for x, d in zip(arrays, dims, strict=True)))
        arrays = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - d :])) for x, d in zip(arrays, dims, strict=True)]
        found = [fun(*(x[i] for x in arrays), **kwargs) for i in np.ndindex(*batch)]
        stack = lambda parts: np.reshape(np.stack(parts), (*batch, *np.shape(parts[0])))
        return tuple(map(stack, zip(*found, strict=True))) if isinstance(found[0], tuple) else stack(found)

    return of


def _hermitian(x):
    return (x + x.conj().T) / 2


def _phases(v):
    """Column by column."""
    found = []
    for column in v.T:
        size = np.abs(column)
        first = next(z for z in column if abs(z) > 0.999 * size.max())
        found.append(first.conj() / abs(first))
    return np.array(found)


@_each
def cholesky(x, upper=False):
    y = np.linalg.cholesky(_hermitian(x))
    return y.conj().T if upper else y


lu = _each(lambda x: tuple(scipy.linalg.lu(x)))
lu_factor = _each(lambda x: tuple(scipy.linalg.lu_factor(x)))
det = np.linalg.det
inverse = np.linalg.inv
solve = np.linalg.solve
matrix_exp = _each(scipy.linalg.expm)


@_each
def triangular_solve(a, b, upper=False, left=True, transpose=False, unit_diagonal=False):
    if left:
        return scipy.linalg.solve_triangular(
            a, b, trans="C" if transpose else "N", lower=not upper, unit_diagonal=unit_diagonal
        )
    whole = np.triu(a) if upper else np.tril(a)
    np.fill_diagonal(whole, np.where(unit_diagonal, 1, np.diag(whole)))
    return b @ np.linalg.inv(whole.conj().T if transpose else whole)


def slogdet(x):
    return tuple(np.linalg.slogdet(x))


@_each
def qr(x, mode="reduced"):
    found = np.linalg.qr(x, mode)
    return tuple(found) if mode != "r" else found


@_each
def geqrf(x):
    packed, tau = np.linalg.qr(x, "raw")
    return packed.T, tau


def _reflections(x, tau):
    q = np.eye(len(x), dtype=x.dtype)
    for i, factor in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1], x[i + 1 :, i]])
        q = q @ (np.eye(len(x)) - factor * np.outer(v, v.conj()))
    return q


def _product(x, tau):
    return _reflections(x, tau)[:, : x.shape[1]]


def _apply(x, tau, c, left=True, transpose=False, block=None):
    q = _reflections(x, tau)
    q = q.conj().T if transpose else q
    return q @ c if left else c @ q


householder_product = _each(_product)
ormqr = _each(_apply)


@_each
def svd(x, full_matrices=False, degenerate=None):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    phases = _phases(u)
    u, v = u * phases, vh.conj().T * phases
    if full_matrices:
        u, v = (np.concatenate([q, np.linalg.qr(q, "complete")[0][:, q.shape[1] :]], 1) for q in (u, v))
    return u, s, v.conj().T


def svdvals(x):
    return np.linalg.svd(x, compute_uv=False)


def batched_svda(x, rank, degenerate=None):
    u, s, vh = svd(x)
    return u[..., :rank], s[..., :rank], vh[..., :rank, :]


@_each
def eigh(x, degenerate=None):
    w, v = np.linalg.eigh(_hermitian(x))
    return w, v * _phases(v)


@_each
def eig(x):
    w, v = np.linalg.eig(x)
    return w, v * _phases(v)


@_each
def lstsq(a, b, rcond=None):
    return tuple(np.linalg.lstsq(a, b, rcond))
