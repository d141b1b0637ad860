"""The normalization of channels over a batch: its definition in plain JAX, its kernel calls, and how it is cut.

Arrays are [*batches, elements, channels, space]. Weights and statistics are [*batches, channels]. Kernels: pattern
channels."""

import jax
import jax.numpy as jnp
from jax import lax

from .._core.body import Body
from .._core.kernel import kernel
from .._core.partition import Partition
from .._core.regime import aligned
from .._core.wide import wide, wide_dtype

OUTPUTS = ("y", "mean", "variance")


def by_channels(call):
    """The elements of a channel, those that are contiguous, and the bytes to which channels are aligned."""
    x = call.operand("x")
    elements, _, space = x.shape[-3:]
    return {"length": elements * space, "inner": space, "aligned": aligned(space, x.dtype)}


def _by_channel(vector):
    """What broadcasts to the elements of channels, in the dtype that is computed in."""
    return wide(vector)[..., None, :, None]


def _mean(a, over):
    """Of each channel. That of nothing is 0. `over` are axes of a mesh along which channels are sharded."""
    return _sum(a, over) / max(_count(a, over), 1)


def _sum(a, over):
    total = a.sum((-3, -1))
    return lax.psum(total, over) if over else total


def _count(a, over):
    count = a.shape[-3] * a.shape[-1]
    return lax.psum(count, over) if over else count


def _normalized(x, mean, variance, eps):
    """The differences from the mean, r, and their product."""
    centered, r = wide(x) - _by_channel(mean), _by_channel(lax.rsqrt(variance + eps))
    return centered, r, centered * r


def statistics(x, over=()):
    """The mean and the variance of each channel."""
    mean = _mean(wide(x), over)
    return mean, _mean(jnp.square(wide(x) - _by_channel(mean)), over)


# ---------------------------------------------------------------------------------------------------------------------
# References


def forward(x, weight, bias, *, eps, over=()):
    mean, variance = statistics(x, over)
    n = _normalized(x, mean, variance, eps)[2]
    return (n * _by_channel(weight) + _by_channel(bias)).astype(x.dtype), mean, variance


def tangent(x, weight, mean, variance, dx, dweight, dbias, *, eps, over=()):
    centered, r, n = _normalized(x, mean, variance, eps)
    dmean = _mean(wide(dx), over)
    dvariance = 2 * _mean(centered * wide(dx), over)
    of_n = r * (wide(dx) - _by_channel(dmean) - n * (r * _by_channel(dvariance / 2)))
    dy = of_n * _by_channel(weight) + n * _by_channel(dweight) + _by_channel(dbias)
    return dy.astype(dx.dtype), dmean, dvariance


def backward(x, weight, mean, variance, dy, dmean, dvariance, *, eps, over=()):
    """Each of the cotangents may be None."""
    if dy is None:
        nothing = jnp.zeros_like(weight)
        return of_statistics(jnp.zeros_like(x), x, mean, dmean, dvariance, over), nothing, nothing
    _, r, n = _normalized(x, mean, variance, eps)
    of_weight, of_bias = _sum(n * wide(dy), over), _sum(wide(dy), over)
    count = max(_count(x, over), 1)
    dx = r * _by_channel(weight) * (wide(dy) - _by_channel(of_bias / count) - n * _by_channel(of_weight / count))
    dx = of_statistics(dx, x, mean, dmean, dvariance, over).astype(x.dtype)
    return dx, of_weight.astype(weight.dtype), of_bias.astype(weight.dtype)


def of_statistics(dx, x, mean, dmean, dvariance, over=()):
    """dx, and what the cotangents of the mean and of the variance add to it."""
    if dmean is None and dvariance is None:
        return dx.astype(x.dtype)
    dx, count = wide(dx), max(_count(x, over), 1)
    if dvariance is not None:
        dx = dx + _by_channel(2 / count * dvariance) * (wide(x) - _by_channel(mean))
    return (dx if dmean is None else dx + _by_channel(dmean / count)).astype(x.dtype)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def forward_native(x, weight, bias, *, eps, save):
    if 0 in x.shape:  # channels of nothing are not read
        return forward(x, weight, bias, eps=eps)[: None if save else 1]
    of_channel = jax.ShapeDtypeStruct((*x.shape[:-3], x.shape[-2]), wide_dtype(x.dtype))
    results = kernel(
        "batch_norm", "...ncs, ...c, ...c -> ...ncs, ...c, ...c", x, weight, bias,
        out=[jax.ShapeDtypeStruct(x.shape, x.dtype), of_channel, of_channel],
        workspace=workspace(*x.shape[-3:], x.dtype, 1), eps=eps,
    )  # fmt: skip
    return results[: None if save else 1]


def backward_native(x, weight, mean, variance, dy, dmean, dvariance, *, eps):
    if 0 in x.shape or dy is None:
        return backward(x, weight, mean, variance, dy, dmean, dvariance, eps=eps)
    like = lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype)
    dx, *sums = kernel(
        "batch_norm_backward", "...ncs, ...c, ...c, ...c, ...ncs -> ...ncs, ...c, ...c",
        x, weight, mean, variance, dy, out=[like(x), like(weight), like(weight)],
        workspace=workspace(*x.shape[-3:], x.dtype, 2), eps=eps,
    )  # fmt: skip
    return of_statistics(dx, x, mean, dmean, dvariance), *sums


def workspace(elements, channels, space, dtype, arrays):
    """Bytes of the states of the parts of all channels, of which one has some of the 32 KB that a block reads where a
    channel is cut (ffi/patterns/channels_cuda.h)."""
    of_part = (32 << 10) // (64 * arrays * dtype.itemsize)
    return channels * (elements * space // of_part + 8) * 3 * wide_dtype(dtype).itemsize + 256


# ---------------------------------------------------------------------------------------------------------------------
# Shards


def _labels(names, types, params):
    """All dimensions may be cut."""
    own = {"x": "ncs", "y": "ncs"}

    def of(name, ndim):
        last = tuple(own.get(name, "c"))
        return (*(f"batch{i}" for i in range(ndim - len(last))), *last)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _of_shards(fun):
    """Of channels that are sharded, in plain JAX: only sums are communicated."""

    def forward_of_shards(run, over, *arrays, save, **params):
        return fun(*arrays, **params, over=over)[: None if save else 1]

    def tangent_of_shards(run, over, *values, outputs, **params):
        found = dict(zip(OUTPUTS, fun(*values, **params, over=over), strict=True))
        return [found[name] for name in outputs]

    def backward_of_shards(run, over, *values, outputs, **params):
        count = len(values) - len(outputs)
        given = dict(zip(outputs, values[count:], strict=True))
        return fun(*values[:count], *map(given.get, OUTPUTS), **params, over=over)

    return {forward: forward_of_shards, tangent: tangent_of_shards, backward: backward_of_shards}[fun]


_OF_SHARDS = {
    kind: _of_shards(fun) for kind, fun in (("forward", forward), ("tangent", tangent), ("backward", backward))
}
BODIES = dict(
    forward=Body(forward, forward_native),
    tangent=Body(tangent),
    backward=Body(backward, backward_native),
    kernels={"forward": ("batch_norm",), "backward": ("batch_norm_backward",)},
    cut=Partition(_labels, combine={"n": _OF_SHARDS, "s": _OF_SHARDS}),
)
