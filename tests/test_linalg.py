"""Linear algebra compared with NumPy's and PyTorch's, derivatives with differences, edges, and what it refuses."""

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close

import baracuda_jax as bj
from baracuda_jax.linalg._declared import definite, well_conditioned

DTYPES = ("float64", "complex128")
EIG = ("eig", "eigenvalues")


def _drawn(draw, *shapes, dtype="float64"):
    rng = np.random.default_rng(7)
    part = lambda shape: draw(rng, *shape) if len(shape) > 1 else rng.standard_normal(shape)
    imaginary = lambda shape: 0.3j * rng.standard_normal(shape) if dtype.startswith("complex") else 0
    return [sent.asarray(part(shape) + imaginary(shape), dtype) for shape in shapes]


def _flat(arrays):
    """All results as one real vector, by JAX or PyTorch."""
    arrays = arrays if isinstance(arrays, tuple | list) else (arrays,)
    if isinstance(arrays[0], torch.Tensor):
        parts = [torch.view_as_real(a.resolve_conj()) if a.is_complex() else a for a in arrays]
        return torch.cat([p.reshape(-1) for p in parts])
    parts = [jnp.stack([a.real, a.imag], -1) if jnp.iscomplexobj(a) else a for a in arrays]
    return jnp.concatenate([p.ravel() for p in parts])


def _small(rng, *shape):
    return 0.5 * rng.standard_normal(shape)


def _squares(values, *vectors):
    """What does not depend on signs and phases."""
    return (*values, *((abs(v) ** 2 if isinstance(v, torch.Tensor) else jnp.abs(v) ** 2) for v in vectors))


