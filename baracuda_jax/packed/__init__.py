"""Packed weights: matrices of few bits an element, unpacked where they are used.

Data flow: a format (`_formats.py`) is bytes, in blocks, and what each weight is made of: a value of few bits and factors
that neighbors share, which are in the block or in arrays next to the bytes. A functor of ffi/kernels/packed takes both out
of a block; the definition is `_decode.py`. Pattern unpack: weights as floats. Pattern packed_rows: a product with few rows
of x, in which weights are never in memory as floats; of more rows they are unpacked, and XLA multiplies. Pattern
packed_columns: the same, of weights that are packed along their columns, as AWQ has them.
"""

from ._awq import from_awq, int4_awq_dequantize, int4_awq_gemm, int4_awq_gemm_backward
from ._by_expert import gguf_mmvq_batched, gguf_mmvq_batched_backward
from ._checkpoints import from_gptq, from_tensors
from ._formats import FORMATS, GGUF
from ._gguf import gguf_dequantize
from ._quantize import pack_weight
from ._repacked import from_marlin, int4_marlin_gemm, quantize_q8_1
from ._rows import (
    gguf_mmvq,
    gguf_mmvq_backward,
    int4_mmvq,
    int4_mmvq_backward,
    nf4_mmvq,
    nf4_mmvq_backward,
)
from ._scaled import NestedAbsmax, int4_dequantize, nf4_dequantize
from ._weight import PackedWeight, packed_matmul

gguf_mmvq_multi_m, nf4_mmvq_multi_m = gguf_mmvq, nf4_mmvq  # of one vector or several

__all__ = [
    "FORMATS",
    "GGUF",
    "NestedAbsmax",
    "PackedWeight",
    "from_awq",
    "from_gptq",
    "from_marlin",
    "from_tensors",
    "gguf_dequantize",
    "gguf_mmvq",
    "gguf_mmvq_backward",
    "gguf_mmvq_batched",
    "gguf_mmvq_batched_backward",
    "gguf_mmvq_multi_m",
    "int4_awq_dequantize",
    "int4_awq_gemm",
    "int4_awq_gemm_backward",
    "int4_dequantize",
    "int4_marlin_gemm",
    "int4_mmvq",
    "int4_mmvq_backward",
    "nf4_dequantize",
    "nf4_mmvq",
    "nf4_mmvq_backward",
    "nf4_mmvq_multi_m",
    "pack_weight",
    "packed_matmul",
    "quantize_q8_1",
]
