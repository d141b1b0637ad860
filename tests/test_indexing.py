"""Ops of indices compared with NumPy and PyTorch: values and gradients, what is out of range, the order of writes, and what is
refused."""

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close, same_bits
from oracles import indexing as oracles
from programs import FLOATS, normal

import baracuda_jax as bj

RNG = np.random.default_rng(0)
X = normal((4, 6), "float32")
INDEX = RNG.integers(-6, 6, (4, 9))
ROWS = RNG.integers(0, 4, 7)
FUNCTIONS = {  # name: (arguments, in PyTorch)
    "gather": ((INDEX % 6, 1), lambda x, i: torch.gather(x, 1, i)),
    "index_select": ((ROWS, 0), lambda x, i: torch.index_select(x, 0, i)),
    "gather_rows": ((ROWS,), lambda x, i: torch.index_select(x, 0, i)),
    "masked_fill": ((INDEX[:, :6] > 0, -2.0), lambda x, mask: x.masked_fill(mask, -2.0)),
}
ADDING = {
    "scatter_add": ((INDEX % 6, (4, 9), 1), lambda x, i, src: torch.scatter_add(x, 1, i, src)),
    "index_add": ((ROWS, (7, 6), 0), lambda x, i, src: torch.index_add(x, 0, i, src)),
}


def _everything(fun, args, dy):
    """The value and the gradients, in one program."""

    @jax.jit
    def run(*args):
        y, pull = jax.vjp(fun, *args)
        return y, pull(dy)

    return run(*args)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_torchs(name, dtype):
    (index, *rest), theirs = FUNCTIONS[name]
    x = normal((4, 6), dtype)
    fun = lambda x: getattr(bj, name)(x, index, *rest)
    dy = normal(jax.eval_shape(fun, x).shape, dtype, 1)
    want, (gradient,) = by_torch.vjp(lambda x: theirs(x, torch.tensor(index)), (x,), dy)
    y, (dx,) = _everything(fun, (x,), dy)
    close(y, want, dtype)
    close(dx, gradient, dtype, scale=4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ADDING)
def test_sums_and_their_gradients_are_torchs(name, dtype):
    (index, shape, axis), theirs = ADDING[name]
    x, src, dy = normal((4, 6), dtype), normal(shape, dtype, 1), normal((4, 6), dtype, 2)
    wide = lambda x, src: theirs(x.double(), torch.tensor(index), src.double()).to(x.dtype)
    want, gradients = by_torch.vjp(wide, (x, src), dy)
    y, pulled = _everything(lambda x, src: getattr(bj, name)(x, index, src, axis), (x, src), dy)
    close(y, want, dtype)
    for got, expected in zip(pulled, gradients, strict=True):
        close(got, expected, dtype)
    for got, expected in zip(getattr(bj, f"{name}_backward")(index, dy, axis), gradients, strict=True):
        close(got, expected, dtype)


def test_alpha_of_the_gradient():
    src, dy = normal((7, 6)), normal((4, 6), seed=1)
    y, pulled = _everything(lambda src: bj.index_add(sent.zeros((4, 6)), ROWS, src, alpha=-2.5), (src,), dy)
    close(y, oracles.index_add(np.zeros((4, 6)), ROWS, np.asarray(src), alpha=-2.5), "float64")
    close(pulled[0], bj.index_add_backward(ROWS, dy, alpha=-2.5)[1], "float64")
    close(pulled[0], -2.5 * np.asarray(dy)[ROWS], "float64")


# ---------------------------------------------------------------------------------------------------------------------
# Out of range

FILL = {
    "float32": np.nan,
    "bfloat16": np.nan,
    "complex64": np.nan,
    "int8": -128,
    "int32": -(2**31),
    "uint16": 65535,
    "bool": True,
}


@pytest.mark.parametrize("dtype", FILL)
@pytest.mark.parametrize("name", ["gather", "index_select"])
def test_what_is_out_of_range_is_filled(name, dtype):
    x = sent.arange(3).astype(dtype)
    index = sent.asarray([0, -1, 3, -4, 99, -99])
    want = np.array([x[0], x[2], *[FILL[dtype]] * 4])
    np.testing.assert_array_equal(np.asarray(getattr(bj, name)(x, index, 0)).astype(want.dtype), want)
    given = getattr(bj, name)(x, index, 0, fill_value=dtype == "bool")
    np.testing.assert_array_equal(given[2:], np.full(4, dtype == "bool"))
    np.testing.assert_array_equal(getattr(bj, name)(x, index, 0, mode="clip"), x[np.array([0, 2, 2, 0, 2, 0])])


