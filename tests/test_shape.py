"""What the ops that move elements do in every dtype, of any shape, and at the edges; tests/test_repeat.py has `repeat`."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from hypothesis import given
from hypothesis import strategies as st
from oracles import shape as oracle

import baracuda_jax as bj
from baracuda_jax._core.op import OPS

BACKENDS = ("native", "xla")
DTYPES = OPS["flip"].dtypes
FLOATS = ("float64", "bfloat16", "complex128", "complex64")
both = pytest.mark.parametrize("implementation", BACKENDS)


def _random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return sent.asarray(rng.random(shape) < 0.5)
    x = rng.integers(0, 100, shape)
    return sent.asarray(x + 1j * rng.integers(0, 9, shape) if "complex" in dtype else x, dtype)


def _vjp(fun, x, dy):
    return jax.jit(lambda x, dy: jax.vjp(fun, x)[1](dy)[0])(x, dy)


def _same(fun, want, x, implementation="native"):
    """fun(x, implementation) has the bits of `want`."""
    same_bits(fun(x, implementation), want)


def _agree(fun, want, x):
    """Both backends have the bits of `want`, and one gradient."""
    dy = _random(np.shape(want), x.dtype.name, 1)
    has_gradient = jnp.issubdtype(x.dtype, jnp.inexact)

    @jax.jit
    def both(x, dy):
        if not has_gradient:
            return [(fun(x, p), None) for p in BACKENDS]
        return [(y, pull(dy)[0]) for y, pull in (jax.vjp(lambda x, p=p: fun(x, p), x) for p in BACKENDS)]

    (y, native), (z, xla) = both(x, dy)
    same_bits(y, want)
    same_bits(z, want)
    if has_gradient:
        close(native, xla, x.dtype.name)


# ---------------------------------------------------------------------------------------------------------------------
# Any shape


extents = st.sampled_from((0, 1, 1, 2, 3, 5, 8, 16, 33))
shapes = st.lists(extents, min_size=1, max_size=5).filter(lambda shape: math.prod(shape) < 20_000)
some_dtypes = st.sampled_from(("float64", "bfloat16", "int16", "uint8", "complex128", "complex64"))


@given(st.data())
def test_orders_of_any_shape(data):
    shape, dtype = data.draw(shapes), data.draw(some_dtypes)
    x, axes = _random(shape, dtype), data.draw(st.permutations(range(len(shape))))
    some = tuple(axes[: data.draw(st.integers(0, len(axes)))])
    _agree(lambda x, p: bj.permute(x, axes, implementation=p), np.transpose(x, axes), x)
    _agree(lambda x, p: bj.flip(x, some, implementation=p), np.flip(x, some), x)
    shifts = tuple(data.draw(st.integers(-40, 40)) for _ in some)
    _agree(lambda x, p: bj.roll(x, shifts, some, implementation=p), np.roll(x, shifts, some), x)
    _agree(lambda x, p: bj.roll(x, 7, implementation=p), np.roll(x, 7), x)


@given(st.data())
def test_pads_of_any_shape(data):
    """Values are NumPy's, also where what is put on is many times what is there; below 0 elements are taken away."""
    shape, dtype = data.draw(shapes), data.draw(some_dtypes)
    mode = data.draw(st.sampled_from(("constant", "reflect", "symmetric", "replicate", "circular", "edge", "wrap")))
    width = st.integers(-3, 12 if len(shape) < 4 else 3)
    pairs = [(data.draw(width), data.draw(width)) if n else (0, 0) for n in shape]
    pairs = tuple(pair if n + sum(pair) >= 0 else (0, 0) for n, pair in zip(shape, pairs, strict=True))
    if math.prod(n + sum(pair) for n, pair in zip(shape, pairs, strict=True)) > 100_000:
        return
    left = (n + min(low, 0) + min(high, 0) for n, (low, high) in zip(shape, pairs, strict=True))
    if mode in ("circular", "wrap") and any(n <= 0 < max(pair) for n, pair in zip(left, pairs, strict=True)):
        return  # nothing is left that could go round
    x = _random(shape, dtype)
    _agree(lambda x, p: bj.pad(x, pairs, mode, implementation=p), oracle.pad(np.asarray(x), pairs, mode), x)


