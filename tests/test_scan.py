"""What scans do at the edges."""

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
from oracles import scan as oracle
from programs import FLOATS, is_one_call, normal, same_bits_every_time, wide
from sharded import devices, mesh, put

import baracuda_jax as bj
from baracuda_jax._core import checks

NAMES = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
BACKENDS = ("native", "xla")
INF, NAN = np.inf, np.nan
each_op = pytest.mark.parametrize("name", NAMES)
each_backend = pytest.mark.parametrize("implementation", BACKENDS)
WAYS = list(itertools.product((False, True), repeat=2))
each_way = pytest.mark.parametrize("reverse, exclusive", WAYS)
extrema = pytest.mark.parametrize("name", ("cummax", "cummin"))


def _values(name, shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape)
    return 1 + 0.1 * x if name == "cumprod" else x


# ---------------------------------------------------------------------------------------------------------------------
# Values


@each_op
@given(st.data())
def test_any_shape(name, data):
    shape = tuple(data.draw(st.lists(st.sampled_from((0, 1, 2, 3, 7, 20)), min_size=1, max_size=4)))
    how = dict(
        axis=data.draw(st.integers(-len(shape), len(shape) - 1)),
        reverse=data.draw(st.booleans()),
        exclusive=data.draw(st.booleans()),
    )
    x = _values(name, shape)
    for implementation in BACKENDS:
        y = getattr(bj, name)(sent.asarray(x), **how, implementation=implementation)
        close(y, oracle.cumulative(name, x, **how), "float64")


@given(st.data())
def test_linear_scan_of_any_shape(data):
    shape = tuple(data.draw(st.lists(st.sampled_from((0, 1, 2, 3, 7, 20)), min_size=1, max_size=4)))
    how = dict(axis=data.draw(st.integers(-len(shape), len(shape) - 1)), reverse=data.draw(st.booleans()))
    a, b = (_values("", shape, seed) for seed in (0, 1))
    if data.draw(st.booleans()):
        a, b = a + 1j * b, b - 2j * a
    for implementation in BACKENDS:
        h = bj.linear_scan(sent.asarray(a), sent.asarray(b), **how, implementation=implementation)
        close(h, oracle.linear_scan(a, b, **how), str(a.dtype), scale=100)


LONG = [((70001,), 0), ((3, 40001), 1), ((40001, 11), 0), ((16385, 2), 0), ((2, 16384), 1), ((700, 300), 1)]


def _from_the_end(x):
    return np.cumsum(x[::-1], 0)[::-1]


def _of_extreme(accumulate):
    def pull(x, y, dy):
        before = np.concatenate([np.full((1, *x.shape[1:]), np.nan), y[:-1]])
        index = np.maximum.accumulate(np.where(y != before, np.arange(len(x))[:, None], 0), 0)
        dx = np.zeros_like(dy)
        np.add.at(dx, (index, np.arange(x.shape[1])), dy)
        return dx

    return accumulate, pull


# name: (value, gradient) along the first of two axes, in NumPy
ACCUMULATE = {
    "cumsum": (lambda x: np.cumsum(x, 0), lambda x, y, dy: _from_the_end(dy)),
    "cumprod": (lambda x: np.cumprod(x, 0), lambda x, y, dy: _from_the_end(dy * y) / x),
    "cummax": _of_extreme(lambda x: np.maximum.accumulate(x, 0)),
    "cummin": _of_extreme(lambda x: np.minimum.accumulate(x, 0)),
    "logcumsumexp": (
        lambda x: np.logaddexp.accumulate(x, 0),
        lambda x, y, dy: np.exp(x) * _from_the_end(dy * np.exp(-y)),
    ),
}


@each_op
@pytest.mark.parametrize("shape, axis", LONG)
def test_long_axes(name, shape, axis):
    """Chunks of a slice, slices side by side, and those that are left over."""
    x = _values(name, shape)
    x = np.sign(x) if name == "cumprod" else x
    front = lambda a: np.moveaxis(np.asarray(a), axis, 0).reshape(shape[axis], -1)
    value, gradient = ACCUMULATE[name]
    for reverse in (False, True):
        turn = lambda a: front(a)[:: -1 if reverse else 1]
        fun = functools.partial(getattr(bj, name), axis=axis, reverse=reverse, implementation="native")
        y, pull = jax.vjp(fun, sent.asarray(x))
        want = value(turn(x))
        close(turn(y), want, "float64", scale=10)
        close(turn(fun(x, exclusive=True))[1:], want[:-1], "float64", scale=10)
        dy = normal(shape)
        close(turn(pull(dy)[0]), gradient(turn(x), want, turn(dy)), "float64", scale=100)


