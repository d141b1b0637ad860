"""Normalization of slices and of groups of channels, by kernels that read a row once, and of channels of a batch, which XLA
computes."""

from ._add_rms_norm import add_rms_norm, add_rms_norm_backward
from ._batch_norm import batch_norm
from ._group_norm import group_norm, group_norm_backward, instance_norm, instance_norm_backward
from ._layer_norm import layer_norm, layer_norm_backward, norm_strided
from ._rms_norm import rms_norm, rms_norm_backward

__all__ = [
    "add_rms_norm",
    "add_rms_norm_backward",
    "batch_norm",
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
