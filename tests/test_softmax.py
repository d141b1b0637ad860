"""Softmax compared with PyTorch's, JAX's and SciPy's, at the edges, and what it refuses."""

import functools

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import oracles.softmax
import pytest
import sent
from by_torch import torch
from examples_of import close, same_bits
from jax.sharding import PartitionSpec as P
from programs import FLOATS, normal
from sharded import devices, mesh, put

import baracuda_jax as bj

BOTH = ("softmax", "log_softmax")
KEY = jax.random.PRNGKey(7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [-1, 0, (0, 2)], ids=str)
@pytest.mark.parametrize("name", BOTH)
def test_value_and_gradient_are_torchs(name, axis, dtype):
    x, dy = normal((3, 4, 5), dtype), normal((3, 4, 5), dtype, 1)
    theirs = getattr(torch.nn.functional, name)
    if isinstance(axis, tuple):
        of_pair = lambda x: theirs(x.transpose(0, 1).reshape(4, 15), -1).reshape(4, 3, 5).transpose(0, 1)
        want, (gradient,) = by_torch.vjp(of_pair, (x,), dy)
    else:
        want, (gradient,) = by_torch.vjp(lambda x: theirs(x, axis), (x,), dy)
    y, pull = jax.vjp(lambda x: getattr(bj, name)(x, axis), x)
    close(y, want, dtype)
    close(pull(dy)[0], gradient, dtype, scale=4)


MASK = np.array([[True, False, True, True], [False] * 4, [False, False, True, False]])


@pytest.mark.parametrize("name", BOTH)
def test_what_takes_no_part_has_no_influence(name):
    """Not NaN either, and no slice needs an element that takes part. Second derivatives are 0 there too."""
    x = normal((3, 4))
    spoilt = jnp.where(MASK, x, sent.asarray([jnp.nan, jnp.inf, -jnp.inf, 1e300]))
    fun = lambda x: getattr(bj, name)(x, where=MASK)
    loss = lambda x: jnp.where(MASK, fun(x) ** 2, 0).sum()

    @jax.jit
    def everything(x):
        return fun(x), jax.grad(loss)(x), jax.jvp(jax.grad(loss), (x,), (sent.ones_like(x) * sent.arange(4.0),))[1]

    y, gradient, second = everything(spoilt)
    close(y, getattr(jax.nn, name)(x, where=MASK), "float64")
    small = jax.jit(jax.grad(lambda x: (getattr(bj, name)(x) ** 2).sum()))(x[0, MASK[0]])
    close(gradient[0, MASK[0]], small, "float64")
    for derivative in (gradient, second):
        assert np.isfinite(derivative).all() and not np.asarray(derivative)[~MASK].any()


def test_a_mask_broadcasts():
    x = normal((3, 4))
    same_bits(bj.softmax(x, where=MASK[:, :1]), bj.softmax(x, where=np.broadcast_to(MASK[:, :1], (3, 4))))
    same_bits(bj.softmax(x, where=MASK[0]), bj.softmax(x, where=np.broadcast_to(MASK[0], (3, 4))))


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "row", [[-np.inf] * 3, [np.inf, 0, 1], [np.nan, 0, 1], [-np.inf, 0, 1], [1e30, -1e30, 0]], ids=str
)
def test_edges_are_jaxs(name, row):
    x = sent.asarray(row)
    np.testing.assert_allclose(getattr(bj, name)(x), getattr(jax.nn, name)(x), rtol=1e-12)


@pytest.mark.parametrize("name", [*BOTH, "gumbel_softmax"])
def test_nothing_is_no_error(name):
    args = (KEY,) if name.startswith("gumbel") else ()
    for shape, axis in (((0, 3), 0), ((3, 0), 0), ((2, 0), 1)):
        fun = lambda x: getattr(bj, name)(x, *args, axis=axis)
        assert jax.jit(jax.grad(lambda x: fun(x).sum()))(sent.ones(shape)).shape == fun(sent.ones(shape)).shape == shape


