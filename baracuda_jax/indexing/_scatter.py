"""Elements written at an index, the last one where several are.

XLA does not say which of several writes to an element is the last. So the index of the last is computed first, as a maximum
of positions, which is the same in any order; then each element of the result is read from where it comes from."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from ._arguments import (
    INDEX,
    along,
    axis_of,
    cut,
    draw_index,
    fits,
    last_ranks,
    operands,
    positions,
    source,
    take,
    write_part,
)


@facade_api("xla")
def scatter(
    x: ArrayLike, index: ArrayLike, src: ArrayLike, axis: int = -1, *, implementation: Implementation = None
) -> Array:
    """An array with elements along an axis replaced, at an index for each.

    Formula:
        y = x, but y[i, index[i, j, k], k] = src[i, j, k] with three dimensions and axis 1. Of several elements of src that
        have one index, the one with the highest j is written. dx is dy where nothing was written; dsrc is dy at the index of
        what was written and stayed, and 0 elsewhere.

    Args:
        x: array of rank 1 or more, of any dtype.
        index: integers of x's rank and of any width; of any size along the axis and at most x's elsewhere. Entries in
            [-n, -1] count from the end, n being the size of x along the axis. Others out of range are dropped.
        src: array of x's dtype, of index's sizes or larger ones, whose rest is not read; or a number for all.
        axis: static integer, along which the index is.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. Nothing is added up, also in the gradient: the same bits every time.

    Source: torch.scatter, numpy.put_along_axis; jax.numpy.put_along_axis and jax.numpy.ndarray.at, with equal indices in an
    order that is not specified.
    """
    op = "scatter"
    x, index = operands(op, x, index)
    axis = axis_of(op, x, axis)
    fits(op, x, index, axis)
    return _scatter(x, index, source(op, x, src, tuple(index.shape)), axis=axis)


@compiled("axis")
def _scatter(x, index, src, *, axis):
    at, part = positions(index, x.shape[axis]), cut(x, index.shape, axis)

    def write(x, at, src):
        _, last = last_ranks(at, x.shape)
        return jnp.where(last < 0, x, take(src, jnp.where(last < 0, src.shape[0], last), 0))

    return write_part(x, along(write, axis, part, at, src))


def _case(name, shape, index, low, high, **kwargs):
    draw = lambda rng: (rng.standard_normal(shape), draw_index(rng, low, high, index), rng.standard_normal(index))
    return Case(name, draw, kwargs)


facade(
    "scatter",
    family="indexing",
    category=OpCategory.INDEXING,
    public=scatter,
    cases=(
        _case("columns, several at one", (5, 7), (5, 9), -7, 7),
        _case("a part along a middle axis", (3, 8, 4), (2, 5, 3), -10, 10, axis=1),
        _case("vector", (29,), (12,), 0, 29),
    ),
    dtypes=checks.EVERY,
    operands=("x", "index", "src"),
    differentiable=("x", "src"),
    constant=INDEX,
)
