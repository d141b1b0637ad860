"""LP pooling, window by window."""

import itertools
import math

import numpy as np

from .wide import per_axis


def _windows(shape, window, strides, ceil_mode):
    """Each window's position among the outputs, and the slices of its elements."""
    counts = []
    for n, k, s in zip(shape, window, strides, strict=True):
        count = (math.ceil((n - k) / s) if ceil_mode else (n - k) // s) + 1
        counts.append(count - (ceil_mode and (count - 1) * s >= n))
    positions = itertools.product(*map(range, counts))
    return counts, {
        o: tuple(slice(i * s, min(i * s + k, n)) for i, s, k, n in zip(o, strides, window, shape, strict=True))
        for o in positions
    }


def _channels_first(rank, x, data_format):
    return np.moveaxis(x, -1, 1) if data_format and not data_format.startswith("NC") else x


def lp_pool(rank, x, norm_type, window, strides=None, ceil_mode=False, data_format=None):
    x = _channels_first(rank, np.asarray(x).astype(np.float64), data_format)
    window = per_axis(window, rank)
    counts, positions = _windows(x.shape[2:], window, window if strides is None else per_axis(strides, rank), ceil_mode)
    y = np.empty((*x.shape[:2], *counts))
    for o, elements in positions.items():
        part = np.abs(x[(..., *elements)])
        part = part.reshape(*x.shape[:2], math.prod(part.shape[2:]))
        y[(..., *o)] = part.max(-1) if math.isinf(norm_type) else (part**norm_type).sum(-1) ** (1 / norm_type)
    return np.moveaxis(y, 1, -1) if data_format and not data_format.startswith("NC") else y


def lp_pool_gradient(rank, x, dy, norm_type, window, strides=None, ceil_mode=False, data_format=None):
    """0 where the element or the norm is 0; the first largest element for an infinite p."""
    if data_format and not data_format.startswith("NC"):
        first = lambda a: np.moveaxis(np.asarray(a), -1, 1)
        dx = lp_pool_gradient(rank, first(x), first(dy), norm_type, window, strides, ceil_mode)
        return np.moveaxis(dx, 1, -1)
    x, dy = np.asarray(x).astype(np.float64), np.asarray(dy).astype(np.float64)
    y = lp_pool(rank, x, norm_type, window, strides, ceil_mode)
    window = per_axis(window, rank)
    _, positions = _windows(x.shape[2:], window, window if strides is None else per_axis(strides, rank), ceil_mode)
    dx = np.zeros_like(x)
    for o, elements in positions.items():
        for b in np.ndindex(*x.shape[:2]):
            part, norm, ct = x[(*b, *elements)], y[(*b, *o)], dy[(*b, *o)]
            if norm == 0:
                continue
            if math.isinf(norm_type):
                slope = np.zeros(part.size)
                magnitude = np.abs(part).ravel()
                arg = np.argmax(magnitude)
                slope[arg] = -1 if part.ravel()[arg] < 0 else 1
                slope = slope.reshape(part.shape)
            else:
                safe = np.where(part == 0, 1, np.abs(part))
                slope = np.where(part == 0, 0, np.sign(part) * (safe / norm) ** (norm_type - 1))
            dx[(*b, *elements)] += ct * slope
    return dx


def value(name, *args, **kwargs):
    return lp_pool(int(name[len("lp_pool")]), *args, **kwargs)
