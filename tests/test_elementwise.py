"""Elementwise ops: what the laws do not say. Values and gradients are PyTorch's in every dtype, at edges and in every layout."""

import functools
import itertools

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
import sharded
from by_torch import torch
from examples_of import TOLERANCE, close, same_bits
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import baracuda_jax as bj

F = torch.nn.functional

FLOATS = ("float64", "float32", "float16", "bfloat16")
BACKENDS = ("native", "xla")

# name: (the op's arguments, PyTorch's function of x)
UNARY = {
    "leaky_relu": ((0.2,), lambda x: F.leaky_relu(x, 0.2)),
    "elu": ((1.5,), lambda x: F.elu(x, 1.5)),
    "threshold": ((0.5, -3.0), lambda x: F.threshold(x, 0.5, -3.0)),
    "hardtanh": ((-0.5, 2.0), lambda x: F.hardtanh(x, -0.5, 2.0)),
    "softshrink": ((0.5,), lambda x: F.softshrink(x, 0.5)),
    "hardshrink": ((0.5,), lambda x: F.hardshrink(x, 0.5)),
    "affine": ((-2.0, 0.5), lambda x: -2.0 * x.to(_wide(x)) + 0.5),
    "clamp": ((-0.5, 2.0), lambda x: torch.clamp(x, -0.5, 2.0)),
    "clamp min": ((0.5,), lambda x: torch.clamp(x, min=0.5)),
    "clamp max": ((None, 0.5), lambda x: torch.clamp(x, max=0.5)),
    "clamp crossed": ((2.0, -0.5), lambda x: torch.clamp(x, 2.0, -0.5)),
} | {
    f"integer_pow {n}": ((n,), functools.partial(lambda n, x: x.to(_wide(x)) ** n, n)) for n in (0, 1, 2, 3, 5, -1, -2)
}

# NaN, infinities, zeros, and each kink with its neighbors.
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 2.0, -2.0, 1.0, -1.0, 0.499, 0.501, 1e-3, 100.0, -100.0]


def _wide(x):
    return torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype


def _equal(got, want, dtype):
    got = np.asarray(got, np.float64)
    np.testing.assert_allclose(got, want, rtol=2 * TOLERANCE[dtype], atol=2 * TOLERANCE[dtype])


def _x(dtype, size=61):
    rng = np.random.default_rng(size)
    return sent.asarray(np.concatenate([EDGES, rng.uniform(-3, 3, size)]), dtype)


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_unary_ops_are_torchs(name, dtype, implementation):
    params, theirs = UNARY[name]
    op, back = (getattr(bj, name.split()[0] + end) for end in ("", "_backward"))
    x = _x(dtype)
    if name.startswith("integer_pow"):
        x = jnp.where(jnp.abs(x) < 0.1, 0, x)  # no overflow, which rounds differently
    dy = sent.asarray(np.random.default_rng(1).uniform(0.5, 2, x.shape), dtype)
    assert np.isnan(x[0])
    want, (gradient,) = by_torch.vjp(theirs, [x], dy)
    y, pull = jax.vjp(lambda x: op(x, *params, implementation=implementation), x)
    (dx,) = pull(dy)
    assert y.dtype == dx.dtype == x.dtype
    _equal(y, want, dtype)
    _equal(dx[1:], gradient[1:], dtype)  # at NaN, PyTorch's CPU and CUDA kernels differ
    rest = params[:1] if name in ("threshold", "affine") else params
    same_bits(back(x, dy, *rest, implementation=implementation), dx)


def _lerp(dtype, shapes):
    rng = np.random.default_rng(0)
    args = [sent.asarray(rng.uniform(-2, 2, s), dtype) for s in shapes[:2]]
    args.append(sent.asarray(rng.uniform(-0.5, 1.5, shapes[2]), dtype))
    full = np.broadcast_shapes(*shapes)
    return args, sent.asarray(rng.uniform(-1, 1, full), dtype)


