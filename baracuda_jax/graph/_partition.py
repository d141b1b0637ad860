"""Aggregations on shards: features are apart from each other; shards of entries give parts of each segment, which are
added. Rows of x and segments are on every device."""

from .._core.partition import Partition

WHOLE = frozenset({"r", "s"})


def labels(by_row, by_segment):
    """The rule of an op whose arrays of these names have rows of x, and segments; others are by entry."""

    def of_call(names, types, params):
        return [_of(name, x.ndim, params["axis"], by_row, by_segment) for name, x in zip(names, types, strict=True)]

    return of_call


def _of(name, rank, axis, by_row, by_segment):
    lead = rank - 1 if name in ("senders", "receivers") else axis
    rows = "r" if name in by_row else "s" if name in by_segment else "e"
    return (*(f"batch{i}" for i in range(lead)), rows, *(f"feature{i}" for i in range(rank - lead - 1)))


def aggregation(**combine):
    """Of x by row and y by segment."""
    return Partition(labels(("x",), ("y", "arg")), WHOLE, {"e": combine} if combine else {})
