"""Soft dynamic time warping: sums over all paths, edges, and errors."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import baracuda_jax as bj
from baracuda_jax.backward import soft_dtw_backward

INF = float("inf")
BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])
SHAPES = [(1, 1), (1, 4), (4, 1), (2, 2), (3, 2), (3, 4), (4, 4)]


@functools.cache
def _paths(rows, columns):
    """Masks of all paths through a matrix."""
    masks = []

    def go(path):
        n, m = path[-1]
        if (n, m) == (rows - 1, columns - 1):
            masks.append(np.zeros((rows, columns)))
            masks[-1][tuple(np.transpose(path))] = 1
        for down, right in ((1, 0), (0, 1), (1, 1)):
            if n + down < rows and m + right < columns:
                go([*path, (n + down, m + right)])

    go([(0, 0)])
    return np.array(masks)


def test_there_are_as_many_paths_as_delannoy_says():
    assert [len(_paths(n, n)) for n in (1, 2, 3, 4)] == [1, 3, 13, 63]


def _by_paths(cost, gamma):
    """The soft minimum and the expected alignment."""
    paths = _paths(*cost.shape)
    total = np.exp(-(paths * cost).sum((1, 2)) / gamma)
    return -gamma * np.log(total.sum()), np.einsum("p,pnm->nm", total / total.sum(), paths)


@BOTH
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gamma", [0.3, 1, 2.5])
def test_sums_over_paths(shape, gamma, implementation):
    cost = np.random.default_rng(shape).standard_normal(shape)
    want, expected = _by_paths(cost, gamma)
    fun = lambda cost: bj.soft_dtw(cost, gamma=gamma, implementation=implementation)
    y, dcost = jax.jit(jax.value_and_grad(fun))(cost)
    np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dcost, expected, rtol=1e-11, atol=1e-13)


def _drawn(rows, columns, batch=5, seed=0):
    """Costs of matrices of several sizes; the first is all of it, the last has one row."""
    rng = np.random.default_rng((seed, rows, columns))
    row_lengths, column_lengths = rng.integers(1, rows + 1, batch), rng.integers(1, columns + 1, batch)
    row_lengths[0], column_lengths[0], row_lengths[-1] = rows, columns, 1
    return rng.standard_normal((batch, rows, columns)) ** 2, row_lengths, column_lengths


def _double_loop(cost, gamma):
    """The paper's recursions: the soft minimum and its gradient."""
    rows, columns = cost.shape
    r, e = np.full((rows + 2, columns + 2), np.inf), np.zeros((rows + 2, columns + 2))
    r[0, 0] = 0
    for n, m in itertools.product(range(1, rows + 1), range(1, columns + 1)):
        ways = np.array([r[n - 1, m - 1], r[n - 1, m], r[n, m - 1]])
        r[n, m] = cost[n - 1, m - 1] - gamma * np.logaddexp.reduce(-ways / gamma)
    e[rows, columns] = 1
    for n, m in itertools.product(reversed(range(1, rows + 1)), reversed(range(1, columns + 1))):
        for i, k in ((n + 1, m), (n, m + 1), (n + 1, m + 1)):
            if i <= rows and k <= columns:
                e[n, m] += e[i, k] * np.exp((r[i, k] - cost[i - 1, k - 1] - r[n, m]) / gamma)
    return r[rows, columns], e[1:-1, 1:-1]


@BOTH
@pytest.mark.parametrize("rows, columns", [(6, 5), (3, 32), (40, 33), (7, 70), (20, 128), (150, 6), (9, 130)])
def test_values_and_gradients_are_those_of_a_double_loop(rows, columns, implementation):
    """Elements of an antidiagonal are one to four in a lane of a warp, then a block's."""
    if implementation == "xla" and columns > 33:
        pytest.skip("plain JAX has one way")
    cost, *lengths = _drawn(rows, columns)
    dy = np.random.default_rng(1).standard_normal(len(cost))
    want, gradient = np.zeros(len(cost)), np.zeros(cost.shape)
    for b, (n, m) in enumerate(zip(*lengths, strict=True)):
        want[b], gradient[b, :n, :m] = _double_loop(cost[b, :n, :m], 0.5)
    gradient *= dy[:, None, None]
    for dtype, tolerance in (("float64", 1e-12), ("float32", 3e-6)):
        rough = 30 if dtype == "float32" and implementation == "xla" else 1  # of logarithms
        fun = lambda cost: bj.soft_dtw(cost, *lengths, gamma=0.5, implementation=implementation)
        y, pull = jax.vjp(jax.jit(fun), jnp.asarray(cost, dtype))
        np.testing.assert_allclose(y, want, rtol=rough * tolerance, atol=3 * tolerance)
        (dcost,) = pull(jnp.asarray(dy, dtype))
        np.testing.assert_allclose(dcost, gradient, rtol=10 * tolerance, atol=3 * rough * tolerance)


