"""Elements and slices added at an index, in the order of the elements. Sums of slices are those of segments."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import as_they_are, compose, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ..segment import segment_sum
from . import _elements
from ._arguments import (
    INDEX,
    axis_of,
    draw_index,
    fits,
    one_dimensional,
    operands,
    part_and_positions,
    part_written,
    positions,
    row_labels,
    source,
)
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


@api
def scatter_add(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis added to, at an index for each.

    Formula:
        y = x + s, s[i, n, k] = sum of src[i, j, k] over the j with index[i, j, k] == n, with three dimensions and axis 1;
        dx = dy, dsrc[i, j, k] = dy[i, index[i, j, k], k].

    Args:
        x: array of rank 1 or more, floats or integers.
        index: integers of x's rank and of any width; of any size along the axis and at most x's elsewhere. Entries in
            [-n, -1] count from the end, n being the size of x along the axis. Others out of range are dropped.
        src: array of x's dtype, of index's sizes or larger ones, whose rest is not read; or a number for all.
        axis: static integer, along which the index is.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are added up in float32 and rounded once; integers wrap. The elements are added up in
    order, and then to x: the same bits every time.

    Source: torch.scatter_add; jax.numpy.ndarray.at; numpy.add.at.
    """
    op = "scatter_add"
    x, index = operands(op, x, index, checks.NUMBERS)
    axis = axis_of(op, x, axis)
    fits(op, x, index, axis)
    src = source(op, x, src, tuple(index.shape))
    wraps = index.dtype == "int32"  # as it is: the kernel counts from the end itself
    part, at = part_and_positions(x, index, axis=axis, mode=None if wraps else "fill")
    return part_written(x, add_elements(part, at, src, axis=axis - x.ndim, wraps=wraps, implementation=implementation))


@api
def scatter_add_backward(
    index: ArrayLike, dy: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    """The gradient of `scatter_add`: dx = dy and dsrc = dy at the index, 0 for what was dropped.

    Args:
        index: integers, of dy's rank.
        dy: floats, the cotangent of the result.
        axis: static integer, along which the index is.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and src, of index's shape.
    """
    op = "scatter_add_backward"
    dy, index = operands(op, dy, index, checks.FLOATS, name="dy")
    axis = axis_of(op, dy, axis)
    fits(op, dy, index, axis)
    part, at = part_and_positions(dy, index, axis=axis, mode="fill")
    _, dsrc = add_elements.vjp(at, part, axis=axis - dy.ndim, wraps=False, implementation=implementation)
    return dy, dsrc


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
add_elements = declare(
    "scatter_add",
    family="indexing",
    category=OpCategory.INDEXING,
    public=scatter_add,
    cases=(
        _case("columns", (5, 7), (5, 19), -8, 8, (5, 19)),
        _case("a part along the first axis", (8, 4), (6, 3), 0, 8, (6, 3), axis=0),
    ),
    dtypes=checks.NUMBERS,
    operands=("x", "index", "src"),
    differentiable=("x", "src"),
    constant=INDEX,
    residuals=("index",),
    linear=as_they_are,
    batched=as_they_are,
    cut=Partition(row_labels, frozenset("sn")),
    forward=_elements.SUM_FORWARD,
    backward=_elements.SUM_BACKWARD,
    kernels={"forward": ("scatter_add",), "backward": ("take_along",)},
)
