"""The arguments of the ops: their checks."""

from .._core import checks
from ._family import MOST_SLOTS


def rows(op, name, x, what):
    """Floats whose first dimension are rows."""
    x = checks.floats(op, name, x)
    if x.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, the {what}; got a scalar")
    return x


def slots(op, name, ids):
    """Integers [T, k]."""
    ids = checks.array(op, name, ids)
    checks.dtype(op, name, ids, checks.INTEGERS)
    if ids.ndim != 2:
        raise ValueError(f"{op}: {name} must have two dimensions, tokens and slots; got shape {tuple(ids.shape)}")
    if ids.shape[0] * ids.shape[1] > MOST_SLOTS:
        raise ValueError(f"{op}: {name} may have at most {MOST_SLOTS} elements, got {ids.shape[0] * ids.shape[1]}")
    return ids


def weights_of(op, weights, row_map, x):
    """Weights [T, k], of x's dtype or of what that is computed in."""
    weights = checks.floats(op, "weights", weights)
    checks.dtype_or_wide(op, "weights", weights, "x", x)
    checks.shape(op, "weights", weights, row_map.shape, "that of row_map")
    return weights
