"""The windows of maxima and averages: arguments, their numbers, and which elements each has.

Along each spatial axis of x window o has the elements
    strided   o strides - padding + k dilation, k = 0, ..., window - 1
    adaptive  floor(o n / m), ..., ceil((o + 1) n / m) - 1, n and m being the sizes of x and of the result
    listed    begin[o] + k, where arrays say where windows begin, each plane's
without those outside x. Data flow: forward, each element of the result reads its window; backward, each element of x
reads the windows that hold it, so that every element is written once. Pattern: window."""

import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks
from .._core.data_format import image
from .._core.kernel import kernel
from ..convolution._arguments import pairs


class Windows(NamedTuple):
    """Static sizes for each spatial axis: of x, of the result, and of what a window is."""

    size: tuple[int, ...]
    out: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    kind: Literal["strided", "adaptive", "listed"]
    channels_last: bool

    @property
    def rank(self):
        return len(self.size)

    @property
    def reach(self):
        """The elements from the first to the last of a window."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.window, self.dilation, strict=True))

    @property
    def plane(self):
        return math.prod(self.size)

    def axis(self, ndim, i):
        """That of an array of so many dimensions which is spatial axis i."""
        return ndim - self.channels_last - self.rank + i

    def with_spatial(self, shape, sizes):
        """A shape with other spatial sizes."""
        begin, end = self.axis(len(shape), 0), self.axis(len(shape), self.rank)
        return (*shape[:begin], *sizes, *shape[end:])


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def spatial_size(shape, rank, channels_last):
    end = len(shape) - channels_last
    return tuple(shape[end - rank : end])


def strided(op, size, channels_last, window, strides, padding, dilation, ceil_mode):
    """The windows of PyTorch's pooling."""
    rank = len(size)
    window = checks.integers(op, "window", window, rank, 1)
    strides = checks.integers(op, "strides", window if strides is None else strides, rank, 1)
    dilation = checks.integers(op, "dilation", dilation, rank, 1)
    padding = pairs(op, padding, window, strides, dilation)
    is_rounded_up = checks.flag(op, "ceil_mode", ceil_mode)
    checks.positions(op, "window", math.prod(window))
    for i, sides in enumerate(padding):
        checks.positions(op, f"padding[{i}]", sum(sides))
    before, after = (tuple(side) for side in zip(*padding, strict=True))
    found = Windows(size, (), window, strides, dilation, before, after, "strided", channels_last)
    sizes = zip(size, found.reach, strides, padding, strict=True)
    out = tuple(_count(n, reach, s, p, is_rounded_up) for n, reach, s, p in sizes)
    if min(out) < 1:
        raise ValueError(
            f"{op}: window must fit into x's spatial shape {size} with padding {padding}, got {window} with dilation "
            f"{dilation}"
        )
    checks.positions(op, "dilation", max(found.reach), "elements from the first to the last of a window")
    return found._replace(out=out)


def _count(size, reach, stride, padding, is_rounded_up):
    """The number of windows along one dimension, as PyTorch counts them: one that is cut off begins in x or before it."""
    room = size + sum(padding) - reach
    whole, every = room // stride + 1, -(-room // stride) + 1
    return every if is_rounded_up and (every - 1) * stride < size + padding[0] else whole


def adaptive(op, size, channels_last, output_size):
    rank, ones, none = len(size), (1,) * len(size), (0,) * len(size)
    if not isinstance(output_size, tuple | list | np.ndarray):
        output_size = (output_size,) * rank
    if len(output_size) != rank:
        raise ValueError(f"{op}: output_size must be an integer or {rank} integers, got {tuple(output_size)}")
    out = tuple(
        n if m is None else checks.integer(op, f"output_size[{i}]", m, 0)
        for i, (n, m) in enumerate(zip(size, output_size, strict=True))
    )
    if not all(size):
        raise ValueError(f"{op}: x must have spatial sizes of at least 1, got {size}")
    return Windows(size, out, ones, ones, ones, none, none, "adaptive", channels_last)


def pooled(op, x, rank, data_format):
    """x, its spatial size, and whether its channels are last."""
    x, channels_last = image(op, x, rank, data_format)
    size = spatial_size(x.shape, rank, channels_last)
    checks.positions(op, "x", math.prod(size), "elements in a plane")
    return x, size, channels_last


def cotangent(op, dy, rank, size, data_format):
    """dy, the spatial size of x, and whether channels are last."""
    dy, channels_last = image(op, checks.array(op, "dy", dy), rank, data_format, "dy")
    size = checks.integers(op, "size", size, rank, 0)
    checks.positions(op, "size", math.prod(size), "elements in a plane")
    return dy, size, channels_last


