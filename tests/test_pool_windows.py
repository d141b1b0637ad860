"""Maxima and averages of windows, and maxima that are put back: at any shape, at the edges, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close
from hypothesis import given
from hypothesis import strategies as st
from oracles import pool as oracle
from programs import wide

import baracuda_jax as bj

FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
NAN, INF = np.nan, np.inf
both = pytest.mark.parametrize("implementation", ["native", "xla"])


def _array(data, rank, most, is_last):
    size = [data.draw(st.integers(1, most)) for _ in range(rank)]
    batch, channels = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 19 if is_last else 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    x = rng.integers(-9, 9, (batch, *size, channels) if is_last else (batch, channels, *size)) / 4  # with ties
    return size, np.where(rng.random(x.shape) < data.draw(st.sampled_from([0, 0.1])), -INF, x), rng


def _compared(fun, x, dy, want, want_dx):
    """Values and gradients of both implementations."""
    for implementation in ("native", "xla"):
        y, pull = jax.vjp(functools.partial(fun, implementation=implementation), sent.asarray(x))
        close(y, want, "float64", scale=10)
        close(pull(sent.asarray(dy))[0], want_dx, "float64", scale=100)


def _at_index(index, dy, shape, data_format):
    """The gradient of maxima."""
    first = lambda a: np.moveaxis(a, -1, 1) if not data_format.startswith("NC") else a
    index, dy = first(index), first(dy)
    size = [shape[i] for i in (range(2, len(shape)) if data_format.startswith("NC") else range(1, len(shape) - 1))]
    dx = np.zeros((*dy.shape[:2], int(np.prod(size)) + 1))
    for b in np.ndindex(*dy.shape[:2]):
        np.add.at(dx[b], index[b].ravel(), dy[b].ravel())
    dx = dx[..., :-1].reshape(*dy.shape[:2], *size)
    return dx if data_format.startswith("NC") else np.moveaxis(dx, 1, -1)


def _windows(data, size):
    """Of what fits into the padded array; dilated ones may be wholly in the padding."""
    draw = lambda low, high: data.draw(st.integers(low, high))
    window = tuple(draw(1, n + 1) for n in size)
    how = dict(
        window=window,
        strides=tuple(draw(1, 5) for _ in size),
        padding=tuple((draw(0, k), draw(1, k)) for k in window),
        ceil_mode=data.draw(st.booleans()),
    )
    sizes = zip(size, window, how["padding"], strict=True)
    how["dilation"] = tuple(draw(1, max((n + sum(p) - 1) // max(k - 1, 1), 1)) for n, k, p in sizes)
    return how


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_windows_in_the_padding_have_the_index_after_the_last(implementation):
    """Also next to each other, in the lanes of a vector."""
    x = sent.ones((1, 2, 1, 19))
    padding = ((0, 1), (0, 1))
    y, index = bj.max_pool2d(x, 1, 1, padding=padding, return_indices=True, implementation=implementation)
    assert (np.asarray(y[:, :, 1]) == -INF).all()
    np.testing.assert_array_equal(index[:, :, 1], np.full((1, 2, 20), 19))


@pytest.mark.parametrize("rank", FORMATS)
@given(st.data())
def test_maxima_of_any_windows(rank, data):
    is_last = data.draw(st.booleans())
    size, x, rng = _array(data, rank, (40, 12, 6)[rank - 1], is_last)
    how = _windows(data, size)
    how["data_format"] = FORMATS[rank][is_last]
    want, index = oracle.max_pool(x, return_indices=True, **how)
    fun = getattr(bj, f"max_pool{rank}d")
    for implementation in ("native", "xla"):
        _, got = fun(sent.asarray(x), **how, return_indices=True, implementation=implementation)
        np.testing.assert_array_equal(got, index)
        assert got.dtype == jnp.int32
    dy = rng.standard_normal(want.shape)
    _compared(functools.partial(fun, **how), x, dy, want, _at_index(index, dy, x.shape, how["data_format"]))


@pytest.mark.parametrize("rank", FORMATS)
@given(st.data())
def test_averages_of_any_windows(rank, data):
    is_last = data.draw(st.booleans())
    size, x, rng = _array(data, rank, (40, 12, 6)[rank - 1], is_last)
    x = np.where(np.isfinite(x), x, 0)
    how = _windows(data, size)
    how |= dict(
        count_include_pad=data.draw(st.booleans()), divisor_override=data.draw(st.sampled_from([None, 3, -0.5])),
        data_format=FORMATS[rank][is_last],
    )  # fmt: skip
    want = oracle.avg_pool(x, **how)
    dy = rng.standard_normal(want.shape)
    fun = functools.partial(getattr(bj, f"avg_pool{rank}d"), **how)
    # The op is linear: <y(t), dy> = <t, dx>.
    for implementation in ("native", "xla"):
        y, pull = jax.vjp(functools.partial(fun, implementation=implementation), sent.asarray(x))
        close(y, want, "float64", scale=10)
        t = rng.standard_normal(x.shape)
        got = (np.asarray(pull(sent.asarray(dy))[0]) * t).sum()
        np.testing.assert_allclose(got, (oracle.avg_pool(t, **how) * dy).sum(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rank", FORMATS)
@given(st.data())
def test_as_many_windows_as_are_asked_for(rank, data):
    is_last = data.draw(st.booleans())
    size, x, rng = _array(data, rank, (70, 20, 7)[rank - 1], is_last)
    out = tuple(data.draw(st.one_of(st.none(), st.just(1), st.integers(0, 2 * n))) for n in size)
    form = FORMATS[rank][is_last]
    want, index = oracle.adaptive_max_pool(x, out, form, return_indices=True)
    fun = functools.partial(getattr(bj, f"adaptive_max_pool{rank}d"), output_size=out, data_format=form)
    dy = rng.standard_normal(want.shape)
    for implementation in ("native", "xla"):
        got = fun(sent.asarray(x), return_indices=True, implementation=implementation)[1]
        np.testing.assert_array_equal(got, index)
    _compared(fun, x, dy, want, _at_index(index, dy, x.shape, form))
    x = np.where(np.isfinite(x), x, 0)
    average = functools.partial(getattr(bj, f"adaptive_avg_pool{rank}d"), output_size=out, data_format=form)
    t = rng.standard_normal(x.shape)
    for implementation in ("native", "xla"):
        y, pull = jax.vjp(functools.partial(average, implementation=implementation), sent.asarray(x))
        close(y, oracle.adaptive_avg_pool(x, out, form), "float64", scale=10)
        got = (np.asarray(pull(sent.asarray(dy))[0]) * t).sum()
        want = (oracle.adaptive_avg_pool(t, out, form) * dy).sum()
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch's


def _torch_vjp(fun, x, dy):
    x = torch.tensor(np.asarray(x, np.float64), requires_grad=True)
    y = fun(x)
    y.backward(torch.tensor(np.asarray(dy, np.float64)))
    return y.detach().numpy(), x.grad.numpy()


USUAL = [(3, 2, 1), (3, 2, 0), (2, 2, 0), (3, 1, 1), (2, 2, 1), (5, 3, 2), (1, 2, 0)]


@pytest.mark.parametrize("window, strides, padding", USUAL)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("data_format, channels", [("NCHW", 3), ("NHWC", 8)])
def test_usual_windows_of_images_of_any_size(window, strides, padding, data_format, channels, ceil_mode, dtype):
    """Kernels have loops of their own for these, and read whole vectors where rows, or channels, allow it."""
    F, is_last = torch.nn.functional, data_format == "NHWC"
    how = dict(ceil_mode=ceil_mode, data_format=data_format, implementation="native")
    first = (lambda fun: lambda x: fun(x.movedim(-1, 1)).movedim(1, -1)) if is_last else lambda fun: fun
    for height, width in [(8, 16), (7, 13), (9, 5), (33, 67)]:
        rng = np.random.default_rng(height)
        shape = (2, height, width, channels) if is_last else (2, channels, height, width)
        x = sent.asarray(rng.standard_normal(shape), dtype)
        windows = window, strides, padding
        calls = {
            "max": (
                lambda x, w=windows: bj.max_pool2d(x, *w, **how),
                first(lambda x, w=windows: F.max_pool2d(x, *w, 1, ceil_mode)),
            ),
            "avg": (
                lambda x, w=windows: bj.avg_pool2d(x, *w, **how),
                first(lambda x, w=windows: F.avg_pool2d(x, *w, ceil_mode)),
            ),
        }
        for fun, theirs in calls.values():
            y, pull = jax.vjp(fun, x)
            dy = sent.asarray(rng.standard_normal(y.shape), dtype)
            want, want_dx = _torch_vjp(theirs, x, dy)
            close(y, want, dtype, scale=4)
            close(pull(dy)[0], want_dx, dtype, scale=8)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_of_dilated_windows_are_pytorchs(rank):
    """By the arguments of `jax.lax.reduce_window`, which has them of sums alone. Means, of which PyTorch has none, are
    depthwise convolutions."""
    rng = np.random.default_rng(rank)
    x = rng.permutation(6 * 11**rank).reshape(2, 3, *(11,) * rank) / 8
    window, strides, dilation = (3, 2, 2)[:rank], (2, 1, 3)[:rank], (2, 4, 3)[:rank]
    F, lead = torch.nn.functional, (1, 1)
    most = lambda x: getattr(F, f"max_pool{rank}d")(x, window, strides, 1, dilation)
    ones = torch.ones((3, 1, *window), dtype=torch.float64)
    total = lambda x: getattr(F, f"conv{rank}d")(x, ones, None, strides, 1, dilation, 3)
    of_torch = {"max": most, "min": lambda x: -most(-x), "add": total}
    for name, nothing in (("max", -INF), ("min", INF), ("add", 0.0)):
        windows = (*lead, *window), (*lead, *strides), ((0, 0), (0, 0), *((1, 1),) * rank)
        fun = functools.partial(
            bj.lax.reduce_window,
            init_value=nothing,
            computation=getattr(jax.lax, name),
            window_dimensions=windows[0],
            window_strides=windows[1],
            padding=windows[2],
            window_dilation=(*lead, *dilation),
        )
        with bj.prefer("native"):
            y, pull = jax.vjp(fun, sent.asarray(x))
            dy = rng.standard_normal(y.shape)
            want, want_dx = _torch_vjp(of_torch[name], x, dy)
            close(y, want, "float64", scale=10)
            close(pull(sent.asarray(dy))[0], want_dx, "float64", scale=10)


@both
def test_large_windows(implementation):
    """Of which lanes, or threads, have parts that are merged."""
    rng = np.random.default_rng(0)
    for shape, out in (
        ((1, 2, 57, 60), (7, 7)),
        ((2, 2, 80, 56), (1, 1)),
        ((1, 2, 50, 70), (3, 2)),
        ((1, 1, 7, 300), (5, 1)),
    ):
        x = rng.permutation(np.prod(shape)).reshape(shape) / 7.0
        for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
            y, pull = jax.vjp(
                lambda x, name=name, out=out: getattr(bj, name)(x, out, implementation=implementation), sent.asarray(x)
            )
            dy = rng.standard_normal(y.shape)
            want, want_dx = _torch_vjp(lambda x, name=name, out=out: getattr(torch.nn.functional, name)(x, out), x, dy)
            close(y, want, "float64", scale=10)
            close(pull(sent.asarray(dy))[0], want_dx, "float64", scale=10)


@both
@pytest.mark.parametrize("rank", [2, 3])
def test_random_windows_are_pytorchs(rank, implementation):
    rng = np.random.default_rng(rank)
    shape = (2, 3, 13, 11, 9)[: rank + 2]
    x, samples = rng.standard_normal(shape), rng.random((2, 3, rank))
    theirs = torch.tensor(samples[..., ::-1].copy() if rank == 2 else samples)
    for window, out in ((2, (6, 5, 4)), (3, (1, 4, 2)), (4, (8, 6, 3))):
        out = out[:rank]
        fun = lambda x, w=window, m=out: getattr(bj, f"fractional_max_pool{rank}d")(
            x, sent.asarray(samples), w, m, implementation=implementation
        )
        y, pull = jax.vjp(fun, sent.asarray(x))
        dy = rng.standard_normal(y.shape)
        of_torch = lambda x, w=window, m=out: getattr(torch.nn.functional, f"fractional_max_pool{rank}d")(
            x, w, m, _random_samples=theirs
        )
        want, want_dx = _torch_vjp(of_torch, x, dy)
        np.testing.assert_array_equal(y, want)
        close(pull(sent.asarray(dy))[0], want_dx, "float64")


@both
def test_maxima_put_back_are_pytorchs(implementation):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 9, 8))
    y, index = bj.max_pool2d(sent.asarray(x), 2, return_indices=True, implementation=implementation)
    fun = lambda y: bj.max_unpool2d(y, index, 2, output_size=(9, 8), implementation=implementation)
    back, pull = jax.vjp(fun, y)
    dy = rng.standard_normal(back.shape)
    theirs = lambda y: torch.nn.functional.max_unpool2d(
        y, torch.tensor(np.asarray(index, np.int64)), 2, output_size=(9, 8)
    )
    want, want_dx = _torch_vjp(theirs, y, dy)
    np.testing.assert_array_equal(back, want)
    np.testing.assert_array_equal(pull(sent.asarray(dy))[0], want_dx)


def test_output_sizes_are_pytorchs():
    shape = lambda fun, x: jax.eval_shape(fun, x).shape
    for size in range(1, 9):
        for window in range(1, 4):
            for stride in range(1, 4):
                for padding in range(window // 2 + 1):
                    for ceil_mode in (False, True):
                        windows = window, stride, padding
                        if size + 2 * padding < window:
                            continue
                        want = torch.nn.functional.max_pool1d(torch.ones(1, 1, size), *windows, 1, ceil_mode).shape
                        got = shape(
                            lambda x, w=windows, c=ceil_mode: bj.max_pool1d(x, *w, ceil_mode=c), sent.ones((1, 1, size))
                        )
                        assert got == tuple(want)


# ---------------------------------------------------------------------------------------------------------------------
# Edges


@both
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_first_nan_is_the_maximum(dtype, implementation):
    x = sent.asarray([[[1, NAN, NAN, 4, -INF, -INF, 3, 3]]], dtype)
    y, index = bj.max_pool1d(x, 2, return_indices=True, implementation=implementation)
    np.testing.assert_array_equal(np.asarray(y, float), [[[NAN, NAN, -INF, 3]]])
    np.testing.assert_array_equal(index, [[[1, 2, 4, 6]]])
    y, index = bj.adaptive_max_pool1d(x, 1, return_indices=True, implementation=implementation)
    np.testing.assert_array_equal(index, [[[1]]])
    dx = jax.grad(lambda x: bj.max_pool1d(x, 3, 1, implementation=implementation).sum())(x)
    np.testing.assert_array_equal(np.asarray(dx, float), [[[0, 2, 1, 1, 0, 0, 2, 0]]])


@both
def test_a_window_in_the_padding_has_no_element(implementation):
    x = sent.asarray([[[5.0]]])
    fun = lambda x: bj.max_pool1d(x, 2, 1, 1, dilation=2, return_indices=True, implementation=implementation)
    y, index = fun(x)
    assert y.tolist() == [[[-INF]]] and index.tolist() == [[[1]]]
    assert jax.grad(lambda x: fun(x)[0].sum())(x).tolist() == [[[0.0]]]
    assert jax.jvp(lambda x: fun(x)[0], (x,), (x,))[1].tolist() == [[[0.0]]]
    back = bj.max_unpool1d(y, index, 1, implementation=implementation)
    assert back.tolist() == [[[0.0]]]
    for counted in (True, False):
        y = bj.avg_pool1d(x, 1, 1, 1, count_include_pad=counted, implementation=implementation)
        assert y.tolist() == [[[0.0, 5, 0]]]


@both
def test_planes_of_more_elements_than_16_bits_count(implementation):
    """The index is kept in 32 bits then; 2^16 elements are the first of these."""
    for n in (2**16 - 1, 2**16, 2**16 + 1):
        x = np.zeros((1, 1, n))
        x[0, 0, -1] = 1
        fun = lambda x: bj.max_pool1d(x, 3, 3, 1, ceil_mode=True, return_indices=True, implementation=implementation)
        assert fun(sent.asarray(x))[1][0, 0, -1] == n - 1
        dx = jax.grad(lambda x, fun=fun: fun(x)[0][0, 0, -1])(sent.asarray(x))
        assert np.flatnonzero(dx).tolist() == [n - 1]


@pytest.mark.parametrize("windows", [(3, 2, 1), (3, 2, 0), (2, 2, 0), (3, 1, 1)])
def test_usual_windows_of_many_elements(windows):
    """On CUDA a thread then has several rows."""
    x = np.random.default_rng(0).standard_normal((71, 1, 117, 256)).astype(np.float32)
    x[:, 0, 5, ::7], x[:, 0, ::9, 3] = NAN, -INF
    sums = functools.partial(bj.avg_pool2d, count_include_pad=False)
    (y, index), mean = (fun(sent.asarray(x), *windows) for fun in (_with_index, sums))
    window, stride, padding = windows
    padded = np.pad(x[:, 0], ((0, 0), (padding,) * 2, (padding,) * 2), constant_values=-INF)
    of = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (1, 2))[:, ::stride, ::stride]
    elements = of.reshape(*of.shape[:3], -1)
    arg = np.where(np.isnan(elements), INF, elements).argmax(-1)
    np.testing.assert_array_equal(y[:, 0], np.take_along_axis(elements, arg[..., None], -1)[..., 0])
    first = [np.arange(n)[:, None] * stride - padding for n in of.shape[1:3]]
    rows, columns = first[0] + arg // window, first[1].T + arg % window
    inside = (rows >= 0) & (columns >= 0)  # of -inf alone it may be the padding's
    np.testing.assert_array_equal(np.where(inside, index[:, 0], 0), np.where(inside, rows * 256 + columns, 0))
    want = torch.nn.functional.avg_pool2d(torch.tensor(x), *windows, count_include_pad=False)
    np.testing.assert_allclose(mean, want, rtol=1e-4, atol=1e-5)


LONG = [("1d", (3, 5, 12547), 7), ("1d", (40, 3, 1001), 10), ("2d", (5, 3, 113, 111), 1), ("2d", (70, 4, 7, 7), 1),
        ("2d", (1, 1, 400, 512), 1), ("3d", (2, 2, 8, 50, 49), 3)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("rank, shape, size", LONG, ids=str)
def test_long_windows_are_pytorchs(rank, shape, size, dtype):
    x = sent.asarray(np.random.default_rng(0).standard_normal(shape), dtype)
    theirs = torch.tensor(wide(x), requires_grad=True)
    for kind in ("avg", "max"):
        name = f"adaptive_{kind}_pool{rank}"
        fun = functools.partial(getattr(bj, name), output_size=size, implementation="native")
        y, pull = jax.vjp(fun, x)
        want = getattr(torch.nn.functional, name)(theirs, size)
        dy = sent.asarray(np.random.default_rng(1).standard_normal(y.shape), dtype)
        (gradient,) = torch.autograd.grad(want, theirs, torch.tensor(wide(dy)))
        tolerance = {"bfloat16": 2e-2, "float32": 2e-5}.get(dtype, 1e-11)
        np.testing.assert_allclose(wide(y), want.detach(), rtol=tolerance, atol=tolerance / 10)
        dx = pull(dy)[0]
        np.testing.assert_allclose(wide(dx), gradient, rtol=tolerance, atol=tolerance / 10)


LARGE = [
    ((3, 5, 17, 19), 2),
    ((2, 12, 40, 41), (3, 2)),
    ((1, 8, 300, 301), 1),
    ((1, 300, 9, 9), 1),
    ((2, 24, 64, 48), 4),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("shape, size", LARGE, ids=str)
def test_large_windows_of_channels_that_are_last_are_pytorchs(shape, size, dtype):
    x = sent.asarray(np.moveaxis(np.random.default_rng(0).standard_normal(shape), 1, -1), dtype)
    first = torch.tensor(np.moveaxis(wide(x), -1, 1).copy())
    how = dict(output_size=size, data_format="NHWC", implementation="native")
    tolerance = {"bfloat16": 2e-2, "float32": 2e-5}.get(dtype, 1e-11)
    mean, (largest, arg) = bj.adaptive_avg_pool2d(x, **how), bj.adaptive_max_pool2d(x, **how, return_indices=True)
    want = np.moveaxis(torch.nn.functional.adaptive_avg_pool2d(first, size).numpy(), 1, -1)
    np.testing.assert_allclose(wide(mean), want, rtol=tolerance, atol=tolerance / 10)
    want = torch.nn.functional.adaptive_max_pool2d(first, size, return_indices=True)
    np.testing.assert_array_equal(wide(largest), np.moveaxis(want[0].numpy(), 1, -1))
    np.testing.assert_array_equal(arg, np.moveaxis(want[1].numpy(), 1, -1))


def _with_index(x, *windows):
    return bj.max_pool2d(x, *windows, return_indices=True)


@both
@pytest.mark.parametrize("plane", [30_000, 30_001, 120_000])
def test_the_last_of_many_at_an_index_is_put_back(plane, implementation):
    """On CUDA in tiles, and by a workspace."""
    rng = np.random.default_rng(0)
    x, index = rng.standard_normal((2, 2, plane // 4)), rng.integers(-3, plane // 3, (2, 2, plane // 4))
    dy, want, want_dx = rng.standard_normal((2, 2, plane)), np.zeros((2, 2, plane)), np.zeros(x.shape)
    for b in np.ndindex(2, 2):
        last = {at: item for item, at in enumerate(index[b]) if at >= 0}
        for at, item in last.items():
            want[b][at], want_dx[b][item] = x[b][item], dy[b][at]
    at = sent.asarray(index, jnp.int32)
    fun = lambda x: bj.max_unpool1d(x, at, 2, output_size=(plane,), implementation=implementation)
    y, pull = jax.vjp(fun, sent.asarray(x))
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(pull(sent.asarray(dy))[0], want_dx)


@both
def test_no_images_and_no_channels(implementation):
    for shape in ((0, 3, 5, 4), (2, 0, 5, 4)):
        x = sent.zeros(shape)
        for fun in (bj.max_pool2d, bj.avg_pool2d, bj.adaptive_max_pool2d, bj.adaptive_avg_pool2d):
            y, pull = jax.vjp(lambda x, fun=fun: fun(x, 2, implementation=implementation), x)
            assert y.shape == (*shape[:2], 2, 2) and pull(y)[0].shape == shape
        samples, index = sent.zeros((*shape[:2], 2)), sent.zeros(shape, jnp.int32)
        assert bj.fractional_max_pool2d(x, samples, 2, 3, implementation=implementation).shape == (*shape[:2], 3, 3)
        assert bj.max_unpool2d(x, index, 2, implementation=implementation).shape == (*shape[:2], 10, 8)


@both
def test_a_mean_is_not_spoilt_by_what_is_outside(implementation):
    x = sent.asarray([[[1.0, INF, 2, NAN, 3, 4]]])
    for fun in (bj.avg_pool1d, lambda x, window, **how: bj.adaptive_avg_pool1d(x, 3, **how)):
        np.testing.assert_array_equal(fun(x, 2, implementation=implementation), [[[INF, NAN, 3.5]]])


@both
def test_samples_of_any_value_stay_in_x(implementation):
    x = sent.asarray(np.arange(49.0).reshape(1, 1, 7, 7))
    for value in (NAN, INF, -INF, -3.0, 1.0, 7.5):
        samples = sent.full((1, 1, 2), value)
        y, pull = jax.vjp(lambda x, u=samples: bj.fractional_max_pool2d(x, u, 3, 3, implementation=implementation), x)
        assert y[0, 0, -1, -1] == 48 and np.isfinite(np.asarray(pull(y)[0])).all()


def test_a_key_draws_the_samples():
    x, key = sent.asarray(np.random.default_rng(0).standard_normal((2, 3, 9, 8))), jax.random.key(3)
    samples = jax.random.uniform(key, (2, 3, 2), x.dtype)
    want = bj.fractional_max_pool2d(x, samples, 2, 5)
    np.testing.assert_array_equal(bj.fractional_max_pool2d(x, key, 2, 5), want)
    np.testing.assert_array_equal(bj.fractional_max_pool2d(x, jax.random.key_data(key), 2, output_ratio=0.63), want)
    each = jax.vmap(lambda key: bj.fractional_max_pool2d(x, key, 2, 5))(jax.random.split(key, 3))
    np.testing.assert_array_equal(each[1], bj.fractional_max_pool2d(x, jax.random.split(key, 3)[1], 2, 5))


def test_names_that_say_what_is_counted():
    x = sent.asarray(np.random.default_rng(0).standard_normal((2, 3, 9)))
    for name, counted in (("avg_pool1d_include_pad", True), ("avg_pool1d_exclude_pad", False)):
        want = bj.avg_pool1d(x, 3, 2, 1, count_include_pad=counted)
        np.testing.assert_array_equal(getattr(bj, name)(x, 3, 2, 1), want)


def test_backward_functions_are_the_gradients():
    rng = np.random.default_rng(0)
    x = sent.asarray(rng.standard_normal((2, 3, 9, 8)))
    samples = sent.asarray(rng.random((2, 3, 2)))

    def pulled(fun):
        y, pull = jax.vjp(fun, x)
        dy = sent.asarray(rng.standard_normal(y.shape))
        return dy, pull(dy)[0]

    index = lambda fun, *args: fun(x, *args, return_indices=True)[1]
    dy, dx = pulled(lambda x: bj.max_pool2d(x, 3, 2, 1))
    np.testing.assert_array_equal(bj.max_pool2d_backward(index(bj.max_pool2d, 3, 2, 1), dy, (9, 8), 3, 2, 1), dx)
    dy, dx = pulled(lambda x: bj.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
    np.testing.assert_array_equal(bj.avg_pool2d_backward(dy, (9, 8), 3, 2, 1, count_include_pad=False), dx)
    dy, dx = pulled(lambda x: bj.adaptive_avg_pool2d(x, (4, 3)))
    np.testing.assert_array_equal(bj.adaptive_avg_pool2d_backward(dy, (9, 8)), dx)
    dy, dx = pulled(lambda x: bj.adaptive_max_pool2d(x, (4, 3)))
    np.testing.assert_array_equal(
        bj.adaptive_max_pool2d_backward(index(bj.adaptive_max_pool2d, (4, 3)), dy, (9, 8)), dx
    )
    dy, dx = pulled(lambda x: bj.fractional_max_pool2d(x, samples, 2, 4))
    args = samples, index(bj.fractional_max_pool2d, samples, 2, 4), dy
    np.testing.assert_array_equal(bj.fractional_max_pool2d_backward(*args, (9, 8), 2), dx)
    at = index(bj.max_pool2d, 2)
    back, pull = jax.vjp(lambda y: bj.max_unpool2d(y, at, 2, output_size=(9, 8)), bj.max_pool2d(x, 2))
    dy = sent.asarray(rng.standard_normal(back.shape))
    np.testing.assert_array_equal(bj.max_unpool2d_backward(at, dy), pull(dy)[0])


IMAGE = np.zeros((1, 1, 8, 8), np.float32)
SAMPLES = np.zeros((1, 1, 2), np.float32)
INDEX = np.zeros((1, 1, 8, 8), np.int32)
REFUSED = [
    ("max_pool2d", ValueError, r"window must fit into x's spatial shape \(8, 8\) with padding", (IMAGE, 9), {}),
    ("max_pool2d", ValueError, "window must fit", (IMAGE, 3, 1, 0), dict(dilation=4)),
    ("max_pool2d", ValueError, "padding must be at least 0, got -1", (IMAGE, 3, 1, -1), {}),
    ("max_pool2d", ValueError, "padding must be one of 'same', 'valid', got 'SAME'", (IMAGE, 3, 1, "SAME"), {}),
    ("max_pool2d", ValueError, "dilation must be at least 1, got 0", (IMAGE, 3), dict(dilation=0)),
    ("max_pool2d", TypeError, "return_indices must be True or False, got 1", (IMAGE, 3), dict(return_indices=1)),
    ("max_pool2d", TypeError, "x must have one of the dtypes.*got int32", (INDEX, 3), {}),
    ("max_pool2d_backward", ValueError, r"dy must have the spatial shape of the result, \(4, 4\), got \(8, 8\)", (INDEX, IMAGE, 8, 2), {}),
    ("max_pool2d_backward", ValueError, "index must have shape", (INDEX[..., :4], IMAGE, 8, 1), {}),
    ("max_pool2d_backward", TypeError, "index must have one of the dtypes int32, uint16, got float32", (IMAGE, IMAGE, 8, 1), {}),
    ("avg_pool2d", ValueError, "divisor_override must be a static number other than 0, or None, got 0", (IMAGE, 3), dict(divisor_override=0)),
    ("avg_pool2d", TypeError, "divisor_override must be a static number", (IMAGE, 3), dict(divisor_override="2")),
    ("avg_pool2d", TypeError, "count_include_pad must be True or False, got 0", (IMAGE, 3), dict(count_include_pad=0)),
    ("adaptive_avg_pool2d", ValueError, r"output_size\[0\] must be at least 0, got -1", (IMAGE, -1), {}),
    ("adaptive_avg_pool2d", ValueError, r"output_size must be an integer or 2 integers, got \(1, 2, 3\)", (IMAGE, (1, 2, 3)), {}),
    ("adaptive_max_pool2d", ValueError, r"x must have spatial sizes of at least 1, got \(0, 8\)", (IMAGE[:, :, :0], 3), {}),
    ("fractional_max_pool2d", ValueError, "either output_size or output_ratio must be given", (IMAGE, SAMPLES, 2), {}),
    ("fractional_max_pool2d", ValueError, "either output_size or output_ratio must be given", (IMAGE, SAMPLES, 2, 3, 0.5), {}),
    ("fractional_max_pool2d", ValueError, "output_ratio must be greater than 0 and less than 1, got 1", (IMAGE, SAMPLES, 2), dict(output_ratio=1)),
    ("fractional_max_pool2d", ValueError, r"samples must have shape \(1, 1, 2\)", (IMAGE, SAMPLES[0], 2, 3), {}),
    ("fractional_max_pool2d", TypeError, "samples must have one of the dtypes.*got int32", (IMAGE, INDEX, 2, 3), {}),
    ("fractional_max_pool2d", ValueError, r"window must fit into x's spatial shape \(8, 8\), got \(9, 9\)", (IMAGE, SAMPLES, 9, 3), {}),
    ("max_unpool2d", ValueError, "index must have shape", (IMAGE, INDEX[0], 2), {}),
    ("max_unpool2d", TypeError, "index must have one of the dtypes.*got float32", (IMAGE, IMAGE, 2), {}),
    ("max_unpool2d", ValueError, "padding must leave a size of at least 0", (IMAGE, INDEX, 2, 1, 9), {}),
]  # fmt: skip


@pytest.mark.parametrize("name, error, match, args, kwargs", REFUSED)
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)
