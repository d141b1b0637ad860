"""Files that are written: what they have is checked first, and they are there when they are whole."""

import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.typing import ArrayLike

from ..packed import PackedWeight
from ..packed._formats import FORMATS, GGUF
from ._load import MAGIC, MOST_DIMENSIONS
from ._metadata import DEFAULT_ALIGNMENT, is_alignment, text, with_type
from ._tensor import PLAIN, Tensor, numbers

_VERSION, _LONGEST_NAME = 3, 63


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, PackedWeight | Tensor | ArrayLike],
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Writes a file.

    Args:
        path: of the file. One that is there is replaced when the new one is whole, and stays as it is where it is open.
        tensors: {name: a PackedWeight of a format of GGUF; or an array of rank 1 to 4, of float16, bfloat16, float32,
            float64, or integers of 8 to 64 bits with a sign; or a Tensor of a file that is open}. A name has at most 63
            bytes.
        metadata: {key: number, bool, string, or a list of these of one type}. Python's integers are uint32 where they fit,
            else int32, int64 or uint64, and its floats float32, as programs expect them; of NumPy's scalars and vectors the
            type stays. "general.alignment", a power of two of at least 8, says to which multiples the bytes of
            tensors are moved; without it 32.

    Raises:
        TypeError, ValueError: for a tensor or metadata that a file can't have, naming it.
        OSError: where it can't be written.
    """
    metadata = dict(metadata or {})
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not is_alignment(alignment):
        raise ValueError(
            f"gguf.save: metadata['general.alignment'] must be a power of two of at least 8, got {alignment!r}"
        )
    stored = {name: _stored(name, tensor) for name, tensor in tensors.items()}
    head = MAGIC + struct.pack("<IQQ", _VERSION, len(stored), len(metadata))
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise TypeError(f"gguf.save: keys of metadata must be strings, got {key!r}")
        head += text(key) + with_type(f"gguf.save: metadata[{key!r}]", value)
    offset = 0
    for name, (kind, shape, data) in stored.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)
        offset += _padded(data.nbytes, alignment)
    _write(path, head, [data for *_, data in stored.values()], alignment)


def _stored(name, tensor):
    """(type, shape, the array whose bytes are in the file)"""
    if not isinstance(name, str) or len(name.encode()) > _LONGEST_NAME:
        raise ValueError(f"gguf.save: names of tensors must be strings of at most {_LONGEST_NAME} bytes, got {name!r}")
    what = f"gguf.save: tensors[{name!r}]"
    if isinstance(tensor, PackedWeight):
        if tensor.format not in FORMATS or FORMATS[tensor.format].number is None:
            raise ValueError(f"{what} must have one of the formats {', '.join(GGUF)}, got {tensor.format!r}")
        kind, shape, data = FORMATS[tensor.format].number, tensor.shape, np.asarray(tensor.data)
    elif isinstance(tensor, Tensor):
        kind, shape, data = numbers()[tensor.format], tensor.shape, tensor.data
    else:
        data = np.asarray(tensor)
        kind = next((n for n, (_, dtype) in PLAIN.items() if data.dtype.newbyteorder("<") == dtype), None)
        if kind is None:
            types = ", ".join(dtype.name for _, dtype in PLAIN.values())
            raise TypeError(f"{what} must be a PackedWeight or an array of {types}, got dtype {data.dtype}")
        shape, data = data.shape, data.astype(PLAIN[kind][1], copy=False)
    if not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise ValueError(f"{what} must have rank 1 to {MOST_DIMENSIONS}, got shape {shape}")
    return kind, shape, np.ascontiguousarray(data)


def _padded(size, alignment):
    return -(-size // alignment) * alignment


def _write(path, head, arrays, alignment):
    """Into a file next to it, which then takes its name: one that is open, and mapped, keeps its bytes."""
    whole = os.fspath(path)
    part = f"{whole}.part"
    try:
        with open(part, "wb") as file:
            for data in (np.frombuffer(head, np.uint8), *arrays):
                file.write(data.reshape(-1).view(np.uint8))
                file.write(b"\0" * (_padded(data.nbytes, alignment) - data.nbytes))
        os.replace(part, whole)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise
