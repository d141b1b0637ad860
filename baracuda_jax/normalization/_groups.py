"""The normalization of groups of channels: its definition in plain JAX, its kernel calls, and how it is cut.

Arrays are [*batch, groups, channels, space]. A weight is [*first dimensions of the batch, groups, channels], and serves all
that comes after these. Kernels: patterns groups, and groups with sums."""

import math

import jax
import jax.numpy as jnp

from .._core.body import Body
from .._core.kernel import kernel
from .._core.partition import Partition
from .._core.regime import aligned
from .._core.wide import wide, wide_dtype
from ._rows import moments, normalized, tangent_of_normalized


def by_groups(call):
    """The elements of a group, those of a channel, and the bytes to which channels are aligned."""
    x = call.operand("x")
    channels, space = x.shape[-2:]
    return {"length": channels * space, "inner": space, "aligned": aligned(space, x.dtype)}


def by_channel(vector, ndim):
    """A weight that broadcasts to the channels that it serves, in the dtype that is computed in."""
    return jnp.expand_dims(wide(vector), (*range(vector.ndim - 2, ndim - 3), ndim - 1))


def _rows(x):
    """In the dtype that is computed in, with a group a row."""
    return wide(x).reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def statistics(x, eps):
    """The mean and r of each group."""
    return [a.squeeze(-1) for a in moments(_rows(x), True, eps)]


def _normalized(x, mean, r):
    return normalized(_rows(x), mean[..., None], r[..., None], True)


# ---------------------------------------------------------------------------------------------------------------------
# References


def forward(x, weight, bias, *, eps):
    mean, r = statistics(x, eps)
    n, _ = _normalized(x, mean, r)
    y = n.reshape(x.shape) * by_channel(weight, x.ndim) + by_channel(bias, x.ndim)
    return y.astype(x.dtype), mean, r


def tangent(x, weight, mean, r, dx, dweight, dbias, *, eps):
    n, r = _normalized(x, mean, r)
    of_n = tangent_of_normalized(n, r, _rows(dx), True).reshape(x.shape)
    dy = of_n * by_channel(weight, x.ndim) + n.reshape(x.shape) * by_channel(dweight, x.ndim)
    return ((dy + by_channel(dbias, x.ndim)).astype(dx.dtype),)


def backward(x, weight, mean, r, dy, *, eps):
    n, r = _normalized(x, mean, r)
    g = by_channel(weight, x.ndim) * wide(dy)
    dx = tangent_of_normalized(n, r, _rows(g), True).reshape(x.shape)
    of_channel = lambda a: a.sum((*range(weight.ndim - 2, a.ndim - 3), -1)).astype(weight.dtype)
    return dx.astype(dy.dtype), of_channel(n.reshape(x.shape) * wide(dy)), of_channel(wide(dy))


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def forward_native(x, weight, bias, *, eps, save):
    if 0 in x.shape:  # groups of nothing are not read
        return forward(x, weight, bias, eps=eps)[: None if save else 1]
    saved = [jax.ShapeDtypeStruct(x.shape[:-2], wide_dtype(x.dtype))] * (2 if save else 0)
    return kernel(
        "group_norm", f"...gcs, ...gc, ...gc -> ...gcs{', ...g' * len(saved)}", x, weight, bias,
        out=[jax.ShapeDtypeStruct(x.shape, x.dtype), *saved], workspace=moments_bytes(*x.shape[-3:], x.dtype), eps=eps,
    )  # fmt: skip


def backward_native(x, weight, mean, r, dy, *, eps):
    if 0 in x.shape:
        return backward(x, weight, mean, r, dy, eps=eps)
    lead, of_element = weight.shape[:-2], x.shape[-3:]
    batch = math.prod(x.shape[len(lead) : -3])
    whole = lambda a: a.reshape(*lead, batch, *of_element)
    rows = lambda a: a.reshape(*lead, batch, of_element[0])
    out = [jax.ShapeDtypeStruct((*lead, batch, *of_element), x.dtype)]
    out += [jax.ShapeDtypeStruct(weight.shape, weight.dtype)] * 2
    dx, *sums = kernel(
        "group_norm_backward", "...ngcs, ...gc, ...ng, ...ng, ...ngcs -> ...ngcs, ...gc, ...gc",
        whole(x), weight, rows(mean), rows(r), whole(dy), out=out,
        workspace=(batch + batch // 256 + 1) * sums_bytes(*of_element, x.dtype),
    )  # fmt: skip
    return dx.reshape(x.shape), *sums


def moments_bytes(groups, channels, space, dtype):
    """Bytes of the moments of the parts of the groups of one element of the batch. A part has 512 elements or more, except
    for a few (ffi/patterns/groups_parts_cuda.h)."""
    parts = channels * space // 512 + 8
    return groups * parts * 3 * wide_dtype(dtype).itemsize + 256


def sums_bytes(groups, channels, space, dtype):
    """Bytes of two sums of each channel of one element of the batch, or of 256 of them, and of each part of a channel, of
    1024 elements or more."""
    return (space // 1024 + 1) * groups * channels * 2 * wide_dtype(dtype).itemsize + 256


# ---------------------------------------------------------------------------------------------------------------------
# Shards


def _labels(names, types, params):
    """The batch may be cut, what has a weight of its own with it, and the groups."""
    parts = next(x.ndim for name, x in zip(names, types, strict=True) if name == "weight") - 2
    own = {"weight": ("g", "c"), "bias": ("g", "c"), "mean": ("g",), "r": ("g",)}

    def of(name, ndim):
        last = own.get(name, ("g", "c", "s"))
        return (*(f"batch{i}" if i < parts else f"row{i - parts}" for i in range(ndim - len(last))), *last)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


BODIES = dict(
    forward=Body(forward, forward_native),
    tangent=Body(tangent),
    backward=Body(backward, backward_native),
    kernels={"forward": ("group_norm",), "backward": ("group_norm_backward",)},
    cut=Partition(_labels, whole=frozenset({"c", "s"})),
)
