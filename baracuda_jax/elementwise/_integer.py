"""Bits of integers, and logic of bool."""

import jax.numpy as jnp
from jax import lax

from .._core import checks
from ._arguments import BOOL
from ._nary import binary_value
from ._unary import unary_value

BITS = (*checks.INTEGERS, "bool")
WHY = "integers and bool carry no derivative"
OF_INTEGERS = dict(dtypes=checks.INTEGERS, why=WHY)
OF_BITS = dict(dtypes=BITS, why=WHY)


def _ctz(x):
    """The ones below the lowest."""
    return lax.population_count(~x & (x - 1))


bitwise_not = unary_value("bitwise_not", "Every bit inverted.", "~x", jnp.bitwise_not,
    "torch.bitwise_not; jax.numpy.bitwise_not", **OF_BITS)  # fmt: skip
population_count = unary_value("population_count", "How many bits are 1.", "the number of ones among x's bits",
    lax.population_count, "jax.lax.population_count", **OF_INTEGERS)  # fmt: skip
clz = unary_value("clz", "Number of leading bits that are 0.", "the number of zeros before the highest 1", lax.clz,
    "jax.lax.clz", **OF_INTEGERS)  # fmt: skip
ctz = unary_value("ctz", "Number of trailing bits that are 0.", "the number of zeros below the lowest 1", _ctz, "none",
    **OF_INTEGERS)  # fmt: skip

bitwise_and = binary_value("bitwise_and", "Bits that both have.", "x1 & x2", jnp.bitwise_and,
    "torch.bitwise_and; jax.numpy.bitwise_and", **OF_BITS)  # fmt: skip
bitwise_or = binary_value("bitwise_or", "Bits that one has.", "x1 | x2", jnp.bitwise_or,
    "torch.bitwise_or; jax.numpy.bitwise_or", **OF_BITS)  # fmt: skip
bitwise_xor = binary_value("bitwise_xor", "Bits that just one has.", "x1 ^ x2", jnp.bitwise_xor,
    "torch.bitwise_xor; jax.numpy.bitwise_xor", **OF_BITS)  # fmt: skip
left_shift = binary_value("left_shift", "Bits moved up.",
    "x1 2^x2, without the bits above the type; 0 where x2 is outside [0, width)", lax.shift_left,
    "torch.bitwise_left_shift; jax.numpy.left_shift", **OF_INTEGERS)  # fmt: skip
right_shift = binary_value("right_shift", "Bits moved down.",
    "floor(x1 / 2^x2); of x2 outside [0, width) 0, or -1 for a negative x1", jnp.right_shift,
    "torch.bitwise_right_shift; jax.numpy.right_shift", **OF_INTEGERS)  # fmt: skip

logical_not = unary_value("logical_not", "Whether x is false.", "not x", jnp.logical_not,
    "torch.logical_not; jax.numpy.logical_not", dtypes=BOOL, why=WHY)  # fmt: skip
logical_and = binary_value("logical_and", "Whether both are true.", "x1 and x2", jnp.logical_and,
    "torch.logical_and; jax.numpy.logical_and", dtypes=BOOL, why=WHY)  # fmt: skip
logical_or = binary_value("logical_or", "Whether one is true.", "x1 or x2", jnp.logical_or,
    "torch.logical_or; jax.numpy.logical_or", dtypes=BOOL, why=WHY)  # fmt: skip
logical_xor = binary_value("logical_xor", "Whether just one is true.", "x1 != x2", jnp.logical_xor,
    "torch.logical_xor; jax.numpy.logical_xor", dtypes=BOOL, why=WHY)  # fmt: skip