@pytest.mark.parametrize("shape", [(3, 300_000), (600, 5000)])
@pytest.mark.parametrize("spread", (1.0, 20.0, 300.0))
def test_logcumsumexp_of_near_and_far_numbers(spread, shape):
    """Sums are relative to a maximum that many elements share, where these are near it, and to their own elsewhere."""
    rng = np.random.default_rng(0)
    x = (spread * rng.standard_normal(shape)).astype(np.float32)
    x[:, ::7] = np.cumsum(spread / 100 * rng.standard_normal(x[:, ::7].shape), 1)
    x[rng.random(shape) < 0.01] = -INF
    x[0, :2000] = -INF
    want = np.logaddexp.accumulate(x.astype(np.float64), 1)
    y = bj.logcumsumexp(sent.asarray(x), 1, implementation="native")
    eps = np.finfo(np.float32).eps
    np.testing.assert_allclose(y, want, rtol=20 * eps, atol=40 * eps)


@pytest.mark.parametrize("count", [2**22, 4_000_003])
@pytest.mark.parametrize("reverse", (False, True))
def test_a_very_long_row(count, reverse):
    """Sums of many parts, and of groups of groups of them, of numbers that are added without rounding."""
    x = np.random.default_rng(0).integers(-1, 2, count).astype(np.float32)
    turn = lambda a: np.asarray(a)[:: -1 if reverse else 1]
    scan = lambda fun, *arrays: turn(fun(*map(sent.asarray, arrays), reverse=reverse, implementation="native"))
    np.testing.assert_array_equal(scan(bj.cumsum, x), np.cumsum(turn(x)))
    ascending = x + np.arange(count) // 1000
    np.testing.assert_array_equal(scan(bj.cummax, ascending), np.maximum.accumulate(turn(ascending)))
    signs = np.where(x == 0, 1, x)
    states = scan(bj.linear_scan, signs, x)
    np.testing.assert_array_equal(states[1:], turn(signs)[1:] * states[:-1] + turn(x)[1:])


@pytest.mark.parametrize("shape, axis", LONG)
def test_long_linear_scans(shape, axis):
    a, b = np.random.default_rng(0).uniform(-1, 1, shape), np.asarray(normal(shape))
    dh = normal(shape, seed=1)
    for reverse in (False, True):
        fun = functools.partial(bj.linear_scan, axis=axis, reverse=reverse, implementation="native")
        h, pull = jax.vjp(fun, sent.asarray(a), sent.asarray(b))
        want = oracle.linear_scan(a, b, axis, reverse)
        moved = lambda x, step: np.moveaxis(np.roll(np.moveaxis(x, axis, 0), step, 0), 0, axis)
        s = oracle.linear_scan(moved(a, 1 if reverse else -1), dh, axis, not reverse)
        h_before = moved(want, -1 if reverse else 1)
        np.moveaxis(h_before, axis, 0)[-1 if reverse else 0] = 0
        for got, expected in zip((h, *pull(dh)), (want, h_before * s, s), strict=True):
            close(got, expected, "float64", scale=10)


@each_op
@pytest.mark.parametrize(
    "shape", [(0,), (0, 4), (5, 0), (2, 0, 3), (1,), (1, 1, 1), (4, 1, 3), (2, 1, 1, 1, 1, 1, 1, 2)]
)
def test_empty_and_single_elements(name, shape):
    ways = list(itertools.product(range(len(shape)), (False, True)))

    def everything(x, implementation):
        for axis, exclusive in ways:
            fun = functools.partial(getattr(bj, name), axis=axis, exclusive=exclusive, implementation=implementation)
            y, pull = jax.vjp(fun, x)
            yield y, pull(sent.ones(shape))[0], jax.jvp(fun, (x,), (sent.ones(shape),))[1]

    x = sent.full(shape, 0.5)
    for implementation in BACKENDS:
        found = jax.jit(lambda x: list(everything(x, implementation)))(x)
        for (axis, exclusive), (y, gradient, tangent) in zip(ways, found, strict=True):
            assert y.shape == gradient.shape == tangent.shape == shape
            if shape[axis] == 1:
                close(y, oracle.cumulative(name, x, axis, exclusive=exclusive), "float64")
                np.testing.assert_array_equal(gradient, 0 if exclusive else 1)
                np.testing.assert_array_equal(tangent, 0 if exclusive else 1)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (5, 0), (1,), (4, 1, 3)])
