"""The kernels of small matrices compared with NumPy in float64: every size class, edges, and where there is no kernel."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import sent

import baracuda_jax as bj
from baracuda_jax.linalg import _small

SIDES = (1, 2, 3, 4, 5, 8, 12, 17, 32)  # of one lane, of teams of 8, 16 and 32, with one to three rows a lane
ALL_SIDES = (*SIDES, 33, 48, 64)  # also of two rows a lane, in shared memory
FEWER = "eigh", "matrix_exp"  # of SIDES alone
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
@pytest.mark.parametrize("n", ALL_SIDES)
def test_cholesky_is_numpys(n, dtype):
    x = _drawn(n, dtype)
    x = x @ x.mT + n * np.eye(n, dtype=dtype)
    want = np.linalg.cholesky(x.astype(np.float64))
    _near(_native(bj.cholesky, x), want, dtype, 20)
    _near(_native(bj.cholesky, x, upper=True), want.mT, dtype, 20)
    skew = np.triu(_drawn(n, dtype), 1)
    _near(_native(bj.cholesky, x + skew - skew.mT), want, dtype, 40)  # the Hermitian part


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ALL_SIDES)
def test_equations_and_determinants_are_numpys(n, dtype):
    x = (_drawn(n, "float64") / n**0.5).astype(dtype)
    wide, condition = x.astype(np.float64), np.linalg.cond(x).max()
    for columns in (1, 7, 40):
        b = _drawn(n, dtype, columns=columns)
        _near(_native(bj.solve, x, b), np.linalg.solve(wide, b), dtype, 4 * n * condition)
    _near(_native(bj.inverse, x), np.linalg.inv(wide), dtype, 4 * n * condition)
    _near(_native(bj.det, x), np.linalg.det(wide), dtype, 4 * n * condition)
    sign, size = _native(bj.slogdet, x)
    want = np.linalg.slogdet(wide)
    np.testing.assert_array_equal(sign, want[0])
    np.testing.assert_allclose(size, want[1], atol=4 * n * condition * EPS[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ALL_SIDES)
def test_triangular_systems_are_scipys(n, dtype):
    """Of either triangle, of which the other one and a diagonal of ones are not read."""
    x, b = _drawn(n, dtype) / n + np.eye(n, dtype=dtype), _drawn(n, dtype, columns=7)
    for upper, transpose, unit in itertools.product((False, True), repeat=3):
        other = (
            np.tril(np.ones((n, n), bool), int(unit) - 1) if upper else np.triu(np.ones((n, n), bool), 1 - int(unit))
        )
        whole = np.where(other, np.eye(n) if unit else 0, x.astype(np.float64))
        whole = whole.mT if transpose else whole
        hidden = np.where(other, np.nan, x).astype(dtype)
        flags = {"upper": upper, "transpose": transpose, "unit_diagonal": unit}
        factor = 4 * n * np.linalg.cond(whole).max()
        _near(_native(bj.triangular_solve, hidden, b, **flags), np.linalg.solve(whole, b), dtype, factor)
        right = _native(bj.triangular_solve, hidden, b.mT, left=False, **flags)
        _near(right, np.linalg.solve(whole.mT, b).mT, dtype, factor)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("n", [3, 6, 40, 65])
def test_the_gradient_of_triangular_systems_is_that_of_jax(n, left):
    """By the public function, of matrices that have a kernel and of others."""
    x, dy = _drawn(n, "float64") / n + np.eye(n), _drawn(n, "float64", columns=5)
    dy = dy if left else dy.mT
    for upper, transpose, unit in itertools.product((False, True), repeat=3):
        flags = {"upper": upper, "left": left, "transpose": transpose, "unit_diagonal": unit}

        @jax.jit
        def both(a, b):
            y, pull = jax.vjp(lambda a, b: bj.triangular_solve(a, b, implementation="xla", **flags), a, b)
            implementation = "native" if n <= 64 else None
            return pull(b), bj.triangular_solve_backward(a, y, b, implementation=implementation, **flags)

        for want, got in zip(*both(x, dy), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def _cotangents(y):
    """Of a function's results."""
    rng = np.random.default_rng(4)
    drawn = lambda x: rng.standard_normal(x.shape)
    return [drawn(x) if jnp.issubdtype(x.dtype, jnp.floating) else None for x in jax.tree.leaves(y)]


