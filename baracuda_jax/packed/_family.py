"""What the ops of the family share: declarations, bodies and cases."""

import jax.numpy as jnp
import numpy as np

from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from . import _kernels
from ._formats import FORMATS, GGUF, unpacked

CONSTANT = {
    "data": "the weights are packed",
    "scale": "the factors belong to packed weights",
    "zero": "the factors belong to packed weights",
}


def random_blocks(rng, format, *shape):
    """Bytes [*shape, of a row] whose factors are small and finite; `shape` ends with the number of blocks of a row."""
    of = FORMATS[format]
    b = rng.integers(0, 256, (*shape, of.bytes), np.uint8)
    half = lambda low, high: rng.uniform(low, high, (*shape, 1)).astype(np.float16).view(np.uint8)
    lowest, d = half(-0.003, 0.003), half(0.0001, 0.001)
    if format == "MXFP4":
        b[..., 0] = rng.integers(118, 126, shape)
    elif format == "Q8_K":
        b[..., :4] = rng.uniform(0.001, 0.02, (*shape, 1)).astype(np.float32).view(np.uint8)
    elif of.bytes in (84, 144, 176):  # Q2_K at the end, Q4_K and Q5_K at the begin
        at = 80 if format == "Q2_K" else 0
        b[..., at : at + 4] = np.concatenate([d, lowest], -1)
    elif format in ("Q3_K", "Q6_K"):
        b[..., -2:] = d
    else:
        b[..., :2] = d
        if format in ("Q4_1", "Q5_1"):
            b[..., 2:4] = lowest
    return b.reshape(*shape[:-1], shape[-1] * of.bytes)


def _reference(data, scale, zero, *, format, dtype):
    return (unpacked(data, scale, zero, format=format, dtype=dtype),)


def _native(data, scale, zero, *, save=False, format, dtype):
    return (_kernels.unpack(data, scale, zero, format=format, dtype=jnp.dtype(dtype)),)


def declare_dequantize(name, public, cases, targets):
    """An op that unpacks; calls of other formats than the first case's have the other targets."""
    return declare(
        name,
        family="packed",
        category=OpCategory.QUANTIZATION,
        public=public,
        cases=cases,
        dtypes=("uint8",),
        operands=("data", "scale", "zero"),
        constant=CONSTANT,
        batched=as_they_are,
        cut="a row of blocks is whole; rows are batches",
        forward=Body(_reference, _native),
        kernels={"forward": targets[:1]},
        sometimes=targets[1:],
    )


def gguf_blocks(format):
    """How many blocks of a format make a row of 256 weights."""
    return 256 // GGUF[format].block