def test_empty_and_single_linear_scans(shape):
    x = sent.full(shape, 0.5)
    for axis, implementation in itertools.product(range(len(shape)), BACKENDS):
        h, pull = jax.vjp(lambda a, b: bj.linear_scan(a, b, axis, implementation=implementation), x, x)
        assert h.shape == shape and all(ct.shape == shape for ct in pull(h))


@each_op
@each_way
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_four_of_the_edges(name, reverse, exclusive, dtype):
    """NaN, infinities, zeros of both signs and numbers: the kernel's values are the definition's and the oracle's."""
    x = np.array(list(itertools.product([NAN, INF, -INF, 0.0, -0.0, 2.0, -3.0], repeat=4)))
    how = dict(axis=1, reverse=reverse, exclusive=exclusive)
    native, reference = (
        getattr(bj, name)(sent.asarray(x, dtype), **how, implementation=implementation) for implementation in BACKENDS
    )
    close(native, reference, dtype)
    if name in ("cumsum", "cumprod"):
        same_bits(jnp.where(native != native, NAN, native), jnp.where(reference != reference, NAN, reference))
    with np.errstate(all="ignore"):
        close(native, oracle.cumulative(name, x, **how), dtype)


def _wide_range(dtype):
    info = jnp.iinfo(dtype)
    return np.random.default_rng(0).integers(info.min, info.max, (6, 40), dtype, endpoint=True)


@pytest.mark.parametrize("name", NAMES[:4])
@pytest.mark.parametrize("dtype", checks.INTEGERS)
def test_integers_keep_their_dtype_and_wrap(name, dtype):
    x = _wide_range(dtype)
    jaxs = {"cumsum": jnp.cumsum, "cumprod": jnp.cumprod}.get(name)
    for implementation in BACKENDS:
        y = getattr(bj, name)(sent.asarray(x), 1, implementation=implementation)
        same_bits(y, jaxs(x, 1, dtype=dtype) if jaxs else getattr(jax.lax, name)(sent.asarray(x), 1))
        for reverse in (False, True):
            y = getattr(bj, name)(sent.asarray(x), 0, reverse=reverse, exclusive=True, implementation=implementation)
            same_bits(y, oracle.cumulative(name, x, 0, reverse, exclusive=True))


@each_op
@pytest.mark.parametrize("dtype", FLOATS)
def test_values_are_those_of_lax(name, dtype):
    x = sent.asarray(_values(name, (9, 33)), dtype)
    theirs = getattr(jax.lax, {"logcumsumexp": "cumlogsumexp"}.get(name, name))
    for reverse in (False, True):
        close(getattr(bj, name)(x, 1, reverse=reverse, implementation="native"), theirs(x, 1, reverse), dtype, scale=4)


@each_backend
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types_accumulate_wide(dtype, implementation):
    """Ones, of which a narrow accumulator would lose all but the first few."""
    n, step = (4096, 2.0**-7) if dtype == "bfloat16" else (8192, 2.0**-10)
    ones = sent.ones(n, dtype)

    @jax.jit
    def ends(ones):
        gradient = lambda name: jax.vjp(functools.partial(getattr(bj, name), implementation=implementation), ones)[1](
            ones
        )[0][0]
        h = bj.linear_scan(ones, ones, implementation=implementation)
        exact = bj.cumsum(ones, implementation=implementation)[-1], gradient("cumsum"), gradient("cummax"), h[-1]
        near = (
            bj.logcumsumexp(0 * ones, implementation=implementation)[-1],
            bj.cumprod(ones[:512] + step, implementation=implementation)[-1],
        )
        return exact, near

    exact, near = ends(ones)
    np.testing.assert_array_equal(list(map(wide, exact)), n)
    np.testing.assert_allclose(list(map(wide, near)), [np.log(n), (1 + step) ** 512], rtol=5e-3)


