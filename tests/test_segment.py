"""What segment ops do at the edges."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from hypothesis import given
from hypothesis import strategies as st
from oracles import segment as oracle

import baracuda_jax as bj
from baracuda_jax.segment._kernels import index_of

OPS = {name: getattr(bj, f"segment_{name}") for name in ("sum", "mean", "max", "min", "prod")}
each_op = pytest.mark.parametrize("name", OPS)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _check(name, data, ids, num_segments, dtype="float64", **kwargs):
    got = OPS[name](sent.asarray(data), sent.asarray(ids), num_segments, implementation="native", **kwargs)
    close(got, oracle.reduced(name, data, ids, num_segments, kwargs.get("empty_value")), dtype)
    return got


@each_op
@given(st.data())
def test_any_shape_and_ids(name, data):
    seed = data.draw(st.integers(0, 2**31))
    shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    num_segments = data.draw(st.integers(0, 12))
    rng = np.random.default_rng(seed)
    ids = rng.integers(-3, num_segments + 3, shape[0])
    is_sorted = data.draw(st.booleans())
    ids = np.sort(ids) if is_sorted else ids
    _check(name, rng.standard_normal(shape), ids, num_segments, indices_are_sorted=is_sorted)


@each_op
@pytest.mark.parametrize("columns", [1, 3, 16, 64, 129])
@pytest.mark.parametrize("skew", ["even", "one segment", "power law", "one row each", "mostly empty"])
@pytest.mark.parametrize("rows", [7001, 17001])
def test_many_rows(name, rows, columns, skew):
    """Enough rows that segments span workers, with every imbalance; the second have an index."""
    rng = np.random.default_rng(1)
    num_segments, ids = {
        "even": (300, rng.integers(0, 300, rows)),
        "one segment": (3, np.ones(rows, np.int64)),
        "power law": (500, np.minimum(rng.zipf(1.3, rows), 501) - 1),
        "one row each": (rows, rng.permutation(rows)),
        "mostly empty": (20000, rng.integers(0, 20000, rows)),
    }[skew]
    data = 1 + 0.01 * rng.standard_normal((rows, columns)) if name == "prod" else rng.standard_normal((rows, columns))
    dtype = ("float32", "float64")[(columns + len(skew) + len(name)) % 2]
    got = OPS[name](sent.asarray(data, dtype), sent.asarray(ids), num_segments, implementation="native")
    want = oracle.reduced(name, np.asarray(data, dtype), ids, num_segments)
    close(got, want, dtype, scale=20)


def _skewed(skew, rng, shape, num_segments, dtype):
    """Ids of which some are of no segment."""
    ids = rng.integers(-1, num_segments + 2, shape)
    if skew == "one segment":
        ids = np.where(rng.random(shape) < 0.99, num_segments // 2, ids)
    return np.clip(ids, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize("num_segments", [0, 1, 255, 256, 700, 16384, 16385])
@pytest.mark.parametrize("rows", [0, 1, 31, 1024, 1025, 4096, 4097, 16384, 16385])
@pytest.mark.parametrize("skew", ["even", "one segment"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_index_is_a_stable_sort(dtype, skew, rows, num_segments):
    """Of batches that a block sorts, and of larger ones."""
    ids = _skewed(skew, np.random.default_rng(rows + num_segments), (3, rows), num_segments, dtype)
    segment = np.where((ids < 0) | (ids > num_segments), num_segments, ids)
    perm, offsets = index_of(sent.asarray(ids), num_segments, False)
    np.testing.assert_array_equal(perm, np.argsort(segment, axis=1, kind="stable"))
    begins = [np.searchsorted(np.sort(row), np.arange(num_segments + 1)) for row in segment]
    np.testing.assert_array_equal(offsets, begins)
    none, same = index_of(sent.asarray(np.sort(segment)), num_segments, True)
    assert none.shape == (3, 0)
    np.testing.assert_array_equal(same, begins)


@pytest.mark.parametrize("batches", [2048, 2049])
@pytest.mark.parametrize("rows", [3, 511, 512])
def test_the_index_of_many_batches(rows, batches):
    ids = np.random.default_rng(rows).integers(-1, 6, (batches, rows))
    perm, offsets = index_of(sent.asarray(ids), 5, False)
    segment = np.where(ids < 0, 5, np.minimum(ids, 5))
    np.testing.assert_array_equal(perm, np.argsort(segment, axis=1, kind="stable"))
    np.testing.assert_array_equal(offsets, (segment[:, :, None] < np.arange(6)).sum(1))


@each_op
@pytest.mark.parametrize(
    "columns, dtype", [(3, "float32"), (4, "float32"), (64, "float32"), (64, "float16"), (65, "int8")]
)
@pytest.mark.parametrize("skew", ["even", "one segment"])
def test_the_same_bits_alone_and_in_a_batch(name, skew, columns, dtype):
    """A batch of which the work is too much for a few blocks, and one of its members, with its gradient."""
    if name == "mean" and dtype == "int8":
        pytest.skip("mean takes floats")
    rng, rows, num_segments = np.random.default_rng(10), 1500, 180
    batches = 140 if columns < 8 else 40
    ids = sent.asarray(_skewed(skew, rng, rows, num_segments, "int32"))
    data = sent.asarray(1 + 0.1 * rng.standard_normal((batches, rows, columns)), dtype)
    call = lambda x: OPS[name](x, ids, num_segments, empty_value=1, implementation="native")
    every = call if dtype == "int8" else lambda x: (lambda y, pull: (y, *pull(y)))(*jax.vjp(call, x))
    alone, batch = jax.jit(every), jax.jit(jax.vmap(every))(data)
    for i in (0, batches - 1):
        jax.tree.map(lambda one, many, i=i: same_bits(one, many[i]), alone(data[i]), batch)


@each_op
@pytest.mark.parametrize(
    "rows, num_segments",
    [(14564, 1820), (8000, 8192), (16384, 1820), (16385, 1820), (8000, 32768), (8000, 32769), (16384, 1), (16385, 1)],
)
def test_rows_of_a_block_and_more(name, rows, num_segments):
    """As many rows and segments as kernels order by their ids, and one more."""
    rng = np.random.default_rng(rows)
    ids = _skewed("even", rng, rows, num_segments, "int32")
    _check(
        name,
        rng.integers(0, 3, (rows, 5)).astype(np.int32) if name != "mean" else rng.random((rows, 5)),
        ids,
        num_segments,
    )


@each_op
def test_sorted_and_unsorted_give_the_same_bits(name):
    rng = np.random.default_rng(2)
    ids = np.sort(rng.integers(-2, 40, 5000))
    data = sent.asarray(rng.standard_normal((5000, 7)), jnp.float32)
    call = lambda x, **kw: OPS[name](x, sent.asarray(ids), 38, implementation="native", **kw)
    same_bits(call(data), call(data, indices_are_sorted=True))
    grad = lambda **kw: jax.grad(lambda x: jnp.where(jnp.isfinite(y := call(x, **kw)), y, 0).sum())(data)
    same_bits(grad(), grad(indices_are_sorted=True))


@each_op
@pytest.mark.parametrize("dtype", INTEGERS)
def test_ids_of_every_integer_type(name, dtype):
    """Those too large for any segment are dropped, as negative ones are."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 5, 30).astype(dtype)
    ids[:3] = np.iinfo(dtype).max
    ids[3:6] = np.iinfo(dtype).min if np.iinfo(dtype).min < 0 else np.iinfo(dtype).max
    _check(name, rng.standard_normal((30, 4)), ids, 5)


