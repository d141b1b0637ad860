"""Convolutions compared with PyTorch's, what they refuse, and what becomes of windows as columns."""

import functools

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close
from programs import FLOATS, normal

import baracuda_jax as bj
from baracuda_jax.convolution import _gradients, _transposed

# name, x, weight, baracuda_jax's arguments, PyTorch's
CALLS = {
    "conv1d": ((2, 4, 11), (6, 2, 3), dict(strides=2, padding=1, dilation=2, groups=2), dict(stride=2, padding=1, dilation=2, groups=2)),
    "conv2d": ((2, 3, 7, 8), (4, 3, 3, 2), dict(strides=(2, 1), padding=(1, 2)), dict(stride=(2, 1), padding=(1, 2))),
    "conv3d": ((1, 2, 5, 4, 6), (3, 2, 2, 3, 2), dict(padding="same"), dict(padding="same")),
    "conv_2d_direct": ((2, 4, 7, 8), (6, 2, 3, 2), dict(groups=2, dilation=(1, 2)), dict(groups=2, dilation=(1, 2))),
    "depthwise_conv1d": ((2, 3, 11), (3, 1, 4), dict(padding=2, dilation=2), dict(padding=2, dilation=2, groups=3)),
    "depthwise_conv2d": ((2, 3, 7, 6), (6, 1, 3, 3), dict(padding=1, strides=2), dict(padding=1, stride=2, groups=3)),
    "depthwise_conv3d": ((1, 2, 5, 4, 6), (4, 1, 2, 3, 2), dict(padding="same"), dict(padding="same", groups=2)),
    "conv_transpose1d": ((2, 4, 5), (4, 3, 4), dict(strides=3, groups=2, output_padding=2), dict(stride=3, groups=2, output_padding=2)),
    "conv_transpose2d": ((2, 3, 4, 5), (3, 2, 3, 2), dict(strides=(2, 1), padding=1, dilation=(1, 2)), dict(stride=(2, 1), padding=1, dilation=(1, 2))),
    "conv_transpose3d": ((1, 2, 3, 2, 4), (2, 3, 2, 3, 3), dict(strides=2, padding=(0, 1, 1)), dict(stride=2, padding=(0, 1, 1))),
}  # fmt: skip


def _theirs(name):
    return getattr(torch.nn.functional, "conv2d" if name == "conv_2d_direct" else name.removeprefix("depthwise_"))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_torchs(name, dtype):
    shape, weight_shape, how, more = CALLS[name]
    outputs = weight_shape[1] * how.get("groups", 1) if "transpose" in name else weight_shape[0]
    args = normal(shape, dtype), normal(weight_shape, dtype, 1), normal((outputs,), dtype, 2)
    fun = lambda *args: getattr(bj, name)(*args, **how)
    dy = normal(jax.eval_shape(fun, *args).shape, dtype, 3)
    # In float64, of the same numbers: PyTorch's 16-bit gradients are rounded more often.
    wide = [np.asarray(a).astype(np.float64) for a in (*args, dy)]
    want, gradients = by_torch.vjp(lambda *args: _theirs(name)(*args, **more), wide[:3], wide[3])

    @jax.jit
    def both(args, dy):
        y, pull = jax.vjp(fun, *args)
        return y, pull(dy)

    y, pulled = both(args, dy)
    close(y, want, dtype, scale=2)
    for got, expected in zip(pulled, gradients, strict=True):
        assert got.dtype == dtype
        close(got, expected, dtype, scale=4)


def test_16_bits_are_rounded_once():
    """4096 products of 1, of which a narrow sum would miss some; and a bias that only a wide sum keeps."""
    x, weight = sent.ones((1, 4096, 1), jnp.bfloat16), sent.ones((1, 4096, 1), jnp.bfloat16)
    assert bj.conv1d(x, weight).item() == 4096
    y = bj.conv1d(x, weight, sent.full(1, 16.5, jnp.bfloat16), padding=1)
    assert y.tolist() == [[[16.5, float(jnp.bfloat16(4112.5)), 16.5]]]


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d", "depthwise_conv2d"])
def test_second_derivatives_are_torchs(name):
    shape, weight_shape, how, more = CALLS[name]
    x, weight = normal(shape), normal(weight_shape, seed=1)
    loss = lambda fun, sin, how: lambda x, w: sin(fun(x, w, **how)).sum()
    got = jax.jit(
        lambda x, w: jax.grad(lambda w: (jax.grad(loss(getattr(bj, name), jnp.sin, how))(x, w) ** 2).sum())(w)
    )(x, weight)
    tx, tw = (by_torch.tensor(a).requires_grad_() for a in (x, weight))
    (dx,) = torch.autograd.grad(loss(_theirs(name), torch.sin, more)(tx, tw), tx, create_graph=True)
    close(got, torch.autograd.grad((dx**2).sum(), tw)[0].numpy(), "float64", scale=16)


