"""8-bit training compared with NumPy's formulas on ml_dtypes, and a layer that learns as one of float32 does."""

import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
import sent
import sharded
from jax.sharding import PartitionSpec as P
from programs import normal

import baracuda_jax as bj
from baracuda_jax.fp8 import Fp8Scale, Fp8State

LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def _numpy_cast(x, scale, dtype):
    x = np.asarray(x, np.float32)
    scaled = x * np.float32(scale)
    q = np.clip(scaled, -LARGEST[dtype], LARGEST[dtype]).astype(getattr(ml_dtypes, dtype))
    return q, np.abs(x).max(initial=np.float32(0))


def _numpy_update(history, scale, largest, margin=0, algorithm="max"):
    """Of one array, step by step."""
    history, old = np.array(history, np.float32), np.float32(history[0])
    amax = history.max() if algorithm == "max" else old
    if np.isfinite(amax) and amax > 0:
        scale = np.float32(largest) / amax / np.float32(2.0**margin)
    history[:-1] = history[1:].copy()
    history[-1] = old
    history[0] = 0
    return history, np.float32(scale)


def _same(got, want):
    np.testing.assert_array_equal(np.asarray(got).astype(np.float32), np.asarray(want).astype(np.float32))


@pytest.mark.parametrize("scale", [1.0, 0.37, 300.0])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("to", LARGEST)
def test_cast_is_ml_dtypes(to, dtype, scale):
    """Of magnitudes from subnormal to out of range, and of what is not finite."""
    magnitudes = np.exp2(np.linspace(-18, 15, 997)) * np.resize([1, -1], 997)
    x = sent.asarray(magnitudes, dtype)
    q, amax = bj.fp8_cast(x, scale, to)
    want, largest = _numpy_cast(x, scale, to)
    assert q.dtype == to and amax.dtype == jnp.float32
    _same(q, want)
    _same(amax, largest)
    np.testing.assert_allclose(bj.fp8_dequant(q, scale), want.astype(np.float32) / np.float32(scale), rtol=2e-7)
    assert bj.fp8_dequant(q, scale, dtype="bfloat16").dtype == jnp.bfloat16


@pytest.mark.parametrize("to", LARGEST)
def test_cast_of_what_is_not_finite(to):
    q, amax = bj.fp8_cast(sent.asarray([np.inf, -np.inf, 1e30, 1.0], jnp.float32), 2.0, to)
    _same(q, [LARGEST[to], -LARGEST[to], LARGEST[to], 2.0])
    assert amax == np.inf
    q, amax = bj.fp8_cast(sent.asarray([np.nan, 1.0], jnp.float32), 2.0, to)
    _same(q, [np.nan, 2.0])
    assert np.isnan(amax)
    q, amax = bj.fp8_cast(sent.zeros((0, 3), jnp.float32), 2.0, to)
    assert q.shape == (0, 3) and amax == 0


def test_derivatives_of_casts():
    x = sent.arange(4.0, dtype=jnp.float32)
    _same(
        jax.jit(jax.grad(lambda x: bj.fp8_cast(x, 2.0)[1] + bj.fp8_cast(x, 2.0)[0].astype(jnp.float32).sum()))(x),
        np.zeros(4),
    )
    q = bj.fp8_cast(x, 2.0)[0]
    assert jax.jit(jax.grad(lambda s: bj.fp8_dequant(q, s).sum()))(jnp.float32(2)) == -(0 + 2 + 4 + 6) / 4


@pytest.mark.parametrize("algorithm", ["max", "most_recent"])
@pytest.mark.parametrize("to, margin", [("float8_e4m3fn", 0), ("float8_e5m2", 2), ("float8_e4m3fn", -1)])
def test_recipe_over_steps(to, margin, algorithm):
    """A window of all steps: the largest magnitude counts until it leaves the history, and none is lost."""
    magnitudes = [1.0, 8.0, 2.0, 0.5, 0.0, np.inf, 3.0, np.nan, 2.0, 1.0, 1.0, 1.0]
    history, scale = sent.zeros(3, jnp.float32), jnp.float32(1)
    expected = np.asarray(history), np.float32(1)
    update = jax.jit(lambda h, s: bj.fp8_recipe_update(h, s, dtype=to, margin=margin, amax_compute_algo=algorithm))
    for amax in magnitudes:
        history, scale = update(history.at[0].set(amax), scale)
        first = np.array(expected[0])
        first[0] = amax
        expected = _numpy_update(first, expected[1], LARGEST[to], margin, algorithm)
        _same(history, expected[0])
        np.testing.assert_array_max_ulp(np.asarray(scale), expected[1], 1)  # a GPU's division is not rounded to nearest
    assert scale == np.float32(LARGEST[to] / 2.0**margin) and history[0] == 0


