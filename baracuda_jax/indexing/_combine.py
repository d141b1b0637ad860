"""Elements multiplied by, or compared with, others at an index, in the order of the elements: each is a segment's."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Decorator, Implementation
from .._core.wide import wide
from ..segment import segment_max, segment_min, segment_prod
from ._arguments import INDEX, axis_of, cut, draw_index, fits, operands, positions, source, write_part

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
    x, values, at, axis = _arguments("scatter_mul", x, index, src, axis)
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
    x, values, at, axis = _arguments("scatter_max", x, index, src, axis)
    most = segment_max(values, at, x.shape[axis], implementation=implementation)
    return _extreme(x, most, axis=axis, is_max=True)


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
    x, values, at, axis = _arguments("scatter_min", x, index, src, axis)
    lowest = segment_min(values, at, x.shape[axis], implementation=implementation)
    return _extreme(x, lowest, axis=axis, is_max=False)


def _arguments(op, x, index, src, axis):
    """x, and vectors along the axis of what is written and of where."""
    x, index = operands(op, x, index, checks.NUMBERS)
    axis = axis_of(op, x, axis)
    fits(op, x, index, axis)
    src = source(op, x, src, tuple(index.shape))
    return x, *_vectors(src, index, axis=axis, size=x.shape[axis], is_wide=op == "scatter_mul"), axis


@compiled("axis", "size", "is_wide")
def _vectors(src, index, *, axis, size, is_wide):
    values = wide(src) if is_wide else src
    return jnp.moveaxis(values, axis, -1), positions(jnp.moveaxis(index, axis, -1), size)


def _parts(x, values, axis):
    """The part of x that an index reaches, and the values as it is laid out."""
    values = jnp.moveaxis(values, -1, axis)
    part = cut(x, values.shape, axis)
    return part, values if part.shape == x.shape else explicit.whole(values)


@compiled("axis")
def _times(x, factors, *, axis):
    part, factors = _parts(x, factors, axis)
    return write_part(x, (wide(part) * factors).astype(x.dtype))


@compiled("axis", "is_max")
def _extreme(x, values, *, axis, is_max):
    part, values = _parts(x, values, axis)
    is_other = (values > part if is_max else values < part) | (jnp.isnan(values) & ~jnp.isnan(part))
    return write_part(x, jnp.where(is_other, values, part))


def _case(name, shape, index, low, high, src, **kwargs):
    """Of elements that don't tie."""

    def draw(rng):
        values = rng.permutation(np.linspace(-2, 2, np.prod(shape) + np.prod(src)))
        x, written = np.split(values, [np.prod(shape)])
        return x.reshape(shape), draw_index(rng, low, high, index), written.reshape(src)

    return Case(name, draw, kwargs)


def _declare(public, part):
    compose(
        public.__name__,
        family="indexing",
        category=OpCategory.INDEXING,
        public=public,
        cases=(
            _case("columns", (5, 7), (5, 19), -8, 8, (5, 19)),
            _case("a part along the first axis", (8, 4), (6, 3), 0, 8, (6, 3), axis=0),
        ),
        dtypes=checks.NUMBERS,
        operands=("x", "index", "src"),
        made_of=(part,),
        differentiable=("x", "src"),
        constant=INDEX,
        kin="scatter_combine",
    )


_declare(scatter_mul, "segment_prod")
_declare(scatter_max, "segment_max")
_declare(scatter_min, "segment_min")
