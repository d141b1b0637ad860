"""A tensor of a file, and the types that tensors have."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..packed import PackedWeight
from ..packed._formats import BY_NUMBER

PLAIN = {
    0: ("F32", np.dtype("<f4")),
    1: ("F16", np.dtype("<f2")),
    24: ("I8", np.dtype("<i1")),
    25: ("I16", np.dtype("<i2")),
    26: ("I32", np.dtype("<i4")),
    27: ("I64", np.dtype("<i8")),
    28: ("F64", np.dtype("<f8")),
    30: ("BF16", np.dtype(jnp.bfloat16)),
}
# Numbers of types that are known by their sizes alone: (name, weights of a block, its bytes).
_SIZES = {
    9: ("Q8_1", 32, 36),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    29: ("IQ1_M", 256, 56),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
}


class GGUFError(ValueError):
    """What is wrong with a file, and where."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of a file.

    Attributes:
        name: its name.
        shape: its shape, the last dimension being next to each other in memory; the file has these the other way around.
        format: the name of its type, such as "F32" or "Q4_K".
        data: its bytes, uint8 [...], in the file; or numbers of `shape`, where they are plain.
    """

    name: str
    shape: tuple[int, ...]
    format: str
    data: np.ndarray

    def value(self) -> PackedWeight | jax.Array:
        """The tensor on the device: an array of plain numbers, or a PackedWeight."""
        if any(name == self.format for name, _ in PLAIN.values()):
            return jnp.asarray(self.data)
        if not any(of.name == self.format for of in BY_NUMBER.values()):
            raise GGUFError(f"gguf: tensor {self.name!r} has the type {self.format}, which is not unpacked here")
        return PackedWeight(self.format, jnp.asarray(self.data))


def layout(kind):
    """(name, weights of a block, its bytes) of a type, or None."""
    if kind in PLAIN:
        name, dtype = PLAIN[kind]
        return name, 1, dtype.itemsize
    if kind in BY_NUMBER:
        of = BY_NUMBER[kind]
        return of.name, of.block, of.bytes
    return _SIZES.get(kind)


def numbers() -> dict[str, int]:
    """{name of a type: its number}"""
    by_name = {of.name: number for number, of in BY_NUMBER.items()}
    return by_name | {name: number for number, (name, *_) in (*PLAIN.items(), *_SIZES.items())}
