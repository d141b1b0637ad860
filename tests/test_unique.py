"""What positions and distinct values are at the edges."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import same_bits
from hypothesis import given
from hypothesis import strategies as st
from programs import FLOATS, same_bits_every_time, wide

import baracuda_jax as bj
from baracuda_jax._core import checks

BACKENDS = ("native", "xla")
INF, NAN = np.inf, np.nan
each_backend = pytest.mark.parametrize("implementation", BACKENDS)
each_element = pytest.mark.parametrize("dtype", checks.REAL)
ALL = dict(return_index=True, return_inverse=True, return_counts=True)


def _few(dtype, *shape, seed=0):
    """Of few values, so that many are alike, and zero."""
    x = np.random.default_rng(seed).integers(0 if dtype[0] in "ub" else -3, 4, shape)
    if dtype == "bool":
        return sent.asarray(x > 1)
    x = sent.asarray(x, dtype)
    return x * sent.asarray(-1, dtype) if dtype in FLOATS else x  # -0 and 0 both


def _edges(dtype, n, seed=0):
    return sent.asarray(np.random.default_rng(seed).choice([NAN, -NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0], n), dtype)


def _equal(got, theirs):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(theirs), strict=True):
        assert x.shape == y.shape
        np.testing.assert_array_equal(wide(x), wide(y))


# ---------------------------------------------------------------------------------------------------------------------
# nonzero


@each_element
@pytest.mark.parametrize("shape", [(40,), (6, 7), (2, 3, 4)])
@pytest.mark.parametrize("size", [0, 5, 60])
@pytest.mark.parametrize("fill", ["none", "one", "each"])
def test_positions_are_those_of_jax(fill, size, shape, dtype):
    a = _few(dtype, *shape)
    fill = {"none": None, "one": -1, "each": tuple(range(7, 7 + len(shape)))}[fill]
    want = jax.jit(lambda a: jnp.nonzero(a, size=size, fill_value=fill))(a)
    for implementation in BACKENDS:
        exact = bj.nonzero(a, implementation=implementation)
        assert all(x.dtype == jnp.int32 for x in exact)
        _equal(exact, np.nonzero(np.asarray(a)))
        _equal(bj.nonzero(a, size=size, fill_value=fill, implementation=implementation), want)


@each_backend
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_not_zero_and_minus_zero_is(dtype, implementation):
    a = _edges(dtype, 100)
    _equal(bj.nonzero(a, implementation=implementation), np.nonzero(wide(a)))
    bits = {2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}[a.dtype.itemsize]
    smallest = jax.lax.bitcast_convert_type(sent.ones(3, bits), a.dtype)
    np.testing.assert_array_equal(bj.nonzero(smallest, size=3, implementation="native")[0], [0, 1, 2])


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 65_536, 65_537, 400_003])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
def test_long_arrays(n, share):
    """Chunks of a row, full and empty; a size that ends inside a chunk."""
    mask = np.random.default_rng(0).random(n) < share
    want = np.flatnonzero(mask)
    for size in {0, 1, len(want) // 2, len(want), len(want) + 3}:
        got = np.asarray(bj.nonzero(sent.asarray(mask), size=size, fill_value=-5, implementation="native")[0])
        np.testing.assert_array_equal(got[: len(want)], want[:size])
        np.testing.assert_array_equal(got[len(want) :], -5)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("tiles", [1, 2, 4, 5])
@pytest.mark.parametrize("more", [-16, 1])
@pytest.mark.parametrize("rows", [1, 3])
def test_rows_of_a_few_tiles(rows, more, tiles, dtype):
    """Rows that a block takes alone, and a little longer ones; positions for all elements, for fewer and for many more."""
    tile = (1 << 15) // max(4, jnp.dtype(dtype).itemsize)
    n = tiles * tile + more
    mask = np.random.default_rng(tiles).random((rows, n)) < 0.3
    a = sent.asarray(mask, dtype)
    for size in (n // 5, n, n + 4096, n + 4097):
        got = jax.vmap(lambda a, size=size: bj.nonzero(a, size=size, fill_value=-1, implementation="native")[0])(a)
        for row, elements in zip(np.asarray(got), mask, strict=True):
            want = np.flatnonzero(elements)[:size]
            np.testing.assert_array_equal(row, np.concatenate([want, np.full(size - len(want), -1)]))


@pytest.mark.parametrize("rows, n, size", [(300, 40, 17), (2, 70_000, 30_000), (2000, 3, 5), (0, 5, 3), (4, 0, 3)])
def test_batches_of_positions(rows, n, size):
    mask = np.random.default_rng(0).random((rows, n)) < 0.5
    got = jax.vmap(lambda a: bj.nonzero(a, size=size, fill_value=-1, implementation="native")[0])(sent.asarray(mask))
    for row, elements in zip(np.asarray(got), mask, strict=True):
        want = np.flatnonzero(elements)[:size]
        np.testing.assert_array_equal(row, np.concatenate([want, np.full(size - len(want), -1)]))


@each_backend
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_no_elements_have_no_positions(shape, implementation):
    a = sent.zeros(shape)
    assert [x.shape for x in bj.nonzero(a, implementation=implementation)] == [(0,)] * len(shape)
    _equal(bj.nonzero(a, size=2, implementation=implementation), jnp.nonzero(a, size=2))
    _equal(bj.nonzero(a, size=2, fill_value=4, implementation=implementation), [np.array([4, 4])] * len(shape))


@given(st.integers(0, 3000), st.floats(0, 1), st.integers(0, 100))
def test_positions_are_those_of_the_mask(n, share, seed):
    mask = np.random.default_rng(seed).random(n) < share
    for implementation in BACKENDS:
        positions = np.asarray(bj.nonzero(sent.asarray(mask), size=n, fill_value=n, implementation=implementation)[0])
        found = positions[positions < n]
        assert mask[found].all() and len(found) == mask.sum() and (np.diff(found) > 0).all()


# ---------------------------------------------------------------------------------------------------------------------
# unique


@each_element
@pytest.mark.parametrize(
    "shape, how",
    [
        ((40,), {}),
        ((6, 7), ALL),
        ((40,), dict(**ALL, size=0)),
        ((40,), dict(**ALL, size=2)),
        ((6, 7), dict(**ALL, size=9)),
        ((6, 7), dict(**ALL, size=9, fill_value=1)),
    ],
    ids=str,
)
def test_distinct_values_are_those_of_jax(shape, how, dtype):
    x, whole = _few(dtype, *shape), jax.jit if "size" in how else lambda fun: fun  # sizes may depend on values
    want = whole(lambda x: jnp.unique(x, **how))(x)
    for implementation in BACKENDS:
        got = whole(lambda x, p=implementation: bj.unique(x, **how, implementation=p))(x)
        assert [y.dtype.name for y in jax.tree.leaves(got)] == [x.dtype.name, *["int32"] * 3][: 4 if how else 1]
        _equal(got, want)
        same_bits(jax.tree.leaves(got)[0], jax.tree.leaves(want)[0])


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_is_last_and_one_value_or_many(dtype, equal_nan):
    x = _edges(dtype, 60)
    for how in (dict(**ALL, equal_nan=equal_nan), dict(**ALL, equal_nan=equal_nan, size=4)):
        whole = jax.jit if "size" in how else lambda fun: fun
        want = whole(lambda x, how=how: jnp.unique(x, **how))(x)
        for implementation in BACKENDS:
            _equal(whole(lambda x, how=how, p=implementation: bj.unique(x, **how, implementation=p))(x), want)
    for implementation in BACKENDS:
        assert np.isnan(wide(bj.unique(x, equal_nan=equal_nan, implementation=implementation))).sum() == (
            1 if equal_nan else np.isnan(wide(x)).sum()
        )


@given(st.integers(1, 500), st.integers(1, 50), st.integers(0, 100))
def test_the_inverse_makes_the_array_again(n, values, seed):
    x = np.random.default_rng(seed).integers(0, values, n).astype(np.float32) / 4
    for implementation in BACKENDS:

        @jax.jit
        def both(x, p=implementation):
            runs = bj.unique_consecutive(x, True, True, size=n, implementation=p)
            return bj.unique(x, **ALL, size=n, implementation=p), runs

        (y, index, inverse, counts), runs = jax.tree.map(np.asarray, both(x))
        np.testing.assert_array_equal(y[inverse], x)
        np.testing.assert_array_equal(x[index], y)
        assert counts.sum() == n
        y, inverse, counts = runs
        np.testing.assert_array_equal(y[inverse], x)
        assert counts.sum() == n


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("how", [{}, dict(size=3), dict(size=12), dict(size=12, fill_value=1)], ids=str)
def test_distinct_slices_are_those_of_jax(how, axis, dtype):
    x = _few(dtype, 8, 2, 1) if axis == 0 else jnp.moveaxis(_few(dtype, 8, 2, 2), 0, axis)
    whole = jax.jit if "size" in how else lambda fun: fun
    want = whole(lambda x: jnp.unique(x, **ALL, **how, axis=axis))(x)
    for implementation in BACKENDS:
        _equal(whole(lambda x, p=implementation: bj.unique(x, **ALL, **how, axis=axis, implementation=p))(x), want)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int8", "bool"])
def test_slices_of_a_row_are_its_elements(dtype):
    want = jnp.unique(_few(dtype, 20), size=8)
    for implementation in BACKENDS:
        _equal(bj.unique(_few(dtype, 20), axis=0, size=8, implementation=implementation), want)


@each_backend
def test_no_elements_have_no_values(implementation):
    for fun in (bj.unique, bj.unique_consecutive):
        x = sent.zeros((0, 3))
        assert fun(x, implementation=implementation).shape == (0,)
        np.testing.assert_array_equal(fun(x, size=2, fill_value=7, implementation=implementation), [7, 7])
        values, inverse, counts = fun(x, return_inverse=True, return_counts=True, size=0, implementation=implementation)
        assert (values.shape, inverse.shape, counts.shape) == ((0,), (0, 3), (0,))
        with pytest.raises(ValueError, match=f"^{fun.__name__}: fill_value must be given where"):
            fun(x, size=2, implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# unique_consecutive


def _runs(x):
    """In NumPy, of the elements of a flat array."""
    x = np.asarray(x).ravel()
    start = np.concatenate([np.ones(min(len(x), 1), bool), x[1:] != x[:-1]])
    return x[start], np.cumsum(start) - 1, np.diff(np.append(np.flatnonzero(start), len(x)))


@each_element
@each_backend
@pytest.mark.parametrize("shape", [(1,), (60,), (6, 7)])
def test_runs_are_those_of_the_definition(shape, dtype, implementation):
    x = _few(dtype, *shape)
    values, inverse, counts = bj.unique_consecutive(x, True, True, implementation=implementation)
    want = _runs(x)
    assert inverse.shape == shape
    _equal((values, inverse.ravel(), counts), want)
    k = len(want[0])
    values, _, counts = bj.unique_consecutive(x, True, True, size=k + 2, fill_value=1, implementation=implementation)
    np.testing.assert_array_equal(counts, [*want[2], 0, 0])
    np.testing.assert_array_equal(wide(values), [*wide(want[0]), 1, 1])
    few = bj.unique_consecutive(x, return_counts=True, size=k // 2, implementation=implementation)
    _equal(few, (want[0][: k // 2], want[2][: k // 2]))


@each_backend
def test_a_nan_is_a_run_of_its_own(implementation):
    x = sent.asarray([NAN, NAN, 1, 1, NAN, -0.0, 0.0])
    values, counts = bj.unique_consecutive(x, return_counts=True, implementation=implementation)
    np.testing.assert_array_equal(values, [NAN, NAN, 1, NAN, 0])
    np.testing.assert_array_equal(counts, [1, 1, 2, 1, 2])


@pytest.mark.parametrize("n", [65_536, 65_537, 300_001])
def test_long_runs(n):
    """That begin and end with a chunk, or not."""
    for x in (np.arange(n) // 65_536, np.arange(n) // 1000, np.zeros(n, int)):
        want = _runs(x)
        got = bj.unique_consecutive(
            sent.asarray(x, jnp.float32), True, True, size=len(want[0]) + 1, implementation="native"
        )
        np.testing.assert_array_equal(got[0][:-1], want[0])
        np.testing.assert_array_equal(got[1], want[1])
        np.testing.assert_array_equal(got[2][:-1], want[2])


# ---------------------------------------------------------------------------------------------------------------------
# Programs and derivatives


@each_backend
def test_values_have_the_gradient_of_their_elements(implementation):
    x = sent.asarray([3.0, 0.0, 3.0, 3.0, 1.0])
    w = sent.asarray([1.0, 10, 100, 1000])
    weigh = lambda fun, x, **how: (fun(x, size=4, implementation=implementation, **how) * w).sum()
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: weigh(bj.unique, x, fill_value=0)))(x), [100, 1, 0, 0, 10])
    np.testing.assert_array_equal(
        jax.jit(jax.grad(lambda x: weigh(bj.unique_consecutive, x)))(x), [1, 10, 100, 0, 1000]
    )
    batch = jax.vmap(jax.grad(lambda x: weigh(bj.unique, x, fill_value=0)))(jnp.stack([x, x[::-1]]))
    np.testing.assert_array_equal(batch[0], [100, 1, 0, 0, 10])


def test_sizes_must_be_known_under_jit():
    x = sent.asarray([1.0, 2, 2])
    for fun in (bj.nonzero, bj.unique, bj.unique_consecutive):
        with pytest.raises(ValueError, match=f"^{fun.__name__}: size must be given under jit.*values of x"):
            jax.jit(fun)(x)
        _equal(jax.jit(functools.partial(fun, size=3))(x), fun(x, size=3))


def test_programs_are_one_call():
    x = sent.ones(100)
    text = jax.jit(lambda x: bj.unique_consecutive(x, size=7, implementation="native")).lower(x).as_text()
    assert text.count("@baracuda.run_starts(") == 1
    text = jax.jit(lambda x: bj.nonzero(x, size=7, implementation="native")).lower(x).as_text()
    assert text.count("@baracuda.nonzero(") == 1


def test_same_bits_every_time():
    x = _few("float32", 300_001)
    same_bits_every_time(lambda x: bj.nonzero(x, size=200_000, implementation="native")[0], x)
    same_bits_every_time(lambda x: bj.unique(x, size=9, implementation="native"), x)
