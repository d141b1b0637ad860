"""Reductions compared with NumPy's, JAX's and PyTorch's: edges, masks, accuracy, and shapes of every kind."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits

import baracuda_jax as bj

NAN, INF = math.nan, math.inf
BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])
NAMES = ("sum", "mean", "max", "min", "prod", "logsumexp", "vector_norm", "var", "std", "count_nonzero", "any", "all")
DERIVABLE = NAMES[:9]
NUMPY = {
    "logsumexp": lambda x, axis: np.log(np.exp(x).sum(axis)),
    "vector_norm": lambda x, axis: np.sqrt((x * x).sum(axis)),
}


@pytest.fixture(autouse=True)
def _by_kernels():
    """Also where XLA is the automatic choice."""
    with bj.prefer("native"):
        yield


def _numpy(name, x, axis):
    return NUMPY.get(name, getattr(np, name, None))(x, axis)


def _draw(*shape):
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape)


# ---------------------------------------------------------------------------------------------------------------------
# Shapes


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 1, 5, 1), (1, 1, 1, 7), (4, 3, 2, 1), (1, 4, 1, 3)])
def test_every_set_of_axes(shape):
    """One program for each op: each set of axes."""
    x = _draw(*shape)
    sets = [axes for count in range(5) for axes in itertools.combinations(range(4), count)]
    for name in ("sum", "max", "var"):
        got = jax.jit(lambda x, name=name: [getattr(bj, name)(x, axes, implementation="native") for axes in sets])(x)
        for axes, y in zip(sets, got, strict=True):
            np.testing.assert_allclose(y, _numpy(name, x, axes), rtol=1e-12, atol=1e-15, err_msg=f"{name} {axes}")


LARGE = [
    ((3, 70001), 1),
    ((70001, 3), 0),
    ((5000, 40), 0),
    ((300, 1100), 0),
    ((1500, 33), 1),
    ((9000, 8), 1),
    ((70, 4099), 1),
    ((40, 129), 1),
    ((600, 2, 700), (0, 2)),
]


@pytest.mark.parametrize("shape, axis", LARGE, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float64"])
def test_parts_of_long_lines(shape, axis, dtype):
    """Also those of rows that are turned, of columns in tiles, and of less than a tile."""
    x = sent.asarray(_draw(*shape), dtype)
    names = [
        name for name in NAMES if name != "prod" and not (dtype == "int8" and name in ("logsumexp", "vector_norm"))
    ]
    got = jax.jit(lambda x: [getattr(bj, name)(x, axis=axis, implementation="native") for name in names])(x)
    wide = np.asarray(x.astype(jnp.float64))
    for name, y in zip(names, got, strict=True):
        want = _numpy(name, wide, axis)
        tolerance = {"bfloat16": 8e-3, "float32": 2e-6, "int8": 2e-6}.get(dtype, 1e-12)
        np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=tolerance, err_msg=name)


@pytest.mark.parametrize("shape, axis", LARGE[:4], ids=str)
def test_gradients_of_long_lines(shape, axis):
    x = sent.asarray(_draw(*shape))
    for name in ("sum", "max", "logsumexp", "vector_norm", "std"):
        both = [
            jax.jit(
                jax.grad(lambda x, p=p, name=name: jnp.sin(getattr(bj, name)(x, axis=axis, implementation=p)).sum())
            )(x)
            for p in ("native", "xla")
        ]
        np.testing.assert_allclose(*both, rtol=1e-9, atol=1e-12, err_msg=name)


def test_more_groups_of_axes_than_a_kernel_sees():
    x = _draw(*(2,) * 14)
    axes = tuple(range(0, 14, 2))
    np.testing.assert_allclose(bj.sum(x, axes, implementation="native"), x.sum(axes), rtol=1e-12)
    dx = jax.jit(
        jax.grad(lambda x: (bj.max(x, axes, implementation="native") * sent.arange(128.0).reshape((2,) * 7)).sum())
    )(x)
    want = np.where(x == x.max(axes, keepdims=True), np.arange(128.0).reshape((1, 2) * 7), 0)
    np.testing.assert_allclose(dx, want)


@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_scalars_and_no_axes(name, implementation):
    fun = getattr(bj, name)
    np.testing.assert_allclose(
        fun(jnp.float32(3), implementation=implementation), _numpy(name, np.float64(3), ()), rtol=1e-6
    )
    x = _draw(3, 4)
    np.testing.assert_allclose(
        fun(x, axis=(), implementation=implementation), _numpy(name, x[..., None], -1), rtol=1e-6, atol=1e-9
    )


EMPTY = {
    "sum": 0, "mean": NAN, "prod": 1, "logsumexp": -INF, "vector_norm": 0, "var": NAN, "std": NAN, "count_nonzero": 0,
    "any": False, "all": True,
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("name", EMPTY)
def test_of_no_elements(name, implementation):
    fun = functools.partial(getattr(bj, name), implementation=implementation)
    np.testing.assert_array_equal(fun(sent.zeros((3, 0)), axis=1), [EMPTY[name]] * 3)
    np.testing.assert_array_equal(fun(sent.zeros((0, 3)), axis=0), [EMPTY[name]] * 3)
    assert fun(sent.zeros((0, 3)), axis=1).shape == (0,)
    if name in DERIVABLE:
        assert jax.jit(jax.grad(lambda x: fun(x, axis=1).sum()))(sent.zeros((3, 0))).shape == (3, 0)


@BOTH
def test_extrema_of_no_elements(implementation):
    for fun in (bj.max, bj.min):
        with pytest.raises(ValueError, match="x must have at least one element along axis, or initial be given"):
            fun(sent.zeros((3, 0)), 1, implementation=implementation)
        np.testing.assert_array_equal(fun(sent.zeros((3, 0)), 1, initial=2, implementation=implementation), [2] * 3)
        np.testing.assert_array_equal(
            fun(sent.zeros((3, 0), jnp.uint8), 1, initial=2, implementation=implementation), [2] * 3
        )
        assert fun(sent.zeros((0, 3)), 1, implementation=implementation).shape == (0,)


# ---------------------------------------------------------------------------------------------------------------------
# Special values

SPECIAL = [
    [1.0, NAN, 2.0], [INF, 1.0, -INF], [-INF, -INF, -INF], [INF, INF, 1.0], [-0.0, -0.0, -0.0], [0.0, -0.0, 0.0],
    [-0.0, 3.0, -1.0], [NAN, NAN, NAN], [0.0, INF, 1.0], [1e38, 2e38, 3e38], [-INF, 0.0, NAN],
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("name", NAMES[:9])
def test_special_values(name, implementation):
    """As JAX's in float64, but where its own sums overflow."""
    x = sent.asarray(SPECIAL)
    theirs = {"logsumexp": jax.nn.logsumexp, "vector_norm": lambda x, axis: jnp.linalg.vector_norm(x, axis=axis)}
    want = theirs.get(name, getattr(jnp, name, None))(x, axis=1)
    np.testing.assert_allclose(getattr(bj, name)(x, axis=1, implementation=implementation), want, rtol=1e-12)


