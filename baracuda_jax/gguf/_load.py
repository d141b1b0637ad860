"""Files that are opened: their bytes are read where they are needed, and nothing that they say is believed unchecked."""

import dataclasses
import itertools
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from ..packed import PackedWeight
from ._metadata import ARRAY, BOOL, DEFAULT_ALIGNMENT, MOST_NESTED, NUMBERS, STRING, is_alignment
from ._tensor import PLAIN, GGUFError, Tensor, layout

MAGIC, _VERSIONS = b"GGUF", (2, 3)
MOST_DIMENSIONS, _MOST_ELEMENTS = 4, 2**60


@dataclasses.dataclass(frozen=True)
class GGUFFile(Mapping[str, Any]):
    """A file: a mapping from names of tensors to their values on the device.

    Attributes:
        version: of the format, 2 or 3.
        metadata: {key: value}, of numbers, bools, strings, and lists of them.
        tensors: {name: Tensor}, which are in the file.
    """

    version: int
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def __getitem__(self, name: str) -> PackedWeight | jax.Array:
        return self.tensors[name].value()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def load(path: str | os.PathLike[str]) -> GGUFFile:
    """Opens a file.

    Args:
        path: of a `.gguf` file.

    Returns:
        GGUFFile. Its tensors are views of the file, which must stay as it is.

    Raises:
        GGUFError: where the file is cut off, is none of the format, or contradicts itself.
        OSError: where it can't be opened.
    """
    name = os.fspath(path)
    if os.path.getsize(name) == 0:
        raise GGUFError(f"gguf: {name}: the file is empty")
    reader = _Reader(np.memmap(name, np.uint8, "r"), name)
    if (magic := reader.take(4, "the magic number").tobytes()) != MAGIC:
        raise reader.error(f"the magic number must be {MAGIC!r}, got {magic!r}", 0)
    version = reader.number("I", "the version")
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        big = "; the file is big-endian, which is not supported" if swapped else ""
        raise reader.error(f"the version must be 2 or 3, got {version}{big}", 4)
    tensors, pairs = reader.number("Q", "the number of tensors"), reader.number("Q", "the number of metadata")
    # A tensor takes 24 bytes or more, and a pair 13.
    reader.fits(24 * tensors + 13 * pairs, f"{tensors} tensors and {pairs} pairs of metadata")
    metadata = _metadata(reader, pairs)
    infos = [_info(reader) for _ in range(tensors)]
    return GGUFFile(version, metadata, _tensors(reader, infos, _alignment(reader, metadata)))


@dataclasses.dataclass
class _Reader:
    """The bytes of a file, and the position of the next."""

    bytes: np.ndarray
    name: str
    at: int = 0

    def error(self, what, at=None):
        return GGUFError(f"gguf: {self.name}: at byte {self.at if at is None else at}: {what}")

    def fits(self, size, what):
        left = len(self.bytes) - self.at
        if size > left:
            raise self.error(f"the file is cut off: {what} takes {size} bytes, and {left} are left")

    def take(self, size, what):
        self.fits(size, what)
        self.at += size
        return self.bytes[self.at - size : self.at]

    def number(self, code, what):
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}"), what).tobytes())[0]

    def string(self, what):
        size, begin = self.number("Q", f"the length of {what}"), self.at
        text = self.take(size, what).tobytes()
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise self.error(f"{what} is not UTF-8", begin) from None

    def value(self, kind, what, depth=0):
        """A value of metadata."""
        if kind in NUMBERS:
            return self.number(NUMBERS[kind], what)
        if kind == BOOL:
            return self._bool(self.number("B", what), what)
        if kind == STRING:
            return self.string(what)
        if kind == ARRAY and depth < MOST_NESTED:
            return self._array(what, depth)
        nested = f"lists in lists deeper than {MOST_NESTED}" if kind == ARRAY else f"the unknown type {kind}"
        raise self.error(f"{what} has {nested}")

    def _bool(self, byte, what):
        if byte > 1:
            raise self.error(f"{what} must be a bool, 0 or 1, got {byte}", self.at - 1)
        return bool(byte)

    def _array(self, what, depth):
        kind, count = self.number("I", f"the type of {what}"), self.number("Q", f"the length of {what}")
        if kind in NUMBERS:
            code = np.dtype(NUMBERS[kind]).newbyteorder("<")
            return self.take(count * code.itemsize, what).view(code).tolist()
        smallest = {BOOL: 1, STRING: 8, ARRAY: 12}.get(kind)
        if smallest is None:
            raise self.error(f"{what} has the unknown type {kind}")
        self.fits(count * smallest, f"{what} of {count} elements")
        return [self.value(kind, what, depth + 1) for _ in range(count)]


