"""The kernel calls that the native bodies are made of."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from ._formats import FORMATS


def aligned(data, scale, zero):
    """All with the batches of the one that has most."""
    lead = max((x.shape[:-1] for x in (data, scale, zero)), key=len)
    return [jnp.broadcast_to(x, (*lead, x.shape[-1])) if x.ndim <= len(lead) else x for x in (data, scale, zero)]


def unpack(data, scale, zero, *, format, dtype):
    """The weights [..., weights of a row]. All dimensions of rows are batches."""
    data, scale, zero = aligned(data, scale, zero)
    of = FORMATS[format]
    columns = data.shape[-1] // of.bytes * of.block
    if data.ndim == 1:
        return unpack(data[None], scale[None], zero[None], format=format, dtype=dtype)[0]
    out = jax.ShapeDtypeStruct((*data.shape[:-1], columns), dtype)
    operands = data, scale, zero
    dims = "...b, ...g, ...z -> ...k"
    return kernel(f"unpack_{of.targets}", dims, *operands, out=[out], format=of.kernel_of(zero))[0]


def multiply(x, data, scale, zero, *, format):
    """x [*batch, ..., K] times the transposes of the matrices [*batch, N, K]."""
    of = FORMATS[format]
    out = jax.ShapeDtypeStruct((*x.shape[:-1], data.shape[-2]), x.dtype)
    operands = x, data, scale, zero
    dims = "...mk, ...nb, ...ng, ...nz -> ...mn"
    return kernel(f"packed_rows_{of.targets}", dims, *operands, out=[out], format=of.kernel_of(zero))[0]