def _gradients(fun, implementation, *args):
    """Of all floats among the results, and of each of them alone."""

    @jax.jit
    def run(*args):
        y, pull = jax.vjp(lambda *args: jax.tree.leaves(fun(*args, implementation=implementation)), *args)
        known = _cotangents(y)
        none = [np.zeros(x.shape, jax.dtypes.float0) if ct is None else 0 * x for x, ct in zip(y, known, strict=True)]
        full = [n if ct is None else sent.asarray(ct, x.dtype) for x, n, ct in zip(y, none, known, strict=True)]
        alone = [k for k, ct in enumerate(known) if ct is not None] if len(known) > 1 else []
        return [
            pull(full),
            *(
                jax.vjp(lambda *a: jax.tree.leaves(fun(*a, implementation=implementation))[k], *args)[1](full[k])
                for k in alone
            ),
        ]

    return [np.asarray(x, np.float64) for x in jax.tree.leaves(run(*map(sent.asarray, args)))]


DIFFERENTIATED = {
    "cholesky": lambda x, **kind: bj.cholesky(x, **kind),
    "cholesky upper": lambda x, **kind: bj.cholesky(x, upper=True, **kind),
    "inverse": bj.inverse,
    "det": bj.det,
    "slogdet": bj.slogdet,
    "lu_factor": bj.lu_factor,
    "eigh": bj.eigh,
    "eigh of equal values": lambda x, **kind: bj.eigh(x, degenerate="zero", **kind),
    "solve": lambda x, **kind: bj.solve(x, jnp.cos(x[..., :1]), **kind),
    "solve of many": lambda x, **kind: bj.solve(x, jnp.cos(x[..., :7]), **kind),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name, n", [(name, n) for name in DIFFERENTIATED for n in (SIDES if "eigh" in name else ALL_SIDES)]
)
def test_gradients_are_those_of_plain_jax(name, n, dtype):
    """In float64, of matrices whose eigenvalues are not close to each other."""
    x = 0.3 * _drawn(n, "float64") / n**0.5 + np.diag(np.arange(n) + 2.0)
    x = (x * 2.7 / n if name == "det" and n > 32 else x).astype(dtype)  # of which the determinant is finite
    got = _gradients(DIFFERENTIATED[name], "native", x)
    want = _gradients(DIFFERENTIATED[name], "xla", x.astype(np.float64))
    for a, b in zip(got, want, strict=True):
        _near(a, b, dtype, 200 * (n + 4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2), (32, 7), (2, 32), (1, 9), (9, 1), (50, 64), (64, 35)])
def test_the_gradient_of_factors_of_any_shape(shape, dtype):
    x = np.random.default_rng(3).standard_normal((9, *shape)).astype(dtype)
    got, want = (_gradients(bj.lu_factor, kind, y) for kind, y in (("native", x), ("xla", x.astype(np.float64))))
    for a, b in zip(got, want, strict=True):
        _near(a, b, dtype, 20000)


def _adjugate(x):
    u, s, vh = np.linalg.svd(x)
    others = np.array([np.prod(np.delete(s, i)) for i in range(len(s))])
    return np.linalg.det(u) * np.linalg.det(vh) * (vh.T * others) @ u.T


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ALL_SIDES)
def test_the_gradient_of_determinants_of_singular_matrices(n, dtype):
    """Of the rank n - 1, wherever the first zero pivot is, and of lower ones: plain JAX has zeros for some of these."""
    x = _drawn(n, "float64", 7) / n**0.5
    x[0], x[1, :, 0], x[2, 0], x[3, :, -1] = 0, 0, 0, x[3, :, 0]
    x[4], x[5] = np.triu(x[4], 1), np.outer(x[5, 0], x[5, :, 0])
    got = np.asarray(
        jax.jit(lambda *xs: bj.det_backward(*xs, implementation="native"))(x.astype(dtype), np.ones(7, dtype))
    )
    error = np.abs(got - [_adjugate(one).T for one in x.astype(dtype).astype(np.float64)]).max()
    assert error <= 20 * n * EPS[dtype]


