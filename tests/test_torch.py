"""The ops that the library began with have PyTorch's values and gradients on its CPU, in every dtype that it takes, at random
and at the edges; tests/test_torch_differences.py says where they have not, and why."""

import functools
import itertools
import math

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close
from programs import FLOATS, normal, wide

import baracuda_jax as bj

F = torch.nn.functional
NAN, INF = math.nan, math.inf
both = pytest.mark.parametrize("implementation", ["native", "xla"])
each_float = pytest.mark.parametrize(
    "dtype, implementation", [*itertools.product(FLOATS, ["native"]), ("float32", "xla")]
)


@functools.partial(jax.jit, static_argnums=0)
def _vjp(fun, args, dy):
    y, pull = jax.vjp(fun, *args)
    return y, *pull(dy)


def _agree(function, theirs, args, dtype, scale=1.0, exact=False):
    """Values and gradients, those of a random cotangent."""
    dy = normal(jax.eval_shape(function, *args).shape, dtype, 1)
    want, gradients = by_torch.vjp(theirs, args, dy)
    for got, expected in zip(_vjp(function, args, dy), (want, *gradients), strict=True):
        assert got.dtype == jnp.dtype(dtype)
        if exact:
            np.testing.assert_array_equal(wide(got), expected)
        else:
            close(got, expected, dtype, scale)


# ---------------------------------------------------------------------------------------------------------------------
# LP pooling, where the two definitions agree: of values that are not negative, or for an even power; of whole windows


POOLS = {
    1: (bj.lp_pool1d, F.lp_pool1d, (2, 3, 11)),
    2: (bj.lp_pool2d, F.lp_pool2d, (2, 3, 9, 7)),
    3: (bj.lp_pool3d, F.lp_pool3d, (1, 2, 7, 5, 6)),
}


def _pools(rank, p, window, strides, implementation, **kwargs):
    function, theirs, _ = POOLS[rank]
    return (
        lambda x: function(x, p, window, strides, implementation=implementation, **kwargs),
        lambda x: theirs(x, p, window, strides, **kwargs),
    )


@each_float
@pytest.mark.parametrize("rank", POOLS)
def test_lp_pool_is_torchs(rank, dtype, implementation):
    """Half types, in which PyTorch rounds each of five steps, are compared more loosely."""
    if rank == 3 and dtype in ("float16", "bfloat16"):
        pytest.skip("PyTorch has no lp_pool3d of half types")
    for p, window, strides in ((1, 2, 3), (1.5, 3, 2), (2, 3, 2), (INF, 3, 2)):
        if p == INF and not by_torch.has_infinite_norms:
            continue
        x = normal(POOLS[rank][2], dtype)
        x = x if p in (2, INF) else jnp.abs(x) + sent.asarray(0.1, dtype)
        _agree(*_pools(rank, p, window, strides, implementation), [x], dtype, scale=10)


@each_float
def test_lp_pool_is_torchs_at_the_edges(dtype, implementation):
    """NaN, infinities and zeros; windows and arrays of one element; no batches; a last window that is dropped."""
    x = sent.asarray([[[NAN, 1, INF, 1, INF, INF, -INF, 2, 3, 0, 0, 0, -0.0, -4]]], dtype)
    _agree(*_pools(1, 2, 2, None, implementation), [x], dtype)
    for shape, window in (((2, 3, 1, 1), 1), ((1, 1, 2, 2), 2), ((0, 3, 4, 4), 2)):
        _agree(*_pools(2, 2, window, 1, implementation), [normal(shape, dtype)], dtype, scale=4)
    _agree(*_pools(2, 2, 2, 4, implementation, ceil_mode=True), [normal((2, 3, 4, 6), dtype)], dtype, scale=4)


# ---------------------------------------------------------------------------------------------------------------------
# repeat


def _repeats():
    yield from [((3, 4), (2, 5)), ((6,), (3, 2)), ((2, 3, 5), (1, 4, 2)), ((2, 2), (0, 3)), ((4, 1), (2, 3, 300))]
    yield from [((), (3,)), ((1,), (1,)), ((0, 3), (2, 2)), ((2, 1, 3), (1, 1, 1))]


