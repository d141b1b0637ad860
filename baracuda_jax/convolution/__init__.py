"""Convolutions: a library computes them, so that these ops have no kernels; those of each channel by itself, windows as
columns, and deformed ones have."""

from ._columns import col2im_1d, fold_2d, im2col_1d, im2col_2d
from ._conv import conv1d, conv2d, conv3d, conv_2d_direct
from ._deformable import deform_conv2d
from ._depthwise import (
    depthwise_conv1d,
    depthwise_conv1d_backward,
    depthwise_conv2d,
    depthwise_conv2d_backward,
    depthwise_conv3d,
    depthwise_conv3d_backward,
)
from ._transposed import conv_transpose1d, conv_transpose2d, conv_transpose3d

__all__ = [
    "col2im_1d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_2d_direct",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "deform_conv2d",
    "depthwise_conv1d",
    "depthwise_conv1d_backward",
    "depthwise_conv2d",
    "depthwise_conv2d_backward",
    "depthwise_conv3d",
    "depthwise_conv3d_backward",
    "fold_2d",
    "im2col_1d",
    "im2col_2d",
]
