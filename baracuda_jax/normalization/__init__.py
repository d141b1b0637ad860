"""Normalization of slices: XLA computes it at the bandwidth bound, so that these ops have no kernels."""

from ._batch_norm import batch_norm
from ._group_norm import group_norm, instance_norm
from ._layer_norm import layer_norm, norm_strided
from ._rms_norm import add_rms_norm, rms_norm

__all__ = ["add_rms_norm", "batch_norm", "group_norm", "instance_norm", "layer_norm", "norm_strided", "rms_norm"]