@each_float
def test_repeat_is_torchs(dtype, implementation):
    for shape, repeats in _repeats():
        x = normal(shape, dtype)
        x = x.at[(0,) * x.ndim].set(NAN) if x.size > 1 else x
        function = functools.partial(bj.repeat, repeats=repeats, implementation=implementation)
        _agree(function, lambda t, r=repeats: t.repeat(r), [x], dtype)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"])
def test_repeat_is_torchs_in_other_dtypes(dtype):
    for shape, repeats in _repeats():
        x = np.random.default_rng(0).integers(0, 100, shape)
        x = (x + 1j * x[::-1] if "complex" in dtype and x.ndim else x).astype(dtype)
        y = bj.repeat(sent.asarray(x), repeats, implementation="native")
        np.testing.assert_array_equal(y, by_torch.tensor(x).repeat(repeats).numpy())
        if "complex" in dtype:
            theirs = by_torch.tensor(x).requires_grad_()
            theirs.repeat(repeats).backward(by_torch.tensor(y))
            got = bj.repeat_backward(y, repeats, shape, implementation="native")
            np.testing.assert_allclose(got, theirs.grad.numpy(), rtol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# Ops that move elements


def _moves(implementation):
    """(function, theirs, the shape of x) of each op; where there are several, with other parameters too."""
    of = lambda name, *args, **kwargs: lambda x: getattr(bj, name)(x, *args, **kwargs, implementation=implementation)
    window = dict(kernel_size=(3, 2), dilation=(1, 2), padding=(1, 0), stride=(2, 1))
    around = ((0, 0), (0, 0), (1, 2), (3, 0))
    yield of("flip", (0, 2)), lambda t: t.flip(0, 2), (3, 4, 5)
    yield of("roll", (2, -9), (0, 1)), lambda t: t.roll((2, -9), (0, 1)), (3, 4, 5)
    yield of("roll", 7), lambda t: t.roll(7), (3, 4)
    yield of("permute", (2, 0, 1)), lambda t: t.permute(2, 0, 1), (3, 4, 5)
    yield of("triu", 1), lambda t: t.triu(1), (2, 5, 4)
    yield of("tril", -1), lambda t: t.tril(-1), (2, 5, 4)
    yield of("pad", around, constant_values=2), lambda t: F.pad(t, (3, 0, 1, 2), value=2), (2, 3, 4, 5)
    yield of("pad", ((-1, 2), (1, -2))), lambda t: F.pad(t, (1, -2, -1, 2)), (4, 5)
    for mode in ("reflect", "replicate", "circular"):
        yield of("pad", around, mode), lambda t, mode=mode: F.pad(t, (3, 0, 1, 2), mode), (2, 3, 4, 5)
    less = ((0, 0), (0, 0), (-1, 2), (3, -2))
    yield of("pad", less, "circular"), lambda t: F.pad(t, (3, -2, -1, 2), "circular"), (2, 3, 4, 5)
    parameters = dict(window=(3, 2), strides=(2, 1), padding=(1, 0), dilation=(1, 2))
    yield of("unfold", **parameters), lambda t: F.unfold(t, **window), (2, 3, 7, 6)
    yield of("fold", (7, 6), **parameters), lambda t: F.fold(t, (7, 6), **window), (2, 18, 16)
    yield of("pixel_shuffle", 2), lambda t: F.pixel_shuffle(t, 2), (2, 8, 3, 2)
    yield of("pixel_unshuffle", 3), lambda t: F.pixel_unshuffle(t, 3), (2, 2, 3, 6)
    yield of("channel_shuffle", 3), lambda t: F.channel_shuffle(t, 3), (2, 6, 3, 2)
    times = np.array([2, 0, 3])
    yield (
        of("repeat_interleave", times, 0, total_repeat_length=5),
        lambda t: t.repeat_interleave(torch.tensor(times), 0),
        (3, 4),
    )
    yield of("repeat_interleave", 3, 1), lambda t: t.repeat_interleave(3, 1), (3, 4)


@each_float
def test_moves_are_torchs(dtype, implementation):
    """Gradients are sums of few elements, which PyTorch rounds one by one in half precisions."""
    for function, theirs, shape in _moves(implementation):
        x = normal(shape, dtype)
        x = x.at[(0,) * x.ndim].set(NAN).at[(-1,) * x.ndim].set(INF)
        _agree(function, theirs, [x], dtype, scale=4)


@both
def test_joined_and_written_arrays_are_torchs(implementation):
    xs = [normal((3, n, 2), "float32", n) for n in (1, 4, 2)]
    _agree(lambda *xs: bj.concat(xs, 1, implementation=implementation), lambda *ts: torch.cat(ts, 1), xs, "float32")
    x, update = normal((4, 6), "float32"), normal((2, 6), "float32", 1)
    write = lambda x, update: bj.dynamic_update_slice(x, update, (1, 0), implementation=implementation)
    _agree(write, lambda t, u: t.slice_scatter(u, 0, 1, 3), [x, update], "float32")
    for got, want in zip(
        bj.meshgrid(xs[0].ravel(), xs[2].ravel(), indexing="ij", implementation=implementation),
        torch.meshgrid(by_torch.tensor(xs[0].ravel()), by_torch.tensor(xs[2].ravel()), indexing="ij"),
        strict=True,
    ):
        np.testing.assert_array_equal(got, want.numpy())


# ---------------------------------------------------------------------------------------------------------------------
# Scans


SCANS = {
    "cumsum": torch.cumsum,
    "cumprod": torch.cumprod,
    "cummax": lambda x, axis: torch.cummax(x, axis).values,
    "cummin": lambda x, axis: torch.cummin(x, axis).values,
    "logcumsumexp": torch.logcumsumexp,
}
SLICES = [((5, 40), 1), ((40, 5), 0), ((3, 20, 4), -2), ((30,), 0), ((1, 1), 1), ((0, 3), 0)]


@each_float
@pytest.mark.parametrize("name", SCANS)
def test_scans_are_torchs(name, dtype, implementation):
    """Of values that do not tie. PyTorch forms the gradients of half types in steps, each rounded."""
    for shape, axis in SLICES:
        x = np.random.default_rng(0).permutation(np.linspace(-1.5, 1.5, math.prod(shape))).reshape(shape)
        x = sent.asarray(x + (1 if name == "cumprod" else 0) / 2, dtype)
        function = functools.partial(getattr(bj, name), axis=axis, implementation=implementation)
        half = dtype in ("float16", "bfloat16")
        _agree(function, lambda t, axis=axis: SCANS[name](t, axis), [x], dtype, scale=10 if half else 4)


@each_float
@pytest.mark.parametrize("name", SCANS)
def test_scans_are_torchs_at_the_edges(name, dtype, implementation):
    """Every four of NaN, infinities, zeros and numbers; gradients of products where factors are zero."""
    x = np.array(list(itertools.product([NAN, INF, -INF, 0.0, -0.0, 2.0, -3.0], repeat=4)))
    y = getattr(bj, name)(sent.asarray(x, dtype), 1, implementation=implementation)
    close(y, by_torch.numbers(SCANS[name](by_torch.tensor(sent.asarray(x, dtype)), 1)), dtype)
    if name == "cumprod":
        x = sent.asarray(list(itertools.product([0.0, 2.0, -3.0], repeat=4)), dtype)
        _agree(lambda x: bj.cumprod(x, 1, implementation=implementation), lambda t: torch.cumprod(t, 1), [x], dtype)


@both
def test_indices_of_extrema_are_torchs(implementation):
    x = np.random.default_rng(0).standard_normal((7, 50))
    for name in ("cummax", "cummin"):
        index = getattr(bj, name)(sent.asarray(x), 1, return_indices=True, implementation=implementation)[1]
        np.testing.assert_array_equal(index, getattr(torch, name)(torch.tensor(x), 1).indices.numpy())


# ---------------------------------------------------------------------------------------------------------------------
# Searches, counts and positions


def _rounded(shape, dtype, seed=0):
    """With values that tie."""
    return jnp.round(2 * normal(shape, seed=seed)).astype(dtype) / sent.asarray(2, dtype)


@each_float
def test_searches_are_torchs(dtype, implementation):
    for shape, many in (((40,), (3, 5, 2)), ((3, 40), (3, 17)), ((2, 3, 9), (2, 3, 5))):
        sequence, values = jnp.sort(_rounded(shape, dtype), -1), _rounded(many, dtype, 1)
        values = values.at[..., 0].set(NAN)
        for side in ("left", "right"):
            theirs = torch.searchsorted(by_torch.tensor(sequence), by_torch.tensor(values), side=side)
            got = bj.searchsorted(sequence, values, side=side, implementation=implementation)
            np.testing.assert_array_equal(got, theirs.numpy())
    sequence = by_torch.tensor(sequence[0, 0])
    for right in (False, True):
        theirs = torch.bucketize(by_torch.tensor(values), sequence, right=not right)
        np.testing.assert_array_equal(bj.digitize(values, sent.asarray(sequence.float().numpy(), dtype), right), theirs)


@both
def test_counts_are_torchs(implementation):
    x, w = np.random.default_rng(0).integers(0, 9, 200), normal((200,))
    np.testing.assert_array_equal(
        bj.bincount(x, implementation=implementation), torch.bincount(torch.tensor(x)).numpy()
    )
    theirs = torch.bincount(torch.tensor(x), by_torch.tensor(w), 12).numpy()
    close(bj.bincount(x, w, length=12, implementation=implementation), theirs, "float64")


@both
def test_histograms_are_torchs(implementation):
    a, w = normal((30, 5)), jnp.abs(normal((30, 5), seed=1))
    edges = sent.asarray([-1.0, -0.5, 0.25, 2.0])
    for density in (False, True):
        for bins, how in ((edges, {}), (8, {"range": (-2.0, 2.0)})):
            theirs = by_torch.tensor(bins) if bins is edges else bins
            for weights in (None, w):
                weigh = {} if weights is None else {"weight": by_torch.tensor(weights)}
                want = torch.histogram(by_torch.tensor(a), theirs, density=density, **how, **weigh)
                got = bj.histogram(a, bins, **how, weights=weights, density=density, implementation=implementation)
                for x, y in zip(got, want, strict=True):
                    close(x, y.numpy(), "float64")
    theirs = torch.histogramdd(by_torch.tensor(a[:, :2]), [4, 3], range=[-2.0, 2, -1, 1])
    got = bj.histogramdd(a[:, :2], [4, 3], [(-2, 2), (-1, 1)], implementation=implementation)
    close(got[0], theirs[0].numpy(), "float64")


@each_float
def test_positions_and_values_are_torchs(dtype, implementation):
    x = _rounded((6, 9), dtype)
    theirs = torch.nonzero(by_torch.tensor(x), as_tuple=True)
    for got, want in zip(bj.nonzero(x, implementation=implementation), theirs, strict=True):
        np.testing.assert_array_equal(got, want)
    how = dict(return_inverse=True, return_counts=True)
    for name, more in (
        ("unique", {}),
        ("unique_consecutive", {}),
        ("unique", {"dim": 1}),
        ("unique_consecutive", {"dim": 0}),
    ):
        x = x if not more else jnp.repeat(jnp.round(x), 2, more["dim"])
        theirs = getattr(torch, name)(by_torch.tensor(x), **how, **more)
        axis = {"axis": more["dim"]} if more else {}
        for got, want in zip(getattr(bj, name)(x, **how, **axis, implementation=implementation), theirs, strict=True):
            np.testing.assert_array_equal(wide(got), by_torch.numbers(want))


# ---------------------------------------------------------------------------------------------------------------------
# Sorts


SORTED = {
    "sort": (lambda x, **how: bj.sort(x, **how), lambda t: torch.sort(t, stable=True).values),
    "descending": (
        lambda x, **how: bj.sort(x, descending=True, **how),
        lambda t: torch.sort(t, stable=True, descending=True).values,
    ),
    "msort": (bj.msort, torch.msort),
    "topk": (lambda x, **how: bj.topk(x, 3, **how)[0], lambda t: torch.topk(t, 3).values),
    "smallest": (
        lambda x, **how: bj.topk(x, 3, largest=False, **how)[0],
        lambda t: torch.topk(t, 3, largest=False).values,
    ),
    "kthvalue": (lambda x, **how: bj.kthvalue(x, 4, **how)[0], lambda t: torch.kthvalue(t, 4).values),
}


@each_float
@pytest.mark.parametrize("name", SORTED)
def test_sorts_are_torchs(name, dtype, implementation):
    """Values and gradients, of values that do not tie."""
    function, theirs = SORTED[name]
    for shape in ((5, 40), (3, 4, 20), (50,)):
        x = np.random.default_rng(0).permutation(np.arange(math.prod(shape)) - 99.0).reshape(shape)
        _agree(
            functools.partial(function, implementation=implementation),
            theirs,
            [sent.asarray(x / 4, dtype)],
            dtype,
            exact=True,
        )


@both
def test_sorts_are_torchs_at_the_edges(implementation):
    """NaN, infinities, zeros of both signs and ties: values and indices, ascending and descending."""
    x = np.random.default_rng(0).choice([NAN, INF, -INF, 0.0, -0.0, 2.0, -3.0], (20, 30))
    t = torch.tensor(x)
    for descending in (False, True):
        want = torch.sort(t, stable=True, descending=descending)
        values = bj.sort(sent.asarray(x), descending=descending, implementation=implementation)
        np.testing.assert_array_equal(values, want.values.numpy())
        np.testing.assert_array_equal(np.signbit(values), np.signbit(want.values.numpy()))
        indices = bj.argsort(sent.asarray(x), descending=descending, implementation=implementation)
        np.testing.assert_array_equal(indices, want.indices.numpy())
        values = bj.topk(sent.asarray(x), 7, largest=descending, implementation=implementation)[0]
        np.testing.assert_array_equal(values, torch.topk(t, 7, largest=descending).values.numpy())
    for k in (1, 15, 30):
        values = bj.kthvalue(sent.asarray(x), k, implementation=implementation)[0]
        np.testing.assert_array_equal(values, torch.kthvalue(t, k).values.numpy())
    for name in ("argmax", "argmin"):
        index = getattr(bj, name)(sent.asarray(x), 1, implementation=implementation)
        np.testing.assert_array_equal(index, getattr(torch, name)(t, 1).numpy())


@both
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles_are_torchs(method, implementation):
    x = normal((6, 31))
    for name, a in (("quantile", x), ("nanquantile", x.at[:, ::5].set(NAN))):
        for q in (0.1, 0.41, [0.0, 0.37, 1.0]):  # none half-way, where PyTorch's nearest is the even one
            function = lambda x, name=name, q=q: getattr(bj, name)(
                x, sent.asarray(q), 1, method=method, implementation=implementation
            )
            theirs = lambda t, name=name, q=q: getattr(torch, name)(
                t, torch.tensor(q, dtype=t.dtype), 1, interpolation=method
            )
            _agree(function, theirs, [a], "float64")


# ---------------------------------------------------------------------------------------------------------------------
# lerp; every layout is in tests/test_elementwise.py


@each_float
def test_lerp_is_torchs(dtype, implementation):
    rng = np.random.default_rng(0)
    for shapes in (((5, 9), (5, 9), (9,)), ((5, 9), (1, 9), (5, 1)), ((1,), (1,), ()), ((0, 3), (3,), ())):
        args = [sent.asarray(rng.uniform(-2, 2, shape), dtype) for shape in shapes]
        _agree(functools.partial(bj.lerp, implementation=implementation), torch.lerp, args, dtype, scale=2)


@each_float
def test_lerp_is_torchs_at_the_edges(dtype, implementation):
    """Every three of NaN, infinities, both zeros and numbers, to the bit except for the sign of zero."""
    edges = [NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0, 0.5]
    args = [sent.asarray(a, dtype) for a in np.array(list(itertools.product(edges, repeat=3))).T]
    dy = sent.ones_like(args[0])
    want, gradients = by_torch.vjp(torch.lerp, args, dy)
    for got, expected in zip(
        _vjp(functools.partial(bj.lerp, implementation=implementation), args, dy), (want, *gradients), strict=True
    ):
        np.testing.assert_array_equal(wide(got), expected)


# ---------------------------------------------------------------------------------------------------------------------
# Quantization with a scale for each channel


def _channels(shape, axis, dtype, powers):
    """Values up to and past the ends of the range. PyTorch multiplies by 1 / scale: either scales are powers of two, or
    values are between the ties."""
    rng = np.random.default_rng(3)
    n = shape[axis]
    scale = 2.0 ** rng.integers(-6, -3, n) if powers else rng.uniform(0.02, 0.1, n).astype(np.float32)
    steps = rng.integers(-200, 200, shape) + (rng.choice([0, 0.25, 0.5], shape) if powers else 0)
    expanded = np.ones(len(shape), int)
    expanded[axis] = n
    x = steps * scale.reshape(expanded)
    return sent.asarray(x, dtype), sent.asarray(scale, jnp.float32), 2 * rng.integers(-2, 3, n)


CHANNELS = [((7,), 0), ((5, 6), 0), ((5, 6), 1), ((3, 4, 5), -2), ((2, 3, 2, 2, 3), 1), ((1, 1), 1)]


@both
@pytest.mark.parametrize("code, theirs", [("int8", torch.qint8), ("uint8", torch.quint8)], ids=["int8", "uint8"])
def test_quantize_per_channel_and_back_is_torchs(code, theirs, implementation):
    for (shape, axis), powers in itertools.product(CHANNELS, (True, False)):
        x, scale, zero = _channels(shape, axis, "float32", powers)
        zero = np.abs(zero) if code == "uint8" else zero
        q = bj.quantize_per_channel(x, scale, sent.asarray(zero), axis, code, implementation=implementation)
        want = by_torch.quantized(x, scale, zero, axis % len(shape), theirs)
        np.testing.assert_array_equal(q, want.int_repr().numpy())
        y = bj.dequantize_per_channel(q, scale, sent.asarray(zero), axis, implementation=implementation)
        np.testing.assert_array_equal(y, want.dequantize().numpy())


@both
def test_quantize_per_channel_is_torchs_at_the_edges(implementation):
    x = sent.asarray([[INF, -INF, 3e38, -3e38, 0.0, -0.0, 1e-45, 0.5, 1.5, -0.5, 127.5, -128.5]] * 2, jnp.float32)
    zero = np.array([0, 10])
    q = bj.quantize_per_channel(x, sent.ones(2), sent.asarray(zero), 0, implementation=implementation)
    np.testing.assert_array_equal(q, by_torch.quantized(x, np.ones(2), zero, 0, torch.qint8).int_repr().numpy())


@each_float
def test_fake_quantize_per_channel_is_torchs(dtype, implementation):
    for (shape, axis), powers in itertools.product(CHANNELS, (True, False)):
        if not powers and dtype in ("float16", "bfloat16"):
            continue  # rounding makes ties of them
        x, scale, zero = _channels(shape, axis, dtype, powers)
        function = lambda x, s=scale, z=zero, a=axis: bj.fake_quantize(
            x, s, sent.asarray(z), -100, 90, axis=a, implementation=implementation
        )
        params = by_torch.tensor(scale), torch.tensor(zero, dtype=torch.int32), axis % len(shape), -100, 90
        _agree(function, lambda t, p=params: torch.fake_quantize_per_channel_affine(t, *p), [x], dtype)


@each_float
def test_fake_quantize_per_channel_is_torchs_at_the_edges(dtype, implementation):
    """Zeros, ties, the ends of the range and what is just past them; also with odd zero points, and without elements."""
    edges = sent.asarray([[0.0, -0.0, 0.5, 1.5, -0.5, -1.5, 117.0, 118.0, -137.0, -138.0, -139.0, 1000.0]] * 2, dtype)
    for x, zero in ((edges, [0, 10]), (edges, [9, -7]), (edges[:, :1], [0, 1]), (edges[:, :0], [0, 1])):
        function = lambda x, z=zero: bj.fake_quantize(
            x, sent.ones(2), sent.asarray(z), axis=0, implementation=implementation
        )
        params = torch.ones(2), torch.tensor(zero, dtype=torch.int32), 0, -128, 127
        _agree(function, lambda t, p=params: torch.fake_quantize_per_channel_affine(t, *p), [x], dtype, exact=True)


# ---------------------------------------------------------------------------------------------------------------------
# Segment maxima, with ties as PyTorch has them


@each_float
def test_segment_max_is_torchs(dtype, implementation):
    """Gradients are quotients by the number of ties."""
    rng = np.random.default_rng(0)
    data, ids = sent.asarray(rng.integers(-3, 4, (60, 3)), dtype), rng.integers(0, 5, 60)
    index = torch.tensor(ids)[:, None].expand(60, 3)

    def theirs(x):
        return x.new_zeros(5, 3).scatter_reduce(0, index, x, "amax", include_self=False)

    function = functools.partial(
        bj.segment_max, segment_ids=sent.asarray(ids), num_segments=5, ties="split", implementation=implementation
    )
    _agree(function, theirs, [data], dtype)