@pytest.mark.parametrize("n", [2, 4, 6])
def test_the_gradient_of_equal_eigenvalues(n):
    """Those of vectors are left out, or not finite; that of values is not affected."""
    x, dw, dv = np.broadcast_to(np.eye(n), (2, n, n)), _drawn(n, "float64", 2)[:, 0], _drawn(n, "float64", 2)
    w, v = _native(bj.eigh, x)
    call = lambda degenerate: bj.eigh_backward(w, v, dw, dv, degenerate=degenerate, implementation="native")
    np.testing.assert_allclose(call("zero"), dw[:, None] * np.eye(n), atol=1e-15)
    assert not np.isfinite(np.asarray(call("nan"))).any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n", [3, 7, 34, 65])
def test_gradients_as_functions(n, dtype):
    """Those of matrices that have a kernel, of others, and of half precision, are jax.vjp's."""
    powers = min(1, 34 / n) * (np.arange(n) - n / 2)  # of more, the smallest would be less than the noise
    x = sent.asarray(0.002 * _drawn(n, "float64", 2) + np.diag(1.2**powers), dtype)
    b = x[..., :2]

    @jax.jit
    def run(x, b):
        found = {}
        for name, fun, args, of in (
            ("cholesky", bj.cholesky, (x @ x.mT,), bj.cholesky_backward),
            ("inverse", bj.inverse, (x,), bj.inverse_backward),
            ("solve", bj.solve, (x, b), lambda y, ct, **kind: bj.solve_backward(x, y, ct, **kind)),
            ("lu_factor", bj.lu_factor, (x,), lambda y, p, ct, _, **kind: bj.lu_factor_backward(y, p, ct, **kind)),
            ("det", bj.det, (x,), lambda y, ct, **kind: bj.det_backward(x, ct, **kind)),
            ("slogdet", bj.slogdet, (x,), lambda s, y, _, ct, **kind: bj.slogdet_backward(x, ct, **kind)),
            ("eigh", bj.eigh, (x,), bj.eigh_backward),
        ):
            y, pull = jax.vjp(lambda *args, fun=fun: jax.tree.leaves(fun(*args, implementation="xla")), *args)
            cts = [np.zeros(t.shape, jax.dtypes.float0) if t.dtype == jnp.int32 else jnp.cos(t) for t in y]
            kind = "native" if n <= (32 if name in FEWER else 64) else None
            found[name] = pull(cts), of(*y, *cts, implementation=kind)
        return found

    for name, (want, got) in run(x, b).items():
        for g, e in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
            assert g.dtype == e.dtype == dtype
            g, e = np.asarray(g, np.float64), np.asarray(e, np.float64)
            assert np.abs(g - e).max() <= (1e-3 if dtype == "float32" else 0.3) * np.abs(e).max(), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*((n, n) for n in ALL_SIDES), (5, 3), (3, 5), (32, 7), (2, 32), (50, 64), (64, 35)])
def test_lu_is_scipys(shape, dtype):
    x = np.random.default_rng(3).standard_normal((9, *shape)).astype(dtype)
    packed, pivots = _native(bj.lu_factor, x)
    wanted = [scipy.linalg.lu_factor(one.astype(np.float64)) for one in x]
    np.testing.assert_array_equal(pivots, [pivot for _, pivot in wanted])
    _near(packed, [packed for packed, _ in wanted], dtype, 2000)
    p, lower, upper = _native(bj.lu, x)
    _near(p @ lower @ upper, x, dtype, 20)
    assert (np.abs(lower) <= 1).all()


