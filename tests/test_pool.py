"""What LP pooling does at the edges."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close
from hypothesis import given
from hypothesis import strategies as st
from oracles import pool as oracle

import baracuda_jax as bj

POOLS = {rank: getattr(bj, f"lp_pool{rank}d") for rank in (1, 2, 3)}
POWERS = (0.5, 1, 1.5, 2, 3, 4.5, math.inf)


@pytest.mark.parametrize("rank", POOLS)
@given(st.data())
def test_any_shape(rank, data):
    size = [data.draw(st.integers(1, 12)) for _ in range(rank)]
    window = tuple(data.draw(st.integers(1, n)) for n in size)
    strides = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    p, ceil_mode, last = data.draw(st.sampled_from(POWERS)), data.draw(st.booleans()), data.draw(st.booleans())
    batch, channels = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 19))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    x = rng.standard_normal((batch, *size, channels) if last else (batch, channels, *size))
    x = np.where(rng.random(x.shape) < 0.2, 0, x)
    kwargs = dict(window=window, strides=strides, ceil_mode=ceil_mode)
    kwargs["data_format"] = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[rank][last]
    want = oracle.lp_pool(rank, x, p, **kwargs)
    dy = rng.standard_normal(want.shape)
    want_dx = oracle.lp_pool_gradient(rank, x, dy, p, **kwargs)
    for implementation in ("native", "xla"):
        y, pull = jax.vjp(
            lambda x, implementation=implementation: POOLS[rank](x, p, **kwargs, implementation=implementation),
            sent.asarray(x),
        )
        close(y, want, "float64", scale=10)
        close(pull(sent.asarray(dy))[0], want_dx, "float64", scale=100)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "shape, window, strides", [((2, 3, 33, 35), 3, 2), ((1, 2, 40, 17), (2, 5), (3, 1)), ((2, 2, 9, 64), 2, 2)]
)
def test_values_and_gradients_in_every_dtype(p, dtype, shape, window, strides):
    rng = np.random.default_rng(0)
    x = sent.asarray(rng.standard_normal(shape), dtype)
    wide = np.asarray(x, np.float64)
    want = oracle.lp_pool(2, wide, p, window, strides)
    dy = sent.asarray(rng.standard_normal(want.shape), dtype)
    y, pull = jax.vjp(lambda x: bj.lp_pool2d(x, p, window, strides, implementation="native"), x)
    close(y, want, dtype, scale=4)
    # The ratio |x| / y is formed with the rounded y, and raised to p - 1.
    want_dx = oracle.lp_pool_gradient(2, wide, np.asarray(dy, np.float64), p, window, strides)
    if p != math.inf or dtype == "float64":
        close(pull(dy)[0], want_dx, dtype, scale=8)
    else:
        close(pull(dy)[0], want_dx, dtype)


@pytest.mark.parametrize("p", [1, 2, 3, 4.5, math.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("window, strides", [((3, 3), (2, 2)), ((3, 3), (1, 1)), ((2, 2), (2, 2)), ((1, 3), (1, 2))])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_usual_windows_on_images_of_any_size(window, strides, ceil_mode, dtype, p):
    """Kernels have loops of their own for these, and read whole vectors where rows allow it."""
    for height, width in [(8, 16), (7, 13), (9, 4), (3, 6), (33, 131)]:
        rng = np.random.default_rng(height)
        x = sent.asarray(rng.standard_normal((2, 3, height, width)), dtype)
        kwargs = dict(window=window, strides=strides, ceil_mode=ceil_mode)
        want = oracle.lp_pool(2, np.asarray(x, np.float64), p, **kwargs)
        dy = sent.asarray(rng.standard_normal(want.shape), dtype)
        y, pull = jax.vjp(lambda x, kwargs=kwargs: bj.lp_pool2d(x, p, **kwargs, implementation="native"), x)
        close(y, want, dtype, scale=4)
        want_dx = oracle.lp_pool_gradient(2, np.asarray(x, np.float64), np.asarray(dy, np.float64), p, **kwargs)
        close(pull(dy)[0], want_dx, dtype, scale=16)


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
@pytest.mark.parametrize("window, strides", [(2, 2), (3, 2), (4, 2), (5, 3)])
@pytest.mark.parametrize("length", [9, 64, 1023])
def test_usual_windows_on_lines(length, window, strides, p):
    rng = np.random.default_rng(length)
    x = sent.asarray(rng.standard_normal((2, 3, length)))
    want = oracle.lp_pool(1, np.asarray(x), p, window, strides)
    dy = rng.standard_normal(want.shape)
    y, pull = jax.vjp(lambda x: bj.lp_pool1d(x, p, window, strides, implementation="native"), x)
    close(y, want, "float64", scale=4)
    close(
        pull(sent.asarray(dy))[0],
        oracle.lp_pool_gradient(1, np.asarray(x), dy, p, window, strides),
        "float64",
        scale=16,
    )


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("p", POWERS)
def test_zeros_have_no_gradient(p, implementation):
    x = sent.zeros((1, 1, 4, 4)).at[0, 0, 0, 0].set(-2.0)
    fun = lambda x: bj.lp_pool2d(x, p, 2, implementation=implementation)
    np.testing.assert_allclose(fun(x), [[[[2, 0], [0, 0]]]], rtol=1e-14)
    want = np.zeros((1, 1, 4, 4))
    want[0, 0, 0, 0] = -1
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: fun(x).sum()))(x), want, rtol=1e-14)
    assert np.isfinite(jax.jit(jax.hessian(lambda x: fun(x).sum()))(x)).all()


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_the_first_of_tied_maxima_takes_the_gradient(implementation):
    x = sent.asarray([[[1.0, -3, 3, 3, 2, -2, 2]]])
    y, pull = jax.vjp(lambda x: bj.lp_pool1d(x, math.inf, 3, 2, implementation=implementation), x)
    np.testing.assert_array_equal(y, [[[3, 3, 2]]])
    np.testing.assert_array_equal(pull(sent.asarray([[[1.0, 10, 100]]]))[0], [[[0, -1, 10, 0, 100, 0, 0]]])


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("p", POWERS)
def test_nan_and_infinity_propagate(p, dtype, implementation):
    x = sent.asarray([[[1, np.nan, 2, 0, np.inf, 3, 4, 5, -np.inf, np.nan]]], dtype)
    y = bj.lp_pool1d(x, p, 2, implementation=implementation)
    np.testing.assert_array_equal(np.isnan(np.asarray(y, float)), [[[1, 0, 0, 0, 1]]])
    assert np.asarray(y, float)[0, 0, 2] == np.inf


def test_the_maximum_of_a_nan_window_sends_its_gradient_to_the_first_nan():
    x = sent.asarray([[[1.0, np.nan, 5, np.nan]]])
    for implementation in ("native", "xla"):
        grad = jax.jit(jax.grad(lambda x: bj.lp_pool1d(x, math.inf, 4, implementation=implementation).sum()))(x)
        np.testing.assert_array_equal(grad, [[[0, 1, 0, 0]]])


def test_extreme_magnitudes_have_a_gradient():
    """The ratio |x| / y stays in range where powers of y would not."""
    for scale in (1e-11, 1e11):
        x = sent.asarray([[[3.0, -4.0, 1.0, 2.0]]], jnp.float32) * scale
        grad = jax.jit(jax.grad(lambda x: bj.lp_pool1d(x, 3, 2, implementation="native").sum()))(x)
        want = oracle.lp_pool_gradient(1, np.asarray(x), np.ones((1, 1, 2)), 3, 2)
        np.testing.assert_allclose(grad, want, rtol=1e-5)


def test_the_batch_may_be_left_out():
    x = sent.asarray(np.random.default_rng(1).standard_normal((2, 3, 8, 9)))
    np.testing.assert_array_equal(bj.lp_pool2d(x[0], 2, 2), bj.lp_pool2d(x, 2, 2)[0])


def test_shapes_are_torchs():
    torch = pytest.importorskip("torch")
    for size in range(1, 12):
        x = jax.ShapeDtypeStruct((1, 1, size), jnp.float32)
        for window in range(1, size + 1):
            for stride in range(1, 6):
                for ceil_mode in (False, True):
                    theirs = torch.nn.functional.lp_pool1d(torch.ones(1, 1, size), 2, window, stride, ceil_mode)
                    got = jax.eval_shape(lambda x: bj.lp_pool1d(x, 2, window, stride, ceil_mode=ceil_mode), x)
                    assert got.shape == tuple(theirs.shape), (size, window, stride, ceil_mode)
