"""Convolutions, window by window."""

import numpy as np


def _many(value, count):
    return tuple(value) if np.ndim(value) else (value,) * count


def _convolution(x, weight, bias, strides=1, padding=0, dilation=1, groups=1, data_format="NCL"):
    x = np.moveaxis(x, -1, 1) if data_format[-1] == "C" else x
    rank = x.ndim - 2
    strides, dilation, window = _many(strides, rank), _many(dilation, rank), weight.shape[2:]
    if padding == "same":
        zeros = [d * (k - 1) for d, k in zip(dilation, window, strict=True)]
        padding = [(n // 2, n - n // 2) for n in zeros]
    pairs = [tuple(p) if np.ndim(p) else (p, p) for p in _many(padding, rank)]
    x = np.pad(x, [(0, 0), (0, 0), *pairs])
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    out = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], spans, strides, strict=True)]
    y = np.zeros((x.shape[0], weight.shape[0], *out))
    of_group, channels = weight.shape[0] // groups, x.shape[1] // groups
    for o in range(weight.shape[0]):
        first = o // of_group * channels
        for i in np.ndindex(*out):
            at = tuple(slice(a * s, a * s + k, d) for a, s, k, d in zip(i, strides, spans, dilation, strict=True))
            part = x[:, first : first + channels][(..., *at)]
            y[(slice(None), o, *i)] = (part * weight[o]).sum(tuple(range(1, rank + 2))) + bias[o]
    return np.moveaxis(y, 1, -1) if data_format[-1] == "C" else y


def _transposed(x, weight, bias, strides=1, padding=0, output_padding=0, groups=1, dilation=1, data_format="NCL"):
    x = np.moveaxis(x, -1, 1) if data_format[-1] == "C" else x
    rank, window = x.ndim - 2, weight.shape[2:]
    strides, padding, more, dilation = (_many(v, rank) for v in (strides, padding, output_padding, dilation))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, window, strict=True)]
    whole = [(n - 1) * s + k + m for n, s, k, m in zip(x.shape[2:], strides, spans, more, strict=True)]
    y = np.zeros((len(x), weight.shape[1] * groups, *whole))
    for c in range(x.shape[1]):
        first = c // (x.shape[1] // groups) * weight.shape[1]
        for i in np.ndindex(*x.shape[2:]):
            at = tuple(slice(a * s, a * s + k, d) for a, s, k, d in zip(i, strides, spans, dilation, strict=True))
            value = x[(slice(None), c, *i)].reshape(-1, 1, *(1,) * rank)
            y[(slice(None), slice(first, first + weight.shape[1]), *at)] += value * weight[c]
    y = y[(..., *(slice(p, n - p) for p, n in zip(padding, whole, strict=True)))]
    y = y + bias.reshape(-1, *(1,) * rank)
    return np.moveaxis(y, 1, -1) if data_format[-1] == "C" else y


def _depthwise(x, weight, bias, data_format="NCL", **how):
    channels = x.shape[-1] if data_format[-1] == "C" else x.shape[1]
    return _convolution(x, weight, bias, groups=channels, data_format=data_format, **how)


def deform_conv2d(x, offset, weight, bias=None, mask=None, strides=1, padding=0, dilation=1):
    strides, padding, dilation = (_many(v, 2) for v in (strides, padding, dilation))
    (n, channels, *size), window = x.shape, weight.shape[2:]
    kernel, of_weight = window[0] * window[1], weight.shape[1]
    sets, y = offset.shape[1] // (2 * kernel), np.zeros((n, len(weight), *offset.shape[2:]))

    def read(image, at):
        low, total = np.floor(at).astype(int), 0.0
        for move in np.ndindex(2, 2):
            t = low + move
            if (t >= 0).all() and (t < size).all():
                total += np.prod(1 - abs(at - t)) * image[tuple(t)]
        return total

    for b, o, *i in np.ndindex(*y.shape):
        first = o // (len(weight) // (channels // of_weight)) * of_weight
        for c, *k in np.ndindex(*weight.shape[1:]):
            of_set = (first + c) // (channels // sets)
            element = of_set * kernel + k[0] * window[1] + k[1]
            at = np.array(i) * strides + np.array(k) * dilation - padding
            value = read(x[b, first + c], at + offset[(b, slice(2 * element, 2 * element + 2), *i)])
            y[(b, o, *i)] += weight[(o, c, *k)] * value * (1 if mask is None else mask[(b, element, *i)])
    return y + (0 if bias is None else bias.reshape(-1, 1, 1))


conv1d = conv2d = conv3d = conv_2d_direct = _convolution
depthwise_conv1d = depthwise_conv2d = depthwise_conv3d = _depthwise
conv_transpose1d = conv_transpose2d = conv_transpose3d = _transposed
