"""The arguments of ops on packed weights: their checks."""

import math

import jax.numpy as jnp

from .._core import checks
from .._core.compiled import compiled, full
from ._formats import BY_NUMBER, FORMATS, GGUF

TABLES = ("nf4", "fp4")
INTEGERS = {4: "int4", 8: "int8"}
WORDS = ("int32", "uint32")
UNIT = 32  # weights that a kernel unpacks together; groups have a multiple of these


def gguf_format(op, value):
    """A format by its name or its number in GGUF files."""
    if isinstance(value, int) and not isinstance(value, bool) and value in BY_NUMBER:
        return BY_NUMBER[value]
    if not isinstance(value, str) or value.upper() not in GGUF:
        raise ValueError(f"{op}: format must be one of {', '.join(GGUF)}, or its number in GGUF files, got {value!r}")
    return GGUF[value.upper()]


def integers(op, bits):
    """The format of integers of so many bits."""
    return INTEGERS[checks.choice(op, "bits", bits, tuple(INTEGERS))]


def data(op, name, value):
    """Bytes; int8 and other bytes are told."""
    value = checks.array(op, name, value)
    checks.dtype(op, name, value, ("uint8",))
    if value.ndim < 1:
        raise ValueError(f"{op}: {name} must have at least one dimension, the bytes of a row; got a scalar")
    return value


def whole_blocks(op, value, format):
    if value.shape[-1] % format.bytes:
        raise ValueError(
            f"{op}: data must have rows of whole blocks, {format.bytes} bytes each in {format.name}, got shape "
            f"{tuple(value.shape)}"
        )


def no_factors(value):
    """Those of formats that have them in the data."""
    return (full((*value.shape[:-1], 0), 0, jnp.dtype("float32")),) * 2


def factors(op, name, value, packed, format):
    """float32 [..., groups], one row for each of the data, of groups that kernels take."""
    of = FORMATS[format]
    value = checks.array(op, name, value)
    checks.dtype(op, name, value, checks.FLOATS)
    if value.shape[:-1] != packed.shape[:-1] or value.ndim < 1:
        raise ValueError(
            f"{op}: {name} must have the shape of the data except for the last dimension, {tuple(packed.shape[:-1])}, "
            f"got {tuple(value.shape)}"
        )
    if packed.shape[-1] % of.bytes:
        raise ValueError(f"{op}: data must have rows of a multiple of {of.bytes} bytes, got {packed.shape[-1]}")
    weights, groups = packed.shape[-1] // of.bytes * of.block, value.shape[-1]
    if weights and (groups == 0 or weights % (UNIT * groups)):
        raise ValueError(
            f"{op}: {name} must have groups of a multiple of {UNIT} weights: expected a divisor of {weights // UNIT} "
            f"for rows of {weights}, got {groups}"
        )
    return as_float32(value)


@compiled()
def as_float32(x):
    return x.astype(jnp.float32)


def zero_points(op, value, scale):
    """As scale, or without groups."""
    if value is None:
        return full((*scale.shape[:-1], 0), 0, jnp.dtype("float32"))
    value = checks.array(op, "zero_point", value)
    checks.dtype(op, "zero_point", value, (*checks.INTEGERS, *checks.FLOATS))
    checks.shape(op, "zero_point", value, scale.shape, "that of scale")
    return as_float32(value)


def result_dtype(op, dtype):
    try:
        name = jnp.dtype(dtype).name
    except TypeError:
        raise TypeError(f"{op}: dtype must be a dtype, got {dtype!r}") from None
    return checks.choice(op, "dtype", name, checks.FLOATS)


def result_shape(op, shape, found):
    """The shape that the weights are to have; None for a row for each of the data."""
    if shape is None:
        return tuple(found)
    shape = shape if isinstance(shape, tuple | list) else (shape,)
    shape = tuple(checks.integer(op, f"shape[{i}]", n, 0) for i, n in enumerate(shape))
    if math.prod(shape) != math.prod(found):
        raise ValueError(f"{op}: shape must have {math.prod(found)} elements, as the data has weights, got {shape}")
    return shape


def column(value, absmax):
    """Bytes [n, 1] next to a vector of factors are one row: so bitsandbytes has them."""
    return value.reshape(-1) if value.ndim == 2 and value.shape[1] == 1 and absmax.ndim == 1 else value


def words(op, name, value):
    value = checks.array(op, name, value)
    checks.dtype(op, name, value, WORDS)
    if value.ndim != 2:
        raise ValueError(f"{op}: {name} must have two dimensions, got shape {tuple(value.shape)}")
    return value