@BOTH
def test_signs_of_zeros(implementation):
    signs = lambda y: np.signbit(np.asarray(y, np.float32))
    for dtype in (jnp.float32, jnp.bfloat16, jnp.float16, jnp.float64):
        x = sent.asarray([[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0]], dtype)
        if implementation == "native":  # plain JAX leaves it open
            np.testing.assert_array_equal(signs(bj.max(x, 1, implementation=implementation)), [False, False, True])
            np.testing.assert_array_equal(signs(bj.min(x, 1, implementation=implementation)), [True, True, True])
        y = bj.prod(sent.asarray([[-0.0, 2.0], [-2.0, 0.0], [-2.0, -0.0]], dtype), 1, implementation=implementation)
        np.testing.assert_array_equal(signs(y), [True, True, False])


@BOTH
def test_gradients_at_ties(implementation):
    x = sent.asarray([[1.0, 3.0, 3.0, 3.0], [0.0, -0.0, -1.0, 0.0], [NAN, 1.0, NAN, 2.0]])
    dx = jax.jit(
        jax.grad(lambda x: (bj.max(x, 1, implementation=implementation) * sent.asarray([3.0, 6.0, 1.0])).sum())
    )(x)
    np.testing.assert_allclose(dx, [[0, 1, 1, 1], [2, 2, 0, 2], [0.5, 0, 0.5, 0]])
    dx = jax.jit(jax.grad(lambda x: bj.vector_norm(x, INF, 1, implementation=implementation).sum()))(
        sent.asarray([[1.0, -3.0, 3.0]])
    )
    np.testing.assert_allclose(dx, [[0, -0.5, 0.5]])


