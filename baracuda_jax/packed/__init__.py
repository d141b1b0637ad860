"""Packed weights: matrices of few bits an element, unpacked where they are used.

Data flow: a format (`_formats.py`) is bytes, in blocks, and what each weight is made of: a value of few bits and factors
that neighbors share, which are in the block or in arrays next to the bytes. A functor of ffi/kernels/packed takes both out of
a block; the definition is `_decode.py`. Pattern unpack: weights as floats.
"""

from ._formats import FORMATS
from ._gguf import gguf_dequantize
from ._scaled import NestedAbsmax, int4_dequantize, nf4_dequantize

__all__ = ["FORMATS", "NestedAbsmax", "gguf_dequantize", "int4_dequantize", "nf4_dequantize"]
