"""Image ops compared with PyTorch's, at the edges: positions on elements and outside, axes of size 1, NaN, boxes of no area; what
they refuse; and that gradients of interpolation gather."""

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
from oracles import image as oracle
from programs import FLOATS, normal

import baracuda_jax as bj
from baracuda_jax.image._resample import _are_scaled, _common, _operands
from baracuda_jax.image._taps import taps

NAN, INF = math.nan, math.inf
F = torch.nn.functional


# ---------------------------------------------------------------------------------------------------------------------
# Tables of taps


def _matrix(table):
    found = np.zeros((len(table.index), table.size))
    np.add.at(found, (np.arange(len(table.index))[:, None], table.index), table.weight)
    return found


def _torch_matrix(mode, n, dtype, antialias=False, **how):
    """What PyTorch makes of each row of the identity, along the last axis."""
    eye = torch.eye(n, dtype=getattr(torch, dtype))[:, None]
    if mode in ("bilinear", "bicubic"):
        eye = eye[:, :, None]
        how |= {key: (1, how[key]) for key in ("size", "scale_factor") if how.get(key)}
    if mode in ("nearest", "nearest-exact", "area"):
        how.pop("align_corners", None)
    return F.interpolate(eye, mode=mode, antialias=antialias, **how).reshape(n, -1).numpy().T


MODES = (
    "nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic", "bilinear antialias", "bicubic antialias",
)  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_taps_of_every_size_are_torchs(mode, dtype):
    """Larger, smaller, the same and of one element; by size and by scale; with and without corners. The transposed taps are the
    transposed matrix."""
    mode, _, antialias = mode.partition(" ")
    corners = (False, True) if mode.startswith(("linear", "bi")) else (False,)
    for n, align in itertools.product((1, 2, 3, 5, 8, 13, 32), corners):
        ways = [(out, None) for out in (1, 2, 3, 5, 8, 9, 16, 41)]
        ways += [(math.floor(n * s), s) for s in (0.3, 0.5, 0.77, 1.15, 2.0, 3.3) if n * s >= 1]
        for out, scale in ways:
            how = dict(scale_factor=scale) if scale else dict(size=out)
            want = _torch_matrix(mode, n, dtype, bool(antialias), align_corners=align, **how)
            table = taps(mode, n, out, scale, align, bool(antialias), dtype)
            np.testing.assert_allclose(_matrix(table), want, atol=1e-12 if dtype == "float64" else 3e-5)
            np.testing.assert_allclose(_matrix(table.transposed), _matrix(table).T, atol=1e-15)


@pytest.mark.exhaustive
def test_nearest_elements_of_many_sizes_are_torchs():
    """Which of two it is where a position is an integer, or would be without rounding."""
    for mode, dtype in itertools.product(("nearest", "nearest-exact"), ("float32", "float64")):
        for n, out in itertools.product(range(1, 60, 3), range(1, 60)):
            x = torch.arange(n, dtype=getattr(torch, dtype))[None, None]
            want = F.interpolate(x, size=out, mode=mode)[0, 0].numpy()
            np.testing.assert_array_equal(taps(mode, n, out, None, False, False, dtype).index[:, 0], want)


@pytest.mark.exhaustive
def test_equal_tables_are_one_parameter():
    a, b = (taps.__wrapped__("bicubic", 7, 11, None, False, False, "float32") for _ in range(2))
    other = taps("bicubic", 7, 12, None, False, False, "float32")
    assert a is not b and a == b and hash(a) == hash(b) and a != other and a.transposed != a
    assert a.transposed.transposed.size == 7


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("mode", "n", "out", "scale", "align", "antialias", "taps_of"),
    [
        ("bilinear", 8, 16, None, False, False, (2, 4)),
        ("bilinear", 8, 16, None, True, False, (2, 4)),
        ("bicubic", 8, 16, None, False, False, (4, 8)),
        ("bilinear", 16, 8, None, False, True, (4, 2)),
        ("bicubic", 16, 8, None, False, True, (8, 4)),
        ("bicubic", 8, 16, None, True, False, None),  # taps of weight 0 in the input
        ("bilinear", 112, 224, 2.005, False, False, None),
        ("bilinear", 8, 15, None, False, False, None),
        ("nearest", 8, 16, None, False, False, None),
    ],
)
def test_axes_of_twice_and_half_the_size_are_known(mode, n, out, scale, align, antialias, taps_of):
    table = taps(mode, n, out, scale, align, antialias, "float32")
    pairs = [[table, table], [table.transposed, table.transposed]]
    found = [_common(pair) for pair in pairs]
    assert [_are_scaled(pair, count) for pair, count in zip(pairs, found, strict=True)] == [taps_of is not None] * 2
    assert taps_of is None or found == list(taps_of)
    assert not _are_scaled([table, table.transposed], max(count or 0 for count in found))


# ---------------------------------------------------------------------------------------------------------------------
# Interpolation