@BOTH
def test_gradients_of_products_with_zeros(implementation):
    x = sent.asarray([[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [-0.0, 3.0, 4.0]])
    want = [[12, 8, 6], [0, 8, 0], [0, 0, 0], [12, 0, 0]]
    for dtype in (jnp.float32, jnp.bfloat16, jnp.complex64):
        dx = jax.vjp(lambda x: bj.prod(x, 1, implementation=implementation), x.astype(dtype))[1](sent.ones(4, dtype))[0]
        np.testing.assert_allclose(np.asarray(dx).astype(np.complex64), want)
        t = jax.jvp(
            lambda x: bj.prod(x, 1, implementation=implementation), (x.astype(dtype),), (sent.ones((4, 3), dtype),)
        )[1]
        np.testing.assert_allclose(np.asarray(t).astype(np.complex64), np.sum(want, 1))


@BOTH
def test_gradients_where_others_have_none(implementation):
    """Zeros, for a constant row, a zero vector, and rows of -inf."""
    grad = lambda fun, x: jax.grad(lambda x: fun(x, axis=-1, implementation=implementation).sum())(sent.asarray(x))
    np.testing.assert_array_equal(grad(bj.std, [[2.0, 2.0, 2.0]]), [[0, 0, 0]])
    for order in (1, 2, 3, 0.5, -2):
        dx = grad(functools.partial(bj.vector_norm, ord=order), [[0.0, 0.0]])
        np.testing.assert_array_equal(dx, [[0, 0]])
    np.testing.assert_allclose(grad(bj.vector_norm, [[3.0, -4.0, 0.0]]), [[0.6, -0.8, 0]])
    np.testing.assert_array_equal(grad(bj.logsumexp, [[-INF, -INF], [-INF, 0.0]]), [[0, 0], [0, 1]])


@BOTH
@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, 7.5, INF, -INF, -1, -2.5])
def test_norms(order, implementation):
    x = np.random.default_rng(0).standard_normal((6, 37))
    x[0, 3] = 0
    fun = functools.partial(bj.vector_norm, ord=order, axis=1, implementation=implementation)
    for dtype in ("float32", "float64", "float16"):
        y = fun(sent.asarray(x, dtype))
        with np.errstate(divide="ignore"):
            close(y, np.linalg.norm(np.asarray(sent.asarray(x, dtype), np.float64), order, 1), dtype, 4)
    if order > 0:
        for dtype, small, large in (("float32", 1e-30, 1e30), ("float64", 1e-300, 1e300), ("bfloat16", 1e-30, 1e30)):
            for scale in (small, large):
                y = np.asarray(fun(sent.asarray(x * scale, dtype)), np.float64) / scale
                if 0 < order < 1 and scale == large and dtype != "float64":
                    continue  # what is more than the dtype can hold
                np.testing.assert_allclose(y, np.linalg.norm(x, order, 1), rtol=3e-2 if dtype == "bfloat16" else 3e-5)


# ---------------------------------------------------------------------------------------------------------------------
# Accuracy


@pytest.mark.parametrize("shape, axis", [((2**20,), 0), ((3, 2**18 + 5), 1), ((2**16, 9), 0)], ids=str)
def test_errors_of_sums_grow_with_a_logarithm(shape, axis):
    x = np.random.default_rng(0).uniform(0, 1, shape).astype(np.float32)
    want, size = x.sum(axis, dtype=np.float64), np.abs(x).sum(axis, dtype=np.float64)
    bound = (math.log2(x.shape[axis]) + 8) * 2.0**-24 * size
    assert (np.abs(np.asarray(bj.sum(x, axis, implementation="native"), np.float64) - want) <= bound).all()
    x = x + 1000  # of which half has none of what a narrow accumulator would lose
    mean = np.asarray(bj.mean(sent.asarray(x, jnp.float16), axis, implementation="native"), np.float64)
    np.testing.assert_allclose(mean, np.asarray(x, np.float16).mean(axis, dtype=np.float64), rtol=1e-3)


