"""Numbers in [0, 1) of random bits, as `jax.random` makes them."""

import jax.numpy as jnp
import numpy as np
from jax import lax


def drawn_bits(dtype):
    """How many an element of a float type draws."""
    info = jnp.finfo(dtype)
    return 8 if info.nmant < 8 else info.bits


def unit(bits, dtype):
    """Of so many bits: the highest ones are the mantissa of a number in [1, 2), less 1."""
    info, count = jnp.finfo(dtype), 8 * bits.dtype.itemsize
    one = np.array(1, dtype)
    mantissa = (bits >> (count - info.nmant)).astype(f"uint{info.bits}")
    return lax.bitcast_convert_type(mantissa | one.view(mantissa.dtype), dtype) - one
