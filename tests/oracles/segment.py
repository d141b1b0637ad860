"""Segments, written out in NumPy."""

import functools
import math

import numpy as np

# name: (empty value, reduction of rows in order)
REDUCTIONS = {
    "sum": (0, lambda rows: rows.sum(0)),
    "mean": (0, lambda rows: rows.sum(0) / len(rows)),
    "max": (-math.inf, lambda rows: rows.max(0)),
    "min": (math.inf, lambda rows: rows.min(0)),
    "prod": (1, lambda rows: rows.prod(0)),
    "logsumexp": (-math.inf, lambda rows: np.log(np.exp(rows - rows.max(0)).sum(0)) + rows.max(0)),
    "var": (0, lambda rows: rows.var(0)),
    "std": (0, lambda rows: rows.std(0)),
}


def ids_of(ids, num_segments=None):
    """Those of an index, and their number."""
    if not hasattr(ids, "offsets"):
        return np.asarray(ids), num_segments
    return np.asarray(ids.segment_ids), np.shape(ids.offsets)[-1] - 1


def reduced(name, data, ids, num_segments=None, empty_value=None, ddof=0, **_):
    data, (ids, num_segments) = np.asarray(data), ids_of(ids, num_segments)
    if ids.ndim > 1:
        return np.stack([reduced(name, d, i, num_segments, empty_value, ddof) for d, i in zip(data, ids, strict=True)])
    dtype = data.dtype
    empty, reduce = REDUCTIONS[name]
    if ddof:
        reduce = lambda rows: getattr(rows, name)(0, ddof=ddof) if len(rows) > ddof else np.nan * rows[0]
    is_integer = np.issubdtype(dtype, np.integer)
    if is_integer and math.isinf(empty):
        empty = np.iinfo(dtype).max if empty > 0 else np.iinfo(dtype).min
    empty = empty if empty_value is None else empty_value
    wide = data if is_integer else data.astype(np.float64)
    y = np.full((num_segments, *data.shape[1:]), empty, wide.dtype)
    for s in range(num_segments):
        if (ids == s).any():
            with np.errstate(over="ignore"):
                y[s] = reduce(wide[ids == s]).astype(wide.dtype)
    return y


for _name in REDUCTIONS:
    globals()[f"segment_{_name}"] = functools.partial(reduced, _name)
segment_max_split, segment_min_split = (functools.partial(reduced, name) for name in ("max", "min"))


def segment_take(x, ids, **_):
    x, (ids, _) = np.asarray(x), ids_of(ids)
    if ids.ndim > 1:
        return np.stack([segment_take(a, i) for a, i in zip(x, ids, strict=True)])
    inside = (ids >= 0) & (ids < len(x))
    each = x[np.where(inside, ids, 0)]
    each = each if np.iscomplexobj(each) else each.astype(np.float64)
    return np.where(inside.reshape(-1, *(1,) * (x.ndim - 1)), each, 0)


def segment_softmax(data, ids, num_segments=None, **_):
    data, (ids, num_segments) = np.asarray(data).astype(np.float64), ids_of(ids, num_segments)
    if ids.ndim > 1:
        return np.stack([segment_softmax(d, i, num_segments) for d, i in zip(data, ids, strict=True)])
    y = np.zeros(data.shape)
    for s in range(num_segments):
        powers = np.exp(data[ids == s])
        y[ids == s] = powers / powers.sum(0)
    return y


def segment_index(ids, num_segments, indices_are_sorted=False):
    """The ids, the order of rows, and where segments begin; an index' segments come before what is dropped."""
    if ids.ndim > 1:
        parts = [segment_index(i, num_segments, indices_are_sorted) for i in ids]
        return [np.stack(part) for part in zip(*parts, strict=True)]
    segments = np.where((ids >= 0) & (ids < num_segments), ids.astype(np.int64), num_segments)
    if indices_are_sorted:
        offsets = np.searchsorted(ids.astype(np.int64), np.arange(num_segments + 1))
        return [ids, np.zeros(0, np.uint32), offsets]
    offsets = np.searchsorted(np.sort(segments), np.arange(num_segments + 1))
    return [ids, np.argsort(segments, kind="stable"), offsets]
