"""Packed weights, against their definition bit by bit and other libraries: gguf, bitsandbytes and torchao, where these are
installed."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import same_bits
from oracles import packed as oracle

import baracuda_jax as bj
from baracuda_jax.packed._family import random_blocks
from baracuda_jax.packed._formats import BY_NUMBER, GGUF

BACKENDS = pytest.mark.parametrize("implementation", ["native", "xla"])
FORMATS = pytest.mark.parametrize("format", GGUF)


def rng(seed=0):
    return np.random.default_rng(seed)


def blocks(format, rows, weights, seed=0):
    return random_blocks(rng(seed), format, rows, weights // GGUF[format].block)


# ---------------------------------------------------------------------------------------------------------------------
# Weights as floats


@BACKENDS
@FORMATS
def test_every_weight_of_a_block(format, implementation):
    """Exact: float32 has the bits of each product of factors and value, but in Q8_K, whose factor has 24."""
    data = blocks(format, 2, 512)
    y = bj.gguf_dequantize(data, format, implementation=implementation)
    want = oracle.gguf_weights(data, format)
    np.testing.assert_array_equal(y, want.astype(np.float32))
    assert np.unique(np.asarray(y)).size > 12


@BACKENDS
@FORMATS
def test_every_byte_of_a_block_is_read(format, implementation):
    """Blocks whose bytes are changed one by one have other weights, except for the sums of Q8_K. One of four, since a factor may
    be 0."""
    size = GGUF[format].bytes
    base = random_blocks(rng(1), format, 4, 1)
    changed = np.repeat(base[None], size, 0)
    changed[np.arange(size), :, np.arange(size)] ^= 0x55  # some bits of each field
    y = np.asarray(bj.gguf_dequantize(changed, format, implementation=implementation))
    alone = np.asarray(bj.gguf_dequantize(base, format, implementation=implementation))
    read = 260 if format == "Q8_K" else size
    np.testing.assert_array_equal((y != alone).any((1, 2)), np.arange(size) < read)


@BACKENDS
@FORMATS
def test_values_are_those_of_gguf(format, implementation):
    """The package gguf decodes with NumPy. Every exponent of the factors is there but those of infinity and NaN."""
    gguf = pytest.importorskip("gguf")
    if format == "Q8_K":
        pytest.skip("it does not decode Q8_K")
    data = blocks(format, 64, 512, seed=2).reshape(-1, GGUF[format].bytes)
    if format == "MXFP4":
        data[:, 0] = np.resize(np.arange(2, 256), len(data))  # those of scales that are no subnormal numbers
    else:
        at = {"Q2_K": 80, "Q3_K": 108, "Q6_K": 208}.get(format, 0)
        data[:, at + 1] = rng(3).integers(0, 0x7C, len(data)) | rng(4).integers(0, 2, len(data)) << 7
    with np.errstate(over="ignore"):
        want = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[format])
    same_bits(bj.gguf_dequantize(data, format, implementation=implementation), want)


@BACKENDS
@pytest.mark.parametrize("code", ["nf4", "fp4"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_values_are_those_of_bitsandbytes(code, is_nested, implementation):
    torch, functional = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes.functional")
    x = torch.tensor(rng().standard_normal((48, 256)), dtype=torch.float32)
    q, state = functional.quantize_4bit(x, blocksize=64, quant_type=code, compress_statistics=is_nested)
    absmax = state.absmax.numpy()
    if is_nested:
        nested = state.state2
        absmax = bj.packed.NestedAbsmax(absmax, nested.code.numpy(), nested.absmax.numpy(), state.offset.numpy())
    y = bj.nf4_dequantize(q.numpy(), absmax, (48, 256), code=code, implementation=implementation)
    want = functional.dequantize_4bit(q, state).numpy()
    if is_nested:  # whose product and sum may be rounded once there
        np.testing.assert_allclose(y, want, rtol=1e-6)
    else:
        np.testing.assert_array_equal(y, want)


@BACKENDS
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_groups_and_zero_points(groups, implementation):
    data, scale = rng().integers(0, 256, (3, 5, 256), np.uint8), rng(1).uniform(0.1, 1, (3, 5, groups)).astype("f4")
    zero = rng(2).integers(0, 16, (3, 5, groups))
    for given in (None, zero, zero + 0.25):
        y = bj.int4_dequantize(data, scale, given, dtype="float64", implementation=implementation)
        np.testing.assert_allclose(y, oracle.int4_weights(data, scale, given), rtol=2e-7, atol=0)
        y = bj.int4_dequantize(data, scale, given, dtype="float64", bits=8, implementation=implementation)
        np.testing.assert_allclose(y, oracle.int4_weights(data, scale, given, 8), rtol=2e-7, atol=0)
    y = bj.nf4_dequantize(data, scale, dtype="float64", implementation=implementation)
    np.testing.assert_allclose(y, oracle.nf4_weights(data, scale), rtol=1e-7)


@BACKENDS
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("bits", [4, 8])
def test_values_are_those_of_torchao(bits, groups, implementation):
    torch, torchao = pytest.importorskip("torch"), pytest.importorskip("torchao.quantization.quant_primitives")
    dtype, smallest, largest = (torch.uint8, 0, 15) if bits == 4 else (torch.int8, -128, 127)
    q, zero = rng().integers(smallest, largest + 1, (12, 128)), rng(2).integers(smallest, largest + 1, (12, groups))
    q = q.astype(np.uint8 if bits == 4 else np.int8)
    scale = rng(1).uniform(0.1, 1, (12, groups)).astype("f4")
    want = torchao.dequantize_affine(
        torch.tensor(q), (1, 128 // groups), torch.tensor(scale), torch.tensor(zero), dtype, smallest, largest
    )
    data = q[:, 0::2] | q[:, 1::2] << 4 if bits == 4 else q.view(np.uint8)
    same_bits(bj.int4_dequantize(data, scale, zero, bits=bits, implementation=implementation), want.numpy())


@BACKENDS
def test_every_byte_of_eight_bits(implementation):
    """At each position of a block."""
    data = (np.arange(256)[:, None] + np.arange(32)).astype(np.uint8)
    y = bj.int4_dequantize(data, np.ones((256, 1), np.float32), bits=8, implementation=implementation)
    np.testing.assert_array_equal(y, data.view(np.int8))


@BACKENDS
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_dtypes_are_rounded_once(dtype, implementation):
    data = blocks("Q6_K", 3, 256)
    y = bj.gguf_dequantize(data, "Q6_K", dtype=dtype, implementation=implementation)
    same_bits(y, oracle.gguf_weights(data, "Q6_K").astype(jnp.dtype(dtype)))


@BACKENDS
def test_no_rows_and_no_blocks(implementation):
    for rows, count in ((0, 256), (3, 0), (0, 0)):
        data = np.zeros((rows, count // 256 * 144), np.uint8)
        assert bj.gguf_dequantize(data, "Q4_K", implementation=implementation).shape == (rows, count)
        data, scale = np.zeros((rows, count // 2), np.uint8), np.zeros((rows, count // 64), np.float32)
        assert bj.nf4_dequantize(data, scale, implementation=implementation).shape == (rows, count)
        y = bj.int4_dequantize(data, scale, bits=8, implementation=implementation)
        assert y.shape == (rows, count // 2)


def test_factors_that_are_not_finite():
    """They reach all weights of their block, as products do."""
    data = blocks("Q8_0", 1, 64)
    data[0, :2] = np.float16(np.nan).tobytes()[0], np.float16(np.nan).tobytes()[1]
    for implementation in ("native", "xla"):
        y = np.asarray(bj.gguf_dequantize(data, "Q8_0", implementation=implementation))
        assert np.isnan(y[0, :32]).all() and np.isfinite(y[0, 32:]).all()


def test_a_format_by_its_number():
    for number, format in BY_NUMBER.items():
        data = blocks(format.name, 1, 256)
        same_bits(bj.gguf_dequantize(data, number), bj.gguf_dequantize(data, format.name.lower()))


def test_a_batch_of_one_operand():
    """Scales of many, of the same bytes, and the other way around."""
    data, scale = rng().integers(0, 256, (2, 3, 64), np.uint8), rng(1).uniform(0.1, 1, (2, 3, 4)).astype("f4")
    for axes, args in (((0, None), (data, scale[0])), ((None, 0), (data[0], scale))):
        y = jax.jit(jax.vmap(bj.nf4_dequantize, axes))(*args)
        for i in range(2):
            each = [a[i] if axis == 0 else a for a, axis in zip(args, axes, strict=True)]
            same_bits(y[i], bj.nf4_dequantize(*each))


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, r"gguf_dequantize: format must be one of Q4_0, .* got 'Q9'", lambda d: bj.gguf_dequantize(d, "Q9")),
        (ValueError, r"gguf_dequantize: format must be .* got 99", lambda d: bj.gguf_dequantize(d, 99)),
        (ValueError, r"gguf_dequantize: data must have rows of whole blocks, 18 bytes each in Q4_0, got shape \(2, 32\)", lambda d: bj.gguf_dequantize(d, "Q4_0")),
        (TypeError, "gguf_dequantize: data must have one of the dtypes uint8, got int8", lambda d: bj.gguf_dequantize(d.astype("int8"), "Q4_0")),
        (ValueError, "gguf_dequantize: dtype must be one of .* got 'int8'", lambda d: bj.gguf_dequantize(d[:, :18], "Q4_0", dtype="int8")),
        (ValueError, r"gguf_dequantize: shape must have 64 elements, as the data has weights, got \(3, 3\)", lambda d: bj.gguf_dequantize(d[:, :18], "Q4_0", (3, 3))),
        (ValueError, r"nf4_dequantize: absmax must have groups of a multiple of 32 weights: expected a divisor of 2 for rows of 64, got 4", lambda d: bj.nf4_dequantize(d, sent.ones((2, 4)))),
        (ValueError, r"nf4_dequantize: absmax must have the shape of the data except for the last dimension, \(2,\), got \(3, 1\)", lambda d: bj.nf4_dequantize(d, sent.ones((3, 1)))),
        (ValueError, "nf4_dequantize: code must be one of 'nf4', 'fp4', got 'int4'", lambda d: bj.nf4_dequantize(d, sent.ones((2, 1)), code="int4")),
        (ValueError, "int4_dequantize: data must have rows of a multiple of 16 bytes, got 9", lambda d: bj.int4_dequantize(d[:, :9], sent.ones((2, 0)))),
        (ValueError, "int4_dequantize: data must have rows of a multiple of 32 bytes, got 16", lambda d: bj.int4_dequantize(d[:, :16], sent.ones((2, 1)), bits=8)),
        (ValueError, "int4_dequantize: bits must be one of 4, 8, got 5", lambda d: bj.int4_dequantize(d, sent.ones((2, 1)), bits=5)),
        (ValueError, r"int4_dequantize: zero_point must have shape \(2, 1\), that of scale, got \(2,\)", lambda d: bj.int4_dequantize(d, sent.ones((2, 1)), sent.ones(2))),
        (ValueError, r"nf4_dequantize: absmax.scale must have shape \(1,\), one for each 256 elements of q, got \(2,\)", lambda d: bj.nf4_dequantize(d, bj.packed.NestedAbsmax(d[:, :1], sent.ones(256), sent.ones(2), sent.ones(())))),
    ],
)  # fmt: skip
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(np.zeros((2, 32), np.uint8))


# ---------------------------------------------------------------------------------------------------------------------
# Products


def near(y, want, dtype, size=None):
    """Within a few roundings of `size`, which is that of the largest element if it is not given."""
    eps = {"float32": 2e-6, "float64": 4e-15, "float16": 2e-3, "bfloat16": 1.6e-2}[dtype]
    size = np.abs(want).max(initial=1e-30) if size is None else size
    np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=0, atol=eps * size)


@BACKENDS
@FORMATS
@pytest.mark.parametrize("count", [1, 5, 16, 17])
def test_products_with_every_format(format, count, implementation):
    """Of more rows than the kernel takes, too."""
    data, x = blocks(format, 9, 1280 if GGUF[format].block == 256 else 1056), rng(1)
    w = np.asarray(bj.gguf_dequantize(data, format), np.float64)
    x = x.standard_normal((count, w.shape[1])).astype(np.float32)
    near(bj.gguf_mmvq(x, data, format, implementation=implementation), x.astype(np.float64) @ w.T, "float32")
    dy = rng(2).standard_normal((count, 9)).astype(np.float32)
    dx = bj.gguf_mmvq_backward(data, dy, format, implementation=implementation)
    near(dx, dy.astype(np.float64) @ w, "float32")


@BACKENDS
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_products_in_other_dtypes(dtype, implementation):
    data, scale = rng().integers(0, 256, (11, 160), np.uint8), rng(1).uniform(0.1, 1, (11, 5)).astype("f4")
    zero = rng(3).integers(-128, 128, scale.shape)
    for lead in ((), (2, 3), (3, 6)):
        x = sent.asarray(rng(2).standard_normal((*lead, 320)), jnp.dtype(dtype))
        wide = np.asarray(x, np.float64)
        near(
            bj.nf4_mmvq(x, data, scale, implementation=implementation),
            wide @ np.asarray(bj.nf4_dequantize(data, scale), np.float64).T,
            dtype,
        )
        y = bj.int4_mmvq(x, data, scale, implementation=implementation)
        assert y.dtype == x.dtype
        near(y, wide @ np.asarray(bj.int4_dequantize(data, scale), np.float64).T, dtype)
        for packed in ((data, scale), (data, scale, zero)):
            y = bj.int4_mmvq(x[..., :160], *packed, bits=8, implementation=implementation)
            near(y, wide[..., :160] @ np.asarray(bj.int4_dequantize(*packed, bits=8), np.float64).T, dtype)


@pytest.mark.parametrize("count", [2, 4, 7, 16])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("format", ["Q4_K", "Q6_K", "Q8_0"])
def test_a_row_has_the_bits_that_it_has_alone(count, dtype, format):
    data, x = blocks(format, 33, 4352), rng(1).standard_normal((count, 4352)).astype(jnp.dtype(dtype))
    y = bj.gguf_mmvq(x, data, format, implementation="native")
    for i in range(count):
        same_bits(y[i], bj.gguf_mmvq(x[i], data, format, implementation="native"))


WITH_GROUPS = pytest.mark.parametrize(
    "weights", ["nf4", "int4", "int4 with zero points", "int8", "int8 with zero points"]
)


def bits_of(weights):
    return 8 if "int8" in weights else 4


def multiply_of(weights):
    return bj.nf4_mmvq if weights == "nf4" else partial(bj.int4_mmvq, bits=bits_of(weights))


@pytest.mark.parametrize("count", [3, 16])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@WITH_GROUPS
def test_a_row_has_the_bits_that_it_has_alone_with_groups(count, dtype, weights):
    rows, columns, groups, bits = 37, 1376, 43, bits_of(weights)
    data, scale = (
        rng().integers(0, 256, (rows, columns * bits // 8), np.uint8),
        rng(1).uniform(0.1, 1, (rows, groups)).astype("f4"),
    )
    operands = (data, scale, rng(2).uniform(0, 15, scale.shape).astype("f4")) if "zero" in weights else (data, scale)
    if weights == "nf4" and jax.default_backend() == "gpu":
        pytest.skip("one row has a kernel that adds in another order")
    x = rng(3).standard_normal((count, columns)).astype(jnp.dtype(dtype))
    multiply = partial(multiply_of(weights), implementation="native")
    y = multiply(x, *operands)
    for i in range(count):
        same_bits(y[i], multiply(x[i], *operands))


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="elsewhere a library multiplies more than 16 rows")
@FORMATS
def test_a_row_has_the_bits_that_it_has_among_many(format):
    data, x = blocks(format, 70, 1280), rng(1).standard_normal((64, 1280)).astype(jnp.bfloat16)
    y = bj.gguf_mmvq(x, data, format, implementation="native")
    for count in (1, 4, 5, 16, 17, 33):
        same_bits(y[:count], bj.gguf_mmvq(x[:count], data, format, implementation="native"))


@FORMATS
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("count", [1, 5, 16, 17, 40, 64])
def test_products_in_half_precision_with_every_format(format, dtype, count):
    """Of long rows, whose blocks are dealt to several sums, and with factors that leave results finite."""
    data = blocks(format, 35, 4352 if GGUF[format].block == 256 else 4256)
    w = np.asarray(bj.gguf_dequantize(data, format), np.float64)
    x = rng(1).standard_normal((count, w.shape[1])) / np.abs(w).max()
    x = x.astype(jnp.dtype(dtype))
    y = bj.gguf_mmvq(x, data, format, implementation="native")
    near(y, np.asarray(x, np.float64) @ w.T, dtype)


@pytest.mark.parametrize("kind", ["nf4", "fp4", "int4", "zero points"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("count", [1, 7, 33])
def test_products_in_half_precision_with_factors_in_arrays(kind, dtype, count):
    data, scale = rng().integers(0, 256, (21, 2144), np.uint8), rng(1).uniform(0.1, 1, (21, 67)).astype("f4")
    x = rng(2).standard_normal((count, 4288)).astype(jnp.dtype(dtype))
    if kind in ("nf4", "fp4"):
        y, w = bj.nf4_mmvq(x, data, scale, code=kind), bj.nf4_dequantize(data, scale, code=kind)
    else:
        zero = rng(3).uniform(0, 15, scale.shape).astype("f4") if kind == "zero points" else None
        y, w = bj.int4_mmvq(x, data, scale, zero), bj.int4_dequantize(data, scale, zero)
    near(y, np.asarray(x, np.float64) @ np.asarray(w, np.float64).T, dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("code", ["nf4", "fp4"])
@pytest.mark.parametrize(
    "batches, rows, columns, group",
    [
        (2, 1, 32, 32),
        (3, 7, 1056, 96),
        (1, 1003, 2304, 64),
        (2, 9, 33280, 64),
        (1, 2500, 4352, 128),
        (1, 5, 1 << 20, 64),
    ],
)
def test_one_row_with_entries_of_tables(batches, rows, columns, group, code, dtype):
    """Of few and many rows and columns, and x that has infinity in the last batch of several."""
    data = rng().integers(0, 256, (batches, rows, columns // 2), np.uint8)
    scale = rng(1).uniform(0.1, 1, (batches, rows, columns // group)).astype("f4")
    x = rng(2).uniform(-0.7, 1, (batches, columns)).astype(jnp.dtype(dtype))
    x[-1, columns // 3] = np.inf if batches > 1 else 1
    y = np.asarray(jax.jit(jax.vmap(partial(bj.nf4_mmvq, code=code, implementation="native")))(x, data, scale))
    w = np.asarray(bj.nf4_dequantize(data, scale, code=code), np.float64)
    with np.errstate(invalid="ignore"):
        want = np.einsum("bk,bnk->bn", np.asarray(x, np.float64), w)
    wild = ~np.isfinite(want)
    np.testing.assert_array_equal(y[wild].astype(np.float64), want[wild])
    size = np.einsum("bk,bnk->bn", np.abs(np.where(np.isfinite(x), x, 0), dtype="f8"), np.abs(w)).max()
    near(np.where(wild, 0, y), np.where(wild, 0, want), dtype, size)


# Of a matrix that is large enough for kernels of many rows of x, with rows that are no multiple of a block's.
MANY_ROWS = pytest.mark.parametrize(
    "count, dtype", [(24, "bfloat16"), (33, "float16"), (48, "bfloat16"), (64, "float16")]
)


@FORMATS
@MANY_ROWS
def test_products_of_a_large_matrix_with_every_format(format, count, dtype):
    data = blocks(format, 300, 4352 if GGUF[format].block == 256 else 4256)
    w = np.asarray(bj.gguf_dequantize(data, format), np.float64)
    x = (rng(1).uniform(-0.7, 1, (count, w.shape[1])) / np.abs(w).max()).astype(jnp.dtype(dtype))
    near(bj.gguf_mmvq(x, data, format, implementation="native"), np.asarray(x, np.float64) @ w.T, dtype)


@MANY_ROWS
@pytest.mark.parametrize("kind", ["nf4", "fp4", "int4", "int4 with zero points", "int8", "int8 with zero points"])
def test_products_of_large_matrices_with_factors_in_arrays(kind, count, dtype):
    """Of several matrices, and x that has infinity in one row."""
    bits = 8 if "int8" in kind else 4
    data = rng().integers(0, 256, (2, 300, 532 * bits), np.uint8)
    scale = rng(1).uniform(0.1, 1, (2, 300, 19)).astype("f4")
    x = rng(2).uniform(-0.7, 1, (2, count, 4256)).astype(jnp.dtype(dtype))
    x[1, 2, 77] = np.inf
    if kind in ("nf4", "fp4"):
        operands, multiply = (data, scale), partial(bj.nf4_mmvq, code=kind)
        w = bj.nf4_dequantize(data, scale, code=kind)
    else:
        zero = (rng(3).uniform(0, 15, scale.shape).astype("f4"),) if "zero points" in kind else ()
        operands, multiply = (data, scale, *zero), partial(bj.int4_mmvq, bits=bits)
        w = bj.int4_dequantize(*operands, bits=bits)
    y = jax.jit(jax.vmap(multiply))(x, *operands)
    y, w = np.array(y, np.float64), np.asarray(w, np.float64)
    with np.errstate(invalid="ignore"):
        of_infinity = np.asarray(x[1, 2], np.float64) @ w[1].T
    np.testing.assert_array_equal(y[1, 2], of_infinity)
    x[1, 2], y[1, 2] = 0, 0
    near(y, np.asarray(x, np.float64) @ w.transpose(0, 2, 1), dtype)


@BACKENDS
def test_products_of_nothing(implementation):
    call = lambda rows, weights, lead: bj.gguf_mmvq(
        np.ones((*lead, weights), np.float32), np.zeros((rows, weights // 32 * 18), np.uint8), "Q4_0", implementation=implementation
    )  # fmt: skip
    assert call(0, 64, ()).shape == (0,)
    assert call(3, 64, (0,)).shape == (0, 3)
    np.testing.assert_array_equal(call(3, 0, (2,)), np.zeros((2, 3)))


@BACKENDS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_infinity_and_nan_in_x(dtype, implementation):
    """They go where products with the weights send them, though the formats have minima that are subtracted."""
    data = blocks("Q4_K", 4, 256)
    w = np.asarray(bj.gguf_dequantize(data, "Q4_K"), np.float64)
    for value in (np.inf, -np.inf, np.nan):
        x = rng(1).standard_normal(256).astype(jnp.dtype(dtype))
        x[17] = value
        with np.errstate(invalid="ignore"):
            want = x.astype(np.float64) @ w.T
        y = np.asarray(bj.gguf_mmvq(x, data, "Q4_K", implementation=implementation), np.float64)
        np.testing.assert_array_equal(np.where(np.isfinite(y), 0, y), np.where(np.isfinite(want), 0, want))


@BACKENDS
def test_a_matrix_of_bitsandbytes(implementation):
    torch, functional = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes.functional")
    w = torch.tensor(rng().standard_normal((24, 128)), dtype=torch.float32)
    q, state = functional.quantize_4bit(w, blocksize=64, quant_type="nf4")
    x = rng(1).standard_normal((3, 128)).astype(np.float32)
    want = x.astype(np.float64) @ functional.dequantize_4bit(q, state).double().numpy().T
    packed = q.numpy(), state.absmax.numpy()
    near(bj.nf4_mmvq(x, *packed, implementation=implementation), want, "float32")
    dx = bj.nf4_mmvq_backward(*packed, want.astype(np.float32), columns=128, implementation=implementation)
    near(dx, want @ functional.dequantize_4bit(q, state).double().numpy(), "float32")


@BACKENDS
@pytest.mark.parametrize("count", [3, 20])
def test_activations_of_eight_bits(count, implementation):
    """The rounding of x, and a derivative as if there were none."""
    data, x = blocks("Q4_0", 6, 96), rng(1).standard_normal((count, 96)).astype(np.float32)
    x[0, :32] = 0
    b = x.reshape(count, 3, 32)
    d = (np.abs(b).max(-1, keepdims=True) / np.float32(127)).astype(np.float32)
    q = np.rint(np.divide(b, d, where=d > 0, out=np.zeros_like(b)))
    rounded = (q * d.astype(np.float16).astype(np.float64)).reshape(x.shape)
    assert 1e-4 < np.abs(rounded - x).max() < 2e-2
    w = oracle.gguf_weights(data, "Q4_0")
    call = lambda x, numerics: bj.gguf_mmvq(x, data, "Q4_0", numerics=numerics, implementation=implementation)
    near(call(x, "q8"), rounded @ w.T, "float32")
    same_bits(*(jax.jit(jax.grad(lambda x, n=n: call(x, n).sum()))(x) for n in ("q8", "exact")))


@BACKENDS
@pytest.mark.parametrize("numerics", ["exact", "q8"])
@WITH_GROUPS
@pytest.mark.parametrize("lead", [(), (3,), (20,)])
def test_gradients_of_factors(lead, weights, numerics, implementation):
    """On request: those of a product with the weights as floats, of each operand alone and of all."""
    bits = bits_of(weights)
    data, scale = rng().integers(0, 256, (6, 12 * bits), np.uint8), rng(1).uniform(0.1, 1, (6, 3)).astype("f4")
    x = rng(3).standard_normal((*lead, 96)).astype(np.float32)
    factors = (scale, rng(2).uniform(0, 15, scale.shape).astype("f4")) if "zero" in weights else (scale,)
    multiply = partial(multiply_of(weights), numerics=numerics, implementation=implementation)
    dy = rng(4).standard_normal((*lead, 6)).astype(np.float32)
    loss = lambda x, *factors: (multiply(x, data, *factors, factor_gradients=True) * dy).sum()
    q = np.stack([data >> 4, data & 15] if weights == "nf4" else [data & 15, data >> 4], -1)
    q = data.view(np.int8) if bits == 8 else q
    values = (np.float64(bj.packed._decode.NF4)[q] if weights == "nf4" else q.astype(float)).reshape(6, 3, 32)
    minus = factors[1][..., None] if len(factors) == 2 else 8 if weights == "int4" else 0
    rounded = np.asarray(bj.packed._multiply.rounded_to_q8(sent.asarray(x))) if numerics == "q8" else x
    dw = (dy.reshape(-1, 6, 1) * rounded.reshape(-1, 1, 96).astype(np.float64)).sum(0).reshape(6, 3, 32)
    want = [(dw * (values - minus)).sum(-1), -(dw.sum(-1) * scale)][: len(factors)]
    argnums = tuple(range(1, 1 + len(factors)))
    found = jax.jit(jax.grad(loss, argnums))(x, *factors)
    dx, *again = jax.jit(jax.grad(loss, (0, *argnums)))(x, *factors)
    for got, same, each in zip(found, again, want, strict=True):
        near(got, each, "float32")
        near(same, each, "float32")
    plain = lambda x: (multiply(x, data, *factors) * dy).sum()
    # XLA may add a product of weights that it decodes on the way in another order.
    equal = same_bits if implementation == "native" else partial(near, dtype="float32")
    equal(dx, jax.jit(jax.grad(plain))(x))
    same_bits(multiply(x, data, *factors, factor_gradients=True), multiply(x, data, *factors))


def test_batches_of_matrices():
    """vmap over the vectors alone, the matrices alone, and both."""
    data, x = blocks("Q5_1", 10, 64).reshape(2, 5, -1), rng(1).standard_normal((2, 64)).astype(np.float32)
    call = lambda x, d: bj.gguf_mmvq(x, d, "Q5_1", implementation="native")
    for axes in ((0, None), (None, 0), (0, 0)):
        args = [a if axis == 0 else a[0] for a, axis in zip((x, data), axes, strict=True)]
        y = jax.jit(jax.vmap(call, axes))(*args)
        for i in range(2):
            same_bits(y[i], call(*(a[i] if axis == 0 else a for a, axis in zip(args, axes, strict=True))))


def test_batches_of_batches():
    """Scales that are mapped once, of bytes that are mapped twice, belong to the outer batches."""
    data = np.random.default_rng(0).integers(0, 256, (2, 2, 5, 32), np.uint8)
    scale, x = rng(1).uniform(0.1, 1, (2, 5, 2)).astype("f4"), rng(2).standard_normal((2, 2, 64)).astype("f4")
    call = lambda x, d, s: bj.nf4_mmvq(x, d, s, implementation="native")
    y = jax.jit(jax.vmap(jax.vmap(call, (0, 0, None))))(x, data, scale)
    for i, j in np.ndindex(2, 2):
        same_bits(y[i, j], call(x[i, j], data[i, j], scale[i]))


def test_names_of_the_reference_system():
    assert bj.gguf_mmvq_multi_m is bj.gguf_mmvq and bj.nf4_mmvq_multi_m is bj.nf4_mmvq


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, r"gguf_mmvq: x must have rows of 32 elements, as the weights of format Q4_0, got shape \(2, 31\)", lambda x, d: bj.gguf_mmvq(x[:, :31], d, "Q4_0")),
        (ValueError, r"gguf_mmvq: data must have two dimensions, rows and their bytes; got shape \(18,\)", lambda x, d: bj.gguf_mmvq(x, d[0], "Q4_0")),
        (ValueError, "gguf_mmvq: numerics must be one of 'exact', 'q8', got 'int8'", lambda x, d: bj.gguf_mmvq(x, d, "Q4_0", numerics="int8")),
        (TypeError, "gguf_mmvq: x must have one of the dtypes float32.* got int32", lambda x, d: bj.gguf_mmvq(x.astype("int32"), d, "Q4_0")),
        (ValueError, r"gguf_mmvq_backward: dy must have rows of 3 elements, one for each row of the data, got shape \(2, 32\)", lambda x, d: bj.gguf_mmvq_backward(d, x, "Q4_0")),
        (ValueError, r"nf4_mmvq: data \[n, 1\] and absmax must be rows of 32 weights, whole groups each, got shapes \(24, 1\) and \(2,\)", lambda x, d: bj.nf4_mmvq(x, d.reshape(-1, 1)[:24], sent.ones(2))),
    ],
)  # fmt: skip
def test_errors_of_products(error, match, call):
    with pytest.raises(error, match=match):
        call(np.ones((2, 32), np.float32), np.zeros((3, 18), np.uint8))
