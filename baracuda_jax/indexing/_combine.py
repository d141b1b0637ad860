"""Elements multiplied by, or compared with, others at an index, in their order. Products are those of segments."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import as_they_are, compose, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation
from .._core.wide import wide
from ..segment import segment_prod
from . import _extremes
from ._arguments import (
    INDEX,
    axis_of,
    cut,
    draw_index,
    fits,
    operands,
    part_and_positions,
    part_written,
    positions,
    row_labels,
    source,
    write_part,
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

    Source: torch.scatter_reduce with include_self; jax.numpy.ndarray.at; {source}.
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
    formula="y[i, n, k] = x[i, n, k] times the product of src[i, j, k]",
    gradient="dx and dsrc are dy times the product of all other factors.",
    precision="float16 and bfloat16 are multiplied in float32 and rounded once; integers wrap.",
    source="numpy.multiply.at",
)
def scatter_mul(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis multiplied, at an index for each."""
    x, index, src, axis = _arguments("scatter_mul", x, index, src, axis)
    values, at = _vectors(src, index, axis=axis, size=x.shape[axis])
    factors = segment_prod(values, at, x.shape[axis], implementation=implementation)
    return _times(x, factors, axis=axis)


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
    return _extreme("scatter_max", x, index, src, axis, implementation)


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
    return _extreme("scatter_min", x, index, src, axis, implementation)


def _extreme(op, x, index, src, axis, implementation):
    x, index, src, axis = _arguments(op, x, index, src, axis)
    wraps = index.dtype == "int32"  # as it is: the kernel counts from the end itself
    part, at = part_and_positions(x, index, axis=axis, mode=None if wraps else "fill")
    how = dict(axis=axis - x.ndim, wraps=wraps, items=index.shape[axis])
    return part_written(x, _EXTREMES[op](part, at, src, **how, implementation=implementation))


def _arguments(op, x, index, src, axis):
    x, index = operands(op, x, index, checks.NUMBERS)
    axis = axis_of(op, x, axis)
    fits(op, x, index, axis)
    return x, index, source(op, x, src, tuple(index.shape)), axis


@compiled("axis", "size")
def _vectors(src, index, *, axis, size):
    """Vectors along the axis of what is written and of where."""
    return jnp.moveaxis(wide(src), axis, -1), positions(jnp.moveaxis(index, axis, -1), size)


@compiled("axis")
def _times(x, factors, *, axis):
    factors = jnp.moveaxis(factors, -1, axis)
    part = cut(x, factors.shape, axis)
    factors = factors if part.shape == x.shape else explicit.whole(factors)
    return write_part(x, (wide(part) * factors).astype(x.dtype))


def _case(name, shape, index, low, high, src, **kwargs):
    """Of elements that don't tie."""

    def draw(rng):
        values = rng.permutation(np.linspace(-2, 2, np.prod(shape) + np.prod(src)))
        x, written = np.split(values, [np.prod(shape)])
        return x.reshape(shape), draw_index(rng, low, high, index), written.reshape(src)

    return Case(name, draw, kwargs)


def _shared(public):
    """What the declarations share."""
    return dict(
        family="indexing",
        category=OpCategory.INDEXING,
        public=public,
        cases=(
            _case("columns", (5, 7), (5, 19), -8, 8, (5, 19)),
            _case("a part along the first axis", (8, 4), (6, 3), 0, 8, (6, 3), axis=0),
        ),
        dtypes=checks.NUMBERS,
        operands=("x", "index", "src"),
        differentiable=("x", "src"),
        constant=INDEX,
        kin="scatter_combine",
    )


compose("scatter_mul", **_shared(scatter_mul), made_of=("segment_prod",))
_EXTREMES = {
    public.__name__: declare(
        public.__name__,
        **_shared(public),
        results=("y", "arg"),
        residuals=("arg",),
        batched=as_they_are,
        cut=Partition(row_labels, frozenset("sn")),
        **_extremes.bodies(public.__name__),
        kernels={"forward": (public.__name__,), "tangent": ("take_along",), "backward": ("scatter_along",)},
    )
    for public in (scatter_max, scatter_min)
}
