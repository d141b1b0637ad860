"""Reductions of segments, one by one."""

import math

import numpy as np

# name: (empty value, reduction of rows in order)
_SEGMENT = {
    "sum": (0, lambda rows: rows.sum(0)),
    "mean": (0, lambda rows: rows.sum(0) / len(rows)),
    "max": (-math.inf, lambda rows: rows.max(0)),
    "min": (math.inf, lambda rows: rows.min(0)),
    "prod": (1, lambda rows: rows.prod(0)),
    "logsumexp": (-math.inf, lambda rows: np.log(np.exp(rows - rows.max(0)).sum(0)) + rows.max(0)),
    "var": (0, lambda rows: rows.var(0)),
    "std": (0, lambda rows: rows.std(0)),
}


def segment(name, data, ids, num_segments, empty_value=None, **_):
    data, ids = np.asarray(data), np.asarray(ids)
    if ids.ndim > 1:
        return np.stack([segment(name, d, i, num_segments, empty_value) for d, i in zip(data, ids, strict=True)])
    dtype = data.dtype
    empty, reduce = _SEGMENT[name]
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


def segment_take(x, ids):
    if ids.ndim > 1:
        return np.stack([segment_take(a, i) for a, i in zip(x, ids, strict=True)])
    inside = (ids >= 0) & (ids < len(x))
    each = x[np.where(inside, ids, 0)]
    each = each if np.iscomplexobj(each) else each.astype(np.float64)
    return np.where(inside.reshape(-1, *(1,) * (x.ndim - 1)), each, 0)


def segment_softmax(data, ids, num_segments, **_):
    data, ids = np.asarray(data).astype(np.float64), np.asarray(ids)
    if ids.ndim > 1:
        return np.stack([segment_softmax(d, i, num_segments) for d, i in zip(data, ids, strict=True)])
    y = np.zeros(data.shape)
    for s in range(num_segments):
        powers = np.exp(data[ids == s])
        y[ids == s] = powers / powers.sum(0)
    return y


def value(name, *args, **kwargs):
    kind = name.removeprefix("segment_").removesuffix("_split")
    if kind == "take":
        return segment_take(*args)
    return segment_softmax(*args, **kwargs) if kind == "softmax" else segment(kind, *args, **kwargs)
