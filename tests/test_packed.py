"""Packed weights, against their definition bit by bit and other libraries: gguf and bitsandbytes, where these are installed."""

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
        data[:, 0] = np.resize(np.arange(4, 252), len(data))  # of 2^-124 and more, no value is subnormal
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
    y = bj.nf4_dequantize(data, scale, dtype="float64", implementation=implementation)
    np.testing.assert_allclose(y, oracle.nf4_weights(data, scale), rtol=1e-7)


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
        (ValueError, r"int4_dequantize: zero_point must have shape \(2, 1\), that of scale, got \(2,\)", lambda d: bj.int4_dequantize(d, sent.ones((2, 1)), sent.ones(2))),
        (ValueError, r"nf4_dequantize: absmax.scale must have shape \(1,\), one for each 256 elements of q, got \(2,\)", lambda d: bj.nf4_dequantize(d, bj.packed.NestedAbsmax(d[:, :1], sent.ones(256), sent.ones(2), sent.ones(())))),
    ],
)  # fmt: skip
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(np.zeros((2, 32), np.uint8))