@pytest.mark.parametrize("shape, axis", [((7, 1000), 1), ((1000, 40), 0), ((100003,), 0), ((64, 50), 1)], ids=str)
def test_variance_of_constants_and_of_numbers_far_from_zero(shape, axis):
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        x = sent.full(shape, 0.1, dtype)
        for fun in (bj.var, bj.std):
            np.testing.assert_array_equal(np.asarray(fun(x, axis, implementation="native"), np.float64), 0)
    x = (1e4 + np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    for ddof in (0, 1, 2.5):
        want = np.var(x.astype(np.float64), axis) * shape[axis] / (shape[axis] - ddof)
        np.testing.assert_allclose(bj.var(x, axis, ddof=ddof, implementation="native"), want, rtol=2e-6)
    assert np.isnan(bj.var(sent.ones(2), ddof=2)) and np.isnan(bj.std(sent.ones(2), correction=3))


def test_integers():
    x = sent.full((300, 7), 100, jnp.int8)
    assert bj.sum(x, 0).dtype == jnp.int64 and (bj.sum(x, 0) == 30000).all()
    assert bj.sum(x.astype(jnp.uint8), 0).dtype == jnp.uint64
    with jax.enable_x64(False):
        assert bj.sum(x, 0).dtype == jnp.int32 and bj.prod(x > 0, 0).dtype == jnp.int32
    np.testing.assert_array_equal(bj.sum(-x, 1), -700)
    np.testing.assert_array_equal(bj.prod(sent.asarray([[-3, 5], [2, -7]], jnp.int16), 1), [-15, -14])
    top = sent.asarray([2**63 - 1, 1], jnp.int64)
    assert bj.sum(top) == -(2**63) and bj.prod(top) == 2**63 - 1
    for dtype in (jnp.int8, jnp.uint16, jnp.int32, jnp.uint64):
        ends = sent.asarray([jnp.iinfo(dtype).min, 1, jnp.iinfo(dtype).max], dtype)
        assert bj.max(ends) == ends[2] and bj.min(ends) == ends[0]
        assert bj.max(ends).dtype == bj.min(ends).dtype == dtype


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


@BOTH
def test_where_and_initial(implementation):
    x = _draw(5, 6)
    mask = np.random.default_rng(1).random((5, 6)) > 0.4
    mask[2] = False
    k = dict(where=mask, implementation=implementation)

    @jax.jit
    def everything(x):
        values = {
            "sum": bj.sum(x, 1, initial=2.5, **k),
            "prod": bj.prod(x, 1, initial=2.5, **k),
            "max": bj.max(x, 0, initial=-1, **k),
            "min": bj.min(x, 0, initial=9, **k),
            "logsumexp": bj.logsumexp(x, 0, **k),
            "any": bj.any(x > 1, 1, **k),
            "all": bj.all(x > 1, 1, **k),
        }
        for name in ("mean", "var", "std"):
            y, pull = jax.vjp(lambda x, name=name: getattr(bj, name)(x, 0, **k), x)
            theirs = jax.grad(lambda x, name=name: getattr(jnp, name)(x, 0, where=mask).sum())(x)
            values[name] = y, pull(jnp.ones_like(y))[0], theirs
        return values

    got = everything(x)
    close(got["sum"], x.sum(1, where=mask, initial=2.5), "float64")
    close(got["prod"], x.prod(1, where=mask, initial=2.5), "float64")
    close(got["max"], x.max(0, where=mask, initial=-1), "float64")
    close(got["min"], x.min(0, where=mask, initial=9), "float64")
    close(got["logsumexp"], np.log(np.exp(x).sum(0, where=mask)), "float64")
    np.testing.assert_array_equal(got["any"], (x > 1).any(1, where=mask))
    np.testing.assert_array_equal(got["all"], (x > 1).all(1, where=mask))
    for name in ("mean", "var", "std"):
        y, dx, theirs = got[name]
        close(y, getattr(np, name)(x, 0, where=mask), "float64")
        close(dx, np.nan_to_num(theirs), "float64", 4)  # NaN where one element counts
        np.testing.assert_array_equal(np.asarray(dx)[~mask], 0)
    row = bj.sum(x, 1, where=mask[0], implementation=implementation)
    close(row, x.sum(1, where=np.broadcast_to(mask[0], x.shape)), "float64")


@pytest.mark.parametrize("name", NAMES)
def test_keepdims(name):
    fun, x = getattr(bj, name), _draw(3, 4, 5)
    for axis in (None, 1, (0, 2), ()):
        y = fun(x, axis=axis, keepdims=True)
        same_bits(jnp.squeeze(y, () if axis == () else axis), fun(x, axis=axis))
        assert y.shape == tuple(np.empty((3, 4, 5)).sum(axis, keepdims=True).shape)


@BOTH
def test_backward_functions(implementation):
    x = sent.asarray(_draw(3, 4, 5))
    k = dict(axis=(0, 2), implementation=implementation)
    dy = sent.asarray(_draw(4))
    pull = lambda fun: jax.vjp(lambda x: fun(x, **k), x)[1](dy)[0]
    same_bits(bj.sum_backward(dy, x.shape, **k), pull(bj.sum))
    same_bits(bj.mean_backward(dy[None, :, None], x.shape, keepdims=True, **k), pull(bj.mean))
    for name in ("max", "min", "prod", "var", "std", "logsumexp", "vector_norm"):
        fun, back = getattr(bj, name), getattr(bj, f"{name}_backward")
        for kept in (False, True):
            y, *saved = fun(x, return_residuals=True, keepdims=kept, **k)
            ct = dy[None, :, None] if kept else dy
            read = saved if name in ("prod", "vector_norm") else saved[::-1] if name == "std" else [y, *saved]
            same_bits(back(x, *read, ct, keepdims=kept, **k), pull(fun))
    same_bits(
        bj.vector_norm_backward(x, bj.vector_norm(x, 3, **k), dy, 3, **k),
        pull(functools.partial(bj.vector_norm, ord=3)),
    )


@BOTH
@pytest.mark.parametrize("shape", [(4, 5), (1, 5), (4, 1), (5,), (1,), (), (1, 1)])
def test_unbroadcast(shape, implementation):
    x = _draw(3, 4, 5)
    for op, join in {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}.items():
        want = x
        for axis in reversed(range(3)):
            i = axis - 3 + len(shape)
            if i < 0 or shape[i] == 1:
                want = join.reduce(want, axis, keepdims=True)
        close(bj.unbroadcast(x, shape, op, implementation=implementation), want.reshape(shape), "float64")
    pull = jax.linear_transpose(lambda y: jnp.broadcast_to(y, x.shape), sent.zeros(shape))
    close(bj.unbroadcast(x, shape, implementation=implementation), pull(x)[0], "float64")


def test_unbroadcast_of_no_elements():
    x = sent.zeros((0, 3))
    for op, want in {"sum": 0, "max": -INF, "min": INF, "prod": 1}.items():
        np.testing.assert_array_equal(bj.unbroadcast(x, (1, 3), op), [[want] * 3])
    assert bj.unbroadcast(x.astype(jnp.int8), (3,), "max")[0] == -128 and not bj.unbroadcast(x > 0, (3,), "max")[0]


@BOTH
@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (2, 5, 6), (3, 1, 4), (0, 3)])
def test_traces(shape, implementation):
    x = _draw(*shape)
    axes, offsets = itertools.permutations(range(len(shape)), 2), (0, 1, -2, 50, -50)
    ways = [(offset, *pair) for pair, offset in itertools.product(axes, offsets)]

    @jax.jit
    def everything(x):
        def one(*way):
            y, pull = jax.vjp(lambda x: bj.trace(x, *way, implementation=implementation), x)
            dy = jnp.cos(y)
            return y, dy, pull(dy)[0], bj.trace_backward(dy, shape, *way, implementation=implementation)

        return [one(*way) for way in ways]

    for (offset, axis1, axis2), (y, dy, dx, backward) in zip(ways, everything(x), strict=True):
        close(y, np.trace(x, offset, axis1, axis2), "float64")
        want = np.zeros(shape)
        diagonal = np.moveaxis(want, (axis1, axis2), (0, 1))
        for i in range(max(0, -offset), min(shape[axis1], shape[axis2] - offset)):
            diagonal[i, i + offset] = dy
        close(dx, want, "float64")
        same_bits(backward, want)