SHAPES = (*((n, n) for n in ALL_SIDES), (5, 3), (3, 5), (32, 7), (2, 32), (1, 9), (9, 1), (50, 64), (64, 35))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr_is_lapacks(shape, dtype):
    """With its signs, in each mode; and products with q, without q itself."""
    x = np.random.default_rng(5).standard_normal((9, *shape)).astype(dtype)
    wide, (m, n) = x.astype(np.float64), shape
    raw = [np.linalg.qr(one, "raw") for one in wide]
    _near(_native(bj.qr, x, mode="raw")[0], [h for h, _ in raw], dtype, 80)
    packed, tau = _native(bj.geqrf, x)
    _near(packed.mT, [h for h, _ in raw], dtype, 80)
    np.testing.assert_allclose(tau, [tau for _, tau in raw], atol=60 * EPS[dtype])
    _near(_native(bj.qr, x, mode="r"), np.linalg.qr(wide, "r"), dtype, 80)
    for mode in ("reduced", "complete"):
        q, r = _native(bj.qr, x, mode=mode)
        _near(q @ r, x, dtype, 20)
        assert np.abs(q.mT @ q - np.eye(q.shape[-1])).max() <= 2 * (n + 4) * EPS[dtype]
        assert (r == np.triu(r)).all()
    c, narrow = (
        np.random.default_rng(6).standard_normal((9, m, 3)).astype(dtype),
        (packed.astype(dtype), tau.astype(dtype)),
    )
    for transpose in (False, True):
        turned = q.mT if transpose else q
        _near(_native(bj.ormqr, *narrow, c, transpose=transpose), turned @ c, dtype, 40)
        _near(_native(bj.ormqr, *narrow, c.mT, transpose=transpose, left=False), c.mT @ turned, dtype, 40)
    if m >= n:
        _near(_native(bj.householder_product, *narrow), q[..., :n], dtype, 40)


@pytest.mark.parametrize("scale", [1e30, 1e-30, 10.0 ** np.array([0, -25, 20, -30, 5, 30])])
def test_qr_of_any_scale(scale):
    """Columns of any size next to each other: no square over- or underflows."""
    x = (_drawn(6, "float64") * scale).astype("float32")
    q, r = _native(bj.qr, x)
    want = np.linalg.qr(x.astype(np.float64))
    size = np.abs(x).max(-2, keepdims=True).astype(np.float64)
    assert (np.abs(q @ r - x) <= 20 * EPS["float32"] * size).all()
    assert (np.abs(r - want[1]) <= 40 * EPS["float32"] * size).all()
    assert np.abs(q.mT @ q - np.eye(6)).max() <= 20 * EPS["float32"]


@pytest.mark.parametrize("n", [3, 6])
def test_columns_that_are_zero_below_the_diagonal_stay(n):
    """As LAPACK has it: there is no reflection."""
    x = np.stack([np.triu(_drawn(n, "float64", 1)[0]), np.zeros((n, n)), np.eye(n), -np.eye(n)])
    packed, tau = _native(bj.geqrf, x)
    np.testing.assert_array_equal(packed, x)
    np.testing.assert_array_equal(tau, 0 * tau)


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


