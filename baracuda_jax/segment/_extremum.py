"""The maximum and minimum of each segment's rows: the lowest row that has the extreme value takes the gradient, or all that
have it share it."""

from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import from_bits, highest, lowest
from .._core.body import Body
from .._core.take_along import take_along
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import arguments, backward_arguments, bits_of, document
from ._family import FAMILY, cases, declare_with_index
from ._kernels import (
    each_row,
    flat,
    gradient,
    index_dtype,
    reduce,
    unflat,
)
from ._partition import extremum_by_rows, same, split_by_rows
from ._references import broadcast, column, per_batch, reduce_by, segment_or_last, take


def _extremum(
    op, first, split, data, segment_ids, num_segments, indices_are_sorted, ties, residuals, empty, implementation
):
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.NUMBERS)
    save = checks.flag(op, "return_residuals", residuals)
    if empty is None:
        empty = lowest(data.dtype) if op == "segment_max" else highest(data.dtype)
    bits = bits_of(op, empty, data.dtype)
    which = first if checks.choice(op, "ties", ties, ("first", "split")) == "first" else split
    return which(data, ids, *index, **params, empty_bits=bits, save=save, implementation=implementation)


_EXTREMUM_ARGUMENTS = """\
        ties: where rows tie, "first" gives the whole gradient to the lowest row number, "split" gives equal parts to all,
            as jax.ops does.
        return_residuals: also return what the backward function needs: with ties="first" `arg`, the row of each element
            (N where there is none), with ties="split" the number of rows that tie.
"""


@api
@document(
    "y[s] = max of data[n] over the rows n with segment_ids[n] == s; NaN if any of them is",
    empty="-inf, or the lowest integer",
    more=_EXTREMUM_ARGUMENTS,
    precision="exact.",
)
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    ties: Literal["first", "split"] = "first",
    return_residuals: bool = False,
    empty_value: float | None = None,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Maximum of the rows of each segment."""
    rest = (data, segment_ids, num_segments, indices_are_sorted, ties, return_residuals, empty_value, implementation)
    return _extremum("segment_max", _max, _max_split, *rest)


@api
@document(
    "y[s] = min of data[n] over the rows n with segment_ids[n] == s; NaN if any of them is",
    empty="+inf, or the highest integer",
    more=_EXTREMUM_ARGUMENTS,
    precision="exact.",
)
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    ties: Literal["first", "split"] = "first",
    return_residuals: bool = False,
    empty_value: float | None = None,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Minimum of the rows of each segment."""
    rest = (data, segment_ids, num_segments, indices_are_sorted, ties, return_residuals, empty_value, implementation)
    return _extremum("segment_min", _min, _min_split, *rest)


def _extremum_backward(op, which, segment_ids, arg, dy, indices_are_sorted, implementation):
    checks.dtype(op, "arg", arg, ("int32", "uint32"))
    ids, index, params = backward_arguments(op, segment_ids, dy, indices_are_sorted, same=[("arg", arg)])
    return which.vjp(ids, arg, *index, dy, **params, implementation=implementation)


