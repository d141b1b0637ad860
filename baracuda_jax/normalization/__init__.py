"""Normalization of slices, of groups of channels, and of channels of a batch, by kernels that read a row once."""

from ._add_rms_norm import add_rms_norm, add_rms_norm_backward
from ._batch_norm import batch_norm, batch_norm_backward
from ._group_norm import group_norm, group_norm_backward, instance_norm, instance_norm_backward
from ._layer_norm import layer_norm, layer_norm_backward, norm_strided
from ._rms_norm import rms_norm, rms_norm_backward

__all__ = [
    "add_rms_norm",
    "add_rms_norm_backward",
    "batch_norm",
    "batch_norm_backward",
    "group_norm",
    "group_norm_backward",
    "instance_norm",
    "instance_norm_backward",
    "layer_norm",
    "layer_norm_backward",
    "norm_strided",
    "rms_norm",
    "rms_norm_backward",
]
