"""Elementwise ops that are lines of tables, compared with the functions of PyTorch and NumPy that their lines name: at NaN, infinities,
signed zeros, ties and kinks, in every dtype, forward and backward."""

import functools
import itertools
import warnings

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import TOLERANCE
from oracles import elementwise as oracle

import baracuda_jax as bj
from baracuda_jax.elementwise._made import MADE

FAMILY = "elementwise"

FLOATS = ("float64", "float32", "float16", "bfloat16")
BACKENDS = ("native", "xla")
EDGES = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.0,
    -1.0,
    1.5,
    2.5,
    -2.5,
    3.0,
    -3.0,
    6.0,
    100.0,
    -100.0,
    1e-3,
    1e4,
]
FEW = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 1e-3, 1e4]

# op: where PyTorch's CPU differs on purpose or by mistake, at least one argument being there
ELSEWHERE = {
    "sign": np.isnan,  # 0 there
    "frac": np.isinf,  # NaN here too, but 0 with a sign in its vectorized kernels
    "floor_divide": lambda x: np.isnan(x) | np.isinf(x),  # PyTorch's NaN of what is infinite
    "copysign": np.isnan,  # whose sign PyTorch's bfloat16 does not keep
    "heaviside": np.isnan,  # 0 there
    "tan": lambda x: np.abs(x) >= 1e4,
    "silu": lambda x: np.abs(x) == np.inf,  # NaN at -inf there, whose limit is 0
    "mish": lambda x: np.abs(x) == np.inf,
    "gelu": lambda x: np.abs(x) == np.inf,
    "gelu_tanh": lambda x: np.abs(x) == np.inf,
    "hardswish": lambda x: np.abs(x) == np.inf,
    "softsign": np.isinf,
    "digamma": lambda x: (x <= 0) & (x == np.round(x)),
    "nextafter": lambda x: np.abs(x) < 1e-30,  # XLA's CPU threads have no subnormal numbers
}
# The gradient too, besides.
GRADIENT_ELSEWHERE = {
    "rsqrt": lambda x: x == 0,  # of -0
    "acosh": lambda x: x < 1,  # a number there
    "mod": lambda x: ~np.isfinite(x) | (x == 0),
    "sqrt": lambda x: x <= 0,  # no cotangent is nothing here
    "lgamma": lambda x: (x <= 0) & (x == np.round(x)),
    "hypot": lambda x: ~np.isfinite(x) | (x == 0),
    "atan2": lambda x: ~np.isfinite(x) | (x == 0),
    "pow": lambda x: ~np.isfinite(x) | (x <= 0),
    "maximum": np.isnan,
    "minimum": np.isnan,
}
# PyTorch's is less exact: a sixth of float32.
ROUGH = {"hardsigmoid": 1e5}


def _named(package, arrays, derivative=None):
    return [
        name
        for name, line in MADE.items()
        if line.arrays == arrays
        and line.theirs(package)
        and "float32" in line.dtypes
        and derivative in (None, line.has_derivative)
    ]


def _inside(name, arrays, table):
    """Where no argument is where others differ."""
    outside = table.get(name, lambda x: np.zeros(x.shape, bool))
    keep = np.ones(arrays[0].shape, bool)
    for x in arrays:
        with np.errstate(invalid="ignore"):
            keep &= ~outside(np.asarray(x, np.float64))
    return keep


def _arrays(name, dtype):
    """Edges, or all pairs of them, and random numbers from where the op is of interest."""
    line, rng = MADE[name], np.random.default_rng(5)
    edges = [np.array(EDGES)] if line.arrays == 1 else list(np.array(list(itertools.product(FEW, FEW))).T)
    drawn = [rng.uniform(*at, 200) for at in line.at]
    return [sent.asarray(np.concatenate(pair), dtype) for pair in zip(edges, drawn, strict=True)]


def _close(got, want, dtype, keep, scale=2.0):
    got, want = np.asarray(got, np.float64)[keep], np.asarray(want, np.float64)[keep]
    np.testing.assert_allclose(got, want, rtol=scale * TOLERANCE[dtype], atol=scale * TOLERANCE[dtype])


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*_named("torch", 1), *_named("torch", 2)])
def test_values_are_torchs(name, dtype, implementation):
    arrays, line = _arrays(name, dtype), MADE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = by_torch.numbers(line.call_theirs(torch, *map(by_torch.tensor, arrays)))
    y = getattr(bj, name)(*arrays, implementation=implementation)
    _close(y, want, dtype, _inside(name, arrays, ELSEWHERE))