@api
def segment_max_backward(
    segment_ids: ArrayLike,
    arg: ArrayLike,
    dy: ArrayLike,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_max` with ties="first": dx[n] = dy[s] if arg[s] == n, else 0, with s = segment_ids[n].

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        arg: int32 [num_segments, ...], the row of each element, as `segment_max` returns it.
        dy: floats [num_segments, ...], the cotangent of the result.
        indices_are_sorted: as in `segment_max`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    return _extremum_backward("segment_max_backward", _max, segment_ids, arg, dy, indices_are_sorted, implementation)


@api
def segment_min_backward(
    segment_ids: ArrayLike,
    arg: ArrayLike,
    dy: ArrayLike,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_min` with ties="first": see `segment_max_backward`."""
    return _extremum_backward("segment_min_backward", _min, segment_ids, arg, dy, indices_are_sorted, implementation)


def _arg(extremum, data, ids, *, axis, num_segments, **_):
    """The lowest row with the extreme value; the number of rows where there is none."""
    rows = data.shape[axis]

    def one(data, ids):
        ids = segment_or_last(ids, num_segments)
        best = extremum(data, ids, num_segments)
        best = jnp.concatenate([best, jnp.zeros((1, *best.shape[1:]), best.dtype)])[ids]
        row = jnp.where(same(data, best), column(jnp.arange(rows, dtype=index_dtype(rows)), data), rows)
        return jnp.minimum(jax.ops.segment_min(row, ids, num_segments), rows)

    return per_batch(one, axis)(data, broadcast(ids, data.shape[:axis]))


def _at(x, arg, axis, otherwise):
    """x [*batch, N, ...] at the rows `arg`."""
    if not x.shape[axis]:
        return jnp.full(arg.shape, otherwise, x.dtype)
    row = jnp.minimum(arg, x.shape[axis] - 1)
    return jnp.where(arg < x.shape[axis], jnp.take_along_axis(x, row, axis), otherwise)


def _native(name, residual):
    """The forward kernel: y and, of dtype residual(number of rows), what the gradient needs."""

    def native(data, ids, *, save, axis, **params):
        out = [data.dtype, residual(data.shape[axis])][: 2 if save else 1]
        return reduce(name, data, ids, out, axis=axis, **params)

    return native


def _declare_extremum(name, public, extremum):
    def reference(data, ids, **params):
        arg = _arg(extremum, lax.stop_gradient(data), ids, **params)
        return _at(data, arg, params["axis"], from_bits(params["empty_bits"], data.dtype)), arg

    def tangent_native(ids, arg, t, *, axis, **_):
        return (unflat(take_along(flat(arg, axis), flat(t, axis)), t, axis),)

    def backward_reference(ids, arg, dy, *, axis, **_):
        rows = jnp.arange(ids.shape[-1], dtype=arg.dtype)
        rows = rows.reshape((1,) * axis + (-1,) + (1,) * (dy.ndim - axis - 1))
        return (jnp.where(take(arg, ids, axis=axis) == rows, take(dy, ids, axis=axis), 0),)

    def backward_native(ids, arg, dy, **params):
        return (gradient("segment_extremum_backward", ids, dy, elements=[arg], **params),)

    return declare_with_index(
        name,
        **FAMILY,
        public=public,
        dtypes=checks.NUMBERS,
        cases=cases(),
        results=("y", "arg"),
        residuals=("segment_ids", "arg"),
        cut=extremum_by_rows(
            name,
        ),
        forward=Body(reference, _native(name, index_dtype)),
        tangent=Body(lambda ids, arg, t, *, axis, **_: (_at(t, arg, axis, 0),), tangent_native),
        backward=Body(backward_reference, backward_native),
        kernels={
            "forward": (name,),
            "tangent": ("take_along",),
            "backward": ("segment_extremum_backward",),
        },
    )


def _declare_split(name, public, extremum, identity):
    """The tangent is a sum of segments."""

    def reference(data, ids, **params):
        y = reduce_by(lambda x, i: extremum(x, i, params["num_segments"]), identity(data.dtype), data, ids, **params)
        ties = same(data, take(y, ids, **params)).astype(jnp.float32)
        return y, reduce_by(add(params), 0, ties, ids, **{**params, "empty_bits": 0})

    def add(params):
        return lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"])

    def tangent_by(each_row, sum_of):
        def tangent(data, ids, y, ties, t, **params):
            ties_here = same(data, each_row(y, ids, **params))
            total = sum_of(jnp.where(ties_here, wide(t), 0), ids, **{**params, "empty_bits": 0})
            return ((total / jnp.maximum(ties, 1).astype(total.dtype)).astype(t.dtype),)

        return tangent

    def sum_native(x, ids, **params):
        return reduce("segment_sum", x, ids, [x.dtype], **params)[0]

    def sum_reference(x, ids, **params):
        return reduce_by(add(params), 0, x, ids, **params)

    def backward_reference(data, ids, y, ties, dy, **params):
        part = (wide(dy) / jnp.maximum(ties, 1).astype(wide(dy).dtype)).astype(dy.dtype)
        return (jnp.where(same(data, take(y, ids, **params)), take(part, ids, **params), 0),)

    def backward_native(data, ids, y, ties, dy, **params):
        return (gradient("segment_ties_backward", ids, dy, data=[data], elements=[y, ties], **params),)

    return declare_with_index(
        f"{name}_split",
        **FAMILY,
        public=public,
        dtypes=checks.NUMBERS,
        cases=cases(ties="split"),
        results=("y", "ties"),
        residuals=("data", "segment_ids", "y", "ties"),
        cut=split_by_rows(
            name,
        ),
        forward=Body(reference, _native(name, lambda rows: jnp.float32)),
        tangent=Body(tangent_by(take, sum_reference), tangent_by(each_row, sum_native)),
        backward=Body(backward_reference, backward_native),
        kernels={
            "forward": (name,),
            "tangent": ("segment_sum", "segment_sum_backward"),
            "backward": ("segment_ties_backward",),
        },
    )


_max = _declare_extremum("segment_max", segment_max, jax.ops.segment_max)
_min = _declare_extremum("segment_min", segment_min, jax.ops.segment_min)
_max_split = _declare_split("segment_max", segment_max, jax.ops.segment_max, lowest)
_min_split = _declare_split("segment_min", segment_min, jax.ops.segment_min, highest)
