"""The gradients of ops that have kernels for small matrices, as functions."""

from typing import Literal

from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import OPS
from .._core.types import Implementation
from .._core.wide import wide
from ._matrices import degenerate_of, matrices, rounded
from ._small import is_small


@api
def cholesky_backward(
    y: ArrayLike, dy: ArrayLike, *, upper: bool = False, implementation: Implementation = None
) -> Array:
    """The gradient of `cholesky`: the Hermitian part of L^-T phi(L^T dL) L^-1.

    phi keeps what is below the diagonal, and half of the diagonal.

    Args:
        y: floats of shape (..., n, n), as `cholesky` returns it.
        dy: the cotangent of y, of its shape and dtype.
        upper: static, as in `cholesky`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "cholesky_backward"
    y, upper = _floats(op, "y", y, square=True), checks.flag(op, "upper", upper)
    return _gradient(op, implementation, y, _like(op, "dy", dy, "y", y), upper=upper)


@api
def inverse_backward(y: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None) -> Array:
    """The gradient of `inverse`: -y^T dy y^T.

    Args:
        y: floats of shape (..., n, n), as `inverse` returns it.
        dy: the cotangent of y, of its shape and dtype.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "inverse_backward"
    y = _floats(op, "y", y, square=True)
    return _gradient(op, implementation, y, _like(op, "dy", dy, "y", y))


@api
def solve_backward(
    a: ArrayLike, y: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, Array]:
    """The gradient of `solve`: db = a^-T dy and da = -db y^T.

    Args:
        a: floats of shape (..., n, n), as for `solve`.
        y: its result, of a's dtype, of shape (..., n, k), with a's batch dimensions.
        dy: the cotangent of y, of its shape and dtype.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of a and b.
    """
    op = "solve_backward"
    a, y = _floats(op, "a", a, square=True), _floats(op, "y", y)
    checks.same_dtype(op, "y", y, "a", a)
    checks.shape(op, "y", y, (*a.shape[:-1], y.shape[-1]), "that of a with any number of columns")
    return _gradient(op, implementation, a, y, _like(op, "dy", dy, "y", y), small=(a, y))


@api
def lu_factor_backward(
    y: ArrayLike, pivots: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> Array:
    """The gradient of `lu_factor`. For a square x and F = tril(L^T dy, -1) + triu(dy U^T) it is P L^-T F U^-T.

    Args:
        y, pivots: as `lu_factor` returns them, of shapes (..., m, n) and (..., min(m, n)).
        dy: the cotangent of y, of its shape and dtype.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "lu_factor_backward"
    y, pivots = _floats(op, "y", y), checks.array(op, "pivots", pivots)
    checks.dtype(op, "pivots", pivots, ("int32",))
    checks.shape(op, "pivots", pivots, (*y.shape[:-2], min(y.shape[-2:])), "a number for each pivot of y")
    dy = _like(op, "dy", dy, "y", y)
    return _gradient(op, implementation, y, _order(pivots, rows=y.shape[-2]), dy)


@compiled("rows")
def _order(pivots, *, rows):
    return lax.linalg.lu_pivots_to_permutation(pivots, rows)


@api
def det_backward(x: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None) -> Array:
    """The gradient of `det`: dy times the transpose of the adjugate, which is det(x) x^-1 where x is regular.

    Args:
        x: floats of shape (..., n, n).
        dy: the cotangent of the determinants, of shape (...) and x's dtype.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _of_number("det_backward", x, dy, implementation)


@api
def slogdet_backward(x: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None) -> Array:
    """The gradient of the logarithm in `slogdet`: dy x^-T.

    Args:
        x: floats of shape (..., n, n).
        dy: the cotangent of the logarithms, of shape (...) and x's dtype.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _of_number("slogdet_backward", x, dy, implementation, outputs=("logabsdet",))


@api
def eigh_backward(
    w: ArrayLike,
    v: ArrayLike,
    dw: ArrayLike,
    dv: ArrayLike,
    *,
    degenerate: Literal["nan", "zero"] = "nan",
    implementation: Implementation = None,
) -> Array:
    """The gradient of `eigh`: the Hermitian part of v E v^T.

    E has dw on the diagonal, and elsewhere (v^T dv)_ij / (w_j - w_i).

    Args:
        w, v: floats of shapes (..., n) and (..., n, n), as `eigh` returns them.
        dw, dv: the cotangents of w and v, of their shapes and dtypes.
        degenerate: static, as in `eigh`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "eigh_backward"
    v, degenerate = _floats(op, "v", v, square=True), degenerate_of(op, degenerate)
    w = checks.array(op, "w", w)
    checks.same_dtype(op, "w", w, "v", v)
    checks.shape(op, "w", w, v.shape[:-1], "that of v without the rows")
    dw, dv = _like(op, "dw", dw, "w", w), _like(op, "dv", dv, "v", v)
    return _gradient(op, implementation, w, v, dw, dv, small=(v,), degenerate=degenerate, outputs=("w", "v"))


def _of_number(op, x, dy, implementation, **params):
    x, dy = _floats(op, "x", x, square=True), checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, x.shape[:-2], "the batch dimensions of x")
    return _gradient(op, implementation, x, dy, **params)


def _floats(op, name, x, square=False):
    x = matrices(op, name, x, square=square)
    checks.dtype(op, name, x, checks.FLOATS)
    return x


def _like(op, name, x, other_name, other):
    x = checks.array(op, name, x)
    checks.same_dtype(op, name, x, other_name, other)
    checks.shape(op, name, x, other.shape, f"that of {other_name}")
    return x


def _gradient(op, implementation, *values, small=None, outputs=None, **params):
    """There is a kernel where the matrices `small` are, by default the first value."""
    small = small or values[:1]
    dtype, name = values[-1].dtype, op.removesuffix("_backward")
    values = tuple(map(wide, values))
    if is_small(op, implementation, *small):
        given = iter(values[len(OPS[name].residuals) :])
        cotangents = (next(given) if outputs is None or y in outputs else None for y in OPS[name].outputs)
        residuals = values[: len(OPS[name].residuals)]
        found = OPS[name].vjp(*residuals, *cotangents, **params, implementation=implementation)
        return rounded(dtype, *found) if isinstance(found, list | tuple) else rounded(dtype, found)
    some = {} if outputs is None else {"outputs": outputs}
    return rounded(dtype, *_of_large(*values, name=name, params=tuple((params | some).items())))


@compiled("name", "params")
def _of_large(*values, name, params):
    return tuple(OPS[name].bodies["backward"].reference(*values, **dict(params)))