@pytest.mark.parametrize("name", ("cumsum", "cumprod", "cummax", "cummin"))
def test_every_half_survives_the_kernel(name):
    """A scan of one element is that element, for each of the 65,536 bit patterns."""
    for dtype in (jnp.float16, jnp.bfloat16):
        x = jax.lax.bitcast_convert_type(sent.arange(65536, dtype=jnp.uint16), dtype)[:, None]
        y, want = (np.asarray(a, np.float64) for a in (getattr(bj, name)(x, 1, implementation="native"), x))
        subnormal = np.abs(want) < np.finfo(np.float32).tiny  # XLA's CPU threads flush those of float32 to zero
        np.testing.assert_array_equal(np.where(subnormal, 0, y), np.where(subnormal, 0, want))


def test_programs_are_one_call():
    x = sent.ones((4, 5, 6))
    for name in NAMES:
        is_one_call(lambda x, name=name: getattr(bj, name)(x, 1, implementation="native"), f"baracuda.{name}", x)
    is_one_call(lambda a, b: bj.linear_scan(a, b, 1, implementation="native"), "baracuda.linear_scan", x, 2 * x)
    backward = functools.partial(bj.cumprod_backward, axis=1, implementation="native")
    is_one_call(backward, "baracuda.cumprod_backward", x, 2 * x, 3 * x)


@each_op
def test_same_bits_every_time(name):
    x = sent.asarray(_values(name, (3, 50001)), jnp.float32)
    fun = functools.partial(getattr(bj, name), axis=1, implementation="native")
    same_bits_every_time(lambda x: (y := fun(x), jax.vjp(fun, x)[1](y))[0], x)


def test_python_lists_are_arrays():
    np.testing.assert_array_equal(bj.cumsum([1.0, 2, 3]), [1, 3, 6])
    np.testing.assert_array_equal(bj.linear_scan([2.0, 2, 2], [1.0, 1, 1]), [1, 3, 7])


# ---------------------------------------------------------------------------------------------------------------------
# Extrema: who wins


