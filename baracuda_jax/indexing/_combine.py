"""Elements that others are added to, multiplied with or compared with, at an index for each, in their order."""

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core import prefer as preference
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import as_they_are, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation
from ..segment._prod import draw_factors
from . import _elements, _extremes, _products
from ._arguments import (
    INDEX,
    axis_of,
    draw_index,
    fits,
    operands,
    part_and_positions,
    part_written,
    row_labels,
    source,
)

_DOC = """

    Formula:
        {formula}, with three dimensions and axis 1, over the j with index[i, j, k] == n; {gradient}

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

    Precision: {precision} Elements are taken in order: the same bits every time.

    Source: {source}; torch.scatter_reduce with include_self; jax.numpy.ndarray.at.
    """
_EXTREME = (
    "dy goes to the element that has it: of those that tie to x's, or else to the one with the lowest j. NaN is it"
)


def _document(**parts) -> Decorator:
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _DOC.format(**parts)
        return fun

    return decorate


@api
@_document(
    formula="y[i, n, k] = x[i, n, k] plus the sum of src[i, j, k]",
    gradient="dx = dy, dsrc[i, j, k] = dy[i, index[i, j, k], k].",
    precision="float16 and bfloat16 are added up in float32 and rounded once; integers wrap.",
    source="torch.scatter_add; numpy.add.at",
)
def scatter_add(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis added to, at an index for each."""
    return _combined("scatter_add", x, index, src, axis, implementation)


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
    _, dsrc = _OPS["scatter_add"].vjp(at, part, axis=axis - dy.ndim, wraps=False, implementation=implementation)
    return dy, dsrc


@api
@_document(
    formula="y[i, n, k] = x[i, n, k] times the product of src[i, j, k]",
    gradient="dx and dsrc are dy times the product of all other factors.",
    precision="float16 and bfloat16 are multiplied in float32 and rounded once; integers wrap.",
    source="numpy.multiply.at",
)
def scatter_mul(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis multiplied, at an index for each."""
    return _combined("scatter_mul", x, index, src, axis, implementation)


@api
@_document(
    formula="y[i, n, k] = the maximum of x[i, n, k] and src[i, j, k]",
    gradient=_EXTREME + ".",
    precision="exact.",
    source="numpy.maximum.at",
)
def scatter_max(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis raised to others, at an index for each."""
    return _combined("scatter_max", x, index, src, axis, implementation)


@api
@_document(
    formula="y[i, n, k] = the minimum of x[i, n, k] and src[i, j, k]",
    gradient=_EXTREME + ".",
    precision="exact.",
    source="numpy.minimum.at",
)
def scatter_min(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis lowered to others, at an index for each."""
    return _combined("scatter_min", x, index, src, axis, implementation)


_BACKWARD = """

    Args:
        x, index, src, axis: as in `{op}`; floats.
        dy: floats, the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and src.
    """


def _gradient_of(public):
    def decorate(fun):
        fun.__doc__ = (fun.__doc__ or "") + _BACKWARD.format(op=public.__name__)
        return fun

    return decorate


@api
@_gradient_of(scatter_mul)
def scatter_mul_backward(
    x: ArrayLike,
    index: ArrayLike,
    src: ArrayLike,
    dy: ArrayLike,
    axis: int = -1,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `scatter_mul`: dx is dy times the factors, dsrc is x dy times all others, 0 for what was dropped."""
    return _pulled(scatter_mul, x, index, src, dy, axis, implementation)


@api
@_gradient_of(scatter_max)
def scatter_max_backward(
    x: ArrayLike,
    index: ArrayLike,
    src: ArrayLike,
    dy: ArrayLike,
    axis: int = -1,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `scatter_max`: dy at the element that is the maximum, 0 elsewhere."""
    return _pulled(scatter_max, x, index, src, dy, axis, implementation)


@api
@_gradient_of(scatter_min)
def scatter_min_backward(
    x: ArrayLike,
    index: ArrayLike,
    src: ArrayLike,
    dy: ArrayLike,
    axis: int = -1,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `scatter_min`: dy at the element that is the minimum, 0 elsewhere."""
    return _pulled(scatter_min, x, index, src, dy, axis, implementation)


def _pulled(public, x, index, src, dy, axis, implementation):
    op = f"{public.__name__}_backward"
    x, index = operands(op, x, index, checks.FLOATS)
    src, dy = checks.floats(op, "src", src), checks.floats(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, x.shape, "that of x")
    implementation = preference.resolve(op, implementation)
    return _pulled_back(x, index, src, dy, public=public, axis=axis, implementation=implementation)


@compiled("public", "axis", "implementation")
def _pulled_back(x, index, src, dy, *, public, axis, implementation):
    """One program: of the forward pass remains what the gradient reads."""
    return jax.vjp(lambda x, src: public(x, index, src, axis, implementation=implementation), x, src)[1](dy)


def _combined(op, x, index, src, axis, implementation):
    x, index = operands(op, x, index, checks.NUMBERS)
    axis = axis_of(op, x, axis)
    fits(op, x, index, axis)
    src = source(op, x, src, tuple(index.shape))
    wraps = index.dtype == "int32"  # as it is: the kernel counts from the end itself
    part, at = part_and_positions(x, index, axis=axis, mode=None if wraps else "fill")
    how = dict(axis=axis - x.ndim, wraps=wraps)
    if op in _EXTREMES:
        how["items"] = index.shape[axis]
    return part_written(x, _OPS[op](part, at, src, **how, implementation=implementation))


def _case(name, shape, index, low, high, src, draw_numbers, **kwargs):
    def draw(rng):
        x, written = np.split(draw_numbers(rng, np.prod(shape) + np.prod(src)), [np.prod(shape)])
        return x.reshape(shape), draw_index(rng, low, high, index), written.reshape(src)

    return Case(name, draw, kwargs)


def _different(rng, count):
    """Numbers that don't tie."""
    return rng.permutation(np.linspace(-2, 2, count))


def _declare(public, draw_numbers=_different, **parts):
    return declare(
        public.__name__,
        family="indexing",
        category=OpCategory.INDEXING,
        public=public,
        cases=(
            _case("columns", (5, 7), (5, 19), -8, 8, (5, 19), draw_numbers),
            _case("a part along the first axis", (8, 4), (6, 3), 0, 8, (6, 3), draw_numbers, axis=0),
        ),
        dtypes=checks.NUMBERS,
        operands=("x", "index", "src"),
        differentiable=("x", "src"),
        constant=INDEX,
        batched=as_they_are,
        cut=Partition(row_labels, frozenset("sn")),
        regime=along_axes,
        **parts,
    )


_OPS = {
    "scatter_add": _declare(
        scatter_add,
        residuals=("index",),
        linear=as_they_are,
        forward=_elements.SUM_FORWARD,
        backward=_elements.SUM_BACKWARD,
        kernels={"forward": ("scatter_add",), "backward": ("take_along",)},
    ),
    "scatter_mul": _declare(
        scatter_mul,
        draw_factors,
        residuals=("x", "index", "src"),
        **_products.BODIES,
        kernels={
            "forward": ("scatter_mul",),
            "tangent": ("scatter_mul_backward", "scatter_along"),
            "backward": ("scatter_mul_backward",),
        },
    ),
}
_EXTREMES = {
    public.__name__: _declare(
        public,
        kin="scatter_extreme",
        results=("y", "arg"),
        residuals=("arg",),
        **_extremes.bodies(public.__name__),
        kernels={"forward": (public.__name__,), "tangent": ("take_along",), "backward": ("scatter_along",)},
    )
    for public in (scatter_max, scatter_min)
}
_OPS |= _EXTREMES