def test_the_gradient_in_16_bits_reads_the_value_before_it_is_rounded():
    """The gradient of a row is the difference of nearly equal numbers."""
    x, dy = normal((2, 64), "bfloat16"), normal((2, 64), "bfloat16", 1)
    got = jax.vjp(bj.softmax, x)[1](dy)[0]
    want = jax.vjp(bj.softmax, x.astype(jnp.float64))[1](dy.astype(jnp.float64))[0]
    assert np.abs(np.asarray(got, np.float64) - want).max() <= 2**-8 * np.abs(want).max()


# ---------------------------------------------------------------------------------------------------------------------
# Projections on the simplex

PROJECTIONS = ("sparsemax", "entmax15")
projections = pytest.mark.parametrize("name", PROJECTIONS)
both = pytest.mark.parametrize("implementation", ["native", "xla"])


def _rows(n):
    """Normal numbers, ties, equal elements, nearly equal ones, and ones far apart."""
    x = np.random.default_rng(n).standard_normal(n)
    return np.stack([x, np.round(x), np.zeros(n), 1e-3 * x, 100 * x])


@both
@pytest.mark.parametrize("n", [1, 2, 31, 33, 1000, 4097, 100_003])
@projections
def test_rows_of_any_length_and_kind(name, n, implementation):
    for dtype in FLOATS:
        x = sent.asarray(_rows(n), dtype)
        y = getattr(bj, name)(x, implementation=implementation)
        want = getattr(oracles.softmax, name)(np.asarray(x, np.float64))
        assert y.dtype == dtype
        for row, wanted in zip(np.asarray(y, np.float64), want, strict=True):
            # float32 has the threshold, not the elements above it, to its last digit.
            close(row, wanted, dtype, scale=1 + n / 1e4)
            assert (row >= 0).all()


@both
@projections
def test_edges_of_projections(name, implementation):
    """A row is NaN as softmax's is; what is -infinity takes no part."""
    fun = lambda *row: getattr(bj, name)(sent.asarray(row, "float64"), implementation=implementation)
    for row in ((np.nan, 0, 1), (np.inf, 0, 1), (-np.inf,) * 3, (np.inf, -np.inf, np.nan)):
        assert np.isnan(fun(*row)).all(), row
    close(fun(-np.inf, 0, 0), [0, 0.5, 0.5], "float64")
    np.testing.assert_array_equal(fun(1e300, -1e300, 0), [1, 0, 0])
    np.testing.assert_array_equal(fun(0, 5), [0, 1])


@projections
def test_projections_of_what_takes_part(name):
    """The others have no influence, not NaN either, nor has a slice of which nothing takes part."""
    x = normal((3, 4))
    spoilt = jnp.where(MASK, x, sent.asarray([jnp.nan, jnp.inf, -jnp.inf, 1e300]))
    fun = lambda x: getattr(bj, name)(x, where=MASK)
    loss = lambda x: (fun(x) ** 2).sum()

    @jax.jit
    def everything(x):
        return fun(x), jax.grad(loss)(x), jax.jvp(jax.grad(loss), (x,), (sent.ones_like(x) * sent.arange(4.0),))[1]

    y, gradient, second = everything(spoilt)
    small = x[0, MASK[0]]
    close(y[0, MASK[0]], getattr(bj, name)(small), "float64")
    close(y[2], [0, 0, 1, 0], "float64")
    close(gradient[0, MASK[0]], jax.jit(jax.grad(lambda x: (getattr(bj, name)(x) ** 2).sum()))(small), "float64")
    for found in (y, gradient, second):
        assert np.isfinite(found).all() and not np.asarray(found)[~MASK].any()


@both
@projections
def test_a_cotangent_outside_of_the_support_has_no_influence(name, implementation):
    back = getattr(bj, f"{name}_backward")
    y = getattr(bj, name)(sent.asarray([[0.0, 3.0, 2.8]]))
    dx = back(y, sent.asarray([[np.nan, 1.0, -2.0]]), implementation=implementation)
    close(dx, back(y, sent.asarray([[7.0, 1.0, -2.0]]), implementation=implementation), "float64")
    assert dx[0, 0] == 0 and abs(dx.sum()) < 1e-12