WIDTHS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", WIDTHS)
def test_indices_of_any_width(dtype):
    """Of an axis that is longer than 8 bits hold, and with entries that would wrap in 32 bits."""
    info, x = np.iinfo(dtype), sent.arange(300.0)
    entries = [0, 100, 127, info.max, info.min, min(info.max, 2**32 + 7), max(info.min, -300), max(info.min, -301)]
    index = np.array(entries, dtype)
    want = np.array([float(i % 300) if -300 <= i < 300 else np.nan for i in entries])
    np.testing.assert_array_equal(bj.gather(x, index), want)
    rows = np.array([float(i) if 0 <= i < 300 else 0 for i in entries])
    np.testing.assert_array_equal(bj.gather_rows(x, index), rows)
    ones = sent.ones(len(entries))
    np.testing.assert_array_equal(bj.scatter(x, index, -ones), oracles.scatter(np.asarray(x), index, -ones))
    np.testing.assert_array_equal(
        bj.index_add(x, index, ones), oracles.index_add(np.asarray(x), index, np.asarray(ones))
    )
    np.testing.assert_array_equal(bj.one_hot(index, 300), oracles.one_hot(index, 300))


def test_gradients_of_what_is_out_of_range_are_0():
    index = sent.asarray([1, 7, -9, 1])
    for fun in (bj.gather, bj.index_select):
        gradient = jax.jit(jax.grad(lambda x, fun=fun: jnp.nansum(fun(x, index, 0) ** 2)))(sent.asarray([1.0, 3.0]))
        assert gradient.tolist() == [0, 12]
    assert jax.jit(jax.grad(lambda x: bj.gather_rows(x, index).sum()))(sent.ones(2)).tolist() == [0, 2]
    for fun in (bj.scatter, bj.scatter_add, bj.scatter_mul):
        gradient = jax.jit(jax.grad(lambda src, fun=fun: fun(sent.ones(2), index, src).sum()))(sent.ones(4))
        assert gradient.tolist() == [fun is not bj.scatter, 0, 0, 1]


@pytest.mark.parametrize("size", [0, 1])
def test_axes_of_sizes_0_and_1(size):
    x, index = sent.zeros((2, size)), sent.asarray([[0, -1, 1]] * 2)
    want = np.full((2, 3), np.nan)
    want[:, : 2 * size] = 0
    np.testing.assert_array_equal(bj.gather(x, index), want)
    np.testing.assert_array_equal(bj.gather_rows(x.T, index[0]), np.zeros((3, 2)))
    for fun in (bj.scatter, bj.scatter_add):
        assert fun(x, index, 1.0).shape == fun(x, index[:, :0], 1.0).shape == (2, size)
    assert (
        bj.index_add(x, index[0], sent.ones((2, 3)), 1).shape == bj.one_hot(sent.zeros(2, int), size).shape == (2, size)
    )
    for fun in (bj.gather, bj.scatter):
        assert fun(X[:0], sent.zeros((0, 2), int), *([0.0] if fun is bj.scatter else [])).shape[0] == 0


# ---------------------------------------------------------------------------------------------------------------------
# Order


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool", "complex64"])
def test_the_last_of_many_writes_stays(dtype):
    x = sent.zeros((3, 5), dtype)
    index = RNG.integers(-5, 7, (3, 1000))
    src = sent.asarray(RNG.integers(0, 100, (3, 1000)), dtype)
    np.testing.assert_array_equal(
        jax.jit(bj.scatter)(x, index, src), oracles.scatter(np.asarray(x), index, np.asarray(src))
    )


