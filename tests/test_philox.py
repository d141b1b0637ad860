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
from baracuda_jax.random import _philox, _rows

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
@pytest.mark.parametrize("length", [1, 3, 8, 33, 1031, 2048])
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
        lead, apart, length = _rows.rows_of(shape, 4)
        assert math.prod(lead) * length == math.prod(shape)
        assert apart == _philox.strides(lead, 4 * length)
        if shape and math.prod(shape) > 2**22 and max(shape) != 1_000_003:
            assert _rows.ROW <= 4 * length < 2**13 and length % 4 == 0, (shape, length)


@pytest.mark.exhaustive
def test_rows_of_a_shard_are_in_order_in_the_whole():
    """Each element of a part is where the rows say: that many bytes after the part's first."""
    for shape, whole in (
        ((4, 6), (4, 12)),
        ((2, 3, 5), (8, 3, 5)),
        ((3, 2, 4), (3, 4, 4)),
        ((3, 3000), (3, 6000)),
        ((2, 600, 3), (2, 1200, 3)),
    ):
        lead, apart, length = _rows.rows_of(shape, 4, whole)
        of_whole = np.arange(math.prod(whole)).reshape(whole)[tuple(slice(0, n) for n in shape)]
        rows = sum(np.indices(lead)[i] * apart[i] for i in range(len(lead))) // 4 if lead else np.zeros((), int)
        np.testing.assert_array_equal(of_whole.reshape(*lead, length), np.asarray(rows)[..., None] + np.arange(length))


# ---------------------------------------------------------------------------------------------------------------------
# Numbers that kernels draw

FLOATS = ("float32", "float64", "float16", "bfloat16")
SHAPES = ((), (0,), (7,), (5, 41), (3, 1031), (2, 3, 1024))
ULPS = {"float32": 4, "float64": 40, "float16": 0, "bfloat16": 0}  # of normal numbers, to those of XLA's logarithm


def _apart(a, b):
    """The most units in the last place between numbers."""
    of = lambda x: (
        np.asarray(x).astype(np.asarray(x).dtype).reshape(-1).view(f"i{np.asarray(x).dtype.itemsize}").astype(object)
    )
    order = lambda x: np.where(x < 0, -(x & (2 ** (8 * np.asarray(a).dtype.itemsize - 1) - 1)), x)
    return max(np.abs(order(of(a)) - order(of(b))), default=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numbers_are_those_of_jax_random(shape, dtype):
    """By the kernel and by plain JAX: of intervals too, and of bools; normal ones up to a few last places."""
    intervals, chances = ((0.0, 1.0), (-2.0, 3.0), (0.1, 0.7)), (0.0, 0.3, 1.0)

    @jax.jit
    def theirs(key):
        uniform = [jax.random.uniform(key, shape, dtype, low, high) for low, high in intervals]
        bools = [jax.random.bernoulli(key, jnp.asarray(p, dtype), shape) for p in chances]
        return uniform, bools, jax.random.normal(key, shape, dtype)

    for implementation in BOTH:
        how = {"shape": shape, "implementation": implementation}

        @jax.jit
        def drawn(key, how=how):
            uniform = [bj.random_uniform(key, low, high, dtype=dtype, **how) for low, high in intervals]
            bools = [bj.random_bernoulli(key, jnp.asarray(p, dtype), **how) for p in chances]
            return uniform, bools, bj.random_normal(key, dtype=dtype, **how)

        (uniform, bools, numbers), wanted = drawn(KEY), theirs(KEY)
        jax.tree.map(same_bits, (uniform[0], bools), (wanted[0][0], wanted[1]))
        for y, z, (low, high) in zip(uniform[1:], wanted[0][1:], intervals[1:], strict=True):
            if implementation == "xla" or dtype == "bfloat16":
                same_bits(y, z)
                continue
            # XLA rounds products and sums once only where it optimizes, of float16 where the processor has such products; the
            # kernel does always, of float16 never.
            eps = jnp.finfo(dtype).eps * max(abs(low), abs(high))
            np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=0, atol=eps)
            if dtype == "float32":
                first, last = np.float32(low), np.float32(high)
                exact = np.longdouble(last - first) * np.asarray(wanted[0][0]).astype(np.longdouble) + first
                same_bits(y, np.maximum(first, exact.astype(np.float32)))
        assert numbers.dtype == dtype and _apart(numbers, wanted[2]) <= (
            ULPS[dtype] if implementation == "native" else 0
        )


def test_every_normal_number_of_16_bits():
    """Of all mantissas."""
    for dtype, size, bits in (("bfloat16", 1, 7), ("float16", 2, 10)):
        want = jax.random.normal(KEY, (2**16,), dtype)
        same_bits(bj.random_normal(KEY, shape=2**16, dtype=dtype, implementation="native"), want)
        assert (
            len(np.unique(oracles.random_bits(RAW, shape=2**16, dtype=f"uint{8 * size}") >> (8 * size - bits)))
            == 2**bits
        )