def _metadata(reader, count):
    found = {}
    for i in range(count):
        begin = reader.at
        key = reader.string(f"the key of metadata {i}")
        if key in found:
            raise reader.error(f"the key {key!r} is there twice", begin)
        found[key] = reader.value(reader.number("I", f"the type of {key!r}"), f"{key!r}")
    return found


def _alignment(reader, metadata):
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not is_alignment(value):
        raise reader.error(f"general.alignment must be a power of two of at least 8, got {value!r}")
    return value


def _info(reader):
    """(position in the file, name, sizes as in the file, type, offset)"""
    begin, name = reader.at, reader.string("the name of a tensor")
    rank = reader.number("I", f"the rank of tensor {name!r}")
    if not 1 <= rank <= MOST_DIMENSIONS:
        raise reader.error(f"the rank of tensor {name!r} must be in 1 ... {MOST_DIMENSIONS}, got {rank}")
    sizes = [reader.number("Q", f"the shape of tensor {name!r}") for _ in range(rank)]
    kind = reader.number("I", f"the type of tensor {name!r}")
    return begin, name, sizes, kind, reader.number("Q", f"the offset of tensor {name!r}")


def _tensors(reader, infos, alignment):
    start = -(-reader.at // alignment) * alignment
    found, ranges = {}, []
    for begin, name, sizes, kind, offset in infos:
        format, block, size = layout(kind) or (None, 0, 0)
        if format is None:
            raise reader.error(f"tensor {name!r} has the unknown type {kind}", begin)
        if name in found:
            raise reader.error(f"tensor {name!r} is there twice", begin)
        if sizes[0] % block:
            raise reader.error(
                f"tensor {name!r} of type {format} must have rows of a multiple of {block} weights, got {sizes[0]}",
                begin,
            )
        if offset % alignment:
            raise reader.error(f"the offset of tensor {name!r} must be a multiple of {alignment}, got {offset}", begin)
        if math.prod(max(n, 1) for n in sizes) > _MOST_ELEMENTS:  # an empty tensor too
            raise reader.error(f"the shape of tensor {name!r} must have at most 2^60 elements, got {sizes}", begin)
        count = math.prod(sizes)
        first, last = start + offset, start + offset + count // block * size
        if last > len(reader.bytes):
            raise reader.error(
                f"tensor {name!r} must end in the file of {len(reader.bytes)} bytes, but has bytes {first} ... {last}",
                begin,
            )
        shape = tuple(reversed(sizes))
        ranges.append((first, last, begin, name))
        data = reader.bytes[first:last]
        if kind in PLAIN:
            data = data.view(PLAIN[kind][1]).reshape(shape)
        else:
            data = data.reshape(*shape[:-1], shape[-1] // block * size)
        found[name] = Tensor(name, shape, format, data)
    _check_apart(reader, ranges)
    return found


def _check_apart(reader, ranges):
    """Of tensors that share bytes at least one has a wrong offset."""
    ranges = sorted(of for of in ranges if of[0] < of[1])
    for (_, last, _, other), (first, _, begin, name) in itertools.pairwise(ranges):
        if first < last:
            raise reader.error(f"tensor {name!r} must have bytes of its own, but begins in those of {other!r}", begin)
