"""The arguments of aggregations: their checks."""

import jax.numpy as jnp

from .._core import checks
from .._core.wide import wide_dtype
from ..histogram._search import search
from ..segment._arguments import MOST_ROWS, MOST_SEGMENTS


def rows(op, name, x, allowed):
    """An array whose first dimension are rows."""
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, allowed)
    if x.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, the rows; got a scalar")
    return x


def entries(op, name, ids):
    """Integers, one for each entry."""
    ids = checks.array(op, name, ids)
    checks.dtype(op, name, ids, checks.INTEGERS)
    if ids.ndim != 1:
        raise ValueError(f"{op}: {name} must have one dimension, the entries; got shape {tuple(ids.shape)}")
    if ids.shape[0] > MOST_ROWS:
        raise ValueError(f"{op}: {name} may have at most {MOST_ROWS} entries, got {ids.shape[0]}")
    return ids


def same_entries(op, name, ids, other_name, other):
    if ids.shape[0] != other.shape[0]:
        raise ValueError(
            f"{op}: {name} must have one element for each entry: expected {other.shape[0]} as {other_name} has, got "
            f"{ids.shape[0]}"
        )


def receivers_of(op, senders, receivers, indptr, num_segments, is_sorted, implementation):
    """(receivers, number of segments or None, whether they are sorted) from what the caller gave."""
    if (receivers is None) == (indptr is None):
        raise TypeError(
            f"{op}: either receivers or indptr must be given, got {'neither' if indptr is None else 'both'}"
        )
    if indptr is None:
        receivers = entries(op, "receivers", receivers)
        same_entries(op, "receivers", receivers, "senders", senders)
        return receivers, num_segments, checks.flag(op, "indices_are_sorted", is_sorted)
    indptr = checks.array(op, "indptr", indptr)
    checks.dtype(op, "indptr", indptr, checks.INTEGERS)
    if indptr.ndim != 1 or indptr.shape[0] < 1:
        raise ValueError(
            f"{op}: indptr must have one dimension, with one element more than there are segments; got shape "
            f"{tuple(indptr.shape)}"
        )
    segments = indptr.shape[0] - 1
    if num_segments is not None and checks.integer(op, "num_segments", num_segments, 0) != segments:
        raise ValueError(f"{op}: num_segments must be left out or be {segments}, as indptr says, got {num_segments}")
    return segments_of(indptr, senders.shape[0], implementation), segments, True


def segments_of(indptr, count, implementation):
    """The segment of each of so many entries, of a CSR's row pointers: -1 for entries before the first segment, the number
    of segments for those after the last."""
    ends = indptr.astype(jnp.int32) if indptr.dtype.itemsize < 4 else indptr
    positions = jnp.arange(count, dtype=ends.dtype)
    return search(ends, positions, right=True, implementation=implementation).astype(jnp.int32) - 1


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
