"""Machine-learning ops as JAX primitives, with hand-written forward and backward kernels on CUDA and CPU."""

from ._core.plan import Plan, plan
from ._core.prefer import PlanPreference, prefer
from ._core.sku import ArchSku, BackendKind, ElementKind, KernelSku, MathPrecision, OpCategory, PrecisionGuarantee
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

__version__ = "0.1.0"
__all__ = [
    "ArchSku",
    "BackendKind",
    "ElementKind",
    "KernelSku",
    "MathPrecision",
    "OpCategory",
    "Plan",
    "PlanPreference",
    "PrecisionGuarantee",
    "lp_pool1d",
    "lp_pool1d_backward",
    "lp_pool2d",
    "lp_pool2d_backward",
    "lp_pool3d",
    "lp_pool3d_backward",
    "plan",
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
