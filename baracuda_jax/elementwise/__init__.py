"""Elementwise ops with parameters or a weight. Data flow: each element of the result from one element of each operand.
Pattern: elementwise.

XLA fuses elementwise work with its neighbours, which a kernel of ours would end, so plain JAX is the automatic choice here.
"""

from ._clip import clamp, clamp_backward, hardtanh, hardtanh_backward
from ._lerp import lerp, lerp_backward
from ._polynomial import affine, affine_backward, powi, powi_backward
from ._prelu import prelu, prelu_backward
from ._rectify import elu, elu_backward, leaky_relu, leaky_relu_backward, threshold, threshold_backward
from ._shrink import hardshrink, hardshrink_backward, softshrink, softshrink_backward

__all__ = [
    "affine",
    "affine_backward",
    "clamp",
    "clamp_backward",
    "elu",
    "elu_backward",
    "hardshrink",
    "hardshrink_backward",
    "hardtanh",
    "hardtanh_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "lerp",
    "lerp_backward",
    "powi",
    "powi_backward",
    "prelu",
    "prelu_backward",
    "softshrink",
    "softshrink_backward",
    "threshold",
    "threshold_backward",
]