OF_RANK = {
    "half": lambda x: np.where(np.arange(x.shape[-1]) % 2, x, x[..., :1]),
    "orthonormal": lambda x: np.linalg.qr(x)[0] if x.shape[-2] >= x.shape[-1] else np.linalg.qr(x.mT)[0].mT,
    "graded columns": lambda x: x * 10.0 ** np.linspace(0, -30, x.shape[-1]),
    "graded rows": lambda x: x * 10.0 ** np.linspace(0, -30, x.shape[-2])[:, None],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd_is_as_exact_as_lapack(shape, dtype):
    """Values to the rounding of the largest; vectors orthonormal, also those of zeros."""
    rng, (m, n), k = np.random.default_rng(8), shape, min(shape)
    drawn = lambda: rng.standard_normal((3, m, n))
    kinds = {
        name: kind for name, kind in KINDS.items() if name in ("any", "zero", "of rank 1", "large", "small") or m == n
    }
    kinds["diagonal"] = lambda x: x * np.eye(m, n)
    x = np.concatenate([kind(drawn()) for kind in (*kinds.values(), *OF_RANK.values())]).astype(dtype)
    u, s, vh = _native(bj.svd, x)
    wide, want = x.astype(np.float64), np.linalg.svd(x.astype(np.float64), compute_uv=False)
    size = want[:, 0] * EPS[dtype]
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    assert (np.abs(s - want).max(-1) <= (4 * k + 8) * size).all()
    assert (np.abs(u * s[:, None] @ vh - wide).max((-2, -1)) <= 20 * size).all()
    for q in (u, vh.mT):
        assert np.abs(q.mT @ q - np.eye(k)).max() <= 2 * (k + 8) * EPS[dtype]
    near = (1 - 16 * EPS[dtype] ** 0.5) * np.abs(u).max(-2, keepdims=True)
    assert (np.take_along_axis(u, (np.abs(u) >= near).argmax(-2)[:, None, :], -2) > 0).all()
    np.testing.assert_array_equal(_native(bj.svdvals, x), s)
    full, _, full_vh = _native(bj.svd, x, full_matrices=True)
    np.testing.assert_array_equal(full[..., :k], u)
    for q in (full, full_vh):
        assert np.abs(q.mT @ q - np.eye(q.shape[-1])).max() <= 2 * (max(shape) + 8) * EPS[dtype]


def _exponential(x):
    """By the series of a fraction of x, in long doubles: SciPy's float64 has errors of hundreds of roundings."""
    count = 8 + max(0, int(np.ceil(np.log2(np.abs(x).sum(0).max() + 1))))
    x = x.astype(np.longdouble) / np.longdouble(2) ** count
    y = term = np.eye(len(x), dtype=np.longdouble)
    for i in range(1, 20):
        term = term @ x / i
        y = y + term
    for _ in range(count):
        y = y @ y
    return y.astype(np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIDES)
def test_exponentials_are_those_of_the_series(n, dtype):
    """Of matrices that are not squared, and of those that are in part of a batch."""
    x = _drawn(n, "float64", 12) / n**0.5 * np.array([1e-30, 0.01, 0.3, 1, 3, 10] * 2)[:, None, None]
    x = x.astype(dtype)
    norm = np.abs(x).sum(-2).max()
    _near(_native(bj.matrix_exp, x), [_exponential(one) for one in x.astype(np.float64)], dtype, 8 * (norm + n + 1))


ONE = {
    "cholesky": lambda x: bj.cholesky(x + x.shape[-1] * jnp.eye(x.shape[-1]), implementation="native"),
    "solve": lambda x: bj.solve(x, x[..., :1], implementation="native"),
    "inverse": lambda x: bj.inverse(x, implementation="native"),
    "triangular_solve": lambda x: bj.triangular_solve(x, x[..., :2], implementation="native"),
    "qr": lambda x: bj.qr(x, implementation="native"),
    "ormqr": lambda x: bj.ormqr(x, x[..., 0], x, implementation="native"),
    "svd": lambda x: bj.svd(x, implementation="native"),
    "matrix_exp": lambda x: bj.matrix_exp(x, implementation="native"),
    "lu": lambda x: bj.lu(x, implementation="native"),
    "slogdet": lambda x: bj.slogdet(x, implementation="native"),
    "eigh": lambda x: bj.eigh(x, implementation="native"),
    "cholesky_backward": lambda x: bj.cholesky_backward(x, x, implementation="native"),
    "inverse_backward": lambda x: bj.inverse_backward(x, x, implementation="native"),
    "solve_backward": lambda x: bj.solve_backward(x, x, x, implementation="native"),
    "lu_factor_backward": lambda x: bj.lu_factor_backward(
        *bj.lu_factor(x, implementation="native"), x, implementation="native"
    ),
    "det_backward": lambda x: bj.det_backward(x, x[..., 0, 0], implementation="native"),
    "slogdet_backward": lambda x: bj.slogdet_backward(x, x[..., 0, 0], implementation="native"),
    "eigh_backward": lambda x: bj.eigh_backward(x[..., 0], x, x[..., 1], x, implementation="native"),
}


@pytest.mark.parametrize(
    "name, n", [(name, n) for name in ONE for n in (3, 7, 35) if n < 32 or name.removesuffix("_backward") not in FEWER]
)
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
    for y in (*_native(bj.svd, x), _native(bj.svdvals, x), _native(bj.matrix_exp, x)):
        assert np.isfinite(y[:3]).all() and np.isnan(y[3:]).all()


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("n", [3, 6, 40, 65])
def test_the_determinant_of_nan_has_no_sign(n, implementation):
    x = np.stack([np.eye(n), np.full((n, n), np.nan)])
    x = np.stack([*x, np.where(np.arange(n) == n - 1, np.nan, 1) * np.eye(n)])
    sign, size = bj.slogdet(x, implementation=implementation if n <= 64 else None)
    np.testing.assert_array_equal(np.isnan(sign), [False, True, True])
    np.testing.assert_array_equal(np.isnan(size), [False, True, True])


@pytest.mark.parametrize("n", [2, 5])
def test_exponentials_of_extreme_norms(n):
    """They underflow to 0; a norm of more than 2^18, or one that overflows, gives NaN, of that matrix alone."""
    x = np.stack([c * np.eye(n) for c in (-1e5, 0, 1e6, 1e30)] + [np.full((n, n), 3e38)]).astype("float32")
    y = _native(bj.matrix_exp, x)
    np.testing.assert_array_equal(y[:2], [0 * np.eye(n), np.eye(n)])
    assert np.isnan(y[2:]).all()


@pytest.mark.parametrize("n", [2, 4, 9, 40])
def test_singular_matrices(n):
    x = np.ones((2, n, n))
    assert not np.isfinite(_native(bj.inverse, x)).all() and not np.isfinite(_native(bj.solve, x, x)).all()
    assert not np.isfinite(_native(bj.triangular_solve, np.eye(n) * (np.arange(n) > 0), x)).all()
    assert (_native(bj.det, x) == 0).all()
    sign, size = _native(bj.slogdet, x)
    assert (sign == 0).all() and (size == -np.inf).all()
    _, lower, upper = _native(bj.lu, x)
    first = np.arange(n) == 0
    np.testing.assert_array_equal(lower[0], np.where(first, 1, np.eye(n)))
    np.testing.assert_array_equal(upper[0], np.where(first[:, None], 1, np.zeros((n, n))))


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0), (0, 9, 9), (2, 3, 0), (2, 0, 6), (0, 6, 2)])
def test_empty_factors(shape):
    x, k = np.zeros(shape), min(shape[-2:])
    reduced = [(*shape[:-1], k), (*shape[:-2], k, shape[-1])]
    assert [y.shape for y in _native(bj.qr, x)] == reduced
    q, r = _native(bj.qr, x, mode="complete")
    assert r.shape == shape
    np.testing.assert_array_equal(q, np.broadcast_to(np.eye(shape[-2]), (*shape[:-1], shape[-2])))
    assert [y.shape for y in _native(bj.geqrf, x)] == [shape, (*shape[:-2], k)]
    assert [y.shape for y in _native(bj.svd, x)] == [reduced[0], (*shape[:-2], k), reduced[1]]
    assert _native(bj.svdvals, x).shape == (*shape[:-2], k)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0), (0, 9, 9)])
