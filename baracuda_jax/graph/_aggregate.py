"""Messages along edges, reduced where they arrive."""

from typing import Literal

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.compiled import compiled, full
from .._core.types import Implementation
from .._core.within import within
from ..segment import segment_softmax
from ..segment._arguments import sorted_of
from ..segment._index import SegmentIndex, with_index
from ..segment._references import take
from ._arguments import edges, entries, number_of_segments, receivers_of, rows, weights_of
from ._extremum import declare_extremum
from ._family import by_receiver
from ._mean import declare_mean
from ._sum import declare_sum
from ._weighted import declare_weighted

REDUCTIONS = ("sum", "mean", "max", "min", "softmax")


@api
def aggregate(
    x: ArrayLike,
    senders: ArrayLike,
    receivers: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    num_segments: int | None = None,
    *,
    reduce: Literal["sum", "mean", "max", "min", "softmax"] = "sum",
    indptr: ArrayLike | None = None,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Rows of an array, taken along the edges of a graph and reduced where these end.

    Formula:
        y[s] = sum of w[e] x[senders[e]] over the edges e with receivers[e] == s; dx[r] = sum of w[e] dy[receivers[e]] over
        the edges e with senders[e] == r; dw[e] = <dy[receivers[e]], x[senders[e]]>, over the dimensions that w lacks.
        "mean" divides by the number of the segment's edges; "max" and "min" take the extreme of x[senders[e]], and on ties
        the first edge takes the gradient; "softmax" is the sum with w = `segment_softmax` of the weights by receiver.

    Args:
        x: array [R, ...] of a float or integer type, a row for each node.
        senders: integers [E], the row that each edge, or entry, takes. Entries with a sender outside [0, R), negative ones
            too, are dropped. Or a SegmentIndex of them, of R segments, with which the gradient of x sorts nothing.
        receivers: integers [E], the segment that each edge ends in; entries outside [0, num_segments) are dropped. In any
            order. Or a SegmentIndex of them, with which the result sorts nothing.
        weights: floats [E], or [E, ...] with the first of x's other dimensions, such as heads [E, H] of x [R, H, C] or
            features [E, D] of x [R, D]; of x's dtype, or float32 for float16 and bfloat16. None for 1. Not with "max" and
            "min".
        num_segments: static integer, the number of rows of the result; by default R, or what indptr says.
        reduce: "sum", "mean", "max", "min" or "softmax", which takes the weights for logits.
        indptr: integers [S + 1] in place of receivers: segment s has the entries indptr[s] ... indptr[s + 1] - 1, as in a
            CSR matrix whose columns are the senders. Then nothing is sorted for the result.
        indices_are_sorted: promise that receivers is sorted, which saves the sort. The result is the same. If the promise
            is broken, the result is unspecified.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [num_segments, ...] of x's dtype; segments without entries are 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 accumulate in float32 and are rounded once; integers wrap. Entries are taken in order,
    so results are the same bits every time, and so are gradients.

    Source: dgl.ops.gspmm; torch_geometric.nn.MessagePassing; jraph; jax.ops.segment_sum of x[senders].
    """
    op = "aggregate"
    x = rows(op, "x", x, checks.NUMBERS)
    ids, _ = entries(op, "senders", senders, x.shape[0])
    receivers, num_segments = receivers_of(op, ids, receivers, indptr, num_segments, implementation)
    *entries_of, index = edges(op, senders, receivers, x.shape[0])
    is_sorted = sorted_of(op, by_receiver(index), indices_are_sorted)
    num_segments = number_of_segments(op, x.shape[0] if num_segments is None else num_segments)
    checks.choice(op, "reduce", reduce, REDUCTIONS)
    params = dict(axis=0, num_segments=num_segments, sorted=is_sorted, implementation=implementation)
    return _reduced(op, x, *entries_of, index, weights, reduce, params)


def aggregate_even(x, senders, count, length, weights, *, reduce, implementation):
    """`aggregate` of arguments that are right, where each of `count` segments has `length` neighboring entries."""
    receivers = SegmentIndex(*_even_index(count=count, length=length))
    *entries_of, index = edges("aggregate", senders, receivers, x.shape[0])
    params = dict(axis=0, num_segments=count, sorted=True, length=length, implementation=implementation)
    return _reduced("aggregate", x, *entries_of, index, weights, reduce, params)


@compiled("count", "length")
def _even_index(*, count, length):
    receivers = lax.broadcasted_iota(jnp.int32, (count, length), 0).reshape(-1)
    return receivers, jnp.zeros(0, jnp.uint32), jnp.arange(count + 1, dtype=jnp.uint32) * length


def _reduced(op, x, senders, receivers, index, weights, reduce, params):
    if weights is None:
        if reduce == "softmax":
            raise TypeError(f"{op}: weights must be given with reduce='softmax', whose logits they are, got None")
        return _unweighted(x, (senders, receivers, *index), reduce, params)
    if reduce in ("max", "min"):
        raise ValueError(
            f"{op}: weights must be None with reduce={reduce!r}; multiply x[senders] and use segment_{reduce}"
        )
    checks.dtype(op, "x", x, checks.FLOATS)
    weights = weights_of(op, x, weights, senders.shape[0])
    if reduce == "softmax":
        weights = _softmax(weights, senders, with_index(receivers, by_receiver(index)), x.shape[0], params)
    if reduce == "mean":
        counts = _count(x, (senders, receivers, *index), params)
        weights = _over(weights, counts, receivers, length=params.get("length", 0))
    return WEIGHTED(x, senders, receivers, weights, *index, **params)


def _unweighted(x, edges, reduce, params):
    if reduce in ("max", "min"):
        return {"max": MAX, "min": MIN}[reduce](x, *edges, num_rows=x.shape[0], **params)
    if reduce == "sum":
        return SUM(x, *edges, is_wide=False, num_rows=x.shape[0], dtype=x.dtype.name, **params)
    checks.dtype("aggregate", "x", x, checks.FLOATS)
    return MEAN(x, *edges, num_rows=x.shape[0], **params)


def _count(x, edges, params):
    """The number of entries of each segment."""
    one = full(x.shape[:1], 1, jnp.dtype("int32"))
    return SUM(one, *edges, num_rows=x.shape[0], dtype="int32", is_wide=False, **params)


@compiled("length")
def _over(weights, counts, receivers, *, length):
    if length:
        count = counts.shape[0]
        each = explicit.reshape(jnp.broadcast_to(counts[:, None], (count, length)), count * length)
    else:
        each = take(counts, receivers, axis=0)
    each = jnp.maximum(each, 1)
    return weights / each.reshape(each.shape + (1,) * (weights.ndim - 1)).astype(weights.dtype)


def _softmax(logits, senders, receivers, count, params):
    """The weights; entries that are dropped for their senders have none."""
    logits = _without(logits, senders, count=count)
    return segment_softmax(
        logits, receivers, params["num_segments"], indices_are_sorted=params["sorted"],
        implementation=params["implementation"],
    )  # fmt: skip


@compiled("count")
def _without(logits, senders, *, count):
    inside = within(senders, count).reshape(senders.shape + (1,) * (logits.ndim - 1))
    return jnp.where(inside, logits, -jnp.inf)


SUM = declare_sum(aggregate)
MEAN = declare_mean(aggregate)
WEIGHTED = declare_weighted(aggregate)
MAX = declare_extremum("aggregate_max", aggregate)
MIN = declare_extremum("aggregate_min", aggregate)
