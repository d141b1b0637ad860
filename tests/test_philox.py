"""Philox keys: the published vectors, the stream of a key, that an element depends on its index and the key alone, how keys come
from keys, and that `jax.random` and the ops of this package draw by them."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import forget_traces, same_bits
from jax import export
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from oracles import random as oracles
from programs import normal
from sharded import collectives, devices, mesh

import baracuda_jax as bj
from baracuda_jax._core.kernel import kernel
from baracuda_jax.random import _bits, _philox

FAMILY = "random"
WORDS = (0x12345678, 0x9ABCDEF0, 0xDEADBEEF, 0x0BADF00D)
RAW = np.array(WORDS, np.uint32)
KEY = jax.random.wrap_key_data(jax.device_put(RAW), impl=bj.philox)
X = normal((4, 9), "float32")
BOTH = ("native", "xla")
DTYPES = ("uint8", "uint16", "uint32", "uint64")

# ---------------------------------------------------------------------------------------------------------------------
# Bits

# Of Random123, kat_vectors, philox4x32 with 10 rounds: counter, key, words.
PUBLISHED = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


@pytest.mark.parametrize("counter, key, want", PUBLISHED, ids=("zeros", "ones", "pi"))
def test_the_published_vectors(counter, key, want):
    """By plain JAX, by the oracle, and by the kernel where the counter begins so."""
    low, high, *upper = map(np.uint32, counter)
    found = jax.jit(_philox.block)([*map(np.uint32, key), *upper], (high, low))
    assert tuple(map(int, found)) == want
    whole = np.array([*key, *upper], np.uint32)
    assert tuple(oracles.philox(whole, np.array([int(high) << 32 | int(low)], np.uint64))[0].tolist()) == want
    start = (int(high) << 32 | int(low)) * 16
    if start < 2**64:
        streams = np.array([*whole, start % 2**32, start >> 32], np.uint32)
        (y,) = kernel("philox_bits", "...s -> ...n", streams, out=[jax.ShapeDtypeStruct((4,), "uint32")])
        assert tuple(np.asarray(y).tolist()) == want


def test_a_seed_gives_the_published_words():
    key = jax.random.key(0, impl=bj.philox)
    assert tuple(np.asarray(jax.random.bits(key, (4,), "uint32")).tolist()) == PUBLISHED[0][2]
    seed = jax.random.key_data(jax.random.key(2**40 + 7, impl=bj.philox))
    assert seed.tolist() == [7, 2**8, 0, 0]


@pytest.mark.parametrize("implementation", BOTH)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (5, 41), (3, 1025), (2, 3, 1000), (1 << 15,)], ids=str)
def test_the_stream_of_a_key(shape, dtype, implementation):
    same_bits(
        bj.random_bits(RAW, shape=shape, dtype=dtype, implementation=implementation),
        oracles.random_bits(RAW, shape=shape, dtype=dtype),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 3, 8, 33, 1031])
def test_rows_of_any_length_begin_anywhere(length, dtype):
    """Also inside a block, and beyond 2^32 bytes, blocks and elements."""
    size, rng = np.dtype(dtype).itemsize, np.random.default_rng(length)
    starts = np.r_[np.arange(20), rng.integers(0, 2**58, 20), 2**32 // size - np.arange(20), 2**36 // size - 4] * size
    keys = rng.integers(0, 2**32, (starts.size, 4))
    streams = np.concatenate([keys, np.stack([starts % 2**32, starts >> 32], -1)], -1).astype(np.uint32)
    out = [jax.ShapeDtypeStruct((starts.size, length), dtype)]
    (y,) = jax.jit(lambda s: kernel("philox_bits", "...s -> ...n", s, out=out))(streams)
    for row, key, start in zip(np.asarray(y), keys.astype(np.uint32), starts.tolist(), strict=True):
        first = start // 16
        bytes_ = oracles.philox(key, (first + np.arange(length * size // 16 + 2)).astype(np.uint64)).tobytes()
        np.testing.assert_array_equal(row, np.frombuffer(bytes_, dtype, length, start - 16 * first))


def test_positions_beyond_32_bits():
    sizes, strides = (3, 2, 4), (2**40 + 3, 5 * 2**31, 7)
    high, low = jax.jit(lambda: _philox.positions(sizes, strides, 1))()
    want = sum(i.astype(object) * s for i, s in zip(np.indices(sizes), strides, strict=True))
    assert high.shape == (1, *sizes)
    assert (np.asarray(high).astype(object) * 2**32 + np.asarray(low) == want).all()
    shape = jax.eval_shape(lambda: bj.random_bits(RAW, shape=(2**20, 2**17), dtype="uint8"))
    assert shape.shape == (2**20, 2**17)


@pytest.mark.exhaustive
def test_rows_are_the_array():
    for shape in (
        (),
        (0, 5),
        (7,),
        (5, 41),
        (8192, 300),
        (64, 1000),
        (8, 1_000_003),
        (2**33,),
        (4, 2**34),
        (3, 1 << 21),
    ):
        lead, length = _bits.rows_of(shape, 4)
        assert math.prod(lead) * length == math.prod(shape)
        if shape and math.prod(shape) > 2**22 and max(shape) != 1_000_003:
            assert _bits.ROW <= 4 * length < 2**13 and length % 4 == 0, (shape, length)


# ---------------------------------------------------------------------------------------------------------------------
# The same bits everywhere

SHAPE = (16, 16384)
DRAWS = {
    "bits": lambda key: jax.random.bits(key, SHAPE, "uint32"),
    "bytes": lambda key: jax.random.bits(key, SHAPE, "uint8"),
    "uniform": lambda key: jax.random.uniform(key, SHAPE, "float32"),
    "normal": lambda key: jax.random.normal(key, SHAPE, "bfloat16"),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, SHAPE),
    "dropout": lambda key: bj.dropout(sent.ones(SHAPE), key, 0.3),
}


@pytest.mark.parametrize("name", ["bits", "bytes", "normal"])
@pytest.mark.parametrize("implementation", BOTH)
def test_keys_that_are_mapped_draw_as_alone(name, implementation):
    fun, keys = DRAWS[name], jax.random.split(KEY, 3)
    with bj.prefer(implementation):
        mapped = jax.jit(jax.vmap(fun))(keys)
        for got, key in zip(mapped, keys, strict=True):
            same_bits(got, jax.jit(fun)(key))
    many = jax.random.split(KEY, (2, 50))
    small = lambda key: jax.random.bits(key, (3,), "uint16")
    got = np.asarray(jax.jit(jax.vmap(jax.vmap(small)))(many)).reshape(-1, 3)
    for row, words in zip(got, np.asarray(jax.random.key_data(many)).reshape(-1, 4), strict=True):
        np.testing.assert_array_equal(row, oracles.random_bits(words, shape=(3,), dtype="uint16"))


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("sizes, spec", [((8,), P("a")), ((8,), P(None, "a")), ((2, 4), P("b", "a")), ((2, 4), P(None, ("a", "b")))], ids=str)  # fmt: skip
def test_shards_are_computed_where_they_are(name, sizes, spec):
    """On any mesh the bits are the same, no device asks another, and each computes its own part alone."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    forget_traces()  # of other preferences
    over = Mesh(np.array(devices()).reshape(sizes), ("a", "b")[: len(sizes)])
    program = jax.jit(DRAWS[name], out_shardings=NamedSharding(over, spec)).lower(KEY).compile()
    assert collectives(program.as_text()) == {}
    elements = {math.prod(map(int, dims.split(","))) for dims in _results_of_kernels(program.as_text())}
    assert elements == {math.prod(SHAPE) // 8}
    np.testing.assert_array_equal(np.asarray(program(KEY)), np.asarray(jax.jit(DRAWS[name])(KEY)))


def _results_of_kernels(text):
    import re

    return re.findall(r"= \w+\[([\d,]+)\]\S* custom-call\(.*baracuda\.philox_bits", text)


def test_keys_on_shards_and_explicit_axes():
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    keys = jax.random.split(KEY, 8)
    fun = jax.vmap(lambda key: jax.random.uniform(key, (5, 33), "float32"))
    want = np.asarray(jax.jit(fun)(keys))
    for kind in ("auto", "explicit"):
        over = mesh(kind)
        with jax.set_mesh(over):
            placed = jax.device_put(keys, NamedSharding(over, P("d")))
            program = jax.jit(fun).lower(placed).compile()
            assert collectives(program.as_text()) == {}
            np.testing.assert_array_equal(np.asarray(program(placed)), want)
            if kind == "explicit":
                draw = lambda key: jax.random.bits(key, SHAPE, "uint32", out_sharding=P("d"))
                got = jax.jit(draw)(KEY)
                assert jax.typeof(got).sharding.spec == P("d", None)
                np.testing.assert_array_equal(np.asarray(got), oracles.random_bits(RAW, shape=SHAPE, dtype="uint32"))


def test_inside_shard_map():
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    keys = jax.random.split(KEY, 8)
    fun = lambda keys: jax.vmap(lambda key: jax.random.bits(key, (9,), "uint32"))(keys)
    mapped = jax.jit(jax.shard_map(fun, mesh=mesh("auto"), in_specs=P("d"), out_specs=P("d")))
    np.testing.assert_array_equal(np.asarray(mapped(keys)), np.asarray(fun(keys)))


# ---------------------------------------------------------------------------------------------------------------------
# Keys from keys


def test_keys_of_a_key():
    """Blocks of domains of their own: no bits of the key, of `split` and of `fold_in` are the same block."""
    children = np.asarray(jax.random.key_data(jax.random.split(KEY, (3, 5)))).reshape(15, 4)
    np.testing.assert_array_equal(children, oracles.philox(RAW, (np.arange(15) + (1 << 62)).astype(np.uint64)))
    numbers = [0, 1, 5, 2**32 - 1]
    folded = np.stack([jax.random.key_data(jax.random.fold_in(KEY, n)) for n in numbers])
    np.testing.assert_array_equal(folded, oracles.philox(RAW, np.array(numbers, np.uint64) + np.uint64(1 << 63)))
    bits = np.asarray(jax.random.bits(KEY, (400, 4), "uint32"))
    blocks = np.concatenate([children, folded, bits])
    assert len(np.unique(blocks, axis=0)) == len(blocks)


def test_streams_of_keys_are_independent():
    """Bytes of 256 keys are uniform, and those of neighboring keys agree as often as chance has it."""
    from scipy.stats import chi2

    keys = jax.random.split(jax.random.key(3, impl=bj.philox), 256)
    found = np.asarray(jax.vmap(lambda key: jax.random.bits(key, (4096,), "uint8"))(keys))
    counts = np.bincount(found.ravel(), minlength=256)
    assert ((counts - 4096) ** 2 / 4096).sum() < chi2.ppf(0.999, 255)
    for other in (found[np.arange(256) ^ 1], np.roll(found, 1, 1)):
        agreeing = np.unpackbits(~(found ^ other), axis=1).mean()
        assert abs(agreeing - 0.5) < 4 * 0.5 / math.sqrt(found.size * 8 / 2)


# ---------------------------------------------------------------------------------------------------------------------
# `jax.random`


def test_the_implementation_of_a_key():
    assert jax.random.key_impl(KEY) == bj.philox and KEY.dtype == jax.random.key(1, impl=bj.philox).dtype
    same_bits(jax.random.key_data(jax.random.wrap_key_data(jax.random.key_data(KEY), impl=bj.philox)), RAW)


def test_what_jax_random_draws():
    """Uniform numbers are those of the words, and the rest is JAX's."""
    words = oracles.random_bits(RAW, shape=(7, 9), dtype="uint32")
    same_bits(jax.random.uniform(KEY, (7, 9), "float32"), ((words >> 9) * 2.0**-23).astype(np.float32))
    same_bits(jax.random.bernoulli(KEY, jnp.float32(0.25), (7, 9)), (words >> 9) * 2.0**-23 < 0.25)

    @jax.jit
    def draw(key):
        return (
            jax.random.normal(key, (50_000,), "float32"),
            jax.random.permutation(key, 1000),
            jax.random.categorical(key, jnp.log(jnp.array([0.1, 0.2, 0.7], "float32")), shape=(50_000,)),
            jax.random.randint(key, (50_000,), 0, 10),
        )

    from scipy.stats import kstest

    numbers, order, categories, integers = map(np.asarray, draw(KEY))
    assert kstest(numbers, "norm").pvalue > 1e-3
    assert sorted(order) == list(range(1000)) and (order != np.arange(1000)).any()
    np.testing.assert_allclose(np.bincount(categories) / 50_000, [0.1, 0.2, 0.7], atol=0.01)
    np.testing.assert_allclose(np.bincount(integers) / 50_000, 0.1, atol=0.01)


def test_without_64_bits(without_x64):
    same_bits(jax.random.uniform(KEY, (3000,)), jax.random.uniform(KEY, (3000,), "float32"))
    assert jax.random.key_data(jax.random.key(5, impl=bj.philox)).tolist() == [5, 0, 0, 0]


def test_checkpoints_scans_and_gradients():
    def step(x, key):
        return bj.dropout(x, key, 0.4) * 2, None

    def loss(x, body):
        return jax.lax.scan(body, x, jax.random.split(KEY, 3))[0].sum()

    grads = [jax.jit(jax.grad(functools.partial(loss, body=body)))(X) for body in (step, jax.checkpoint(step))]
    same_bits(*grads)
    kept = np.asarray(grads[0]) != 0
    assert kept.any() and not kept.all()


def test_exported_programs_take_the_words_of_a_key():
    fun = jax.jit(lambda raw: jax.random.normal(jax.random.wrap_key_data(raw, impl=bj.philox), (64, 33), "float32"))
    program = export.export(fun, platforms=("cpu", "cuda"), disabled_checks=bj.export_checks)(
        jax.ShapeDtypeStruct((4,), "uint32")
    )
    loaded = export.deserialize(program.serialize())
    same_bits(loaded.call(jax.device_put(RAW)), fun(jax.device_put(RAW)))
    (n,) = export.symbolic_shape("n")
    draw = lambda x: jax.random.bits(KEY, x.shape, "uint32")
    any_size = export.export(jax.jit(draw))(jax.ShapeDtypeStruct((n, 3), "float32"))
    same_bits(any_size.call(sent.zeros((5, 3), "float32")), draw(sent.zeros((5, 3))))


# ---------------------------------------------------------------------------------------------------------------------
# The ops of this package

OPS = {
    "random_uniform": lambda key: bj.random_uniform(key, shape=(5, 8), dtype="float32"),
    "random_normal": lambda key: bj.random_normal(key, shape=(5, 8), dtype="float32"),
    "random_bernoulli": lambda key: bj.random_bernoulli(key, 0.3, shape=(5, 8)),
    "dropout": lambda key: bj.dropout(X, key, 0.3),
    "multinomial": lambda key: bj.multinomial(X, key, 3, logits=True),
    "gumbel_softmax": lambda key: bj.gumbel_softmax(X, key),
    "top_p_sampling": lambda key: bj.top_p_sampling(X, key, 0.9),
    "speculative_sampling": lambda key: bj.speculative_sampling(
        sent.asarray([1, 2], "int32"), sent.full((2, 4), 0.25, "float32"), sent.full((3, 4), 0.25, "float32"), key
    )[0],
}


@pytest.mark.parametrize("name", OPS)
def test_ops_take_philox_keys(name):
    """Typed, or their four words; other numbers than by threefry."""
    fun = jax.jit(OPS[name])
    want = fun(KEY)
    same_bits(fun(jax.device_put(RAW)), want)
    keys = jax.random.split(KEY, 2)
    for got, key in zip(jax.jit(jax.vmap(OPS[name]))(keys), keys, strict=True):
        same_bits(got, fun(key))
        np.testing.assert_allclose(np.asarray(OPS[name](key)), np.asarray(got), rtol=1e-6)
    many = [np.asarray(fun(jax.random.fold_in(KEY, i))).tobytes() for i in range(8)]
    assert len(set(many)) > 1


def test_the_values_are_those_of_jax_random():
    same_bits(bj.random_uniform(KEY, shape=(9,), dtype="float32"), jax.random.uniform(KEY, (9,), "float32"))
    same_bits(bj.random_normal(RAW, shape=(9,), dtype="float16"), jax.random.normal(KEY, (9,), "float16"))
    kept = jax.random.bernoulli(KEY, jnp.float32(0.7), X.shape)
    same_bits(bj.dropout(X, KEY, 0.3) != 0, kept)
    rows = jax.random.split(KEY, 4)
    same_bits(
        bj.top_k_sampling(X, rows, 3), jnp.stack([bj.top_k_sampling(x, k, 3) for x, k in zip(X, rows, strict=True)])
    )


def test_bits_of_threefry_are_jaxs():
    key = jax.random.key(7)
    same_bits(bj.random_bits(key, shape=(3, 5), dtype="uint16"), jax.random.bits(key, (3, 5), "uint16"))
    with pytest.raises(ValueError, match="^random_bits: implementation='native', but the op has no kernel"):
        bj.random_bits(key, shape=3, implementation="native")


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (TypeError, r"key must be one key, typed or uint32 of shape \(2,\) or \(4,\), got uint32 of shape \(3,\)", (np.zeros(3, np.uint32),), {}),
        (TypeError, "key must be a key of threefry2x32 or philox, got one of rbg", (jax.random.key(0, impl="rbg"),), {}),
        (TypeError, "dtype must be one of uint8, uint16, uint32, uint64, got int32", (KEY,), {"dtype": jnp.int32}),
        (ValueError, r"shape\[1\] must be at least 0, got -1", (KEY,), {"shape": (2, -1)}),
        (ValueError, r"shape may have at most 2\^63 bytes, got \(1099511627776, 8388608\) of uint8", (KEY,), {"shape": (2**40, 2**23), "dtype": "uint8"}),
    ],
)  # fmt: skip
def test_what_is_refused(error, match, args, kwargs):
    with pytest.raises(error, match=f"^random_bits: {match}"):
        bj.random_bits(*args, **kwargs)
