"""The types of metadata, and values of them as bytes."""

import struct
from typing import Any

import numpy as np

# Number of a type: its name, and what struct or NumPy calls it.
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
BOOL, STRING, ARRAY = 7, 8, 9
DEFAULT_ALIGNMENT, MOST_NESTED = 32, 8
_UINT32, _FLOAT32 = 4, 6
# Of Python's integers, in the order in which they are tried.
_INTEGERS = ((_UINT32, 0, 2**32), (5, -(2**31), 2**31), (11, -(2**63), 2**63), (10, 0, 2**64))


def is_alignment(value: Any) -> bool:
    """Whether it may be the alignment of a file."""
    return isinstance(value, int) and not isinstance(value, bool) and 8 <= value <= 2**31 and not value & (value - 1)


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def with_type(name: str, value: Any) -> bytes:
    """The type of a value, and then the value."""
    kind = _type_of(name, [value])
    return struct.pack("<I", kind) + _bytes(name, kind, value)


def _bytes(name, kind, value, depth=0):
    if kind == BOOL:
        return struct.pack("<?", value)
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        return _list(name, value, depth + 1)
    return struct.pack(f"<{NUMBERS[kind]}", value)


def _list(name, values, depth):
    if depth > MOST_NESTED:
        raise ValueError(f"{name} must have lists in lists of at most {MOST_NESTED} levels")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(f"{name} must be a vector where it is an array, got shape {values.shape}")
    kind = _type_of(name, values)
    head = struct.pack("<IQ", kind, len(values))
    if kind in NUMBERS:
        return head + np.asarray(values, np.dtype(NUMBERS[kind]).newbyteorder("<")).tobytes()
    return head + b"".join(_bytes(name, kind, value, depth) for value in values)


def _type_of(name, values):
    """The type that all of some values have; uint32 of none."""
    if isinstance(values, np.ndarray):
        return _of_dtype(name, values.dtype)
    if not len(values):
        return _UINT32
    is_typed = lambda value: isinstance(value, np.generic) and not isinstance(value, str)
    if any(map(is_typed, values)):
        kinds = {_of_dtype(name, value.dtype) if is_typed(value) else None for value in values}
        if len(kinds) == 1:
            return kinds.pop()
    elif all(isinstance(value, bool) for value in values):
        return BOOL
    elif all(isinstance(value, str) for value in values):
        return STRING
    elif all(isinstance(value, list | tuple | np.ndarray) for value in values):
        return ARRAY
    elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        for kind, first, end in _INTEGERS:
            if all(first <= value < end for value in values):
                return kind
        raise ValueError(f"{name} must be integers of 64 bits, got {_shown(values)}")
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return _FLOAT32
    raise TypeError(f"{name} must be numbers, bools, strings, or lists of one type of these, got {_shown(values)}")


def _of_dtype(name, dtype):
    if dtype.kind == "b":
        return BOOL
    for kind, code in NUMBERS.items():
        if dtype == np.dtype(code):
            return kind
    raise TypeError(f"{name} must be numbers of 8 to 64 bits, or bools, got dtype {dtype}")


def _shown(values):
    found = ", ".join(repr(value) for value in values[:4])
    return found if len(values) < 5 else f"{found}, ..."