@pytest.mark.parametrize("name, form", [("conv2d", "NHWC"), ("conv_transpose2d", "NHWC"), ("depthwise_conv2d", "NHWC")])
def test_channels_last_and_no_batch(name, form):
    shape, weight_shape, how, _ = CALLS[name]
    x, weight, fun = normal(shape), normal(weight_shape, seed=1), getattr(bj, name)
    want = fun(x, weight, **how)
    close(jnp.moveaxis(fun(jnp.moveaxis(x, 1, -1), weight, data_format=form, **how), -1, 1), want, "float64")
    close(fun(x[0], weight, **how), want[0], "float64")


def test_direct_and_library_are_one():
    x, weight, bias = normal((2, 4, 9, 8)), normal((6, 2, 3, 2), seed=1), normal((6,), seed=2)
    how = dict(strides=(2, 1), padding=((2, 0), (1, 3)), dilation=(1, 2), groups=2)
    close(bj.conv_2d_direct(x, weight, bias, **how), bj.conv2d(x, weight, bias, **how), "float64", scale=4)


def test_a_transposed_convolution_is_the_gradient():
    x, weight = normal((2, 6, 9, 8)), normal((4, 3, 3, 2), seed=1)
    how = dict(strides=2, padding=1, groups=2)
    y, pull = jax.vjp(lambda x: bj.conv2d(x, weight, **how), x)
    dy = normal(y.shape, seed=2)
    close(bj.conv_transpose2d(dy, weight, output_padding=(0, 0), **how), pull(dy)[0], "float64", scale=4)


