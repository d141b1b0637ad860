"""The ops that the library began with: what their backward functions promise, and for each weakness of the reference system's
kernels, a test that these have it not. Here LP pooling and repeat; tests/test_seeds_by_channel.py has the others, and
tests/test_torch.py compares them with PyTorch."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, loss_of, same_bits
from oracles import pool as oracle
from programs import FLOATS, is_one_call, normal, ratio, same_bits_every_time, seconds, wide

import baracuda_jax as bj
from baracuda_jax import ElementKind, MathPrecision

HALF_PRECISION = ("float16", "bfloat16")
both = pytest.mark.parametrize("implementation", ["native", "xla"])
each_float = pytest.mark.parametrize("dtype", FLOATS)
each_float_both = pytest.mark.parametrize(
    "dtype, implementation", [*itertools.product(FLOATS, ["native"]), ("float32", "xla")]
)
each_half = pytest.mark.parametrize("dtype", HALF_PRECISION)


# ---------------------------------------------------------------------------------------------------------------------
# lp_pool2d


@each_float_both
def test_lp_pool2d_backward(dtype, implementation):
    """dx[i] = sum over the windows o that hold i of dy[o] sign(x[i]) (|x[i]| / y[o])^(p - 1), of y as given."""
    x, dy = normal((2, 3, 11, 9), dtype), normal((2, 3, 5, 7), dtype, 1)
    window, strides = (3, 3), (2, 1)
    for p in (2, 2.5):
        _, y = bj.lp_pool2d(x, p, window, strides, return_residuals=True, implementation=implementation)
        dx = bj.lp_pool2d_backward(x, y, dy, p, window, strides, implementation=implementation)
        assert dx.dtype == x.dtype
        close(dx, oracle.lp_pool_gradient(2, x, dy, p, window, strides), dtype, scale=8)
        pulled = jax.vjp(lambda x, p=p: bj.lp_pool2d(x, p, window, strides, implementation=implementation), x)[1](dy)[0]
        close(pulled, dx, dtype)


def test_lp_pool2d_backward_needs_no_zeroing():
    """The kernel's result is its only output, which it takes no buffer for."""
    x, y = normal((2, 3, 9, 9)), jnp.abs(normal((2, 3, 4, 4))) + 1
    for call in ({}, {"ceil_mode": True}):
        fun = lambda x, y, dy, call=call: bj.lp_pool2d_backward(x, y, dy, 3, 3, 2, implementation="native", **call)
        is_one_call(fun, "baracuda.lp_pool_backward", x, y, y)


@each_float
def test_lp_pool2d_backward_writes_elements_that_no_window_holds(dtype):
    """conftest.py fills fresh memory with garbage."""
    x = normal((2, 3, 64, 64), dtype)
    y, pull = jax.vjp(lambda x: bj.lp_pool2d(x, 2, 2, 5, implementation="native"), x)
    (dx,) = pull(sent.ones_like(y))
    held = np.arange(64) % 5 < 2
    held = held[:, None] & held
    np.testing.assert_array_equal(wide(dx)[..., ~held], 0)
    assert (wide(dx)[..., held] != 0).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_lp_pool2d_backward_is_bitwise_stable(dtype):
    x = normal((4, 8, 40, 40), dtype)
    same_bits_every_time(jax.grad(loss_of(lambda x: bj.lp_pool2d(x, 3, 5, 1, implementation="native"))), x)


def test_lp_pool2d_backward_is_deterministic_as_its_plan_says():
    """No scatter, no atomics: each element of dx gathers from its windows."""
    x = jax.ShapeDtypeStruct((4, 8, 40, 40), jnp.float32)
    for target in ("cpu", "cuda"):
        plan = bj.plan("lp_pool2d", x, 3, 5, 1, platform=target, implementation="native").backward
        assert plan.precision.deterministic and plan.precision.bit_stable_on_same_hardware
        assert plan.targets == ("baracuda.lp_pool_backward",) and plan.workspace_bytes == 0
        assert "scatter" not in plan.lower().as_text()


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_lp_pool2d_has_no_empty_windows_under_ceil_mode(ceil_mode):
    """A last window that would begin outside the input is dropped."""
    for size in range(1, 9):
        for window in range(1, size + 1):
            for stride in range(1, 12):
                x = jax.ShapeDtypeStruct((1, 1, size, size), jnp.float32)
                fun = lambda x, k=window, s=stride: bj.lp_pool2d(x, 2, k, s, ceil_mode=ceil_mode)
                count = jax.eval_shape(fun, x).shape[-1]
                assert (count - 1) * stride < size
    assert bj.lp_pool2d(sent.ones((1, 1, 4, 4)), 2, 2, 4, ceil_mode=ceil_mode).shape == (1, 1, 1, 1)


