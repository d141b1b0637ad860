"""Dot products of the rows that entries name: the products of two arrays of rows, sampled."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.body import Body
from .._core.case import Case
from .._core.types import Implementation
from .._core.wide import wide
from ..segment._family import declare_with_index, spaced
from ..segment._index import index_of_ids
from ..segment._references import take
from ._arguments import edges, rows
from ._family import FAMILY, by_receiver, by_sender
from ._kernels import dots, weighted
from ._partition import by_edges, labels
from ._references import add_up, receivers_of, scaled


@api
def sampled_dot(
    x: ArrayLike, y: ArrayLike, senders: ArrayLike, receivers: ArrayLike, *, implementation: Implementation = None
) -> Array:
    """Dot products of rows of two arrays, one for each edge of a graph.

    Formula:
        d[e] = <x[senders[e]], y[receivers[e]]> over the last dimension; dx[r] = sum of dd[e] y[receivers[e]] over the edges
        e with senders[e] == r; dy[s] = sum of dd[e] x[senders[e]] over the edges e with receivers[e] == s.

    Args:
        x: floats [R, ..., C], a row for each sender.
        y: floats [S, ..., C] of x's dtype, a row for each receiver.
        senders: integers [E], the row of x of each edge, or entry. Entries outside [0, R), negative ones too, have 0. Or a
            SegmentIndex of them, of R segments, with which the gradient of x sorts nothing.
        receivers: integers [E], the row of y; entries outside [0, S) have 0. Or a SegmentIndex, for the gradient of y.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [E, ...] of x's dtype, such as [E, H] for x [R, H, C].

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 accumulate in float32 and are rounded once. The order of the elements is decided by the
    shapes alone: results are the same bits every time, and so are gradients.

    Source: dgl.ops.gsddmm (u_dot_v); torch.sparse.sampled_addmm.
    """
    op = "sampled_dot"
    x, y = rows(op, "x", x, checks.FLOATS), rows(op, "y", y, checks.FLOATS)
    checks.same_dtype(op, "y", y, "x", x)
    if x.ndim < 2 or y.shape[1:] != x.shape[1:]:
        raise ValueError(
            f"{op}: x must have two dimensions or more, and y all but the first of x's; got {tuple(x.shape)} and "
            f"{tuple(y.shape)}"
        )
    senders, receivers, index = edges(op, senders, receivers, x.shape[0], y.shape[0])
    params = dict(axis=0, leading=x.ndim - 2, sorted=False)
    return DOT(x, y, senders, receivers, *index, **params, implementation=implementation)


def _reference(x, y, senders, receivers, *, axis, leading, **_):
    products = wide(take(x, senders, axis=axis)) * wide(take(y, receivers, axis=axis))
    return (products.sum(tuple(range(axis + 1 + leading, x.ndim))).astype(x.dtype),)


def _native(x, y, senders, receivers, *, save=False, axis, leading, **_):
    return (dots(x, y, senders, receivers, axis=axis, leading=leading).astype(x.dtype),)


def _tangent(by):
    def tangent(x, y, senders, receivers, t, u, **params):
        return (by(t, y, senders, receivers, **params)[0] + by(x, u, senders, receivers, **params)[0],)

    return tangent


def _backward_reference(x, y, senders, receivers, dd, *, axis, **_):
    of = lambda rows, names, to, like: add_up(
        scaled(take(rows, names, axis=axis), wide(dd)),
        receivers_of(names, to, rows.shape[axis], like.shape[axis]),
        axis=axis,
        num_segments=like.shape[axis],
    ).astype(like.dtype)
    return of(y, receivers, senders, x), of(x, senders, receivers, y)


def _backward_native(x, y, senders, receivers, dd, *, axis, index, **_):
    weights, params = wide(dd), dict(axis=axis, sorted=False)
    dx = weighted(y, weights, receivers, senders, num_segments=x.shape[axis], index=by_sender(index), **params)
    dy = weighted(x, weights, senders, receivers, num_segments=y.shape[axis], index=by_receiver(index), **params)
    return dx, dy


def _draw(nodes, others, features, entries, outside=0, is_indexed=False):
    def draw(rng):
        ids = lambda count: rng.integers(-outside, count + outside, entries).astype("int32")
        index = lambda count: index_of_ids(ids(count), count) if is_indexed else ids(count)
        return spaced(rng, nodes, *features), rng.standard_normal((others, *features)), index(nodes), index(others)

    return draw


DOT = declare_with_index(
    "sampled_dot",
    **FAMILY,
    public=sampled_dot,
    dtypes=checks.FLOATS,
    cases=(
        Case("edges", _draw(11, 9, (6,), 41)),
        Case("heads", _draw(9, 7, (2, 8), 35, outside=2)),
        Case("wide rows", _draw(6, 6, (72,), 19)),
        Case("index", _draw(9, 7, (8,), 31, outside=1, is_indexed=True)),
    ),
    operands=("x", "y", "senders", "receivers"),
    results=("d",),
    outputs=("d",),
    differentiable=("x", "y"),
    residuals=("x", "y", "senders", "receivers"),
    multilinear=True,
    cut=by_edges(labels(("x",), ("y",))),
    forward=Body(_reference, _native),
    tangent=Body(_tangent(_reference), _tangent(_native)),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("sampled_dot",),
        "tangent": ("sampled_dot",),
        "backward": ("segment_weighted_sum",),
    },
)
