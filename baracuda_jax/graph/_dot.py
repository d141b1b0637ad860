"""Dot products of the rows that entries name: the products of two arrays of rows, sampled."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.types import Implementation
from .._core.wide import wide
from ..segment._family import spaced
from ._arguments import entries, rows, same_entries
from ._family import FAMILY
from ._kernels import dots, weighted
from ._partition import WHOLE, labels
from ._references import add_up, each_entry, receivers_of, scaled


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
        senders: integers [E], the row of x of each edge, or entry. Entries outside [0, R), negative ones too, have 0.
        receivers: integers [E], the row of y; entries outside [0, S) have 0.
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
    senders, receivers = entries(op, "senders", senders), entries(op, "receivers", receivers)
    same_entries(op, "receivers", receivers, "senders", senders)
    params = dict(axis=0, leading=x.ndim - 2, sorted=False)
    return DOT(x, y, senders, receivers, **params, implementation=implementation)


def _reference(x, y, senders, receivers, *, axis, leading, **_):
    products = wide(each_entry(x, senders, axis)) * wide(each_entry(y, receivers, axis))
    return (products.sum(tuple(range(axis + 1 + leading, x.ndim))).astype(x.dtype),)


def _native(x, y, senders, receivers, *, save=False, axis, leading, **_):
    return (dots(x, y, senders, receivers, axis=axis, leading=leading).astype(x.dtype),)


def _tangent(by):
    def tangent(x, y, senders, receivers, t, u, **params):
        return (by(t, y, senders, receivers, **params)[0] + by(x, u, senders, receivers, **params)[0],)

    return tangent


def _backward_reference(x, y, senders, receivers, dd, *, axis, **_):
    of = lambda rows, names, to, like: add_up(
        scaled(each_entry(rows, names, axis), wide(dd)),
        receivers_of(names, to, rows.shape[axis], like.shape[axis]),
        axis=axis,
        num_segments=like.shape[axis],
    ).astype(like.dtype)
    return of(y, receivers, senders, x), of(x, senders, receivers, y)


def _backward_native(x, y, senders, receivers, dd, *, axis, **_):
    weights = wide(dd)
    dx = weighted(y, weights, receivers, senders, axis=axis, num_segments=x.shape[axis], sorted=False)
    return dx, weighted(x, weights, senders, receivers, axis=axis, num_segments=y.shape[axis], sorted=False)


def _draw(nodes, others, features, entries, outside=0):
    def draw(rng):
        index = lambda count: rng.integers(-outside, count + outside, entries).astype("int32")
        return spaced(rng, nodes, *features), rng.standard_normal((others, *features)), index(nodes), index(others)

    return draw


DOT = declare(
    "sampled_dot",
    **FAMILY,
    public=sampled_dot,
    dtypes=checks.FLOATS,
    cases=(
        Case("edges", _draw(11, 9, (6,), 41)),
        Case("heads", _draw(9, 7, (2, 8), 35, outside=2)),
        Case("wide rows", _draw(6, 6, (72,), 19)),
    ),
    operands=("x", "y", "senders", "receivers"),
    results=("d",),
    outputs=("d",),
    differentiable=("x", "y"),
    residuals=("x", "y", "senders", "receivers"),
    multilinear=True,
    cut=Partition(labels(("x",), ("y",)), WHOLE),
    forward=Body(_reference, _native),
    tangent=Body(_tangent(_reference), _tangent(_native)),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("sampled_dot",),
        "tangent": ("sampled_dot",),
        "backward": ("segment_index", "take_along", "segment_weighted_sum"),
    },
)