@given(st.data())
def test_windows_of_any_shape(data):
    """Values are those of the formula; of integers too. Sums are those of the formula in float64."""
    count = data.draw(st.integers(1, 3))
    draw = lambda smallest, most: tuple(data.draw(st.integers(smallest, most)) for _ in range(count))
    spatial, kernel, dilation, padding, stride = draw(1, 9), draw(1, 4), draw(1, 3), draw(0, 3), draw(1, 4)
    window = dict(window=kernel, strides=stride, padding=padding, dilation=dilation)
    each = zip(spatial, kernel, dilation, padding, strict=True)
    if any(n + 2 * p < d * (k - 1) + 1 for n, k, d, p in each):
        return
    x = _random((*data.draw(st.lists(extents, min_size=1, max_size=2)), *spatial), data.draw(some_dtypes))
    columns = oracle.windows_of(np.asarray(x), **window)
    _agree(lambda x, p: bj.unfold(x, **window, implementation=p), columns, x)
    if jnp.issubdtype(x.dtype, jnp.inexact):
        want = oracle.fold(columns, spatial, **window)
        for implementation in BACKENDS:
            got = bj.fold(sent.asarray(columns), spatial, **window, implementation=implementation)
            close(got, want.astype(x.dtype) if "complex" in x.dtype.name else want, x.dtype.name)
            dy = _random(want.shape, x.dtype.name)
            pulled = _vjp(
                lambda c, p=implementation: bj.fold(c, spatial, **window, implementation=p), sent.asarray(columns), dy
            )
            same_bits(pulled, bj.unfold(dy, **window, implementation=implementation))


@given(st.data())
def test_joined_arrays_of_any_shape(data):
    shape, dtype = data.draw(shapes), data.draw(some_dtypes)
    axis, count = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.sampled_from((1, 2, 3, 5)))
    sizes = [data.draw(st.sampled_from((0, 1, 2, 3, 8))) for _ in range(count)]
    xs = [_random((*shape[:axis], n, *shape[axis + 1 :]), dtype, i) for i, n in enumerate(sizes)]
    want = np.concatenate(xs, axis)
    for implementation in BACKENDS:
        same_bits(bj.concat(xs, axis, implementation=implementation), want)
        parts = (
            bj.concat_backward(sent.asarray(want), sizes, axis, implementation=implementation)
            if dtype in FLOATS
            else xs
        )
        for part, x in zip(parts, xs, strict=True):
            same_bits(part, x)


@given(st.data())
def test_blocks_of_any_shape(data):
    """Values are those of jax.lax, for starts that are static, traced, or outside."""
    shape, dtype = data.draw(shapes), data.draw(some_dtypes)
    block = [n if data.draw(st.booleans()) else data.draw(st.integers(0, n)) for n in shape]
    start = [data.draw(st.integers(-40, 40)) for _ in shape]
    x, update = _random(shape, dtype), _random(block, dtype, 1)
    want = jax.lax.dynamic_update_slice(x, update, start)
    for implementation in BACKENDS:
        same_bits(bj.dynamic_update_slice(x, update, start, implementation=implementation), want)
        traced = jax.jit(functools.partial(bj.dynamic_update_slice, implementation=implementation))
        same_bits(traced(x, update, sent.asarray(start, data.draw(st.sampled_from(("int8", "int32", "int64"))))), want)
        if dtype in FLOATS:
            dx, block_of_dy = bj.dynamic_update_slice_backward(x, start, block, implementation=implementation)
            same_bits(dx, jax.lax.dynamic_update_slice(x, sent.zeros_like(update), start))
            same_bits(block_of_dy, jax.lax.dynamic_slice(x, [*map(_clamped, start, shape, block)], block))


def _clamped(start, n, m):
    return max(0, min(start + n if start < 0 else start, n - m))


@given(st.data())
def test_repeated_elements_of_any_shape(data):
    shape, dtype = data.draw(shapes), data.draw(some_dtypes)
    x, axis = _random(shape, dtype), data.draw(st.integers(0, len(shape) - 1))
    times = data.draw(st.integers(0, 4))
    _agree(lambda x, p: bj.repeat_interleave(x, times, axis, implementation=p), jnp.repeat(x, times, axis), x)
    if not shape[axis]:
        return
    times = np.array([data.draw(st.integers(0, 4)) for _ in range(shape[axis])])
    total = max(0, times.sum() + data.draw(st.sampled_from((0, 0, -3, 5))))
    want = jnp.repeat(x, times, axis, total_repeat_length=total)
    kwargs = dict(total_repeat_length=total)
    _agree(lambda x, p: bj.repeat_interleave(x, times, axis, **kwargs, implementation=p), want, x)
    traced = jax.jit(lambda x, times: bj.repeat_interleave(x, times, axis, **kwargs))
    same_bits(traced(x, sent.asarray(times)), want)


