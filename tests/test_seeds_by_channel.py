"""The ops that the library began with, as in tests/test_seeds.py: lerp, the maximum of segments in any order, and
dequantization with a scale for each channel."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from jax.experimental.layout import Format, Layout
from programs import FLOATS, normal, ratio, same_bits_every_time, seconds, wide

import baracuda_jax as bj

FAMILY = "quantize"

both = pytest.mark.parametrize("implementation", ["native", "xla"])
each_float = pytest.mark.parametrize("dtype", FLOATS)
each_float_both = pytest.mark.parametrize(
    "dtype, implementation", [*itertools.product(FLOATS, ["native"]), ("float32", "xla")]
)


# ---------------------------------------------------------------------------------------------------------------------
# lerp


@each_float_both
@pytest.mark.parametrize("shape", [(), (6,)])
def test_binary_param_backward(shape, dtype, implementation):
    """dstart = (1 - w) dy, dend = w dy, and dw = (end - start) dy, summed where w broadcasts."""
    start, end, dy = (normal((4, 6), dtype, seed) for seed in range(3))
    weight = sent.asarray(np.random.default_rng(3).uniform(-0.5, 1.5, shape), dtype)
    cotangents = bj.lerp_backward(start, end, weight, dy, implementation=implementation)
    a, b, w, ct = map(wide, (start, end, weight, dy))
    along = tuple(range(2 - len(shape)))
    for got, want in zip(cotangents, ((1 - w) * ct, w * ct, ((b - a) * ct).sum(along)), strict=True):
        assert got.dtype == jnp.dtype(dtype)
        close(got, want, dtype, scale=2)
    pull = jax.vjp(lambda *args: bj.lerp(*args, implementation=implementation), start, end, weight)[1]
    for got, again in zip(pull(dy), cotangents, strict=True):
        same_bits(got, again)


@both
def test_lerp_weight_of_float64_is_not_rounded_to_float32(implementation):
    start, end = sent.zeros(3), sent.ones(3)
    for weight in (0.1, 1 / 3, 2.0**-40 + 0.75):
        np.testing.assert_array_equal(bj.lerp(start, end, weight, implementation=implementation), weight)
        np.testing.assert_array_equal(bj.lerp(start, end, sent.asarray(weight), implementation=implementation), weight)
        np.testing.assert_array_equal(bj.lerp(start, end, sent.full(3, weight), implementation=implementation), weight)
        dend = jax.jit(jax.grad(lambda end, w=weight: bj.lerp(start, end, w, implementation=implementation).sum()))(end)
        np.testing.assert_array_equal(dend, weight)


@both
def test_lerp_weight_has_a_gradient_of_its_own(implementation):
    """Summed over what shares a weight; also of a weight that is a number."""
    start, end = normal((5, 3)), normal((5, 3), seed=1)
    for weight, along in ((0.3, (0, 1)), (sent.full(3, 0.3), 0), (sent.full((5, 1), 0.7), 1)):
        dw = jax.jit(jax.grad(lambda w: bj.lerp(start, end, w, implementation=implementation).sum()))(weight)
        assert jnp.shape(dw) == jnp.shape(weight)
        np.testing.assert_allclose(np.squeeze(dw), (end - start).sum(along), rtol=1e-12)


@both
def test_lerp_takes_arrays_in_any_layout(implementation):
    """Transposed views, and arrays that are stored column by column, have the results of rows."""
    start, end, dy = (normal((6, 4), seed=seed) for seed in range(3))
    weight = normal((4,), seed=3)
    run = lambda *args: jax.vjp(lambda *a: bj.lerp(*a, implementation=implementation), *args[:3])[1](args[3])
    want = run(start, end, weight, dy)
    turned = jax.jit(lambda a, b, w, ct: run(a.T, b, w, ct.T))(start.T, end, weight, dy.T)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    columns = Format(Layout(major_to_minor=(1, 0)), device)
    start_by_columns = jax.device_put(start, columns)
    assert start_by_columns.format.layout.major_to_minor == (1, 0)
    formats = (columns, None, None, columns)
    stored = jax.jit(run, in_shardings=formats)(start_by_columns, end, weight, jax.device_put(dy, columns))
    for got in (turned, stored):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


# ---------------------------------------------------------------------------------------------------------------------
# segment_max of ids in any order


def _ties(dtype, rows=900, columns=3, num_segments=7):
    """Few values among many rows."""
    rng = np.random.default_rng(0)
    data = sent.asarray(rng.integers(-3, 4, (rows, columns)), dtype)
    return data, sent.asarray(rng.integers(0, num_segments, rows)), num_segments


@each_float_both
def test_unsorted_segment_max_backward(dtype, implementation):
    """dx[n] = dy[s] where n = arg[s], else 0."""
    data, ids, num_segments = _ties(dtype)
    dy = normal((num_segments, 3), dtype)
    _, arg = bj.segment_max(data, ids, num_segments, return_residuals=True, implementation=implementation)
    want = np.zeros(data.shape)
    np.put_along_axis(want, np.asarray(arg), wide(dy), 0)
    dx = bj.segment_max_backward(ids, arg, dy, implementation=implementation)
    np.testing.assert_array_equal(wide(dx), want)
    same_bits(
        jax.vjp(lambda x: bj.segment_max(x, ids, num_segments, implementation=implementation), data)[1](dy)[0], dx
    )


@each_float_both
def test_unsorted_segment_max_agrees_with_its_gradient_on_ties(dtype, implementation):
    """The whole gradient goes to one row, which has the value, is in the segment, and is the first such."""
    data, ids, num_segments = _ties(dtype)
    y, pull = jax.vjp(lambda x: bj.segment_max(x, ids, num_segments, implementation=implementation), data)
    (dx,) = pull(sent.ones_like(y))
    data, ids, y, dx = wide(data), np.asarray(ids), wide(y), wide(dx)
    for s in range(num_segments):
        rows = np.flatnonzero(ids == s)
        has_value = data[rows] == y[s]
        assert (has_value.sum(0) > 1).all()  # there are ties
        np.testing.assert_array_equal(dx[rows].argmax(0), has_value.argmax(0))
        np.testing.assert_array_equal(dx[rows].sum(0), 1)
    assert ((dx == 0) | (dx == 1)).all()


def test_unsorted_segment_max_backward_does_not_look_at_data():
    """It could not scan rows for their maximum: it has `arg`."""
    data, ids, num_segments = _ties("float32")
    for target in ("cpu", "cuda"):
        plan = bj.plan("segment_max", data, ids, num_segments, platform=target, implementation="native").backward
        assert [name for name, _ in plan.inputs] == ["segment_ids", "arg", "dy"]


def test_unsorted_segment_max_backward_is_linear_in_rows():
    """8 times the rows take about 8 times as long, 64 if each row looked at every other."""
    rng = np.random.default_rng(0)
    grad = jax.grad(lambda x, ids: bj.segment_max(x, ids, 64, implementation="native").sum())
    run = lambda rows: seconds(grad, sent.ones((rows, 4), jnp.float32), sent.asarray(rng.integers(0, 64, rows)))
    assert ratio(lambda: run(2**19) / run(2**16), 32) < 32


@each_float_both
def test_unsorted_segment_max_of_an_empty_segment_is_minus_infinity(dtype, implementation):
    """As jax.ops has it, and as with sorted ids; not the smallest finite number."""
    data, ids = sent.ones((3, 2), dtype), sent.asarray([2, 0, 2])
    y = bj.segment_max(data, ids, 4, implementation=implementation)
    np.testing.assert_array_equal(wide(y), [[1] * 2, [-np.inf] * 2, [1] * 2, [-np.inf] * 2])
    same_bits(y, jax.ops.segment_max(data, ids, 4))
    same_bits(y, bj.segment_max(data, jnp.sort(ids), 4, indices_are_sorted=True, implementation=implementation))
    grad = jax.jit(
        jax.grad(lambda x: bj.segment_max(x, ids, 4, implementation=implementation).astype(jnp.float32).sum())
    )(data)
    np.testing.assert_array_equal(wide(grad), [[1] * 2, [1] * 2, [0] * 2])


@each_float_both
def test_unsorted_segment_max_propagates_nan_in_any_order(dtype, implementation):
    rng = np.random.default_rng(0)
    values, ids = np.array([[np.nan], [np.inf], [5], [-np.inf], [7], [np.nan]]), np.array([0, 0, 0, 1, 1, 2])
    call = jax.jit(lambda x, i: bj.segment_max(x, i, 3, implementation=implementation))
    for _ in range(30):
        order = rng.permutation(6)
        y = call(sent.asarray(values[order], dtype), sent.asarray(ids[order]))
        np.testing.assert_array_equal(wide(y), [[np.nan], [7], [np.nan]])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_unsorted_segment_max_is_bitwise_stable(dtype):
    """Also in the sign of a zero, and in which row wins: that of the first of the equal rows."""
    rng = np.random.default_rng(0)
    data = sent.asarray(rng.choice([0.0, -0.0], (20_000, 3)), dtype)
    ids = sent.asarray(rng.integers(0, 5, 20_000))
    run = lambda x, ids: bj.segment_max(x, ids, 5, return_residuals=True, implementation="native")
    for i in (0, 1):
        same_bits_every_time(lambda x, ids, i=i: run(x, ids)[i], data, ids)
    y, arg = run(data, ids)
    np.testing.assert_array_equal(arg, [[np.flatnonzero(np.asarray(ids) == s)[0]] * 3 for s in range(5)])
    np.testing.assert_array_equal(np.signbit(wide(y)), np.signbit(np.take_along_axis(wide(data), np.asarray(arg), 0)))


# ---------------------------------------------------------------------------------------------------------------------
# dequantize_per_channel


def _quantized(shape, axis, scale_dtype="float32"):
    rng = np.random.default_rng(4)
    n = shape[axis]
    expanded = np.ones(len(shape), int)
    expanded[axis] = n
    return (
        sent.asarray(rng.integers(-128, 128, shape), jnp.int8),
        sent.asarray(rng.uniform(0.01, 1, n), scale_dtype),
        sent.asarray(rng.integers(-9, 9, n)),
        lambda s: np.asarray(s).reshape(expanded),
    )


SHAPE = (3, 2, 4, 1, 2, 5)
each_rank = pytest.mark.parametrize("rank", range(1, 7))


@both
@each_rank
def test_dequantize_per_channel_backward(rank, implementation):
    """dq = dy * scale, a float where q is integers; dscale = sum of dy * (q - zero_point)."""
    for axis in {0, rank // 2, rank - 1}:
        shape = SHAPE[:rank]
        q, scale, zero, expanded = _quantized(shape, axis)
        dy = normal(shape, "float32")
        dq, ds = bj.dequantize_per_channel_backward(q, scale, zero, dy, axis, implementation=implementation)
        assert dq.dtype == dy.dtype
        np.testing.assert_array_equal(dq, np.asarray(dy) * expanded(scale))
        terms = wide(dy) * (wide(q) - expanded(zero))
        close(ds, terms.sum(tuple(i for i in range(rank) if i != axis)), "float32", scale=4)


@both
@each_rank
def test_dequantize_per_channel_takes_any_rank_and_axis(rank, implementation):
    """There and back: quantizing gives q again. Axes count from the end too."""
    for axis in {0, rank // 2, rank - 1}:
        q, scale, zero, expanded = _quantized(SHAPE[:rank], axis)
        y = bj.dequantize_per_channel(q, scale, zero, axis, implementation=implementation)
        np.testing.assert_array_equal(
            y, (np.asarray(q, np.float32) - expanded(zero).astype(np.float32)) * expanded(scale)
        )
        same_bits(bj.dequantize_per_channel(q, scale, zero, axis - rank, implementation=implementation), y)
        same_bits(bj.quantize_per_channel(y, scale, zero, axis, implementation=implementation), q)


@both
def test_dequantize_per_channel_scale_has_a_gradient(implementation):
    q, scale, zero, expanded = _quantized((3, 4, 5), 1, "float64")
    dy = normal((3, 4, 5))
    call = lambda s: jnp.vdot(bj.dequantize_per_channel(q, s, zero, 1, "float64", implementation=implementation), dy)
    np.testing.assert_allclose(
        jax.jit(jax.grad(call))(scale), (dy * (wide(q) - expanded(zero))).sum((0, 2)), rtol=1e-12
    )


@each_float_both
def test_dequantize_per_channel_values_that_are_floats_have_a_gradient(dtype, implementation):
    """JAX's own, where integers have none; the backward function gives the same for integers."""
    q, scale, zero, expanded = _quantized((3, 4, 5), -2)
    dy = normal((3, 4, 5), dtype)
    call = lambda q: bj.dequantize_per_channel(q, scale, zero, -2, dtype, implementation=implementation)
    (dq,) = jax.vjp(call, q.astype(dtype))[1](dy)
    assert dq.dtype == jnp.dtype(dtype)
    close(dq, wide(dy) * expanded(scale), dtype)
    same_bits(bj.dequantize_per_channel_backward(q, scale, zero, dy, -2, implementation=implementation)[0], dq)
    assert jax.vjp(call, q)[1](dy)[0].dtype == jax.dtypes.float0
