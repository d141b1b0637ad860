"""State-space duality: chunks of any size, states, segments, and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import state_space as oracle

import baracuda_jax as bj


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


@pytest.mark.parametrize(
    "shape", [(2, 0, 4, 3, 5, 2), (0, 5, 4, 3, 5, 2), (2, 5, 0, 3, 5, 1), (2, 5, 4, 0, 5, 2), (2, 5, 4, 3, 0, 2)]
)
def test_empty_dimensions(shape):
    arrays = _drawn(*shape)
    got = bj.ssd_chunk_scan(*arrays, return_final_state=True, chunk_size=4)
    for a, b in zip(got, oracle.ssd_chunk_scan(*arrays, return_final_state=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def test_it_is_a_selective_scan_of_equal_rates():
    """Of one group, whose channels are the heads' rows."""
    x, dt, a, b, c, skip, z, bias, state = _drawn(2, 11, 2, 3, 4, 1)
    y, last = bj.ssd_chunk_scan(x, dt, a, b, c, skip, z, bias, state, chunk_size=4, return_final_state=True)
    rows = lambda v: np.repeat(v, 3, -1)
    channels = lambda v: v.reshape(2, 11, 6).swapaxes(1, 2)
    rates = np.broadcast_to(rows(a)[:, None], (6, 4))
    want, end = bj.selective_scan(
        channels(x), channels(rows(dt)), rates, b[:, :, 0].swapaxes(1, 2), c[:, :, 0].swapaxes(1, 2), rows(skip),
        channels(z), rows(bias), state.reshape(2, 6, 4), return_final_state=True,
    )  # fmt: skip
    np.testing.assert_allclose(channels(y), want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(last.reshape(2, 6, 4), end, rtol=1e-11, atol=1e-12)


def test_gradients_of_strong_decays_are_finite():
    """What a position does not see has no infinite weight, though the exponential of its difference would be."""
    x, dt, a, b, c, *_ = _drawn(1, 12, 2, 3, 4, 1)
    fun = lambda a: bj.ssd_chunk_scan(x, 100 * dt, a, b, c, chunk_size=6).sum()
    value, slope = jax.value_and_grad(fun)(100 * a)
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


def test_memory_does_not_grow_with_the_square_of_the_length():
    x, dt, a, b, c, *_ = (jnp.asarray(v, jnp.float32) for v in _drawn(1, 1024, 4, 8, 8, 1))
    fun = jax.jit(jax.grad(lambda *args: bj.ssd_chunk_scan(*args, chunk_size=32).sum(), (0, 1, 2, 3, 4)))
    assert fun.lower(x, dt, a, b, c).compile().memory_analysis().temp_size_in_bytes < 4 * 1024**2 * 4 / 4


X, DT, B = jnp.zeros((2, 5, 4, 3)), jnp.zeros((2, 5, 4)), jnp.zeros((2, 5, 2, 6))
A = jnp.zeros(4)


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