# ---------------------------------------------------------------------------------------------------------------------
# Every dtype, and the edges


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_in_every_dtype(dtype):
    """Of rows that are moved as a whole, in parts, and element by element."""
    for shape in ((3, 64), (5, 37), (2, 33, 18)):
        x = np.asarray(_random(shape, dtype))
        value, row, part = x.ravel()[7], x.ravel()[:11], x[..., :3]
        one = 1 if dtype != "bool" else True

        @jax.jit
        def moved(x, value, row, part):
            run = lambda fun, *args, **kwargs: fun(*args, **kwargs, implementation="native")
            return [
                run(bj.flip, x, 0),
                run(bj.flip, x, -1),
                run(bj.roll, x, 5, -1),
                run(bj.permute, x),
                run(bj.triu, x, 1),
                run(bj.tril, x, -1),
                run(bj.pad, x, 2, constant_values=one),
                run(bj.pad, x, 2, "reflect"),
                run(bj.fill, value, shape),
                run(bj.broadcast_in_dim, row, (4, 11, 3), (1,)),
                run(bj.concat, [x, part, x], -1),
            ]

        wanted = [
            np.flip(x, 0),
            np.flip(x, -1),
            np.roll(x, 5, -1),
            np.transpose(x),
            np.triu(x, 1),
            np.tril(x, -1),
            np.pad(x, 2, constant_values=one),
            np.pad(x, 2, "reflect"),
            np.full(shape, value),
            np.broadcast_to(row[:, None], (4, 11, 3)),
            np.concatenate([x, part, x], -1),
        ]
        for y, want in zip(moved(x, value, row, part), wanted, strict=True):
            same_bits(y, want)


def test_bits_are_moved_as_they_are():
    """NaN keeps its bits, and zeros their signs."""
    bits = np.random.default_rng(0).integers(0, 2**32, (33, 24), np.uint32)
    x, of = sent.asarray(bits.view(np.float32)), lambda y: np.asarray(y).view(np.uint32)
    run = functools.partial
    for fun, want in (
        (run(bj.flip, axis=1), bits[:, ::-1]),
        (run(bj.permute), bits.T),
        (run(bj.roll, shift=3, axis=1), np.roll(bits, 3, 1)),
        (run(bj.pad, pad_width=3, mode="reflect"), np.pad(bits, 3, "reflect")),
        (run(bj.triu), np.triu(bits)),
        (run(bj.unfold, window=(24,)), bits.reshape(-1, 1)),
    ):
        np.testing.assert_array_equal(of(fun(x, implementation="native")), want)
    for value, sign in ((-0.0, True), (0.0, False)):
        y = bj.pad(sent.ones(1), 2, constant_values=value, implementation="native")
        assert np.signbit(np.asarray(y)[[0, 1, 3, 4]]).tolist() == [sign] * 4
    assert np.isnan(bj.pad(sent.ones(1), 1, constant_values=math.nan, implementation="native"))[[0, 2]].all()


@pytest.mark.parametrize("rank", range(9))
def test_every_rank(rank):
    x = _random((2, 3, 2, 1, 3, 2, 2, 2)[:rank], "float32")
    _same(lambda x, p: bj.permute(x, implementation=p), np.transpose(x), x)
    _same(lambda x, p: bj.flip(x, implementation=p), np.flip(x), x)
    if rank:
        few = ((0, 0),) * (rank - min(rank, 5)) + ((1, 2),) * min(rank, 5)
        _same(lambda x, p: bj.pad(x, few, implementation=p), np.pad(x, few), x)
        _same(lambda x, p: bj.pad(x, few, "circular", implementation=p), np.pad(x, few, "wrap"), x)
        _same(
            lambda x, p: bj.roll(x, (1,) * min(rank, 6), range_of(rank), implementation=p),
            np.roll(x, 1, range_of(rank)),
            x,
        )


