"""The convolution of each channel by itself, of sequences, images and volumes: one op for each number of spatial axes, and
the same kernels."""

from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, data_format
from .._core.api import api
from .._core.compiled import full
from .._core.data_format import FORMATS, DataFormat
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from . import _depthwise_bodies as bodies
from ._arguments import Padding, parameters
from ._conv import _case, windows


class DepthwiseConvolution(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, strides: int | Integers = 1,
        padding: Padding = 0, *, dilation: int | Integers = 1, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class DepthwiseBackward(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, weight: ArrayLike, dy: ArrayLike, strides: int | Integers = 1, padding: Padding = 0, *,
        dilation: int | Integers = 1, data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> tuple[Array, ...]: ...  # fmt: skip


_DOC = """Convolution of each channel of {what} by itself.

    Formula:
        y[n, o, i] = bias[o] + sum over k of weight[o, 0, k] x[n, c, i strides + k dilation - padding], with x = 0 outside
        and c = o // multiplier; k counts the elements of a window and i the windows, along each spatial axis.
        dx[n, c, j] is the sum of weight[o, 0, k] dy[n, o, i] over all o, i and k that read x[n, c, j];
        dweight[o, 0, k] that of x[n, c, i strides + k dilation - padding] dy[n, o, i] over n and i; dbias[o] that of dy.

    Args:
        x: floats {format}, or {last} with data_format="{last}"; the batch dimension N may be left out.
        weight: array of x's dtype, [C multiplier, 1, *window]: channel c of x gives the channels c multiplier, c multiplier
            + 1, ... of y.
        bias: array [C multiplier] of x's dtype; None for 0.
        strides: static step between windows, an integer or one for each spatial axis.
        padding: zeros around x: an integer, one for each spatial axis, a pair (before, after) for each, "valid" for none, or
            "same" for as many as give x's size with strides 1, the odd one after.
        dilation: static distance between the elements of a window, an integer or one for each spatial axis.
        data_format: "{format}" or "{last}".
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype and form, with C multiplier channels and, along each spatial axis, (size + padding before and
        after - dilation (window - 1) - 1) // strides + 1 elements.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where no window fits.

    Precision: float16 and bfloat16 are multiplied and summed in float32, and rounded once, after the bias. The kernels' sums
        have a fixed order, without atomics: results are the same bits every time.

    Source: torch.nn.functional.conv{rank}d with groups=C; jax.lax.conv_general_dilated.
    """

_BACKWARD_DOC = """The gradient of `depthwise_conv{rank}d`: see its formula.

    Args:
        x, weight, strides, padding, dilation, data_format, implementation: as in `depthwise_conv{rank}d`.
        dy: the cotangent of the result, of its shape and of x's dtype.

    Returns:
        The cotangents of x, weight and bias.
    """


def _arguments(op, rank, x, weight, bias, strides, padding, dilation, form):
    """x with a batch dimension, the weights without their dimension of one channel, bias or None; the parameters; and
    whether x came without a batch."""
    x, channels_last = data_format.image(op, x, rank, form)
    is_single = x.ndim == rank + 1
    x = jnp.expand_dims(x, 0) if is_single else x
    channels, spatial = (x.shape[-1], x.shape[1:-1]) if channels_last else (x.shape[1], x.shape[2:])
    like = jax.ShapeDtypeStruct((x.shape[0], channels, *spatial), x.dtype)
    weight, bias, _ = parameters(op, like, weight, bias, max(channels, 1))
    how = windows(op, like, weight, strides, padding, dilation)
    return x, weight.squeeze(1), bias, {**how, "channels_last": channels_last}, is_single


def _forward(op, rank, x, weight, bias, strides, padding, dilation, form, implementation):
    x, weight, bias, params, is_single = _arguments(
        op, rank, x, weight, bias, strides, padding, dilation, form
    )  # fmt: skip
    bias = full(weight.shape[:1], 0, x.dtype) if bias is None else bias
    y = _OPS[rank](x, weight, bias, **params, implementation=implementation)
    return y.squeeze(0) if is_single else y


def _backward(op, rank, x, weight, dy, strides, padding, dilation, form, implementation):
    x, weight, _, params, is_single = _arguments(op, rank, x, weight, None, strides, padding, dilation, form)
    dy = checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    expected = bodies.output_shape(x, weight, **params)
    checks.shape(op, "dy", dy, expected[1:] if is_single else expected, "that of the result")
    dy = jnp.expand_dims(dy, 0) if is_single else dy
    dx, dweight, dbias = _OPS[rank].vjp(x, weight, dy, **params, implementation=implementation)
    return dx.squeeze(0) if is_single else dx, jnp.expand_dims(dweight, 1), dbias


def _labels(names, types, params):
    """Examples and channels may be cut, the outputs as the channels that they read."""
    rank, channels_last = len(params["strides"]), params["channels_last"]

    def of(name, ndim):
        axes = lambda letter: tuple(f"{letter}{i}" for i in range(rank))
        if name in ("weight", "bias"):
            core = ("c", *axes("window")) if name == "weight" else ("c",)
        else:
            spatial = axes("y" if name == "y" else "x")
            core = ("n", *spatial, "c") if channels_last else ("n", "c", *spatial)
        return (*(f"batch{i}" for i in range(ndim - len(core))), *core)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


_WHOLE = frozenset(f"{letter}{i}" for letter in ("window", "x", "y") for i in range(3))


def _cases(rank):
    sizes, last = (7, 6, 5)[:rank], FORMATS[rank][1]
    three, more = (3,) * rank, dict(padding=((2, 1), (0, 2), (1, 0))[:rank], dilation=(2, 1, 1)[:rank])
    return (
        _case("one each", (2, 4, *sizes), (4, 1, *three), padding=1),
        _case("two each", (2, 3, *sizes), (6, 1, *(3, 2, 2)[:rank]), strides=2, **more),
        _case("channels last", (2, *sizes, 3), (3, 1, *(2, 3, 2)[:rank]), padding="same", data_format=last),
        _case("even windows", (2, 2, *(11, 12, 6)[:rank]), (2, 1, *(4, 4, 2)[:rank]),
              padding=((2, 2), (1, 2), (0, 1))[:rank]),
        _case("even windows, strides and dilation", (2, 2, *(12, 11, 8)[:rank]), (2, 1, *(2, 4, 2)[:rank]), strides=2,
              padding=((1, 2), (3, 0), (0, 1))[:rank], dilation=2),
        _case("channels last, two each", (1, *sizes, 2), (4, 1, *three), strides=(2, 1, 3)[:rank], **more,
              data_format=last),
    )  # fmt: skip


def _documented(fun, name, doc, rank, what=""):
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc.format(rank=rank, what=what, format=FORMATS[rank][0], last=FORMATS[rank][1])
    return api(fun)


def _convolution(rank, what) -> DepthwiseConvolution:
    name = f"depthwise_conv{rank}d"

    def fun(
        x: ArrayLike,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        strides: int | Integers = 1,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        return _forward(name, rank, x, weight, bias, strides, padding, dilation, data_format, implementation)

    return _documented(fun, name, _DOC, rank, what)


def _gradient(rank) -> DepthwiseBackward:
    name = f"depthwise_conv{rank}d_backward"

    def fun(
        x: ArrayLike,
        weight: ArrayLike,
        dy: ArrayLike,
        strides: int | Integers = 1,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> tuple[Array, ...]:
        return _backward(name, rank, x, weight, dy, strides, padding, dilation, data_format, implementation)

    return _documented(fun, name, _BACKWARD_DOC, rank)


depthwise_conv1d = _convolution(1, "sequences")
depthwise_conv2d = _convolution(2, "images")
depthwise_conv3d = _convolution(3, "volumes")
depthwise_conv1d_backward = _gradient(1)
depthwise_conv2d_backward = _gradient(2)
depthwise_conv3d_backward = _gradient(3)

_OPS = {
    rank: declare(
        f"depthwise_conv{rank}d",
        family="convolution",
        category=OpCategory.CONVOLUTION,
        public=public,
        dtypes=checks.FLOATS,
        cases=_cases(rank),
        operands=("x", "weight", "bias"),
        differentiable=("x", "weight", "bias"),
        residuals=("x", "weight"),
        batched=as_they_are,
        regime=bodies.regime,
        cut=Partition(_labels, whole=_WHOLE, plain=True),
        forward=Body(bodies.forward, bodies.forward_native),
        tangent=Body(bodies.tangent, bodies.tangent_native),
        backward=Body(bodies.backward, bodies.backward_native),
        kernels={
            "forward": ("depthwise_conv",),
            "tangent": ("depthwise_conv",),
            "backward": ("depthwise_conv_backward",),
        },
        kin="depthwise",
        default="xla",  # the kernels were not timed on a GPU
    )
    for rank, public in ((1, depthwise_conv1d), (2, depthwise_conv2d), (3, depthwise_conv3d))
}