@both
def test_lp_pool1d_takes_magnitudes(implementation):
    """The norm of odd powers is that of even ones: the sign plays no part, and comes back in the gradient."""
    x = sent.asarray([[[-3.0, -4, 3, -4, -3, 4]]])
    for p, norm in ((1, 7), (2, 5), (3, 91 ** (1 / 3)), (math.inf, 4)):
        y, pull = jax.vjp(lambda x, p=p: bj.lp_pool1d(x, p, 2, implementation=implementation), x)
        np.testing.assert_allclose(y, [[[norm] * 3]], rtol=1e-14)
        (dx,) = pull(sent.ones_like(y))
        np.testing.assert_array_equal(np.sign(dx)[dx != 0], np.sign(x)[dx != 0])


@both
def test_lp_pool1d_counts_only_elements_of_the_input_under_ceil_mode(implementation):
    """The windows that are cut off are norms of what they hold, not rescaled."""
    x = sent.asarray([[[1.0, 2, 3]]])
    y, pull = jax.vjp(lambda x: bj.lp_pool1d(x, 1, 2, ceil_mode=True, implementation=implementation), x)
    np.testing.assert_array_equal(y, [[[3, 3]]])
    np.testing.assert_array_equal(pull(sent.ones_like(y))[0], [[[1, 1, 1]]])


@pytest.mark.parametrize("p", [0.5, 1.5, 2.5, 4.5])
def test_lp_pool1d_powers_are_precise(p):
    """The error of a fast power grows with the exponent of its result."""
    magnitudes = np.random.default_rng(0).uniform(-4, 4, (1, 4, 4096))
    x = sent.asarray(10**magnitudes, jnp.float32)
    y = bj.lp_pool1d(x, p, 2, implementation="native")
    np.testing.assert_allclose(y, oracle.lp_pool(1, x, p, 2), rtol=1e-6)
    dx = bj.lp_pool1d_backward(x, y, sent.ones_like(y), p, 2, implementation="native")
    np.testing.assert_allclose(dx, (wide(x) / np.repeat(wide(y), 2, -1)) ** (p - 1), rtol=3e-6)


@each_half
def test_lp_pool2d_backward_rounds_half_precision_once(dtype):
    """Overlapping windows: the sum is rounded, not each part of it."""
    p, k = 3, 5
    x, dy = jnp.abs(normal((2, 4, 24, 24), dtype)), normal((2, 4, 20, 20), dtype, 1)
    _, y = bj.lp_pool2d(x, p, k, 1, return_residuals=True, implementation="native")
    parts = np.zeros((k * k, *x.shape))
    for i, (a, b) in enumerate(np.ndindex(k, k)):
        elements = (..., slice(a, a + 20), slice(b, b + 20))
        parts[i][elements] = wide(dy) * (wide(x)[elements] / wide(y)) ** (p - 1)
    exact = parts.sum(0)
    ulp = 2.0 ** (np.floor(np.log2(np.abs(exact) + 1e-30)) + 1) * float(jnp.finfo(dtype).eps) / 2
    ulp = np.maximum(ulp, float(jnp.finfo(dtype).smallest_subnormal))
    error = lambda dx: np.abs(wide(dx) - exact) - 1e-6 * np.abs(parts).sum(0)
    dx = bj.lp_pool2d_backward(x, y, dy, p, k, 1, implementation="native")
    assert (error(dx) <= 0.5 * ulp).all()
    one_by_one = sent.zeros_like(x)
    for part in parts:
        one_by_one = one_by_one + sent.asarray(part, dtype)
    assert (error(one_by_one) > ulp).any()  # the measure tells the two apart


# ---------------------------------------------------------------------------------------------------------------------
# repeat


@each_float_both
def test_repeat_backward(dtype, implementation):
    """dx[j] = sum of dy over the copies of j."""
    for shape, repeats in (((2, 3, 16), (1, 7, 2)), ((5,), (4, 1, 3))):
        full = (1,) * (len(repeats) - len(shape)) + shape
        dy = normal(tuple(n * r for n, r in zip(full, repeats, strict=True)), dtype)
        pairs = [n for pair in zip(repeats, full, strict=True) for n in pair]
        want = wide(dy).reshape(pairs).sum(tuple(range(0, len(pairs), 2))).reshape(shape)
        dx = bj.repeat_backward(dy, repeats, shape, implementation=implementation)
        assert dx.dtype == dy.dtype
        close(dx, want, dtype)
        x = sent.zeros(shape, dtype)
        same_bits(jax.vjp(lambda x, r=repeats: bj.repeat(x, r, implementation=implementation), x)[1](dy)[0], dx)


