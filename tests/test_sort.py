"""What sorts, selections and order statistics do at the edges."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from hypothesis import given
from hypothesis import strategies as st
from programs import FLOATS, is_one_call, normal, same_bits_every_time, wide

import baracuda_jax as bj
from baracuda_jax._core import checks

BACKENDS = ("native", "xla")
INF, NAN = np.inf, np.nan
METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
each_backend = pytest.mark.parametrize("implementation", BACKENDS)
each_dtype = pytest.mark.parametrize("dtype", checks.REAL)
each_way = pytest.mark.parametrize("descending", (False, True))
# Short rows, digits of 8 and of 11 bits, one row for all threads, many for few.
SHAPES = ((7, 5), (3, 97), (2, 5000), (300000,))


def _awkward(shape, dtype, seed=0):
    """Many ties, and of floats NaNs of several bits, infinities and zeros of both signs."""
    rng = np.random.default_rng(seed)
    x = np.round(3 * rng.standard_normal(shape))
    if dtype == "bool":
        return sent.asarray(x > 0)
    if "int" in dtype:
        info = jnp.iinfo(dtype)
        x = x.astype(np.int64) % 100 if dtype.startswith("u") else x
        x = np.asarray(x, dtype)
        x[rng.random(shape) < 0.05], x[rng.random(shape) < 0.05] = info.min, info.max
        return sent.asarray(x)
    for value in (NAN, -NAN, INF, -INF, 0.0, -0.0):
        x[rng.random(shape) < 0.05] = value
    return sent.asarray(x, dtype)


def _keys(x):
    """Floats or integers in the order of the definition."""
    x = np.asarray(x)
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def _order(x, descending):
    """NumPy's stable order, of the last axis; NaN is the largest there too."""
    x = _keys(x)
    order = np.argsort(np.flip(x, -1) if descending else x, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(order, -1) if descending else order


# ---------------------------------------------------------------------------------------------------------------------
# Sorts


@each_dtype
@each_way
@pytest.mark.parametrize("shape", SHAPES)
def test_sorts_are_stable_and_keep_every_bit(shape, dtype, descending):
    """Whether positions are asked for or not, which sorts other things."""
    x = _awkward(shape, dtype)
    order = _order(x, descending)
    want = np.take_along_axis(np.asarray(x), order, -1)
    for implementation in BACKENDS:
        how = dict(descending=descending, implementation=implementation)
        same_bits(bj.sort(x, **how), want)
        same_bits(bj.argsort(x, **how), order.astype(np.int32))
        if implementation == "native":
            same_bits(bj.topk(x, shape[-1], largest=descending, implementation=implementation)[0], want)


@each_way
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_without_ties_or_zeros_are_sorted_too(shape, descending):
    """Their keys alone are enough."""
    x = normal(shape, "float32")
    want = np.sort(np.asarray(x), -1)
    same_bits(bj.sort(x, descending=descending, implementation="native"), np.flip(want, -1) if descending else want)


@each_way
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("nans", ([], [NAN], [NAN, NAN], [-NAN, -NAN], [NAN, -NAN, NAN]))
def test_nans_of_a_long_row(nans, dtype, descending):
    """They are the largest, whatever their sign, in the order that they have in the row."""
    x = np.array(normal((70000,), dtype))
    x[[5, 60000, 3][: len(nans)]] = nans
    order = _order(x, descending)
    same_bits(bj.sort(sent.asarray(x), descending=descending, implementation="native"), x[order])
    same_bits(bj.argsort(sent.asarray(x), descending=descending, implementation="native"), order.astype(np.int32))


@pytest.mark.parametrize("missing", [0, 70000])
def test_gradient_of_a_row_beyond_the_cache(missing):
    """Of all of its elements, or with zeros between."""
    x = sent.asarray(normal((2**24 + 70003,), "float32"))
    dy = x[missing:][::-1]
    index = bj.topk(x, dy.size, implementation="native")[1]
    (dx,) = jax.vjp(lambda x: bj.topk(x, dy.size, implementation="native")[0], x)[1](dy)
    want = np.zeros(x.size, np.float32)
    want[index] = dy
    same_bits(dx, want)


@given(st.data())
def test_any_shape(data):
    shape = tuple(data.draw(st.lists(st.sampled_from((0, 1, 2, 3, 7, 20)), min_size=1, max_size=4)))
    axis, descending = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.booleans())
    x = _awkward(shape, "float64")
    order = np.moveaxis(_order(np.moveaxis(np.asarray(x), axis, -1), descending), -1, axis)
    k = data.draw(st.integers(0, shape[axis]))
    cut = [slice(None)] * len(shape)
    cut[axis] = slice(k)
    for implementation in BACKENDS:
        np.testing.assert_array_equal(bj.argsort(x, axis, descending=descending, implementation=implementation), order)
        values, indices = bj.topk(x, k, axis, largest=descending, implementation=implementation)
        np.testing.assert_array_equal(indices, order[tuple(cut)])
        same_bits(values, np.take_along_axis(np.asarray(x), order, axis)[tuple(cut)])


