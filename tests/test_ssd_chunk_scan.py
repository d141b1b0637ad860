"""State-space duality: chunks of any size, states, segments, and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import state_space as oracle

import baracuda_jax as bj
from baracuda_jax.backward import ssd_chunk_scan_backward

BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])


def _drawn(batch, length, heads, rows, states, groups, seed=0):
    rng = np.random.default_rng((seed, batch, length))
    shape, of_b = (batch, length, heads, rows), (batch, length, groups, states)
    arrays = [rng.standard_normal(shape), rng.uniform(0.05, 1, shape[:3]), -rng.uniform(0.2, 2, heads)]
    arrays += [rng.standard_normal(of_b), rng.standard_normal(of_b), rng.standard_normal(heads)]
    arrays += [rng.standard_normal(shape), rng.uniform(0, 0.5, heads)]
    return [*arrays, rng.standard_normal((batch, heads, rows, states))]


@pytest.mark.parametrize("chunk_size", [1, 3, 8, 100])
@pytest.mark.parametrize("ids", [False, True])
def test_chunks_of_any_size_give_the_loop(chunk_size, ids):
    arrays = _drawn(2, 17, 4, 3, 5, 2)
    segment_ids = np.array([[0] * 8 + [1] * 9, [4] * 3 + [2] * 5 + [4] * 9]) if ids else None
    options = {"dt_softplus": True, "chunk_size": chunk_size, "return_final_state": True}
    got = bj.ssd_chunk_scan(*arrays, segment_ids, **options)
    for a, b in zip(got, oracle.ssd_chunk_scan(*arrays, segment_ids, **options), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (1, 70, 4, 18, 5, 2),  # several chunks, and more rows than vectors have lanes
    (2, 33, 6, 3, 7, 1),  # more heads than a task has, and more positions than a chunk in float64
    (1, 3, 1, 2, 128, 1),
    (2, 0, 4, 3, 5, 2),
    (0, 5, 4, 3, 5, 2),
    (2, 5, 0, 3, 5, 1),
    (2, 5, 4, 0, 5, 2),
    (2, 5, 4, 3, 0, 2),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_values_states_and_derivatives(shape, gate, ids):
    """Of the kernel they are those of the definition, whose value is the loop's."""
    arrays = _drawn(*shape)
    if not gate:
        arrays[6] = None
    segment_ids = np.sort(np.random.default_rng(0).integers(0, 4, shape[:2])) if ids else None
    want = oracle.ssd_chunk_scan(*arrays, segment_ids, dt_softplus=gate, return_final_state=True)
    given = [i for i, a in enumerate(arrays) if a is not None]

    def results(implementation):
        def fun(*some):
            known = dict(zip(given, some, strict=True))
            return bj.ssd_chunk_scan(
                *(known.get(i) for i in range(len(arrays))), segment_ids, dt_softplus=gate, return_final_state=True,
                chunk_size=8, implementation=implementation,
            )  # fmt: skip

        y, pull = jax.vjp(fun, *(arrays[i] for i in given))
        return y, pull(jax.tree.map(lambda a: jnp.cos(3 * a), y))

    got, reference = jax.jit(lambda: [results(name) for name in ("native", "xla")])()
    for of_one in (got, reference):
        for y, exact in zip(of_one[0], want, strict=True):
            np.testing.assert_allclose(y, exact, rtol=1e-10, atol=1e-11)
    for a, b in zip(*map(jax.tree.leaves, (got, reference)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("gate", [False, True])
def test_heads_of_usual_sizes_in_bfloat16(columns, groups, gate):
    """What tensor cores compute is the definition in float64 of the same numbers to some roundings of each sum, and has the
    same bits twice; segments and chunks end anywhere."""
    arrays = _drawn(1, 150, 2, 64, columns, groups)
    arrays = [a.astype(jnp.bfloat16) for a in arrays]
    if not gate:
        arrays[6] = None
    ids = np.sort(np.random.default_rng(1).integers(0, 3, (1, 150)))
    given = [i for i, a in enumerate(arrays) if a is not None]

    def results(implementation, of):
        def fun(*some):
            known = dict(zip(given, some, strict=True))
            return bj.ssd_chunk_scan(
                *(known.get(i) for i in range(len(arrays))), ids, dt_softplus=True, return_final_state=True,
                implementation=implementation,
            )  # fmt: skip

        y, pull = jax.vjp(fun, *(of(arrays[i]) for i in given))
        cotangents = [
            jnp.asarray(np.cos(np.arange(a.size) % 31).astype(jnp.bfloat16), a.dtype).reshape(a.shape) for a in y
        ]
        return y, pull(tuple(cotangents))

    run = jax.jit(lambda: results("native", jnp.asarray))
    got, again, exact = run(), run(), jax.jit(lambda: results("xla", lambda a: jnp.asarray(a, jnp.float64)))()
    for a, b, c in zip(*map(jax.tree.leaves, (got, again, exact)), strict=True):
        a, b, c = (np.asarray(v, np.float64) for v in (a, b, c))
        np.testing.assert_array_equal(a, b)
        assert np.linalg.norm(a - c) < 6e-3 * np.linalg.norm(c)


@BOTH
@pytest.mark.parametrize("cut", [1, 32, 65])
def test_a_sequence_in_two_parts(cut, implementation):
    """The states after the first part are those before the second, with the gradient through them."""
    x, dt, a, b, c, skip, z, bias, state = _drawn(1, 70, 2, 3, 4, 1)

    def run(x, dt, b, c, z, state):
        return bj.ssd_chunk_scan(
            x, dt, a, b, c, skip, z, bias, state, dt_softplus=True, return_final_state=True,
            implementation=implementation,
        )  # fmt: skip

    def in_parts(x, dt, b, c, z, state):
        first, second = zip(*(jnp.split(v, [cut], 1) for v in (x, dt, b, c, z)), strict=True)
        y, between = run(*first, state)
        more, last = run(*second, between)
        return jnp.concatenate([y, more], 1), last

    both = jax.jit(lambda *args: [(lambda y, pull: (y, pull(y)))(*jax.vjp(fun, *args)) for fun in (run, in_parts)])
    for got, want in zip(*map(jax.tree.leaves, both(x, dt, b, c, z, state)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-11)


@BOTH
@pytest.mark.parametrize("ids", [[3, 3, 1, 1, 1, 3, 3], [0, 1, 0, 1, 0, 1, 0]])
def test_segments_are_runs_of_equal_ids(ids, implementation):
    """Each is computed alone, the first with the state; the final states are those of the last one."""
    x, dt, a, b, c, skip, z, bias, state = _drawn(1, 7, 2, 3, 4, 1)
    run = lambda state, ids, *some: bj.ssd_chunk_scan(
        some[0], some[1], a, some[2], some[3], skip, some[4], bias, state, ids, return_final_state=True,
        implementation=implementation,
    )  # fmt: skip
    y, last = run(state, np.array([ids]), x, dt, b, c, z)
    for i, part in enumerate(np.split(np.arange(7), np.flatnonzero(np.diff(ids)) + 1)):
        alone, end = run(None if i else state, None, *(v[:, part] for v in (x, dt, b, c, z)))
        np.testing.assert_allclose(y[:, part], alone, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(last, end, rtol=1e-12, atol=1e-13)


def test_16_bits_are_rounded_once():
    """States are in float32: a sum of ones goes on where one in 16 bits would stop."""
    one = jnp.ones((1, 600, 1, 1), jnp.bfloat16)
    y, state = bj.ssd_chunk_scan(
        one, one[..., 0], jnp.zeros(1, jnp.float32), one, one, return_final_state=True, implementation="native"
    )
    assert state.dtype == jnp.float32
    assert state[0, 0, 0, 0] == 600
    np.testing.assert_array_equal(y[0, :, 0, 0], jnp.arange(1, 601).astype(jnp.bfloat16))


@pytest.mark.parametrize("columns", [5, 129])
def test_backward(columns):
    """Also of states for which there is no kernel."""
    arrays = _drawn(2, 9, 4, 3, columns, 2)
    fun = lambda *a: bj.ssd_chunk_scan(*a, dt_softplus=True, return_final_state=True)

    @jax.jit
    def run(*arrays):
        (y, last), pull = jax.vjp(fun, *arrays)
        got = ssd_chunk_scan_backward(*arrays, None, y, last, dt_softplus=True)
        return got, pull((y, last)), ssd_chunk_scan_backward(*arrays[:5], None, None, None, None, None, y)

    got, want, without = run(*arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert without[6] is None
    assert without[5].shape == (4,)


def test_kernels_are_for_states_of_at_most_128_columns():
    x, dt, a, b, c, *_ = _drawn(1, 5, 2, 3, 129, 1)
    np.testing.assert_allclose(bj.ssd_chunk_scan(x, dt, a, b, c), oracle.ssd_chunk_scan(x, dt, a, b, c), rtol=1e-11)
    with pytest.raises(ValueError, match="kernels for states of at most 128 columns alone, got 129"):
        bj.ssd_chunk_scan(x, dt, a, b, c, implementation="native")


@BOTH
def test_it_is_a_selective_scan_of_equal_rates(implementation):
    """Of one group, whose channels are the heads' rows."""
    x, dt, a, b, c, skip, z, bias, state = _drawn(2, 11, 2, 3, 4, 1)
    y, last = bj.ssd_chunk_scan(
        x, dt, a, b, c, skip, z, bias, state, chunk_size=4, return_final_state=True, implementation=implementation
    )
    rows = lambda v: np.repeat(v, 3, -1)
    channels = lambda v: v.reshape(2, 11, 6).swapaxes(1, 2)
    rates = np.broadcast_to(rows(a)[:, None], (6, 4))
    want, end = bj.selective_scan(
        channels(x), channels(rows(dt)), rates, b[:, :, 0].swapaxes(1, 2), c[:, :, 0].swapaxes(1, 2), rows(skip),
        channels(z), rows(bias), state.reshape(2, 6, 4), return_final_state=True,
    )  # fmt: skip
    np.testing.assert_allclose(channels(y), want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(last.reshape(2, 6, 4), end, rtol=1e-11, atol=1e-12)


@BOTH
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_linear_attention(decay, implementation):
    """Causal attention by products instead of exponentials, with decay: queries are C, keys B, values x, and steps 1."""
    x, _, _, b, c, *_ = _drawn(2, 70, 4, 3, 5, 2)
    run = lambda x, b, c: bj.ssd_chunk_scan(
        x, np.ones((2, 70, 4)), np.full(4, -decay), b, c, chunk_size=16, implementation=implementation
    )
    distance = np.arange(70)[:, None] - np.arange(70)
    weights = np.where(distance >= 0, np.exp(-decay * distance), 0)

    def attention(x, b, c):
        b, c = (jnp.repeat(v, 2, 2) for v in (b, c))
        return jnp.einsum("bihn,bjhn,ij,bjhp->bihp", c, b, weights, x)

    both = jax.jit(lambda *args: [(lambda y, pull: (y, pull(y)))(*jax.vjp(f, *args)) for f in (run, attention)])
    for got, want in zip(*map(jax.tree.leaves, both(x, b, c)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@BOTH
def test_gradients_of_strong_decays_are_finite(implementation):
    """What a position does not see has no infinite weight, though the exponential of its difference would be."""
    x, dt, a, b, c, *_ = _drawn(1, 12, 2, 3, 4, 1)
    fun = lambda a: bj.ssd_chunk_scan(x, 100 * dt, a, b, c, chunk_size=6, implementation=implementation).sum()
    value, slope = jax.value_and_grad(fun)(100 * a)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


@BOTH
def test_memory_does_not_grow_with_the_square_of_the_length(implementation):
    x, dt, a, b, c, *_ = (jnp.asarray(v, jnp.float32) for v in _drawn(1, 1024, 4, 8, 8, 1))
    run = lambda *args: bj.ssd_chunk_scan(*args, chunk_size=32, implementation=implementation).sum()
    fun = jax.jit(jax.grad(run, (0, 1, 2, 3, 4)))
    assert fun.lower(x, dt, a, b, c).compile().memory_analysis().temp_size_in_bytes < 4 * 1024**2 * 4 / 4


X, DT, B = np.zeros((2, 5, 4, 3)), np.zeros((2, 5, 4)), np.zeros((2, 5, 2, 6))
A = np.zeros(4)


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (TypeError, "x must have one of the dtypes.*got int32", (X.astype("int32"), DT, A, B, B), {}),
        (ValueError, r"x must be \[batch, length, heads, P\]", (X[0], DT, A, B, B), {}),
        (ValueError, r"dt must have shape \(2, 5, 4\)", (X, DT[:, :4], A, B, B), {}),
        (ValueError, r"A must have shape \[4\].*got \(3,\)", (X, DT, A[:3], B, B), {}),
        (ValueError, r"groups that divide the 4 heads", (X, DT, A, jnp.zeros((2, 5, 3, 6)), B), {}),
        (ValueError, r"C must have shape", (X, DT, A, B, B[..., :5]), {}),
        (ValueError, r"D must have shape \[4, 3\]", (X, DT, A, B, B, jnp.zeros((4, 2))), {}),
        (ValueError, r"z must have shape", (X, DT, A, B, B, None, X[:1]), {}),
        (ValueError, "chunk_size must be at least 1, got 0", (X, DT, A, B, B), {"chunk_size": 0}),
        (ValueError, r"initial_state must have shape \[2, 4, 3, 6\]", (X, DT, A, B, B), {"initial_state": X}),
    ],
)  # fmt: skip
def test_errors(error, match, args, kwargs):
    with pytest.raises(error, match=match):
        bj.ssd_chunk_scan(*args, **kwargs)
