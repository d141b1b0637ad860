"""Casts to 8-bit floats."""

import jax


def to_float8(x, dtype):
    """x as an 8-bit float, also where it is cast back in the same program. There XLA, which may keep more precision than it
    was asked for, would leave out both casts on a GPU, and with them the rounding."""
    return jax.lax.optimization_barrier(x.astype(dtype))
