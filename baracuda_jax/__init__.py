"""Machine-learning ops as JAX primitives, with hand-written forward and backward kernels on CUDA and CPU."""

from ._core.prefer import prefer
from .pool import (
    lp_pool1d,
    lp_pool1d_backward,
    lp_pool2d,
    lp_pool2d_backward,
    lp_pool3d,
    lp_pool3d_backward,
)
from .segment import (
    segment_max,
    segment_max_backward,
    segment_mean,
    segment_mean_backward,
    segment_min,
    segment_min_backward,
    segment_prod,
    segment_prod_backward,
    segment_sum,
    segment_sum_backward,
)
from .shape import repeat, repeat_backward, tile

__version__ = "0.1.0"
__all__ = [
    "lp_pool1d",
    "lp_pool1d_backward",
    "lp_pool2d",
    "lp_pool2d_backward",
    "lp_pool3d",
    "lp_pool3d_backward",
    "prefer",
    "repeat",
    "repeat_backward",
    "segment_max",
    "segment_max_backward",
    "segment_mean",
    "segment_mean_backward",
    "segment_min",
    "segment_min_backward",
    "segment_prod",
    "segment_prod_backward",
    "segment_sum",
    "segment_sum_backward",
    "tile",
]