@both
def test_the_support_is_kept_where_float16_would_round_it_to_0(implementation):
    x = sent.asarray([1.0, 2.0**-24], "float16")
    y = bj.sparsemax(x, implementation=implementation)
    assert y.tolist() == [1, 2.0**-24]
    dx = bj.sparsemax_backward(y, sent.asarray([1.0, 0.0], "float16"), implementation=implementation)
    assert dx.tolist() == [0.5, -0.5]


@projections
def test_rows_have_the_same_bits_alone_and_next_to_others(name):
    fun = lambda x: getattr(bj, name)(x, implementation="native")
    for n in (5, 100, 3000):
        x = normal((7, n), "float32")
        same_bits(fun(x)[3], fun(x[3]))
        same_bits(fun(x), fun(x))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [9000, 20_001, 50_257])
@pytest.mark.parametrize("name", [*BOTH, *PROJECTIONS])
def test_edges_of_long_rows(name, n, dtype):
    """As of short ones: NaN where all is -inf, where there is NaN, or +inf; and what `where` leaves out has no influence. The
    row after them is as it is alone, except for the order of its sum where blocks of a GPU share it."""
    x = np.array(normal((6, n), "float32"))
    x[0], x[1, n // 2], x[2, n - 1], x[3] = -np.inf, np.nan, np.inf, -np.inf
    x[3, 7] = 2
    x = sent.asarray(x, dtype)
    fun = functools.partial(getattr(bj, name), implementation="native")
    y, pull = jax.vjp(fun, x)
    dx = pull(sent.asarray(normal(x.shape, "float32", 1), dtype))[0]
    assert np.isnan(np.asarray(y[:3], float)).all()
    only = np.full(n, 0.0 if name != "log_softmax" else -np.inf)
    only[7] = 1 if name != "log_softmax" else 0
    np.testing.assert_array_equal(np.asarray(y[3], float), only)
    close(y[5], fun(x[5]), dtype)
    assert np.isfinite(np.asarray(dx[3:], float)).all()
    where = np.ones(x.shape, bool)
    where[0], where[1, n // 2], where[2, n - 1] = False, False, False
    y, pull = jax.vjp(functools.partial(fun, where=where), x)
    dx = np.asarray(pull(sent.asarray(normal(x.shape, "float32", 1), dtype))[0], float)
    assert (np.asarray(y, float)[~where] == (0 if name != "log_softmax" else -np.inf)).all()
    assert np.isfinite(dx).all() and not dx[~where].any()
    assert np.isfinite(np.asarray(y[1:3], float)[where[1:3]]).all()


# ---------------------------------------------------------------------------------------------------------------------
# gumbel_softmax


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape",
    [(1, 37830), (3, 20001), (2, 50257), (5, 9000), (140, 16387), (1, 300_001), (3, 70_001), (2, 65536)],
    ids=str,
)
@pytest.mark.parametrize("name", BOTH)
def test_long_rows_of_any_alignment(name, shape, dtype):
    """Equal rows have the same bits wherever they begin."""
    x, dy = (sent.asarray(np.roll(normal(shape, dtype, seed), 1), dtype) for seed in (0, 1))
    x, dy = (a.at[-1].set(a[0]) for a in (x, dy))
    y, pull = jax.vjp(lambda x: getattr(bj, name)(x, implementation="native"), x)
    dx = pull(dy)[0]
    wide, of = np.asarray(x).astype(np.float64), np.asarray(dy).astype(np.float64)
    weight = np.exp(wide - wide.max(1, keepdims=True))
    weight /= weight.sum(1, keepdims=True)
    mean = (of * (weight if name == "softmax" else 1)).sum(1, keepdims=True)
    close(y, weight if name == "softmax" else np.log(weight), dtype, scale=4)
    close(dx, weight * (of - mean) if name == "softmax" else of - weight * mean, dtype, scale=16)
    same_bits(y[0], y[-1])
    same_bits(dx[0], dx[-1])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BOTH)
