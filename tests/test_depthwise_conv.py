"""Depthwise convolutions: geometries that decide what a kernel does, numbers that are not finite, and the backward functions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import convolution as oracle

import baracuda_jax as bj

FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
# batch, channels, multiplier, size, window, strides, padding, dilation
GEOMETRIES = {
    "one element": (1, 1, 1, (1,), (1,), 1, 0, 1),
    "a window of one": (2, 3, 2, (4, 5), (1, 1), (2, 3), 0, 1),
    "a window that is the plane": (2, 2, 1, (4, 3), (4, 3), 5, 0, 1),
    "padding is longer than x": (1, 2, 1, (2, 1), (3, 5), 1, ((4, 3), (5, 6)), 1),
    "x is empty along an axis": (2, 2, 1, (0, 3), (2, 3), 1, ((1, 1), (0, 1)), 1),
    "strides leave elements out": (2, 2, 1, (11, 9), (2, 2), (4, 3), 0, 1),
    "strides and dilation share a factor": (1, 3, 2, (12, 13), (3, 4), (2, 4), (3, 2), (4, 2)),
    "wide windows": (1, 2, 1, (9, 24), (7, 7), 1, 3, 1),
    "more than nine taps": (1, 1, 1, (40,), (19,), 1, 9, 1),
    "rows in chunks": (1, 1, 1, (33, 6), (3, 3), 1, 1, 1),
    "rows in chunks, fewer of y": (2, 3, 1, (90, 40), (3, 3), 1, 0, 1),
    "long rows of signals": (2, 3, 1, (1031,), (3,), 1, ((2, 0),), 1),
    "rows of volumes in chunks": (2, 5, 1, (6, 35, 33), (3, 3, 3), 1, ((0, 0), (1, 0), (0, 2)), 1),
    "large windows of many rows": (2, 4, 1, (30, 41), (7, 7), 1, (0, 3), 1),
    "even windows": (2, 3, 1, (37, 41), (4, 4), 1, 2, 1),
    "even windows that keep the size": (2, 4, 1, (20, 36), (4, 6), 1, ((1, 2), (3, 2)), 1),
    "even windows, strides": (2, 2, 1, (19, 22), (4, 2), 2, ((1, 1), (0, 0)), 1),
    "even windows, strides and dilation": (2, 2, 1, (18, 25), (2, 4), 2, ((1, 2), (3, 1)), 2),
    "even windows of signals": (3, 4, 1, (67,), (4,), 1, ((2, 1),), 1),
    "even windows of signals, strides": (3, 4, 1, (66,), (6,), 2, ((0, 3),), 1),
    "even windows of volumes": (2, 2, 1, (5, 9, 12), (2, 2, 2), (1, 2, 1), ((0, 1), (1, 1), (1, 0)), 1),
    "dilation": (2, 3, 1, (21, 20), (3, 3), 1, 2, 2),
    "padding before alone": (2, 3, 1, (13, 30), (3, 5), 1, ((2, 0), (4, 0)), 1),
    "x begins after many rows of y": (1, 2, 1, (3, 4), (2, 2), 2, ((9, 0), (14, 3)), 1),
    "rows in chunks, strides": (1, 1, 1, (40, 7), (5, 3), 2, 1, 1),
    "a volume": (1, 2, 1, (4, 9, 8), (2, 3, 3), 1, ((1, 0), (1, 1), (1, 1)), 1),
    "many channels": (1, 37, 1, (3, 4), (3, 3), 1, 1, 1),
    "vectors of channels, strides": (2, 6, 1, (9, 37), (3, 5), (1, 2), 1, (2, 1)),
    "ranges of positions": (2, 12, 1, (20, 19), (3, 7), 1, (1, 3), 1),
    "no examples": (0, 3, 1, (4, 4), (3, 3), 1, 1, 1),
}


def _drawn(geometry, last):
    n, channels, multiplier, size, window, strides, padding, dilation = geometry
    rng, rank = np.random.default_rng(len(size)), len(size)
    x = rng.standard_normal((n, *size, channels) if last else (n, channels, *size))
    weight = rng.standard_normal((channels * multiplier, 1, *window))
    how = dict(strides=strides, padding=padding, dilation=dilation, data_format=FORMATS[rank][last])
    return (x, weight, rng.standard_normal(channels * multiplier)), how, f"depthwise_conv{rank}d"


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_kernels_have_the_values_of_the_formula_and_the_gradients_of_plain_jax(name, last):
    arrays, how, op = _drawn(GEOMETRIES[name], last)

    @jax.jit
    def results(*arrays):
        def of(implementation):
            y, pull = jax.vjp(lambda *a: getattr(bj, op)(*a, **how, implementation=implementation), *arrays)
            return y, *pull(jnp.cos(3 * y))

        return of("native"), of("xla")

    native, plain = results(*arrays)
    np.testing.assert_allclose(native[0], getattr(oracle, op)(*arrays, **how), rtol=1e-12, atol=1e-12)
    for a, b in zip(native, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("window", [3, 4])
def test_numbers_that_are_not_finite(window, bad, strides, last):
    """They are where plain JAX has them: an infinite weight makes NaN of the padding, and gives nothing to dx of it."""
    (x, weight, bias), how, op = _drawn((2, 4, 1, (5, 6), (window, window), strides, 1, 1), last)
    weight[1, 0, 0, 2] = bad
    x[0, 2, 2, 1] = bad
    fun = lambda implementation: lambda *a: getattr(bj, op)(*a, **how, implementation=implementation)
    dy = np.ones(jax.eval_shape(fun("xla"), x, weight, bias).shape)
    both = jax.jit(
        lambda: [(y, *pull(dy)) for y, pull in (jax.vjp(fun(i), x, weight, bias) for i in ("native", "xla"))]
    )
    for a, b in zip(*both(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
        assert np.isfinite(b).any()


@pytest.mark.parametrize("last", [False, True])
def test_backward_is_the_gradient(last):
    arrays, how, op = _drawn((2, 3, 2, (6, 5), (3, 2), (2, 1), ((1, 0), (1, 1)), 1), last)
    y, pull = jax.vjp(lambda *a: getattr(bj, op)(*a, **how, implementation="xla"), *arrays)
    dy = np.sin(np.arange(y.size)).reshape(y.shape)
    backward = getattr(bj, f"{op}_backward")
    for implementation in ("native", "xla"):
        got = backward(arrays[0], arrays[1], dy, **how, implementation=implementation)
        for a, b in zip(got, pull(dy), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    single = backward(arrays[0][0], arrays[1], dy[0], **how)
    assert single[0].shape == arrays[0].shape[1:]
    with pytest.raises(ValueError, match=f"^{op}_backward: dy must have shape .*, that of the result, got"):
        backward(arrays[0], arrays[1], dy[:1], **how)
    with pytest.raises(TypeError, match=f"^{op}_backward: dy must have the dtype of x, float64, got float32"):
        backward(arrays[0], arrays[1], dy.astype("float32"), **how)


def test_weights_of_a_batch_are_groups():
    """Under vmap over weights alone, over x alone, and over both."""
    (x, weight, bias), how, op = _drawn((2, 3, 1, (5, 6), (3, 3), 1, 1, 1), False)
    fun = lambda x, w, b: getattr(bj, op)(x, w, b, **how, implementation="native")
    many = lambda a: np.stack([a, 2 * a, np.cos(a)])

    @jax.jit
    def checked():
        mapped = [
            jax.vmap(fun, (None, 0, 0))(x, many(weight), many(bias)),
            jax.vmap(fun, (0, None, None))(many(x), weight, bias),
            jax.vmap(fun)(many(x), many(weight), many(bias)),
        ]
        looped = [
            jnp.stack([fun(x, w, b) for w, b in zip(many(weight), many(bias), strict=True)]),
            jnp.stack([fun(x, weight, bias) for x in many(x)]),
            jnp.stack([fun(*a) for a in zip(many(x), many(weight), many(bias), strict=True)]),
        ]
        return mapped, looped

    for a, b in zip(*checked(), strict=True):
        np.testing.assert_array_equal(a, b)
