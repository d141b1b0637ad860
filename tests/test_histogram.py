"""What searches and histograms do at the edges."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P
from programs import FLOATS, is_one_call, same_bits_every_time, wide
from sharded import devices, mesh, put

import baracuda_jax as bj
from baracuda_jax._core import checks

BACKENDS = ("native", "xla")
INF, NAN = np.inf, np.nan
NUMBERS = (*FLOATS, *checks.INTEGERS)
each_backend = pytest.mark.parametrize("implementation", BACKENDS)
each_side = pytest.mark.parametrize("side", ["left", "right"])


def _rng(seed=0):
    return np.random.default_rng(seed)


def _of(dtype, x):
    """Spread over small integers where the dtype is one."""
    return sent.asarray(np.clip(np.round(4 * x), 0 if dtype[0] == "u" else -99, 99) if "int" in dtype else x, dtype)


# ---------------------------------------------------------------------------------------------------------------------
# searchsorted


@each_side
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("n", (0, 1, 2, 7, 8, 9, 1025))
def test_searches_are_those_of_numpy(n, dtype, side):
    """Sequences of every length about a power of two, with elements that tie; numbers of values that leave some over."""
    rng = _rng()
    sequence = np.sort(_of(dtype, rng.standard_normal(n)))
    values = np.concatenate([_of(dtype, rng.standard_normal(201)), sequence])
    for implementation in BACKENDS:
        got = bj.searchsorted(sent.asarray(sequence), sent.asarray(values), side=side, implementation=implementation)
        assert got.dtype == jnp.int32
        np.testing.assert_array_equal(got, np.searchsorted(wide(sequence), wide(values), side))


@each_side
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_the_largest_and_zeros_are_equal(dtype, side):
    edges = [-INF, -2.0, -0.0, 0.0, 0.0, 3.0, INF, NAN, NAN]
    values = sent.asarray([*edges, -NAN, 1.0, -5.0], dtype)
    for n in range(len(edges) + 1):
        want = np.searchsorted(np.asarray(edges[:n], np.float64), wide(values), side)
        for implementation in BACKENDS:
            got = bj.searchsorted(sent.asarray(edges[:n], dtype), values, side=side, implementation=implementation)
            np.testing.assert_array_equal(got, want)


@each_side
def test_every_half_is_found(side):
    """All 65,536 bit patterns, sorted, in themselves."""
    for dtype in (jnp.float16, jnp.bfloat16):
        x = jax.lax.bitcast_convert_type(sent.arange(65536, dtype=jnp.uint16), dtype)
        exact = np.sort(wide(x))
        sequence = x[np.argsort(wide(x), stable=True)]
        np.testing.assert_array_equal(
            bj.searchsorted(sequence, x, side=side, implementation="native"), np.searchsorted(exact, wide(x), side)
        )


@each_side
@each_backend
@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "uint8"])
def test_the_ends_of_integers(dtype, side, implementation):
    info = jnp.iinfo(dtype)
    x = np.sort(_rng().integers(info.min, info.max, 300, dtype, endpoint=True))
    x[0], x[-1] = info.min, info.max
    got = bj.searchsorted(sent.asarray(x), sent.asarray(x[::-1]), side=side, implementation=implementation)
    np.testing.assert_array_equal(got, np.searchsorted(x, x[::-1], side))


@given(st.data())
def test_searches_of_any_shape(data):
    """What is found brackets the value."""
    size = st.sampled_from((0, 1, 2, 3, 7, 20))
    batch = data.draw(st.lists(size, max_size=2))
    n, m = data.draw(size), data.draw(size)
    rng = _rng()
    sequence = np.sort(np.round(3 * rng.standard_normal((*batch, n))), -1)
    values = np.round(3 * rng.standard_normal((*batch, m)))
    for implementation in BACKENDS:
        left, right = (
            np.asarray(
                bj.searchsorted(sent.asarray(sequence), sent.asarray(values), side=side, implementation=implementation)
            )
            for side in ("left", "right")
        )
        below = (sequence[..., None, :] < values[..., None]).sum(-1)
        upto = (sequence[..., None, :] <= values[..., None]).sum(-1)
        np.testing.assert_array_equal(left, below)
        np.testing.assert_array_equal(right, upto)


@pytest.mark.parametrize("n, m", [(2**17, 5), (100_000, 40_001), (3, 200_003), (70_001, 4096)])
@each_side
def test_long_searches(n, m, side):
    """Few values in a long sequence, many in a short one, and both."""
    sequence, values = np.sort(_rng().standard_normal(n)), _rng(1).standard_normal(m)
    got = bj.searchsorted(sent.asarray(sequence), sent.asarray(values), side=side, implementation="native")
    np.testing.assert_array_equal(got, np.searchsorted(sequence, values, side))


@pytest.mark.parametrize("count", [32769, 2000])
@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
def test_very_many_values(side, is_sorted, count):
    """Neighbors that are in order, and those that are not; a range of them begins within a warp."""
    rng, total = np.random.default_rng(5), 600_001
    sequence = np.sort(rng.integers(0, total, count)).astype(np.int32)
    values = np.arange(total, dtype=np.int32) if is_sorted else rng.integers(-5, total + 5, total).astype(np.int32)
    got = bj.searchsorted(sequence, sent.asarray(values), side=side, implementation="native")
    np.testing.assert_array_equal(got, np.searchsorted(sequence, values, side))


def test_a_sequence_serves_values_of_any_shape():
    sequence, values = (
        jnp.sort(sent.asarray(_rng().standard_normal(30))),
        sent.asarray(_rng(1).standard_normal((2, 3, 4))),
    )
    want = jnp.searchsorted(sequence, values)
    for x, y in ((values, want), (values[0, 0, 0], want[0, 0, 0]), (values[:, :0], want[:, :0])):
        np.testing.assert_array_equal(bj.searchsorted(sequence, x), y)
    few = jax.vmap(lambda v: bj.searchsorted(sequence, v, implementation="native"))
    same_bits(jax.jit(few)(values), want.astype(jnp.int32))
    text = jax.jit(few).lower(values).as_text()
    assert "stablehlo.broadcast" not in text  # one sequence for all


def test_sorter_and_dtype():
    x = sent.asarray(_rng().standard_normal((3, 20)))
    values = sent.asarray(_rng(1).standard_normal((3, 9)))
    order = jnp.argsort(x, -1)
    for side, dtype in itertools.product(("left", "right"), ("int32", "int64")):
        got = bj.searchsorted(x, values, side=side, sorter=order, dtype=dtype)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, bj.searchsorted(jnp.sort(x, -1), values, side=side))
    np.testing.assert_array_equal(bj.searchsorted([1, 2, 3], 2.5), 2)  # both become floats


def _with_edges(rng, shape):
    return rng.choice([NAN, INF, -INF, 0.0, -0.0, 2.0, -3.0, 1.0], shape)


@each_backend
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int32", "uint8"])
def test_digitize_is_that_of_numpy(dtype, right, implementation):
    rng = _rng()
    x = _of(dtype, rng.standard_normal((5, 30)))
    for n in (0, 1, 2, 9):
        bins = np.sort(_of(dtype, rng.standard_normal(n)))
        for edges in (bins, bins[::-1]):
            got = bj.digitize(x, sent.asarray(edges), right, implementation=implementation)
            assert got.dtype == jnp.int32
            np.testing.assert_array_equal(got, np.digitize(wide(x), wide(edges), right) if n else 0)
    traced = jax.jit(lambda x, bins: bj.digitize(x, bins, right, implementation=implementation))(x, bins[::-1])
    np.testing.assert_array_equal(traced, np.digitize(wide(x), wide(bins[::-1]), right))


# ---------------------------------------------------------------------------------------------------------------------
# bincount


@each_backend
@pytest.mark.parametrize("dtype", checks.INTEGERS)
def test_ids_out_of_range_are_dropped(dtype, implementation):
    info = jnp.iinfo(dtype)
    x = _rng().integers(max(info.min, -20), 40, 500).astype(dtype)
    x[:4] = info.min, info.max, info.max, 3
    for length in (0, 1, 7, 30, 100):
        y = bj.bincount(sent.asarray(x), length=length, implementation=implementation)
        assert y.dtype == jnp.int32
        inside = x[(x >= 0) & (x.astype(np.float64) < length)]
        np.testing.assert_array_equal(y, np.bincount(inside.astype(np.int64), minlength=length)[:length])
        assert y.sum() == len(inside)


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 65_536, 300_001])
@pytest.mark.parametrize("bins", [1, 2, 300, 5000, 70_000])
def test_long_counts(n, bins):
    """One table and several, parts of a row and whole ones."""
    x = _rng().integers(-1, bins + 1, n)
    want = np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)
    for dtype in ("int32", "int64"):
        np.testing.assert_array_equal(bj.bincount(sent.asarray(x, dtype), length=bins, implementation="native"), want)


@pytest.mark.parametrize("rows, n, bins", [(300, 100, 7), (2, 100_000, 9), (5000, 3, 4), (7, 0, 3), (0, 5, 3)])
def test_batches_of_counts(rows, n, bins):
    x = _rng().integers(-1, bins + 1, (rows, n))
    many = jax.vmap(functools.partial(bj.bincount, length=bins, implementation="native"))(sent.asarray(x))
    np.testing.assert_array_equal(many, (x[:, :, None] == np.arange(bins)).sum(1))


def test_length_is_by_default_that_of_the_values():
    x = sent.asarray([3, 1, 1, 0])
    np.testing.assert_array_equal(bj.bincount(x), [1, 2, 0, 1])
    np.testing.assert_array_equal(bj.bincount(x, minlength=6), [1, 2, 0, 1, 0, 0])
    assert bj.bincount(sent.zeros(0, jnp.int32)).shape == (0,)
    assert bj.bincount(sent.asarray([-3, -1])).shape == jnp.bincount(sent.asarray([-3, -1])).shape
    np.testing.assert_array_equal(bj.bincount(x > 0), [1, 3])
    with pytest.raises(ValueError, match="^bincount: length must be given under jit"):
        jax.jit(bj.bincount)(x)


@each_backend
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "uint8"])
def test_weights_are_summed(dtype, implementation):
    rng = _rng()
    x, w = rng.integers(-2, 12, 200), _of(dtype, np.abs(rng.standard_normal(200)))
    y = bj.bincount(sent.asarray(x), w, length=10, implementation=implementation)
    assert y.dtype == w.dtype
    keep = (x >= 0) & (x < 10)
    want = np.bincount(x[keep], wide(w)[keep], minlength=10)
    close(y, want % 256 if dtype == "uint8" else want, dtype)


def test_weights_have_a_gradient():
    x, w, dy = sent.asarray([0, 2, 2, 5, -1]), sent.arange(5.0), sent.asarray([1.0, 10, 100, 1000])
    gradient = jax.jit(jax.grad(lambda w: (bj.bincount(x, w, length=4) * dy).sum()))(w)
    np.testing.assert_array_equal(gradient, [1, 100, 100, 0, 0])
    a, edges = sent.asarray([0.5, 1.5, NAN, 2.0, 7]), sent.asarray([0.0, 1, 2])
    gradient = jax.jit(jax.grad(lambda w: (bj.histogram(a, edges, weights=w)[0] * dy[:2]).sum()))(w)
    np.testing.assert_array_equal(gradient, [1, 10, 0, 10, 0])


# ---------------------------------------------------------------------------------------------------------------------
# histogram


def _counted(x, edges):
    """By the definition, on the edges that were used."""
    x, edges = wide(x).ravel(), wide(edges)
    counts = [((x >= a) & (x < b)).sum() for a, b in itertools.pairwise(edges)]
    # Bins of no width at the end have nothing but the last edge, which is the last bin's.
    counts[-1] += (x == edges[-1]).sum()
    return np.asarray(counts)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("n", (1, 300))
@pytest.mark.parametrize("bins", (1, 33))
@pytest.mark.parametrize("how", ({}, {"range": (-1.0, 2.0)}, {"range": (1, 1)}), ids=str)
def test_histograms_are_those_of_jax(how, bins, n, dtype):
    a = _of(dtype, _rng().standard_normal(n))
    want, their_edges = jax.jit(lambda a: jnp.histogram(a, bins, **how))(a)
    for implementation in BACKENDS:
        y, edges = bj.histogram(a, bins, **how, implementation=implementation)
        close(edges, their_edges, edges.dtype.name)  # which XLA rounds otherwise in a program of more
        assert (y.dtype, edges.dtype) == (want.dtype, their_edges.dtype)
        are_same = np.array_equal(wide(edges), wide(their_edges))
        if are_same and (
            n < 200 or y.dtype.itemsize > 2
        ):  # theirs count in the dtype, 16-bit floats no further than 256
            np.testing.assert_array_equal(wide(y), wide(want))
        close(y, _counted(a, edges), y.dtype.name)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16", "int32"])
@pytest.mark.parametrize("n", (2, 3, 9, 100))
def test_edges_of_any_width(n, dtype):
    rng = _rng()
    edges = np.sort(_of(dtype, rng.standard_normal(n)))
    a = sent.asarray(np.concatenate([_of(dtype, rng.standard_normal(100)), edges]))
    for implementation in BACKENDS:
        y, same = bj.histogram(a, sent.asarray(edges), implementation=implementation)
        np.testing.assert_array_equal(wide(same), wide(edges))
        np.testing.assert_array_equal(wide(y), _counted(a, edges))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "bins, low, high", [(10, -1, 1), (256, -4, 4), (100, 0.1, 0.7), (1000, -1e-3, 3), (7, 100, 101), (3000, 1, 2)]
)
def test_values_on_edges_and_next_to_them(dtype, bins, low, high):
    """Each edge and its neighbors of the dtype: in the bin that a search in the edges says."""
    edges = bj.histogram(sent.zeros(1, dtype), bins, (low, high))[1]
    up, down = (jnp.nextafter(edges, sent.asarray(to, dtype)) for to in (INF, -INF))
    a = jnp.concatenate([edges, up, down, sent.asarray([NAN, INF, -INF, 0.0, -0.0], dtype)])
    position = np.searchsorted(wide(edges), wide(a), "right")
    position = np.where(wide(a) == wide(edges)[-1], bins, position)
    want = np.bincount(position, minlength=bins + 2)[1 : bins + 1]
    np.testing.assert_array_equal(bj.histogram(a, bins, (low, high), implementation="native")[0], want.astype(dtype))
    one_by_one = jax.vmap(lambda x: bj.histogram(x[None], bins, (low, high), implementation="native")[0])(a)
    np.testing.assert_array_equal(np.asarray(one_by_one, np.float64).sum(0), want)
    # XLA's CPU threads take subnormal numbers for zero.
    a = a[(np.abs(wide(a)) >= float(jnp.finfo(dtype).tiny)) | (wide(a) == 0)]
    y, z = (bj.histogram(a, bins, (low, high), implementation=implementation)[0] for implementation in BACKENDS)
    np.testing.assert_array_equal(y, z)


@each_backend
def test_bins_narrower_than_the_numbers(implementation):
    """Edges that coincide, so that a guess is off by many."""
    for dtype in ("float32", "bfloat16"):
        low = sent.asarray(1000.0, dtype)
        high = jnp.nextafter(jnp.nextafter(low, sent.asarray(INF, dtype)), sent.asarray(INF, dtype))
        a = jnp.stack([low, low, jnp.nextafter(low, high), high, high, high])
        y, edges = bj.histogram(a, 1000, (float(low), float(high)), implementation=implementation)
        want = jax.jit(jnp.histogram)(a, edges)[0]
        np.testing.assert_array_equal(wide(y), wide(want))
        assert wide(y).sum() == 6


@each_backend
def test_nan_and_infinity(implementation):
    x = sent.asarray([1.0, NAN, 3, 2, INF, -INF])
    np.testing.assert_array_equal(bj.histogram(x, 3, (1, 3), implementation=implementation)[0], [1, 1, 1])
    np.testing.assert_array_equal(bj.histogram(x, 3, implementation=implementation)[0], 0)  # the edges are NaN
    edges = sent.asarray([-INF, 0.0, INF])
    np.testing.assert_array_equal(bj.histogram(x, edges, implementation=implementation)[0], jnp.histogram(x, edges)[0])
    edges = sent.asarray([0.0, 2.0, NAN])
    np.testing.assert_array_equal(bj.histogram(x, edges, implementation=implementation)[0], jnp.histogram(x, edges)[0])


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int32"])
@pytest.mark.parametrize("density", [None, False, True])
@pytest.mark.parametrize("bins", [5, (-1.0, 0.0, 0.5, 2.0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_and_density(weighted, bins, dtype, density):
    rng = _rng()
    a, w = _of(dtype, rng.standard_normal((4, 50))), _of(dtype, np.abs(rng.standard_normal((4, 50))))
    bins, weights = bins if bins == 5 else sent.asarray(bins), w if weighted else None
    theirs = jax.jit(lambda a, weights: jnp.histogram(a, bins, weights=weights, density=density))
    want, their_edges = theirs(a, weights)
    for implementation in BACKENDS:
        got, edges = bj.histogram(a, bins, weights=weights, density=density, implementation=implementation)
        close(edges, their_edges, edges.dtype.name)
        assert (got.dtype, edges.dtype) == (want.dtype, their_edges.dtype)
        close(got, want, got.dtype.name, scale=20)


def test_half_counts_do_not_stop():
    a = sent.zeros(3000, jnp.bfloat16)
    assert bj.histogram(a, 3, (-1, 1))[0][1] == jnp.bfloat16(3000)


@given(st.integers(0, 2000), st.integers(1, 300), st.integers(0, 100))
def test_nothing_is_lost(n, bins, seed):
    a = _rng(seed).standard_normal(n).astype(np.float32)
    for implementation in BACKENDS:
        y = np.asarray(bj.histogram(sent.asarray(a), bins, (-1, 1.5), implementation=implementation)[0])
        assert y.sum() == ((a >= -1) & (a <= 1.5)).sum()


@pytest.mark.parametrize("n, bins", [(400_001, 256), (400_001, 20_000), (70_000, 1)])
@pytest.mark.parametrize("uniform", [False, True])
def test_long_histograms(n, bins, uniform):
    a = _rng().standard_normal(n).astype(np.float32)
    edges = np.linspace(-2, 2, bins + 1, dtype=np.float32)
    y, edges = bj.histogram(
        sent.asarray(a), *((bins, (-2, 2)) if uniform else (sent.asarray(edges),)), implementation="native"
    )
    position = np.searchsorted(np.asarray(edges), a, "right")
    position = np.where(a == np.asarray(edges)[-1], bins, position)
    np.testing.assert_array_equal(y, np.bincount(position, minlength=bins + 2)[1 : bins + 1])


@each_backend
def test_batches_have_edges_of_their_own(implementation):
    a = sent.asarray(_rng().standard_normal((6, 50)) * np.arange(1, 7)[:, None])
    y, edges = jax.jit(jax.vmap(lambda a: bj.histogram(a, 8, implementation=implementation)))(a)
    for i in range(6):
        np.testing.assert_array_equal(y[i], _counted(a[i], edges[i]))
        np.testing.assert_array_equal(edges[i][np.array([0, -1])], [a[i].min(), a[i].max()])


EDGES = np.array([-1.0, 0.0, 2.0])
GRIDS = {
    "alike": (4, None),
    "ranges": ([3, 4, 2], [(-1, 1), None, (0, 2)]),
    "some edges": ([3, EDGES, 5], None),
    "edges": ([EDGES, EDGES, EDGES], None),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int32"])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [None, True])
def test_grids_are_those_of_jax(density, weighted, grid, dtype):
    rng = _rng()
    points = _of(dtype, rng.standard_normal((150, 3)))
    weights = _of(dtype, np.abs(rng.standard_normal(150))) if weighted else None
    bins, range = GRIDS[grid]
    bins = [n if isinstance(n, int) else sent.asarray(n) for n in bins] if isinstance(bins, list) else bins
    want, _ = jax.jit(lambda *arrays: jnp.histogramdd(arrays[0], bins, range, arrays[1], density))(points, weights)
    theirs = jnp.histogramdd(points, bins, range, weights, density)[1]  # step by step: a program may contract products
    for implementation in BACKENDS:
        got, edges_of = bj.histogramdd(points, bins, range, weights, density, implementation=implementation)
        for mine, other in zip(edges_of, theirs, strict=True):
            np.testing.assert_array_equal(wide(mine), wide(other))
        assert got.shape == want.shape and ((weights is None and not density) or got.dtype == want.dtype)
        close(got, want, want.dtype.name, scale=100 if density else 20)


def test_a_point_that_is_nowhere_in_one_dimension_is_nowhere():
    points = sent.asarray([[0.5, 0.5], [0.5, 9], [-1, 0.5], [NAN, 0.5], [0.5, -7], [1, 1]])
    y, _ = bj.histogramdd(points, 2, [(0, 1), (0, 1)])
    np.testing.assert_array_equal(y, [[0, 0], [0, 2]])


# ---------------------------------------------------------------------------------------------------------------------
# Programs


def test_programs_are_one_call():
    x = sent.linspace(0, 1, 100, dtype=jnp.float32)
    is_one_call(lambda s, v: bj.searchsorted(s, v, implementation="native"), "baracuda.searchsorted", x, x[::-1])
    is_one_call(lambda i: bj.bincount(i, length=7, implementation="native"), "baracuda.bincount", sent.arange(9))


def test_same_bits_every_time():
    x = sent.asarray(_rng().standard_normal(200_001), jnp.float32)
    same_bits_every_time(lambda x: bj.histogram(x, 77, implementation="native")[0], x)
    same_bits_every_time(lambda x: bj.histogram(x, 77, weights=x, implementation="native")[0], x)
    same_bits_every_time(lambda x: bj.searchsorted(jnp.sort(x[:999]), x, implementation="native"), x)


# ---------------------------------------------------------------------------------------------------------------------
# Shards


@pytest.mark.parametrize("kind", ["auto", "explicit"])
def test_counts_of_shards(kind):
    """Over one axis of a mesh and over two at once; with weights, whose sums are of shards too."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    x = sent.asarray(_rng().standard_normal(64), jnp.float32)
    programs = (
        lambda x: bj.histogram(x, 9, (-1, 1))[0],
        lambda x: bj.bincount(jnp.round(3 * x).astype(jnp.int32), length=5),
        lambda x: bj.histogram(x, 9, (-1, 1), weights=x)[0],
        lambda x: bj.digitize(x, sent.linspace(-1, 1, 9, dtype=x.dtype)),
    )
    for axes, spec in ((1, "d"), (2, ("d", "e"))):
        over = mesh(kind, axes)
        for program in programs:
            want = program(jax.device_put(x, devices()[0]))
            with jax.set_mesh(over):
                got = jax.jit(program)(*put([x], over, [P(spec)]))
            close(got, want, want.dtype.name)


def test_edges_are_the_same_step_by_step():
    x = _rng().random(20)
    with jax.disable_jit():
        got = bj.histogram(x, 7, (0.1, 0.8))
    want = bj.histogram(x, 7, (0.1, 0.8))
    for a, b in zip(got, want, strict=True):
        same_bits(a, b)
