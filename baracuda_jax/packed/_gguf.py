"""Weights in the block formats of GGUF files."""

from collections.abc import Sequence

from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core.api import api
from .._core.case import Case
from .._core.types import Implementation
from . import _arguments as arguments
from ._family import declare_dequantize, gguf_blocks, random_blocks


@api
def gguf_dequantize(
    data: ArrayLike,
    format: str | int,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike = "float32",
    *,
    implementation: Implementation = None,
) -> Array:
    """Weights of the block formats of GGUF files, as floats.

    Formula:
        y = d q, or d q + m, with the factors d and m of the weight's block, or of its part of the block, which are packed
        too, and the value q of its bits: an integer, or an entry of a table of 16.

    Args:
        data: uint8 [..., bytes of a row], whole blocks, as they are in the file.
        format: static, "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ4_NL",
            "IQ4_XS" or "MXFP4"; or the format's number in GGUF files.
        shape: static, the shape of the result; None for [..., weights of a row].
        dtype: static, float32, float64, float16 or bfloat16.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of the dtype. Packed weights carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact in float32, except that factors of "Q8_K" are rounded once with the value; rounded once to other dtypes.
    Weights of "MXFP4" below the smallest normal float32 may be 0.

    Source: ggml's formats; gguf.quants.dequantize of the package gguf.
    """
    op = "gguf_dequantize"
    data, of = arguments.data(op, "data", data), arguments.gguf_format(op, format)
    arguments.whole_blocks(op, data, of)
    dtype = arguments.result_dtype(op, dtype)
    found = (*data.shape[:-1], data.shape[-1] // of.bytes * of.block)
    shape = arguments.result_shape(op, shape, found)
    y = GGUF_DEQUANTIZE(data, *arguments.no_factors(data), format=of.name, dtype=dtype, implementation=implementation)
    return y.reshape(shape)


def _case(format, *rows, **kwargs):
    draw = lambda rng: (random_blocks(rng, format, *rows, gguf_blocks(format)),)
    return Case(format, draw, {"format": format, **kwargs})


GGUF_DEQUANTIZE = declare_dequantize(
    "gguf_dequantize",
    gguf_dequantize,
    (
        _case("Q4_K", 3),
        _case("Q6_K", 2, 2, shape=(1024,)),
    ),
    ("unpack_k", "unpack_legacy"),
)