def test_gradients_of_many_writes():
    """Only what stayed has one, of any order."""
    index = sent.asarray([1, 1, 0, 1])
    y, (dx, dsrc) = _everything(
        lambda x, src: bj.scatter(x, index, src), (sent.ones(3), sent.arange(4.0)), sent.asarray([1.0, 2.0, 4.0])
    )
    assert y.tolist() == [2, 3, 1] and dx.tolist() == [0, 0, 4] and dsrc.tolist() == [0, 0, 1, 2]
    cubes = lambda src: (bj.scatter(sent.ones(3), index, src) ** 3).sum()
    np.testing.assert_array_equal(jax.jit(jax.hessian(cubes))(sent.arange(4.0)), np.diag([0.0, 0, 12, 18]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_are_rounded_once(dtype):
    n, index = 4096, sent.zeros(4096, int)
    for y in (
        bj.index_add(sent.ones(1, dtype), index, sent.ones(n, dtype)),
        bj.scatter_add(sent.ones(1, dtype), index, 1.0),
    ):
        assert y.tolist() == sent.asarray([n + 1.0], dtype).tolist()


@pytest.mark.parametrize(
    "sizes", [(2, 40000, 70), (9, 40000, 70), (2, 70, 40000), (2, 2**15 + 1, 2**15 + 1), (2, 2**15, 2**15)], ids=str
)
@pytest.mark.parametrize("name", ["scatter_add", "scatter_mul", "scatter_max", "scatter_min"])
def test_rows_of_any_length(name, sizes):
    """Long ones are combined by segments, others on chip."""
    rows, count, items = sizes
    x, src, dy = normal((rows, count)), normal((rows, items), seed=1), normal((rows, count), seed=2)
    index = RNG.integers(-count - 2, count + 2, (rows, items), dtype=np.int32)
    fun = lambda how: lambda x, src: getattr(bj, name)(x, index, src, implementation=how)
    got, want = (_everything(fun(how), (x, src), dy) for how in ("native", "xla"))
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        close(a, b, "float64")


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["scatter_max", "scatter_min"])
def test_the_gradient_of_an_extreme_that_ties(name, dtype, implementation):
    """It goes to x's, or else to the first; and to a NaN, of which there are more."""
    draw = lambda *shape: RNG.choice(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], shape, p=[0.2] * 4 + [0.08, 0.08, 0.04]
    )
    x, src, index, dy = draw(40, 6), draw(40, 9), RNG.integers(-7, 7, (40, 9)), np.asarray(normal((40, 6), dtype))
    y, dx, arg = x.copy(), dy.copy(), np.full((40, 6), -1)
    for row, item in np.ndindex(40, 9):
        to = index[row, item]
        if not -6 <= to < 6:
            continue
        new, old = src[row, item], y[row, to]
        is_beyond = new > old if name == "scatter_max" else new < old
        if is_beyond or np.isnan(new) > np.isnan(old):
            y[row, to], dx[row, to] = new, 0
            arg[row, to] = item
    dsrc = np.zeros((40, 9), dy.dtype)
    for row, to in np.argwhere(arg >= 0):
        dsrc[row, arg[row, to]] = dy[row, to]
    fun = lambda x, src: getattr(bj, name)(x, index, src, implementation=implementation)
    found, pulled = _everything(fun, (sent.asarray(x, dtype), sent.asarray(src, dtype)), dy)
    found, is_number = np.asarray(found, np.float32), ~np.isnan(y)
    np.testing.assert_array_equal(found, y)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(y)[is_number])
    for a, b in zip(pulled, (dx, dsrc), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_the_gradient_of_a_product_with_zeros(dtype, implementation):
    """It is that of all other factors, of which none or one or more are zero."""
    draw = lambda *shape: RNG.choice([0.0, -0.0, 0.5, -2.0, 1.5, 3.0], shape, p=[0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    x, src, index, dy = draw(40, 6), draw(40, 12), RNG.integers(-7, 7, (40, 12)), draw(40, 6)
    dx, dsrc = np.zeros_like(x), np.zeros_like(src)
    for row, to in np.ndindex(40, 6):
        items = np.flatnonzero((index[row] == to) | (index[row] == to - 6))
        dx[row, to] = dy[row, to] * src[row, items].prod()
        for item in items:
            dsrc[row, item] = dy[row, to] * x[row, to] * src[row, items[items != item]].prod()
    fun = lambda x, src: bj.scatter_mul(x, index, src, implementation=implementation)
    _, pulled = _everything(fun, (sent.asarray(x, dtype), sent.asarray(src, dtype)), sent.asarray(dy, dtype))
    for a, b in zip(pulled, (dx, dsrc), strict=True):
        close(a, b, dtype)


@pytest.mark.parametrize("name", ["scatter_mul", "scatter_max", "scatter_min"])
def test_a_backward_function_is_the_gradient(name):
    x, src, index, dy = normal((5, 7)), normal((5, 19), seed=1), RNG.integers(-8, 8, (5, 19)), normal((5, 7), seed=2)
    _, want = _everything(lambda x, src: getattr(bj, name)(x, index, src), (x, src), dy)
    for a, b in zip(getattr(bj.backward, f"{name}_backward")(x, index, src, dy), want, strict=True):
        same_bits(a, b)


def test_a_source_may_be_larger_and_an_index_smaller():
    index = np.array([[0, 2], [1, 1]])
    src = normal((3, 5))
    for name in ("scatter", "scatter_add"):
        want = getattr(oracles, name)(np.asarray(normal((4, 6))), index, np.asarray(src)[:2, :2])
        close(getattr(bj, name)(normal((4, 6)), index, src), want, "float64")
    close(bj.gather(normal((4, 6)), index), oracles.gather(np.asarray(normal((4, 6))), index), "float64")


# ---------------------------------------------------------------------------------------------------------------------
# One value, one class


def test_masked_fill_casts_the_value():
    mask = sent.asarray([True, False])
    for x, value in (
        (sent.arange(2), 7),
        (sent.ones(2, jnp.bfloat16), 2),
        (sent.asarray([True, True]), False),
        (sent.ones(2), -jnp.inf),
    ):
        y = bj.masked_fill(x, mask, value)
        assert y.dtype == x.dtype and y.tolist() == [value, x[1].item()]
    assert bj.masked_fill(jnp.float32(1), mask, 0).tolist() == [0, 1]
    dx, dvalue = jax.jit(jax.grad(lambda x, v: bj.masked_fill(x, mask, v).sum(), (0, 1)))(sent.ones((3, 2)), 2.0)
    assert dx.tolist() == [[0, 1]] * 3 and dvalue == 3


def test_no_nan_of_what_is_masked():
    gradient = jax.jit(jax.grad(lambda x: bj.masked_fill(jnp.log(x), x <= 0, 0.0).sum()))(sent.asarray([1.0, 2.0]))
    assert gradient.tolist() == [1, 0.5]


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_one_hot_is_jaxs(axis, dtype):
    ids = sent.asarray([[0, 3, -1], [4, 2, 9]])
    same_bits(bj.one_hot(ids, 4, axis, dtype=dtype), jax.nn.one_hot(ids, 4, dtype=dtype, axis=axis))


def test_the_default_dtype_of_one_hot(without_x64):
    assert bj.one_hot(sent.zeros(3, int), 2).dtype == jnp.float32
    assert bj.one_hot(jnp.int32(1), 3).tolist() == [0, 1, 0]


# ---------------------------------------------------------------------------------------------------------------------
# Refused

I = np.zeros((4, 2), int)


@pytest.mark.parametrize(
    "name, error, match, args, kwargs",
    [
        *((name, TypeError, "index must have one of the dtypes int8.*got float32", (X, X, *more), {}) for name, more in (("gather", ()), ("index_select", ()), ("gather_rows", ()), ("scatter", (X,)), ("scatter_add", (X,)), ("index_add", (X,)))),
        *((name, ValueError, "x must have at least one dimension, got a scalar", (1.0, I, *more), {}) for name, more in (("gather", ()), ("index_select", ()), ("gather_rows", ()), ("scatter", (X,)))),
        ("gather", ValueError, r"index must have the rank of x and at most its sizes \(4, 6\) except along axis 1, got \(5, 2\)", (X, sent.zeros((5, 2), int)), {}),
        ("gather", ValueError, r"index must have the rank of x .* got \(4,\)", (X, I[:, 0]), {}),
        ("gather", ValueError, r"axis must be in \[-2, 1\] for x of shape \(4, 6\), got 2", (X, I, 2), {}),
        ("gather", ValueError, "mode must be one of 'fill', 'clip', got 'wrap'", (X, I), {"mode": "wrap"}),
        ("gather", ValueError, "x must have elements along the axis with mode 'clip', got shape \\(4, 0\\)", (X[:, :0], I), {"mode": "clip"}),
        ("gather", ValueError, "fill_value must be left out with mode 'clip', got 0", (X, I), {"mode": "clip", "fill_value": 0}),
        ("gather", TypeError, "fill_value must be a static number, got 'nan'", (X, I), {"fill_value": "nan"}),
        ("gather", TypeError, "fill_value must be a number for x of dtype int8, got 300", (X.astype(jnp.int8), I), {"fill_value": 300}),
        ("gather", TypeError, "fill_value must be a number for x of dtype int8, got nan", (X.astype(jnp.int8), I), {"fill_value": float("nan")}),
        ("gather", TypeError, "got an unexpected keyword argument 'dim'; use axis", (X, I), {"dim": 1}),
        ("scatter", ValueError, "implementation='native', but the op has no kernel; xla computes it", (X, I, X), {"implementation": "native"}),
        ("index_select", ValueError, r"index must have one dimension, got shape \(4, 2\)", (X, I), {}),
        ("scatter", TypeError, "src must have the dtype of x, float32, got int32", (X, I, I.astype(jnp.int32)), {}),
        ("scatter", ValueError, r"src must be a number or have at least the sizes of index, \(4, 2\), got \(4, 1\)", (X, I, X[:, :1]), {}),
        ("scatter", TypeError, "src must be a number for x of dtype int8, got 0.5", (X.astype(jnp.int8), I, 0.5), {}),
        ("scatter_add", TypeError, "x must have one of the dtypes float32.*got bool", (X > 0, I, True), {}),
        ("index_add", ValueError, r"src must have shape \(2, 6\), x's with the size of index along the axis, got \(4, 6\)", (X, I[0], X), {}),
        ("index_add", TypeError, "alpha must be a static number for x of dtype float32, got '2'", (X, I[0], X[:2]), {"alpha": "2"}),
        ("masked_fill", TypeError, "mask must have one of the dtypes bool, got int32", (X, I.astype(jnp.int32), 0), {}),
        ("masked_fill", ValueError, r"mask must broadcast with x of shape \(4, 6\), got \(4,\)", (X, X[:, 0] > 0, 0), {}),
        ("masked_fill", ValueError, r"value must have shape \(\), that of one number, got \(6,\)", (X, X > 0, X[0]), {}),
        ("masked_fill", TypeError, "value must be a number for x of dtype int8, got 300", (X.astype(jnp.int8), X > 0, 300), {}),
        ("masked_fill", TypeError, "value must be a number for x of dtype int8, got float32", (X.astype(jnp.int8), X > 0, X[0, 0]), {}),
        ("one_hot", TypeError, "x must have one of the dtypes int8.*got float32", (X, 3), {}),
        ("one_hot", ValueError, "num_classes must be at least 0, got -1", (I, -1), {}),
        ("one_hot", ValueError, r"axis must be in \[-3, 2\] for x of shape \(4, 2\), got 3", (I, 4, 3), {}),
        ("one_hot", ValueError, "axis must be at least -3, got -4", (I, 4, -4), {}),
    ],
)  # fmt: skip
def test_what_is_refused(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_a_kernel_that_gathers_counts_from_the_end_itself(implementation, axis):
    """int32 at both edges of the range and beyond; no program goes through the index before."""
    x = normal((5, 6, 7), "float32")
    size = x.shape[axis]
    edges = np.array([-(2**31), -size - 1, -size, -1, 0, size - 1, size, 2**31 - 1], np.int32)
    index = np.moveaxis(np.broadcast_to(edges, (*np.delete(x.shape, axis), 8)), -1, axis).copy()
    run = lambda x, index: bj.gather(x, index, axis, fill_value=3.5, implementation=implementation)
    inside = (index >= -size) & (index < size)
    want = np.where(inside, np.take_along_axis(np.asarray(x), np.where(inside, index, 0), axis), np.float32(3.5))
    y, pull = jax.vjp(lambda x: run(x, index), x)
    np.testing.assert_array_equal(y, want)
    dx = np.zeros(x.shape, np.float32)
    at = list(np.indices(index.shape))
    at[axis] = np.where(inside, index % size, 0)
    np.add.at(dx, tuple(at), inside.astype(np.float32))
    np.testing.assert_array_equal(pull(jnp.ones_like(y))[0], dx)
    if implementation == "native":
        text = jax.jit(run).lower(x, index).as_text()
        assert "custom_call" in text and "stablehlo.select" not in text and "stablehlo.compare" not in text
