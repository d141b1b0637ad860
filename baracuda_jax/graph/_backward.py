"""The gradients of aggregations, as functions."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from . import _aggregate
from ._arguments import edges, number_of_segments, rows, weights_of
from ._dot import DOT


def _arguments(op, senders, receivers, **floats):
    """(senders, receivers, their index), and arrays with a row for each node or segment."""
    return edges(op, senders, receivers), *(rows(op, name, x, checks.FLOATS) for name, x in floats.items())


def _params(dy, **more):
    return dict(axis=0, num_segments=dy.shape[0], sorted=False, **more)


@api
def aggregate_sum_backward(
    senders: ArrayLike, receivers: ArrayLike, dy: ArrayLike, num_rows: int, *, implementation: Implementation = None
) -> Array:
    """The gradient of `aggregate` with reduce="sum" and without weights: dx[r] = sum of dy[receivers[e]] over the edges e
    with senders[e] == r.

    Args:
        senders, receivers: integers [E], as in `aggregate`.
        dy: floats [num_segments, ...], the cotangent of the result.
        num_rows: static integer, the number of rows of x.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [num_rows, ...].
    """
    op = "aggregate_sum_backward"
    (senders, receivers, index), dy = _arguments(op, senders, receivers, dy=dy)
    of_x = dict(num_rows=number_of_segments(op, num_rows, "num_rows"), dtype=dy.dtype.name, is_wide=False)
    return _aggregate.SUM.vjp(senders, receivers, *index, dy, **_params(dy, **of_x), implementation=implementation)


@api
def aggregate_mean_backward(
    senders: ArrayLike, receivers: ArrayLike, dy: ArrayLike, num_rows: int, *, implementation: Implementation = None
) -> Array:
    """The gradient of `aggregate` with reduce="mean" and without weights: dx[r] = sum of dy[receivers[e]] over the number of
    edges that end there, over the edges e with senders[e] == r. The arguments are those of `aggregate_sum_backward`.

    Returns:
        The cotangent of x, [num_rows, ...].
    """
    op = "aggregate_mean_backward"
    (senders, receivers, index), dy = _arguments(op, senders, receivers, dy=dy)
    of_x = dict(num_rows=number_of_segments(op, num_rows, "num_rows"))
    return _aggregate.MEAN.vjp(senders, receivers, *index, dy, **_params(dy, **of_x), implementation=implementation)


@api
def aggregate_weighted_sum_backward(
    x: ArrayLike,
    senders: ArrayLike,
    receivers: ArrayLike,
    weights: ArrayLike,
    dy: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `aggregate` with weights: dx[r] = sum of w[e] dy[receivers[e]] over the edges e with senders[e] == r,
    and dw[e] = the dot product of dy[receivers[e]] and x[senders[e]].

    Args:
        x: floats [R, ...].
        senders, receivers, weights: as in `aggregate`.
        dy: floats [num_segments, ...], the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and of weights, that in float32 for float16 and bfloat16.
    """
    op = "aggregate_weighted_sum_backward"
    (senders, receivers, index), x, dy = _arguments(op, senders, receivers, x=x, dy=dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, (dy.shape[0], *x.shape[1:]), "x's with segments for rows")
    weights = weights_of(op, x, weights, senders.shape[0])
    saved = (x, senders, receivers, weights, *index)
    return tuple(_aggregate.WEIGHTED.vjp(*saved, dy, **_params(dy), implementation=implementation))


def _extremum_backward(op, which, senders, receivers, arg, dy, num_rows, implementation):
    (senders, receivers, index), dy = _arguments(op, senders, receivers, dy=dy)
    arg = checks.array(op, "arg", arg)
    checks.dtype(op, "arg", arg, ("int32", "uint32"))
    checks.shape(op, "arg", arg, dy.shape, "that of dy")
    params = _params(dy, num_rows=number_of_segments(op, num_rows, "num_rows"))
    return which.vjp(senders, receivers, arg, *index, dy, **params, implementation=implementation)


@api
def aggregate_max_backward(
    senders: ArrayLike,
    receivers: ArrayLike,
    arg: ArrayLike,
    dy: ArrayLike,
    num_rows: int,
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `aggregate` with reduce="max": dx[r] = sum of dy[s] over the segments s with arg[s] == e and
    senders[e] == r.

    Args:
        senders, receivers: integers [E], as in `aggregate`.
        arg: int32 [num_segments, ...], the edge that each element comes from, E where there is none.
        dy: floats [num_segments, ...], the cotangent of the result.
        num_rows: static integer, the number of rows of x.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [num_rows, ...].
    """
    which = _aggregate.MAX
    return _extremum_backward("aggregate_max_backward", which, senders, receivers, arg, dy, num_rows, implementation)


@api
def aggregate_min_backward(
    senders: ArrayLike,
    receivers: ArrayLike,
    arg: ArrayLike,
    dy: ArrayLike,
    num_rows: int,
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `aggregate` with reduce="min"; the arguments are those of `aggregate_max_backward`."""
    which = _aggregate.MIN
    return _extremum_backward("aggregate_min_backward", which, senders, receivers, arg, dy, num_rows, implementation)


@api
def sampled_dot_backward(
    x: ArrayLike,
    y: ArrayLike,
    senders: ArrayLike,
    receivers: ArrayLike,
    dd: ArrayLike,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `sampled_dot`: dx[r] = sum of dd[e] y[receivers[e]] over the edges e with senders[e] == r, and dy[s] =
    sum of dd[e] x[senders[e]] over the edges e with receivers[e] == s.

    Args:
        x, y, senders, receivers: as in `sampled_dot`.
        dd: floats [E, ...], the cotangent of the result.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of x and y.
    """
    op = "sampled_dot_backward"
    (senders, receivers, index), x, y = _arguments(op, senders, receivers, x=x, y=y)
    checks.same_dtype(op, "y", y, "x", x)
    checks.shape(op, "y", y, (y.shape[0], *x.shape[1:]), "x's with other rows")
    dd = checks.floats(op, "dd", dd)
    checks.shape(op, "dd", dd, (senders.shape[0], *x.shape[1:-1]), "one for each edge and all but x's last dimension")
    params = dict(axis=0, leading=x.ndim - 2, sorted=False)
    return tuple(DOT.vjp(x, y, senders, receivers, *index, dd, **params, implementation=implementation))
