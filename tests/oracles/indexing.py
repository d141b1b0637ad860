"""Elements by index, one after the other."""

import numpy as np


def _filled(dtype, fill_value):
    if fill_value is not None:
        return fill_value
    if dtype.kind in "fc":
        return np.nan
    return True if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind == "u" else np.iinfo(dtype).min


def _position(i, n, mode="fill"):
    """In [0, n), or None."""
    i = int(i) + n if i < 0 else int(i)
    return min(max(i, 0), n - 1) if mode == "clip" else i if 0 <= i < n else None


def _put(at, axis, i):
    return (*at[:axis], i, *at[axis + 1 :])


def gather(x, index, axis=-1, mode="fill", fill_value=None):
    axis, y = axis % x.ndim, np.full(index.shape, _filled(x.dtype, fill_value), x.dtype)
    for at in np.ndindex(*index.shape):
        i = _position(index[at], x.shape[axis], mode)
        if i is not None:
            y[at] = x[_put(at, axis, i)]
    return y


def index_select(x, index, axis=0, mode="fill", fill_value=None):
    axis = axis % x.ndim
    shape = [1] * x.ndim
    shape[axis] = len(index)
    sizes = _put(x.shape, axis, len(index))
    return gather(x, np.broadcast_to(index.reshape(shape), sizes), axis, mode, fill_value)


def gather_rows(x, index):
    y = np.zeros((*index.shape, *x.shape[1:]), x.dtype)
    for at in np.ndindex(*index.shape):
        if 0 <= index[at] < len(x):
            y[at] = x[index[at]]
    return y


def scatter(x, index, src, axis=-1):
    axis, y = axis % x.ndim, x.copy()
    for at in np.ndindex(*index.shape):  # in order, so that the last one stays
        i = _position(index[at], x.shape[axis])
        if i is not None:
            y[_put(at, axis, i)] = src[at]
    return y


def _combined(x, index, src, axis, combine):
    axis, y = axis % x.ndim, x.copy()
    with np.errstate(over="ignore"):
        for at in np.ndindex(*index.shape):
            i = _position(index[at], x.shape[axis])
            if i is not None:
                to = _put(at, axis, i)
                y[to] = combine(y[to], src[at])
    return y


def scatter_add(x, index, src, axis=-1):
    return _combined(x, index, src, axis, np.add)


def scatter_mul(x, index, src, axis=-1):
    return _combined(x, index, src, axis, np.multiply)


def scatter_max(x, index, src, axis=-1):
    return _combined(x, index, src, axis, np.maximum)


def scatter_min(x, index, src, axis=-1):
    return _combined(x, index, src, axis, np.minimum)


def index_add(x, index, src, axis=0, alpha=1):
    shape = [1] * x.ndim
    shape[axis] = len(index)
    with np.errstate(over="ignore"):
        return scatter_add(x, np.broadcast_to(index.reshape(shape), src.shape), src * np.asarray(alpha, x.dtype), axis)


def masked_fill(x, mask, value):
    x, mask = (a.copy() for a in np.broadcast_arrays(x, mask))
    x[mask] = value
    return x


def one_hot(x, num_classes, axis=-1, dtype=None):
    y = np.zeros((*x.shape, num_classes), dtype or np.float64)
    for at in np.ndindex(*x.shape):
        if 0 <= x[at] < num_classes:
            y[(*at, int(x[at]))] = 1
    return np.moveaxis(y, -1, axis)