def test_the_edges_of_long_rows(name, dtype):
    """Of a row that blocks of a GPU share, too, one element makes all NaN, and none of another row."""
    x = jnp.asarray(normal((5, 70_001), dtype)).at[:, 3].set(-jnp.inf)
    x = x.at[0, 69_000].set(jnp.nan).at[1, 40_000].set(jnp.inf).at[2].set(-jnp.inf)
    y, pull = jax.vjp(lambda x: getattr(bj, name)(x, implementation="native"), x)
    assert np.isnan(np.asarray(y[:3], np.float64)).all()
    alone = getattr(bj, name)(x[3:], implementation="xla")
    close(y[3:], alone, dtype, scale=4)
    assert y[4, 3] == (0 if name == "softmax" else -jnp.inf)
    assert np.isfinite(np.asarray(pull(jnp.ones_like(x))[0][3:], np.float64)).all()


@pytest.mark.parametrize("shape", [(1, 300_001), (3, 70_001), (2, 65536)], ids=str)
@projections
def test_gradients_of_long_rows_of_projections(name, shape):
    y, dy = (np.abs(normal(shape, "float64", seed)) for seed in (0, 1))
    y = np.where(y > 1, y, 0)
    weight = (y > 0) if name == "sparsemax" else np.sqrt(y)
    want = weight * (dy - (weight * dy).sum(1, keepdims=True) / weight.sum(1, keepdims=True))
    for dtype in FLOATS:
        arrays = sent.asarray(y, dtype), sent.asarray(dy, dtype)
        dx = getattr(bj, f"{name}_backward")(*arrays, implementation="native")
        close(dx, want, dtype, scale=16)


def test_categories_are_drawn_with_their_probabilities():
    x = jnp.log(sent.asarray([0.5, 0.3, 0.2]))
    y = bj.gumbel_softmax(jnp.broadcast_to(x, (20_000, 3)), KEY, hard=True)
    assert set(np.unique(y)) == {0, 1} and (y.sum(-1) == 1).all()
    np.testing.assert_allclose(y.mean(0), [0.5, 0.3, 0.2], atol=0.02)


def test_it_is_the_softmax_of_jaxs_noise():
    x = normal((3, 4), "float32")
    noise = jax.random.gumbel(KEY, x.shape, jnp.float32)
    close(bj.gumbel_softmax(x, KEY, tau=0.5), jax.nn.softmax((x + noise) / 0.5), "float32")
    close(bj.gumbel_softmax(x.astype(jnp.float64), KEY), bj.gumbel_softmax(x, KEY), "float32")


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_corner_has_the_gradient_of_the_point_near_it(dtype):
    x, w = normal((5, 4), dtype), normal((5, 4), dtype, 1)
    fun = lambda hard: lambda x: bj.gumbel_softmax(x, KEY, tau=0.8, hard=hard)
    (y, pull), (soft, of_soft) = (jax.vjp(fun(hard), x) for hard in (True, False))
    np.testing.assert_array_equal(y, np.eye(4)[np.argmax(soft, -1)])
    same_bits(pull(w)[0], of_soft(w)[0])
    same_bits(*(jax.jvp(fun(hard), (x,), (w,))[1] for hard in (True, False)))


@pytest.mark.parametrize("hard", [False, True])
def test_a_key_draws_the_same_alone_and_in_a_batch(hard):
    x, many = normal((3, 4, 6)), jax.random.split(jax.random.key(0), 3)
    fun = lambda x, key: bj.gumbel_softmax(x, key, hard=hard)
    want = jnp.stack([fun(x[i], many[i]) for i in range(3)])
    close(jax.vmap(fun)(x, many), want, "float64")
    close(jax.vmap(fun)(x, jax.random.key_data(many)), want, "float64")
    close(jax.vmap(fun, (None, 0))(x[0], many)[0], want[0], "float64")


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("spec", [P("d", None), P(None, "d")], ids=str)
def test_a_key_draws_the_same_on_shards(spec, kind):
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    x = normal((8, 16))
    fun = jax.jit(lambda x, key: bj.gumbel_softmax(x, key, hard=True))
    want, over = fun(x, KEY), mesh(kind)
    with jax.set_mesh(over):
        same_bits(fun(*put((x, KEY), over, (spec, P()))), want)