@each_op
@pytest.mark.parametrize(
    "shape, num_segments",
    [
        ((0,), 3),
        ((0, 4), 3),
        ((5, 0), 3),
        ((5, 4), 0),
        ((0, 0), 0),
        ((2, 0, 3), 2),
        ((1,), 1),
        ((3, 1, 1, 1, 1, 1, 1, 2), 2),
    ],
)
def test_empty_dimensions(name, shape, num_segments):
    data, ids = np.ones(shape), np.zeros(shape[0], np.int32)
    got = _check(name, data, ids, num_segments)
    assert got.shape == (num_segments, *shape[1:])
    grad = jax.grad(lambda x: jnp.where(jnp.isfinite(y := OPS[name](x, ids, num_segments)), y, 0).sum())
    assert grad(sent.asarray(data)).shape == shape


@each_op
def test_all_ids_out_of_range(name):
    data = sent.ones((6, 3))
    got = _check(name, np.ones((6, 3)), np.array([-1, -9, 4, 5, 99, 4]), 4)
    grad = jax.jit(jax.grad(lambda x: OPS[name](x, sent.asarray([-1, -9, 4, 5, 99, 4]), 4, empty_value=7).sum()))(data)
    np.testing.assert_array_equal(grad, 0)
    assert got.shape == (4, 3)


