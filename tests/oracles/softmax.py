"""Softmax, slice by slice."""

import jax
import numpy as np


def _slices(x, axis):
    """The index of each slice."""
    axes = tuple(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
    for i in np.ndindex(*(1 if a in axes else n for a, n in enumerate(x.shape))):
        yield tuple(slice(None) if a in axes else k for a, k in enumerate(i))


def log_softmax(x, axis=-1):
    y = x.copy()
    for at in _slices(x, axis):
        y[at] = x[at] - np.logaddexp.reduce(x[at], axis=None)
    return y


def softmax(x, axis=-1):
    return np.exp(log_softmax(x, axis))


def sparsemax(x, axis=-1):
    """By a sort: the first k elements are the support, for the largest k of which the last is above the threshold of all k."""
    y = x.copy()
    for at in _slices(x, axis):
        z, rank = np.sort(x[at])[::-1], np.arange(1, x[at].size + 1)
        k = (1 + rank * z > np.cumsum(z)).sum()
        y[at] = np.maximum(x[at] - (z[:k].sum() - 1) / k, 0)
    return y


def entmax15(x, axis=-1):
    """By bisection of the threshold."""
    y = x.copy()
    for at in _slices(x, axis):
        z = (x[at] - x[at].max()) / 2
        low, high = -1.0, 0.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if (np.maximum(z - middle, 0) ** 2).sum() >= 1 else (low, middle)
        y[at] = np.maximum(z - low, 0) ** 2
    return y


def gumbel_softmax(x, key, axis=-1, tau=1.0):
    u = jax.random.uniform(jax.random.wrap_key_data(key), x.shape, np.float32, np.finfo(np.float32).tiny, 1)
    return softmax((x - np.log(-np.log(np.asarray(u, np.float64)))) / tau, axis)
