"""Distinct values, runs of them, and positions of what is not zero; the first result of each."""

import numpy as np


def _padded(values, size, fill):
    return np.concatenate([values[:size], np.full(max(size - len(values), 0), fill, values.dtype)])


def _first_coordinate(a, size, fill_value=0):
    fill = fill_value[0] if isinstance(fill_value, tuple) else fill_value
    return _padded(np.nonzero(a)[0], size, fill)


def _distinct(x, size, fill_value=None, **_):
    values = np.unique(x.astype(np.float64)).astype(x.dtype)
    return _padded(values, size, values[0] if fill_value is None else fill_value)


def _heads(x, size, **_):
    x = x.ravel()
    return _padded(x[np.concatenate([[True], x[1:] != x[:-1]])], size, x[0])


def value(name, *args, **kwargs):
    ops = {"nonzero": _first_coordinate, "unique": _distinct, "unique_consecutive": _heads}
    return ops[name](*args, **kwargs)
