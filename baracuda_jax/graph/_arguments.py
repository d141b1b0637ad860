"""The arguments of aggregations: their checks."""

import jax.numpy as jnp

from .._core import checks
from .._core.compiled import full
from .._core.wide import wide_dtype
from ..segment._arguments import MOST_SEGMENTS, ids_and_index
from ..segment._index import SegmentIndex
from ..segment._offsets import of_offsets


def rows(op, name, x, allowed):
    """An array whose first dimension are rows."""
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, allowed)
    if x.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, the rows; got a scalar")
    return x


def entries(op, name, ids, segments=None):
    """(integers, one for each entry; their index or ()), which has so many segments where that is known."""
    value, (ids, index) = ids, ids_and_index(op, ids, name)
    if ids.ndim != 1:
        raise ValueError(f"{op}: {name} must have one dimension, the entries; got shape {tuple(ids.shape)}")
    if index and segments is not None and value.num_segments != segments:
        raise ValueError(f"{op}: {name} must be an index of {segments} segments, got one of {value.num_segments}")
    return ids, index


def edges(op, senders, receivers, num_rows=None, num_segments=None):
    """(senders, receivers, the index of receivers and of senders, or ())."""
    senders, by_sender = entries(op, "senders", senders, num_rows)
    receivers, by_receiver = entries(op, "receivers", receivers, num_segments)
    if receivers.shape[0] != senders.shape[0]:
        raise ValueError(
            f"{op}: receivers must have one element for each entry: expected {senders.shape[0]} as senders has, got "
            f"{receivers.shape[0]}"
        )
    return senders, receivers, _both(by_receiver, by_sender)


def _both(by_receiver, by_sender):
    """Of one that is not known there are no offsets."""
    if not by_receiver and not by_sender:
        return ()
    unknown = (full((0,), 0, jnp.dtype("uint32")),) * 2
    return (*(by_receiver or unknown), *(by_sender or unknown))


def receivers_of(op, senders, receivers, indptr, num_segments, implementation):
    """(receivers, number of segments or None) from what the caller gave."""
    if (receivers is None) == (indptr is None):
        raise TypeError(
            f"{op}: either receivers or indptr must be given, got {'neither' if indptr is None else 'both'}"
        )
    name, index = "receivers", receivers
    if indptr is not None:
        name, index = "indptr", of_offsets(op, "indptr", indptr, senders.shape[0], implementation)
    if not isinstance(index, SegmentIndex):
        return index, num_segments
    segments = index.num_segments
    if num_segments is not None and checks.integer(op, "num_segments", num_segments, 0) != segments:
        raise ValueError(f"{op}: num_segments must be left out or be {segments}, as {name} says, got {num_segments}")
    return index, segments


def number_of_segments(op, num_segments, name="num_segments"):
    num_segments = checks.integer(op, name, num_segments, 0)
    if num_segments > MOST_SEGMENTS:
        raise ValueError(f"{op}: {name} must be at most {MOST_SEGMENTS}, got {num_segments}")
    return num_segments


def weights_of(op, x, weights, count):
    """Weights in what sums are computed in."""
    weights = checks.floats(op, "weights", weights)
    checks.dtype_or_wide(op, "weights", weights, "x", x)
    leading = tuple(x.shape[1 : weights.ndim])
    if weights.ndim < 1 or weights.ndim > x.ndim or weights.shape != (count, *leading):
        raise ValueError(
            f"{op}: weights must have one element for each entry, or for each entry and the first of x's other "
            f"dimensions: expected ({count},) and, of x {tuple(x.shape)}, some of {tuple(x.shape[1:])}; got "
            f"{tuple(weights.shape)}"
        )
    return weights.astype(wide_dtype(x.dtype))