@each_dtype
@pytest.mark.parametrize("largest", (False, True))
def test_topk_is_the_beginning_of_the_sort(dtype, largest):
    for shape, k in (((3, 97), 5), ((2, 5000), 64), ((2, 5000), 700), ((300000,), 100)):
        x = _awkward(shape, dtype)
        values, indices = bj.topk(x, k, largest=largest, implementation="native")
        order = _order(x, largest)[..., :k]
        np.testing.assert_array_equal(indices, order)
        same_bits(values, np.take_along_axis(np.asarray(x), order, -1))


@pytest.mark.parametrize("largest", (False, True))
def test_topk_of_rows_that_are_in_order(largest):
    """Each element beats those before it, or none does."""
    for x in (sent.arange(20000.0), -sent.arange(20000.0), sent.zeros(20000)):
        order = _order(x, largest)[:50]
        np.testing.assert_array_equal(bj.topk(x, 50, largest=largest, implementation="native")[1], order)


def test_msort_sorts_the_first_axis():
    x = normal((6, 3, 2))
    same_bits(bj.msort(x), jnp.sort(x, 0))


@each_backend
@pytest.mark.parametrize("dtype", checks.EVERY)
def test_values_move_with_their_keys(dtype, implementation):
    x = _awkward((4, 60), "float32")
    values = _awkward((4, 60), "float64", 1).astype(dtype) if "complex" in dtype else _awkward((4, 60), dtype, 1)
    order = _order(x, False)
    ordered, (one, two) = bj.sort_key_val(x, (values, x), implementation=implementation)
    same_bits(ordered, np.take_along_axis(np.asarray(x), order, -1))
    same_bits(two, ordered)
    same_bits(one, np.take_along_axis(np.asarray(values), order, -1))
    assert isinstance(bj.sort_key_val(x, [values])[1], tuple)


def test_keys_and_values_share_one_sort():
    text = (
        jax.jit(lambda k, v: bj.sort_key_val(k, (v, 2 * v))).lower(normal((3, 9)), normal((3, 9))).compile().as_text()
    )
    assert text.count('custom_call_target="baracuda.sort"') == 1


@each_backend
def test_both_keys_and_values_have_gradients(implementation):
    keys, values = normal((3, 8)), normal((3, 8), seed=1)
    order = _order(keys, False)
    dk, dv = normal((3, 8), seed=2), normal((3, 8), seed=3)
    got = jax.vjp(lambda k, v: bj.sort_key_val(k, v, implementation=implementation), keys, values)[1]((dk, dv))
    for ct, dy in zip(got, (dk, dv), strict=True):
        want = np.zeros((3, 8))
        np.put_along_axis(want, order, np.asarray(dy), -1)
        same_bits(ct, want)


@each_backend
@each_way
def test_the_gradient_of_a_sort_is_the_permutations_transpose(implementation, descending):
    x = _awkward((3, 300), "float64")
    dy, t = normal(x.shape, seed=1), normal(x.shape, seed=2)
    fun = functools.partial(bj.sort, descending=descending, implementation=implementation)
    order = _order(x, descending)
    want = np.zeros(x.shape)
    np.put_along_axis(want, order, np.asarray(dy), -1)
    same_bits(jax.vjp(fun, x)[1](dy)[0], want)
    same_bits(bj.sort_backward(sent.asarray(order, jnp.int32), dy, implementation=implementation), want)
    same_bits(jax.jvp(fun, (x,), (t,))[1], np.take_along_axis(np.asarray(t), order, -1))