THEIRS = {
    "cholesky": (bj.cholesky, lambda x: torch.linalg.cholesky((x + x.mH) / 2), definite, [(2, 4, 4)]),
    "cholesky upper": (
        lambda x: bj.cholesky(x, upper=True), lambda x: torch.linalg.cholesky((x + x.mH) / 2, upper=True), definite, [(3, 3)],
    ),
    "lu": (bj.lu, torch.linalg.lu, well_conditioned, [(2, 4, 3)]),
    "lu wide": (bj.lu, torch.linalg.lu, _small, [(3, 5)]),
    "lu_factor": (lambda x: bj.lu_factor(x)[0], lambda x: torch.linalg.lu_factor(x)[0], _small, [(2, 4, 4)]),
    "det": (bj.det, torch.linalg.det, _small, [(2, 4, 4)]),
    "slogdet": (bj.slogdet, torch.linalg.slogdet, _small, [(2, 3, 3)]),
    "qr": (bj.qr, torch.linalg.qr, well_conditioned, [(2, 5, 3)]),
    "qr wide": (bj.qr, torch.linalg.qr, well_conditioned, [(2, 2, 4)]),
    "householder_product": (bj.householder_product, torch.linalg.householder_product, _small, [(2, 5, 3), (2, 3)]),
    "ormqr": (bj.ormqr, torch.ormqr, _small, [(2, 5, 3), (2, 3), (2, 5, 2)]),
    "ormqr right": (
        lambda *a: bj.ormqr(*a, left=False, transpose=True, block=2), lambda *a: torch.ormqr(*a, left=False, transpose=True),
        _small, [(2, 5, 3), (2, 3), (2, 2, 5)],
    ),
    "svd": (
        lambda x: (lambda u, s, vh: _squares([s], u, vh))(*bj.svd(x)),
        lambda x: (lambda u, s, vh: _squares([s], u, vh))(*torch.linalg.svd(x, full_matrices=False)), well_conditioned, [(2, 4, 3)],
    ),
    "eigh": (
        lambda x: (lambda w, v: _squares([w], v))(*bj.eigh(x)),
        lambda x: (lambda w, v: _squares([w], v))(*torch.linalg.eigh((x + x.mH) / 2)), well_conditioned, [(2, 4, 4)],
    ),
    "eig": (
        lambda x: (lambda w, v: _squares([w], v))(*bj.eig(x)),
        lambda x: (lambda w, v: _squares([w], v))(*torch.linalg.eig(x)), well_conditioned, [(2, 4, 4)],
    ),
    "solve": (bj.solve, torch.linalg.solve, well_conditioned, [(2, 3, 3), (2, 3, 2)]),
    "solve of a vector": (bj.solve, torch.linalg.solve, well_conditioned, [(3, 3), (3,)]),
    "triangular_solve": (
        bj.triangular_solve, lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), well_conditioned, [(2, 4, 4), (2, 4, 3)],
    ),
    "triangular_solve right, upper": (
        lambda a, b: bj.triangular_solve(a, b, upper=True, left=False),
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, left=False), well_conditioned, [(3, 3), (2, 2, 3)],
    ),
    "triangular_solve transposed, ones": (
        lambda a, b: bj.triangular_solve(a, b, transpose=True, unit_diagonal=True),
        lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=True, unitriangular=True), _small, [(2, 4, 4), (4, 3)],
    ),
    "triangular_solve transposed, right": (
        lambda a, b: bj.triangular_solve(a, b, transpose=True, left=False),
        lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=True, left=False), well_conditioned, [(2, 4, 4), (2, 4)],
    ),
    "inverse": (bj.inverse, torch.linalg.inv, well_conditioned, [(2, 3, 3)]),
    "lstsq": (
        lambda *a: bj.lstsq(*a)[0], lambda a, b: torch.linalg.lstsq(a, b)[0], well_conditioned, [(2, 5, 3), (2, 5, 2)],
    ),
    "matrix_exp": (bj.matrix_exp, torch.linalg.matrix_exp, _small, [(2, 4, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", THEIRS)
def test_values_and_gradients_are_torchs(name, dtype):
    if name.startswith("ormqr right") and dtype == "complex128":
        pytest.skip("PyTorch's gradient of it is not that of differences")
    function, theirs, draw, shapes = THEIRS[name]
    if name == "eig":
        _needs_eig()
    args = _drawn(draw, *shapes, dtype=dtype)
    tensors = [by_torch.tensor(a).requires_grad_() for a in args]
    want = _flat(theirs(*tensors))
    dy = np.random.default_rng(1).standard_normal(want.shape)
    gradients = torch.autograd.grad(want, tensors, torch.tensor(dy), allow_unused=True)

    @jax.jit
    def both(args):
        y, pull = jax.vjp(lambda *args: _flat(function(*args)), *args)
        return y, pull(sent.asarray(dy))

    y, pulled = both(args)
    close(y, by_torch.numbers(want), "float64", 20)
    for got, expected in zip(pulled, gradients, strict=True):
        close(got, expected.resolve_conj().numpy().conj(), dtype, 200)


def _needs_eig():
    try:
        jax.block_until_ready(bj.eig(sent.eye(2)))
    except (NotImplementedError, RuntimeError, ValueError) as error:
        pytest.skip(f"JAX has no eigenvalues of general matrices here: {error}")


DIFFERENCES = {
    "geqrf": (bj.geqrf, [(4, 3)]),
    "geqrf square": (bj.geqrf, [(3, 3)]),
    "geqrf wide": (bj.geqrf, [(2, 4)]),
    "qr": (bj.qr, [(4, 3)]),
    "qr complete": (lambda x: bj.qr(x, mode="complete"), [(4, 2)]),
    "svd": (bj.svd, [(4, 3)]),
    "svd full": (lambda x: bj.svd(x, full_matrices=True), [(4, 2)]),
    "svd full, wide": (lambda x: bj.svd(x, full_matrices=True), [(2, 4)]),
    "svd, degenerate": (lambda x: bj.svd(x, degenerate="zero"), [(3, 3)]),
    "eigh": (bj.eigh, [(4, 4)]),
    "eig": (bj.eig, [(4, 4)]),
    "eigenvalues": (lambda x: bj.eig(x)[0], [(3, 3)]),
    "lstsq": (lambda a, b: bj.lstsq(a, b)[0], [(4, 3), (4, 2)]),
    "lstsq wide": (lambda a, b: bj.lstsq(a, b)[0], [(2, 4), (2, 2)]),
    "ormqr": (lambda *a: bj.ormqr(*a, left=False, transpose=True), [(4, 3), (3,), (2, 4)]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DIFFERENCES)
def test_derivatives_are_limits_of_differences(name, dtype):
    """The first, forward and reverse, and the second, also of complex matrices with the phases that are fixed."""
    if name in EIG:
        _needs_eig()
    fun, shapes = DIFFERENCES[name]
    args = _drawn(well_conditioned, *shapes, dtype=dtype)
    others = [jnp.flip(_drawn(_small, shape, dtype=dtype)[0]) for shape in shapes]
    weights = np.random.default_rng(3).standard_normal(10**3)
    loss = lambda *args: jnp.sum(jnp.sin(_flat(fun(*args))) * weights[: _flat(fun(*args)).size])
    gradient = jax.grad(lambda args: loss(*args))

    @jax.jit
    def both(args, others):
        step = 1e-5
        at = lambda t: [a + t * v for a, v in zip(args, others, strict=True)]
        ends = jax.lax.map(lambda t: (_flat(fun(*at(t))), gradient(at(t))), sent.asarray([-step, step]))
        slope, slope_of_gradient = jax.tree.map(lambda y: (y[1] - y[0]) / (2 * step), ends)
        along = jax.jvp(lambda t: (_flat(fun(*at(t))), gradient(at(t))), (0.0,), (1.0,))[1]
        first = sum(jnp.sum(g * v).real for g, v in zip(gradient(args), others, strict=True))
        return along, (slope, slope_of_gradient), (first, jax.grad(lambda t: loss(*at(t)))(0.0))

    along, slopes, (first, expected) = both(args, others)
    for got, want in zip(jax.tree.leaves(along), jax.tree.leaves(slopes), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(first, expected, rtol=1e-9)


# ---------------------------------------------------------------------------------------------------------------------
# Values


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_multiply_to_the_matrix(dtype):
    (x,) = _drawn(_small, (2, 5, 3), dtype=dtype)

    @jax.jit
    def products(x):
        (p, lower, upper), (u, s, vh) = bj.lu(x), bj.svd(x, full_matrices=True)
        (q, r), (packed, tau) = bj.qr(x, mode="complete"), bj.geqrf(x)
        middle = sent.eye(5, 3) * s[..., None, :]
        return (
            p @ lower @ upper,
            u @ middle @ vh,
            q @ r,
            bj.ormqr(packed, tau, jnp.triu(packed)),
            u.mT.conj() @ u,
            q.mT.conj() @ q,
        )

    *products, first, second = products(x)
    for y in products:
        close(y, x, dtype)
    for y in (first, second):
        close(y, np.broadcast_to(np.eye(5), (2, 5, 5)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_signs_are_fixed(dtype):
    """The first of the largest elements is positive and real, whatever LAPACK's signs are."""
    x = sent.asarray([[2, 1], [1, 2]], dtype)
    half = 0.5**0.5
    close(bj.eigh(x)[1].real, [[half, half], [-half, half]], "float64")
    close(bj.svd(x)[0].real, [[half, half], [half, -half]], "float64")
    (x,) = _drawn(well_conditioned, (2, 4, 4), dtype=dtype)
    for v in (bj.svd(x)[0], bj.eigh(x)[1]):
        largest = np.take_along_axis(np.asarray(v), np.abs(v).argmax(-2)[..., None, :], -2)
        assert (largest.real > 0).all() and np.abs(largest.imag).max() < 1e-15


def test_pivots_are_those_of_scipy():
    x = sent.asarray([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [1.0, 5.0, 0.0]])
    packed, pivots = bj.lu_factor(x)
    assert pivots.dtype == jnp.int32 and pivots.tolist() == [1, 2, 2]
    close(jax.scipy.linalg.lu_solve((packed, pivots), sent.ones(3)), np.linalg.solve(x, np.ones(3)), "float64")


def test_many_reflections_are_those_of_torch():
    """Several blocks, the last of which is not whole."""
    (x,) = _drawn(_small, (40, 37))
    (c,) = _drawn(_small, (40, 2))
    packed, tau = torch.geqrf(by_torch.tensor(x))
    got = bj.geqrf(x)
    close(got[0], packed.numpy(), "float64", 20)
    close(got[1], tau.numpy(), "float64", 20)
    close(bj.householder_product(*got), torch.linalg.householder_product(packed, tau).numpy(), "float64", 20)
    for transpose in (False, True):
        want = torch.ormqr(packed, tau, by_torch.tensor(c), transpose=transpose).numpy()
        close(bj.ormqr(*got, c, transpose=transpose), want, "float64", 20)
        close(bj.ormqr(*got, c, transpose=transpose, block=7), want, "float64", 20)


@pytest.mark.parametrize(
    "shape, other", [((3, 3), (3,)), ((2, 3, 3), (3, 2)), ((3, 3), (4, 3, 2)), ((2, 1, 3, 3), (4, 3, 2))]
)
def test_batches_of_systems_broadcast(shape, other):
    a, b = _drawn(well_conditioned, shape, other)
    close(bj.solve(a, b), np.linalg.solve(a, b), "float64")
    want = np.linalg.pinv(a) @ np.asarray(b)
    y, residuals, rank, s = bj.lstsq(a, b)
    close(y, want, "float64")
    assert residuals.shape == (*want.shape[:-2], *want.shape[-1:]) if len(other) > 1 else residuals.shape == ()
    assert (rank == 3).all() and s.shape[-1] == 3


def test_least_squares_of_lower_rank():
    a = np.random.default_rng(0).standard_normal((5, 2)) @ np.random.default_rng(1).standard_normal((2, 3))
    b = np.random.default_rng(2).standard_normal((5, 2))
    y, residuals, rank, s = bj.lstsq(a, b)
    want = np.linalg.lstsq(a, b, None)
    close(y, want[0], "float64", 20)
    close(residuals, ((b - a @ want[0]) ** 2).sum(0), "float64", 20)
    assert rank == want[2] == 2
    close(s, want[3], "float64")
    assert bj.lstsq(a, b, rcond=0.9)[2] == 1


# ---------------------------------------------------------------------------------------------------------------------
# Repeated values


@pytest.mark.parametrize("name", ["eigh", "svd", "svd tall"])
def test_gradients_of_spectra_with_repeated_values(name):
    """Sums of functions of all values: V f'(w) V^T, and U f'(s) V^T."""
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    x = np.concatenate([q @ np.diag([1.0, 1.0, 1.0, 3.0]) @ q.T, np.zeros((2 if name == "svd tall" else 0, 4))])
    position, fun = (0, bj.eigh) if name == "eigh" else (1, bj.svd)
    got = jax.jit(jax.grad(lambda x: jnp.sin(fun(x, degenerate="zero")[position]).sum()))(x)
    close(got[:4], q @ np.diag(np.cos([1.0, 1.0, 1.0, 3.0])) @ q.T, "float64", 20)
    close(got[4:], 0 * x[4:], "float64")


def _projection(x, fun, degenerate, g):
    """To the vectors of the first two values."""
    v = fun(x, degenerate=degenerate)[1 if fun is bj.eigh else 0][:, :2]
    return jnp.sum(v @ v.T * g)


@pytest.mark.parametrize("fun", [bj.eigh, bj.svd])
def test_gradient_of_a_projection_between_repeated_values(fun):
    """The terms of pairs of different values are kept. By default NaN is what says that there is no derivative of vectors."""
    x = jnp.diag(sent.asarray([1.0, 1.0, 2.0, 2.0] if fun is bj.eigh else [2.0, 2.0, 1.0, 1.0]))
    g = np.random.default_rng(0).standard_normal((4, 4))
    g = g + g.T
    gradient = jax.jit(jax.grad(_projection), static_argnums=(1, 2))
    want, sign = np.zeros((4, 4)), -1 if fun is bj.eigh else 1
    if fun is bj.eigh:
        want[:2, 2:] = sign * g[:2, 2:]
        want = want + want.T
    else:
        # dU_12 = (s_2 dx_12 + s_1 dx_21) / (s_2^2 - s_1^2), and the projection changes by both of its blocks.
        want[2:, :2], want[:2, 2:] = 2 * g[2:, :2] * 2 / 3, 2 * g[:2, 2:] * 1 / 3
    close(gradient(x, fun, "zero", g), want, "float64", 20)
    assert not np.isfinite(gradient(x, fun, "nan", g)).all()


@pytest.mark.parametrize("values", [(2.0, 2.0, 2.0), (2.0, 2.0, 1.0), (3.0, 1.0, 1.0)])
def test_gradient_of_the_nearest_orthogonal_matrix(values):
    """With E = U^T dx V, that of U V^T is U ((E - E^T)_ij / (s_i + s_j)) V^T, whatever values are equal."""
    rng, values = np.random.default_rng(0), np.array(values)
    u, v = np.linalg.qr(rng.standard_normal((2, 3, 3)))[0]
    g = rng.standard_normal((3, 3))
    e = u.T @ g @ v
    want = u @ ((e - e.T) / (values[:, None] + values)) @ v.T

    def product(x):
        left, _, right = bj.svd(x, degenerate="zero")
        return left @ right

    got = jax.jit(jax.grad(lambda x: jnp.sum(product(x) * g)))(u @ np.diag(values) @ v.T)
    close(got, want, "float64", 20)


def test_gradient_of_least_squares_with_orthonormal_columns():
    """All singular values are equal."""
    a, b = sent.eye(4)[:, :3], sent.arange(8.0).reshape(4, 2)
    got, want = (
        jax.jit(jax.grad(lambda a, fun=fun: jnp.sin(fun(a)).sum()))(a)
        for fun in (lambda a: bj.lstsq(a, b)[0], lambda a: jnp.linalg.solve(a.T @ a, a.T @ b))
    )
    close(got, want, "float64", 20)


# ---------------------------------------------------------------------------------------------------------------------
# Edges

SQUARE = {
    "cholesky": bj.cholesky, "lu": bj.lu, "lu_factor": bj.lu_factor, "det": bj.det, "slogdet": bj.slogdet, "qr": bj.qr,
    "qr complete": lambda x: bj.qr(x, mode="complete"), "qr raw": lambda x: bj.qr(x, mode="raw"), "geqrf": bj.geqrf,
    "svd": bj.svd, "svd full": lambda x: bj.svd(x, full_matrices=True), "batched_svda": lambda x: bj.batched_svda(x, 0),
    "eigh": bj.eigh, "eig": bj.eig, "inverse": bj.inverse, "matrix_exp": bj.matrix_exp,
    "solve": lambda x: bj.solve(x, x), "lstsq": lambda x: bj.lstsq(x, x),
    "householder_product": lambda x: bj.householder_product(x, x[..., 0, :] if x.shape[-2] else x[..., :0].sum(-2)),
    "ormqr": lambda x: bj.ormqr(x, x[..., :0].sum(-2), x),
}  # fmt: skip
WIDE = ("lu", "lu_factor", "qr", "qr complete", "qr raw", "geqrf", "svd", "svd full", "batched_svda", "ormqr", "lstsq")


def _total(fun):
    inexact = lambda x: [y for y in jax.tree.leaves(fun(x)) if jnp.issubdtype(y.dtype, jnp.inexact)]
    return lambda x: sum((y.sum().real for y in inexact(x)), sent.zeros(()))


@pytest.mark.parametrize("name, shape", [
    *((name, shape) for name in SQUARE for shape in ((0, 0), (0, 3, 3), (2, 0, 0))),
    *((name, shape) for name in WIDE for shape in ((2, 0, 3), (2, 3, 0))),
])  # fmt: skip
def test_empty_matrices(name, shape):
    """Results and gradients. What completes no vectors is the identity."""
    if name == "eig":
        _needs_eig()
    results, gradient = jax.jit(lambda x: (SQUARE[name](x), jax.grad(_total(SQUARE[name]))(x)))(sent.zeros(shape))
    assert gradient.shape == shape
    if name == "det":
        assert (results == 1).all()
    if name in ("qr complete", "svd full"):
        for y in (results[0], *results[2:]):
            close(y, np.broadcast_to(np.eye(y.shape[-1]), y.shape), "float64")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", SQUARE)
def test_what_is_not_finite_stays_in_its_matrix(name, bad):
    """It ends, with NaN or infinity in some result of that matrix, and the other matrix's results are those of that matrix alone."""
    if name == "eig":
        _needs_eig()
    if name in ("ormqr", "householder_product", "batched_svda"):
        pytest.skip("the results are empty, or products")
    x = _drawn(definite, (2, 3, 3))[0].at[0, 1, 0].set(bad)
    fun = jax.jit(SQUARE[name])
    pairs = [
        (np.asarray(y), np.asarray(z))
        for y, z in zip(jax.tree.leaves(fun(x)), jax.tree.leaves(fun(x[1:])), strict=True)
    ]
    for y, z in pairs:
        np.testing.assert_allclose(y[1], z[0], rtol=1e-12, atol=1e-12)
    if name in ("svd", "svd full", "eigh", "eig", "cholesky", "matrix_exp"):
        assert all(np.isnan(y[0]).all() for y, _ in pairs)
    elif name != "inverse" or np.isnan(bad):
        assert not all(np.isfinite(y[0]).all() for y, _ in pairs) or np.isinf(bad)


def test_a_failed_factorization_is_nan():
    x = jnp.stack([sent.eye(3), -sent.eye(3)])
    y = bj.cholesky(x)
    close(y[0], np.eye(3), "float64")
    assert np.isnan(y[1]).all()
    assert bj.lu(sent.zeros((2, 2)))[2].tolist() == [[0, 0], [0, 0]]
    assert not np.isfinite(bj.inverse(sent.zeros((2, 2)))).any()
    sign, logabsdet = bj.slogdet(sent.zeros((2, 2)))
    assert sign == 0 and logabsdet == -jnp.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "name", [name for name in SQUARE if name not in ("ormqr", "householder_product", "batched_svda", "eig")]
)
def test_half_precision_is_rounded_once(name, dtype):
    x = _drawn(definite, (2, 3, 3))[0].astype(dtype)
    half, single = jax.jit(lambda x: (SQUARE[name](x), SQUARE[name](x.astype(jnp.float32))))(x)
    for y, z in zip(jax.tree.leaves(half), jax.tree.leaves(single), strict=True):
        assert y.dtype == (dtype if z.dtype == jnp.float32 else z.dtype)
        np.testing.assert_allclose(
            np.asarray(y, np.float64), np.asarray(z, np.float64), rtol=float(jnp.finfo(dtype).eps), atol=1e-5
        )


# ---------------------------------------------------------------------------------------------------------------------
# What is refused

X, Y = np.ones((2, 3, 3)), np.ones((2, 4, 3))


@pytest.mark.parametrize("name", [
    "cholesky", "lu", "lu_factor", "det", "slogdet", "qr", "geqrf", "svd", "eigh", "eig", "inverse", "matrix_exp",
])  # fmt: skip
def test_what_is_no_matrix(name):
    fun, square = getattr(bj, name), name not in ("lu", "lu_factor", "qr", "geqrf", "svd")
    with pytest.raises(ValueError, match=rf"^{name}: x must have at least two dimensions, got shape \(3,\)"):
        fun(sent.ones(3))
    with pytest.raises(TypeError, match=f"^{name}: x must have one of the dtypes float32, .*, got int32"):
        fun(sent.ones((3, 3), jnp.int32))
    if square:
        with pytest.raises(ValueError, match=rf"^{name}: x must be square matrices, .*, got shape \(2, 4, 3\)"):
            fun(Y)


@pytest.mark.parametrize(
    "error, match, fun, args, kwargs",
    [
        (TypeError, "cholesky: upper must be True or False, got 1", bj.cholesky, (X,), {"upper": 1}),
        (ValueError, "qr: mode must be one of 'reduced', 'complete', 'r', 'raw', got 'full'", bj.qr, (X,), {"mode": "full"}),
        (TypeError, "svd: full_matrices must be True or False, got 0", bj.svd, (X,), {"full_matrices": 0}),
        (ValueError, "svd: degenerate must be one of 'nan', 'zero', got 'raise'", bj.svd, (X,), {"degenerate": "raise"}),
        (ValueError, "eigh: degenerate must be one of 'nan', 'zero', got None", bj.eigh, (X,), {"degenerate": None}),
        (ValueError, r"batched_svda: rank must be at most 3 for x of shape \(2, 4, 3\), got 4", bj.batched_svda, (Y, 4), {}),
        (ValueError, "batched_svda: rank must be at least 0, got -1", bj.batched_svda, (Y, -1), {}),
        (ValueError, "householder_product: x must have at least as many rows .*", bj.householder_product, (Y.mT, X[:, 0]), {}),
        (ValueError, r"householder_product: tau must have shape \(..., k\) .*, got shape \(2, 3, 3\)", bj.householder_product, (Y, X), {}),
        (ValueError, r"householder_product: tau must have the batch dimensions of x, \(2,\)", bj.householder_product, (Y, sent.ones((3, 3))), {}),
        (ValueError, r"ormqr: tau must have at most 3 elements a matrix, got shape \(2, 4\)", bj.ormqr, (Y, Y[:, :, 0], Y), {}),
        (TypeError, "ormqr: tau must have the dtype of x, float64, got float32", bj.ormqr, (Y, sent.ones((2, 3), jnp.float32), Y), {}),
        (ValueError, r"ormqr: c must have 4 rows, as x has rows, got shape \(2, 3, 3\)", bj.ormqr, (Y, X[0, :2], X), {}),
        (ValueError, r"ormqr: c must have 4 columns, as x has rows, got shape \(2, 4, 3\)", bj.ormqr, (Y, X[0, :2], Y), {"left": False}),
        (ValueError, r"ormqr: c must have the batch dimensions of x, \(2,\), got shape \(4, 3\)", bj.ormqr, (Y, X[0, :2], Y[0]), {}),
        (ValueError, "ormqr: block must be at least 1, got 0", bj.ormqr, (Y, X[0, :2], Y), {"block": 0}),
        (ValueError, r"solve: b must have shape \(3,\) or \(..., 3, k\) for a of shape \(2, 3, 3\), got \(2, 4, 3\)", bj.solve, (X, Y), {}),
        (ValueError, r"solve: the batch dimensions of b must broadcast with those of a, \(2,\), got \(3,\)", bj.solve, (X, sent.ones((3, 3, 1))), {}),
        (ValueError, r"lstsq: b must have shape \(4,\) or", bj.lstsq, (Y, jnp.float64(1)), {}),
        (TypeError, "lstsq: rcond must be a static number or None, got 'small'", bj.lstsq, (Y, Y), {"rcond": "small"}),
        (ValueError, "lstsq: rcond must be at least 0, got -1", bj.lstsq, (Y, Y), {"rcond": -1}),
        (ValueError, r"triangular_solve: b must have shape \(3,\) or \(..., k, 3\) for a of", bj.triangular_solve, (X, Y.mT), {"left": False}),
        (TypeError, "triangular_solve: unit_diagonal must be True or False, got 1", bj.triangular_solve, (X, X), {"unit_diagonal": 1}),
        (ValueError, r"cholesky_backward: dy must have shape \(2, 3, 3\), that of y, got \(3, 3\)", bj.cholesky_backward, (X, X[0]), {}),
        (ValueError, r"inverse_backward: y must be square matrices", bj.inverse_backward, (Y, Y), {}),
        (ValueError, r"solve_backward: y must have shape \(2, 3, 3\), that of a", bj.solve_backward, (X, Y, Y), {}),
        (ValueError, r"lu_factor_backward: pivots must have shape \(2, 3\)", bj.lu_factor_backward, (Y, sent.zeros((2, 4), jnp.int32), Y), {}),
        (TypeError, "lu_factor_backward: pivots must have one of the dtypes int32, got float64", bj.lu_factor_backward, (Y, Y, Y), {}),
        (ValueError, r"det_backward: dy must have shape \(2,\), the batch dimensions of x, got \(\)", bj.det_backward, (X, sent.ones(())), {}),
        (TypeError, "slogdet_backward: x must have one of the dtypes", bj.slogdet_backward, (X.astype(complex), X[:, 0, 0]), {}),
        (ValueError, r"eigh_backward: w must have shape \(2, 3\), that of v without the rows", bj.eigh_backward, (X[:, 0, 0], X, X[:, 0], X), {}),
        (ValueError, r"triangular_solve_backward: y must have the batch dimensions of a, \(2,\)", bj.triangular_solve_backward, (X, X[0], X[0]), {}),
        (ValueError, r"triangular_solve_backward: y must have 3 columns, as a has", bj.triangular_solve_backward, (X, X[:, :, :2], X), {"left": False}),
        (ValueError, r"triangular_solve_backward: dy must have shape \(2, 3, 3\), that of y", bj.triangular_solve_backward, (X, X, Y), {}),
        (TypeError, "solve: b must have the dtype of a, float64, got float32", bj.solve, (X, sent.ones(3, jnp.float32)), {}),
        (ValueError, "eig: implementation='native', but the op has no kernel; cusolver computes it", bj.eig, (X,), {"implementation": "native"}),
    ],
)  # fmt: skip
def test_what_is_refused(error, match, fun, args, kwargs):
    with pytest.raises(error, match=f"^{match}"):
        fun(*args, **kwargs)