def test_traces_of_integers():
    x = sent.full((300, 300), 100, jnp.int8)
    assert bj.trace(x) == 30000 and bj.trace(x).dtype == jnp.int64


def test_two_reduced_axes_over_two_axes_of_a_mesh():
    """Results of shards are combined once, over both."""
    if len(jax.devices("cpu")) < 8:
        pytest.skip("takes eight devices")
    mesh = jax.make_mesh(
        (4, 2), ("d", "e"), axis_types=(jax.sharding.AxisType.Auto,) * 2, devices=jax.devices("cpu")[:8]
    )
    x = sent.asarray(_draw(8, 3, 16))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d", None, "e"))
    for name in NAMES:
        fun = jax.jit(lambda x, name=name: getattr(bj, name)(x, axis=(0, 2), implementation="native"))
        close(fun(jax.device_put(x, sharding)), fun(x), "float64" if name in DERIVABLE else "int32", 4)


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch


def test_pytorchs_gradients():
    torch = pytest.importorskip("torch")
    data = np.round(4 * np.random.default_rng(0).standard_normal((5, 9))) / 2
    theirs = {
        "sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "prod": torch.prod,
        "logsumexp": torch.logsumexp, "vector_norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
        "var": lambda x, dim: torch.var(x, dim, correction=0), "std": lambda x, dim: torch.std(x, dim, correction=0),
    }  # fmt: skip
    for name, fun in theirs.items():
        x = torch.tensor(data, requires_grad=True)
        y = fun(x, 1)
        weights = np.arange(1.0, 6)
        (dx,) = torch.autograd.grad((y * torch.tensor(weights)).sum(), x)
        got = jax.jit(jax.value_and_grad(lambda x, name=name: (getattr(bj, name)(x, axis=1) * weights).sum()))(
            sent.asarray(data)
        )
        close(got[0], (y.detach().numpy() * weights).sum(), "float64", 4)
        close(got[1], dx.numpy(), "float64", 4)