def range_of(rank):
    return tuple(range(min(rank, 6)))


def test_axes_that_stay_neighbors_are_merged():
    """Of rank 12, as three."""
    x = _random((2,) * 12, "int32")
    _same(lambda x, p: bj.flip(x, (4, 5), implementation=p), np.flip(x, (4, 5)), x)
    axes = (*range(8, 12), *range(4, 8), *range(4))
    _same(lambda x, p: bj.permute(x, axes, implementation=p), np.transpose(x, axes), x)


@both
def test_no_elements(implementation):
    x = sent.zeros((3, 0, 4))
    assert bj.flip(x, implementation=implementation).shape == x.shape
    assert bj.permute(x, implementation=implementation).shape == (4, 0, 3)
    assert bj.roll(x, 2, 1, implementation=implementation).shape == x.shape
    y, pull = jax.vjp(
        lambda x: bj.pad(x, ((0, 0), (1, 2), (0, 0)), constant_values=5, implementation=implementation), x
    )
    np.testing.assert_array_equal(y, np.full((3, 3, 4), 5.0))
    assert pull(y)[0].shape == x.shape
    assert bj.triu(x, implementation=implementation).shape == x.shape
    assert bj.fill(1.0, (0, 3), implementation=implementation).shape == (0, 3)
    assert bj.fill_backward(sent.zeros((0, 3)), implementation=implementation) == 0
    assert (
        bj.dynamic_update_slice(sent.ones((3, 4)), sent.zeros((0, 2)), (1, 1), implementation=implementation).sum()
        == 12
    )
    assert bj.pixel_shuffle(sent.zeros((0, 4, 2, 2)), 2, implementation=implementation).shape == (0, 1, 4, 4)
    assert bj.repeat_interleave(x, np.zeros(3, int), 0, implementation=implementation).shape == (0, 0, 4)
    np.testing.assert_array_equal(
        bj.repeat_interleave_backward(sent.zeros((0, 2)), np.zeros(3, int), 0), np.zeros((3, 2))
    )


@both
def test_scalars(implementation):
    x = jnp.float32(3)
    for fun in (bj.flip, bj.permute, functools.partial(bj.roll, shift=1), functools.partial(bj.pad, pad_width=())):
        assert fun(x, implementation=implementation) == 3
    assert bj.dynamic_update_slice(x, jnp.float32(5), (), implementation=implementation) == 5
    assert bj.repeat_interleave(x, 3, implementation=implementation).tolist() == [3, 3, 3]
    assert bj.concat([x, x], None, implementation=implementation).tolist() == [3, 3]


@both
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_adds_up_in_float32(dtype, implementation):
    """Hundreds and thousands of ones: a narrow accumulator stops growing."""
    dx = bj.pad_backward(sent.ones(4096, dtype), (4095, 0), "replicate", implementation=implementation)
    assert dx.dtype == dtype and float(dx[0]) == 4096
    assert float(bj.fill_backward(sent.ones(4096, dtype), implementation=implementation)) == 4096
    columns = sent.ones((1, 300, 300), dtype)
    assert float(bj.fold(columns, (599,), (300,), implementation=implementation).max()) == 300
    rows = bj.repeat_interleave_backward(sent.ones(4096, dtype), np.array([4096]), 0, implementation=implementation)
    assert float(rows[0]) == 4096


@pytest.mark.parametrize("axis", [0, 1])
def test_many_arrays_are_joined_by_one_call(axis):
    xs = [jnp.moveaxis(_random((3, n % 5, 2), "float32", n), 1, axis) for n in range(300)]
    run = jax.jit(lambda *xs: bj.concat(xs, axis, implementation="native"))
    assert run.lower(*xs).as_text().count("@baracuda.concat") == 1
    same_bits(run(*xs), np.concatenate(xs, axis))
    dy = run(*xs)
    parts = jax.jit(lambda *xs: jax.vjp(lambda *xs: bj.concat(xs, axis, implementation="native"), *xs)[1](dy))(*xs)
    for part, x in zip(parts, xs, strict=True):
        same_bits(part, x)