def check_cotangent(op, dy, windows):
    found = spatial_size(dy.shape, windows.rank, windows.channels_last)
    if found != windows.out:
        raise ValueError(f"{op}: dy must have the spatial shape of the result, {windows.out}, got {found}")


# ---------------------------------------------------------------------------------------------------------------------
# The elements of windows, in plain JAX


def elements(windows, i, begins=None):
    """The elements [m, k] of each window of spatial axis i and which of them are in x, those first. Where lists say
    where windows begin, the elements are [..., m, k]."""
    n, m = windows.size[i], windows.out[i]
    if begins is not None:
        found = jnp.expand_dims(begins, -1) + of_rank(np.arange(windows.window[i], dtype=np.int32), begins.ndim + 1)
        return found, np.ones((m, windows.window[i]), bool)
    o = np.arange(m)[:, None]
    if windows.kind == "adaptive":
        first, end = o * n // max(m, 1), -(-(o + 1) * n // max(m, 1))
        found = first + np.arange((end - first).max(initial=1))
        inside = found < end
    else:
        found = o * windows.strides[i] - windows.before[i] + np.arange(windows.window[i]) * windows.dilation[i]
        inside = (found >= 0) & (found < n)
    order = np.argsort(~inside, axis=-1, kind="stable")
    found, inside = (np.take_along_axis(a, order, -1) for a in (found, inside))
    return np.where(inside, found, 0), inside


def slid(windows, ndim):
    """The arguments of `lax.reduce_window` after the operands and what combines them."""
    full = lambda values, other: windows.with_spatial((other,) * ndim, values)
    high = [
        max((m - 1) * s + reach - n - before, 0)
        for m, s, reach, n, before in zip(
            windows.out, windows.strides, windows.reach, windows.size, windows.before, strict=True
        )
    ]
    padding = full(tuple(zip(windows.before, high, strict=True)), (0, 0))
    return dict(
        window_dimensions=full(windows.window, 1), window_strides=full(windows.strides, 1), padding=padding,
        window_dilation=full(windows.dilation, 1),
    )  # fmt: skip


def of_rank(values, ndim):
    """An array of the last dimensions as one of so many."""
    return values.reshape((1,) * (ndim - values.ndim) + values.shape)


def taken(x, axis, index):
    """The elements of x [..., n, ...] at an index [m, k], or [..., m, k] with an index for each of the leading
    dimensions of x, in place of the axis: [..., m, k] with the other axes before them."""
    x = jnp.moveaxis(x, axis, -1)
    m, k = index.shape[-2:]
    if index.ndim == 2:
        found = jnp.take(x, jnp.asarray(index.ravel(), jnp.int32), -1, mode="clip")
    else:
        rest = x.ndim - 1 - (index.ndim - 2)
        flat = index.reshape(*index.shape[:-2], *(1,) * rest, m * k)
        found = jnp.take_along_axis(x, jnp.broadcast_to(flat, (*x.shape[:-1], m * k)), -1, mode="clip")
    return found.reshape(*found.shape[:-1], m, k)


def channels_first(windows, x):
    return jnp.moveaxis(x, -1, x.ndim - 1 - windows.rank) if windows.channels_last else x


def channels_as_they_were(windows, y):
    return jnp.moveaxis(y, y.ndim - 1 - windows.rank, -1) if windows.channels_last else y


# ---------------------------------------------------------------------------------------------------------------------
# Kernel calls


def call(target, windows, operands, shapes, begins, out, **attributes):
    """`shapes` says of each operand whether it has x's elements ("x") or the windows ("y"); the last is that of all
    results. `begins` has the list of windows of each axis, [..., channels, m]."""
    channel = "c" if windows.channels_last else ""
    of_x, of_y = ("".join(names[3 - windows.rank :]) for names in ("dhw", "pqr"))
    dims = {"x": f"...{of_x}{channel}", "y": f"...{of_y}{channel}"}
    *of_operands, of_result = (dims[s] for s in shapes)
    of_operands += [f"...{letter}{channel}" for letter in of_y[: len(begins)]]
    if windows.channels_last:
        begins = [jnp.moveaxis(b, -2, -1) for b in begins]
    return kernel(
        target, f"{', '.join(of_operands)} -> {', '.join([of_result] * len(out))}", *operands, *begins, out=out,
        window=windows.window, strides=windows.strides, dilation=windows.dilation,
        padding=windows.before + windows.after, adaptive=windows.kind == "adaptive",
        channels_last=windows.channels_last, **attributes,
    )  # fmt: skip


def pooled_type(windows, x, dtype):
    return jax.ShapeDtypeStruct(windows.with_spatial(x.shape, windows.out), dtype)


def plane_type(windows, y, dtype):
    return jax.ShapeDtypeStruct(windows.with_spatial(y.shape, windows.size), dtype)
