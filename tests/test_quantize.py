"""What the laws do not say of quantization: PyTorch's values, dtypes of every kind, edges, and the gradients of LSQ."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits

import baracuda_jax as bj

INTEGERS = {"int8": (-128, 127), "uint8": (0, 255), "int4": (-8, 7), "uint4": (0, 15)}
FLOAT8 = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
FLOATS = ("float32", "float64", "float16", "bfloat16")
both = pytest.mark.parametrize("implementation", ["native", "xla"])


def _quantized(x, scale, zero, low, high):
    return np.clip(np.rint(np.asarray(x, np.float64) / np.asarray(scale, np.float64)) + zero, low, high)


@both
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (64,), (33, 5), (4, 6, 8)])
def test_integer_values_per_tensor(shape, dtype, implementation):
    x = sent.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)
    low, high = INTEGERS[dtype]
    q = bj.quantize_per_tensor(x, 0.25, 3, dtype, implementation=implementation)
    assert q.dtype == dtype and q.shape == shape
    np.testing.assert_array_equal(np.asarray(q, np.float64), _quantized(x, 0.25, 3, low, high))
    y = bj.dequantize_per_tensor(q, 0.25, 3, implementation=implementation)
    np.testing.assert_array_equal(y, (np.asarray(q, np.float32) - 3) * np.float32(0.25))


@both
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOAT8])
@pytest.mark.parametrize("x_dtype", FLOATS)
def test_every_granularity_is_the_same_with_its_scales_spread(x_dtype, dtype, implementation):
    rng = np.random.default_rng(1)
    x = sent.asarray(rng.standard_normal((4, 6, 10)), x_dtype)
    call = {"channel": {"axis": 1}, "token": {}, "group": {"group_size": 5}}
    shapes = {"channel": (6,), "token": (4, 6), "group": (4, 6, 2)}
    expanded = {
        "channel": lambda s: s[:, None],
        "token": lambda s: s[..., None],
        "group": lambda s: np.repeat(s, 5, -1),
    }
    for kind, more in call.items():
        scale = 0.05 + 0.1 * rng.random(shapes[kind])
        q = getattr(bj, f"quantize_per_{kind}")(
            x, sent.asarray(scale), dtype=dtype, implementation=implementation, **more
        )
        wide = np.float64 if x_dtype == "float64" else np.float32
        ratio = np.asarray(x).astype(wide) / expanded[kind](scale.astype(wide))
        low, high = INTEGERS.get(dtype, (-FLOAT8.get(dtype, 0), FLOAT8.get(dtype, 0)))
        want = np.clip(np.rint(ratio) if dtype in INTEGERS else ratio, low, high)
        if dtype in FLOAT8 and wide == np.float32:
            want = want.astype(dtype).astype(np.float64)
        if dtype in FLOAT8 and wide == np.float64:  # ml_dtypes rounds twice
            np.testing.assert_allclose(np.asarray(q, np.float64), want, rtol=0.13, atol=2e-3)
        else:
            np.testing.assert_array_equal(np.asarray(q, np.float64), want)
        y = getattr(bj, f"dequantize_per_{kind}")(
            q, sent.asarray(scale), dtype=x_dtype, implementation=implementation, **more
        )
        close(y, np.asarray(q, np.float64) * expanded[kind](scale), x_dtype)


@both
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("channels", [2, 6, 16, 130])
def test_channels_on_the_last_axis(channels, dtype, implementation):
    rng = np.random.default_rng(channels)
    x = sent.asarray(rng.standard_normal((37, channels)), jnp.float32)
    scale = np.float32(0.05 + 0.1 * rng.random(channels))
    q = bj.quantize_per_channel(x, sent.asarray(scale), dtype=dtype, implementation=implementation)
    np.testing.assert_array_equal(np.asarray(q, np.float32), np.clip(np.rint(x / scale), *INTEGERS[dtype]))
    y = bj.dequantize_per_channel(q, sent.asarray(scale), implementation=implementation)
    np.testing.assert_array_equal(y, np.asarray(q, np.float32) * scale)


@both
def test_edges_of_the_values(implementation):
    x = sent.asarray([np.inf, -np.inf, np.nan, 3e38, -3e38, 0.5, 1.5, 2.5, -0.5, -0.0], jnp.float32)
    q = bj.quantize_per_tensor(x, 1.0, 100, implementation=implementation)
    np.testing.assert_array_equal(q, [127, -128, 100, 127, -128, 100, 102, 102, 100, 100])
    np.testing.assert_array_equal(
        bj.quantize_per_tensor(x, 1.0, jnp.int32(100), qmin=-10, qmax=10, implementation=implementation),
        [10, -10, 10, 10, -10, 10, 10, 10, 10, 10],
    )
    for dtype, most in FLOAT8.items():
        y = np.asarray(bj.quantize_per_tensor(x[:5], 1.0, dtype=dtype, implementation=implementation), np.float32)
        np.testing.assert_array_equal(y, [most, -most, np.nan, most, -most])


@both
def test_scales_that_are_no_scales(implementation):
    """Zero, infinite, NaN and negative scales, as data, have the results that the formula gives."""
    x = sent.asarray([[2.0, 0.0, -3.0]] * 5, jnp.float32)
    scale = sent.asarray([0.0, np.inf, np.nan, -1.0, 1e-42])
    q = bj.quantize_per_token(x, scale, sent.full(5, 7), implementation=implementation)
    rows = [[127, 7, -128], [7, 7, 7], [7, 7, 7], [5, 7, 10]]
    np.testing.assert_array_equal(q[:4], rows)
    np.testing.assert_array_equal(q[4], rows[0])


@pytest.mark.parametrize("dtype", FLOAT8)
def test_every_float8_survives(dtype):
    bits = np.arange(256, dtype=np.uint8).view(dtype)
    values = bits.astype(np.float32)
    finite = np.isfinite(values)
    y = bj.dequantize_per_tensor(sent.asarray(bits), 1.0, implementation="native")
    np.testing.assert_array_equal(y, values)
    same_bits(
        bj.quantize_per_tensor(sent.asarray(values[finite]), 1.0, dtype=dtype, implementation="native"), bits[finite]
    )
    # Ties between neighbors go to the even one, everything else to the nearer.
    ordered = np.sort(values[finite])
    middle = (ordered[1:] + ordered[:-1]) / 2
    near = np.concatenate([middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)]).astype(np.float32)
    got = bj.quantize_per_tensor(sent.asarray(near), 1.0, dtype=dtype, implementation="native")
    np.testing.assert_array_equal(np.asarray(got, np.float32), near.astype(dtype).astype(np.float32))


@both
def test_quantize_backward_is_straight_through(implementation):
    x = sent.asarray([-40.0, -3.0, 0.2, 3.0, 40.0])
    dy = sent.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    dx = bj.quantize_per_tensor_backward(x, 0.25, 2, dy, implementation=implementation)
    np.testing.assert_array_equal(dx, [0, 8, 12, 16, 0])
    assert jax.jit(jax.grad(lambda x: bj.quantize_per_tensor(x, 0.25).astype(jnp.float32).sum()))(x).sum() == 0
    np.testing.assert_array_equal(
        jax.jit(
            jax.grad(lambda dy: bj.quantize_per_tensor_backward(x, 0.25, 2, dy, implementation=implementation).sum())
        )(dy),
        [0, 4, 4, 4, 0],
    )


@both
def test_lsq_gradients_are_the_formulas(implementation):
    rng = np.random.default_rng(5)
    x, dy = (sent.asarray(rng.standard_normal((4, 6))) for _ in range(2))
    scale, zero = sent.asarray([0.1, 0.03, 0.2, 0.01]), sent.asarray([1.0, -2.0, 0.0, 3.0])
    call = lambda x, s, z: bj.fake_quantize(x, s, z, -20, 20, axis=0, gradient="lsq", implementation=implementation)
    dx, ds, dz = jax.vjp(call, x, scale, zero)[1](dy)
    ratio, s, z = np.asarray(x) / np.asarray(scale)[:, None], np.asarray(scale)[:, None], np.asarray(zero)[:, None]
    code = np.rint(ratio) + z
    inside = (code >= -20) & (code <= 20)
    clamped = np.clip(code, -20, 20) - z
    np.testing.assert_allclose(dx, dy * inside)
    np.testing.assert_allclose(ds, (dy * (clamped - np.where(inside, ratio, 0))).sum(1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dz, np.where(inside, 0, -dy * s).sum(1), rtol=1e-12, atol=1e-12)


@both
@pytest.mark.parametrize("x_dtype", FLOATS)
@pytest.mark.parametrize("columns", [1, 2, 24, 40, 513, 3000])
def test_dynamic_quantize(columns, x_dtype, implementation, platform):
    rng = np.random.default_rng(6)
    x = sent.asarray(rng.standard_normal((5, columns)) * 10.0 ** rng.integers(-2, 3, (5, 1)), x_dtype).at[3].set(0)
    q, scale = bj.dynamic_quantize(x, implementation=implementation)
    wide = np.asarray(x).astype(np.float64 if x_dtype == "float64" else np.float32)
    want = np.abs(wide).max(-1) / wide.dtype.type(127)
    want[3] = 1
    if implementation == "xla" and platform == "cuda":  # whose quotients may be off by their last bit
        np.testing.assert_allclose(scale, want, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(q, int), np.rint(wide / want[:, None]), atol=1)
    else:
        np.testing.assert_array_equal(scale, want)
        np.testing.assert_array_equal(q, np.rint(wide / want[:, None]))
    q, scale, zero = bj.dynamic_quantize(x, "uint8", symmetric=False, implementation=implementation)
    assert q.dtype == jnp.uint8 and zero.dtype == jnp.int32
    back = bj.dequantize_per_token(q, scale, zero, "float64", implementation=implementation)
    step = np.asarray(scale, np.float64)[:, None]
    assert (np.abs(np.asarray(back) - wide) <= step * 1.001).all()
    np.testing.assert_array_equal(np.asarray(back)[3], 0)


@both
def test_dynamic_quantize_of_rows_without_a_scale(implementation):
    x = sent.asarray([[np.inf, 1.0], [np.nan, 1.0], [0.0, -0.0]], jnp.float32)
    q, scale = bj.dynamic_quantize(x, implementation=implementation)
    np.testing.assert_array_equal(scale, [np.inf, np.nan, 1])
    np.testing.assert_array_equal(q, 0)


def test_the_platforms_kernels_run():
    x = sent.ones((4, 8))
    programs = {
        "quantize": lambda: bj.quantize_per_token(x, sent.ones(4)),
        "dequantize": lambda: bj.dequantize_per_token(sent.ones((4, 8), jnp.int8), sent.ones(4)),
        "dynamic_quantize": lambda: bj.dynamic_quantize(x),
        "quantize_backward": lambda: bj.quantize_per_token_backward(x, sent.ones(4), None, x),
    }
    for target, program in programs.items():
        assert f'custom_call_target="baracuda.{target}"' in jax.jit(program).lower().compile().as_text()


@pytest.mark.parametrize(
    "error, match, call",
    [
        (TypeError, "quantize_per_tensor: x must have one of the dtypes.*got int", lambda x: bj.quantize_per_tensor(sent.arange(3), 1.0)),
        (ValueError, "quantize_per_tensor: scale must be finite and above 0, got 0", lambda x: bj.quantize_per_tensor(x, 0.0)),
        (ValueError, "quantize_per_tensor: scale must be finite and above 0, got nan", lambda x: bj.quantize_per_tensor(x, float("nan"))),
        (ValueError, "quantize_per_tensor: zero_point must be an integer in .*got 0.5", lambda x: bj.quantize_per_tensor(x, 1.0, 0.5)),
        (ValueError, "quantize_per_tensor: zero_point must be an integer in .*got 300", lambda x: bj.quantize_per_tensor(x, 1.0, 300)),
        (TypeError, "quantize_per_tensor: zero_point must have one of the dtypes", lambda x: bj.quantize_per_tensor(x, 1.0, jnp.float32(1))),
        (ValueError, "quantize_per_tensor: qmin must be at most qmax, got 3 and 2", lambda x: bj.quantize_per_tensor(x, 1.0, qmin=3, qmax=2)),
        (ValueError, r"quantize_per_tensor: qmin and qmax must be in the range of int4", lambda x: bj.quantize_per_tensor(x, 1.0, dtype="int4", qmax=8)),
        (TypeError, "quantize_per_tensor: dtype must be one of int8.*got int32", lambda x: bj.quantize_per_tensor(x, 1.0, dtype="int32")),
        (ValueError, "quantize_per_tensor: zero_point must be None with dtype float8", lambda x: bj.quantize_per_tensor(x, 1.0, 1, "float8_e5m2")),
        (ValueError, r"quantize_per_channel: scale must have shape \(6,\), one per channel.*got \(4,\)", lambda x: bj.quantize_per_channel(x, sent.ones(4), axis=1)),
        (ValueError, r"quantize_per_channel: axis must be in \[-2, 1\].*got 2", lambda x: bj.quantize_per_channel(x, sent.ones(4), axis=2)),
        (ValueError, "quantize_per_channel: axis must be at least -2, got -3", lambda x: bj.quantize_per_channel(x, sent.ones(4), axis=-3)),
        (ValueError, "quantize_per_group: group_size must be at least 1, got 0", lambda x: bj.quantize_per_group(x, sent.ones((4, 2)), group_size=0)),
        (ValueError, "quantize_per_group: group_size must divide x's last dimension, 6, got 4", lambda x: bj.quantize_per_group(x, sent.ones((4, 2)), group_size=4)),
        (ValueError, r"quantize_per_token: zero_point must have shape \(4,\)", lambda x: bj.quantize_per_token(x, sent.ones(4), sent.ones(3, int))),
        (ValueError, r"quantize_per_token_backward: dy must have shape \(4, 6\)", lambda x: bj.quantize_per_token_backward(x, sent.ones(4), None, x[0])),
        (TypeError, "dequantize_per_tensor: q must have one of the dtypes int8.*got int", lambda x: bj.dequantize_per_tensor(sent.arange(3), 1.0)),
        (TypeError, "dequantize_per_tensor: dtype must be float32, float64.*got int8", lambda x: bj.dequantize_per_tensor(sent.ones(3, jnp.int8), 1.0, dtype="int8")),
        (TypeError, "dequantize_per_tensor: scale must be of a float dtype, got int", lambda x: bj.dequantize_per_tensor(sent.ones(3, jnp.int8), 1)),
        (ValueError, "fake_quantize: axis and group_size exclude each other", lambda x: bj.fake_quantize(x, 1.0, axis=0, group_size=2)),
        (ValueError, "fake_quantize: gradient must be one of 'straight_through', 'lsq'", lambda x: bj.fake_quantize(x, 1.0, gradient="none")),
        (ValueError, "dynamic_quantize: symmetric must be False with dtype uint8", lambda x: bj.dynamic_quantize(x, "uint8")),
        (ValueError, "dynamic_quantize: symmetric must be True with dtype float8", lambda x: bj.dynamic_quantize(x, "float8_e4m3fn", symmetric=False)),
        (ValueError, "dynamic_quantize: x must have at least one dimension", lambda x: bj.dynamic_quantize(x[0, 0])),
    ],
)  # fmt: skip
@pytest.mark.exhaustive
def test_bad_input(error, match, call):
    with pytest.raises(error, match=f"^{match}"):
        call(sent.ones((4, 6), jnp.float32))