def test_arrays_of_several_sizes_under_every_transformation():
    xs = [_random((4, n, 3), "float64", n) for n in (2, 1, 5)]
    fun = lambda *xs: bj.concat(xs, 1, implementation="native")
    want = lambda *xs: jnp.concatenate(xs, 1)
    loss = lambda fun: lambda *xs: jnp.sum(jnp.sin(fun(*xs)) ** 2)
    for got, expected in zip(
        jax.jit(jax.grad(loss(fun), (0, 1, 2)))(*xs), jax.jit(jax.grad(loss(want), (0, 1, 2)))(*xs), strict=True
    ):
        close(got, expected, "float64")
    mapped = jax.vmap(lambda *xs: bj.concat(xs, 0, implementation="native"), (0, None, 0))(xs[0], xs[1][0], xs[2])
    same_bits(mapped, jax.vmap(lambda *xs: jnp.concatenate(xs, 0), (0, None, 0))(xs[0], xs[1][0], xs[2]))
    close(jax.jit(jax.hessian(loss(fun)))(*xs), jax.jit(jax.hessian(loss(want)))(*xs), "float64")
    tangents = jax.jvp(fun, xs, [x + 1 for x in xs])[1]
    same_bits(tangents, want(*(x + 1 for x in xs)))
    partial = jax.jit(jax.grad(lambda x: loss(fun)(xs[0], x, xs[2])))(xs[1])
    close(partial, jax.jit(jax.grad(lambda x: loss(want)(xs[0], x, xs[2])))(xs[1]), "float64")


# ---------------------------------------------------------------------------------------------------------------------
# In place


def _aliased(text):
    return "output_to_operand_aliasing" in text


def test_a_donated_array_is_written_in_place():
    """The program has no copy of x; where x is read after, it has one, or the kernel makes it."""
    x, update = sent.zeros((64, 64)), sent.ones((8, 8))
    write = lambda x, update: bj.dynamic_update_slice(x, update, (3, 5), implementation="native")
    text = jax.jit(write, donate_argnums=0).lower(x, update).compile().as_text()
    assert _aliased(text) and " copy(" not in text
    kept = jax.jit(write)
    before = np.asarray(x)
    y = kept(x, update)
    np.testing.assert_array_equal(x, before)
    assert float(y.sum()) == 64
    position = jax.jit(write, donate_argnums=0)
    for _ in range(3):
        x = position(x, update)
    np.testing.assert_array_equal(x, y)


def test_blocks_written_in_a_loop():
    def body(i, x):
        return bj.dynamic_update_slice(x, sent.full((1, 4), i, x.dtype), (i, 2), implementation="native")

    x = jax.jit(lambda x: jax.lax.fori_loop(0, 9, body, x))(sent.zeros((9, 8)))
    want = np.zeros((9, 8))
    want[:, 2:6] = np.arange(9)[:, None]
    np.testing.assert_array_equal(x, want)


@both
def test_starts_of_each_batch(implementation):
    x, update = _random((3, 6, 5), "float32"), _random((3, 2, 2), "float32", 1)
    start = sent.asarray([[0, 0], [9, 1], [-2, 3]])
    write = functools.partial(bj.dynamic_update_slice, implementation=implementation)
    want = np.stack(
        [jax.lax.dynamic_update_slice(*args[:2], list(args[2])) for args in zip(x, update, start, strict=True)]
    )
    same_bits(jax.vmap(write)(x, update, start), want)
    twice = jax.vmap(jax.vmap(write, (0, None, None)), (None, 0, 0))(x, update, start)
    for i in range(3):
        for j in range(3):
            same_bits(twice[i, j], jax.lax.dynamic_update_slice(x[j], update[i], list(start[i])))


# ---------------------------------------------------------------------------------------------------------------------
# Compositions and other names


@both
def test_grids(implementation):
    xs = [_random((n,), dtype, n) for n, dtype in ((3, "float32"), (4, "int32"), (2, "complex64"))]
    for indexing in ("xy", "ij"):
        for count in range(4):
            got = bj.meshgrid(*xs[:count], indexing=indexing, implementation=implementation)
            for y, want in zip(got, np.meshgrid(*xs[:count], indexing=indexing), strict=True):
                same_bits(y, want)
    assert bj.meshgrid(1.0, xs[0], implementation=implementation)[0].shape == (3, 1)


