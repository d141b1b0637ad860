"""The depthwise convolution's definition in plain JAX, and its kernel calls.

Arrays are [*batch, n, channels, *spatial], or have the channels last; weights are [*batch, outputs, *window]. In plain JAX
it is a sum of shifted products, which XLA makes one loop. Kernels: pattern stencil, with windows."""

import itertools
import math

import jax
import jax.numpy as jnp
from jax import lax

from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype

# ---------------------------------------------------------------------------------------------------------------------
# References


def forward(x, weight, bias, *, strides, padding, dilation, channels_last):
    rank = len(strides)
    x = jnp.moveaxis(x, -1, -1 - rank) if channels_last else x
    y = _summed(wide(x), wide(weight), strides, padding, dilation) + wide(bias)[..., None, :, *(None,) * rank]
    y = y.astype(x.dtype)
    return (jnp.moveaxis(y, -1 - rank, -1) if channels_last else y,)


def _summed(x, weight, strides, padding, dilation):
    rank = len(strides)
    lead, channels, window = x.ndim - rank, x.shape[-1 - rank], weight.shape[-rank:]
    x = lax.pad(x, jnp.zeros((), x.dtype), (*((0, 0, 0),) * lead, *((*p, 0) for p in padding)))
    multiplier = weight.shape[-1 - rank] // max(channels, 1)
    if multiplier > 1:
        x = jnp.repeat(x, multiplier, -1 - rank)
    counts = output_size(x.shape[-rank:], window, strides, ((0, 0),) * rank, dilation)
    total = None
    for k in itertools.product(*map(range, window)):
        begin = [i * d for i, d in zip(k, dilation, strict=True)]
        end = [b + (count - 1) * s + 1 for b, count, s in zip(begin, counts, strides, strict=True)]
        part = lax.slice(x, (*(0,) * lead, *begin), (*x.shape[:lead], *end), (*(1,) * lead, *strides))
        product = part * weight[..., None, :, *k][(..., *(None,) * rank)]
        total = product if total is None else total + product
    return total


def tangent(x, weight, dx, dweight, dbias, **params):
    of_all = lambda x, weight, bias: forward(x, weight, bias, **params)
    return jax.jvp(of_all, (x, weight, jnp.zeros_like(dbias)), (dx, dweight, dbias))[1]


def backward(x, weight, dy, **params):
    of_all = lambda *arrays: forward(*arrays, **params)[0]
    none = jnp.zeros(weight.shape[: weight.ndim - len(params["strides"])], weight.dtype)
    return jax.vjp(of_all, x, weight, none)[1](dy)


def output_size(spatial, window, strides, padding, dilation):
    each = zip(spatial, window, strides, padding, dilation, strict=True)
    return tuple((n + sum(p) - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def _dims(rank, channels_last):
    """Of x, y and the weights."""
    arrays = ("nc", "dhw"[3 - rank :]), ("no", "pqr"[3 - rank :])
    of_x, of_y = (f"...{n}{axes}{c}" if channels_last else f"...{n}{c}{axes}" for (n, c), axes in arrays)
    window = "ijk"[3 - rank :]
    return of_x, of_y, f"...{window}o" if channels_last else f"...o{window}"


def _attributes(strides, padding, dilation, channels_last):
    before = tuple(first for first, _ in padding)
    return dict(strides=strides, dilation=dilation, before=before, channels_last=channels_last)


def output_shape(x, weight, *, strides, padding, dilation, channels_last):
    rank = len(strides)
    outputs, window = weight.shape[-1 - rank], weight.shape[-rank:]
    begin = x.ndim - rank - channels_last
    size = output_size(x.shape[begin : begin + rank], window, strides, padding, dilation)
    lead = x.shape[: x.ndim - rank - 1]
    return (*lead, *size, outputs) if channels_last else (*lead, outputs, *size)


def forward_native(x, weight, bias, *, save=False, **params):
    rank, channels_last = len(params["strides"]), params["channels_last"]
    of_x, of_y, of_weight = _dims(rank, channels_last)
    out = [jax.ShapeDtypeStruct(output_shape(x, weight, **params), x.dtype)]
    return kernel(
        "depthwise_conv", f"{of_x}, {of_weight}, ...o -> {of_y}", x, _as_stored(weight, rank, channels_last), bias,
        out=out, **_attributes(**params),
    )  # fmt: skip


def backward_native(x, weight, dy, **params):
    rank, channels_last = len(params["strides"]), params["channels_last"]
    of_x, of_y, of_weight = _dims(rank, channels_last)
    stored = _as_stored(weight, rank, channels_last)
    bias = jax.ShapeDtypeStruct(weight.shape[: weight.ndim - rank], weight.dtype)
    out = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (x, stored, bias)]
    dx, dweight, dbias = kernel(
        "depthwise_conv_backward", f"{of_x}, {of_weight}, {of_y} -> {of_x}, {of_weight}, ...o", x, stored, dy,
        out=out, workspace=_workspace(weight, dy, **params), **_attributes(**params),
    )  # fmt: skip
    return dx, jnp.moveaxis(dweight, -1, -1 - rank) if channels_last else dweight, dbias


def tangent_native(x, weight, dx, dweight, dbias, **params):
    """What x and the weights add, each by the kernel."""
    run = lambda *arrays: forward_native(*map(wide, arrays), **params)[0]
    return ((run(dx, weight, dbias) + run(x, dweight, jnp.zeros_like(dbias))).astype(x.dtype),)


def _as_stored(weight, rank, channels_last):
    """Kernels read neighboring channels at once."""
    return jnp.moveaxis(weight, -1 - rank, -1) if channels_last else weight


def _workspace(weight, dy, *, strides, padding, dilation, channels_last):
    """Bytes, for each batch, of the sums for weights and bias of so many ranges of n and of windows, whose number the kernel
    finds from it (ffi/patterns/stencil_window_cuda.h). It is that of one batch: results are the same in any company."""
    rank = len(strides)
    outputs, window, size = weight.shape[-1 - rank], weight.shape[-rank:], wide_dtype(weight.dtype).itemsize
    parts, shape = 32, dy.shape[-rank - 2 :]
    if all(isinstance(n, int) for n in shape):
        positions = math.prod(shape) // max(outputs, 1)
        spans = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
        is_walk = max(spans) <= 7 and max(strides) <= 2
        if is_walk or all(n == 1 for n in (*strides, *dilation)):
            blocks, tiles = (512, outputs // 64) if channels_last else (1024, outputs)
            # Sequences whose columns are read four at a time have long walks from batch to batch.
            are_fours = size == 4 and (weight.dtype.itemsize == 4 or spans[-1] > 3)
            if rank == 1 and not channels_last and are_fours and is_walk:
                blocks = 4096
            parts = min(-(-blocks // max(tiles, 1)), positions // 64)
        elif channels_last:
            # Usual windows have blocks for each of their rows.
            tiles = max(1, outputs // 128) * (math.prod(window[:-1]) if 2 <= window[-1] <= 7 else 1)
            parts = min(-(-1024 // tiles), positions // 256)
        else:
            parts = min(-(-8192 // max(outputs, 1)), positions // 1024)
    return max(parts, 1) * (math.prod(window) + 1) * outputs * size


def regime(call):
    """The elements of a window, and how many channels are next to each other in memory."""
    rank = len(call.params["strides"])
    window = call.operand("weight").shape[-rank:]
    inner = call.operand("x").shape[-1] if call.params["channels_last"] else 1
    return {"length": math.prod(window), "inner": inner}
