"""Sorts, and what they select."""

import numpy as np


def _order(rows, descending=False):
    """A stable order of the last axis, by comparing each pair: NaN is the largest."""
    x = np.asarray(rows)
    x = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    a, b = x[..., :, None], x[..., None, :]
    less = (a < b) | ((a == a) & (b != b))
    before = np.swapaxes(less, -1, -2) if not descending else less  # [i, j]: j goes before i
    ties = ~less & ~np.swapaxes(less, -1, -2)
    n = x.shape[-1]
    before = before | (ties & (np.arange(n)[None, :] < np.arange(n)[:, None]))
    order = np.empty(x.shape, np.int64)
    np.put_along_axis(order, before.sum(-1), np.broadcast_to(np.arange(n), x.shape), -1)
    return x, order


def sorting(name, x, values=None, k=None, axis=-1, descending=False, largest=True, keepdims=False):
    descending = largest if name == "topk" else descending
    rows, order = _order(np.moveaxis(np.asarray(x), axis, -1), descending)
    if name == "argsort":
        return np.moveaxis(order, -1, axis)
    if name == "sort_key_val":
        rows = np.moveaxis(np.asarray(values), axis, -1)
        rows = rows.astype(np.float64) if rows.dtype.kind not in "iub" else rows
    y = np.take_along_axis(rows, order, -1)
    if name == "kthvalue":
        y = y[..., k - 1 : k]
        return np.moveaxis(y, -1, axis) if keepdims else y[..., 0]
    return np.moveaxis(y[..., :k], -1, axis)


def argextremum(name, x, axis=None, keepdims=False):
    x = np.asarray(x)
    x = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    return getattr(np, name)(x, axis, keepdims=keepdims)


def quantile(name, a, q=0.5, axis=None, method="linear", keepdims=False):
    method = "midpoint" if name.endswith("median") else method
    fun = np.nanquantile if name.startswith("nan") else np.quantile
    return fun(
        np.asarray(a).astype(np.float64), np.asarray(q).astype(np.float64), axis, method=method, keepdims=keepdims
    )


def value(name, *args, **kwargs):
    if name in ("argmax", "argmin"):
        return argextremum(name, *args, **kwargs)
    if name in ("median", "quantile", "nanmedian", "nanquantile"):
        return quantile(name, *args, **kwargs)
    return sorting(name, *args, **kwargs)
