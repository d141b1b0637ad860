"""Complex numbers in elementwise ops: as exact as is said, on C99's sides of the branch cuts, and with JAX's derivatives."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close

import baracuda_jax as bj
from baracuda_jax.elementwise._made import MADE

FAMILY = "elementwise"

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
mp.prec = 200

COMPLEX = ("complex64", "complex128")
# op: its value and its derivative
EXACT = {
    "neg": (lambda z: -z, lambda z: -1),
    "square": (lambda z: z * z, lambda z: 2 * z),
    "cube": (lambda z: z**3, lambda z: 3 * z * z),
    "reciprocal": (lambda z: 1 / z, lambda z: -1 / z**2),
    "sqrt": (mp.sqrt, lambda z: 0.5 / mp.sqrt(z)),
    "rsqrt": (lambda z: 1 / mp.sqrt(z), lambda z: -0.5 / z / mp.sqrt(z)),
    "exp": (mp.exp, mp.exp),
    "exp2": (lambda z: mp.exp(z * mp.log(2)), lambda z: mp.exp(z * mp.log(2)) * mp.log(2)),
    "expm1": (lambda z: mp.exp(z) - 1, mp.exp),
    "log": (mp.log, lambda z: 1 / z),
    "log2": (lambda z: mp.log(z) / mp.log(2), lambda z: 1 / z / mp.log(2)),
    "log10": (lambda z: mp.log(z) / mp.log(10), lambda z: 1 / z / mp.log(10)),
    "log1p": (lambda z: mp.log(1 + z), lambda z: 1 / (1 + z)),
    "sigmoid": (lambda z: 1 / (1 + mp.exp(-z)), lambda z: mp.exp(-z) / (1 + mp.exp(-z)) ** 2),
    "sin": (mp.sin, mp.cos),
    "cos": (mp.cos, lambda z: -mp.sin(z)),
    "tan": (mp.tan, lambda z: mp.sec(z) ** 2),
    "asin": (mp.asin, lambda z: 1 / mp.sqrt(1 - z) / mp.sqrt(1 + z)),
    "acos": (mp.acos, lambda z: -1 / mp.sqrt(1 - z) / mp.sqrt(1 + z)),
    "atan": (mp.atan, lambda z: 1 / (1 + z * z)),
    "sinh": (mp.sinh, mp.cosh),
    "cosh": (mp.cosh, mp.sinh),
    "tanh": (mp.tanh, lambda z: mp.sech(z) ** 2),
    "asinh": (mp.asinh, lambda z: 1 / mp.sqrt(1 - 1j * z) / mp.sqrt(1 + 1j * z)),
    "acosh": (mp.acosh, lambda z: 1 / mp.sqrt(z - 1) / mp.sqrt(z + 1)),
    "atanh": (mp.atanh, lambda z: 1 / (1 - z * z)),
}
UNARY = [name for name, line in MADE.items() if "complex64" in line.dtypes and line.arrays == 1]


def _points(dtype, count=30):
    """Around 0, close to the points where functions have cuts, poles and zeros, and close to the axes."""
    rng = np.random.default_rng(0)
    square = lambda size: rng.uniform(-size, size, count) + 1j * rng.uniform(-size, size, count)
    small = 10.0 ** rng.uniform(-6, -1, (2, count))
    near = np.array([0, 1, -1, 1j, -1j])[rng.integers(0, 5, count)] + small[0] * np.exp(1j * square(3).real)
    axes = square(3).real + 1j * small[1], small[0] - 1j * square(3).imag
    return np.concatenate([square(3), square(15), near, *axes]).astype(dtype)


def _units(got, want):
    """The largest error in units in the last place of the modulus's binade."""
    digits = 24 if got.dtype == np.complex64 else 53
    size = lambda w: mp.mpf(2) ** (mp.floor(mp.log(abs(w), 2)) - digits + 1)
    return max(float(abs(mp.mpc(complex(y)) - w) / size(w)) for y, w in zip(got, want, strict=True) if w != 0)


def test_every_unary_op_is_here():
    assert set(UNARY) == set(EXACT)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY)