def test_recipe_of_many_arrays_one_step_and_tiny_magnitudes():
    history, scale = np.abs(normal((4, 5), "float32")), sent.ones(4, jnp.float32)
    got = bj.fp8_recipe_update(history, scale)
    for i in range(4):
        want = _numpy_update(np.asarray(history[i]), 1.0, 448.0)
        _same(got[0][i], want[0])
        _same(got[1][i], want[1])
    history, scale = bj.fp8_recipe_update(sent.asarray([7.0], jnp.float32), 1.0)
    assert scale == 64 and history == sent.zeros(1)
    assert bj.fp8_recipe_update(sent.asarray([1e-37], jnp.float32), 1.0)[1] == np.finfo(np.float32).max


def _state(length=3):
    scales = iter((10.0, 40.0, 300.0))
    return Fp8State(
        *(Fp8Scale(jnp.float32(next(scales)), sent.asarray([0, 9.0, 0.25][:length], jnp.float32)) for _ in range(3))
    )


def _expected(x, kernel, bias, dy, state):
    """The layer, its gradients and the new state, in NumPy."""
    f64 = lambda q: np.asarray(q).astype(np.float64)
    (sx, hx), (sk, hk), (sd, hd) = ((float(of.scale), np.asarray(of.history)) for of in state)
    (qx, ax), (qk, ak), (qd, ad) = (
        _numpy_cast(a, s, to) for a, s, to in ((x, sx, "float8_e4m3fn"), (kernel, sk, "float8_e4m3fn"), (dy, sd, "float8_e5m2"))
    )  # fmt: skip
    y = np.einsum("...k,kn->...n", f64(qx), f64(qk)) / (sx * sk) + f64(bias)
    dx = np.einsum("...n,kn->...k", f64(qd), f64(qk)) / (sd * sk)
    dkernel = f64(qx).reshape(-1, x.shape[-1]).T @ f64(qd).reshape(-1, dy.shape[-1]) / (sx * sd)
    new = []
    for h, a, s, to in ((hx, ax, sx, "float8_e4m3fn"), (hk, ak, sk, "float8_e4m3fn"), (hd, ad, sd, "float8_e5m2")):
        h = np.array(h)
        h[0] = a
        new.append(_numpy_update(h, s, LARGEST[to])[::-1])
    return y, (dx, dkernel, f64(dy).reshape(-1, dy.shape[-1]).sum(0)), new


def _vjp(x, kernel, bias, state, dy):
    y, pull = jax.vjp(lambda *a: bj.fp8_linear(a[0], a[1], a[3], a[2]), x, kernel, bias, state)
    return y, *pull(dy)


def _layer(dtype="float32", lead=(8,)):
    x, kernel, bias = normal((*lead, 16), dtype, 1), normal((16, 8), dtype, 2), normal((8,), dtype, 3)
    return x, kernel, bias, normal((*lead, 8), dtype, 4)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("lead", [(8,), (2, 3), ()])
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("bfloat16", 1e-2)])
def test_linear_is_numpys(dtype, rtol, lead, wrap):
    x, kernel, bias, dy = _layer(dtype, lead)
    y, dx, dkernel, dbias, new = wrap(_vjp)(x, kernel, bias, _state(), dy)
    want, gradients, states = _expected(x, kernel, bias, dy, _state())
    for got, expected in zip((y, dx, dkernel, dbias), (want, *gradients), strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got, np.float64), expected, rtol=rtol, atol=rtol)
    for got, (scale, history) in zip(new, states, strict=True):
        _same(got.scale, scale)
        _same(got.history, history)


