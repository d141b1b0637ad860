"""Searches and counts."""

import numpy as np


def _search(sequence, values, side="left"):
    """By counting."""
    elements = sequence[..., None, :] if sequence.ndim > 1 else sequence
    x = values[..., None]
    return (elements < x if side == "left" else elements <= x).sum(-1)


def _histogram(a, bins, range=None):
    edges = np.linspace(*range, bins + 1) if range else np.asarray(bins, np.float64)
    a = np.asarray(a, np.float64)
    last = len(edges) - 2
    inside = [(a >= edges[b]) & ((a < edges[b + 1]) | ((b == last) & (a == edges[-1]))) for b in np.arange(last + 1)]
    return np.asarray([elements.sum() for elements in inside], np.float64)


def _bincount(x, length):
    return (x[:, None] == np.arange(length)).sum(0)


def value(name, *args, **kwargs):
    return {"searchsorted": _search, "bincount": _bincount, "histogram": _histogram}[name](*args, **kwargs)
