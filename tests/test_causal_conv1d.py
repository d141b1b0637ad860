"""Causal convolutions: edges, layouts, segments, states, and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import state_space as oracle

import baracuda_jax as bj
from baracuda_jax.backward import causal_conv1d_backward

BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])
LAYOUTS = pytest.mark.parametrize("data_format", ["NCL", "NLC"])


def _drawn(batch, channels, length, width, data_format="NCL", ids=False, seed=0):
    rng = np.random.default_rng((seed, batch, channels, length, width))
    shape = (batch, channels, length) if data_format == "NCL" else (batch, length, channels)
    shapes = shape, (channels, width), (channels,), (batch, channels, width - 1)
    arrays = tuple(rng.standard_normal(s) for s in shapes)
    return (*arrays, np.sort(rng.integers(0, 3, (batch, length))) if ids else None)


@BOTH
@LAYOUTS
@pytest.mark.parametrize("shape", [(2, 3, 1), (1, 130, 9), (2, 3, 2), (2, 2, 300), (0, 3, 4), (2, 0, 4), (2, 3, 0)])
@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("ids", [False, True])
def test_values_states_and_derivatives(shape, width, ids, data_format, implementation):
    """Of the kernel they are those of the definition, whose value is the loop's."""
    *arrays, segment_ids = _drawn(*shape, width, data_format, ids)
    options = {"activation": "silu", "data_format": data_format}
    want = oracle.causal_conv1d(*arrays, segment_ids, **options, with_state=True)

    def results(implementation):
        fun = lambda *a: bj.causal_conv1d(
            *a, segment_ids, **options, return_final_state=True, implementation=implementation
        )
        y, pull = jax.vjp(fun, *arrays)
        cotangents = jax.tree.map(lambda a: jnp.cos(3 * a), y)
        return y, pull(cotangents), jax.jvp(fun, arrays, [np.sin(2 * a) for a in arrays])[1]

    got, reference = jax.jit(lambda: [results(name) for name in (implementation, "xla")])()
    for y, exact in zip(got[0], want, strict=True):
        np.testing.assert_allclose(y, exact, rtol=1e-11, atol=1e-12)
    for a, b in zip(*map(jax.tree.leaves, (got, reference)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


@BOTH
@LAYOUTS
@pytest.mark.parametrize("cut", [1, 2, 5, 9])
def test_a_sequence_in_two_parts(cut, data_format, implementation):
    """The state after the first part is the one before the second."""
    x, weight, bias, state, _ = _drawn(2, 3, 10, 4, data_format)
    run = lambda x, state: bj.causal_conv1d(
        x, weight, bias, state, activation="silu", return_final_state=True, data_format=data_format,
        implementation=implementation,
    )  # fmt: skip
    axis = 2 if data_format == "NCL" else 1
    first, second = np.split(x, [cut], axis)
    (a, between), (y, last) = run(first, state), run(x, state)
    b, end = run(second, between)
    _same(jnp.concatenate([a, b], axis), y, implementation)
    _same(end, last, implementation)


def _same(a, b, implementation):
    """The same bits of kernels; XLA may contract products in one program and not in another."""
    np.testing.assert_allclose(a, b, rtol=0 if implementation == "native" else 1e-12)


@BOTH
@pytest.mark.parametrize("ids", [[3, 3, 1, 1, 1, 3, 3], [0, 1, 0, 1, 0, 1, 0], [5, 5, 5, 5, 5, 5, 5]])
def test_segments_are_runs_of_equal_ids(ids, implementation):
    """Each is computed alone, the first with the state; an id that comes again is another segment."""
    x, weight, bias, state, _ = _drawn(1, 2, 7, 4)
    y = bj.causal_conv1d(x, weight, bias, state, np.array([ids]), implementation=implementation)
    cuts = np.flatnonzero(np.diff(ids)) + 1
    for i, part in enumerate(np.split(np.arange(7), cuts)):
        alone = bj.causal_conv1d(x[..., part], weight, bias, None if i else state, implementation=implementation)
        _same(y[..., part], alone, implementation)


@BOTH
@LAYOUTS
def test_what_is_not_finite_stays_in_its_window_and_segment(data_format, implementation):
    x, weight, *_ = _drawn(1, 2, 12, 3, data_format)
    at = (0, 1, 4) if data_format == "NCL" else (0, 4, 1)
    for value in (np.nan, np.inf):
        x[at] = value
        seen = {None: [4, 5, 6], 5: [4]}
        for start, want in seen.items():
            ids = None if start is None else (np.arange(12) >= start)[None].astype(np.int32)
            y = bj.causal_conv1d(x, weight, segment_ids=ids, data_format=data_format, implementation=implementation)
            y = y if data_format == "NCL" else y.swapaxes(1, 2)
            assert np.argwhere(~np.isfinite(y)).tolist() == [[0, 1, l] for l in want]


@BOTH
@LAYOUTS
@pytest.mark.parametrize("z", [-np.inf, -1e30, -600.0, 600.0, 1e30, np.inf])
def test_the_activation_of_large_numbers(z, data_format, implementation):
    """silu and its slope are at their limits."""
    fun = lambda bias: bj.causal_conv1d(
        jnp.zeros((1, 1, 1)), jnp.zeros((1, 2)), bias, activation="silu", data_format=data_format,
        implementation=implementation,
    ).sum()  # fmt: skip
    value, (slope,) = jax.value_and_grad(fun)(jnp.array([z]))
    assert value == (0 if z < 0 else z)
    assert slope == (0 if z < 0 else 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@LAYOUTS
def test_sums_of_weights_are_in_float32(dtype, data_format):
    """Of more elements than ones add up to in 16 bits."""
    x = jnp.ones((3, 2, 2048) if data_format == "NCL" else (3, 2048, 2), dtype)
    _, dweight, dbias, _ = causal_conv1d_backward(
        x, jnp.zeros((2, 2), dtype), None, None, None, x, data_format=data_format, implementation="native"
    )
    assert dbias.tolist() == [6144, 6144]
    np.testing.assert_allclose(dweight.astype(float)[:, 1], 6144)
    np.testing.assert_allclose(dweight.astype(float)[:, 0], 6144 - 3, rtol=1e-2)


def test_a_sequence_without_a_batch():
    x, weight, bias, state, ids = _drawn(1, 3, 8, 4, ids=True)
    want = bj.causal_conv1d(x, weight, bias, state, ids, return_final_state=True)
    got = bj.causal_conv1d(x[0], weight, bias, state[0], ids[0], return_final_state=True)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b[0])
    dy = np.cos(x)
    want = causal_conv1d_backward(x, weight, bias, state, ids, dy)
    got = causal_conv1d_backward(x[0], weight, bias, state[0], ids[0], dy[0])
    for a, b in zip(got, (want[0][0], want[1], want[2], want[3][0]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("size", [3, 6])
def test_steps_are_a_sequence(size):
    x, weight, bias, state, _ = _drawn(2, 3, 9, 4)
    want, last = bj.causal_conv1d(x, weight, bias, state, activation="silu", return_final_state=True)
    state = np.concatenate([np.full((2, 3, size - 3), np.nan), state], -1)  # what is older is not read
    for l in range(9):
        y, state = bj.causal_conv1d_update(x[..., l], state, weight, bias, activation="silu")
        np.testing.assert_allclose(y, want[..., l], rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(state[..., -3:], last)


def test_a_state_that_is_donated_is_the_new_one():
    x, weight, bias, state, _ = map(lambda a: None if a is None else jnp.asarray(a), _drawn(2, 3, 1, 4))
    step = jax.jit(lambda x, state: bj.causal_conv1d_update(x, state, weight, bias), donate_argnums=1)
    assert "input_output_alias={ {1}: (1, {}, may-alias) }" in step.lower(x[..., 0], state).compile().as_text()


X, W = np.zeros((2, 3, 5)), np.zeros((3, 4))


@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.causal_conv1d, TypeError, "x must have one of the dtypes.*got int32", (X.astype("int32"), W), {}),
        (bj.causal_conv1d, ValueError, r"x must have rank 3, NCL, or 2.*got shape \(5,\)", (X[0, 0], W), {}),
        (bj.causal_conv1d, ValueError, r"weight must be \[D, width\], for the 3 channels.*got shape \(3, 1\)", (X, W[:, :1]), {}),
        (bj.causal_conv1d, ValueError, r"a width of 2 to 8, got shape \(3, 9\)", (X, jnp.zeros((3, 9))), {}),
        (bj.causal_conv1d, ValueError, r"for the 5 channels of x.*got shape \(3, 4\)", (X, W), {"data_format": "NLC"}),
        (bj.causal_conv1d, TypeError, "weight must have the dtype of x", (X, W.astype("float16")), {}),
        (bj.causal_conv1d, ValueError, r"bias must have shape \(3,\).*got \(4,\)", (X, W, W[0]), {}),
        (bj.causal_conv1d, ValueError, r"initial_state must have shape \(2, 3, 3\).*got \(2, 3, 4\)", (X, W, None, jnp.zeros((2, 3, 4))), {}),
        (bj.causal_conv1d, ValueError, r"segment_ids must have shape \(2, 5\).*got \(2, 4\)", (X, W), {"segment_ids": jnp.zeros((2, 4), int)}),
        (bj.causal_conv1d, TypeError, "segment_ids must have one of the dtypes", (X, W), {"segment_ids": X[:, 0]}),
        (bj.causal_conv1d, ValueError, "activation must be one of 'silu', None, got 'relu'", (X, W), {"activation": "relu"}),
        (bj.causal_conv1d, TypeError, "return_final_state must be True or False", (X, W), {"return_final_state": 1}),
        (bj.causal_conv1d, ValueError, "data_format must be one of 'NCL', 'NLC'", (X, W), {"data_format": "NCHW"}),
        (causal_conv1d_backward, ValueError, r"dy must have shape \(2, 3, 5\)", (X, W, None, None, None, X[:1]), {}),
        (bj.causal_conv1d_update, ValueError, r"state must have the shape of x, \(2, 3\).*got shape \(2, 3, 2\)", (X[..., 0], X[..., :2], W), {}),
        (bj.causal_conv1d_update, TypeError, "state must have the dtype of x", (X[..., 0], X[..., :3].astype("float16"), W), {}),
    ],
)  # fmt: skip
def test_errors(fun, error, match, args, kwargs):
    with pytest.raises(error, match=match):
        fun(*args, **kwargs)
