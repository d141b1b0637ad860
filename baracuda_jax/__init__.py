"""Machine-learning ops as JAX primitives, with hand-written forward and backward kernels on CUDA and CPU."""

from ._core.library import export_checks
from ._core.plan import Plan, plan
from ._core.prefer import PlanPreference, prefer
from ._core.sku import ArchSku, BackendKind, ElementKind, KernelSku, MathPrecision, OpCategory, PrecisionGuarantee
from .attention import kv_cache_append, kv_cache_append_backward
from .elementwise import *  # noqa: F403
from .elementwise import __all__ as _elementwise
from .histogram import bincount, digitize, histogram, histogramdd, searchsorted
from .normalization import layer_norm, layer_norm_backward
from .pool import (
    lp_pool1d,
    lp_pool1d_backward,
    lp_pool2d,
    lp_pool2d_backward,
    lp_pool3d,
    lp_pool3d_backward,
)
from .quantize import (
    dequantize_per_channel,
    dequantize_per_channel_backward,
    dequantize_per_group,
    dequantize_per_group_backward,
    dequantize_per_tensor,
    dequantize_per_tensor_backward,
    dequantize_per_token,
    dequantize_per_token_backward,
    dynamic_quantize,
    fake_quantize,
    fake_quantize_backward,
    quantize_per_channel,
    quantize_per_channel_backward,
    quantize_per_group,
    quantize_per_group_backward,
    quantize_per_tensor,
    quantize_per_tensor_backward,
    quantize_per_token,
    quantize_per_token_backward,
)
from .reduce import *  # noqa: F403
from .reduce import __all__ as _reduce
from .scan import (
    associative_linear_scan,
    associative_linear_scan_backward,
    cummax,
    cummax_backward,
    cummin,
    cummin_backward,
    cumprod,
    cumprod_backward,
    cumsum,
    cumsum_backward,
    logcumsumexp,
    logcumsumexp_backward,
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
from .shape import *  # noqa: F403
from .shape import __all__ as _shape
from .sort import (
    argmax,
    argmin,
    argsort,
    kthvalue,
    kthvalue_backward,
    median,
    msort,
    nanmedian,
    nanquantile,
    quantile,
    sort,
    sort_backward,
    sort_key_val,
    sort_key_val_backward,
    topk,
    topk_backward,
)
from .unique import nonzero, unique, unique_consecutive

# Mirrors call what is above.
from . import lax as lax, nn as nn, numpy as numpy, ops as ops  # isort: skip
from ._mirror.patch import patch_jax, unpatch_jax  # isort: skip

__version__ = "0.1.0"


def __getattr__(name):
    """Names of others lead to ours."""
    from ._elsewhere import no_such

    raise no_such(name)


__all__ = [
    *_elementwise,
    *_reduce,
    *_shape,
    "ArchSku",
    "BackendKind",
    "ElementKind",
    "KernelSku",
    "MathPrecision",
    "OpCategory",
    "Plan",
    "PlanPreference",
    "PrecisionGuarantee",
    "argmax",
    "argmin",
    "argsort",
    "associative_linear_scan",
    "associative_linear_scan_backward",
    "bincount",
    "cummax",
    "cummax_backward",
    "cummin",
    "cummin_backward",
    "cumprod",
    "cumprod_backward",
    "cumsum",
    "cumsum_backward",
    "dequantize_per_channel",
    "dequantize_per_channel_backward",
    "dequantize_per_group",
    "dequantize_per_group_backward",
    "dequantize_per_tensor",
    "dequantize_per_tensor_backward",
    "dequantize_per_token",
    "dequantize_per_token_backward",
    "digitize",
    "dynamic_quantize",
    "export_checks",
    "fake_quantize",
    "fake_quantize_backward",
    "histogram",
    "histogramdd",
    "kthvalue",
    "kthvalue_backward",
    "logcumsumexp",
    "logcumsumexp_backward",
    "kv_cache_append",
    "kv_cache_append_backward",
    "layer_norm",
    "layer_norm_backward",
    "lp_pool1d",
    "lp_pool1d_backward",
    "lp_pool2d",
    "lp_pool2d_backward",
    "lp_pool3d",
    "lp_pool3d_backward",
    "median",
    "msort",
    "nanmedian",
    "nanquantile",
    "nonzero",
    "patch_jax",
    "plan",
    "prefer",
    "quantile",
    "quantize_per_channel",
    "quantize_per_channel_backward",
    "quantize_per_group",
    "quantize_per_group_backward",
    "quantize_per_tensor",
    "quantize_per_tensor_backward",
    "quantize_per_token",
    "quantize_per_token_backward",
    "searchsorted",
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
    "sort",
    "sort_backward",
    "sort_key_val",
    "sort_key_val_backward",
    "topk",
    "topk_backward",
    "unique",
    "unique_consecutive",
    "unpatch_jax",
]