@BOTH
def test_gradients_are_limits_of_differences(implementation):
    cost, *lengths = _drawn(5, 4, batch=3)
    fun = jax.jit(lambda cost: bj.soft_dtw(cost, *lengths, gamma=0.7, implementation=implementation).sum())
    v, step = np.random.default_rng(2).standard_normal(cost.shape), 1e-5
    slope = (fun(cost + step * v) - fun(cost - step * v)) / (2 * step)
    np.testing.assert_allclose(np.vdot(jax.grad(fun)(cost), v), slope, rtol=1e-8)
    np.testing.assert_allclose(jax.jvp(fun, (cost,), (v,))[1], slope, rtol=1e-8)


@BOTH
def test_of_a_small_gamma_it_is_the_minimum(implementation):
    """Whose alignment is one path."""
    cost = np.random.default_rng(0).standard_normal((1, 4, 4)) ** 2
    paths = _paths(4, 4)
    costs = (paths * cost).sum((1, 2))
    fun = lambda cost: bj.soft_dtw(cost, gamma=1e-4, implementation=implementation).sum()
    for dtype in ("float64", "float32"):
        y, dcost = jax.value_and_grad(fun)(jnp.asarray(cost, dtype))
        np.testing.assert_allclose(y, costs.min(), rtol=1e-6)
        np.testing.assert_allclose(dcost[0], paths[costs.argmin()], atol=1e-6)


@BOTH
def test_costs_that_no_exponential_has(implementation):
    """Paths of thousands, in float32."""
    rng = np.random.default_rng(0)
    cost = (1000 * rng.standard_normal((60, 50)) ** 2).astype(np.float32)
    fun = lambda cost: bj.soft_dtw(cost, gamma=10.0, implementation=implementation)
    y, dcost = jax.value_and_grad(fun)(cost)
    want, expected = jax.value_and_grad(fun)(jnp.asarray(cost, jnp.float64))
    np.testing.assert_allclose(y, want, rtol=1e-6)
    np.testing.assert_allclose(dcost, expected, atol=2e-4 if implementation == "native" else 5e-2)


@BOTH
def test_elements_that_do_not_count(implementation):
    """Nothing of them is in a value or a derivative, not even NaN."""
    cost, rows, columns = _drawn(6, 7)
    fun = lambda cost, rows: bj.soft_dtw(cost, rows, columns, implementation=implementation)
    y, pull = jax.vjp(lambda cost: fun(cost, rows), cost)
    counts = (np.arange(6) < rows[:, None])[:, :, None] & (np.arange(7) < columns[:, None])[:, None]
    z, spoilt_pull = jax.vjp(lambda cost: fun(cost, rows), np.where(counts, cost, np.nan))
    np.testing.assert_array_equal(z, y)
    for (dcost,) in (pull(np.ones(5)), spoilt_pull(np.ones(5))):
        np.testing.assert_array_equal(dcost[~counts], 0)
        assert np.isfinite(dcost).all() and dcost[0].any()
    np.testing.assert_array_equal(fun(cost, np.where(rows == 6, 99, rows)), y)  # at most all


@BOTH
def test_series_without_elements(implementation):
    cost = np.ones((4, 3, 3))
    rows, columns = np.array([0, 0, 2, 3]), np.array([0, 1, 0, 3])
    y, pull = jax.vjp(lambda cost: bj.soft_dtw(cost, rows, columns, implementation=implementation), cost)
    np.testing.assert_array_equal(y[:3], [0, INF, INF])
    (dcost,) = pull(np.ones(4))
    assert not dcost[:3].any() and dcost[3].any() and np.isfinite(dcost).all()


@BOTH
def test_elements_that_paths_avoid(implementation):
    """Those that cost infinity; where all paths have one, nothing is left."""
    cost = np.random.default_rng(0).standard_normal((3, 4)) ** 2
    cost[1, :3] = INF
    fun = lambda cost: bj.soft_dtw(cost, implementation=implementation)
    y, dcost = jax.value_and_grad(fun)(cost)
    paths = _paths(3, 4)
    free = paths[~(paths * (cost == INF)).any((1, 2))]
    total = np.exp(-(free * np.where(cost == INF, 0, cost)).sum((1, 2)))
    np.testing.assert_allclose(y, -np.log(total.sum()), rtol=1e-12)
    np.testing.assert_allclose(dcost, np.einsum("p,pnm->nm", total / total.sum(), free), rtol=1e-12, atol=1e-15)
    cost[1] = INF
    y, dcost = jax.value_and_grad(fun)(cost)
    assert y == INF and not dcost.any()
    for wrong in (np.nan, -INF):
        cost[1] = wrong
        assert np.isnan(fun(cost))


@BOTH
def test_empty_arrays(implementation):
    call = lambda *shape: bj.soft_dtw(np.zeros(shape), implementation=implementation)
    assert call(0, 3, 4).shape == (0,)
    np.testing.assert_array_equal(call(2, 0, 0), [0, 0])
    np.testing.assert_array_equal(call(2, 0, 3), [INF, INF])
    np.testing.assert_array_equal(call(2, 3, 0), [INF, INF])
    assert jax.grad(lambda cost: bj.soft_dtw(cost, implementation=implementation).sum())(np.zeros((2, 0, 3))).size == 0


