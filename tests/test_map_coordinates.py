"""Arrays at coordinates compared with SciPy's: every order and mode, far outside, on elements, on axes of one element; and what
SciPy leaves open: gradients, NaN, shared coordinates."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.ndimage
from examples_of import close

import baracuda_jax as bj

NAN, INF = math.nan, math.inf
MODES = ("constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "wrap", "grid-wrap")
SHAPES = ((9,), (5, 1), (5, 6), (3, 4, 5), (2, 3, 2, 4))


def _coordinates(rng, shape, order):
    """Inside, outside and far away; the first ones on elements, which no rounding decides."""
    at = np.stack([rng.uniform(-2.5 * n - 1, 3.5 * n, 23) for n in shape])
    at[:, :6] = rng.integers(-3, 8, at[:, :6].shape)
    return np.where(at % 1 == 0.5, at + 0.1, at) if order == 0 else at


@pytest.mark.parametrize("order", [0, 1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_are_scipys(shape, order):
    """Of kernels and of plain JAX. SciPy's coefficients of "reflect" do not give back the elements of short axes, and those of
    "nearest" are as near as its 12 more elements let them be."""
    rng = np.random.default_rng(0)
    x, at = rng.standard_normal(shape), _coordinates(rng, shape, order)

    modes = [mode for mode in MODES if order != 3 or mode not in ("reflect", "grid-mirror")]
    # Cubic splines of more axes than two are plain JAX in both.
    ways = list(itertools.product(modes, ("native",) if len(shape) > 2 and order == 3 else ("native", "xla")))

    @jax.jit
    def run(x, at):
        return [bj.map_coordinates(x, at, order, mode, 0.7, implementation=how) for mode, how in ways]

    for got, (mode, _) in zip(run(x, at), ways, strict=True):
        want = scipy.ndimage.map_coordinates(x, at, order=order, mode=mode, cval=0.7)
        close(got, want, "float64", scale=1e9 if (order, mode) == (3, "nearest") else 100)


@pytest.mark.parametrize("mode", ["reflect", "mirror", "grid-wrap", "nearest"])
@pytest.mark.parametrize("n", [2, 3, 100])
def test_splines_go_through_the_elements(n, mode):
    """And on outside as the mode says."""
    x = np.random.default_rng(0).standard_normal((3, n))
    at = np.arange(-n, 2 * n, dtype=float)
    got = bj.map_coordinates(x, at[None], mode=mode)
    pad = {"reflect": "symmetric", "mirror": "reflect", "grid-wrap": "wrap", "nearest": "edge"}[mode]
    close(got, np.pad(x, ((0, 0), (n, n)), pad), "float64", scale=1e9 if mode == "nearest" else 100)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_linear_ones_are_jaxs(mode):
    """Whose "constant" and "wrap" are those of grids."""
    rng = np.random.default_rng(0)
    x, at = rng.standard_normal((2, 5, 6)), _coordinates(rng, (5, 6), 1) + 0.01
    theirs = lambda x, at: jax.vmap(lambda x: jax.scipy.ndimage.map_coordinates(x, at, 1, mode, 0.3))(x)
    here = functools.partial(bj.map_coordinates, order=1, mode=mode, cval=0.3)
    here.keywords["mode"] = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode)
    dy = rng.standard_normal((2, at.shape[1]))

    @jax.jit
    def run(x, at, dy):
        return [(y, *pull(dy)) for y, pull in (jax.vjp(fun, x, at) for fun in (theirs, here))]

    want, got = run(x, at, dy)
    for a, b in zip(got, want, strict=True):
        close(a, np.asarray(b), "float64", scale=100)


@pytest.mark.parametrize("order", [1, 3])
@pytest.mark.parametrize("shape", [(9,), (5, 6), (3, 4, 5)], ids=str)
def test_kernels_have_the_derivatives_of_the_definition(shape, order):
    rng = np.random.default_rng(0)
    x, tangent = rng.standard_normal((2, 3, *shape))
    at, moved = _coordinates(rng, shape, 1) + 0.01, rng.standard_normal((len(shape), 23))
    dy = rng.standard_normal((3, 23))

    @jax.jit
    def run(x, at, dy, tangent, moved):
        found = []
        for implementation in ("native", "xla"):
            of_mode = []
            for mode in ("constant", "reflect") if order == 3 else ("constant", "grid-constant", "reflect"):
                fun = functools.partial(
                    bj.map_coordinates, order=order, mode=mode, cval=0.5, prefilter=False, implementation=implementation
                )
                y, pull = jax.vjp(fun, x, at)
                of_mode += [y, *pull(dy), jax.jvp(fun, (x, at), (tangent, moved))[1]]
            found.append(of_mode)
        return found

    for got, want in zip(*run(x, at, dy, tangent, moved), strict=True):
        close(got, np.asarray(want), "float64", scale=100)


def test_coordinates_that_are_none():
    x = jnp.asarray([1.0, 2, 4, 8])
    each = {
        ("constant", 1): (NAN, 9, 9), ("constant", 0): (9, 9, 9), ("grid-constant", 1): (NAN, NAN, NAN), ("nearest", 1): (NAN, 8, 1),
        ("nearest", 0): (9, 8, 1), ("mirror", 1): (NAN, NAN, NAN), ("constant", 3): (NAN, 9, 9),
    }  # fmt: skip
    for (mode, order), want in each.items():
        for implementation in ("native", "xla"):
            got = bj.map_coordinates(
                x, jnp.asarray([[NAN, INF, -INF]]), order, mode, 9, False, implementation=implementation
            )
            np.testing.assert_array_equal(got, np.array(want), err_msg=f"{mode} {order} {implementation}")


def test_what_is_outside_is_the_value_itself():
    """Also an infinite one, of which no product with 0 is formed."""
    at = np.array([[-0.1, 1.5, 3.0, 3.1]])
    for order, implementation in itertools.product((0, 1, 3), ("native", "xla")):
        got = bj.map_coordinates(np.ones(4), at, order, cval=INF, implementation=implementation)
        np.testing.assert_allclose(got, [INF, 1, 1, INF])


def test_arrays_share_coordinates_and_may_be_listed():
    rng = np.random.default_rng(0)
    x, at = rng.standard_normal((2, 3, 5, 6)), rng.uniform(0, 4, (2, 4, 7))
    y = bj.map_coordinates(x, at, 1)
    assert y.shape == (2, 3, 4, 7)
    np.testing.assert_array_equal(bj.map_coordinates(x, list(at), 1), y)
    close(y[1, 2], scipy.ndimage.map_coordinates(x[1, 2], at, order=1), "float64")
    assert bj.map_coordinates(np.zeros((0, 4)), at[:1], 1).shape == (0, 4, 7)
    assert bj.map_coordinates(np.ones((2, 4)), np.zeros((1, 0)), 1).shape == (2, 0)


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (ValueError, "order must be 0, 1 or 3, got 2", (np.ones(3), np.ones((1, 2)), 2), {}),
        (ValueError, "coordinates must be .* 1 to 1 axes", (np.ones(3), np.ones((2, 2)), 1), {}),
        (ValueError, "coordinates must be one or more arrays", (np.ones((3, 3)), [np.ones(2), np.ones(3)], 1), {}),
        (ValueError, "mode", (np.ones(3), np.ones((1, 2)), 1, "zeros"), {}),
        (TypeError, "cval must be a static number", (np.ones(3), np.ones((1, 2)), 1), dict(cval="0")),
        (ValueError, "sizes of at least 1", (np.ones((2, 0)), np.ones((1, 2)), 1), {}),
    ],
)
def test_what_is_refused(error, match, args, kwargs):
    with pytest.raises(error, match=match):
        bj.map_coordinates(*args, **kwargs)
