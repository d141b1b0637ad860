"""Numbers of any dtype as attributes of kernels: their bits, in an int64."""

import math

import jax.numpy as jnp
import numpy as np


def to_bits(value, dtype):
    return int.from_bytes(np.asarray(value, dtype).tobytes().ljust(8, b"\0"), "little", signed=True)


def from_bits(bits, dtype):
    return np.frombuffer(bits.to_bytes(8, "little", signed=True)[: dtype.itemsize], dtype)[0]


def lowest(dtype):
    return -math.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).min


def highest(dtype):
    return math.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).max
