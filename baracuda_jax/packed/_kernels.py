"""The kernel calls that the native bodies are made of."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from ._formats import FORMATS


def repeated(x, batch, core):
    """x [*some of the batches, *core] with all of them: those that it has are the first."""
    cut = x.ndim - core
    x = x.reshape(*x.shape[:cut], *(1,) * (len(batch) - cut), *x.shape[cut:])
    return jnp.broadcast_to(x, (*batch, *x.shape[len(batch) :]))


def aligned(data, scale, zero, core=2):
    """All with the batches of the one that has most."""
    arrays = data, scale, zero
    batch = max((x.shape[: x.ndim - core] for x in arrays), key=len)
    return [repeated(x, batch, core) if x.ndim - core < len(batch) else x for x in arrays]


def unpack(data, scale, zero, *, format, dtype):
    """The weights [..., weights of a row]. All dimensions of rows are batches."""
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