@each_backend
def test_gradients_of_selections_are_put_where_they_come_from(implementation):
    x, dy = normal((5, 40)), normal((5, 3), seed=1)
    _, indices = bj.topk(x, 3, implementation=implementation)
    want = np.zeros((5, 40))
    np.put_along_axis(want, np.asarray(indices), np.asarray(dy), -1)
    same_bits(jax.vjp(lambda x: bj.topk(x, 3, implementation=implementation)[0], x)[1](dy)[0], want)
    same_bits(bj.topk_backward(indices, dy, 40, implementation=implementation), want)
    same_bits(bj.kthvalue_backward(indices, dy, 40, implementation=implementation), want)


@each_backend
@pytest.mark.parametrize("dtype", FLOATS)
def test_cotangents_of_one_element_are_added(dtype, implementation):
    """In float32 for half precision, of which a narrow sum would lose the small ones."""
    dy = sent.asarray([[256.0, 1, 1, 1, 1]], dtype)
    dx = bj.kthvalue_backward(sent.asarray([[1, 1, 1, 1, 1]], jnp.int32), dy, 4, implementation=implementation)
    np.testing.assert_array_equal(wide(dx), [[0, 260, 0, 0]])


def test_a_position_that_is_not_there_is_dropped():
    indices, dy = sent.asarray([[0, 9, 2, -1]], jnp.int32), sent.ones((1, 4))
    np.testing.assert_array_equal(bj.kthvalue_backward(indices, dy, 5, implementation="native"), [[1, 0, 1, 0, 0]])
    np.testing.assert_array_equal(bj.topk_backward(indices, dy, 5, implementation="native"), [[1, 0, 1, 0, 0]])


def test_indices_are_formed_where_they_are_needed():
    """Those of a sort for its derivative alone."""
    x = normal((3, 200))
    results = lambda fun: jax.jit(fun).lower(x).as_text().count("xi32>")
    assert results(lambda x: bj.sort(x, implementation="native")) == 0
    assert results(lambda x: jax.vjp(lambda x: bj.sort(x, implementation="native"), x)[1](x)[0]) > 0


def test_programs_are_one_call():
    x = normal((4, 50))
    is_one_call(lambda x: bj.sort(x, implementation="native"), "baracuda.sort", x)
    is_one_call(lambda x: bj.argsort(x, implementation="native"), "baracuda.sort", x)
    is_one_call(lambda x: bj.topk(x, 3, implementation="native"), "baracuda.sort", x)
    is_one_call(lambda x: bj.argmax(x, 1, implementation="native"), "baracuda.argextremum", x)
    is_one_call(
        lambda i, dy: bj.sort_backward(i, dy, implementation="native"), "baracuda.scatter_along", bj.argsort(x), x
    )


@pytest.mark.parametrize("shape", ((3, 50001), (70000,), (2000, 31)))
def test_same_bits_every_time(shape):
    x = _awkward(shape, "float32")
    fun = functools.partial(bj.sort, implementation="native")
    everything = lambda x: [fun(x), *jax.vjp(fun, x)[1](x), *bj.topk(x, 9), bj.median(x, -1)]
    same_bits_every_time(lambda x: jnp.concatenate([y.ravel().astype(x.dtype) for y in everything(x)]), x)


# ---------------------------------------------------------------------------------------------------------------------
# Order statistics