# PyTorch has no gradient of both, or another where two are equal; trigamma is compared with mpmath.
WITHOUT = ("floor_divide", "nextafter", "copysign", "heaviside", "fmod", "fmax", "fmin", "digamma")


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name", [n for n in [*_named("torch", 1, True), *_named("torch", 2, True)] if n not in WITHOUT]
)
def test_gradients_are_torchs(name, dtype, implementation):
    arrays, line = _arrays(name, dtype), MADE[name]
    dy = sent.asarray(np.random.default_rng(1).uniform(0.5, 2, arrays[0].shape), dtype)
    _, gradients = by_torch.vjp(lambda *a: line.call_theirs(torch, *a), arrays, dy)
    keep = _inside(name, arrays, ELSEWHERE) & _inside(name, arrays, GRADIENT_ELSEWHERE)
    keep &= ~np.any([np.isnan(np.asarray(x, np.float64)) for x in arrays], 0)
    # Beyond a half's largest number PyTorch's steps overflow; baracuda_jax's are of float32.
    keep &= ~np.any([~np.isfinite(g) for g in gradients], 0) if dtype == "float16" else True
    fun = lambda *a: getattr(bj, name)(*a, implementation=implementation)
    got = jax.jit(lambda arrays, dy: jax.vjp(fun, *arrays)[1](dy))(arrays, dy)
    for ct, want in zip(got, gradients, strict=True):
        _close(ct, want, dtype, keep, scale=4.0 * (ROUGH.get(name, 1) if dtype == "float64" else 1))


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_trigamma_is_mpmaths(dtype, implementation):
    mpmath = pytest.importorskip("mpmath")
    x = sent.asarray([-7.7, -2.5, -0.3, 1e-3, 0.2, 0.5, 0.9, 1.0, 1.5, 3.0, 9.5, 10.5, 40.0, 1e4], dtype)
    want = [float(mpmath.polygamma(1, mpmath.mpf(float(v)))) for v in x]
    got = bj.digamma_backward(x, sent.ones_like(x), implementation=implementation)
    rough = 100 if implementation == "xla" else 4  # the series of JAX's Hurwitz zeta function
    keep = np.abs(want) < 6e4  # of float16
    np.testing.assert_allclose(np.asarray(got, np.float64)[keep], np.array(want)[keep], rtol=rough * TOLERANCE[dtype])


@pytest.mark.parametrize("implementation", BACKENDS)
def test_equal_arguments_of_fmax_give_the_second_all(implementation):
    for fun in (bj.fmax, bj.fmin):
        grad = jax.grad(functools.partial(fun, implementation=implementation), (0, 1))
        assert grad(1.0, 1.0) == (0, 1)
        assert grad(jnp.nan, 1.0) == (0, 1)
        assert grad(1.0, jnp.nan) == (1, 0)


@pytest.mark.parametrize("implementation", BACKENDS)
@pytest.mark.parametrize("name", [name for name, line in MADE.items() if "int32" in line.dtypes])
def test_integers_at_the_edges_are_numpys(name, implementation):
    line, inputs = MADE[name], {}
    for dtype in line.dtypes:
        if "int" not in dtype:
            continue
        info = np.iinfo(dtype)
        some = np.array([info.min, info.min + 1, -1 % 256 if info.min == 0 else -1, 0, 1, 2, 7, info.max - 1, info.max])
        arrays = [some.astype(dtype)]
        if line.arrays == 2:
            arrays = [a.ravel() for a in np.meshgrid(arrays[0], arrays[0])]
            if name in ("floor_divide", "mod", "fmod"):
                keep = (arrays[1] != 0) & ~((arrays[1] == -1) & (arrays[0] == info.min))
                arrays = [a[keep] for a in arrays]
        inputs[dtype] = arrays
    run = lambda arrays: getattr(bj, name)(*arrays, implementation=implementation)
    found = jax.jit(lambda inputs: jax.tree.map(run, inputs, is_leaf=lambda x: isinstance(x, list)))(inputs)
    for dtype, got in found.items():
        with np.errstate(all="ignore"):
            want = oracle.made(line, *inputs[dtype])
        np.testing.assert_array_equal(np.asarray(got), want.astype(got.dtype), err_msg=dtype)


def test_dtypes_promote_as_jaxs():
    x = sent.ones(3, jnp.float16)
    for other in (2, 2.5, jnp.int32(1), sent.ones(3, jnp.float32), np.float32(2), sent.ones((2, 1), jnp.bfloat16)):
        y, want = bj.add(x, other, implementation="native"), jnp.add(x, other)
        assert y.dtype == want.dtype and y.shape == want.shape
        np.testing.assert_array_equal(y, want)
    assert bj.maximum(sent.arange(3), 1).dtype == sent.arange(3).dtype
    assert bj.logical_and(sent.arange(3), sent.asarray([0.0, 2.0, jnp.nan])).tolist() == [False, True, True]


@pytest.mark.parametrize("implementation", BACKENDS)
def test_derivatives_that_stay_finite(implementation):
    """Where mathematics says so, or where no cotangent comes."""
    grad = lambda name, *args: jax.grad(
        lambda *a: getattr(bj, name)(*a, implementation=implementation), tuple(range(len(args)))
    )(*args)
    assert grad("hypot", 0.0, 0.0) == (0, 0)
    assert grad("atan2", 0.0, 0.0) == (0, 0)
    assert grad("pow", 0.0, 2.0) == (0, 0)
    assert grad("pow", 0.0, 0.0) == (0, 0)
    for name in ("softplus", "mish", "gelu", "silu"):
        for x, slope in ((1e4, 1), (-1e4, 0)):
            assert grad(name, x) == (slope,), name
    assert jax.vjp(lambda x: bj.sqrt(x, implementation=implementation), 0.0)[1](0.0) == (0,)
    assert jax.jit(jax.grad(lambda x: bj.logit(x, 0.1, implementation=implementation)))(0.0) == 0
    np.testing.assert_allclose(grad("hypot", 1e200, 1e200), [0.5**0.5] * 2)
