"""Numbers of any dtype as attributes of kernels: their bits, in an int64."""

import math

import jax.numpy as jnp
import numpy as np


def to_bits(value, dtype):
    return int.from_bytes(np.asarray(value, dtype).tobytes().ljust(8, b"\0"), "little", signed=True)


def from_bits(bits, dtype):
    found = bits.to_bytes(8, "little", signed=True).ljust(dtype.itemsize, b"\0")
    return np.frombuffer(found[: dtype.itemsize], dtype)[0]


def to_bytes(value, dtype):
    """Those of a number: a static parameter that tells zeros apart, and is equal to itself where the number is NaN."""
    return np.asarray(value, dtype).tobytes()


def from_bytes(fill, dtype):
    return np.frombuffer(fill, dtype)[0]


def words(fill):
    """The bytes of a number as two attributes; none are those of 0."""
    return tuple(map(int, np.frombuffer(fill.ljust(16, b"\0"), np.int64)))


def lowest(dtype):
    return -math.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).min


def highest(dtype):
    return math.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).max