def test_lengths_of_each_matrix_under_vmap():
    cost, *lengths = _drawn(5, 6, batch=6)
    want = bj.soft_dtw(cost, *lengths)
    np.testing.assert_array_equal(jax.vmap(bj.soft_dtw)(cost, *lengths), want)
    gradients = jax.grad(lambda cost: bj.soft_dtw(cost, *lengths).sum())(cost)
    np.testing.assert_array_equal(jax.vmap(jax.grad(bj.soft_dtw))(cost, *lengths), gradients)


def test_padding_changes_nothing():
    """More columns than a sample has, so that a block has them."""
    cost, *lengths = _drawn(8, 9)
    fun = lambda cost: bj.soft_dtw(cost, *lengths).sum()
    want, dcost = jax.value_and_grad(fun)(cost)
    same, same_dcost = jax.value_and_grad(fun)(np.pad(cost, [(0, 0), (0, 5), (0, 200)], constant_values=np.nan))
    np.testing.assert_allclose(same, want, rtol=1e-14)
    np.testing.assert_allclose(same_dcost[:, :8, :9], dcost, rtol=1e-12, atol=1e-15)
    assert not same_dcost[:, 8:].any() and not same_dcost[:, :, 9:].any()


def test_second_derivatives_are_the_definitions():
    cost, *lengths = _drawn(3, 4, batch=2)
    fun = lambda implementation: lambda cost: bj.soft_dtw(cost, *lengths, implementation=implementation).sum()
    native, plain = (jax.jit(jax.hessian(fun(implementation)))(cost) for implementation in ("native", "xla"))
    np.testing.assert_allclose(native, plain, rtol=1e-10, atol=1e-13)
    assert np.abs(plain).max() > 0.01


@pytest.mark.parametrize("shape", [(2, 2050), (2050, 2)])
def test_more_columns_than_a_kernel_has_states_for(shape):
    """Those of the transpose are few."""
    cost = np.random.default_rng(0).standard_normal((1, *shape)) ** 2
    y, dcost = jax.value_and_grad(lambda cost: bj.soft_dtw(cost).sum())(cost)
    want, gradient = _double_loop(cost[0], 1.0)
    np.testing.assert_allclose(y, want, rtol=1e-10)
    np.testing.assert_allclose(dcost[0], gradient, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(soft_dtw_backward(cost, np.ones(1)), dcost, rtol=1e-12)
    text = jax.jit(bj.soft_dtw).lower(cost).as_text()
    assert "baracuda.soft_dtw" in text


def test_more_rows_and_columns_than_a_kernel_has_states_for():
    """Plain JAX computes them."""
    cost = np.zeros((1, 2049, 2049))
    y = bj.soft_dtw(cost, np.array([2]), np.array([2]))
    np.testing.assert_allclose(y, [-np.log(3)])


def test_the_backward_function():
    cost, *lengths = _drawn(4, 5)
    dy = np.random.default_rng(3).standard_normal(len(cost))
    (want,) = jax.vjp(lambda cost: bj.soft_dtw(cost, *lengths, gamma=2.0), cost)[1](dy)
    np.testing.assert_array_equal(soft_dtw_backward(cost, dy, *lengths, gamma=2.0), want)
    text = jax.jit(lambda cost: soft_dtw_backward(cost, dy, *lengths)).lower(cost).compile().as_text()
    assert 'custom_call_target="baracuda.soft_dtw_backward"' in text
    with pytest.raises(
        ValueError, match=r"soft_dtw_backward: dy must have shape \(5,\), one for each matrix, got \(\)"
    ):
        soft_dtw_backward(cost, 1.0)


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(x=np.zeros(3)), ValueError, r"x must have two dimensions or more, rows and columns, got shape \(3,\)"),
        (dict(x=np.zeros((2, 4, 3), int)), TypeError, "x must have one of the dtypes .*, got int64"),
        (dict(row_lengths=np.zeros(3, int)), ValueError, r"row_lengths must have shape \(2,\), one for each sample"),
        (dict(column_lengths=np.zeros(2)), TypeError, "column_lengths must have one of the dtypes int8.*, got float64"),
        (dict(gamma=0), ValueError, "gamma must be greater than 0, got 0"),
        (dict(gamma="1"), TypeError, "gamma must be a static number, got '1'"),
        (dict(gamma=np.inf), ValueError, "gamma must be finite, got inf"),
    ],
)  # fmt: skip
@pytest.mark.exhaustive
def test_errors(change, error, message):
    arguments = dict(x=np.zeros((2, 4, 3))) | change
    with pytest.raises(error, match=f"soft_dtw: {message}"):
        bj.soft_dtw(**arguments)