LAYOUTS = [
    ((4, 6), (4, 6), ()),
    ((4, 6), (4, 6), (6,)),
    ((4, 6), (4, 6), (4, 1)),
    ((4, 1), (1, 6), (1, 1)),
    ((2, 1, 5), (3, 1), (2, 3, 5)),
    ((3, 4, 16), (4, 16), (3, 1, 16)),
    ((7,), (), ()),
    ((), (), ()),
    ((), (3, 17), (17,)),
    ((2, 1, 3, 1, 2, 1, 3, 1), (1, 2, 1, 3, 1, 2, 1, 3), (1,) * 8),
    ((2, 0, 3), (1, 3), ()),
    ((1, 1), (1, 1), (2, 2)),
]


@pytest.mark.parametrize("implementation", BACKENDS)
def test_derivatives_of_a_length_where_both_parts_are_as_large(implementation):
    """The third and fourth, in closed form; `jnp.hypot` is made of a maximum, whose ties its derivatives show."""
    r, nth = np.sqrt(2), lambda fun, n: jax.jit(functools.reduce(lambda f, _: jax.grad(f), range(n), fun))
    for name, args, third, fourth in (
        ("hypot", (1.0,), -3 * r / 8, 9 * r / 16),
        ("atan2", (1.0,), 0.5, 0.0),
        ("asinh", (), r / 8, 3 * r / 16),
    ):
        fun = lambda x, name=name, args=args: getattr(bj, name)(x, *args, implementation=implementation)
        close([nth(fun, 3)(1.0), nth(fun, 4)(1.0)], [third, fourth], "float64")


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_lerp_broadcasts_in_every_layout(layout, implementation):
    args, dy = _lerp("float64", layout)
    want, gradients = by_torch.vjp(torch.lerp, args, dy)
    y, pull = jax.vjp(functools.partial(bj.lerp, implementation=implementation), *args)
    close(y, want, "float64")
    for got, again, gradient in zip(
        pull(dy), bj.lerp_backward(*args, dy, implementation=implementation), gradients, strict=True
    ):
        close(got, gradient, "float64")
        np.testing.assert_array_equal(again, got)


def test_lerp_broadcasts_in_every_way():
    """Each operand along each of two dimensions or not."""
    shapes = [(3, 5), (1, 5), (3, 1), (1, 1)]
    ways = [_lerp("float32", three)[0] for three in itertools.product(shapes, repeat=3)]
    results = jax.jit(lambda ways: [bj.lerp(*args, implementation="native") for args in ways])(ways)
    for args, y in zip(ways, results, strict=True):
        start, end, weight = (np.asarray(a, np.float64) for a in args)
        close(y, start + weight * (end - start), "float32")


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_number_as_weight_is_exact_and_changes_no_dtype(dtype, implementation):
    """0.999 is 1 in bfloat16."""
    start, end = sent.zeros(5, dtype), sent.full(5, 64.0, dtype)
    y = bj.lerp(start, end, 0.999, implementation=implementation)
    assert y.dtype == jnp.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(y, np.float64), np.float64(sent.asarray(0.999 * 64, dtype)))
    weight = jnp.float32(0.999) if jnp.dtype(dtype).itemsize == 2 else sent.asarray(0.999, dtype)
    np.testing.assert_array_equal(bj.lerp(start, end, weight, implementation=implementation), y)
    dweight = jax.jit(jax.grad(lambda w: bj.lerp(start, end, w, implementation=implementation).sum().astype(w.dtype)))(
        weight
    )
    assert dweight.dtype == weight.dtype
    assert dweight == 320