def test_values_and_derivatives_are_exact(name, dtype):
    x = _points(dtype)
    x = x[np.abs(x) < 4] if name == "exp2" else x  # whose error grows with the imaginary part
    fun = jax.jit(lambda x, v: jax.jvp(lambda x: getattr(bj, name)(x, implementation="native"), (x,), (v,)))
    program = fun.lower(x, np.ones_like(x)).as_text()
    assert f"baracuda.{name}" in program and f"baracuda.{name}_backward" in program
    for got, exact, most in zip(fun(x, np.ones_like(x)), EXACT[name], (8, 12), strict=True):
        assert got.dtype == dtype
        assert _units(np.asarray(got), [exact(mp.mpc(complex(z))) for z in x]) < most


@pytest.mark.parametrize("dtype", COMPLEX)
def test_ops_of_two_are_exact(dtype):
    rng = np.random.default_rng(1)
    x, y = rng.permutation(_points(dtype)), _points(dtype)
    exact = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}
    exact["pow"] = lambda a, b: mp.exp(b * mp.log(a))
    for name, fun in exact.items():
        few = np.abs(y) < 4 if name == "pow" else np.ones(y.shape, bool)
        got = np.asarray(getattr(bj, name)(x[few], y[few], implementation="native"))
        want = [fun(mp.mpc(complex(a)), mp.mpc(complex(b))) for a, b in zip(x[few], y[few], strict=True)]
        assert _units(got, want) < (50 if name == "pow" and dtype == "complex128" else 4), name


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize(
    "name", [name for name, line in MADE.items() if "complex64" in line.dtypes and line.has_derivative]
)
def test_derivatives_are_jaxs(name, implementation):
    """None is conjugated. On the right, where JAX's derivative of acosh has the right sign."""
    line, rng = MADE[name], np.random.default_rng(2)
    args = [rng.uniform(0.2, 2, 40) + 1j * rng.uniform(-2, 2, 40) for _ in range(line.arrays)]
    dy = rng.normal(size=40) + 1j * rng.normal(size=40)
    want = jax.vjp(line.value, *args)[1](dy)
    got = jax.vjp(lambda *args: getattr(bj, name)(*args, implementation=implementation), *args)[1](dy)
    again = getattr(bj, f"{name}_backward")(*args, dy, implementation=implementation)
    for a, b, c in zip(got, want, again if line.arrays > 1 else [again], strict=True):
        close(a, b, "complex128")
        np.testing.assert_array_equal(c, a)


def test_the_derivative_of_acosh_on_the_left():
    """JAX's has the other sign there."""
    x = np.array([-1.5 + 0.5j, -0.3 - 2j])
    step = 1e-6
    want = (np.arccosh(x + step) - np.arccosh(x - step)) / (2 * step)
    for implementation in ("native", "xla"):
        got = jax.jvp(lambda x: bj.acosh(x, implementation=implementation), (x,), (np.ones_like(x),))[1]
        np.testing.assert_allclose(got, want, rtol=1e-8)


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1e308, -1e308, np.inf, -np.inf, np.nan]


def _pairs(edges=EDGES):
    return np.array([complex(*pair) for pair in itertools.product(edges, edges)])


def _same_parts(got, want, signs=True):
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-300)  # XLA has no subnormal numbers
        if signs:
            zero = (a == 0) & (b == 0)
            np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "atan", "asinh", "acosh", "atanh", "exp"])
def test_zeros_and_infinities_are_numpys(name):
    """Those of C99's Annex G, the signs of zeros with them, on which the side of a cut depends."""
    x = _pairs()
    # Elsewhere C99 leaves open which of the parts are NaN.
    x = x if name in ("sqrt", "exp") else x[~np.isnan(x)]
    with np.errstate(all="ignore"):
        want = getattr(np, MADE[name].theirs("jax").removeprefix("jax.numpy."))(x)
    open_signs = (name == "exp") & np.isinf(x.real) & ~np.isfinite(x.imag)
    got = np.asarray(getattr(bj, name)(x, implementation="native"))
    _same_parts(got[~open_signs], want[~open_signs])
    _same_parts(got[open_signs], want[open_signs], signs=False)