@extrema
@each_way
@each_backend
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8", "uint32"])
def test_the_index_is_that_of_the_first_extreme(name, reverse, exclusive, implementation, dtype):
    """In the direction of the scan; a NaN beats all, and the first NaN stays."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (40, 30)).astype(np.float64)
    if "int" not in dtype:
        x[rng.random(x.shape) < 0.02] = NAN
        x[rng.random(x.shape) < 0.02] = -INF if name == "cummax" else INF
    n, steps = 30, range(30)[:: -1 if reverse else 1]
    want = np.full(x.shape, n)
    for row, elements in enumerate(x):
        best = n
        for i in steps:
            if exclusive:
                want[row, i] = best
            new, old = elements[i], elements[best] if best < n else None
            beats = old is None or (np.isnan(new) and not np.isnan(old))
            best = i if beats or (new > old if name == "cummax" else new < old) else best
            if not exclusive:
                want[row, i] = best
    how = dict(reverse=reverse, exclusive=exclusive, implementation=implementation)
    y, index = getattr(bj, name)(sent.asarray(x, dtype), -1, return_indices=True, **how)
    assert index.dtype == jnp.int32
    np.testing.assert_array_equal(index, want)
    nothing = oracle.cumulative(name, np.zeros(1, dtype if "int" in dtype else float), exclusive=True)
    padded = np.concatenate([x, np.full((40, 1), nothing)], 1)
    np.testing.assert_array_equal(wide(y), np.take_along_axis(padded, want, 1))


@extrema
@each_backend
def test_the_first_of_those_that_tie_has_the_gradient(name, implementation):
    x = sent.asarray([1.0, 3, 3, 2, 5, 5]) * (1 if name == "cummax" else -1)
    fun = functools.partial(getattr(bj, name), implementation=implementation)
    pull = lambda dy, **how: jax.vjp(functools.partial(fun, **how), x)[1](sent.asarray(dy))[0]
    dy = [1.0, 2, 4, 8, 16, 32]
    np.testing.assert_array_equal(pull(dy), [1, 14, 0, 0, 48, 0])
    np.testing.assert_array_equal(pull(dy, reverse=True), [0, 0, 0, 0, 0, 63])
    np.testing.assert_array_equal(pull(dy, exclusive=True), [2, 4 + 8 + 16, 0, 0, 32, 0])
    np.testing.assert_array_equal(pull(dy, exclusive=True, reverse=True), [0, 0, 0, 0, 0, 31])
    push = lambda t, **how: jax.jvp(functools.partial(fun, **how), (x,), (sent.asarray(t),))[1]
    np.testing.assert_array_equal(push(dy), [1, 2, 2, 2, 16, 16])
    np.testing.assert_array_equal(push(dy, exclusive=True), [0, 1, 2, 2, 2, 16])


@extrema
@each_backend
def test_an_infinite_cotangent_stays_where_it_belongs(name, implementation):
    x = sent.asarray([1.0, 2, 2, 3]) * (1 if name == "cummax" else -1)
    dy = sent.asarray([INF, 1, -INF, NAN])
    dx = jax.vjp(lambda x: getattr(bj, name)(x, implementation=implementation), x)[1](dy)[0]
    np.testing.assert_array_equal(dx, [INF, -INF, 0, NAN])


@extrema
def test_backward_function_takes_the_index(name):
    x, dy = normal((7, 9, 4)), normal((7, 9, 4), seed=1)
    for reverse, exclusive in WAYS:
        how = dict(axis=1, reverse=reverse, exclusive=exclusive)
        _, index = getattr(bj, name)(x, return_indices=True, **how)
        want = jax.vjp(lambda x: getattr(bj, name)(x, **how), x)[1](dy)[0]
        same_bits(getattr(bj, f"{name}_backward")(index, dy, **how), want)


# ---------------------------------------------------------------------------------------------------------------------
# Derivatives


@each_backend
def test_prod_gradient_is_exact_with_zeros(implementation):
    """No zero, one, two: the definition is the product of the others."""
    x = np.array([[2.0, 3, 5, 7], [2, 0, 5, 7], [0, 3, 0, 7], [0, 0, 0, 0]])
    dy = np.array([1.0, 10, 100, 1000])
    want = np.zeros_like(x)
    for i, j in itertools.product(range(4), repeat=2):
        if j <= i:
            want[:, j] += dy[i] * np.delete(x[:, : i + 1], j, 1).prod(1)
    loss = lambda x: jnp.sum(bj.cumprod(x, 1, implementation=implementation) * dy)
    gradient, hessian = jax.jit(lambda x: (jax.grad(loss)(x), jax.hessian(loss)(x)))(sent.asarray(x))
    np.testing.assert_array_equal(gradient, want)
    np.testing.assert_array_equal(hessian[2, 0, 2, 2], (dy[2] + dy[3] * 7) * 3)
    np.testing.assert_array_equal(jax.jit(jax.jacfwd(loss))(sent.asarray(x)), want)
    assert np.isfinite(hessian).all()


@each_way
@each_backend
def test_logcumsumexp_of_minus_infinity_is_no_nan(reverse, exclusive, implementation):
    """Nor is its gradient, or the second derivative: what adds nothing has none."""
    x = sent.asarray([[-INF, -INF, 1, -INF, 2, -INF], [-INF] * 6, [0, 1, -INF, 3, 1e4, -1e4]])
    fun = lambda x: bj.logcumsumexp(x, 1, reverse=reverse, exclusive=exclusive, implementation=implementation)
    loss = lambda x: jnp.where(jnp.isfinite(y := fun(x)), jnp.sin(y), 0).sum()
    close(fun(x), oracle.cumulative("logcumsumexp", x, 1, reverse, exclusive), "float64")
    gradient, second = jax.jit(lambda x, v: jax.jvp(jax.grad(loss), (x,), (v,)))(x, sent.ones(x.shape))
    assert np.isfinite(gradient).all() and np.isfinite(second).all()
    np.testing.assert_array_equal(np.asarray(gradient)[np.isneginf(x)], 0)
    y, push = jax.jit(lambda x, v: jax.jvp(fun, (x,), (v,)))(x, sent.ones(x.shape))
    close(push, np.where(np.isfinite(y), 1, 0), "float64")  # a shift of all elements is one of the result


def test_logcumsumexp_does_not_overflow():
    x = sent.asarray([1e4, 1e4, -1e4, 1.0001e4], jnp.float32)
    y, pull = jax.vjp(bj.logcumsumexp, x)
    np.testing.assert_allclose(
        y, [1e4, 1e4 + np.log(2), 1e4 + np.log(2), 1.0001e4 + np.log1p(2 * np.exp(-1))], rtol=1e-6
    )
    assert np.isfinite(pull(y)[0]).all()


@each_backend
def test_a_factor_before_the_first_element_multiplies_nothing(implementation):
    fun = functools.partial(bj.linear_scan, implementation=implementation)
    for first in (INF, NAN, 1e308):
        a, b = sent.asarray([first, 2.0, 0, 3]), sent.asarray([1.0, 1, 5, 1])
        h, pull = jax.vjp(fun, a, b)
        np.testing.assert_array_equal(h, [1, 3, 5, 16])
        da, db = pull(sent.ones(4))
        np.testing.assert_array_equal(da, [0, 1 * 1, 3 * 4, 5 * 1])
        np.testing.assert_array_equal(db, [3, 1, 4, 1])


def test_complex_gradients_are_not_conjugated():
    rng = np.random.default_rng(0)
    a, b, dh = (sent.asarray(rng.standard_normal((5, 30)) + 1j * rng.standard_normal((5, 30))) / 2 for _ in range(3))
    fun = lambda implementation: lambda a, b: bj.linear_scan(a, b, 1, implementation=implementation)
    plain = lambda a, b: jax.lax.associative_scan(lambda s, t: (t[0] * s[0], t[0] * s[1] + t[1]), (a, b), axis=1)[1]
    gradients = lambda fun: jax.vjp(fun, a, b)[1](dh)
    want, *found = jax.jit(lambda: [gradients(f) for f in (plain, *map(fun, BACKENDS))])()
    found.append(bj.linear_scan_backward(a, jax.jit(plain)(a, b), dh, 1))
    for each in found:
        for got, expected in zip(each, want, strict=True):
            close(got, expected, "complex128")


@pytest.mark.parametrize("name", ("cumprod", "logcumsumexp"))
def test_backward_functions_are_the_gradients(name):
    x, dy = sent.asarray(_values(name, (4, 9))), normal((4, 9), seed=1)
    for reverse, exclusive in WAYS:
        how = dict(axis=1, reverse=reverse, exclusive=exclusive)
        pull = jax.vjp(lambda x: getattr(bj, name)(x, **how), x)[1]
        y, saved = getattr(bj, name)(x, return_residuals=True, **how)
        read = (saved,) if name == "cumprod" else (y, saved)
        same_bits(getattr(bj, f"{name}_backward")(x, *read, dy, **how), pull(dy)[0])


def test_the_gradient_of_a_sum_is_the_sum_from_the_other_end():
    dy = normal((4, 9))
    for reverse, exclusive in WAYS:
        want = bj.cumsum(dy, 1, reverse=not reverse, exclusive=exclusive)
        same_bits(bj.cumsum_backward(dy, 1, reverse=reverse, exclusive=exclusive), want)


# ---------------------------------------------------------------------------------------------------------------------
# Shards of the scanned axis


@each_way
@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_sums_of_shards(reverse, exclusive, kind, dtype):
    """Both ways, inclusive and exclusive, values and gradients, over one mesh axis and over two at once."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    x = np.round(4 * _values("", (3, 32)))
    x = sent.asarray(np.clip(x, -9, 9), dtype)
    fun = lambda x: bj.cumsum(x, 1, reverse=reverse, exclusive=exclusive)
    programs = [fun] if dtype == "int8" else [fun, lambda x: jax.grad(lambda x: jnp.sum(fun(x) * x))(x)]
    for axes, spec in ((1, "d"), (2, ("d", "e"))):
        over = mesh(kind, axes)
        for program in programs:
            want = program(jax.device_put(x, devices()[0]))
            with jax.set_mesh(over):
                got = jax.jit(program)(*put([x], over, [P(None, spec)]))
            close(got, want, dtype)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_linear_scans_of_shards(reverse, kind, dtype):
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    a, b = (sent.asarray(0.7 * _values("", (3, 32), seed), dtype) for seed in (0, 1))
    fun = lambda a, b: bj.linear_scan(a, b, 1, reverse=reverse)
    both = lambda a, b: (fun(a, b), *jax.vjp(fun, a, b)[1](b), jax.jvp(fun, (a, b), (b, a))[1])
    for axes, spec in ((1, "d"), (2, ("d", "e"))):
        over = mesh(kind, axes)
        want = jax.jit(both)(*jax.device_put((a, b), devices()[0]))
        with jax.set_mesh(over):
            got = jax.jit(both)(*put([a, b], over, [P(None, spec)] * 2))
        for x, y in zip(got, want, strict=True):
            close(x, y, dtype, scale=4)
