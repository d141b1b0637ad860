"""Scans, element by element."""

import math

import numpy as np

from .wide import wide

# name: (reduction of what comes before, what it is of nothing)
_SCAN = {
    "cumsum": (lambda x: x.sum(0, dtype=x.dtype), 0),
    "cumprod": (lambda x: x.prod(0, dtype=x.dtype), 1),
    "cummax": (lambda x: x.max(0), -math.inf),
    "cummin": (lambda x: x.min(0), math.inf),
    "logcumsumexp": (lambda x: np.logaddexp.reduce(x, 0), -math.inf),
}


def cumulative(name, x, axis=0, reverse=False, exclusive=False):
    """Element by element: what comes before it, and the element, as one array that is reduced."""
    x = np.asarray(x)
    is_integer = np.issubdtype(x.dtype, np.integer)
    x = np.moveaxis(x if is_integer else x.astype(np.float64), axis, 0)
    reduce, nothing = _SCAN[name]
    if is_integer and math.isinf(nothing):
        nothing = np.iinfo(x.dtype).max if nothing > 0 else np.iinfo(x.dtype).min
    x = x[::-1] if reverse else x
    y = np.full(x.shape, nothing, x.dtype)
    with np.errstate(all="ignore"):
        for i in range(len(x)):
            if i + (not exclusive):
                y[i] = reduce(x[: i + (not exclusive)])
    return np.moveaxis(y[::-1] if reverse else y, 0, axis)


def linear_scan(a, b, axis=0, reverse=False):
    a, b = (np.moveaxis(np.asarray(x), axis, 0) for x in (a, b))
    a, b = (wide(x[::-1] if reverse else x) for x in (a, b))
    h = np.zeros_like(a)
    for i in range(len(a)):
        h[i] = a[i] * h[i - 1] + b[i] if i else b[i]
    return np.moveaxis(h[::-1] if reverse else h, 0, axis)


def value(name, *args, **kwargs):
    return linear_scan(*args, **kwargs) if name == "linear_scan" else cumulative(name, *args, **kwargs)
