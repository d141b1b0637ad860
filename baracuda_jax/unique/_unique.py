"""Distinct values, of all elements or of runs."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core import prefer as preference
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..scan import cumsum
from . import _sorted
from ._arguments import array, document, fill, known_size
from ._compact import declare_positions, found, positions
from ._nonzero import nonzero_elements


@api
@document
def unique(
    x: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    equal_nan: bool = True,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """The distinct values of an array, sorted.

    Formula:
        values: each value of x once, ascending, NaN last; values[inverse] = x, and x.ravel()[index] = values, where index is
        the first position of each.

    Args:
        x: array of a float or integer type or bool, of any shape.
        return_index: also return where in the flat array, or along axis, each value is first.
        return_inverse: also return where in values each element is.
        return_counts: also return how often each value is there.
        axis: static integer; then the distinct slices along this axis, in the order of their elements. By default those of
            the flat array.
        {size}
        fill_value: what follows the last value; by default the first value.
        equal_nan: whether all NaN are one value.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        values [size] of x's dtype, or with `size` slices along axis; with the others a tuple: index [size], inverse of x's
        shape, or one for each slice, counts [size], int32. After the last value index is that of the first value, and
        counts are 0. Inverse is that of all values, also where there is no room for all.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. -0 and 0 are equal, and the value is the first of the elements that are. Values have the gradient of
    the elements that they are taken from.

    Source: jax.numpy.unique; torch.unique.
    """
    op = "unique"
    x = array(op, "x", x)
    wanted = _wanted(op, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts)
    equal_nan = checks.flag(op, "equal_nan", equal_nan)
    rows, axis = _rows(op, "x", x, axis)
    if rows.ndim == 1:
        rows = explicit.whole(rows)
        needs_order = bool({"return_index", "return_inverse"} & wanted)
        rows, order = _sorted.sorted_elements(rows, needs_order, implementation)
    else:
        rows, order = _sorted_slices(rows)
    return _runs(op, "x", _unique, x, rows, axis, wanted, order, size, fill_value, equal_nan, implementation)


@api
@document
def unique_consecutive(
    x: ArrayLike,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """The first element of each run of equal elements.

    Formula:
        values: the elements that differ from the one before; values[inverse] = x.

    Args:
        x: array of a float or integer type or bool, of any shape.
        return_inverse: also return which run each element is in.
        return_counts: also return how long each run is.
        axis: static integer; then the runs of equal slices along this axis. By default those of the flat array.
        {size}
        fill_value: what follows the last value; by default the first value.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        values [size] of x's dtype, or with `size` slices along axis; with the others a tuple: inverse of x's shape,
        or one for each slice, counts [size], int32. After the last value counts are 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. -0 and 0 are equal; a NaN differs from every element. Values have the gradient of the elements that
    they are taken from.

    Source: torch.unique_consecutive.
    """
    op = "unique_consecutive"
    x = array(op, "x", x)
    wanted = _wanted(op, return_inverse=return_inverse, return_counts=return_counts)
    rows, axis = _rows(op, "x", x, axis)
    return _runs(op, "x", _consecutive, x, rows, axis, wanted, None, size, fill_value, False, implementation)


def _wanted(op, **flags):
    return {name for name, flag in flags.items() if checks.flag(op, name, flag)}


def _rows(op, name, x, axis):
    """The elements or slices whose runs are wanted, along the first axis; and that axis of x, or None."""
    if axis is None:
        rows = explicit.reshape(x, -1)
    else:
        axis = checks.axis(op, name, x, axis)
        rows = jnp.moveaxis(explicit.whole(x), axis, 0)
    checks.positions(op, name, rows.shape[0])
    return rows, axis


def _differs(a, before, equal_nan):
    """Whether elements are the first of a run. Slices do where one of their elements does."""
    y = a != before
    if equal_nan:
        y &= ~((a != a) & (before != before))
    return y.any(range(1, y.ndim)) if y.ndim > 1 else y


@compiled()
def _sorted_slices(rows):
    """And where they were."""
    order = jnp.lexsort(rows.reshape(rows.shape[0], -1).T[::-1]) if rows.size else jnp.arange(rows.shape[0])
    order = order.astype(jnp.int32)
    return rows[order], order


@compiled("equal_nan")
def _is_start(rows, equal_nan):
    start = jnp.ones(min(rows.shape[0], 1), bool)
    return jnp.concatenate([start, _differs(rows[1:], rows[:-1], equal_nan)])


def _runs(op, name, which, x, rows, axis, wanted, order, size, fill_value, equal_nan, implementation):
    """What is asked for of the runs of `rows`, which were at `order` in x."""
    n = rows.shape[0]
    elements, params = rows, {"equal_nan": equal_nan}
    if rows.ndim > 1:  # slices: where they start is a mask
        which, elements, params = nonzero_elements, _is_start(rows, equal_nan), {"fill": -1}
    size = known_size(op, name, x, size, lambda: found(which, elements, implementation, **params))
    if not n and size and fill_value is None:
        raise ValueError(f"{op}: fill_value must be given where {name} has no elements and size is not 0")
    fill_value = None if fill_value is None else fill(op, fill_value, rows.dtype)
    results = _of_runs(
        rows, elements, order, fill_value, which=which, params=tuple(params.items()), shape=x.shape, axis=axis,
        wanted=frozenset(wanted), size=size, equal_nan=equal_nan, implementation=preference.resolve(op, implementation),
    )  # fmt: skip
    return results[0] if len(results) == 1 else tuple(results)


@compiled("which", "params", "shape", "axis", "wanted", "size", "equal_nan", "implementation")
def _of_runs(rows, elements, order, fill_value, *, which, params, shape, axis, wanted, size, equal_nan, implementation):
    n, has_counts = rows.shape[0], "return_counts" in wanted
    starts = positions(which, elements, size + has_counts, implementation, **dict(params))
    if which is nonzero_elements:
        starts = jnp.where(starts < 0, n, starts)
    first = starts[:size]
    index = jnp.where(first < n, first, 0)
    values = explicit.take(rows, index) if n else jnp.zeros((size, *rows.shape[1:]), rows.dtype)
    if fill_value is not None:
        is_there = (first < n).reshape(-1, *(1,) * (rows.ndim - 1))
        values = jnp.where(is_there, values, fill_value)
    results = [jnp.moveaxis(values, 0, axis) if axis is not None else values]
    if "return_index" in wanted:
        results.append(order[index] if n else index)
    if "return_inverse" in wanted:
        run = cumsum(_is_start(explicit.whole(rows), equal_nan).astype(jnp.int32), implementation=implementation) - 1
        if order is not None:
            run = jnp.zeros(n, jnp.int32).at[order].set(run, unique_indices=True)
        results.append(run.reshape(shape) if axis is None else run)
    if has_counts:
        results.append(jnp.diff(starts))
    return results


def _draw(rng, *shape):
    """Few values, and so equal ones side by side."""
    return np.round(rng.standard_normal(shape))


_RUNS = dict(target="run_starts", keeps=_is_start, category=OpCategory.SORTING)
_WHY = "it decides where values are taken from; those that are taken have its gradient"

_unique = declare_positions(
    "unique",
    **_RUNS,
    public=unique,
    operands=("x",),
    constant={"x": _WHY},
    cases=(
        Case("vector", lambda r: (_draw(r, 100),), dict(size=12)),
        Case("matrix", lambda r: (_draw(r, 9, 7),), dict(size=4, fill_value=0)),
        Case(
            "all results",
            lambda r: (_draw(r, 6, 5),),
            dict(return_index=True, return_inverse=True, return_counts=True, size=8),
        ),
    ),
    also=("sort",),
    kernels={"forward": ("run_starts",)},
)
_consecutive = declare_positions(
    "unique_consecutive",
    **_RUNS,
    public=unique_consecutive,
    operands=("x",),
    constant={"x": _WHY},
    cases=(
        Case("vector", lambda r: (_draw(r, 60),), dict(size=50)),
        Case("few", lambda r: (_draw(r, 9, 7),), dict(size=9, return_counts=True)),
    ),
    kernels={"forward": ("run_starts",)},
)
