"""The arguments of embeddings: their checks, and the ids as rows of the table."""

import math

import jax.numpy as jnp

from .._core import checks, explicit
from .._core.compiled import compiled
from ..indexing._arguments import positions
from ..segment._arguments import ids_and_index, segments_of
from ..segment._index import SegmentIndex


def ids_of(op, x):
    x = checks.array(op, "x", x)
    checks.dtype(op, "x", x, checks.INTEGERS)
    checks.positions(op, "x", x.size)
    return x.astype(x.dtype)  # no weaker than of other ops


def indexed_ids_of(op, x, size, source):
    """(ids, (perm, offsets)) of a SegmentIndex of ids [N], of `size` segments as `source` says; (ids, ()) of ids."""
    if not isinstance(x, SegmentIndex):
        return ids_of(op, x), ()
    ids, index = ids_and_index(op, x, "x")
    if ids.ndim != 1:
        raise ValueError(f"{op}: x must be a SegmentIndex of ids [N], without batches, got ids {tuple(ids.shape)}")
    segments_of(op, ids, index, size, source)
    return ids, index


def table_of(op, weight):
    weight = checks.floats(op, "weight", weight)
    if not weight.ndim:
        raise ValueError(f"{op}: weight must have at least one dimension, the rows; got a scalar")
    checks.positions(op, "weight", weight.shape[0], "rows")
    return weight.astype(weight.dtype)


def padding_of(op, padding_idx, size):
    """The id in [0, size), or None."""
    if padding_idx is None:
        return None
    padding_idx = checks.integer(op, "padding_idx", padding_idx, -size)
    if padding_idx >= size:
        raise ValueError(f"{op}: padding_idx must be in [{-size}, {size - 1}] for {size} rows, got {padding_idx}")
    return padding_idx % size


def bound_of(op, max_norm, norm_type):
    """(bound, p) of the rows' norms, or None."""
    if not checks.is_number(norm_type) or not norm_type > 0:
        raise ValueError(f"{op}: norm_type must be a static number above 0, got {norm_type!r}")
    if max_norm is None:
        return None
    if not checks.is_number(max_norm) or not 0 <= max_norm < math.inf:
        raise ValueError(f"{op}: max_norm must be None or a static number of at least 0, got {max_norm!r}")
    return float(max_norm), float(norm_type)


def gradients_of(op, x, dy, trailing=None):
    """dy as one row for each id."""
    dy = checks.floats(op, "dy", dy)
    if trailing is None:
        trailing = dy.shape[x.ndim :]
    checks.shape(op, "dy", dy, (*x.shape, *trailing), "that of x and of a row")
    return explicit.reshape(dy.astype(dy.dtype), x.size, *trailing)


def flat(x):
    return x if x.ndim == 1 else explicit.reshape(x, x.size)


@compiled("size", "padding")
def kept(ids, *, size, padding):
    """int32, `size` for ids out of range and for that of padding."""
    at = positions(ids, size, wraps=False)
    return at if padding is None else jnp.where(at == padding, size, at)