def test_empty_matrices_and_batches(shape):
    x = np.zeros(shape)
    assert _native(bj.cholesky, x).shape == _native(bj.inverse, x).shape == _native(bj.solve, x, x).shape == shape
    assert _native(bj.triangular_solve, x, x, left=False).shape == _native(bj.matrix_exp, x).shape == shape
    assert [y.shape for y in _native(bj.eigh, x)] == [shape[:-1], shape]
    assert [y.shape for y in _native(bj.lu, x)] == [shape] * 3
    np.testing.assert_array_equal(_native(bj.det, x), np.ones(shape[:-2]))
    w, number, pivots = (
        x[..., 0] if shape[-1] else np.zeros(shape[:-1]),
        np.zeros(shape[:-2]),
        np.zeros(shape[:-1], np.int32),
    )
    for fun, args in (
        (bj.cholesky_backward, (x, x)), (bj.inverse_backward, (x, x)), (bj.lu_factor_backward, (x, pivots, x)),
        (bj.det_backward, (x, number)), (bj.slogdet_backward, (x, number)), (bj.eigh_backward, (w, x, w, x)),
    ):  # fmt: skip
        assert _native(fun, *args).shape == shape
    assert [y.shape for y in _native(bj.solve_backward, x, x, x)] == [shape] * 2


