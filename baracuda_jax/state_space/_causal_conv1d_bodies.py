"""The causal convolution's definition in plain JAX, and its kernel calls. Arrays are [*batch, b, channels, length], or have
the channels last; weights are [*batch, channels, width]."""

import math

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from ._activation import silu as silu_of
from ._segments import elements_before, starts

# ---------------------------------------------------------------------------------------------------------------------
# References


def forward(x, weight, bias, initial_state, segment_ids, *, silu, channels_last):
    z = _linear(*map(wide, (x, weight, bias, initial_state)), segment_ids, channels_last=channels_last)
    return ((silu_of(z) if silu else z).astype(x.dtype),)


def _linear(x, weight, bias, initial_state, segment_ids, *, channels_last):
    """The result before the activation."""
    x = x.mT if channels_last else x
    history = weight.shape[-1] - 1
    x, length = jnp.concatenate([initial_state, x], -1), x.shape[-1]
    before = None
    if segment_ids.shape[-1]:
        before = elements_before(starts(segment_ids), history)[..., None, :]
    z = bias[..., None, :, None]
    for lag in range(history + 1):
        earlier = jax.lax.slice_in_dim(x, history - lag, history - lag + length, axis=-1)
        earlier = earlier if before is None else jnp.where(before >= lag, earlier, 0)
        z = z + weight[..., None, :, history - lag, None] * earlier
    return z.mT if channels_last else z


def tangent(x, weight, bias, initial_state, segment_ids, *tangents, **params):
    of_all = lambda *arrays: forward(*arrays, segment_ids, **params)
    return jax.jvp(of_all, (x, weight, bias, initial_state), tangents)[1]


def backward(x, weight, bias, initial_state, segment_ids, dy, **params):
    of_all = lambda *arrays: forward(*arrays, segment_ids, **params)
    return jax.vjp(of_all, x, weight, bias, initial_state)[1]((dy,))


# ---------------------------------------------------------------------------------------------------------------------
# Kernels

_WEIGHTS = "...dw, ...d, ...bdk, ...bs"


def _x(channels_last):
    return "...bld" if channels_last else "...bdl"


def forward_native(x, weight, bias, initial_state, segment_ids, *, save=False, **params):
    dims = _x(params["channels_last"])
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
    operands = x, weight, bias, initial_state, starts(segment_ids)
    return kernel("causal_conv1d", f"{dims}, {_WEIGHTS} -> {dims}", *operands, out=out, **params)


def backward_native(x, weight, bias, initial_state, segment_ids, dy, **params):
    dims = _x(params["channels_last"])
    out = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (x, weight, bias, initial_state)]
    return kernel(
        "causal_conv1d_backward", f"{dims}, {_WEIGHTS}, {dims} -> {dims}, ...dw, ...d, ...bdk",
        x, weight, bias, initial_state, starts(segment_ids), dy,
        out=out, workspace=_workspace(x, weight, **params), **params,
    )  # fmt: skip


def tangent_native(x, weight, bias, initial_state, segment_ids, dx, dweight, dbias, dstate, *, silu, channels_last):
    """What both of x and the weights add, each by the kernel, times the slope of the activation."""
    run = lambda *arrays: forward_native(
        *map(wide, arrays), segment_ids, silu=False, channels_last=channels_last
    )[0]  # fmt: skip
    dz = run(dx, weight, dbias, dstate) + run(x, dweight, jnp.zeros_like(bias), initial_state)
    if silu:
        z = run(x, weight, bias, initial_state)
        dz = jax.jvp(silu_of, (z,), (dz,))[1]
    return (dz.astype(x.dtype),)


def _workspace(x, weight, *, channels_last, **_):
    """Bytes, for each batch, of what ranges of sequences give for weights (ffi/patterns/stencil_cuda.h)."""
    batches, *rest = x.shape[-3:]
    length, channels = rest if channels_last else reversed(rest)
    taps, size = 4 if weight.shape[-1] <= 4 else 8, wide_dtype(x.dtype).itemsize
    if not all(isinstance(n, int) for n in (batches, length, channels)):
        parts = batches * (length // 64 + 1)  # in an export for any size: as many as there may be
    elif channels_last:
        parts = batches * _ranges_of_channels(batches, length, channels, taps, size, 16 // x.dtype.itemsize)
    else:
        parts = _parts_of_rows(batches, length, channels, 16 // x.dtype.itemsize)
    return parts * (taps + 1) * channels * size + 256


def _ranges(length, warps, smallest, enough=8192):
    """So many of `smallest` elements or more that these warps would leave the GPU partly idle."""
    return min(_ceil(enough, max(warps, 1)), max(1, length // smallest))


def _ranges_of_channels(batches, length, channels, taps, size, vector):
    most = max(1, min(vector, (2 if taps > 4 else 4) * 4 // size))
    tiles = _ceil(channels, 32 * (most if channels % most == 0 else 1))
    ranges = max(_ranges(length, batches * tiles, 64), _ranges(length, batches * tiles, 16, 132 * 8))
    positions = _ceil(max(1, _ceil(length, ranges)), taps) * taps
    return max(1, _ceil(length, 8 * positions))


def _parts_of_rows(batches, length, channels, vector):
    """The ranges of a row, times the warps that share the batches."""
    step = 32 * (vector if length % vector == 0 else 1)
    steps = max(1, _ceil(length, step))
    ranges = _ceil(steps, _ceil(steps, _ranges(length, batches * channels, 4 * step)))
    splits = min(_ceil(16384, max(1, channels * ranges)), max(1, batches))
    return ranges * _ceil(batches, max(1, _ceil(batches, splits)))


def _ceil(a, b):
    return -(-a // b)


def regime(call):
    """The product of the batches and channels, the length, and whether the channels are last."""
    *batch, rows, columns = call.largest.shape
    channels_last = call.params["channels_last"]
    length, channels = (rows, columns) if channels_last else (columns, rows)
    return {"length": length, "inner": channels * math.prod(batch), "channels last": channels_last}
