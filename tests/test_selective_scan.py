"""Selective scans: edges, groups, segments, states, and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import state_space as oracle

import baracuda_jax as bj
from baracuda_jax.backward import selective_scan_backward

BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])


def _drawn(batch, channels, length, states, groups=None, gate=True, seed=0):
    rng = np.random.default_rng((seed, batch, channels, length, states))
    shape, of_b = (batch, channels, length), (batch, *(() if groups is None else (groups,)), states, length)
    arrays = [rng.standard_normal(shape), rng.uniform(0.05, 1, shape), -rng.uniform(0.2, 2, (channels, states))]
    arrays += [rng.standard_normal(of_b), rng.standard_normal(of_b), rng.standard_normal(channels)]
    arrays += [rng.standard_normal(shape) if gate else None, rng.uniform(0, 0.5, channels)]
    return [*arrays, rng.standard_normal((batch, channels, states))]


SHAPES = [
    (1, 5, 1, 1, 1),
    (2, 4, 37, 3, 2),
    (1, 40, 17, 16, 2),  # more channels than a task has
    (1, 2, 130, 5, None),  # more positions than plain JAX computes at once
    (1, 2, 9, 70, None),
    (1, 2100, 37, 2, None),  # so many that CUDA's warps have several
    (0, 3, 4, 2, None),
    (2, 0, 4, 2, None),
    (2, 3, 0, 2, None),
    (2, 3, 4, 0, None),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_values_states_and_derivatives(shape, gate, ids):
    """Of the kernel they are those of the definition, whose value is the loop's."""
    arrays = _drawn(*shape, gate)
    batch, _, length, *_ = shape
    segment_ids = np.sort(np.random.default_rng(0).integers(0, 4, (batch, length))) if ids else None
    want = oracle.selective_scan(*arrays, segment_ids, dt_softplus=gate, return_final_state=True)
    given = [i for i, a in enumerate(arrays) if a is not None]
    moving = [arrays[i] for i in given]

    def results(implementation):
        def fun(*some):
            known = dict(zip(given, some, strict=True))
            every = (known.get(i) for i in range(len(arrays)))
            return bj.selective_scan(
                *every, segment_ids, dt_softplus=gate, return_final_state=True, implementation=implementation
            )

        y, pull = jax.vjp(fun, *moving)
        cotangents = jax.tree.map(lambda a: jnp.cos(3 * a), y)
        return y, pull(cotangents), jax.jvp(fun, moving, [np.sin(2 * a) for a in moving])[1]

    got, reference = jax.jit(lambda: [results(name) for name in ("native", "xla")])()
    for of_one in (got, reference):
        for y, exact in zip(of_one[0], want, strict=True):
            np.testing.assert_allclose(y, exact, rtol=1e-10, atol=1e-11)
    for a, b in zip(*map(jax.tree.leaves, (got, reference)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    "shape",
    [
        (1, 3, 600, 16, None),
        (2, 6, 270, 9, 3),
        (1, 40, 64, 3, None),
        (1, 2, 70, 130, None),
        (2, 1100, 270, 3, None),
        (2, 1100, 272, 3, None),
        (1, 40, 520, 16, None),
        (1, 20, 261, 35, None),
        (2, 1100, 40, 18, None),
        (1, 4300, 132, 4, None),
        (1, 4300, 20, 4, None),
    ],
)
@pytest.mark.parametrize("ids", [False, True])
def test_float32_agrees_with_float64(shape, ids):
    """On CUDA float32 has tiles of its own sizes: lengths of whole ones and a part, more states than teams, kernels
    of few and of many channels, and gradients whose warps have one channel or several."""
    arrays = _drawn(*shape)
    batch, _, length, *_ = shape
    segment_ids = np.sort(np.random.default_rng(0).integers(0, 5, (batch, length))) if ids else None

    def results(implementation, dtype, cotangents=None):
        fun = lambda *some: bj.selective_scan(
            *some, segment_ids, dt_softplus=True, return_final_state=True, implementation=implementation
        )
        y, pull = jax.vjp(fun, *(a.astype(dtype) for a in arrays))
        cotangents = jax.tree.map(lambda a: jnp.cos(3 * a), y) if cotangents is None else cotangents
        return y, pull(jax.tree.map(lambda a: a.astype(dtype), cotangents)), cotangents

    @jax.jit
    def both():
        *exact, cotangents = results("xla", np.float64)
        return results("native", np.float32, cotangents)[:2], tuple(exact)

    got, exact = both()
    for a, b in zip(*map(jax.tree.leaves, (got, exact)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * abs(b).max())


@BOTH
@pytest.mark.parametrize("cut", [1, 15, 16, 33])
def test_a_sequence_in_two_parts(cut, implementation):
    """The states after the first part are those before the second, with the gradient through them."""
    u, dt, a, b, c, skip, z, bias, state = _drawn(2, 3, 40, 4)

    def run(u, dt, b, c, z, state):
        return bj.selective_scan(
            u,
            dt,
            a,
            b,
            c,
            skip,
            z,
            bias,
            state,
            dt_softplus=True,
            return_final_state=True,
            implementation=implementation,
        )

    def in_parts(u, dt, b, c, z, state):
        first, second = zip(*(jnp.split(x, [cut], -1) for x in (u, dt, b, c, z)), strict=True)
        y, between = run(*first, state)
        more, last = run(*second, between)
        return jnp.concatenate([y, more], -1), last

    both = jax.jit(lambda *args: [(lambda y, pull: (y, pull(y)))(*jax.vjp(fun, *args)) for fun in (run, in_parts)])
    for x, y in zip(*map(jax.tree.leaves, both(u, dt, b, c, z, state)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


@BOTH
@pytest.mark.parametrize("ids", [[3, 3, 1, 1, 1, 3, 3], [0, 1, 0, 1, 0, 1, 0]])
def test_segments_are_runs_of_equal_ids(ids, implementation):
    """Each is computed alone, the first with the state; the final states are those of the last one."""
    u, dt, a, b, c, skip, z, bias, state = _drawn(1, 2, 7, 3)
    run = lambda state, ids, *some: bj.selective_scan(
        some[0], some[1], a, some[2], some[3], skip, some[4], bias, state, ids, return_final_state=True,
        implementation=implementation,
    )  # fmt: skip
    y, last = run(state, np.array([ids]), u, dt, b, c, z)
    for i, part in enumerate(np.split(np.arange(7), np.flatnonzero(np.diff(ids)) + 1)):
        alone, end = run(None if i else state, None, *(x[..., part] for x in (u, dt, b, c, z)))
        np.testing.assert_allclose(y[..., part], alone, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(last, end, rtol=1e-13, atol=1e-14)


@BOTH
def test_what_is_not_finite_stays_in_its_segment(implementation):
    u, dt, a, b, c, *_ = _drawn(1, 2, 9, 3)
    u[0, 1, 2] = np.inf
    ids = np.array([[0] * 5 + [1] * 4])
    y = bj.selective_scan(u, dt, a, b, c, segment_ids=ids, implementation=implementation)
    assert np.argwhere(~np.isfinite(y)).tolist() == [[0, 1, 2], [0, 1, 3], [0, 1, 4]]


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_steps_are_exact(dtype, implementation):
    """softplus(-30) is e^-30, of which log(1 + e^x) computed as written keeps nothing in float32."""
    one = jnp.ones((1, 1, 1), dtype)
    run = lambda dt: bj.selective_scan(
        one, dt, -one[0], one, one, dt_softplus=True, implementation=implementation
    ).sum()  # fmt: skip
    value, slope = jax.value_and_grad(run)(-30 * one)
    np.testing.assert_allclose([value, slope[0, 0, 0]], np.exp(-30), rtol=2e-6)


@BOTH
def test_factors_above_one(implementation):
    """Of rates above 0."""
    u, dt, a, b, c, *_ = _drawn(1, 2, 30, 3)
    got = bj.selective_scan(u, abs(dt), -a, b, c, implementation=implementation)
    np.testing.assert_allclose(got, oracle.selective_scan(u, abs(dt), -a, b, c), rtol=1e-11)


def test_16_bits_are_rounded_once():
    """States are in float32: a sum of ones goes on where one in 16 bits would stop."""
    one = jnp.ones((1, 1, 600), jnp.bfloat16)
    zero = jnp.zeros((1, 1), jnp.float32)
    y, state = bj.selective_scan(one, one, zero, one, one, return_final_state=True, implementation="native")
    assert state.dtype == jnp.float32
    assert state[0, 0, 0] == 600
    np.testing.assert_array_equal(y[0, 0], jnp.arange(1, 601).astype(jnp.bfloat16))


def test_backward():
    arrays = _drawn(2, 4, 21, 3, 2)
    fun = lambda *a: bj.selective_scan(*a, dt_softplus=True, return_final_state=True)
    (y, last), pull = jax.vjp(fun, *arrays)
    got = selective_scan_backward(*arrays, None, y, last, dt_softplus=True)
    for a, b in zip(got, pull((y, last)), strict=True):
        np.testing.assert_array_equal(a, b)
    without = selective_scan_backward(*arrays[:3], arrays[3][:, 0], arrays[4][:, 0], None, None, None, None, None, y)
    assert without[6] is None
    assert without[3].shape == (2, 3, 21)


def test_steps_are_a_sequence():
    u, dt, a, b, c, skip, z, bias, state = _drawn(2, 4, 9, 3, 2)
    want, last = bj.selective_scan(u, dt, a, b, c, skip, z, bias, state, dt_softplus=True, return_final_state=True)
    for l in range(9):
        each = (x[..., l] for x in (u, dt, b, c, z))
        (x, d, of_b, of_c, gate) = each
        y, state = bj.selective_state_update(state, x, d, a, of_b, of_c, skip, gate, bias, dt_softplus=True)
        np.testing.assert_allclose(y, want[..., l], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(state, last, rtol=1e-12, atol=1e-13)


def test_a_state_that_is_donated_is_the_new_one():
    u, dt, a, b, c, *_, state = map(lambda x: None if x is None else jnp.asarray(x), _drawn(2, 4, 1, 3))
    step = jax.jit(
        lambda state: bj.selective_state_update(state, u[..., 0], dt[..., 0], a, b[..., 0], c[..., 0]), donate_argnums=0
    )
    assert "input_output_alias={ {1}: (0, {}, may-alias) }" in step.lower(state).compile().as_text()


def test_states_are_not_saved_for_all_positions():
    """Temporary memory of a gradient is a fraction of what all states would take."""
    u, dt, a, b, c, *_ = map(lambda x: None if x is None else jnp.asarray(x, jnp.float32), _drawn(1, 64, 2048, 16))
    grad = jax.jit(jax.grad(lambda *args: bj.selective_scan(*args, implementation="native").sum(), (0, 1, 2, 3, 4)))
    memory = grad.lower(u, dt, a, b, c).compile().memory_analysis().temp_size_in_bytes
    assert memory < u.size * 16 * 4 / 3


U, B = np.zeros((2, 4, 5)), np.zeros((2, 3, 5))
A = np.zeros((4, 3))


@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.selective_scan, TypeError, "u must have one of the dtypes.*got int32", (U.astype("int32"), U, A, B, B), {}),
        (bj.selective_scan, ValueError, r"u must be \[batch, channels, length\], got shape \(4, 5\)", (U[0], U, A, B, B), {}),
        (bj.selective_scan, ValueError, r"dt must have shape \(2, 4, 5\)", (U, U[:1], A, B, B), {}),
        (bj.selective_scan, ValueError, r"A must have shape \[4, N\].*got \(3, 3\)", (U, U, A[:3], B, B), {}),
        (bj.selective_scan, ValueError, "A must have at most 256 states, got 257", (U, U, jnp.zeros((4, 257)), B, B), {}),
        (bj.selective_scan, ValueError, r"B must have shape \[2, 3, 5\].*got \(2, 2, 5\)", (U, U, A, B[:, :2], B), {}),
        (bj.selective_scan, ValueError, "the groups of B must divide the 4 channels, got 3", (U, U, A, jnp.zeros((2, 3, 3, 5)), B), {}),
        (bj.selective_scan, ValueError, r"C must have the shape of B", (U, U, A, B, jnp.zeros((2, 2, 3, 5))), {}),
        (bj.selective_scan, ValueError, r"D must have shape \[4\].*got \(5,\)", (U, U, A, B, B, U[0, 0]), {}),
        (bj.selective_scan, ValueError, r"z must have shape \(2, 4, 5\)", (U, U, A, B, B, None, U[:1]), {}),
        (bj.selective_scan, ValueError, r"initial_state must have shape \[2, 4, 3\]", (U, U, A, B, B), {"initial_state": U}),
        (bj.selective_scan, ValueError, r"segment_ids must have shape \(2, 5\)", (U, U, A, B, B), {"segment_ids": jnp.zeros((2, 4), int)}),
        (bj.selective_scan, TypeError, "dt_softplus must be True or False", (U, U, A, B, B), {"dt_softplus": 1}),
        (bj.selective_state_update, ValueError, r"x must be \[batch, channels\]", (U, U, U, A, B, B), {}),
        (bj.selective_state_update, ValueError, r"state must have shape \[2, 4, N\]", (A, U[..., 0], U[..., 0], A, B, B), {}),
    ],
)  # fmt: skip
def test_errors(fun, error, match, args, kwargs):
    with pytest.raises(error, match=match):
        fun(*args, **kwargs)