@pytest.mark.parametrize("parameters", [(0.5, 2.0), "traced", "arrays", "some arrays"], ids=str)
def test_parameters_are_numbers_or_arrays(parameters):
    """As by plain JAX, with the same gradients."""
    shape, rng = (3, 700), np.random.default_rng(0)
    first, second = parameters if isinstance(parameters, tuple) else (0.5, 2.0)
    if parameters == "traced":
        first, second = sent.asarray(first, "float32"), sent.asarray([second], "float32")
    elif parameters in ("arrays", "some arrays"):
        first = sent.asarray(rng.random((3, 1)), "float32")
        second = sent.asarray(1 + rng.random(700), "float32") if parameters == "arrays" else second
    for op in (bj.random_uniform, bj.random_normal):
        draw = lambda a, b, how, op=op: op(KEY, a, b, shape=shape, dtype="float32", implementation=how)
        native, xla = (jax.jit(functools.partial(draw, how=how))(first, second) for how in BOTH)
        np.testing.assert_allclose(native, xla, rtol=1e-6, atol=1e-6)
        if isinstance(parameters, str):
            loss = lambda a, b, how, draw=draw: (draw(a, b, how) ** 2).sum()
            slopes = [jax.jit(jax.grad(functools.partial(loss, how=how), (0,)))(first, second) for how in BOTH]
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), *slopes)
    p = (first + 0.1) / 2
    bools = [bj.random_bernoulli(KEY, p, shape=shape, implementation=how) for how in BOTH]
    same_bits(*bools)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 5, 32, 33, 1031, 2048])
