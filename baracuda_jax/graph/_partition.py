"""Aggregations on shards: features are apart from each other; shards of entries give parts of each segment, which are
added. Rows of x and segments are on every device."""

from .._core.partition import Partition
from ..segment._family import INDEX

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


def aggregation(**combine):
    """Of x by row and y by segment."""
    return by_edges(labels(("x",), ("y", "arg")), **combine)


def by_edges(labels, **combine):
    """A shard of the edges has no index of them all."""
    return Partition(labels, WHOLE, {"e": combine} if combine else {}, {"e": INDEX})
