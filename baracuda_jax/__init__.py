"""Machine-learning ops as JAX primitives, with hand-written forward and backward kernels on CUDA and CPU."""

from ._core.prefer import prefer
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

__version__ = "0.1.0"
__all__ = [
    "prefer",
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
]
