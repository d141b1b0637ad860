"""8-bit floats, cast to and kept."""

import jax
import jax.numpy as jnp


def to_float8(x, dtype):
    """x as an 8-bit float, also where it is cast back in the same program. There XLA, which may keep more precision than it
    was asked for, would leave out both casts on a GPU, and with them the rounding."""
    return jax.lax.optimization_barrier(x.astype(dtype))


def bits(x):
    """The bits of 8-bit floats that a derivative keeps. Floats `jax.checkpoint` rounds where a policy saves them, by
    `reduce_precision`, of which float8_e4m3fn's numbers beyond 240 are NaN and the subnormal ones 0."""
    return jax.lax.bitcast_convert_type(x, jnp.uint8)


def of_bits(x, dtype):
    """What `bits` were made of."""
    return jax.lax.bitcast_convert_type(x, dtype)