RESIZED = {
    "bilinear": ((2, 3, 5, 6), dict(size=(9, 4), mode="bilinear")),
    "nearest": ((2, 2, 5, 4), dict(scale_factor=(1.7, 0.6))),
    "trilinear": ((1, 2, 3, 4, 3), dict(scale_factor=1.6, mode="trilinear")),
    "corners": ((1, 2, 6, 5), dict(size=(4, 9), mode="bicubic", align_corners=True)),
    "twice": ((1, 2, 12, 12), dict(size=24, mode="bicubic")),
    "half": ((1, 2, 16, 24), dict(size=(8, 12), mode="bilinear", antialias=True)),
    "many taps": ((1, 2, 70, 5), dict(size=(3, 6), mode="area")),
    "antialias": ((1, 1, 90, 7), dict(size=(4, 11), mode="bilinear", antialias=True)),
    "recomputed": ((1, 2, 7), dict(scale_factor=2.3, mode="linear", recompute_scale_factor=True)),
    "axes of 1": ((1, 1, 1, 1), dict(size=(3, 2), mode="bicubic")),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", RESIZED)
def test_interpolation_is_torchs(name, dtype):
    shape, how = RESIZED[name]
    x = normal(shape, dtype)
    fun = lambda x: bj.interpolate(x, **how)
    dy = normal(jax.eval_shape(fun, x).shape, dtype, 1)
    want, (gradient,) = by_torch.vjp(lambda x: F.interpolate(x, **how), *_wide([x], dy))
    y, dx = jax.jit(lambda x, dy: (lambda y, pull: (y, pull(dy)[0]))(*jax.vjp(fun, x)))(x, dy)
    assert y.dtype == dx.dtype == x.dtype
    close(y, want, dtype)
    close(dx, gradient, dtype, scale=2)


def _wide(args, dy):
    """The same numbers in float64: PyTorch's half precisions are rounded more often."""
    return [np.asarray(a).astype(np.float64) for a in args], np.asarray(dy).astype(np.float64)


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_gradients_of_interpolation_gather(implementation):
    """Of any order, and in batches: nothing is scattered."""
    x = jax.ShapeDtypeStruct((3, 1, 2, 8, 9), jnp.float32)
    for how in (dict(size=(5, 20), mode="bicubic"), dict(size=(3, 18)), dict(size=(2, 2), mode="area")):
        how["implementation"] = implementation
        loss = lambda x, how=how: jnp.sin(jax.vmap(lambda x: bj.interpolate(x, **how))(x)).sum()
        twice = jax.grad(lambda x, loss=loss: (jax.grad(loss)(x) ** 2).sum())
        text = jax.jit(twice).lower(x).as_text()
        assert ("baracuda.resample" if implementation == "native" else "gather") in text and "scatter" not in text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_repeated_elements_and_blocks_of_many(dtype):
    """On CUDA a thread then has several rows."""
    shape = (86, 1, 100, 208)
    x = sent.asarray(np.random.default_rng(0).integers(-8, 8, shape) / 4, dtype)
    wide = np.asarray(x, np.float32)
    repeated, pull = jax.vjp(lambda x: bj.interpolate(x, scale_factor=2), x)
    np.testing.assert_array_equal(np.asarray(repeated, np.float32), wide.repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(np.asarray(pull(repeated)[0], np.float32), 4 * wide)
    blocks, pull = jax.vjp(lambda x: bj.interpolate(x, scale_factor=0.5, mode="area"), x)
    want = wide.reshape(86, 1, 50, 2, 104, 2).mean((3, 5))
    np.testing.assert_array_equal(np.asarray(blocks, np.float32), want)
    np.testing.assert_array_equal(np.asarray(pull(blocks)[0], np.float32), want.repeat(2, 2).repeat(2, 3) / 4)


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_what_has_weight_0_is_not_read(implementation):
    """The padding of rows of different lengths, and neighbors of elements that are taken as they are."""
    x = sent.asarray([[[1.0, 2.0, INF, 3.0, NAN]]])
    long = sent.asarray(np.where(np.arange(100) < 50, 1.0, NAN)[None, None])
    image = sent.asarray(np.where(np.arange(25) == 12, NAN, 1.0).reshape(1, 1, 5, 5))

    @jax.jit
    def run(x, long, image):
        resized = functools.partial(bj.interpolate, implementation=implementation)
        linear = functools.partial(resized, mode="linear", align_corners=True)
        both = functools.partial(resized, image, mode="bilinear", align_corners=True)
        area = functools.partial(resized, mode="area")
        return linear(x, size=5), linear(x, size=9), area(x, size=3), area(long, size=4), both(size=9)

    same, larger, smaller, halves, plane = run(x, long, image)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(larger[0, 0], [1, 1.5, 2, INF, INF, INF, 3, NAN, NAN])
    np.testing.assert_array_equal(smaller[0, 0], [1.5, INF, NAN])
    np.testing.assert_allclose(halves[0, 0], [1, 1, NAN, NAN], rtol=1e-14)
    near = np.abs(np.arange(9) - 4) < 2
    np.testing.assert_array_equal(plane[0, 0], np.where(near[:, None] & near, NAN, 1))


BANDED = [
    ("nearest", 7, 12),
    ("linear", 6, 17),
    ("bicubic", 9, 4),
    ("area", 23, 5),
    ("bicubic", 2, 40),
    ("linear", 1, 5),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode, n, out", BANDED)
def test_bands_are_the_tables(mode, n, out):
    """Also those that more taps are asked of than they have, as one of two axes is."""
    for table in (found := taps(mode, n, out, None, False, False, "float64")), found.transposed:
        for count in (None, *range(len(table.band[1]), min(table.size, 6))):
            begin, weight = map(np.asarray, _operands(table, count, jnp.float64))
            assert begin.min() >= 0 and begin.max() + len(weight) <= table.size
            assert count is None or len(weight) == count
            matrix = np.zeros((len(begin), table.size))
            matrix[np.arange(len(begin)), begin + np.arange(len(weight))[:, None]] = weight
            np.testing.assert_allclose(matrix, _matrix(table), atol=1e-15)


# Both axes at once by 1, 2, 4 and 8 taps, also of twice and of half the size; one by one, each first; neighbors along H, W and channels, of which vectors are whole
# or not; more elements than a task or block has; one axis of three, and all.
KERNELS = {
    "nearest": ((3, 5, 9, 14), dict(size=(20, 28))),
    "strips": ((2, 3, 70, 66), dict(size=(130, 128), mode="bilinear")),
    "twice": ((2, 3, 24, 20), dict(size=(48, 40), mode="bilinear")),
    "twice, cubic": ((1, 2, 28, 24), dict(size=(56, 48), mode="bicubic")),
    "half, odd rows": ((2, 3, 14, 16), dict(size=(7, 8), mode="bilinear", antialias=True)),
    "half, cubic": ((2, 9, 60, 40), dict(size=(30, 20), mode="bicubic", antialias=True)),
    "half, odd columns": ((2, 3, 24, 14), dict(size=(12, 7), mode="bicubic", antialias=True)),
    "eight taps": ((2, 3, 80, 36), dict(size=(20, 9), mode="bilinear", antialias=True)),
    "eight taps of channels": ((2, 40, 36, 8), dict(size=(10, 9), mode="bilinear", antialias=True, data_format="NHWC")),
    "odd columns": ((2, 3, 12, 11), dict(size=(9, 7), mode="bicubic")),
    "vectors of channels": ((2, 9, 8, 16), dict(size=(18, 16), mode="bilinear", data_format="NHWC")),
    "odd channels": ((2, 9, 8, 3), dict(size=(18, 13), mode="bicubic", data_format="NHWC")),
    "one by one": ((2, 3, 40, 30), dict(size=(7, 6), mode="bilinear", antialias=True)),
    "rows then columns": ((2, 3, 33, 10), dict(size=(4, 30), mode="area")),
    "columns then rows": ((2, 3, 10, 33), dict(size=(30, 4), mode="area")),
    "columns alone": ((2, 2, 50, 31), dict(size=(50, 9), mode="bicubic", antialias=True)),
    "rows alone": ((2, 1, 31, 70), dict(size=(9, 70), mode="bilinear")),
    "volume": ((2, 2, 5, 6, 7), dict(size=(10, 12, 15), mode="trilinear")),
    "volume, channels last": ((2, 5, 6, 7, 4), dict(size=(3, 12, 7), mode="trilinear", data_format="NDHWC")),
    "middle axis": ((2, 2, 5, 6, 7), dict(size=(5, 9, 7), mode="nearest-exact")),
    "sequences": ((3, 4, 5000), dict(size=9000, mode="linear")),
    "long rows": ((1, 50, 1, 5000), dict(size=(3, 5000), mode="nearest")),
    "no image": ((0, 2, 4, 4), dict(size=(8, 8), mode="bilinear")),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_the_tables(name, dtype):
    shape, how = KERNELS[name]
    x = normal(shape, dtype)
    fun = lambda x, implementation: bj.interpolate(x, **how, implementation=implementation)
    dy = normal(jax.eval_shape(lambda x: fun(x, "xla"), x).shape, dtype, 1)

    @jax.jit
    def run(x, dy):
        each = []
        for implementation in ("native", "xla"):
            y, pull = jax.vjp(functools.partial(fun, implementation=implementation), x)
            each.append((y, *pull(dy)))
        return each

    for found, want in zip(*run(x, dy), strict=True):
        assert found.dtype == want.dtype == x.dtype
        close(found, np.asarray(want, np.float64), dtype, scale=2)


def test_the_gradient_of_interpolation_by_itself():
    """As that of the function, by size and by scale, and with channels last."""
    x, last = normal((2, 3, 6, 5)), normal((2, 6, 5, 3))
    ways = [
        (x, dict(size=(9, 7), mode="bilinear"), dict(mode="bilinear")),
        (x, dict(scale_factor=1.7), dict(scale_factor=1.7)),
        (x, how := dict(scale_factor=1.7, mode="bicubic", recompute_scale_factor=True), how),
        (last, dict(size=4, mode="area", data_format="NHWC"), dict(mode="area", data_format="NHWC")),
    ]

    @jax.jit
    def run():
        found = []
        for x, forward, backward in ways:
            y, pull = jax.vjp(functools.partial(bj.interpolate, **forward), x)
            found.append((pull(y)[0], bj.interpolate_backward(y, (6, 5), **backward)))
        return found

    for want, got in run():
        np.testing.assert_array_equal(got, want)
    with pytest.raises(
        ValueError, match=r"^interpolate_backward: dy must have the spatial size .*, \(9, 8\), got \(6, 5\)"
    ):
        bj.interpolate_backward(x, (6, 5), 1.6)


@pytest.mark.parametrize(
    "name, mode, rank",
    [
        ("interpolate_nearest_2d", "nearest", 2),
        ("interpolate_area_2d", "area", 2),
        ("interpolate_linear_1d", "linear", 1),
        ("interpolate_bilinear_2d", "bilinear", 2),
        ("interpolate_bicubic_2d", "bicubic", 2),
        ("interpolate_trilinear_3d", "trilinear", 3),
    ],
)
def test_named_interpolations(name, mode, rank):
    fun, x = getattr(bj, name), normal((1, 2, *(4, 5, 3)[:rank]))
    np.testing.assert_array_equal(fun(x, scale_factor=1.5), bj.interpolate(x, None, 1.5, mode))
    if mode in ("bilinear", "bicubic"):
        want = bj.interpolate(x, 3, None, mode, True, antialias=True)
        np.testing.assert_array_equal(fun(x, 3, align_corners=True, antialias=True), want)
    with pytest.raises(ValueError, match=rf"^{name}: x must be \[N, C.*\], got shape \(1, 2\)"):
        fun(x[(..., *(0,) * rank)], 3)


# ---------------------------------------------------------------------------------------------------------------------
# Grids

PADDINGS = ("zeros", "border", "reflection")
GRIDS = [
    (mode, rank) for mode in ("bilinear", "nearest", "bicubic") for rank in (2, 3) if (mode, rank) != ("bicubic", 3)
]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode, rank", GRIDS)
def test_grids_are_torchs(mode, rank, padding, align):
    """Positions far outside and on elements, whose derivative is that to the right; and axes of size 1."""
    of = lambda rng, sizes: np.array(sizes[::-1], np.float64)
    for sizes in ((5, 4, 3)[:rank], (1,) * rank):
        rng = np.random.default_rng(0)
        x, grid = rng.standard_normal((2, 3, *sizes)), rng.uniform(-3, 3, (2, *(4, 3, 2)[:rank], rank))
        n, on = of(rng, sizes), rng.integers(0, 5, grid[0, 0].shape)
        grid[0, 0] = 2 * on / np.maximum(n - 1, 1) - 1 if align else (2 * on + 1) / n - 1
        dy = rng.standard_normal((2, 3, *grid.shape[1:-1]))
        call = lambda x, grid: F.grid_sample(x, grid, mode, padding, align)
        want, gradients = by_torch.vjp(call, [x, grid], dy)
        found = _value_and_gradients(lambda x, grid: bj.grid_sample(x, grid, mode, padding, align), dy, x, grid)
        for got, expected in zip(found, [want, *gradients], strict=True):
            close(got, expected, "float64", scale=10)


def _value_and_gradients(fun, dy, *args):
    @jax.jit
    def run(dy, *args):
        y, pull = jax.vjp(fun, *args)
        return y, *pull(dy)

    return run(dy, *args)


SAMPLED = {  # x, points
    "more channels and points than a chunk": ((2, 70, 9, 8), (20, 30)),
    "very many points at an element": ((1, 9, 2, 2), (200, 150)),
    "one element": ((1, 2, 1, 1), (2, 2)),
    "no images": ((0, 2, 4, 4), (2, 2)),
    "no channels": ((2, 0, 4, 4), (2, 2)),
    "no points": ((2, 2, 4, 4), (0, 2)),
}


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("name", SAMPLED)
def test_kernels_sample_as_the_definition(name, mode, padding):
    """Values, tangents and gradients, at positions inside, outside and on elements."""
    (shape, points), rng = SAMPLED[name], np.random.default_rng(0)
    x, tangent = rng.standard_normal((2, *shape))
    grid, moved = rng.uniform(-1.6, 1.6, (2, shape[0], *points, 2))
    grid[:, :1] = (2 * rng.integers(-1, 6, grid[:, :1].shape) + 1) / np.array(shape[:1:-1]) - 1
    dy = rng.standard_normal((*shape[:2], *points))

    @jax.jit
    def run(x, grid, dy, tangent, moved):
        found = []
        for implementation in ("native", "xla"):
            fun = functools.partial(bj.grid_sample, mode=mode, padding_mode=padding, implementation=implementation)
            y, pull = jax.vjp(fun, x, grid)
            found.append((y, *pull(dy), jax.jvp(fun, (x, grid), (tangent, moved))[1]))
        by_itself = bj.grid_sample_backward(x, grid, dy, mode, padding, implementation="native")
        return *found, by_itself

    native, plain, by_itself = run(x, grid, dy, tangent, moved)
    for got, want in zip(native, plain, strict=True):
        close(got, np.asarray(want), "float64", scale=10)
    for got, want in zip(by_itself, native[1:3], strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_grid_of_float32_next_to_half_precision(dtype):
    x, grid = (
        normal((1, 2, 40, 30), dtype),
        sent.asarray(np.random.default_rng(0).uniform(-1, 1, (1, 9, 8, 2)), jnp.float32),
    )
    y, (dx, dgrid) = jax.jit(
        lambda x, grid: (bj.grid_sample(x, grid), jax.grad(lambda *a: bj.grid_sample(*a).sum(), (0, 1))(x, grid))
    )(x, grid)
    want = F.grid_sample(by_torch.tensor(x, "float64"), by_torch.tensor(grid, "float64"), align_corners=False)
    close(y, want.numpy(), dtype)
    assert y.dtype == dx.dtype == x.dtype and dgrid.dtype == jnp.float32


# position: what is read of [10, 20, 30, 40] in a row, with zeros, border and reflection
ODD = {
    ("bilinear", NAN): (NAN, 10, 10),
    ("bilinear", INF): (NAN, 40, 10),
    ("bilinear", -INF): (NAN, 10, 10),
    ("bilinear", 1e9): (0, 40, None),
    ("nearest", NAN): (0, 10, 10),
    ("nearest", INF): (0, 40, 10),
    ("nearest", -INF): (0, 10, 10),
    ("nearest", 0.0): (30, 30, 30),  # position 1.5, halves to even
    ("nearest", -0.5): (10, 10, 10),  # 0.5
    ("bicubic", NAN): (NAN, NAN, NAN),
    ("bicubic", INF): (NAN, NAN, NAN),
}


def test_positions_that_are_none():
    """As PyTorch's images on CPUs; there volumes have other rules."""
    x = sent.asarray([[[[10.0, 20, 30, 40]]]])
    each = [(mode, at, padding) for mode, at in ODD for padding in PADDINGS]
    sample = lambda mode, at, padding: bj.grid_sample(x, sent.asarray([[[[at, 0.0]]]]), mode, padding).ravel()
    found = jax.jit(lambda: jnp.concatenate([sample(*call) for call in each]))()
    for (mode, at, padding), got in zip(each, np.asarray(found), strict=True):
        want = ODD[mode, at][PADDINGS.index(padding)]
        assert want is None or got == want or (math.isnan(want) and math.isnan(got)), (mode, at, padding, got)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 3, 2, 4, 5)])
def test_affine_grids_are_torchs(size):
    theta = normal((2, len(size) - 2, len(size) - 1))
    for align in (False, True):
        if align and 1 in size[2:]:
            continue  # PyTorch warns
        dy = normal((2, *size[2:], len(size) - 2), seed=1)
        want, gradients = by_torch.vjp(lambda theta, align=align: F.affine_grid(theta, size, align), [theta], dy)
        found = _value_and_gradients(lambda theta, align=align: bj.affine_grid(theta, size, align), dy, theta)
        close(found[0], want, "float64")
        close(found[1], gradients[0], "float64", scale=4)


def test_a_transformer_of_images_turns_them():
    """The identity, and a quarter turn."""
    x = normal((1, 2, 5, 5))
    sample = jax.jit(lambda x, theta: bj.grid_sample(x, bj.affine_grid(theta, x.shape)))
    close(sample(x, sent.asarray([[[1.0, 0, 0], [0, 1, 0]]])), x, "float64")
    close(sample(x, sent.asarray([[[0.0, 1, 0], [-1, 0, 0]]])), np.rot90(x, -1, (2, 3)), "float64")


# ---------------------------------------------------------------------------------------------------------------------
# Boxes


def test_boxes_at_the_edges():
    """Outside, of no area, turned over, of an image that there is not, of NaN; and none at all."""
    x = normal((2, 3, 6, 5))
    boxes = np.array(
        [
            [0, 1, 1, 3, 4], [1, 2, 2, 2, 2], [0, -9, -9, -5, -5], [1, 3, 4, 90, 90], [0, 4, 4, 1, 1], [1, -0.5, -1, 4.5, 6],
        ]
    )  # fmt: skip
    none = np.array([[7.0, 0, 0, 3, 3], [-1, 0, 0, 3, 3], [NAN, 0, 0, 3, 3], [0, NAN, NAN, NAN, NAN]])
    ways = {
        "align": lambda x, boxes: bj.roi_align(x, boxes, (2, 3)),
        "aligned": lambda x, boxes: bj.roi_align(x, boxes, (2, 3), aligned=True),
        "pool": lambda x, boxes: bj.roi_pool(x, boxes, (2, 3)),
    }
    found = jax.jit(lambda x, boxes: {key: fun(x, boxes) for key, fun in ways.items()})(
        x, np.concatenate([boxes, none])
    )
    x, n = np.asarray(x), len(boxes)
    close(found["align"][:n], oracle.roi_align(x, boxes, (2, 3)), "float64")
    close(found["aligned"][:n], oracle.roi_align(x, boxes, (2, 3), aligned=True), "float64")
    close(found["pool"][:n], oracle.roi_pool(x, boxes, (2, 3)), "float64")
    for y in found.values():
        np.testing.assert_array_equal(y[n:], 0)
    for fun in ways.values():
        y = jax.eval_shape(fun, x, boxes[:0])
        assert y.shape == (0, 3, 2, 3)
    assert bj.roi_pool(x, boxes[:0], 2).shape == bj.roi_align(x, boxes[:0], 2).shape == (0, 3, 2, 2)


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("fun", [bj.roi_align, bj.roi_pool])
def test_boxes_without_images(fun, implementation):
    """Values and derivatives are 0, whatever index a box has."""
    x = np.zeros((0, 3, 6, 5))
    for boxes in (
        np.array([[0.0, 0, 0, 2, 2], [-1, 0, 0, 2, 2], [NAN, 0, 0, 2, 2]]),
        np.zeros((0, 5)),
        np.zeros((0, 4, 4)),
    ):
        of_both = functools.partial(fun, output_size=(2, 3), implementation=implementation)
        y, pull = jax.vjp(of_both, x, boxes)
        dx, dboxes = pull(jnp.ones_like(y))
        assert y.shape == (*boxes.shape[:-1], 3, 2, 3) and dx.shape == x.shape
        assert not y.any() and not dboxes.any()
        assert not jax.jvp(of_both, (x, boxes), (x, boxes))[1].any()


REGIONS = {  # x, boxes, how
    "boxes": ((2, 3, 7, 6), (9, 5), dict(output_size=(2, 3))),
    "channels": ((2, 20, 7, 6), (5, 5), dict(output_size=(3, 2), sampling_ratio=3, aligned=True, spatial_scale=0.7)),
    "of each image": ((2, 3, 7, 6), (2, 3, 4), dict(output_size=2, sampling_ratio=1)),
    "none": ((2, 3, 5, 5), (0, 5), dict(output_size=2)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", REGIONS)
def test_kernels_sample_regions_as_the_definition(name, dtype):
    """Values, tangents and gradients of boxes inside, outside, of images that there are not, and of NaN."""
    (shape, count, how), rng = REGIONS[name], np.random.default_rng(0)
    low = rng.uniform(-3, 5, (*count[:-1], 2))
    boxes = np.concatenate([low, low + rng.uniform(0.2, 6, low.shape)], -1)
    if count[-1] == 5:
        boxes = np.concatenate([rng.integers(-1, shape[0] + 1, (*count[:-1], 1)), boxes], -1)
        boxes[:1, 0], boxes[1:2, 2], boxes[2:3, 0], boxes[3:4] = 0, NAN, NAN, [0, 2, 3, 3, 3]
    x, tangent, moved = normal(shape, dtype), normal(shape, dtype, 1), normal(count, dtype, 2)
    boxes = boxes.astype(dtype)
    fun = functools.partial(bj.roi_align, **how)
    dy = normal(jax.eval_shape(fun, x, boxes).shape, dtype, 3)

    @jax.jit
    def run(x, boxes, dy, tangent, moved):
        found = []
        for implementation in ("native", "xla"):
            of_both = functools.partial(fun, implementation=implementation)
            y, pull = jax.vjp(of_both, x, boxes)
            found.append((y, *pull(dy), jax.jvp(of_both, (x, boxes), (tangent, moved))[1]))
        options = {key: value for key, value in how.items() if key != "output_size"}
        return *found, bj.roi_align_backward(x, boxes, dy, **options, implementation="native")

    native, plain, by_itself = run(x, boxes, dy, tangent, moved)
    for got, want in zip(native, plain, strict=True):
        assert got.dtype == want.dtype == x.dtype
        close(got, np.asarray(want, np.float64), dtype, scale=10)
    for got, want in zip(by_itself, native[1:3], strict=True):
        np.testing.assert_array_equal(got, want)


def test_boxes_of_each_image_are_boxes_with_an_index():
    x, low = normal((2, 3, 6, 5)), np.random.default_rng(0).uniform(-1, 3, (2, 4, 2))
    boxes = np.concatenate([low, low + 2.5], -1)
    image = np.broadcast_to(np.arange(2.0)[:, None, None], (2, 4, 1))
    indexed = np.concatenate([image, boxes], -1).reshape(8, 5)
    for fun in (bj.roi_align, bj.roi_pool):
        both = jax.jit(lambda x, fun=fun: (fun(x, boxes, 2), fun(x, indexed, 2)))
        one, other = both(x)
        np.testing.assert_array_equal(np.reshape(one, (8, 3, 2, 2)), other)


def test_maxima_of_bins_at_ties_nan_and_infinities():
    """The first maximum, row by row, receives the gradient; NaN is the maximum; bins of -inf alone are -inf."""
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 2:, 2:] = [[-INF, -INF], [-INF, -INF]]
    x[0, 0, :2, 2:] = [[1, NAN], [5, NAN]]
    x[0, 0, 2:, :2] = [[3, 7], [7, 7]]
    y, dx = jax.jit(jax.value_and_grad(lambda x: bj.roi_pool(x, BOX, 2)[0, 0].ravel() @ np.array([1.0, 2, 3, 4])))(
        np.where(np.isfinite(x), x, 0)
    )
    assert y == 2 * 5 + 3 * 7
    np.testing.assert_array_equal(dx[0, 0], [[1, 0, 0, 0], [0, 0, 2, 0], [0, 3, 4, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(bj.roi_pool(x, BOX, 2)[0, 0], [[0, NAN], [7, -INF]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape, size", [((2, 35, 9, 8), (2, 3)), ((1, 2, 40, 70), (3, 2)), ((2, 0, 4, 4), 2), ((2, 2, 1, 1), 2)]
)
def test_kernels_take_maxima_as_the_definition(shape, size, dtype):
    """Values, tangents and gradients, with ties and NaN, of boxes that overlap, of none, and outside."""
    rng = np.random.default_rng(0)
    x, tangent = sent.asarray(rng.integers(-3, 4, (2, *shape)), dtype)
    x = jnp.where(sent.asarray(rng.uniform(size=shape) < 0.02), jnp.nan, x)
    low = rng.uniform(-3, max(shape[2:]), (12, 2))
    boxes = np.concatenate([rng.integers(-1, shape[0] + 1, (12, 1)), low, low + rng.uniform(0, 60, (12, 2))], 1)
    boxes[3, 2] = NAN
    boxes = sent.asarray(boxes, jnp.float32 if dtype != "float64" else dtype)

    @jax.jit
    def run(x, boxes, tangent):
        found = []
        for implementation in ("native", "xla"):
            fun = functools.partial(bj.roi_pool, boxes=boxes, output_size=size, implementation=implementation)
            y, ty = jax.jvp(fun, (x,), (tangent,))
            dy = jnp.round(4 * jnp.sin(jnp.arange(y.size, dtype=y.dtype))).reshape(y.shape)
            found.append((y, ty, jax.vjp(fun, x)[1](dy)[0]))
        return *found, bj.roi_pool_backward(x, boxes, dy, implementation="native")

    # NumPy knows no NaN of bfloat16.
    native, plain, by_itself = jax.tree.map(lambda a: np.asarray(a).astype(np.float64), run(x, boxes, tangent))
    for got, want in zip(native, plain, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(by_itself, native[2])


BOX = np.array([[0.0, 0, 0, 3, 3]])


def test_gradients_of_boxes_are_limits_of_differences():
    """Of the boxes too, which torchvision leaves out."""
    x, boxes = normal((1, 2, 8, 9)), np.array([[0, 1.2, 0.7, 6.3, 5.1]])
    loss = jax.jit(lambda boxes: jnp.sin(bj.roi_align(x, boxes, 3, 0.9, 3, True)).sum())
    gradient = jax.jit(jax.grad(loss))(boxes)
    for i in range(1, 5):
        step = np.zeros_like(boxes)
        step[0, i] = 1e-6
        want = (loss(boxes + step) - loss(boxes - step)) / 2e-6
        np.testing.assert_allclose(gradient[0, i], want, rtol=1e-6, atol=1e-7)
    assert gradient[0, 0] == 0


def test_overlaps_of_boxes_without_area_are_0():
    boxes = np.array([[0.0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], [1, 0, 2, 1], [0, 0, INF, 1]])
    y, dx = jax.jit(lambda a: (bj.box_iou(a, boxes), jax.grad(lambda a: bj.box_iou(a, a).sum())(boxes[:3])))(boxes)
    np.testing.assert_array_equal(y[:3, :3], [[1, 0, 0], [0, 0, 0], [0, 0, 1]])
    assert y[0, 3] == 0 and np.isnan(y[3, 3]) and np.isfinite(dx).all()
    assert bj.box_iou(boxes[:0], boxes).shape == (0, 4)


def _kept(*args, **kwargs):
    indices, count = bj.nms(*args, **kwargs)
    assert indices.dtype == count.dtype == jnp.int32
    return np.asarray(indices).tolist(), int(count)


def test_the_best_of_boxes_that_overlap():
    boxes = np.array([[0, 0, 2, 2], [0, 0, 2, 1], [1, 0, 3, 2], [5, 5, 5, 5], [NAN, 0, 1, 1], [0, 0, 2, 2]])
    scores = np.array([0.5, 0.9, 0.5, 0.9, NAN, 0.5])
    assert _kept(boxes, scores, 0.5) == ([1, 3, 0, 2, 4, -1], 5)  # an overlap of 1/2 is not above 1/2
    assert _kept(boxes, scores, 0.4) == ([1, 3, 2, 4, -1, -1], 4)
    assert _kept(boxes, scores, 0.4, max_output=2) == ([1, 3], 2)
    assert _kept(boxes, scores, 0.4, max_output=8) == ([1, 3, 2, 4, -1, -1, -1, -1], 4)
    assert _kept(boxes, scores, 0.5, classes=np.array([0, 0, 0, 0, 0, 1])) == ([1, 3, 0, 2, 5, 4], 6)
    assert _kept(boxes, scores, 1.0)[1] == 6
    assert _kept(boxes[:0], scores[:0], 0.5) == ([], 0)
    assert _kept(boxes[:0], scores[:0], 0.5, max_output=2) == ([-1, -1], 0)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 400])
def test_tiles_of_boxes_are_kept_as_one_by_one(n, dtype):
    """Fewer boxes than a tile, whole tiles and more; scores that tie and are NaN, boxes that are NaN, classes of 8 and of 64
    bits, results that are shorter and longer."""
    rng = np.random.default_rng(n)
    low = rng.uniform(0, 8, (n, 2))
    boxes = np.where(rng.random((n, 1)) < 0.05, NAN, np.concatenate([low, low + rng.uniform(0, 3, (n, 2))], -1))
    scores = np.where(rng.random(n) < 0.05, NAN, np.round(rng.uniform(0, 1, n), 1))
    classes = rng.integers(-1, 2, n)
    wide = np.where(classes == 1, 2**40, classes)  # which 32 bits do not tell from 0
    ways = [{}, dict(max_output=7), dict(max_output=n + 3), dict(classes=classes.astype(np.int8)), dict(classes=wide)]

    @jax.jit
    def run(boxes, scores):
        call = functools.partial(bj.nms, boxes, scores, 0.3)
        return [[call(**how, implementation=kind) for kind in ("native", "xla")] for how in ways]

    for native, plain in run(boxes.astype(dtype), scores.astype(dtype)):
        for got, want in zip(native, plain, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("method", ["gaussian", "linear"])
def test_scores_fall_where_better_boxes_overlap(method):
    """Of two boxes by hand; then NaN, classes, ties and results that are shorter, as one by one."""
    boxes = np.array([[0.0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 6, 6]])  # the first two overlap by 1/2
    scores = np.array([0.9, 0.8, 0.5])
    indices, found, count = bj.soft_nms(boxes, scores, 0.5, 0.3, method=method)
    second = 0.8 * (math.exp(-0.5) if method == "gaussian" else 0.5)
    order = np.argsort([-0.9, -second, -0.5])
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(found, np.array([0.9, second, 0.5])[order], rtol=1e-14)
    assert count == 3
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 6, (50, 2))
    boxes, scores = np.concatenate([low, low + 2], -1), np.round(rng.uniform(0, 1, 50), 1)
    boxes[3], scores[7] = NAN, NAN
    how = dict(method=method, score_threshold=0.2, classes=rng.integers(0, 2, 50))
    for size in (50, 9, 60):
        want = oracle.soft_nms(boxes, scores, **how, max_output=size)
        indices, found, count = bj.soft_nms(boxes, scores, **how, max_output=size)
        np.testing.assert_array_equal(indices, want)
        assert count == (want >= 0).sum() and (np.asarray(found) > 0.2).sum() == count
    indices, found, count = bj.soft_nms(boxes[:0], scores[:0], max_output=2)
    assert indices.tolist() == [-1, -1] and found.tolist() == [0, 0] and count == 0


@pytest.mark.parametrize("method", ["gaussian", "linear"])
def test_gradients_of_soft_nms_are_differences(method):
    rng = np.random.default_rng(4)
    corners = rng.uniform(0, 24, (12, 2))
    boxes, scores = np.concatenate([corners, corners + rng.uniform(6, 20, (12, 2))], 1), rng.uniform(0.1, 1, 12)
    weights = rng.standard_normal(12)
    total = lambda boxes, scores: bj.soft_nms(boxes, scores, 0.5, 0.3, method=method)[1] @ weights
    dboxes, dscores = jax.jit(jax.grad(total, (0, 1)))(boxes, scores)
    call, step = jax.jit(total), 1e-6
    for grad, k in ((dboxes, 0), (dscores, 1)):
        change = rng.standard_normal((boxes, scores)[k].shape)
        moved = [
            [a + sign * step * change * (i == k) if i == k else a for i, a in enumerate((boxes, scores))]
            for sign in (1, -1)
        ]
        want = (call(*moved[0]) - call(*moved[1])) / (2 * step)
        np.testing.assert_allclose(np.vdot(grad, change), want, rtol=1e-5)


@pytest.mark.parametrize("limit", [0.0, 0.3, 0.7])
def test_many_boxes_are_kept_as_one_by_one(limit):
    """Of random boxes, and of a chain of boxes, each of which overlaps the next; in a batch."""
    rng = np.random.default_rng(0)
    low = np.concatenate(
        [rng.uniform(0, 9, (2, 60, 2)), np.stack([np.arange(20) * 0.5, np.zeros(20)], -1)[None].repeat(2, 0)], 1
    )
    boxes, scores = np.concatenate([low, low + 1.5], -1), np.round(rng.uniform(0, 1, (2, 80)), 1)
    indices, count = jax.jit(jax.vmap(functools.partial(bj.nms, iou_threshold=limit, max_output=50)))(boxes, scores)
    for i in range(2):
        want = oracle.nms(boxes[i], scores[i], limit, 50)
        np.testing.assert_array_equal(indices[i], want)
        assert count[i] == (want >= 0).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_boxes_whose_overlap_is_the_threshold_are_kept(dtype):
    """The threshold is an overlap, or the number before it. Corners are small integers, so that only quotients are rounded."""
    rng = np.random.default_rng(0)
    low = rng.integers(0, 6, (90, 2))
    boxes = np.concatenate([low, low + rng.integers(-1, 6, (90, 2))], -1).astype(dtype)
    scores = rng.permutation(90).astype(dtype)
    of_all = np.unique(np.asarray(bj.box_iou(boxes, boxes)))
    at = of_all[(of_all > 0.1) & (of_all < 1)][::12]
    limits = [float(x) for x in np.concatenate([at, np.nextafter(at, 0, dtype=dtype)])]
    run = jax.jit(lambda *args: [[bj.nms(*args, x, implementation=kind) for kind in ("native", "xla")] for x in limits])
    results = run(boxes, scores)
    for got, want in results:
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] == want[1]
    assert any((results[i][0][0] != results[i + len(at)][0][0]).any() for i in range(len(at)))


# ---------------------------------------------------------------------------------------------------------------------
# What is refused

X, GRID, BOXES = np.ones((2, 3, 6, 6)), np.zeros((2, 4, 4, 2)), np.zeros((3, 5))
BAD = [
    ("interpolate", TypeError, "x must have one of the dtypes .*, got int32", (X.astype(jnp.int32), 3), {}),
    ("interpolate", ValueError, r"x must be \[N, C, H, W\], got shape \(3, 6, 6\)", (X[0], 3), {"mode": "bilinear"}),
    ("interpolate", ValueError, r"x must be \[N, C, L\] or .*, got shape \(6, 6\)", (X[0, 0], 3), {}),
    ("interpolate", ValueError, "x must have static spatial sizes of at least 1, got shape", (X[..., :0], 3), {}),
    ("interpolate", ValueError, "mode must be one of 'nearest', .*, got 'cubic'", (X, 3), {"mode": "cubic"}),
    ("interpolate", ValueError, "either size or scale_factor must be given, got None and None", (X,), {}),
    ("interpolate", ValueError, "either size or scale_factor must be given, got 3 and 2", (X, 3, 2), {}),
    ("interpolate", ValueError, r"size must be an integer or 2 integers, got \(3,\)", (X, (3,)), {}),
    ("interpolate", ValueError, r"size\[1\] must be at least 1, got 0", (X, (3, 0)), {}),
    ("interpolate", ValueError, "scale_factor must be a static number above 0, got -1", (X, None, -1), {}),
    ("interpolate", ValueError, r"scale_factor must be a number or 2 numbers, got \(1.0,\)", (X, None, (1.0,)), {}),
    ("interpolate", ValueError, r"scale_factor must leave elements of the spatial sizes \(6, 6\), got 0.1", (X, None, 0.1), {}),
    ("interpolate", ValueError, "align_corners must be None or False with mode 'area', got True", (X, 3, None, "area", True), {}),
    ("interpolate", ValueError, "antialias must be False with mode 'nearest', got True", (X, 3), {"antialias": True}),
    ("interpolate", ValueError, "recompute_scale_factor must be None or False where size is given", (X, 3), {"recompute_scale_factor": True}),
    ("interpolate", TypeError, "align_corners must be True or False, got 1", (X, 3, None, "bilinear", 1), {}),
    ("interpolate", ValueError, "data_format must be one of 'NCHW', 'NHWC', got 'NCL'", (X, 3), {"data_format": "NCL"}),
    ("affine_grid", ValueError, "implementation='native', but the op has no kernel; xla computes it", (sent.ones((2, 2, 3)), (2, 1, 2, 2)), {"implementation": "native"}),
    ("affine_grid", ValueError, r"theta must be \[N, 2, 3\] or \[N, 3, 4\], got shape \(2, 3\)", (GRID[0, 0, :2, :1].repeat(3, 1), (1, 1, 2, 2)), {}),
    ("affine_grid", ValueError, r"size must be \(N, C, H, W\) for theta of shape \(2, 2, 3\), got \(2, 2\)", (sent.ones((2, 2, 3)), (2, 2)), {}),
    ("affine_grid", ValueError, r"size must be \(N, C, H, W\) with N = 2, that of theta, got \(3, 1, 2, 2\)", (sent.ones((2, 2, 3)), (3, 1, 2, 2)), {}),
    ("affine_grid", ValueError, r"size\[3\] must be at least 1, got 0", (sent.ones((2, 2, 3)), (2, 1, 2, 0)), {}),
    ("grid_sample", ValueError, r"grid must be \[N, H, W, 2\] with N = 2 for x of shape .*, got \(4, 4, 2\)", (X, GRID[0]), {}),
    ("grid_sample", TypeError, "grid must have the dtype of x, float64, got float32", (X, GRID.astype(jnp.float32)), {}),
    ("grid_sample", ValueError, "mode must be one of .*, got 'linear'", (X, GRID, "linear"), {}),
    ("grid_sample", ValueError, "mode must be 'bilinear' or 'nearest' for x of shape .*, got 'bicubic'", (X[:, :, None], sent.zeros((2, 1, 1, 1, 3)), "bicubic"), {}),
    ("grid_sample", ValueError, "padding_mode must be one of 'zeros', 'border', 'reflection', got 'wrap'", (X, GRID, "nearest", "wrap"), {}),
    ("roi_align", ValueError, r"boxes must be \[K, 5\] or \[N, K, 4\], got shape \(3, 4\)", (X, BOXES[:, 1:], 2), {}),
    ("roi_align", ValueError, r"boxes must be \[N, K, 4\] with N = 2 for x of shape .*, got \(1, 3, 4\)", (X, BOXES[None, :, 1:], 2), {}),
    ("roi_align", ValueError, "sampling_ratio must be at least 1, got -1", (X, BOXES, 2), {"sampling_ratio": -1}),
    ("roi_align", ValueError, "spatial_scale must be a static number above 0, got 0", (X, BOXES, 2, 0), {}),
    ("roi_pool", ValueError, "output_size must be at least 1, got 0", (X, BOXES, 0), {}),
    ("roi_pool", ValueError, r"x must be \[N, C, H, W\], got shape \(3, 6, 6\)", (X[0], BOXES, 2), {}),
    ("box_iou", ValueError, r"boxes1 must be \[..., N, 4\], got shape \(3, 5\)", (BOXES, BOXES), {}),
    ("box_iou", ValueError, r"boxes2 must have the leading axes of boxes1, \(\), got shape \(1, 3, 4\)", (BOXES[:, 1:], BOXES[None, :, 1:]), {}),
    ("soft_nms", ValueError, "sigma must be a static number above 0, got 0", (BOXES[:, 1:], BOXES[:, 0], 0), {}),
    ("soft_nms", ValueError, "score_threshold must be a static number of at least 0, got -1", (BOXES[:, 1:], BOXES[:, 0]), {"score_threshold": -1}),
    ("soft_nms", ValueError, "method must be one of 'gaussian', 'linear', got 'hard'", (BOXES[:, 1:], BOXES[:, 0]), {"method": "hard"}),
    ("nms", ValueError, r"boxes must be \[N, 4\], got shape \(1, 3, 4\)", (BOXES[None, :, 1:], BOXES[:, 0], 0.5), {}),
    ("nms", ValueError, r"scores must have shape \(3,\), one for each box, got \(2,\)", (BOXES[:, 1:], BOXES[:2, 0], 0.5), {}),
    ("nms", ValueError, r"iou_threshold must be a static number in \[0, 1\], got 1.5", (BOXES[:, 1:], BOXES[:, 0], 1.5), {}),
    ("nms", TypeError, "classes must have one of the dtypes .*, got float64", (BOXES[:, 1:], BOXES[:, 0], 0.5), {"classes": BOXES[:, 0]}),
    ("nms", ValueError, "max_output must be at least 1, got 0", (BOXES[:, 1:], BOXES[:, 0], 0.5), {"max_output": 0}),
]  # fmt: skip


@pytest.mark.parametrize("name, error, match, args, kwargs", BAD)
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)
