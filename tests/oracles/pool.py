"""Pooling, window by window."""

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


# Maxima and averages. `axes` has of each spatial axis the elements of each window, with those in the padding, and the size.


def _paired(padding, window):
    if padding == "same":
        return [((k - 1) // 2, k - 1 - (k - 1) // 2) for k in window]
    padding = per_axis(padding, len(window))
    return [p if isinstance(p, tuple) else (p, p) for p in padding]


def sliding(size, window, strides=None, padding=0, dilation=1, ceil_mode=False):
    """(elements of each window, the size, the end of the padding) of each axis"""
    rank = len(size)
    window = per_axis(window, rank)
    strides, dilation = (per_axis(v, rank) for v in (window if strides is None else strides, dilation))
    axes = []
    for n, k, s, (before, after), d in zip(size, window, strides, _paired(padding, window), dilation, strict=True):
        room = n + before + after - d * (k - 1) - 1
        count = room // s + 1
        count += ceil_mode and room % s > 0 and count * s < n + before  # one that is cut off, and begins in x or before
        axes.append(([[o * s - before + i * d for i in range(k)] for o in range(count)], n, n + after))
    return axes


def adaptive(size, output_size):
    out = [n if m is None else m for n, m in zip(size, per_axis(output_size, len(size)), strict=True)]
    return [
        ([list(range(o * n // m, -(-(o + 1) * n // m))) for o in range(m)], n, n)
        for n, m in zip(size, out, strict=True)
    ]


def fractional(size, window, out, samples):
    axes = []
    for n, k, m, u in zip(size, window, out, samples, strict=True):
        a = (n - k) / (m - 1) if m > 1 else 0
        begins = [int((o + u) * a) - int(u * a) for o in range(m - 1)] + [n - k]
        axes.append(([list(range(begin, begin + k)) for begin in begins], n, n))
    return axes


def _window(axes, o):
    """The elements of window o that are in x, row by row, and how many it has with those in the padding."""
    found = [windows[i] for (windows, _, _), i in zip(axes, o, strict=True)]
    inside = [[e for e in elements if 0 <= e < n] for elements, (_, n, _) in zip(found, axes, strict=True)]
    padded = math.prod(sum(e < end for e in elements) for elements, (_, _, end) in zip(found, axes, strict=True))
    return list(itertools.product(*inside)), padded


def maxima(plane, axes):
    """The values and the indices of a plane: of the first NaN, else of the first maximum."""
    shape = [len(windows) for windows, _, _ in axes]
    values, index = np.full(shape, -np.inf), np.full(shape, plane.size)
    for o in np.ndindex(*shape):
        elements, _ = _window(axes, o)
        if elements:
            found = np.array([plane[e] for e in elements])
            arg = np.argmax(found)  # the first NaN, if there is one
            values[o], index[o] = found[arg], np.ravel_multi_index(elements[arg], plane.shape)
    return values, index


def averages(plane, axes, count_include_pad=True, divisor_override=None):
    shape = [len(windows) for windows, _, _ in axes]
    values = np.zeros(shape)
    for o in np.ndindex(*shape):
        elements, padded = _window(axes, o)
        count = max(padded if count_include_pad else len(elements), 1)
        values[o] = sum(plane[e] for e in elements) / (divisor_override or count)
    return values


def of_planes(fun, x, data_format, *more):
    """The results of a function of each plane of x, and of what more there is for each, channels as they were."""
    first = lambda a: _channels_first(None, a, data_format)
    last = lambda a: np.moveaxis(a, 1, -1) if data_format and not data_format.startswith("NC") else a
    x = first(x)
    found = [fun(x[b], *(a[b] for a in more)) for b in np.ndindex(*x.shape[:2])]
    stack = lambda arrays: last(np.reshape(arrays, (*x.shape[:2], *np.shape(arrays[0]))))
    if isinstance(found[0], tuple):
        return tuple(stack([one[i] for one in found]) for i in range(len(found[0])))
    return stack(found)


def max_pool(x, data_format=None, return_indices=False, **how):
    x = np.asarray(x).astype(np.float64)
    found = of_planes(lambda plane: maxima(plane, sliding(plane.shape, **how)), x, data_format)
    return found if return_indices else found[0]


def avg_pool(x, data_format=None, count_include_pad=True, divisor_override=None, **how):
    x = np.asarray(x).astype(np.float64)
    count = count_include_pad, divisor_override
    return of_planes(lambda plane: averages(plane, sliding(plane.shape, **how), *count), x, data_format)


def adaptive_avg_pool(x, output_size, data_format=None):
    x = np.asarray(x).astype(np.float64)
    return of_planes(lambda plane: averages(plane, adaptive(plane.shape, output_size)), x, data_format)


def adaptive_max_pool(x, output_size, data_format=None, return_indices=False):
    x = np.asarray(x).astype(np.float64)
    found = of_planes(lambda plane: maxima(plane, adaptive(plane.shape, output_size)), x, data_format)
    return found if return_indices else found[0]


def fractional_max_pool(
    x, samples, window, output_size=None, output_ratio=None, data_format=None, return_indices=False
):
    x, samples = (np.asarray(a).astype(np.float64) for a in (x, samples))

    def plane_of(plane, u):
        rank = plane.ndim
        out = per_axis(output_size, rank) if output_ratio is None else [int(n * output_ratio) for n in plane.shape]
        return maxima(plane, fractional(plane.shape, per_axis(window, rank), out, u))

    found = of_planes(plane_of, x, data_format, samples)
    return found if return_indices else found[0]


def max_unpool(x, index, window, output_size=None, data_format=None):
    """With windows that neither overlap nor have padding."""
    x, index = np.asarray(x).astype(np.float64), _channels_first(None, np.asarray(index), data_format)

    def put(plane, at):
        size = output_size or [n * k for n, k in zip(plane.shape, per_axis(window, plane.ndim), strict=True)]
        y = np.zeros(math.prod(size))
        for value, i in zip(plane.ravel(), at.ravel(), strict=True):
            if 0 <= i < y.size:
                y[i] = value
        return y.reshape(size)

    return of_planes(put, x, data_format, index)


_NAMED = {fun.__name__: fun for fun in (
    max_pool, avg_pool, adaptive_avg_pool, adaptive_max_pool, fractional_max_pool, max_unpool
)}  # fmt: skip


def value(name, *args, **kwargs):
    family, rank = name[: -len("1d")], int(name[-2])
    return lp_pool(rank, *args, **kwargs) if family == "lp_pool" else _NAMED[family](*args, **kwargs)