def test_lerp_ends_are_exact_and_nan_propagates():
    start, end = sent.asarray([1e30, 1.0, jnp.nan, 1.0]), sent.asarray([1.0, 1e-30, 1.0, 1.0])
    for implementation in BACKENDS:
        np.testing.assert_array_equal(bj.lerp(start, end, 0.0, implementation=implementation)[:2], start[:2])
        np.testing.assert_array_equal(bj.lerp(start, end, 1.0, implementation=implementation)[:2], end[:2])
        y = bj.lerp(start, end, sent.asarray([0.5, 0.5, 0.5, jnp.nan]), implementation=implementation)
        np.testing.assert_array_equal(jnp.isnan(y), [False, False, True, True])


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape, weights",
    [((4, 3, 5), 3), ((4, 3, 5), 1), ((4, 16), 16), ((7,), 1), ((), 1), ((2, 3, 4, 5), 3), ((0, 3), 3), ((2, 3, 1, 2, 1, 2, 1, 2), 3)],
    ids=str,
)  # fmt: skip
def test_prelu_is_torchs(shape, weights, dtype, implementation):
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, shape)
    if x.size > 8:
        x.flat[:3] = [0.0, -0.0, np.inf]
    x, weight, dy = (sent.asarray(a, dtype) for a in (x, rng.uniform(0.1, 1, weights), rng.uniform(-1, 1, shape)))
    want, gradients = by_torch.vjp(F.prelu, [x, weight], dy)
    y, pull = jax.vjp(functools.partial(bj.prelu, implementation=implementation), x, weight)
    close(y, want, dtype, scale=2)
    for got, again, gradient in zip(
        pull(dy), bj.prelu_backward(x, weight, dy, implementation=implementation), gradients, strict=True
    ):
        close(got, gradient, dtype, scale=2)
        np.testing.assert_array_equal(again, got)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_clamp_of_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.min + 1, 0, 1, 3, 5, info.max - 1, info.max], dtype)
    for low, high in ((1, 4), (None, info.max - 1), (info.min + 1, None), (info.min, info.max), (None, None), (4, 1)):
        want = [v for v in x.tolist()]
        want = want if low is None else [max(v, low) for v in want]
        want = np.array(want if high is None else [min(v, high) for v in want], dtype)
        for implementation in BACKENDS:
            y = bj.clamp(sent.asarray(x), low, high, implementation=implementation)
            assert y.dtype == jnp.dtype(dtype)
            np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(bj.clamp(sent.asarray(x), -(10**30), 10**30), x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_rank_and_size(dtype):
    """Sizes around a vector and around a task; arrays without elements."""
    shapes = [(), *((n,) for n in (0, 1, 3, 9, 15, 31, 33, 65, 16385, 70001))]
    shapes += [*((2,) * rank for rank in range(2, 9)), (3, 0, 2), (1,) * 8, (5, 1, 3)]
    xs = [np.random.default_rng(3).uniform(-2, 2, shape) for shape in shapes]
    xs = [np.asarray(x).astype(jnp.dtype(dtype)) for x in xs]
    ys = jax.jit(lambda xs: [bj.hardshrink(x, 0.75, implementation="native") for x in xs])(xs)
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_array_equal(np.asarray(y), np.where(np.abs(x) <= 0.75, np.zeros_like(x), x))


def test_powers_are_exact():
    x = sent.asarray([-3.0, -1.0, 2.0, 3.0])
    for implementation in BACKENDS:
        np.testing.assert_array_equal(
            bj.integer_pow(x, 11, implementation=implementation), np.array([-177147, -1, 2048, 177147])
        )
        np.testing.assert_array_equal(bj.integer_pow(x, 0, implementation=implementation), np.ones(4))
        np.testing.assert_array_equal(bj.integer_pow(x[1:3], 2**31 - 1, implementation=implementation), [-1, np.inf])
        np.testing.assert_array_equal(bj.integer_pow(x[1:3], -3, implementation=implementation), [-1, 0.125])


def test_mixed_ranks_under_vmap():
    """An operand that is mapped, with others that are not and broadcast."""
    rng = np.random.default_rng(4)
    start, end, weight = (sent.asarray(rng.uniform(0, 1, s)) for s in ((5, 3, 4), (3, 4), (5, 4)))
    grad = jax.grad(lambda *a: jnp.sum(jnp.sin(bj.lerp(*a, implementation="native"))), (0, 1, 2))
    got = jax.vmap(grad, (0, None, 0))(start, end, weight)
    for i, parts in enumerate(zip(*(grad(s, end, w) for s, w in zip(start, weight, strict=True)), strict=True)):
        close(got[i], jnp.stack(parts), "float64")


@pytest.mark.parametrize("kind", ["auto", "explicit"])
def test_a_shared_weight_needs_no_communication(kind):
    """Sharded along the leading dimension, with operands that broadcast along it."""
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(-1, 1, (16, 3, 5)).astype(np.float32) for _ in range(2))
    at = sharded.mesh(kind)
    put = lambda a, *spec: jax.device_put(a, NamedSharding(at, P(*spec)))
    with jax.set_mesh(at):
        for weight in (
            np.float32(0.3),
            rng.uniform(0, 1, (5,)).astype(np.float32),
            rng.uniform(0, 1, (3, 1)).astype(np.float32),
        ):
            fun = jax.jit(lambda x, y, w: bj.lerp(x, y, w, implementation="native"))
            args = put(x, "d"), put(y, "d"), put(weight)
            assert not sharded.collectives(fun.lower(*args).compile().as_text())
            close(fun(*args), x + weight * (y - x), "float32")
        channels = put(np.array([0.1, 0.2, 0.3], np.float32))
        fun = jax.jit(lambda x, w: bj.prelu(x, w, implementation="native"))
        assert not sharded.collectives(fun.lower(put(x, "d"), channels).compile().as_text())
        want = np.where(x > 0, x, x * np.array([0.1, 0.2, 0.3], np.float32)[:, None])
        close(fun(put(x, "d"), channels), want, "float32")
        close(fun(put(x, None, None, None), channels), want, "float32")