def test_sums_and_products_of_edges_are_numpys():
    few = _pairs(
        [edge for edge in EDGES if abs(edge) != 1e308]
    )  # whose products overflow before they are added, or not
    x, y = (a.ravel() for a in np.meshgrid(few, few))
    with np.errstate(all="ignore"):
        for name, want in {"add": x + y, "sub": x - y, "mul": x * y}.items():
            _same_parts(np.asarray(getattr(bj, name)(x, y, implementation="native")), want)
    for name, want in {"eq": x == y, "ne": x != y}.items():
        np.testing.assert_array_equal(getattr(bj, name)(x, y, implementation="native"), want)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_quotients_and_roots_do_not_overflow_before_they_must(dtype):
    most = np.finfo(dtype).max
    large = np.array([complex(most, most), complex(-most, most / 2), complex(most, 0), complex(0, -most)], dtype)
    np.testing.assert_allclose(bj.div(large, large, implementation="native"), 1, rtol=1e-6)
    np.testing.assert_allclose(bj.sqrt(large, implementation="native"), 2 * np.sqrt(large / 4), rtol=1e-6)
    assert np.isfinite(bj.log(large, implementation="native")).all()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            bj.div(large[:2], np.zeros(2, dtype), implementation="native"), large[:2] / np.zeros(2, dtype)
        )
    infinite = _pairs([0.0, 1.0, -2.0, np.inf, -np.inf]).astype(dtype)
    infinite = infinite[np.isinf(infinite)]
    for name in ("reciprocal", "rsqrt"):
        np.testing.assert_array_equal(getattr(bj, name)(infinite, implementation="native"), 0)


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_abs_of_complex_numbers(implementation):
    x = sent.asarray([3 + 4j, -1e200 - 1e200j, 0, 2j, jnp.inf + 1j * jnp.nan])
    fun = lambda x: bj.abs(x, implementation=implementation)
    np.testing.assert_allclose(fun(x), np.abs(x), rtol=1e-15)
    assert fun(x.astype(jnp.complex64)).dtype == jnp.float32
    dy = sent.asarray([1.0, -2.0, 3.0, 0.5])
    want = jax.vjp(jnp.abs, x[:4])[1](dy)[0]
    for got in (jax.vjp(fun, x[:4])[1](dy)[0], bj.abs_backward(x[:4], dy, implementation=implementation)):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    with pytest.raises(TypeError, match="^abs_backward: dy must have the dtype of the result, float64, got complex128"):
        bj.abs_backward(x, x)


def test_dtypes_promote_as_jaxs():
    x, z = sent.ones((3, 1), jnp.float32), sent.full(4, 1 + 2j, jnp.complex64)
    others = (z, 2j, jnp.complex128(1j), np.complex64(1j), sent.arange(4), sent.ones(4, jnp.float16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for (name, theirs), other in itertools.product({"add": jnp.add, "pow": jnp.power}.items(), others):
            for args in ((x, other), (other, z)):
                y, want = getattr(bj, name)(*args, implementation="native"), theirs(*args)
                assert y.dtype == want.dtype and y.shape == want.shape
                np.testing.assert_allclose(y, want, rtol=1e-6)


def test_gradients_of_what_broadcasts_are_summed():
    x, y, dy = (
        sent.asarray(a + 1j * a[::-1]) for a in (np.arange(1.0, 4), np.ones((2, 1)), np.arange(6.0).reshape(2, 3))
    )
    got = bj.mul_backward(x, y, dy, implementation="native")
    np.testing.assert_allclose(got[0], (y * dy).sum(0))
    np.testing.assert_allclose(got[1], (x * dy).sum(1, keepdims=True))


def test_powers_of_zero():
    nan = complex(np.nan, np.nan)
    for implementation in ("native", "xla"):
        grad = jax.vjp(lambda x, y: bj.pow(x, y, implementation=implementation), 0j, 2 + 0j)[1](1 + 0j)
        np.testing.assert_array_equal(grad, [0, 0])
        np.testing.assert_array_equal(
            bj.pow(np.zeros(3, complex), np.array([0, 2, 1j]), implementation=implementation), [1, 0, nan]
        )
        np.testing.assert_allclose(
            bj.integer_pow(np.array([1 + 1j, 2j]), -3, implementation=implementation), [-0.25 - 0.25j, 0.125j]
        )