def test_arrays_of_one_value():
    assert bj.full((2, 3), 5).tolist() == np.full((2, 3), 5).tolist()
    assert bj.full(3, 1, "float16").dtype == jnp.float16
    like = bj.full_like(sent.zeros((2, 2), jnp.int8), 7.0)
    assert like.dtype == jnp.int8 and like.tolist() == [[7, 7], [7, 7]]
    assert jax.jit(jax.grad(lambda v: bj.full((3, 4), v, implementation="native").sum()))(2.0) == 12


def test_other_names():
    assert bj.transpose is bj.permute and bj.concatenate is bj.concat


@both
def test_shuffles_are_each_others_inverse(implementation):
    x = _random((2, 12, 4, 6), "float32")
    same_bits(
        bj.pixel_unshuffle(bj.pixel_shuffle(x, 2, implementation=implementation), 2, implementation=implementation), x
    )
    same_bits(
        bj.channel_shuffle(bj.channel_shuffle(x, 3, implementation=implementation), 4, implementation=implementation), x
    )


# ---------------------------------------------------------------------------------------------------------------------
# Sizes at which a kernel's work is cut


@pytest.mark.parametrize(
    "shape", [(300_001,), (3, 100_003), (1001, 303), (17, 33, 257), (40_000, 3), (3, 40_000), (64, 64, 64)]
)
def test_large_arrays(shape):
    """A CPU's tasks, and a GPU's squares and lanes, end inside of rows."""
    x = _random(shape, "int16")
    for fun, want in (
        (bj.flip, np.flip),
        (bj.permute, np.transpose),
        (functools.partial(bj.roll, shift=12345), functools.partial(np.roll, shift=12345)),
    ):
        same_bits(fun(x, implementation="native"), want(np.asarray(x)))
    width = ((0, 0),) * (x.ndim - 1) + ((70_001, 3),)
    if x.size < 10**6 and x.shape[-1] > 50_000:
        for mode, name in (("reflect",) * 2, ("symmetric",) * 2, ("replicate", "edge"), ("circular", "wrap")):
            same_bits(bj.pad(x, width, mode, implementation="native"), np.pad(x, width, name))
            dy = sent.ones(np.pad(x, width, name).shape, "float32")
            close(*(bj.pad_backward(dy, width, mode, implementation=p) for p in BACKENDS), "float32")
    if x.ndim >= 2:
        same_bits(bj.triu(x, -5, implementation="native"), np.triu(x, -5))
        same_bits(bj.permute(x, (*range(x.ndim - 2), -1, -2), implementation="native"), np.swapaxes(x, -1, -2))
        same_bits(bj.concat([x, x], -1, implementation="native"), np.concatenate([x, x], -1))


@pytest.mark.parametrize(
    "repeats", [[2**40, 1, 1], [1, 2**62, 2**62], [0, 2**62, 2**62], np.array([100, 100, 100], np.int8)]
)
def test_known_repeats_are_not_expanded_beyond_the_result(repeats):
    x = sent.arange(3.0)
    got = bj.repeat_interleave(x, np.asarray(repeats), 0, total_repeat_length=6)
    np.testing.assert_array_equal(got, np.repeat(np.arange(3.0), np.minimum(repeats, 6))[:6])
    with pytest.raises(ValueError, match="repeat_interleave: the result may have at most"):
        bj.repeat_interleave(x, np.array([2**62] * 3), 0)


@both
def test_a_scalar_is_padded_along_none_of_its_axes(implementation):
    for mode in ("constant", "reflect", "symmetric", "replicate", "circular"):
        assert bj.pad(jnp.float32(3), 1, mode, implementation=implementation) == 3
        assert (
            jax.jit(jax.grad(lambda x, mode=mode: bj.pad(x, 1, mode, implementation=implementation)))(jnp.float32(3))
            == 1
        )


@both
def test_what_is_left_goes_round(implementation):
    x, pairs = sent.arange(5.0), (-1, 3)
    assert bj.pad(x, pairs, "circular", implementation=implementation).tolist() == [1, 2, 3, 4, 1, 2, 3]
    assert bj.pad_backward(sent.ones(7), pairs, "circular", implementation=implementation).tolist() == [0, 2, 2, 2, 1]
    with pytest.raises(ValueError, match="^pad: x must have elements along axes that are padded"):
        bj.pad(x, (-5, 5), "circular", implementation=implementation)
