"""Normalization, slice by slice, group by group and channel by channel."""

import numpy as np


def _slices(shape, axis):
    """The index of each slice."""
    axes = tuple(a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,)))
    for i in np.ndindex(*(1 if a in axes else n for a, n in enumerate(shape))):
        yield tuple(slice(None) if a in axes else k for a, k in enumerate(i))


def layer_norm(x, weight, bias, axis=-1, eps=1e-5):
    y = x.copy()
    for at in _slices(x.shape, axis):
        y[at] = (x[at] - x[at].mean()) / np.sqrt(x[at].var() + eps) * weight + bias
    return y


def rms_norm(x, weight, axis=-1, eps=1e-6, offset=0.0):
    y = x.copy()
    for at in _slices(x.shape, axis):
        y[at] = x[at] / np.sqrt(np.mean(x[at] ** 2) + eps) * (offset + weight)
    return y


def add_rms_norm(x, residual, weight, axis=-1, eps=1e-6, offset=0.0, round_before_weight=False):
    total = x + residual
    return rms_norm(total, weight, axis, eps, offset), total


def group_norm(x, weight, bias, num_groups, axis=1, eps=1e-5):
    channels = np.moveaxis(x, axis, 0).copy()
    size, batches = len(channels) // num_groups, [...] if axis == 0 else range(channels.shape[1])
    for first in range(0, len(channels), size):
        for n in batches:
            group = channels[first : first + size, n]
            channels[first : first + size, n] = (group - group.mean()) / np.sqrt(group.var() + eps)
    for c, channel in enumerate(channels):
        channel[:] = channel * weight[c] + bias[c]
    return np.moveaxis(channels, 0, axis)


def instance_norm(x, weight, bias, axis=1, eps=1e-5):
    return group_norm(x, weight, bias, x.shape[axis], axis, eps)


def batch_norm(x, mean, var, weight, bias, training=False, momentum=0.1, axis=1, eps=1e-5):
    y, mean, var = np.moveaxis(x, axis, 0).copy(), mean.copy(), var.copy()
    for c, channel in enumerate(y):
        if training:
            center, square = channel.mean(), channel.var()
            mean[c] += momentum * (center - mean[c])
            var[c] += momentum * (channel.var(ddof=1) - var[c])
        else:
            center, square = mean[c], var[c]
        channel[:] = (channel - center) / np.sqrt(square + eps) * weight[c] + bias[c]
    return np.moveaxis(y, 0, axis), mean, var