@each_op
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint64"])
def test_empty_value(name, dtype):
    if name == "mean" and "int" in dtype:
        pytest.skip("mean takes floats")
    y = OPS[name](sent.ones((2, 3), dtype), sent.asarray([0, 2]), 4, empty_value=5, implementation="native")
    np.testing.assert_array_equal(np.asarray(y, np.float64), [[1] * 3, [5] * 3, [1] * 3, [5] * 3])
    same_bits(y, OPS[name](sent.ones((2, 3), dtype), sent.asarray([0, 2]), 4, empty_value=5, implementation="xla"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_default_empty_values_are_those_of_jax_ops(dtype):
    data, ids = sent.ones((2, 3), dtype), sent.asarray([0, 2])
    for name in ("sum", "max", "min", "prod"):
        same_bits(OPS[name](data, ids, 4), getattr(jax.ops, f"segment_{name}")(data, ids, 4))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    info = np.iinfo(dtype)
    data = np.array([info.max, info.max, 3, info.min, 5], dtype)
    for name in ("sum", "prod"):
        _check(name, data, np.zeros(5, np.int32), 1, dtype)
    for name in ("max", "min"):
        _check(name, data, np.zeros(5, np.int32), 1, dtype)


@each_op
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_nan_and_infinity_propagate(name, dtype):
    data = np.array([[1, np.nan], [np.inf, 2], [-np.inf, 3], [np.nan, -np.inf], [4, 5], [0, np.inf], [np.inf, 0]])
    ids = np.array([0, 0, 1, 1, 2, 3, 3])
    with np.errstate(invalid="ignore"):
        want = oracle.reduced(name, data, ids, 4)
    for implementation in ("native", "xla"):
        got = OPS[name](sent.asarray(data, dtype), sent.asarray(ids), 4, implementation=implementation)
        np.testing.assert_array_equal(np.asarray(got, np.float64), want)


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_segment_of_infinities_has_an_arg(name):
    worst = -np.inf if name == "max" else np.inf
    y, arg = OPS[name](sent.full((3, 2), worst), sent.asarray([1, 1, 1]), 3, return_residuals=True)
    np.testing.assert_array_equal(arg, [[3, 3], [0, 0], [3, 3]])
    np.testing.assert_array_equal(y, worst)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_ties(name, implementation, dtype):
    """First: the lowest row takes all. Split: equal parts, NaN among them, whatever the order of the rows."""
    data = sent.asarray([[2, 1], [3, np.nan], [3, 0], [3, np.nan], [3, 5]], dtype)
    ids = sent.asarray([0, 1, 1, 1, 0])
    data = -data if name == "min" else data
    dy = sent.full((3, 2), 6, dtype)
    grad = lambda ties: jax.vjp(lambda x: OPS[name](x, ids, 3, ties=ties, implementation=implementation), data)[1](dy)[
        0
    ]
    first, split = jax.jit(lambda: (grad("first"), grad("split")))()
    np.testing.assert_array_equal(np.asarray(first, float), [[0, 0], [6, 6], [0, 0], [0, 0], [6, 6]])
    np.testing.assert_array_equal(np.asarray(split, float), [[0, 0], [2, 3], [2, 0], [2, 3], [6, 6]])


def test_ties_split_as_jax_ops():
    rng = np.random.default_rng(5)
    data, ids = sent.asarray(rng.integers(0, 4, (60, 5)), jnp.float32), sent.asarray(rng.integers(0, 7, 60))
    for function, theirs in ((bj.segment_max, jax.ops.segment_max), (bj.segment_min, jax.ops.segment_min)):
        grad = lambda f: jax.grad(lambda x: jnp.sum(f(x) ** 2))(data)
        close(grad(lambda x: function(x, ids, 7, ties="split")), grad(lambda x: theirs(x, ids, 7)), "float32")


def test_the_arg_is_where_the_value_came_from():
    """Over many rows, ties and workers: backward agrees with forward."""
    rng = np.random.default_rng(6)
    data = sent.asarray(rng.integers(0, 50, (9000, 5)), jnp.bfloat16)
    ids = rng.integers(0, 5, 9000)
    for name in ("max", "min"):
        _, arg = OPS[name](data, sent.asarray(ids), 5, return_residuals=True, implementation="native")
        for s in range(5):
            rows = np.flatnonzero(ids == s)
            values = np.asarray(data, float)[rows]
            first = rows[values.argmax(0) if name == "max" else values.argmin(0)]
            np.testing.assert_array_equal(arg[s], first)
        dy = sent.asarray(rng.standard_normal((5, 5)), jnp.bfloat16)
        dx = getattr(bj, f"segment_{name}_backward")(sent.asarray(ids), arg, dy)
        want = np.zeros((9000, 5))
        np.put_along_axis(want, np.asarray(arg), np.asarray(dy, float), 0)
        np.testing.assert_array_equal(np.asarray(dx, float), want)


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_prod_gradient_is_exact_with_zeros(implementation):
    """No zero, one, two, in one segment; the definition is the product of the others."""
    data = np.array([[2.0, 0, 0], [3, 5, 0], [4, 7, 6], [0, 0, 9]])
    ids = np.array([0, 0, 0, 1])
    dy = np.array([[10.0, 20, 30], [40, 50, 60]])
    want = np.zeros_like(data)
    for n in range(4):
        others = (ids == ids[n]) & (np.arange(4) != n)
        want[n] = dy[ids[n]] * data[others].prod(0)
    fun = lambda x: bj.segment_prod(x, sent.asarray(ids), 2, implementation=implementation)
    loss = lambda x: jnp.vdot(fun(x), dy)
    gradient, hessian = jax.jit(lambda x: (jax.grad(loss)(x), jax.hessian(loss)(x)))(sent.asarray(data))
    np.testing.assert_allclose(gradient, want, rtol=1e-14)
    assert hessian[1, 1, 2, 1] == 0 and hessian[0, 1, 1, 1] == dy[0, 1] * 7  # the others' product, and its derivative
    np.testing.assert_allclose(hessian[0, 2, 1, 2], dy[0, 2] * 6)


def test_prod_of_half_precision_keeps_range():
    """The saved product is float32, so it neither overflows nor vanishes where its float16 would."""
    data = sent.asarray([1000.0, 1000.0, 0.001, 0.0], jnp.float16)
    grad = jax.jit(jax.grad(lambda x: bj.segment_prod(x, sent.zeros(4, jnp.int32), 1).astype(jnp.float32).sum()))(data)
    np.testing.assert_allclose(np.asarray(grad, float), [0, 0, 0, 1000], rtol=2e-3)


def test_num_segments_from_the_ids():
    assert bj.segment_sum(sent.ones(4), sent.asarray([0, 5, 2, -3])).shape == (6,)
    assert bj.segment_sum(sent.ones(2), sent.asarray([-1, -3])).shape == (0,)
    assert bj.segment_sum(sent.ones(0), sent.zeros(0, jnp.int32)).shape == (0,)
    with pytest.raises(ValueError, match="segment_sum: num_segments must be given under jit"):
        jax.jit(bj.segment_sum)(sent.ones(4), sent.asarray([0, 5, 2, -3]))


def test_python_lists_and_numpy_arrays_are_arrays():
    np.testing.assert_array_equal(bj.segment_sum([1.0, 2, 3], [0, 1, 0], 2), [4, 2])


@each_op
def test_a_broken_promise_of_sorted_ids_touches_no_other_memory(name):
    """The result is unspecified, of the right shape; the sanitizers watch the addresses."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        ids = sent.asarray(rng.integers(-5, 60, 6000))
        y = OPS[name](sent.ones((6000, 5)), ids, 50, indices_are_sorted=True, implementation="native")
        assert y.shape == (50, 5)


@each_op
def test_every_half_survives_the_kernel(name):
    """A segment of one row is that row, for each of the 65,536 bit patterns."""
    for dtype in (jnp.float16, jnp.bfloat16):
        data = jax.lax.bitcast_convert_type(sent.arange(65536, dtype=jnp.uint16), dtype)
        y = OPS[name](data, sent.arange(65536), 65536, implementation="native")
        want = np.asarray(data, np.float64)
        subnormal = np.abs(want) < np.finfo(np.float32).tiny  # XLA's CPU threads flush those of float32 to zero
        np.testing.assert_array_equal(np.where(subnormal, 0, np.asarray(y, np.float64)), np.where(subnormal, 0, want))


def test_sums_of_half_precision_are_rounded_to_nearest():
    rng = np.random.default_rng(8)
    for dtype, exponents in ((jnp.float16, (-26, 17)), (jnp.bfloat16, (-100, 120))):
        a = rng.standard_normal(20000) * 2.0 ** rng.integers(*exponents, 20000)
        data = sent.asarray(a, dtype)
        pairs = data.reshape(-1, 2).astype(jnp.float32)
        y = bj.segment_sum(data, jnp.repeat(sent.arange(10000), 2), 10000, implementation="native")
        want = (pairs[:, 0] + pairs[:, 1]).astype(dtype)
        np.testing.assert_array_equal(np.asarray(y, np.float64), np.asarray(want, np.float64))


def test_matches_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(9)
    data, ids = rng.standard_normal((500, 6)), rng.integers(0, 40, 500)
    index = torch.tensor(ids)[:, None].expand(500, 6)
    for name, reduce in {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin", "prod": "prod"}.items():
        x = torch.tensor(data, requires_grad=True)
        start = torch.zeros(40, 6, dtype=torch.float64)
        y = start.scatter_reduce(0, index, x, reduce, include_self=False)
        y.sin().sum().backward()
        fun = lambda v, name=name: OPS[name](v, sent.asarray(ids), 40)
        has_rows = np.isin(np.arange(40), ids)
        close(fun(sent.asarray(data))[has_rows], y.detach().numpy()[has_rows], "float64")
        grad = jax.jit(jax.grad(lambda v: jnp.sum(jnp.sin(fun(v)[has_rows]))))(sent.asarray(data))
        close(grad, x.grad.numpy(), "float64", scale=10)


@pytest.mark.parametrize("num_segments", [6, 40000])
@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_softmax_of_infinities(implementation, num_segments):
    """Also its gradient; of few rows, and where there is an index."""
    inf, nan = np.inf, np.nan
    x = np.array([-inf, 1, -inf, -inf, nan, 0, inf, 2, 3, 800, -800], np.float32)
    ids = np.array([0, 0, 1, 1, 2, 2, 3, 3, -1, 4, 4])
    dy = np.array([inf, 2, inf, nan, 1, 1, 1, 1, nan, 5, inf], np.float32)
    softmax = lambda x: bj.segment_softmax(x, ids, num_segments, implementation=implementation)
    y, pull = jax.vjp(softmax, x)
    np.testing.assert_array_equal(y, np.array([0, 1, 0, 0, nan, nan, nan, 0, 0, 1, 0], np.float32))
    np.testing.assert_array_equal(pull(dy)[0], np.array([0, 0, 0, 0, nan, nan, nan, 0, 0, 0, 0], np.float32))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_softmax_of_a_long_segment(dtype):
    """Which many workers have a part of, among short and empty ones, against float64; and its gradient."""
    rng = np.random.default_rng(7)
    ids = np.sort(np.where(rng.random(30000) < 0.6, 500, rng.integers(0, 1000, 30000)))
    x, dy = (rng.standard_normal((30000, 3)).astype(np.float32) for _ in range(2))
    x, dy = (jnp.asarray(a, dtype) for a in (6 * x, dy))
    softmax = lambda x, ids: bj.segment_softmax(x, ids, 1000, implementation="native")
    order = rng.permutation(30000)
    for at in (np.arange(30000), order):
        y, pull = jax.vjp(lambda x, at=at: softmax(x, ids[at]), x[at])
        want = oracle.segment_softmax(x[at], ids[at], 1000)
        close(y, want, dtype)
        g = np.zeros((1000, 3))
        np.add.at(g, ids[at], want * np.asarray(dy[at], np.float64))
        close(pull(dy[at])[0], want * (np.asarray(dy[at], np.float64) - g[ids[at]]), dtype, scale=4)


# ---------------------------------------------------------------------------------------------------------------------
# The variance and the standard deviation

VARIANCES = {"var": bj.segment_var, "std": bj.segment_std}
each_variance = pytest.mark.parametrize("name", VARIANCES)
each_implementation = pytest.mark.parametrize("implementation", ["native", "xla"])


@each_variance
@each_implementation
@pytest.mark.parametrize("num_segments", [7, 40000])
def test_variance_of_few_rows_and_of_what_is_not_finite(name, implementation, num_segments):
    """Also its gradient; of few rows, and where there is an index."""
    inf, nan = np.inf, np.nan
    x = np.array([0.5, 0.5, 0.5, 5, nan, 0, inf, 2, 1e30, -1e30, 3, inf], np.float32)
    ids = np.array([0, 0, 0, 1, 2, 2, 3, 3, 4, 4, -1, num_segments])
    fun = lambda x: VARIANCES[name](x, ids, num_segments, ddof=1, empty_value=-2, implementation=implementation)
    y, pull = jax.vjp(fun, x)
    np.testing.assert_array_equal(y[:6], np.array([0, nan, nan, nan, inf, -2], np.float32))
    dx = pull(np.full(num_segments, inf if name == "std" else 1, np.float32))[0]
    np.testing.assert_array_equal(dx[:8], np.array([0, 0, 0, 0, nan, nan, nan, nan], np.float32))
    np.testing.assert_array_equal(dx[10:], np.zeros(2, np.float32))


@each_variance
@each_implementation
@pytest.mark.parametrize("shift", [0, 3e3, 1e4])
def test_variance_of_rows_far_from_zero(name, implementation, shift):
    """Where the mean is ten thousand standard deviations, and where the first row is far from the others."""
    rng = np.random.default_rng(3)
    ids = np.sort(rng.integers(0, 100, 2000))
    x = (shift + rng.standard_normal((2000, 5))).astype(np.float32)
    x[np.searchsorted(ids, np.arange(0, 100, 3))] += 300
    got = np.asarray(VARIANCES[name](x, ids, 100, implementation=implementation), np.float64)
    want = oracle.reduced(name, x, ids, 100)
    assert np.all(np.abs(got - want) <= 16 * np.finfo(np.float32).eps * want)


@each_variance
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_variance_of_a_long_segment(name, dtype):
    """Which many workers have a part of, among short and empty ones, against float64; and its gradient."""
    rng = np.random.default_rng(7)
    ids = np.sort(np.where(rng.random(30000) < 0.6, 500, rng.integers(0, 1000, 30000)))
    x = jnp.asarray(40 + rng.standard_normal((30000, 3)).astype(np.float32), dtype)
    dy = jnp.asarray(rng.standard_normal((1000, 3)).astype(np.float32), dtype)
    wide = np.asarray(x, np.float64)
    count = np.bincount(ids, minlength=1000)[:, None]
    mean, want = (oracle.reduced(which, wide, ids, 1000) for which in ("mean", name))
    scale = 2 / np.maximum(count, 1) if name == "var" else 1 / np.where(want == 0, np.inf, want * count)
    slope = (np.asarray(dy, np.float64) * scale)[ids] * (wide - mean[ids])
    for at in (np.arange(30000), rng.permutation(30000)):
        fun = lambda x, at=at: VARIANCES[name](x, ids[at], 1000, implementation="native")
        y, pull = jax.vjp(fun, x[at])
        close(y, want, dtype)
        close(pull(dy)[0], slope[at], dtype, scale=4)


@each_variance
def test_third_derivatives_of_the_variance(name):
    """Against those of the same in plain JAX, with equal rows, a segment of one row, and an empty one."""
    ids = np.array([0, 0, 0, 2, 3, 3, 4, 4, 4, 4])
    rng = np.random.default_rng(5)
    x, t, c = (rng.standard_normal((n, 3)) for n in (10, 10, 5))
    x[4:6] = 1.5

    def plain(x):
        add = lambda x: jax.ops.segment_sum(x, ids, 5)
        count = np.maximum(np.bincount(ids, minlength=5), 1)[:, None]
        squares = add(jnp.square(x - (add(x) / count)[ids]))
        root = jnp.where(squares == 0, 0, jnp.sqrt(jnp.where(squares == 0, 1, squares / count)))
        return root if name == "std" else squares / count

    def derivatives(fun):
        gradient = jax.grad(lambda x: jnp.sum(c * fun(x)))
        second = lambda x: jax.jvp(gradient, (x,), (t,))[1]
        mixed = lambda x: jnp.sum(jnp.sin(gradient(x)) * t)
        return jax.jvp(fun, (x,), (t,))[1], gradient(x), second(x), jax.jvp(second, (x,), (t,))[1], jax.grad(mixed)(x)

    for implementation in ("native", "xla"):
        fun = lambda x, how=implementation: VARIANCES[name](x, ids, 5, implementation=how)
        for got, want in zip(
            jax.jit(derivatives, static_argnums=0)(fun), jax.jit(derivatives, static_argnums=0)(plain), strict=True
        ):
            close(got, want, "float64", scale=100)


# ---------------------------------------------------------------------------------------------------------------------
# An index that is built once


def _text(fun, *args):
    return jax.jit(fun).lower(*args).as_text()


@pytest.mark.parametrize("num_segments", [5, 2**15 + 1])
def test_ops_of_an_index_sort_nothing(num_segments):
    """Nor are few rows sorted, in the bits of what is."""
    ids, x = np.array([3, -1, 0, 3, 9, 0], np.int8), np.arange(12.0).reshape(6, 2)
    index = bj.segment_index(ids, num_segments)
    for name in OPS:
        loss = lambda x, ids, name=name: (OPS[name](x, ids, num_segments, implementation="native") ** 2).sum()
        both = jax.value_and_grad(loss)
        assert "segment_index" not in _text(both, x, index)
        assert ("segment_index" in _text(both, x, ids)) == (num_segments > 2**15)
        for got, want in zip(both(x, index), both(x, ids), strict=True):
            same_bits(got, want)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_kernels_look_at_the_range_of_senders(dtype):
    """No program but the kernel goes through them."""
    rng, x = np.random.default_rng(4), np.arange(18.0).reshape(9, 2)
    senders, receivers = (rng.integers(-3, 12, 40).astype(dtype) for _ in range(2))
    sums = lambda x, s, r: bj.aggregate(x, s, r.astype("int32"), implementation="native")
    dots = lambda x, s, r: bj.sampled_dot(x, x, s, r, implementation="native")
    for fun in (sums, dots):
        text = _text(fun, x, senders, receivers)
        assert "custom_call" in text and not re.search(r"stablehlo\.(compare|select|and|where)", text)
    inside = lambda ids: (ids >= 0) & (ids < 9)
    want = np.zeros((9, 2))
    both = inside(senders.astype("int64")) & inside(receivers.astype("int64"))
    np.add.at(want, receivers[both], x[senders[both]])
    np.testing.assert_array_equal(sums(x, senders, receivers), want)
    want = np.where(both, (x[np.where(both, senders, 0)] * x[np.where(both, receivers, 0)]).sum(-1), 0)
    np.testing.assert_array_equal(dots(x, senders, receivers), want)


def test_an_index_passes_through_transformations():
    ids, x = np.array([[3, 0, 0], [1, 1, 2]]), np.arange(12.0).reshape(2, 3, 2)
    index = jax.jit(lambda ids: bj.segment_index(ids, 4))(ids)
    assert index.num_segments == 4 and not index.is_sorted
    same_bits(bj.segment_sum(x, index), bj.segment_sum(x, ids, 4))
    same_bits(jax.vmap(bj.segment_sum)(x, index), bj.segment_sum(x, ids, 4))
    one = jax.tree.map(lambda a: a[0], index)
    same_bits(jax.vmap(lambda x: bj.segment_mean(x, one))(x), bj.segment_mean(x, np.stack([ids[0]] * 2), 4))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["even", "one segment", "power law", "dropped", "mostly empty"])
@pytest.mark.parametrize("entries, num_segments", [(131072, 3000), (131073, 1024), (150000, 40000)])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_a_medium_number_of_entries(reduce, entries, num_segments, kind, dtype):
    """What kernels order themselves, in buckets of segments: with their gradients, where entries are the rows and where they
    name them."""
    rng, count = np.random.default_rng(12), 70
    ids = {
        "even": lambda: rng.integers(-2, num_segments + 2, entries),
        "one segment": lambda: np.full(entries, num_segments - 1),
        "power law": lambda: (num_segments ** rng.random(entries)).astype(int) - 1,
        "dropped": lambda: np.full(entries, -1),
        "mostly empty": lambda: rng.integers(0, 2, entries) * (num_segments - 1),
    }[kind]()
    senders = rng.integers(-1, count + 1, entries)
    x = sent.asarray(rng.integers(-2, 3, (count, 8)), dtype)
    each = sent.asarray(rng.integers(-2, 3, (entries, 8)), dtype)
    ids, senders = ids.astype("int32"), senders.astype("int32")
    params = dict(implementation="native")
    wide = lambda a: np.asarray(a, np.float64)

    def added(values, to, size):
        y, inside = np.zeros((size, 8)), (to >= 0) & (to < size)
        np.add.at(y, to[inside], values[inside])
        return y

    take = lambda a, at: np.where(((at >= 0) & (at < len(a)))[:, None], wide(a)[np.clip(at, 0, len(a) - 1)], 0)
    both = (ids >= 0) & (ids < num_segments) & (senders >= 0) & (senders < count)
    counts = np.maximum(
        added(np.where(both, 1, 0)[:, None] * np.ones(8), ids, num_segments), 1 if reduce == "mean" else 0
    )
    over = counts if reduce == "mean" else 1
    y, pull = jax.vjp(lambda x: bj.aggregate(x, senders, ids, num_segments=num_segments, reduce=reduce, **params), x)
    close(y, added(take(x, senders), ids, num_segments) / over, dtype)
    dy = sent.asarray(rng.integers(-2, 3, y.shape), dtype)
    close(pull(dy)[0], added(take(wide(dy) / over, ids), senders, count), dtype, scale=4)
    if reduce == "sum":
        y, pull = jax.vjp(lambda x: bj.segment_sum(x, ids, num_segments, **params), each)
        close(y, added(wide(each), ids, num_segments), dtype)
        close(pull(dy)[0], take(dy, ids), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("lengths", ["even", "any", "one", "two", "some long"])
def test_long_segments_of_entries(lengths, reduce, dtype):
    """Shorter and longer than a group of lanes adds up, or a block."""
    rng, entries, count = np.random.default_rng(13), 40000, 50
    ends = {
        "even": np.arange(0, entries + 1, 100),
        "any": np.sort(rng.integers(0, entries + 1, 900)),
        "one": np.array([0, 0, 5, entries - 3, entries - 3]),
        "two": np.array([7, 8192, 24576, entries]),
        "some long": np.concatenate([np.arange(0, 8000, 16), [8128, 8257, 8300, 17000, 17001, 30000, entries]]),
    }[lengths]
    x = sent.asarray(rng.integers(-3, 4, (count, 24)), dtype)
    senders = rng.integers(-1, count + 1, entries).astype("int32")
    y = bj.aggregate(x, senders, indptr=ends.astype("int32"), reduce=reduce, implementation="native")
    values = np.asarray(x, np.float64)
    want = np.zeros(y.shape)
    for s, (begin, end) in enumerate(itertools.pairwise(ends)):
        mine = [n for n in senders[begin:end] if 0 <= n < count]
        if mine:
            want[s] = getattr(values[mine], reduce)(0)
    close(y, want, dtype, scale=4)


@pytest.mark.parametrize("kind", ["any", "equal", "hub", "power law", "dropped"])
@pytest.mark.parametrize(
    ("shape", "num_segments"),
    [
        ((16385,), 16), ((20000,), 1000), ((131071,), 8192), ((131072,), 131071), ((131073,), 300), ((2, 40000), 32767)
    ],
)  # fmt: skip
def test_the_index_of_a_medium_number_of_rows(shape, num_segments, kind):
    """On either side of where GPUs change from one way to another."""
    rng = np.random.default_rng(11)
    ids = rng.integers(-3, num_segments + 5, shape)
    if kind == "power law":
        ids = (num_segments ** rng.random(shape)).astype(int) - 1
    elif kind != "any":
        ids = np.where(rng.random(shape) < {"equal": 1, "hub": 0.7, "dropped": 1}[kind], num_segments // 2, ids)
    if kind == "dropped":
        ids = np.full(shape, -1)
    index = bj.segment_index(ids.astype("int32"), num_segments, implementation="native")
    key = np.where((ids < 0) | (ids >= num_segments), num_segments, ids)
    np.testing.assert_array_equal(index.perm, np.argsort(key, -1, kind="stable"))
    for keys, offsets in zip(
        key.reshape(-1, shape[-1]), np.reshape(index.offsets, (-1, num_segments + 1)), strict=True
    ):
        np.testing.assert_array_equal(offsets, np.searchsorted(np.sort(keys), np.arange(num_segments + 1)))


def test_sorted_rows_before_the_first_segment_are_dropped():
    index = bj.segment_index(np.array([-2, -1, 0, 2, 7]), 3, indices_are_sorted=True, implementation="native")
    assert index.is_sorted and index.offsets.tolist() == [2, 3, 3, 4]
    assert bj.segment_sum(np.arange(5.0), index).tolist() == [2, 0, 3]


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_offsets_are_an_index(implementation):
    index = bj.segment_index_of_offsets(np.array([1, 3, 3, 5], np.int8), 6, implementation=implementation)
    assert index.segment_ids.tolist() == [-1, 0, 0, 2, 2, 3] and index.is_sorted
    y = bj.segment_sum(np.arange(6.0), index, implementation=implementation)
    assert y.tolist() == [3, 0, 7]


@pytest.mark.parametrize("offsets", [[5, 0, 3], [0, 90, 2], [-4, 2, 2**31 - 1]])
def test_offsets_that_are_not_in_order_lead_nowhere(offsets):
    index = bj.segment_index_of_offsets(np.array(offsets), 4)
    assert bj.segment_sum(np.ones((4, 3)), index, implementation="native").shape == (2, 3)


def test_an_index_that_does_not_fit():
    index = bj.segment_index(np.array([0, 1, 1]), 2)
    with pytest.raises(
        ValueError, match=r"segment_sum: num_segments must be left out or have the 2 segments of the index, got 3"
    ):
        bj.segment_sum(np.ones(3), index, 3)
    with pytest.raises(ValueError, match="segment_sum: segment_ids must have the shape of data's leading dimensions"):
        bj.segment_sum(np.ones(4), index)
    with pytest.raises(ValueError, match="segment_take: x must be left out or have the 2 segments"):
        bj.segment_take(np.ones(3), index)
    with pytest.raises(ValueError, match="aggregate: senders must be an index of 5 segments, got one of 2"):
        bj.aggregate(np.ones(5), index, np.array([0, 1, 2]))
    broken = bj.SegmentIndex(index.segment_ids, index.perm[:2], index.offsets)
    with pytest.raises(ValueError, match="segment_sum: segment_ids must be a SegmentIndex as segment_index makes it"):
        bj.segment_sum(np.ones(3), broken)
    with pytest.raises(TypeError, match="bincount: x must be an array, got SegmentIndex"):
        bj.bincount(index)
    with pytest.raises(TypeError, match="segment_index_of_offsets: offsets must have one of the dtypes"):
        bj.segment_index_of_offsets(np.ones(3), 3)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["even", "any", "one long"])
@pytest.mark.parametrize("columns", [64, 20, 3])
def test_long_segments_of_rows_that_entries_name(kind, columns, dtype):
    """In the order of an index and in their own, against float64; some entries name no row."""
    rng, entries, segments, count = np.random.default_rng(8), 20000, 700, 333
    receivers = {
        "even": np.arange(entries) * segments // entries,
        "any": np.sort(rng.integers(-1, segments, entries)),
        "one long": np.sort(np.where(rng.random(entries) < 0.9, 77, rng.integers(0, segments, entries))),
    }[kind].astype(np.int32)
    senders = rng.integers(-2, count + 2, entries).astype(np.int32)
    x = rng.integers(-32, 32, (count, columns)).astype(np.float64)
    kept = (senders >= 0) & (senders < count) & (receivers >= 0)
    total, most = np.zeros((segments, columns)), np.full((segments, columns), -np.inf)
    np.add.at(total, receivers[kept], x[senders[kept]])
    np.maximum.at(most, receivers[kept], x[senders[kept]])
    for order in (np.arange(entries), rng.permutation(entries)):
        is_sorted = bool((np.diff(order) > 0).all())
        run = lambda reduce, order=order, is_sorted=is_sorted: bj.aggregate(
            jnp.asarray(x, dtype), senders[order], receivers[order], num_segments=segments, reduce=reduce,
            indices_are_sorted=is_sorted, implementation="native",
        )  # fmt: skip
        np.testing.assert_array_equal(run("sum"), jnp.asarray(total, dtype))
        np.testing.assert_array_equal(run("max"), jnp.asarray(np.where(np.isinf(most), 0, most), dtype))
