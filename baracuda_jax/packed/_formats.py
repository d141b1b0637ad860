"""The formats of packed weights: sizes, and who decodes them."""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp

from . import _decode


@dataclasses.dataclass(frozen=True)
class Format:
    """`block` weights take `bytes` bytes. `number` is that of GGUF files. `targets` is what the kernels' targets end with.
    Formats with `has_arrays` have a scale, and maybe a zero point, for each group of neighbors of a row, in arrays; integers
    without zero points are less `middle`."""

    name: str
    kernel: str
    targets: str
    block: int
    bytes: int
    decode: Callable
    number: int | None = None
    has_arrays: bool = False
    middle: int | None = None

    @property
    def bits(self):
        """Of a weight of formats with arrays of factors."""
        return 8 * self.bytes // self.block

    def weights(self, data, scale, zero):
        """float32 [..., weights of a row], by the definition."""
        blocks = data.reshape(*data.shape[:-1], data.shape[-1] // self.bytes, self.bytes)
        y = self.decode(blocks)
        if not self.has_arrays:
            return y.reshape(*data.shape[:-1], y.shape[-2] * y.shape[-1])
        count = y.shape[-2] * y.shape[-1]
        groups = scale.shape[-1]
        values = y.reshape(*scale.shape, count // groups if groups else 0)
        if zero.shape[-1]:
            values = values - zero[..., None]
        elif self.middle:
            values = values - self.middle
        return (values * scale[..., None]).reshape(*data.shape[:-1], count)

    def kernel_of(self, zero):
        """The name of the functor, which depends on whether there are zero points."""
        return self.kernel + "Centered" if self.middle is not None and not zero.shape[-1] else self.kernel

    def row_bytes(self, weights):
        return weights // self.block * self.bytes


def _gguf(name, targets, block, bytes, number):
    return Format(name, name, targets, block, bytes, getattr(_decode, name.lower()), number)


GGUF = {
    f.name: f
    for f in (
        _gguf("Q4_0", "legacy", 32, 18, 2),
        _gguf("Q4_1", "legacy", 32, 20, 3),
        _gguf("Q5_0", "legacy", 32, 22, 6),
        _gguf("Q5_1", "legacy", 32, 24, 7),
        _gguf("Q8_0", "legacy", 32, 34, 8),
        _gguf("Q2_K", "k", 256, 84, 10),
        _gguf("Q3_K", "k", 256, 110, 11),
        _gguf("Q4_K", "k", 256, 144, 12),
        _gguf("Q5_K", "k", 256, 176, 13),
        _gguf("Q6_K", "k", 256, 210, 14),
        _gguf("Q8_K", "k", 256, 292, 15),
        _gguf("IQ4_NL", "legacy", 32, 18, 20),
        _gguf("IQ4_XS", "k", 256, 136, 23),
        _gguf("MXFP4", "legacy", 32, 17, 39),
    )
}
BY_NUMBER = {f.number: f for f in GGUF.values()}
SCALED = {
    "nf4": Format("nf4", "NF4", "scaled", 32, 16, _decode.nf4, has_arrays=True),
    "fp4": Format("fp4", "FP4", "scaled", 32, 16, _decode.fp4, has_arrays=True),
    "int4": Format("int4", "Int4", "scaled", 32, 16, _decode.int4, has_arrays=True, middle=8),
    "int8": Format("int8", "Int8", "scaled", 32, 32, _decode.int8, has_arrays=True, middle=0),
}
FORMATS = {**GGUF, **SCALED}


def unpacked(data, scale, zero, *, format, dtype):
    """The weights by the definition, as a dtype."""
    return FORMATS[format].weights(data, scale, zero).astype(jnp.dtype(dtype))