@pytest.mark.parametrize("strides", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("window", [1, 2, 5])
def test_every_way_to_transpose(strides, dilation, window):
    x, weight = normal((2, 2, 4)), normal((2, 3, window), seed=1)
    for padding, more in ((0, 0), (1, max(strides, dilation) - 1)):
        want = torch.nn.functional.conv_transpose1d(
            by_torch.tensor(x), by_torch.tensor(weight), None, strides, padding, more, 1, dilation
        )
        got = bj.conv_transpose1d(x, weight, None, strides, padding, output_padding=more, dilation=dilation)
        close(got, want.numpy(), "float64", scale=4)


@pytest.mark.parametrize("name", ["conv2d", "conv_2d_direct", "depthwise_conv2d", "conv_transpose2d"])
def test_an_empty_batch(name):
    shape, weight_shape, how, _ = CALLS[name]
    weight = normal(weight_shape)
    y = getattr(bj, name)(sent.zeros((0, *shape[1:])), weight, **how)
    one = getattr(bj, name)(sent.zeros(shape), weight, **how)
    assert y.shape == (0, *one.shape[1:])
    gradient = jax.jit(jax.grad(lambda w: getattr(bj, name)(sent.zeros((0, *shape[1:])), w, **how).sum()))(weight)
    assert gradient.shape == weight.shape and not np.any(gradient)


def test_windows_as_columns():
    sequence, image = normal((2, 3, 9)), normal((2, 3, 6, 7))
    columns = bj.im2col_1d(sequence, 3, strides=2, padding=1)
    np.testing.assert_array_equal(columns, bj.unfold(sequence, (3,), strides=2, padding=1))
    np.testing.assert_array_equal(
        bj.col2im_1d(columns, 9, 3, strides=2, padding=1), bj.fold(columns, (9,), (3,), strides=2, padding=1)
    )
    columns = bj.im2col_2d(image, (3, 2), dilation=2)
    want = torch.nn.functional.unfold(by_torch.tensor(image), (3, 2), dilation=2)
    np.testing.assert_array_equal(columns, want.numpy())
    close(
        bj.fold_2d(columns, (6, 7), (3, 2), dilation=2),
        torch.nn.functional.fold(want, (6, 7), (3, 2), dilation=2).numpy(), "float64",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"^im2col_2d: window must be an integer or 2 integers, got \(3,\)"):
        bj.im2col_2d(image, (3,))


X, W = np.ones((2, 4, 6, 6)), np.ones((4, 4, 3, 3))
BAD = [
    ("conv2d", TypeError, "x must have one of the dtypes .*, got int32", (X.astype(jnp.int32), W), {}),
    ("conv2d", ValueError, r"x must have rank 4, NCHW, or 3 without the batch, got shape \(6, 6\)", (X[0, 0], W), {}),
    ("conv2d", TypeError, "weight must have the dtype of x, float64, got float32", (X, W.astype(jnp.float32)), {}),
    ("conv2d", ValueError, r"weight must be \[Cout, Cin / groups, \*window\] with 2 window sizes", (X, W[0]), {}),
    ("conv2d", ValueError, r"weight must be .* for the 4 channels of x and 2 groups, got shape \(4, 4, 3, 3\)", (X, W), {"groups": 2}),
    ("conv2d", ValueError, "groups must divide the 4 channels of x and the 4 of weight, got 3", (X, W), {"groups": 3}),
    ("conv2d", ValueError, "groups must be at least 1, got 0", (X, W), {"groups": 0}),
    ("conv2d", ValueError, r"bias must have shape \(4,\), that of the channels of the result, got \(3,\)", (X, W, sent.ones(3)), {}),
    ("conv2d", ValueError, "strides must be at least 1, got 0", (X, W), {"strides": 0}),
    ("conv2d", ValueError, "padding must be at least 0, got -1", (X, W), {"padding": -1}),
    ("conv2d", ValueError, "padding must be one of 'same', 'valid', got 'SAME'", (X, W), {"padding": "SAME"}),
    ("conv2d", ValueError, "padding must be numbers or 'valid' where strides are not 1, got 'same'", (X, W), {"padding": "same", "strides": 2}),
    ("conv2d", ValueError, r"padding must have a pair for each of 2 spatial axes, got \(\(1, 1\),\)", (X, W), {"padding": ((1, 1),)}),
    ("conv2d", ValueError, r"weight must have windows that fit into x's spatial shape \(6, 6\)", (X, W), {"dilation": 3}),
    ("conv2d", ValueError, "data_format must be one of 'NCHW', 'NHWC', got 'NCL'", (X, W), {"data_format": "NCL"}),
    ("conv2d", ValueError, "implementation='native', but the op has no kernel; cudnn computes it", (X, W), {"implementation": "native"}),
    ("conv_transpose2d", ValueError, "output_padding must be less than strides or dilation, 2 and 1 along spatial axis 0, got 2", (X, W), {"strides": 2, "output_padding": 2}),
    ("conv_transpose2d", ValueError, r"x must have a spatial shape that leaves elements .* \(4, 4\), got \(6, 6\)", (X, W), {"padding": 4}),
    ("conv_transpose2d", ValueError, r"weight must be \[Cin, Cout / groups, \*window\] for the 4 channels", (X, W[:2]), {}),
    ("depthwise_conv2d", ValueError, "weight must be .* for the 4 channels of x and 4 groups", (X, W), {}),
]  # fmt: skip


@pytest.mark.parametrize("name, error, match, args, kwargs", BAD)
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)


@pytest.mark.parametrize("batched", ["", "x", "both"])
@pytest.mark.parametrize("name", ["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"])
def test_the_way_of_cuda_gives_the_same(name, batched):
    """Computed here: forward, and both gradients."""
    shape, window, given, _ = CALLS[name]
    rank = len(shape) - 2
    each = lambda key, default: (
        (given.get(key, default),) * rank if isinstance(given.get(key, default), int) else given[key]
    )
    how = {key: each(key, n) for key, n in (("strides", 1), ("padding", 0), ("output_padding", 0), ("dilation", 1))}
    how["groups"] = given.get("groups", 1)
    x, weight = normal((2, *shape) if batched else shape), normal((2, *window) if batched == "both" else window)
    reference = lambda x, w: _gradients._batched(functools.partial(_transposed._by_phases, **how), rank, x, w)
    y, pull = jax.vjp(reference, x, weight)
    of = lambda fun, x: _gradients._batched(functools.partial(fun, **how), rank, x, weight)
    close(of(_gradients._forward, x), y, "float64", scale=4)
    dy = normal(y.shape)
    got = of(_gradients._convolved, dy), _gradients._of_weight(x, weight, dy, rank, how)
    for a, b in zip(got, pull(dy), strict=True):
        close(a, b, "float64", scale=4)
