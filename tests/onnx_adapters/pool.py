"""ONNX's pooling. Its indices count through the whole array, those here through a plane."""

import math

import numpy as np

import baracuda_jax as bj

from . import NotApplicable


def _pool(name, x):
    if x.dtype.kind not in "fV":
        raise NotApplicable("floats alone")
    return getattr(bj, name.format(x.ndim - 2))


def _windows(x, kernel_shape, strides, pads, dilations, auto_pad):
    """Window, strides and padding; of the modes that keep sizes the odd element is after, or before."""
    rank = x.ndim - 2
    strides, dilations = ((v,) * rank if v is None or isinstance(v, int) else tuple(v) for v in (strides, dilations))
    strides, dilations = (tuple(1 if n is None else n for n in v) for v in (strides, dilations))
    if auto_pad in (b"SAME_UPPER", b"SAME_LOWER"):
        sizes = zip(x.shape[2:], strides, kernel_shape, dilations, strict=True)
        more = [max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0) for n, s, k, d in sizes]
        before = [n // 2 if auto_pad == b"SAME_UPPER" else n - n // 2 for n in more]
        pads = [*before, *(n - b for n, b in zip(more, before, strict=True))]
    padding = tuple(zip(pads[:rank], pads[rank:], strict=True)) if pads else 0
    return (tuple(kernel_shape), strides, padding), dilations


def _first_of_planes(shape, size):
    return np.arange(math.prod(shape[:2])).reshape(*shape[:2], *(1,) * (len(shape) - 2)) * math.prod(size)


def MaxPool(
    x, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad=b"NOTSET", ceil_mode=0, storage_order=0
):
    windows, dilation = _windows(x, kernel_shape, strides, pads, dilations, auto_pad)
    how = dict(dilation=dilation, ceil_mode=bool(ceil_mode), return_indices=True)
    y, index = _pool("max_pool{}d", x)(x, *windows, **how)
    size = x.shape[2:]
    if storage_order:  # columns first
        index = np.ravel_multi_index(np.unravel_index(np.asarray(index), size)[::-1], size[::-1])
    return y, np.asarray(index) + _first_of_planes(x.shape, size)


def AveragePool(
    x, *, kernel_shape, strides=None, pads=None, dilations=None, auto_pad=b"NOTSET", ceil_mode=0, count_include_pad=0
):
    windows, dilation = _windows(x, kernel_shape, strides, pads, dilations, auto_pad)
    how = dict(dilation=dilation, ceil_mode=bool(ceil_mode), count_include_pad=bool(count_include_pad))
    return _pool("avg_pool{}d", x)(x, *windows, **how)


def LpPool(x, *, kernel_shape, p=2, strides=None, pads=None, dilations=None, auto_pad=b"NOTSET", ceil_mode=0):
    (window, strides, padding), dilation = _windows(x, kernel_shape, strides, pads, dilations, auto_pad)
    if set(dilation) != {1}:
        raise NotApplicable("norms of neighbors alone")
    sides = ((0, 0), (0, 0), *(padding or ((0, 0),) * len(window)))  # zeros, which add nothing
    return _pool("lp_pool{}d", x)(np.pad(x, sides), p, window, strides, ceil_mode=bool(ceil_mode))


def GlobalMaxPool(x):
    return _pool("adaptive_max_pool{}d", x)(x, 1)


def GlobalAveragePool(x):
    return _pool("adaptive_avg_pool{}d", x)(x, 1)


def MaxUnpool(x, index, output_shape=None, *, kernel_shape, strides=None, pads=None):
    """With output_shape the indices still are those of the array without it, which is put at its beginning."""
    (window, strides, _), _ = _windows(x, kernel_shape, strides, None, None, b"NOTSET")
    rank = x.ndim - 2
    pads = pads or (0,) * (2 * rank)
    if pads[:rank] != pads[rank:]:
        raise NotApplicable("as much padding before as after")
    size = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], strides, pads[:rank], window, strict=True)]
    in_plane = index - _first_of_planes(x.shape, size)
    y = _pool("max_unpool{}d", x)(x, in_plane, window, strides, tuple(pads[:rank]))
    if output_shape is None:
        return y
    return np.pad(y, [(0, n - m) for n, m in zip(output_shape, y.shape, strict=True)])
