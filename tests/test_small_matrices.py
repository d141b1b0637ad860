"""The kernels of small matrices compared with NumPy in float64: every size class, edges, and where there is no kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import sent

import baracuda_jax as bj

SIDES = (1, 2, 3, 4, 5, 8, 17, 32)  # of one lane, of teams of 8, 16 and 32
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}
DTYPES = tuple(EPS)


def _drawn(n, dtype, batches=11, columns=None):
    rng = np.random.default_rng(n)
    return rng.standard_normal((batches, n, columns or n)).astype(dtype)


def _native(fun, *args, **options):
    """As float64, of a program."""
    found = jax.jit(lambda *xs: fun(*xs, implementation="native", **options))(*map(sent.asarray, args))
    return jax.tree.map(
        lambda y: np.asarray(y, np.float64) if jnp.issubdtype(y.dtype, jnp.floating) else np.asarray(y), found
    )


def _near(got, want, dtype, factor):
    """Relative to the largest number of each matrix."""
    want = np.asarray(want, np.float64)
    axes = tuple(range(1, want.ndim))
    error, size = np.abs(got - want).max(axes, initial=0), np.abs(want).max(axes, initial=0)
    assert (error <= factor * EPS[dtype] * size).all(), (error / size / EPS[dtype]).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIDES)
def test_cholesky_is_numpys(n, dtype):
    x = _drawn(n, dtype)
    x = x @ x.mT + n * np.eye(n, dtype=dtype)
    want = np.linalg.cholesky(x.astype(np.float64))
    _near(_native(bj.cholesky, x), want, dtype, 20)
    _near(_native(bj.cholesky, x, upper=True), want.mT, dtype, 20)
    skew = np.triu(_drawn(n, dtype), 1)
    _near(_native(bj.cholesky, x + skew - skew.mT), want, dtype, 40)  # the Hermitian part


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIDES)
def test_equations_and_determinants_are_numpys(n, dtype):
    x = _drawn(n, dtype)
    wide, condition = x.astype(np.float64), np.linalg.cond(x).max()
    for columns in (1, 7):
        b = _drawn(n, dtype, columns=columns)
        _near(_native(bj.solve, x, b), np.linalg.solve(wide, b), dtype, 4 * n * condition)
    _near(_native(bj.inverse, x), np.linalg.inv(wide), dtype, 4 * n * condition)
    _near(_native(bj.det, x), np.linalg.det(wide), dtype, 4 * n * condition)
    sign, size = _native(bj.slogdet, x)
    want = np.linalg.slogdet(wide)
    np.testing.assert_array_equal(sign, want[0])
    np.testing.assert_allclose(size, want[1], atol=4 * n * condition * EPS[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*((n, n) for n in SIDES), (5, 3), (3, 5), (32, 7), (2, 32)])
def test_lu_is_scipys(shape, dtype):
    x = np.random.default_rng(3).standard_normal((9, *shape)).astype(dtype)
    packed, pivots = _native(bj.lu_factor, x)
    wanted = [scipy.linalg.lu_factor(one.astype(np.float64)) for one in x]
    np.testing.assert_array_equal(pivots, [pivot for _, pivot in wanted])
    _near(packed, [packed for packed, _ in wanted], dtype, 2000)
    p, lower, upper = _native(bj.lu, x)
    _near(p @ lower @ upper, x, dtype, 20)
    assert (np.abs(lower) <= 1).all()


KINDS = {
    "any": lambda x: x,
    "repeated values": lambda x: np.linalg.qr(x)[0] @ (np.arange(x.shape[-1])[:, None] // 3 * np.linalg.qr(x)[0].mT),
    "graded": lambda x: x * 10.0 ** np.linspace(0, -6, x.shape[-1])[:, None] * 10.0 ** np.linspace(0, -6, x.shape[-1]),
    "diagonal": lambda x: x * np.eye(x.shape[-1]),
    "zero": lambda x: 0 * x,
    "of rank 1": lambda x: np.ones_like(x),
    "large": lambda x: 1e37 * x,
    "small": lambda x: 1e-29 * x,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIDES)
def test_eigh_is_as_exact_as_lapack(n, dtype):
    """Values to the rounding of the largest; vectors orthonormal, and those of the matrix."""
    every = np.concatenate([kind(_drawn(n, "float64", 3)) for kind in KINDS.values()])
    x = ((every + every.mT) / 2).astype(dtype)
    w, v = _native(bj.eigh, x)
    wide = x.astype(np.float64)
    size = np.abs(wide).sum(-1).max(-1) * EPS[dtype]
    assert (np.diff(w) >= 0).all()
    assert (np.abs(w - np.linalg.eigvalsh(wide)).max(-1) <= 8 * size).all()
    assert (np.abs(wide @ v - v * w[:, None, :]).max((-2, -1)) <= 16 * size).all()
    assert np.abs(v.mT @ v - np.eye(n)).max() <= 8 * (n + 4) * EPS[dtype]
    near = (1 - 16 * EPS[dtype] ** 0.5) * np.abs(v).max(-2, keepdims=True)
    assert (np.take_along_axis(v, (np.abs(v) >= near).argmax(-2)[:, None, :], -2) > 0).all()


ONE = {
    "cholesky": lambda x: bj.cholesky(x @ x.mT, implementation="native"),
    "solve": lambda x: bj.solve(x, x[..., :1], implementation="native"),
    "inverse": lambda x: bj.inverse(x, implementation="native"),
    "lu": lambda x: bj.lu(x, implementation="native"),
    "slogdet": lambda x: bj.slogdet(x, implementation="native"),
    "eigh": lambda x: bj.eigh(x, implementation="native"),
}


@pytest.mark.parametrize("n", [3, 7])
@pytest.mark.parametrize("name", ONE)
def test_a_matrix_does_not_depend_on_its_neighbors(name, n):
    """The same bits alone, in a batch, and next to one of NaN."""
    x = _drawn(n, "float32")
    worse = x.copy()
    worse[::2] = np.nan
    of = jax.jit(ONE[name])
    alone = [of(x[i : i + 1]) for i in range(len(x))]
    for got, want in zip(jax.tree.leaves(of(x)), zip(*map(jax.tree.leaves, alone), strict=True), strict=True):
        np.testing.assert_array_equal(got, np.concatenate(want))
    for got, want in zip(jax.tree.leaves(of(worse)), jax.tree.leaves(of(x)), strict=True):
        np.testing.assert_array_equal(np.asarray(got)[1::2], np.asarray(want)[1::2])


@pytest.mark.parametrize("n", [3, 6])
def test_failures_are_of_one_matrix(n):
    good = 3 * np.eye(n) + 1
    bad = good.copy()
    bad[0, 1] = np.nan
    infinite = good.copy()
    infinite[1, 1] = np.inf
    x = np.stack([good, -good, 0 * good, bad, infinite])
    y = _native(bj.cholesky, x)
    assert np.isfinite(y[0]).all() and np.isnan(y[1:]).all()
    w, v = _native(bj.eigh, x)
    assert np.isfinite(w[:3]).all() and np.isnan(w[3:]).all() and np.isfinite(v[:3]).all() and np.isnan(v[3:]).all()


@pytest.mark.parametrize("n", [2, 4, 9])
def test_singular_matrices(n):
    x = np.ones((2, n, n))
    assert not np.isfinite(_native(bj.inverse, x)).all() and not np.isfinite(_native(bj.solve, x, x)).all()
    assert (_native(bj.det, x) == 0).all()
    sign, size = _native(bj.slogdet, x)
    assert (sign == 0).all() and (size == -np.inf).all()
    _, lower, upper = _native(bj.lu, x)
    first = np.arange(n) == 0
    np.testing.assert_array_equal(lower[0], np.where(first, 1, np.eye(n)))
    np.testing.assert_array_equal(upper[0], np.where(first[:, None], 1, np.zeros((n, n))))


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0), (0, 9, 9)])
def test_empty_matrices_and_batches(shape):
    x = np.zeros(shape)
    assert _native(bj.cholesky, x).shape == _native(bj.inverse, x).shape == _native(bj.solve, x, x).shape == shape
    assert [y.shape for y in _native(bj.eigh, x)] == [shape[:-1], shape]
    assert [y.shape for y in _native(bj.lu, x)] == [shape] * 3
    np.testing.assert_array_equal(_native(bj.det, x), np.ones(shape[:-2]))


@pytest.mark.parametrize("name", ["cholesky", "det", "eigh", "inverse", "lu", "lu_factor", "slogdet"])
def test_there_is_no_kernel_of_other_matrices(name):
    """Those are the library's, as the plan says; a call that asks for a kernel is refused."""
    for x in (jax.ShapeDtypeStruct((2, 33, 33), "float32"), jax.ShapeDtypeStruct((2, 3, 3), "complex64")):
        plan = bj.plan(name, x)
        assert plan.backend == "xla" and plan.why == "there is no kernel for these arguments; cusolver computes"
        with pytest.raises(
            ValueError, match=rf"{name}: implementation='native', but .* at most 32 x 32 alone, got {x.dtype}"
        ):
            bj.plan(name, x, implementation="native")
    assert bj.plan(name, jax.ShapeDtypeStruct((2, 32, 32), "float32"), implementation="native").backend == "native"


def test_all_of_a_system_must_be_small():
    a, b = (jax.ShapeDtypeStruct((32, n), "float32") for n in (32, 33))
    assert bj.plan("solve", a, b).targets == ()
    with pytest.raises(ValueError, match=r"solve: .* got float32\[32, 32\] and float32\[32, 33\]"):
        bj.plan("solve", a, b, implementation="native")
