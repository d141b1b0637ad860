"""Ops that move elements."""

import math

import numpy as np

from .wide import per_axis, wide


def pad(x, pad_width, mode="constant", constant_values=0):
    """The elements that NumPy puts on; those that are taken away, by slices: before, where the rest goes round."""
    pairs = np.broadcast_to(pad_width, (x.ndim, 2))
    if mode in ("circular", "wrap"):
        x = x[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape, pairs, strict=True))]
        pairs = np.maximum(pairs, 0)
    names = {"replicate": "edge", "circular": "wrap"}
    more = dict(constant_values=constant_values) if mode == "constant" else {}
    y = np.pad(x, np.maximum(pairs, 0), names.get(mode, mode), **more)
    return y[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(y.shape, pairs, strict=True))]


def _broadcast_in_dim(x, shape, broadcast_dimensions):
    kept = dict(zip(broadcast_dimensions, x.shape, strict=True))
    return np.broadcast_to(x.reshape([kept.get(i, 1) for i in range(len(shape))]), shape)


def windows_of(x, window, strides=1, padding=0, dilation=1):
    """The elements of a padded array's windows, by their numbers: [C K, L]."""
    count = len(window) if np.ndim(window) else 2
    size, d, p, s = (per_axis(value, count) for value in (window, dilation, padding, strides))
    spatial = x.shape[x.ndim - count :]
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(spatial, size, d, p, s, strict=True)]
    columns = []
    for element in np.ndindex(*size):
        positions = [np.arange(m) * s + k * d - p for m, k, d, p, s in zip(counts, element, d, p, s, strict=True)]
        positions = np.meshgrid(*positions, indexing="ij")
        inside = np.logical_and.reduce(
            [(position >= 0) & (position < n) for position, n in zip(positions, spatial, strict=True)]
        )
        at = [np.clip(position, 0, n - 1) for position, n in zip(positions, spatial, strict=True)]
        columns.append(np.where(inside, x[(..., *at)], np.zeros((), x.dtype)))
    lead = x.shape[: x.ndim - count]
    y = np.stack(columns, x.ndim - count)
    return y.reshape(*lead[:-1], lead[-1] * len(columns), math.prod(counts))


def fold(x, output_size, **window):
    elements = math.prod(per_axis(window["window"], 2) if np.ndim(window["window"]) == 0 else window["window"])
    *batch, rows, count = x.shape
    positions = windows_of(1 + np.arange(math.prod(output_size)).reshape(1, *output_size), **window)
    columns = wide(x).reshape(*batch, rows // elements, elements * count)
    y = np.zeros((*batch, rows // elements, math.prod(output_size) + 1), columns.dtype)
    np.add.at(y, (..., positions.reshape(-1)), columns)
    return y[..., 1:].reshape(*batch, rows // elements, *output_size)


def _pixel_shuffle(x, upscale_factor):
    *batch, channels, rows, columns = x.shape
    r = upscale_factor
    y = np.empty((*batch, channels // r**2, rows * r, columns * r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., i::r, j::r] = x[..., r * i + j :: r * r, :, :]
    return y


def _pixel_unshuffle(x, downscale_factor):
    *batch, channels, rows, columns = x.shape
    r = downscale_factor
    y = np.empty((*batch, channels * r**2, rows // r, columns // r), x.dtype)
    for i, j in np.ndindex(r, r):
        y[..., r * i + j :: r * r, :, :] = x[..., i::r, j::r]
    return y


def _channel_shuffle(x, groups, axis=-3):
    channels = x.shape[axis]
    return np.take(x, np.arange(channels).reshape(groups, -1).T.ravel(), axis)


def _dynamic_update_slice(x, update, start):
    y = x.copy()
    start = [s + n if s < 0 else s for s, n in zip(start, x.shape, strict=True)]
    begin = [max(0, min(s, n - m)) for s, n, m in zip(start, x.shape, update.shape, strict=True)]
    y[tuple(slice(b, b + m) for b, m in zip(begin, update.shape, strict=True))] = update
    return y


def _repeat_interleave(x, repeats, axis=None, total_repeat_length=None):
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    rows = np.repeat(np.arange(x.shape[axis]), repeats)[:total_repeat_length]
    return np.take(x, np.pad(rows, (0, total_repeat_length - rows.size), mode="edge"), axis)


_MOVED = {
    "repeat": lambda x, repeats: np.tile(x, repeats),
    "flip": np.flip,
    "roll": np.roll,
    "permute": np.transpose,
    "pad": pad,
    "pad_folded": pad,
    "triu": np.triu,
    "tril": np.tril,
    "concat": np.concatenate,
    "broadcast_in_dim": _broadcast_in_dim,
    "fill": lambda value, shape: np.full(shape, value),
    "dynamic_update_slice": _dynamic_update_slice,
    "repeat_interleave": _repeat_interleave,
    "unfold": windows_of,
    "fold": fold,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "channel_shuffle": _channel_shuffle,
}


def value(name, *args, **kwargs):
    return _MOVED[name](*args, **kwargs)