def test_a_temperature_may_be_an_array():
    """As one that is lowered in training, without another compilation."""
    x = normal((3, 4))
    fun = lambda tau: bj.gumbel_softmax(x, KEY, tau=tau)
    close(jax.jit(fun)(0.5), fun(0.5), "float64")
    step = 1e-5
    difference = (fun(0.5 + step) - fun(0.5 - step)) / (2 * step)
    np.testing.assert_allclose(jax.jvp(fun, (0.5,), (1.0,))[1], difference, atol=1e-8)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (TypeError, "x must have one of the dtypes .*, got int32", (sent.arange(3, dtype=jnp.int32),), {}),
        (TypeError, "x must be an array, got str", ("rows",), {}),
        (ValueError, r"axis must be in \[-2, 1\] for x of shape \(2, 3\), got 2", (), {"axis": 2}),
        (ValueError, r"axis must be one axis or several different ones, got \(0, -2\)", (), {"axis": (0, -2)}),
        (TypeError, "axis must be an integer, got None", (), {"axis": None}),
        (TypeError, "where must have one of the dtypes bool, got float64", (), {"where": sent.ones(3)}),
        (ValueError, r"where must broadcast to x's shape \(2, 3\), got \(2,\)", (), {"where": MASK[0, :2]}),
        (ValueError, r"where must broadcast to x's shape \(2, 3\), got \(1, 2, 3\)", (), {"where": MASK[None, :2, :3]}),
    ],
)  # fmt: skip
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*(args or (normal((2, 3)),)), **kwargs)


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (TypeError, "x must have one of the dtypes .*, got int32", (sent.arange(3, dtype=jnp.int32),), {}),
        (ValueError, r"axis must be in \[-2, 1\] for x of shape \(2, 3\), got 2", (), {"axis": 2}),
        (TypeError, r"axis must be an integer, got \(0, 1\)", (), {"axis": (0, 1)}),
        (ValueError, r"axis must be in \[0, -1\] for x of shape \(\), got -1|axis must be at least 0", (sent.ones(()),), {}),
        (TypeError, "where must have one of the dtypes bool, got float64", (), {"where": sent.ones(3)}),
        (ValueError, r"where must broadcast to x's shape \(2, 3\), got \(2,\)", (), {"where": MASK[0, :2]}),
    ],
)  # fmt: skip
@projections
def test_what_projections_refuse(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*(args or (normal((2, 3)),)), **kwargs)


@pytest.mark.parametrize(
    "error, match, kwargs",
    [
        (
            TypeError,
            r"key must be one key, typed or uint32 of shape \(2,\) or \(4,\), got int64 of shape \(\)",
            {"key": 3},
        ),
        (TypeError, "x must have one of the dtypes .*, got int32", {"x": sent.arange(3, dtype=jnp.int32)}),
        (ValueError, r"axis must be in \[-2, 1\] for x of shape \(2, 3\), got 2", {"axis": 2}),
        (TypeError, r"axis must be an integer, got \(0, 1\)", {"axis": (0, 1)}),
        (ValueError, "tau must be a number above 0 or a scalar array, got 0", {"tau": 0}),
        (ValueError, "tau must be a number above 0 or a scalar array, got nan", {"tau": np.nan}),
        (ValueError, r"tau must have shape \(\), one for all elements, got \(3,\)", {"tau": sent.ones(3)}),
        (TypeError, "hard must be True or False, got 1", {"hard": 1}),
    ],
)
def test_what_gumbel_softmax_refuses(error, match, kwargs):
    with pytest.raises(error, match=f"^gumbel_softmax: {match}"):
        bj.gumbel_softmax(**({"x": normal((2, 3)), "key": KEY} | kwargs))


def test_the_strided_one_is_the_same():
    assert bj.softmax_strided is bj.softmax