@pytest.mark.parametrize("repeats", [(64, 1), (1, 64), (8, 8), (3, 5)])
def test_repeat_backward_reads_each_cotangent_once(repeats):
    """One kernel call, of dy as it is; sums of integers, which are exact, have each of them once."""
    shape = (12, 40)
    dy = sent.asarray(np.random.default_rng(0).integers(-(2**40), 2**40, np.multiply(shape, repeats)), jnp.float64)
    run = lambda dy: bj.repeat_backward(dy, repeats, implementation="native")
    is_one_call(run, "baracuda.repeat_backward", dy)
    want = np.asarray(dy).reshape(repeats[0], 12, repeats[1], 40).sum((0, 2))
    np.testing.assert_array_equal(run(dy), want)


def test_repeat_backward_shares_the_copies_of_an_element():
    """Many workers add the copies of one element, where there are few elements; one each, where there are many."""
    dy = jax.ShapeDtypeStruct((2**22,), jnp.float32)
    partial_sums = lambda repeats: (
        bj.plan("repeat_backward", dy, repeats, platform="cuda", implementation="native").workspace_bytes
    )
    assert partial_sums(2**22) > 4 * 64 and partial_sums(2) == 0


def test_repeat_backward_takes_as_long_for_one_element_as_for_many():
    """A worker for each element would walk all copies alone where there is one element, and stride through memory else."""
    size = 2**20
    run = lambda repeats: lambda dy: bj.repeat_backward(dy, repeats, implementation="native")
    flat = sent.ones(size, jnp.float32)

    def measure():
        times = [seconds(run(copies), flat) for copies in (size, 2**10, 2)]
        times += [seconds(run((copies, 1)), flat.reshape(copies, -1)) for copies in (2**10, 2)]
        return max(times) / min(times)

    assert ratio(measure, 30) < 30


@both
@each_half
@pytest.mark.parametrize(
    "shape, repeats", [((1,), 4096), ((3, 5), (64, 64)), ((4, 600), (4096, 1)), ((2, 1), (64, 64))]
)
def test_repeat_backward_accumulates_half_precision_in_float32(shape, repeats, dtype, implementation):
    """4096 ones: a narrow accumulator stops growing."""
    dy = sent.ones(np.tile(np.ones(shape), repeats).shape, dtype)
    np.testing.assert_array_equal(
        bj.repeat_backward(dy, repeats, implementation=implementation).astype(jnp.float32), 4096
    )


@both
@pytest.mark.parametrize("copies", [3, 300, 70_000])
def test_repeat_backward_accumulates_float64_in_float64(copies, implementation):
    """float32 would lose the small part."""
    dy = sent.zeros(copies).at[0].set(1.0).at[1].set(2.0**-40).at[-1].set(-1.0)
    np.testing.assert_array_equal(bj.repeat_backward(dy, copies, implementation=implementation), [2.0**-40])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("copies, elements", [(100_003, 3), (300, 5000), (2, 100_000)])
def test_repeat_backward_is_bitwise_stable(copies, elements, dtype):
    dy = normal((copies, elements) if copies < 1000 else (copies * elements,), dtype)
    repeats = (copies, 1) if dy.ndim == 2 else copies
    same_bits_every_time(lambda dy: bj.repeat_backward(dy, repeats, implementation="native"), dy)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("backend", ["native", "xla"])
def test_repeat_reports_what_it_does(backend, target):
    """Bit-stable, and an accumulator of float64 for float64."""
    for dtype in FLOATS:
        plan = bj.plan("repeat", jax.ShapeDtypeStruct((3, 4), dtype), (2, 5), platform=target, implementation=backend)
        for p in (plan, plan.backward):
            is_wide = dtype == "float64"
            assert p.precision.accumulator == (ElementKind.F64 if is_wide else ElementKind.F32)
            assert p.precision.math_precision == (MathPrecision.F64 if is_wide else MathPrecision.F32)
            if backend == "native":
                assert p.precision.deterministic and p.precision.bit_stable_on_same_hardware
            assert p.sku.element == dtype and p.sku.precision == p.precision
        assert plan.backward.sku.op == "repeat_backward"


@both
def test_repeat_of_more_repeats_than_axes_adds_leading_axes(implementation):
    x = normal((3, 4))
    y, pull = jax.vjp(lambda x: bj.repeat(x, (2, 5, 1, 3), implementation=implementation), x)
    assert y.shape == (2, 5, 3, 12)
    np.testing.assert_array_equal(y, np.broadcast_to(np.tile(x, (1, 3)), y.shape))
    np.testing.assert_array_equal(pull(sent.ones_like(y))[0], np.full((3, 4), 30))
