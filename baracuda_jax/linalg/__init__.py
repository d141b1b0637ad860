"""Linear algebra: cuSOLVER, and LAPACK on CPUs, compute these ops, except of small matrices, for which some have kernels."""

from ._cholesky import cholesky
from ._eigh import eig, eigh
from ._gradients import (
    cholesky_backward,
    det_backward,
    eigh_backward,
    inverse_backward,
    lu_factor_backward,
    slogdet_backward,
    solve_backward,
)
from ._lu import det, lu, lu_factor, slogdet
from ._matrix_exp import matrix_exp
from ._qr import batched_qr, geqrf, qr
from ._reflectors import batched_ormqr, batched_ormqr_wy, batched_qr_materialize, householder_product, ormqr
from ._solve import inverse, lstsq, solve
from ._svd import batched_svd, batched_svda, svd, svdvals
from ._triangular import triangular_solve, triangular_solve_backward

__all__ = [
    "batched_ormqr",
    "batched_ormqr_wy",
    "batched_qr",
    "batched_qr_materialize",
    "batched_svd",
    "batched_svda",
    "cholesky",
    "cholesky_backward",
    "det",
    "det_backward",
    "eig",
    "eigh",
    "eigh_backward",
    "geqrf",
    "householder_product",
    "inverse",
    "inverse_backward",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_backward",
    "matrix_exp",
    "ormqr",
    "qr",
    "slogdet",
    "slogdet_backward",
    "solve",
    "solve_backward",
    "svd",
    "svdvals",
    "triangular_solve",
    "triangular_solve_backward",
]
