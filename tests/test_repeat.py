"""What repeat does in every dtype and at the edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from hypothesis import given
from hypothesis import strategies as st

import baracuda_jax as bj
from baracuda_jax._core.op import OPS

FAMILY = "shape"

BACKENDS = ("native", "xla")
DTYPES = OPS["repeat"].dtypes


def _random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return sent.asarray(rng.random(shape) < 0.5)
    x = rng.integers(0, 100, shape)
    return sent.asarray(x + 1j * rng.integers(0, 9, shape) if "complex" in dtype else x, dtype)


@given(st.data())
def test_any_shape(data):
    """Values are jnp.tile's, gradients those of jnp.tile in float64."""
    extents = st.sampled_from((0, 1, 1, 2, 3, 5, 8, 16, 33))
    shape = tuple(data.draw(st.lists(extents, max_size=5)))
    repeats = tuple(data.draw(st.lists(st.sampled_from((0, 1, 1, 1, 2, 3, 7)), max_size=6)))
    dtype = data.draw(st.sampled_from(("float64", "float32", "int16", "uint8", "complex128")))
    if np.prod(shape, dtype=np.int64) * np.prod(repeats, dtype=np.int64) > 1e6:
        return
    x = _random(shape, dtype)
    for implementation in BACKENDS:
        y = bj.repeat(x, repeats, implementation=implementation)
        same_bits(y, jnp.tile(x, repeats))
        if dtype == "float64":
            dy = sent.asarray(np.random.default_rng(1).standard_normal(y.shape))
            want = jax.vjp(lambda x: jnp.tile(x, repeats), x)[1](dy)[0]
            close(
                jax.vjp(
                    lambda x, implementation=implementation: bj.repeat(x, repeats, implementation=implementation), x
                )[1](dy)[0],
                want,
                dtype,
            )
            close(bj.repeat_backward(dy, repeats, shape, implementation=implementation), want, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape, repeats",
    [((), (3,)), ((9,), (4,)), ((3, 64), (2, 2)), ((5, 1), (1, 37)), ((4, 1000), (1, 3)), ((2, 3, 6), (3, 1, 5)), ((7, 3), (2, 1, 3, 2))],
)  # fmt: skip
def test_values_in_every_dtype(dtype, shape, repeats):
    x = _random(shape, dtype)
    for implementation in BACKENDS:
        same_bits(bj.repeat(x, repeats, implementation=implementation), jnp.tile(x, repeats))


def test_bits_are_moved_as_they_are():
    bits = np.random.default_rng(0).integers(0, 2**32, (33, 5), np.uint32)
    y = bj.repeat(sent.asarray(bits.view(np.float32)), (3, 7), implementation="native")
    np.testing.assert_array_equal(np.asarray(y).view(np.uint32), np.tile(bits, (3, 7)))


@pytest.mark.parametrize("rank", range(9))
def test_every_rank(rank):
    """Every axis repeated: none can be merged with its neighbor."""
    x = _random((2, 3, 2, 1, 3, 2, 2, 2)[:rank], "float32")
    for repeats in ((2,) * rank, (1, 3) * (rank // 2) + (2,) * (rank % 2)):
        y, pull = jax.vjp(lambda x: bj.repeat(x, repeats, implementation="native"), x)
        same_bits(y, jnp.tile(x, repeats))
        close(pull(y)[0], x * (y.size // x.size), "float32")


def test_no_copies_and_no_elements():
    x = _random((3, 4), "float32")
    for repeats in ((0, 1), (2, 0), (0,)):
        for implementation in BACKENDS:
            y, pull = jax.vjp(lambda x: bj.repeat(x, repeats, implementation=implementation), x)
            assert y.shape == jnp.tile(x, repeats).shape and y.size == 0
            np.testing.assert_array_equal(pull(y)[0], np.zeros((3, 4)))
            np.testing.assert_array_equal(
                bj.repeat_backward(y, repeats, (3, 4), implementation=implementation), np.zeros((3, 4))
            )
    y, pull = jax.vjp(lambda x: bj.repeat(x, (2, 3), implementation="native"), x[:0])
    assert y.shape == (0, 12) and pull(y)[0].shape == (0, 4)


@pytest.mark.parametrize(
    "shape, repeats", [((16,), 100_003), ((2, 3), (999, 1001)), ((5000, 1), (2, 300)), ((40, 600), (7, 3))]
)
def test_many_copies(shape, repeats):
    """Copies cut into chunks: right, and the same bits twice."""
    dy = np.random.default_rng(2).standard_normal(np.tile(np.ones(shape), repeats).shape)
    for dtype in ("float64", "float32"):
        run = jax.jit(lambda dy: bj.repeat_backward(dy, repeats, implementation="native"))
        got = run(sent.asarray(dy, dtype))
        close(got, bj.repeat_backward(sent.asarray(dy), repeats, implementation="xla"), dtype, scale=100)
        same_bits(got, run(sent.asarray(dy, dtype)))


def test_bits_of_a_batch_are_those_of_a_single():
    dy = sent.asarray(np.random.default_rng(3).standard_normal((5, 48_000)), jnp.float32)
    run = lambda dy: bj.repeat_backward(dy, 16_000, implementation="native")
    same_bits(jax.vmap(run)(dy), jnp.stack([run(row) for row in dy]))


def test_complex_gradient():
    x = _random((3, 5), "complex64")
    gradients = [
        jax.jit(jax.grad(lambda x, p=p: jnp.abs(bj.repeat(x, (2, 40), implementation=p)).sum()))(x + 1)
        for p in BACKENDS
    ]
    np.testing.assert_allclose(*gradients, rtol=1e-5)


def test_tile_takes_an_integer_too():
    x = sent.arange(6.0).reshape(2, 3)
    for repeats in (2, np.int64(2), (2,), (2, 1), [1, 2, 3]):
        np.testing.assert_array_equal(bj.tile(x, repeats), np.tile(x, repeats))
