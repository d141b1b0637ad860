"""The elements of matrices on one side of a diagonal. The gradient is the same."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Decorator, Implementation
from ._family import Way, case, operand, rearrangement
from ._map import CONSTANT, Axis, Map, Term, strides
from ._partition import whole_along


def _document(side, relation) -> Decorator:
    """Sets the docstring of the op on this side."""

    def set_on(fun):
        fun.__doc__ = f"""The {side} triangle of matrices: its elements, and zeros elsewhere.

    Formula:
        y[..., i, j] = x[..., i, j] where j - i {relation} k, else 0; dx is the same of dy.

    Args:
        x: array of rank 2 or more, matrices in its last two axes: floats, integers, bool or complex.
        k: the diagonal where the triangle ends, a static integer: 0 is the main one, those above it are positive.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or range, naming it.

    Precision: values are moved as they are; what is outside is 0, even where x is NaN.

    Source: jax.numpy.{fun.__name__}; torch.{fun.__name__}.
    """
        return fun

    return set_on


@api
@_document("upper", ">=")
def triu(x: ArrayLike, k: int = 0, *, implementation: Implementation = None) -> Array:
    return _triu(*_arguments("triu", "x", x), k=_diagonal("triu", k), implementation=implementation)


@api
@_document("lower", "<=")
def tril(x: ArrayLike, k: int = 0, *, implementation: Implementation = None) -> Array:
    return _tril(*_arguments("tril", "x", x), k=_diagonal("tril", k), implementation=implementation)


@api
def triu_backward(dy: ArrayLike, k: int = 0, *, implementation: Implementation = None) -> Array:
    """The gradient of `triu`: the same triangle of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        k: as for `triu`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "triu_backward"
    return _triu.vjp(*_arguments(op, "dy", dy, checks.INEXACT), k=_diagonal(op, k), implementation=implementation)


@api
def tril_backward(dy: ArrayLike, k: int = 0, *, implementation: Implementation = None) -> Array:
    """The gradient of `tril`: the same triangle of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        k: as for `tril`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "tril_backward"
    return _tril.vjp(*_arguments(op, "dy", dy, checks.INEXACT), k=_diagonal(op, k), implementation=implementation)


def _arguments(op, name, x, dtypes=checks.EVERY):
    x = operand(op, name, x, dtypes)
    if x.ndim < 2:
        raise ValueError(f"{op}: {name} must have at least two dimensions, got shape {tuple(x.shape)}")
    return (x,)


def _diagonal(op, k):
    return checks.integer(op, "k", k, -(2**62))


def _triangle(public, sign, reference):
    """`sign` is 1 where columns are counted from the diagonal up."""

    def map_of(shape, *, k):
        (rows, columns), (row, column) = shape, strides(shape)
        k = max(-rows, min(k, columns))
        # How far an element is from the diagonal, inward: outside, it is below 0.
        inside = Term(CONSTANT, 2 * (rows + columns) + 1, -sign * k)
        return Map((Axis(rows, row, 0, -sign), Axis(columns, column, 0, sign)), (inside,)), shape

    way = Way(map_of, lambda x, *, k: reference(x, k))
    return rearrangement(
        public.__name__,
        public=public,
        cases=(
            case("matrix", (6, 8)),
            case("above", (7, 5), k=2),
            case("below", (2, 3, 5, 9), k=-3),
            case("nothing or all", (4, 4), k=-7),
            case("long rows", (3, 300), k=130),
        ),
        rank_of=lambda params: 2,
        forward=way,
        backward=way,
        cut=whole_along(lambda params: (-1, -2)),
    )


_triu = _triangle(triu, 1, jnp.triu)
_tril = _triangle(tril, -1, jnp.tril)
