"""The cumulative maximum and minimum. The first element that has the extreme value takes the gradient."""

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import highest, lowest
from .._core.op import Body, declare
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import arguments, backward_arguments, document
from ._exclusive import derivatives, shifted
from ._family import CUMULATIVE, cases
from ._kernels import call, take
from ._partition import whole_axis
from ._references import after, before, last


def _extremum(op, which, x, axis, reverse, exclusive, indices, implementation):
    x, params = arguments(op, x, axis, reverse, exclusive, checks.NUMBERS)
    count = x.shape[params["axis"]]
    checks.positions(op, "x", count, "elements along axis")
    save = checks.flag(op, "return_indices", indices)
    return which(x, **params, save=save, implementation=implementation)


_EXTREMUM_ARGUMENTS = """\
        return_indices: also return where along the axis each value is, of those that tie the first in the direction of the
            scan; the length of the axis where there is nothing before the element.
"""
_EXTREMUM = dict(
    more=_EXTREMUM_ARGUMENTS,
    returns="Array of x's shape and dtype; with return_indices also an int32 array of the shape.",
    precision="exact. A NaN beats every number, and the first NaN stays. The element at the index has the gradient.",
)


@api
@document(
    "y_i = max(x_0, ..., x_i), and exclusive up to x_{i-1}; dx_j = sum of dy_i over the elements i whose index is j",
    nothing="-inf, or the lowest integer",
    source="jax.lax.cummax; torch.cummax",
    **_EXTREMUM,
)
def cummax(
    x: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    return_indices: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Maximum of what comes before each element along an axis."""
    return _extremum("cummax", _max, x, axis, reverse, exclusive, return_indices, implementation)


@api
@document(
    "y_i = min(x_0, ..., x_i), and exclusive up to x_{i-1}; dx_j = sum of dy_i over the elements i whose index is j",
    nothing="+inf, or the highest integer",
    source="jax.lax.cummin; torch.cummin",
    **_EXTREMUM,
)
def cummin(
    x: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    return_indices: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Minimum of what comes before each element along an axis."""
    return _extremum("cummin", _min, x, axis, reverse, exclusive, return_indices, implementation)


def _extremum_backward(op, which, index, dy, axis, reverse, exclusive, implementation):
    (dy,), params = backward_arguments(op, {"dy": dy}, axis, reverse, exclusive)
    index = checks.array(op, "index", index)
    checks.dtype(op, "index", index, ("int32",))
    checks.shape(op, "index", index, dy.shape, "that of dy")
    return which.vjp(index, dy, **params, implementation=implementation)


@api
def cummax_backward(
    index: ArrayLike,
    dy: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `cummax`: dx_j = sum of dy_i over the elements i with index_i == j.

    Args:
        index: int32, as `cummax` returns it with return_indices, with the same exclusive.
        dy: floats of the same shape, the cotangent of the result.
        axis, reverse, exclusive: as in `cummax`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _extremum_backward("cummax_backward", _max, index, dy, axis, reverse, exclusive, implementation)


@api
def cummin_backward(
    index: ArrayLike,
    dy: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    exclusive: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `cummin`: see `cummax_backward`."""
    return _extremum_backward("cummin_backward", _min, index, dy, axis, reverse, exclusive, implementation)


def _at(x, index, axis, nothing):
    """x at the index, `nothing` where that is past the end."""
    n = x.shape[axis]
    if not n:
        return x
    return jnp.where(index < n, jnp.take_along_axis(x, jnp.minimum(index, n - 1), axis), nothing)


def _declare(name, public, beats, nothing):
    def better(a, b):
        """b where it beats a, which is earlier, or is the first NaN."""
        (x, i), (y, j) = a, b
        is_better = beats(y, x) | ((y != y) & (x == x))
        return jnp.where(is_better, y, x), jnp.where(is_better, j, i)

    def reference(x, *, exclusive, **params):
        axis, n = params["axis"], x.shape[params["axis"]]
        positions = lax.broadcasted_iota(jnp.int32, x.shape, axis)
        index = lax.associative_scan(better, (x, positions), **params)[1]
        index = before(index, n, **params) if exclusive else index
        return _at(x, index, axis, jnp.asarray(nothing(x.dtype), x.dtype)), index

    def native(x, *, save, **params):
        return call(name, x, dtypes=[x.dtype, jnp.int32][: 2 if save else 1], **params)

    return declare(
        name,
        **CUMULATIVE,
        public=public,
        dtypes=checks.NUMBERS,
        cases=cases(),
        results=("y", "index"),
        weak=True,
        residuals=("index",),
        cut=whole_axis,
        forward=Body(reference, native),
        **derivatives(
            tangent=(_tangent_reference, _tangent_native),
            backward=(_backward_reference, _backward_native),
            inclusive=lambda index, **params: (shifted(index, last(index, **params), **params),),
        ),
        kernels={
            "forward": (name,),
            "tangent": ("take_along",),
            "backward": ("cumextremum_backward",),
        },
    )


def _tangent_reference(index, t, *, axis, **_):
    return (_at(t, index, axis, 0),)


def _tangent_native(index, t, *, axis, **_):
    return (take(t, index, axis),)


def _backward_reference(index, dy, *, axis, reverse):
    """The sum over each run of elements that have one index, at its end in the other direction, where that index is."""
    params = dict(axis=axis, reverse=reverse)

    def combine(a, later):
        (total, begins), (more, again) = a, later
        return jnp.where(again, more, total + more), begins | again

    begins = index != after(index, -1, **params)
    total = lax.associative_scan(combine, (wide(dy), begins), reverse=not reverse, axis=axis)[0]
    is_arg = index == lax.broadcasted_iota(jnp.int32, index.shape, axis)
    return (jnp.where(is_arg, total, 0).astype(dy.dtype),)


def _backward_native(index, dy, **params):
    return call("cumextremum_backward", index, dy, **params)


_max = _declare("cummax", cummax, jnp.greater, lowest)
_min = _declare("cummin", cummin, jnp.less, highest)
