"""Products of matrices with an epilogue: cuBLASLt, which XLA calls, computes them; only those of groups have kernels.

`_product.py` has the product that all of them share, and its derivatives."""

from ._bits import bin_gemm, int4_gemm
from ._float8 import fp8_gemm
from ._gemm import (
    batched_gemm,
    dense_gemm,
    gemm,
    gemm_bias,
    gemm_bias_gelu,
    gemm_bias_relu,
    gemm_bias_silu,
    gemv,
)
from ._grouped import grouped_gemm, grouped_gemm_backward
from ._int8 import int8_gemm
from ._sparse24 import gemm_sparse24

__all__ = [
    "batched_gemm",
    "bin_gemm",
    "dense_gemm",
    "fp8_gemm",
    "gemm",
    "gemm_bias",
    "gemm_bias_gelu",
    "gemm_bias_relu",
    "gemm_bias_silu",
    "gemm_sparse24",
    "gemv",
    "grouped_gemm",
    "grouped_gemm_backward",
    "int4_gemm",
    "int8_gemm",
]