def test_rows_of_numbers_begin_anywhere(length, dtype):
    """Inside blocks, and beyond 2^32 bytes and blocks: of all kernels."""
    rng, wide = np.random.default_rng(length), "float64" if dtype == "float64" else "float32"
    drawn, mantissa = oracles.DRAWN[dtype]
    cases = {
        "philox_uniform": (drawn, (), dtype, (0.0, 1.0), {}),
        "philox_bernoulli": (drawn, (), bool, (0.375,), {"bits": drawn}),
        "philox_dropout": (32, (length,), dtype, (0.375, 2.0), {}),
    }
    for target, (bits, operand, result, numbers, attributes) in cases.items():
        size = bits // 8
        starts = np.r_[np.arange(9), rng.integers(0, 2**58, 9), 2**32 // size - np.arange(9), 2**36 // size - 4] * size
        keys = rng.integers(0, 2**32, (starts.size, 4))
        words = np.tile(np.array(numbers, wide).view(np.uint32), (starts.size, 1))
        streams = np.concatenate([keys, np.stack([starts % 2**32, starts >> 32], -1), words], -1).astype(np.uint32)
        streams = np.pad(streams, ((0, 0), (0, streams.shape[1] % 2)))
        x = [np.asarray(sent.ones((starts.size, *operand), dtype))] if operand else []
        out = [jax.ShapeDtypeStruct((starts.size, length), result)]
        dims = "...n, ...s -> ...n" if operand else "...s -> ...n"
        (y,) = jax.jit(
            lambda *a, target=target, dims=dims, out=out, more=attributes: kernel(target, dims, *a, out=out, **more)
        )(*x, streams)
        for row, key, start in zip(np.asarray(y), keys.astype(np.uint32), starts.tolist(), strict=True):
            first = start // 16
            bytes_ = oracles.philox(key, (first + np.arange(length * size // 16 + 2)).astype(np.uint64)).tobytes()
            found = np.frombuffer(bytes_, f"uint{bits}", length, start - 16 * first)
            u = (found >> (bits - (23 if operand else mantissa))) * 2.0 ** -(23 if operand else mantissa)
            want = {"philox_uniform": u, "philox_bernoulli": u < 0.375, "philox_dropout": 2.0 * (u < 0.375)}[target]
            np.testing.assert_array_equal(row.astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0, "traced"], ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_mask_of_dropout(dtype, rate):
    """That of bernoulli, by the kernel and plain JAX, which have the same bits; also in the gradient and its tangent."""
    given = sent.asarray(0.3, "float32") if rate == "traced" else rate
    kept = jax.random.bernoulli(
        KEY, jnp.float32(1) - jnp.float32(given) if rate == "traced" else jnp.float32(1 - rate), (5, 1031)
    )
    x = 1 + jnp.abs(normal((5, 1031), dtype))

    def everything(x, given, how):
        fun = lambda x: bj.dropout(x, KEY, given, implementation=how)
        y, pull = jax.vjp(fun, x)
        square = lambda x: (fun(x).astype("float32") ** 2).sum()
        of_gradient = jax.jvp(jax.grad(square), (x,), (x,))[1]
        return (
            y,
            pull(x)[0],
            jax.jvp(fun, (x,), (x,))[1],
            bj.backward.dropout_backward(x, KEY, given, implementation=how),
            of_gradient,
        )

    native, xla = (jax.jit(functools.partial(everything, how=how))(x, given) for how in BOTH)
    jax.tree.map(same_bits, native[:4], xla[:4])
    for y in native:
        np.testing.assert_array_equal(np.asarray(y) != 0, np.asarray(kept))
    factor = 1 / (1 - 0.3) if rate in (0.3, "traced") else 1
    np.testing.assert_allclose(
        np.asarray(native[0], float),
        np.where(kept, np.asarray(x, float) * factor, 0),
        rtol={"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6),
    )


def test_dropout_with_batches_of_some_operands():
    """x, the key and the rate mapped, alone and together, from outside and inside."""
    x, keys = normal((3, 4, 60), "float32"), jax.random.split(KEY, 3)
    rates = sent.asarray([0.1, 0.5, 1.0], "float32")
    fun = lambda x, key, rate: bj.dropout(x, key, rate, implementation="native")
    plain = lambda x, key, rate: bj.dropout(x, key, rate, implementation="xla")
    for axes in ((0, None, None), (None, 0, None), (None, None, 0), (0, 0, None), (1, 0, 0), (0, None, 0)):
        args = [
            a if axis is not None else a[0]
            for a, axis in zip((x.swapaxes(0, axes[0] or 0), keys, rates), axes, strict=True)
        ]
        got, want = (jax.jit(jax.vmap(f, axes))(*args) for f in (fun, plain))
        same_bits(got, want)
        at = lambda i, axes=axes, args=args: [
            a if axis is None else (a[:, i] if axis else a[i]) for a, axis in zip(args, axes, strict=True)
        ]
        for i in range(3):
            same_bits(got[i], fun(*at(i)))
    inner = jax.vmap(fun, (0, None, None))  # rows with one mask
    both = jax.jit(jax.vmap(inner, (None, 0, None)))(x[0], keys, rates[0])
    for row, key in zip(both, keys, strict=True):
        for got, one in zip(row, x[0], strict=True):
            same_bits(got, fun(one, key, rates[0]))


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("shape, spec", [((8, 6), P("a")), ((5, 16), P(None, "a")), ((8, 24, 3), P("b", "a")), ((4, 2048), P(None, ("a", "b"))), ((8, 4, 16), P(("a", "b"), None, None))], ids=str)  # fmt: skip
def test_dropout_on_shards_has_the_whole_mask(shape, spec, kind):
    """Each device its part, without communication; the gradient too, and under vmap."""
    if len(devices()) < 8:
        pytest.skip("needs eight devices")
    types = (jax.sharding.AxisType.Auto if kind == "auto" else jax.sharding.AxisType.Explicit,) * 2
    sizes = (2, 4) if len(shape) == 3 or shape[-1] == 2048 else (8, 1)
    over = jax.make_mesh(sizes, ("a", "b"), axis_types=types, devices=devices()[:8])
    x = normal(shape, "float32")
    fun = lambda x: bj.dropout(x, RAW, 0.4, implementation="native")
    both = lambda x: (fun(x), jax.grad(lambda x: (fun(x) * x).sum())(x))
    want = jax.jit(both)(x)
    with jax.set_mesh(over):
        placed = jax.device_put(x, NamedSharding(over, spec))
        compiled = jax.jit(both).lower(placed).compile()
        assert collectives(compiled.as_text()) == {}
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(np.asarray(a), np.asarray(b)), compiled(placed), want)
        mapped = jax.jit(jax.vmap(fun))(placed)
    np.testing.assert_array_equal(np.asarray(mapped), np.asarray(jax.jit(jax.vmap(fun))(x)))


def test_kernels_in_exported_programs(platform):
    """For two platforms; and a size that is left open is for plain JAX."""
    fun = lambda x: bj.dropout(x, RAW, 0.3, implementation="native")
    (n,) = export.symbolic_shape("n")
    x = normal((5, 3), "float32")
    for rows, platforms in ((5, ("cpu", "cuda")), (n, (platform,))):
        program = export.export(jax.jit(fun), platforms=platforms, disabled_checks=bj.export_checks)
        same_bits(export.deserialize(program(jax.ShapeDtypeStruct((rows, 3), "float32")).serialize()).call(x), fun(x))


# ---------------------------------------------------------------------------------------------------------------------
# The same bits everywhere

SHAPE = (16, 16384)
DRAWS = {
    "bits": lambda key: jax.random.bits(key, SHAPE, "uint32"),
    "bytes": lambda key: jax.random.bits(key, SHAPE, "uint8"),
    "uniform": lambda key: jax.random.uniform(key, SHAPE, "float32"),
    "normal": lambda key: jax.random.normal(key, SHAPE, "bfloat16"),
    "bernoulli": lambda key: jax.random.bernoulli(key, 0.3, SHAPE),
    "dropout": lambda key: bj.dropout(sent.ones(SHAPE), key, 0.3, implementation="native"),
    "random_normal": lambda key: bj.random_normal(key, 1.0, 2.0, shape=SHAPE, dtype="float32", implementation="native"),
    "random_bernoulli": lambda key: bj.random_bernoulli(key, 0.3, shape=SHAPE, implementation="native"),
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
    with jax.default_device(devices()[0]):
        alone = jax.jit(DRAWS[name])(KEY)
    np.testing.assert_array_equal(np.asarray(program(KEY)), np.asarray(alone))


def _results_of_kernels(text):
    import re

    return re.findall(r"= \w+\[([\d,]+)\]\S* custom-call\(.*baracuda\.philox_\w+", text)


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