@pytest.mark.parametrize("n", [3, 6])
def test_a_system_without_right_sides_has_zeros_as_the_gradient_of_a(n):
    none = np.zeros((2, n, 0))
    da, db = _native(bj.solve_backward, _drawn(n, "float64", 2), none, none)
    assert (da == 0).all() and da.shape == (2, n, n) and db.shape == none.shape


OF_ONE_MATRIX = (
    "cholesky", "det", "eigh", "geqrf", "inverse", "lu", "lu_factor", "matrix_exp", "qr", "slogdet", "svd", "svdvals",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE_MATRIX)
def test_there_is_no_kernel_of_other_matrices(name):
    """Those are the library's, as the plan says; a call that asks for a kernel is refused."""
    most = 32 if name in FEWER else 64
    for x in (
        jax.ShapeDtypeStruct((2, most + 1, most + 1), "float32"),
        jax.ShapeDtypeStruct((2, 3, 3), "complex64"),
    ):
        plan = bj.plan(name, x)
        assert plan.backend == "xla" and plan.why == "there is no kernel for these arguments; cusolver computes"
        with pytest.raises(
            ValueError, match=rf"{name}: implementation='native', but .* at most {most} x {most} alone, got {x.dtype}"
        ):
            bj.plan(name, x, implementation="native")
    assert bj.plan(name, jax.ShapeDtypeStruct((2, most, most), "float32"), implementation="native").backend == "native"


OF_SEVERAL = {
    **dict.fromkeys(("solve", "triangular_solve", "cholesky_backward", "inverse_backward"), lambda x: (x, x)),
    "solve_backward": lambda x: (x, x, x),
    "ormqr": lambda x: (x, x[0], x),
    "eigh_backward": lambda x: (x[0], x, x[0], x),
}


@pytest.mark.parametrize("name", [*OF_ONE_MATRIX, *OF_SEVERAL])
def test_kernels_have_the_limits_that_python_has(name, monkeypatch):
    """A kernel that is given one row more than Python allows refuses it, and names the limit."""
    most = _small.largest(name)
    monkeypatch.setattr(_small, "largest", lambda op: most + 1)
    x = sent.ones((most + 1, most + 1))
    args = OF_SEVERAL[name](x) if name in OF_SEVERAL else (x,)
    with pytest.raises(Exception, match=f"of at most {most}, got"):
        jax.block_until_ready(getattr(bj, name)(*args, implementation="native"))


@pytest.mark.parametrize("name", ["solve", "triangular_solve"])
def test_all_of_a_system_must_be_small(name):
    a, b = (jax.ShapeDtypeStruct((64, n), "float32") for n in (64, 65))
    assert bj.plan(name, a, b).targets == ()
    with pytest.raises(ValueError, match=rf"{name}: .* got float32\[64, 64\] and float32\[64, 65\]"):
        bj.plan(name, a, b, implementation="native")
