"""Quantization: floats to values of 4 or 8 bits, and back.

Data flow: an array is seen as [..., channels, inner], and each channel of each batch has a scale and a zero point; per
tensor there is one channel, per channel the chosen dimension is that of channels, per token each row is a channel, per group
each chunk of a row. One kernel serves all four. Pattern: blockwise. Dynamic quantization finds each row's scale first,
reading the row once. Pattern: rows.
"""

from ._dequantize import (
    dequantize_per_channel,
    dequantize_per_channel_backward,
    dequantize_per_group,
    dequantize_per_group_backward,
    dequantize_per_tensor,
    dequantize_per_tensor_backward,
    dequantize_per_token,
    dequantize_per_token_backward,
)
from ._dynamic import dynamic_quantize
from ._fake import fake_quantize, fake_quantize_backward
from ._linear import quantized_linear, smooth_quant_linear
from ._quantize import (
    quantize_per_channel,
    quantize_per_channel_backward,
    quantize_per_group,
    quantize_per_group_backward,
    quantize_per_tensor,
    quantize_per_tensor_backward,
    quantize_per_token,
    quantize_per_token_backward,
)

__all__ = [
    "dequantize_per_channel",
    "dequantize_per_channel_backward",
    "dequantize_per_group",
    "dequantize_per_group_backward",
    "dequantize_per_tensor",
    "dequantize_per_tensor_backward",
    "dequantize_per_token",
    "dequantize_per_token_backward",
    "dynamic_quantize",
    "fake_quantize",
    "fake_quantize_backward",
    "quantize_per_channel",
    "quantize_per_channel_backward",
    "quantize_per_group",
    "quantize_per_group_backward",
    "quantize_per_tensor",
    "quantize_per_tensor_backward",
    "quantize_per_token",
    "quantize_per_token_backward",
    "quantized_linear",
    "smooth_quant_linear",
]
