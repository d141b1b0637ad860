"""Aggregations on shards: features are apart from each other; shards of entries give parts of each segment, which are
added, and so do shards of rows of x, which have the entries of their senders. Segments are on every device."""

from jax import lax

from .._core.partition import Partition
from ..segment._family import INDEX
from ..segment._partition import rows_here

WHOLE = frozenset({"r", "s", *(f"index{i}" for i in range(4))})


def labels(by_row, by_segment):
    """The rule of an op whose arrays of these names have rows of x, and segments; others are by entry."""

    def of_call(names, types, params):
        return [_of(name, x.ndim, params["axis"], by_row, by_segment) for name, x in zip(names, types, strict=True)]

    return of_call


def _of(name, rank, axis, by_row, by_segment):
    if name.startswith("index"):
        return (*(f"batch{i}" for i in range(rank - 1)), name)
    lead = rank - 1 if name in ("senders", "receivers") else axis
    rows = "r" if name in by_row else "s" if name in by_segment else "e"
    return (*(f"batch{i}" for i in range(lead)), rows, *(f"feature{i}" for i in range(rank - lead - 1)))


def by_edges(labels):
    """A shard of the edges has no index of them all."""
    return Partition(labels, WHOLE, without={"e": INDEX})


def by_edges_or_rows(of_rows, **of_edges):
    """Of x by row, which may be cut too, and y by segment."""
    combine = {"e": of_edges, "r": of_rows} if of_edges else {"r": of_rows}
    return Partition(labels(("x",), ("y", "arg")), WHOLE - {"r"}, combine, {"e": INDEX, "r": INDEX})


def on_rows(**combine):
    """What combines shards of the rows of x: each has the entries whose senders are its rows."""
    return {kind: _on_rows(kind, of_shard) for kind, of_shard in combine.items()}


def _on_rows(kind, of_shard):
    def combined(run, axes, *operands, num_rows, **params):
        """Operands are (x, senders, ...) or (senders, ...)."""
        i, count = int(kind == "forward"), num_rows // lax.axis_size(axes)
        here = rows_here(operands[i], count, axes)
        return of_shard(run, axes, *operands[:i], here, *operands[i + 1 :], num_rows=count, **params)

    return combined


def _added(kind):
    return lambda run, axes, *operands, **params: [lax.psum(run[kind](*operands, **params)[0], axes)]


def _apart(run, axes, *operands, **params):
    return run["backward"](*operands, **params)


def _weighted_on_rows(kind):
    def of_shard(run, axes, x, senders, *operands, axis, **params):
        here = rows_here(senders, x.shape[axis], axes)
        *dx, y = run[kind](x, here, *operands, axis=axis, **params)  # of the gradient that of the weights is last
        return [*dx, lax.psum(y, axes)]

    return of_shard


KINDS = "forward", "tangent", "backward"
sum_partition = by_edges_or_rows(on_rows(forward=_added("forward"), tangent=_added("tangent"), backward=_apart))
weighted_partition = by_edges_or_rows({kind: _weighted_on_rows(kind) for kind in KINDS})