@each_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_kthvalue_is_an_element_of_the_sort(shape, dtype):
    x = _awkward(shape, dtype)
    order = _order(x, False)
    for k in {1, shape[-1] // 3 + 1, shape[-1]}:
        for implementation in BACKENDS:
            value, index = bj.kthvalue(x, k, implementation=implementation)
            np.testing.assert_array_equal(index, order[..., k - 1])
            same_bits(value, np.take_along_axis(np.asarray(x), order, -1)[..., k - 1])


@pytest.mark.parametrize("name", ("quantile", "nanquantile"))
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype, q", [("float64", 0.3), ("float32", (0.0, 0.1, 0.5, 1.0))])
def test_quantiles_are_jaxs(name, method, dtype, q):
    """Values, and gradients in a and in q, with NaNs and without."""
    a = normal((6, 1500), dtype).at[1, 3].set(NAN).at[4].set(NAN)
    q = sent.asarray(q, dtype)
    dy = normal((*q.shape, 6), dtype, 1).at[..., 1].set(0).at[..., 4].set(0)

    def both(fun):
        gradient = lambda a, q: jax.vjp(fun, jnp.where(jnp.isnan(a), 0, a), q)[1](dy)
        return jax.jit(lambda a, q: (fun(a, q), *gradient(a, q)))(a, q)

    value, da, dq = both(functools.partial(getattr(jnp, name), axis=1, method=method))
    for implementation in BACKENDS:
        y, *gradient = both(functools.partial(getattr(bj, name), axis=1, method=method, implementation=implementation))
        close(y, value, dtype)
        close(gradient[0], da, dtype, scale=4)
        close(gradient[1], dq, dtype, scale=400)


@pytest.mark.parametrize("name", ("median", "nanmedian"))
def test_medians_are_jaxs_of_any_axes(name):
    a = normal((3, 4, 5)).at[0, 1, 2].set(NAN)
    for axis in (None, 0, -1, (0, 2), (1,), (2, 0, 1)):
        for keepdims in (False, True):
            got = getattr(bj, name)(a, axis, keepdims=keepdims, implementation="native")
            close(got, getattr(jnp, name)(a, axis, keepdims=keepdims), "float64")
    for got, want in ((getattr(fun, name)(sent.arange(7)[::-1]), 3.0) for fun in (bj, jnp)):
        assert got == want


@each_backend
def test_the_gradient_of_a_row_with_nan_is_zero(implementation):
    a = sent.asarray([[1.0, NAN, 3], [1, 5, 2]])
    gradient = jax.jit(
        jax.grad(lambda a: jnp.where(jnp.isnan(y := bj.median(a, 1, implementation=implementation)), 0, y).sum())
    )(a)
    np.testing.assert_array_equal(gradient, [[0, 0, 0], [0, 0, 1]])
    gradient = jax.jit(jax.grad(lambda a: bj.nanmedian(a, 1, implementation=implementation).sum()))(a)
    np.testing.assert_array_equal(gradient, [[0.5, 0, 0.5], [0, 0, 1]])


@each_backend
def test_an_infinite_element_without_weight_leaves_no_nan(implementation):
    a = sent.asarray([-INF, 1.0, INF])
    np.testing.assert_array_equal(
        bj.quantile(a, sent.asarray([0.0, 0.5, 1.0]), implementation=implementation), [-INF, 1, INF]
    )


@each_backend
def test_a_traced_share_outside_the_unit_interval_gives_nan(implementation):
    y = jax.jit(lambda q: bj.quantile(sent.arange(5.0), q, implementation=implementation))(
        sent.asarray([-0.1, 0.25, 1.5, NAN])
    )
    np.testing.assert_array_equal(y, [NAN, 1, NAN, NAN])


def test_shares_and_rows_are_mapped():
    a, q = normal((4, 30)), sent.asarray([0.1, 0.4, 0.6, 0.9])
    for axes in ((0, None), (None, 0), (0, 0)):
        a_, q_ = (a if axes[0] == 0 else a[0]), (q if axes[1] == 0 else q[2])
        got = jax.vmap(bj.quantile, axes)(a_, q_)
        take = lambda x, axis, i: x[i] if axis == 0 else x
        want = [bj.quantile(take(a_, axes[0], i), take(q_, axes[1], i)) for i in range(4)]
        close(got, np.stack(want), "float64")


def test_nothing_has_no_median():
    for name in ("median", "nanmedian"):
        np.testing.assert_array_equal(getattr(bj, name)(sent.zeros((2, 0)), 1), [NAN, NAN])


# ---------------------------------------------------------------------------------------------------------------------
# Where extrema are


@each_dtype
@pytest.mark.parametrize("name", ("argmax", "argmin"))
def test_the_first_extremum_wins_and_the_first_nan_before_it(name, dtype):
    """Columns, short rows of whole vectors and others, long ones, one for all threads."""
    for shape, axis in (
        ((7, 5), 0),
        ((2000, 16), 1),
        ((500, 97), 1),
        ((2, 5000), 1),
        ((300000,), 0),
        ((3, 50, 70), 1),
        ((40, 3), None),
    ):
        x = _awkward(shape, dtype)
        want = getattr(np, name)(_keys(x), axis)
        for implementation in BACKENDS:
            got = getattr(bj, name)(x, axis, implementation=implementation)
            assert got.dtype == jnp.int32
            np.testing.assert_array_equal(got, want)
    keep = getattr(bj, name)(_awkward((3, 4), dtype), keepdims=True)
    assert keep.shape == (1, 1)