@pytest.mark.parametrize("rows, dtypes", [(2, {"f32"}), (16, {"f8E4M3FN", "f8E5M2"})])
def test_products_of_a_tiny_layer_are_products_of_float32(rows, dtypes):
    """As those of `fp8_gemm`, in both passes."""
    x, kernel, state = normal((rows, 4), "float32"), normal((4, 16), "float32", 1), _state()
    both = jax.jit(jax.value_and_grad(lambda x, kernel: bj.fp8_linear(x, kernel, state).sum(), (0, 1)))
    text = both.trace(x, kernel).lower(lowering_platforms=("cuda",)).as_text()
    products = re.findall(r"stablehlo.dot_general .* : \(tensor<\S+x(\w+)>, tensor<\S+x(\w+)>\)", text)
    assert len(products) == 3 and {dtype for pair in products for dtype in pair} == dtypes


def test_forward_mode_is_refused():
    x, kernel, _, _ = _layer()
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(lambda x: bj.fp8_linear(x, kernel, _state()), (x,), (x,))


def _states(found):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(found)]


def test_state_through_checkpoint_scan_and_vmap():
    """Layers that scan or vmap loops over have states of their own, stacked."""
    kernels, x = normal((3, 16, 16), "float32", 5) / 4, normal((4, 16), "float32", 6)
    state = jax.tree.map(lambda a: jnp.stack([a] * 3), _state())

    def layer(x, kernel, state):
        return jnp.tanh(bj.fp8_linear(x, kernel, state))

    def unrolled(kernels, state):
        y = x
        for i in range(3):
            y = layer(y, kernels[i], jax.tree.map(lambda a: a[i], state))
        return jnp.sum(y**2)

    def scanned(kernels, state, layer=layer):
        return jnp.sum(jax.lax.scan(lambda y, each: (layer(y, *each), None), x, (kernels, state))[0] ** 2)

    want = jax.jit(jax.grad(unrolled, 1))(kernels, state)
    for fun in (scanned, lambda *a: scanned(*a, layer=jax.checkpoint(layer))):
        got = jax.jit(jax.grad(fun, 1))(kernels, state)
        for a, b in zip(_states(got), _states(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)
    many = jax.jit(jax.grad(lambda s: jax.vmap(lambda k, s: bj.fp8_linear(x, k, s))(kernels, s).sum()))(state)
    for i in range(3):
        one = jax.grad(lambda s, i=i: bj.fp8_linear(x, kernels[i], s).sum())(_state())
        for a, b in zip(_states(many), _states(one), strict=True):
            np.testing.assert_array_equal(a[i], b)


@pytest.mark.parametrize("policy", ["everything_saveable", "dots_saveable"])
def test_checkpoint_policies_keep_saturated_and_subnormal_values(policy):
    """`reduce_precision`, by which JAX rounds floats that it saves, knows neither of float8_e4m3fn."""
    x, kernel = (
        sent.asarray(np.float32([[448, 300, 2.0**-9, 1]])),
        sent.asarray(np.float32([[448], [2.0**-8], [1], [256]])),
    )
    state = Fp8State(*(Fp8Scale(jnp.float32(1), sent.zeros(2, jnp.float32)) for _ in range(3)))
    loss = lambda x, kernel: bj.fp8_linear(x, kernel, state).sum()
    got = jax.jit(jax.grad(jax.checkpoint(loss, policy=getattr(jax.checkpoint_policies, policy)), (0, 1)))(x, kernel)
    _same(got[0], np.transpose(kernel))
    _same(got[1], [[448], [288], [2.0**-9], [1]])


def _trained(layer, state, steps=150):
    """Regression of a linear map by Adam; the state is replaced by its gradient."""
    x, true = normal((64, 16), "float32", 7), normal((16, 4), "float32", 8)
    target, params = x @ true, {"kernel": sent.zeros((16, 4)), "bias": sent.zeros(4)}
    params = jax.tree.map(lambda p: p.astype(jnp.float32), params)
    optimizer = optax.adam(0.05)

    def loss(params, state):
        return jnp.mean((layer(x, params, state) - target) ** 2)

    @jax.jit
    def step(params, moments, state):
        value, (grads, state) = jax.value_and_grad(loss, (0, 1))(params, state)
        updates, moments = optimizer.update(grads, moments)
        return optax.apply_updates(params, updates), moments, state, value

    moments, values = optimizer.init(params), []
    for _ in range(steps):
        params, moments, state, value = step(params, moments, state)
        values.append(float(value))
    return values, params, state, x


def test_a_layer_learns_as_float32_does():
    values, params, state, x = _trained(lambda x, p, s: bj.fp8_linear(x, p["kernel"], s, p["bias"]), bj.fp8_state(16))
    exact, expected, _, _ = _trained(lambda x, p, s: x @ p["kernel"] + p["bias"] + 0 * s, jnp.float32(0))
    assert exact[-1] < 0.05 * exact[0]
    assert values[-1] < exact[-1] + 0.01 * values[0]
    np.testing.assert_allclose(params["kernel"], expected["kernel"], atol=0.15)
    amax = float(jnp.abs(x).max())
    assert state.x.scale == np.float32(448) / np.float32(amax)
    largest = float(jnp.abs(params["kernel"]).max())
    assert 0.5 < 448 / float(state.kernel.scale) / largest < 2
    assert state.gradient.scale > 57344 / 10  # gradients of a mean are small


@pytest.mark.parametrize("kind", ["auto", "explicit"])
def test_amax_is_that_of_all_shards(kind):
    """Each shard's largest magnitude differs, and the last shard's is the largest."""
    x = np.arange(1, 129, dtype=np.float32).reshape(8, 16)
    over = sharded.mesh(kind, axes=1)
    fun = jax.jit(
        lambda x: (
            *bj.fp8_cast(x, 2.0),
            jax.jit(jax.grad(lambda s: bj.fp8_linear(x, sent.eye(16, dtype=x.dtype), s).sum()))(_state()),
        )
    )
    want = fun(x)
    with jax.set_mesh(over):
        got = fun(*sharded.put((x,), over, (P("d", None),)))
    assert got[1] == 128 and got[2].x.scale == np.float32(3.5)
    jax.tree.map(_same, got, want)


X, K = np.ones((2, 4), jnp.float32), np.ones((4, 3), jnp.float32)


@pytest.mark.parametrize(
    "error, message, call",
    [
        (ValueError, "fp8_cast: scale must have shape ()", lambda: bj.fp8_cast(X, sent.ones(2, jnp.float32))),
        (ValueError, "fp8_cast: dtype must be", lambda: bj.fp8_cast(X, 1.0, "int8")),
        (TypeError, "fp8_cast: x must", lambda: bj.fp8_cast(sent.ones(2, jnp.int32), 1.0)),
        (TypeError, "fp8_dequant: q must", lambda: bj.fp8_dequant(X, 1.0)),
        (ValueError, "fp8_recipe_update: history must have a last dimension", lambda: bj.fp8_recipe_update(X[:, :0], X[:, 0])),
        (ValueError, "fp8_recipe_update: scale must have shape (2,)", lambda: bj.fp8_recipe_update(X, 1.0)),
        (TypeError, "fp8_recipe_update: margin must be a static number", lambda: bj.fp8_recipe_update(X, X[:, 0], margin="1")),
        (ValueError, "amax_compute_algo must be", lambda: bj.fp8_recipe_update(X, X[:, 0], amax_compute_algo="mean")),
        (ValueError, "fp8_linear: kernel must have shape (4, N)", lambda: bj.fp8_linear(X, K.T, _state())),
        (ValueError, "fp8_linear: bias must have shape (3,)", lambda: bj.fp8_linear(X, K, _state(), X[0])),
        (TypeError, "fp8_linear: state must be an fp8.Fp8State, got tuple", lambda: bj.fp8_linear(X, K, (1,))),
        (ValueError, "fp8_state: history_length must be", lambda: bj.fp8_state(0)),
    ],
)  # fmt: skip
def test_what_is_refused(error, message, call):
    with pytest.raises(error, match=re.escape(message)):
        call()