@pytest.mark.parametrize("implementation", BACKENDS)
def test_clamp_takes_numbers_arrays_and_none(implementation):
    x, low, high = sent.asarray([[-2.0, 0.5, 3.0]]), sent.asarray([[-1.0], [0.7]]), np.float32([0.0, 1.0, 2.0])
    clamp = functools.partial(bj.clamp, implementation=implementation)
    for bounds in ((low, high), (low, None), (None, high), (low, 1.0), (-1, high), (0.5, 1)):
        np.testing.assert_array_equal(clamp(x, *bounds), np.clip(x, *bounds))
    dy = sent.arange(6.0).reshape(2, 3)
    _, pull = jax.vjp(clamp, x, low, high)
    for got, want in zip(bj.clamp_backward(x, dy, low, high, implementation=implementation), pull(dy), strict=True):
        np.testing.assert_array_equal(got, want)
    dx, dlow, dhigh = bj.clamp_backward(x, dy, min=low, implementation=implementation)
    assert dhigh is None and dx.shape == x.shape and dlow.shape == low.shape
    integers = sent.arange(-3, 4, dtype=jnp.int8)
    for bounds in ((None, integers[::-1]), (integers * 2, None), (jnp.int8(-1), jnp.int8(2)), (-1, integers + 4)):
        got = clamp(integers, *bounds)
        assert got.dtype == jnp.int8
        np.testing.assert_array_equal(got, np.clip(integers, *bounds))
    wide = clamp(integers, jnp.float32(200.5))  # None is no bound, also where the dtype grows
    np.testing.assert_array_equal(wide, np.full(7, 200.5, np.float32))


@pytest.mark.parametrize("implementation", BACKENDS)
def test_gelu_approximately_is_gelu_tanh(implementation):
    x, dy = sent.linspace(-3, 3, 7), sent.ones(7)
    k = dict(implementation=implementation)
    np.testing.assert_array_equal(bj.gelu(x, True, **k), bj.gelu_tanh(x, **k))
    np.testing.assert_array_equal(bj.gelu_backward(x, dy, approximate=True, **k), bj.gelu_tanh_backward(x, dy, **k))
    assert (bj.gelu(x, approximate=False, **k) != bj.gelu_tanh(x, **k)).any()
    x = sent.linspace(-3, 3, 8)
    np.testing.assert_array_equal(bj.geglu(x, 0, True, **k), bj.geglu_tanh(x, 0, **k))
    dy = sent.ones(4)
    np.testing.assert_array_equal(bj.geglu_backward(x, dy, approximate=True, **k), bj.geglu_tanh_backward(x, dy, **k))
    for op in (bj.gelu, bj.geglu):
        with pytest.raises(TypeError, match=f"^{op.__name__}: approximate must be True or False, got 'tanh'"):
            op(x, approximate="tanh")
