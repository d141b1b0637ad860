"""Slices added at an index, in their order: sums of segments."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ..segment import segment_sum
from ._arguments import INDEX, axis_of, draw_index, one_dimensional, operands, positions
from ._gather import index_select


@api
def index_add(
    x: ArrayLike,
    index: ArrayLike,
    src: ArrayLike,
    axis: int = 0,
    *,
    alpha: float = 1,
    implementation: Implementation = None,
) -> Array:
    """An array with slices along an axis added to, at an index.

    Formula:
        y = x + alpha s, s[i, n, k] = sum of src[i, j, k] over the j with index[j] == n, with three dimensions and axis 1;
        dx = dy, dsrc[i, j, k] = alpha dy[i, index[j], k].

    Args:
        x: array of rank 1 or more, floats or integers.
        index: integers [M] of any width. Entries in [-n, -1] count from the end, n being the size of x along the axis.
            Others out of range are dropped.
        src: array of x's dtype, of x's shape with M along the axis.
        axis: static integer, along which the slices are.
        alpha: static number, an integer for integers.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are added up in float32 and rounded once; integers wrap. The slices are added up in
    order, and then to x: the same bits every time.

    Source: torch.index_add; jax.numpy.ndarray.at; numpy.add.at.
    """
    op = "index_add"
    x, index = operands(op, x, index, checks.NUMBERS)
    axis = axis_of(op, x, axis)
    one_dimensional(op, index)
    src = checks.array(op, "src", src)
    checks.same_dtype(op, "src", src, "x", x)
    expected = (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :])
    checks.shape(op, "src", src, expected, "x's with the size of index along the axis")
    rows, at = _rows(src, index, axis=axis, size=x.shape[axis], alpha=_alpha(op, x, alpha))
    return _plus(x, segment_sum(rows, at, x.shape[axis], implementation=implementation), axis=axis)


@api
def index_add_backward(
    index: ArrayLike, dy: ArrayLike, axis: int = 0, *, alpha: float = 1, implementation: Implementation = None
) -> tuple[Array, ...]:
    """The gradient of `index_add`: dx = dy and dsrc = alpha times the slices of dy at the index, 0 for dropped ones.

    Args:
        index: integers [M].
        dy: floats, the cotangent of the result.
        axis: static integer, along which the slices are.
        alpha: static number.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and src.
    """
    op = "index_add_backward"
    dy = checks.floats(op, "dy", dy)
    rows = index_select(dy, index, axis, fill_value=0, implementation=implementation)
    return dy, _times(rows, alpha=_alpha(op, dy, alpha))


def _alpha(op, x, alpha):
    numbers = int | float if jnp.issubdtype(x.dtype, jnp.floating) else int
    if isinstance(alpha, bool) or not isinstance(alpha, numbers):
        raise TypeError(f"{op}: alpha must be a static number for x of dtype {x.dtype.name}, got {alpha!r}")
    return alpha


@compiled("axis", "size", "alpha")
def _rows(src, index, *, axis, size, alpha):
    rows = jnp.moveaxis(wide(src), axis, 0)
    return rows if alpha == 1 else rows * jnp.asarray(alpha, rows.dtype), positions(index, size)


@compiled("axis")
def _plus(x, sums, *, axis):
    return (wide(x) + jnp.moveaxis(sums, 0, axis)).astype(x.dtype)


@compiled("alpha")
def _times(x, *, alpha):
    return x if alpha == 1 else (wide(x) * jnp.asarray(alpha, wide(x).dtype)).astype(x.dtype)


def _case(name, shape, index, low, high, src, **kwargs):
    draw = lambda rng: (rng.standard_normal(shape), draw_index(rng, low, high, index), rng.standard_normal(src))
    return Case(name, draw, kwargs)


compose(
    "index_add",
    family="indexing",
    category=OpCategory.INDEXING,
    public=index_add,
    cases=(
        _case("rows", (6, 5), (17,), -7, 7, (17, 5)),
        _case("columns, times a number", (4, 9), (5,), 0, 9, (4, 5), axis=-1, alpha=2),
    ),
    dtypes=checks.NUMBERS,
    operands=("x", "index", "src"),
    made_of=("segment_sum",),
    differentiable=("x", "src"),
    constant=INDEX,
)
