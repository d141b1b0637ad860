"""A matrix of packed weights as one value: packing, products, and what JAX does with a pytree."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import same_bits

import baracuda_jax as bj
from baracuda_jax.packed._family import random_blocks

FORMATS = ("Q8_0", "Q4_0", "Q4_K", "nf4", "fp4", "int4", "int8")
INTEGERS = pytest.mark.parametrize("format", ["int4", "int8"])


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# Half the largest distance of neighboring values, relative to the largest weight of a group.
# Q4_K has 15 steps from the smallest weight to the largest, and takes 14 to 16.
STEPS = {
    "Q8_0": 0.5 / 127,
    "Q4_0": 1 / 8,
    "Q4_K": 2 / 15,
    "nf4": 0.153,
    "fp4": 1 / 6,
    "int4": 0.5 / 7,
    "int8": 0.5 / 127,
}


@pytest.mark.parametrize("format", FORMATS)
def test_weights_are_rounded(format):
    """By half a step at most, and a little for scales in half precision; "Q4_0" clips what is opposite to its largest weight."""
    w = drawn(2, 6, 256)
    packed = bj.pack_weight(w, format)
    assert packed.shape == w.shape and packed.ndim == 3 and packed.format == format
    size = 64 if packed.scale is not None else 32
    largest = np.abs(w.reshape(2, 6, -1, size)).max(-1, keepdims=True)
    error = np.abs(np.asarray(packed.dequantize()) - w).reshape(2, 6, -1, size) / largest
    assert 0.3 * STEPS[format] < error.max() <= 1.01 * STEPS[format] + 1e-3


def test_values_that_a_format_has_stay():
    tables = {"nf4": bj.packed._decode.NF4, "fp4": bj.packed._decode.FP4, "int4": np.arange(-7, 8) / 7}
    tables["int8"] = np.r_[-127:-96, -1:2, 97:127] / 127
    for format, table in tables.items():
        w = np.resize(np.float32(table), (3, 64)) * np.float32([[1], [0.5], [7]])
        np.testing.assert_allclose(bj.pack_weight(w, format).dequantize(), w, rtol=1e-6, atol=1e-7)


@INTEGERS
def test_zero_points_follow_the_range(format):
    w = 5 + drawn(4, 64, seed=1)
    plain, shifted = (bj.pack_weight(w - 4, format, zero_points=z).dequantize() for z in (False, True))
    assert np.abs(shifted - (w - 4)).max() < np.abs(plain - (w - 4)).max()
    zero = bj.pack_weight(w, format, zero_points=True).zero_point
    assert zero.dtype == jnp.int32 and (zero == (0 if format == "int4" else -128)).all()


def test_a_scale_for_each_row():
    w = drawn(5, 96)
    packed = bj.pack_weight(w, "int8", group_size=96)
    scale = np.abs(w).max(1, keepdims=True) / np.float32(127)
    np.testing.assert_allclose(packed.scale, scale, rtol=2e-7)
    np.testing.assert_array_equal(np.asarray(packed.data).view(np.int8), np.rint(w / scale))
    assert packed.nbytes == 5 * (96 + 4)


def test_zeros_and_nothing():
    for format in FORMATS:
        np.testing.assert_array_equal(bj.pack_weight(np.zeros((2, 256), np.float32), format).dequantize(), 0)
        assert bj.pack_weight(np.zeros((0, 256), np.float32), format).shape == (0, 256)


def test_weights_of_q4_k():
    """Nearer than those of Q4_0, which takes as many bytes; alike for any scale and sign; constant ones, and those of one sign."""
    w = drawn(16, 512)
    error = lambda w, format: np.sqrt(np.mean((np.asarray(bj.pack_weight(w, format).dequantize()) - w) ** 2))
    assert error(w, "Q4_K") < 0.86 * error(w, "Q4_0")
    assert error(2 + np.abs(w), "Q4_K") < 0.5 * error(2 + np.abs(w), "Q4_0")
    for factor in (-1, 1e-3, 1e3):
        np.testing.assert_allclose(error(factor * w, "Q4_K") / abs(factor), error(w, "Q4_K"), rtol=3e-2)
    for constant in (1, -1, 0.37):
        np.testing.assert_allclose(
            bj.pack_weight(np.full((2, 256), constant, np.float32), "Q4_K").dequantize(), constant, rtol=2e-3
        )


def test_the_package_gguf_reads_q4_k():
    gguf = pytest.importorskip("gguf")
    packed = bj.pack_weight(drawn(16, 512), "Q4_K")
    want = gguf.quants.dequantize(np.asarray(packed.data), gguf.GGMLQuantizationType.Q4_K)
    np.testing.assert_array_equal(packed.dequantize(), want)


def test_values_that_q4_k_has_stay():
    """Of blocks with all scales and minima, packed again."""
    data = random_blocks(np.random.default_rng(0), "Q4_K", 8, 2)
    data = data.reshape(8, 2, 144)
    data[..., 2:4] = np.float16([0.0005]).view(np.uint8)
    w = np.asarray(bj.gguf_dequantize(data.reshape(8, 288), "Q4_K"))
    again = np.asarray(bj.pack_weight(w, "Q4_K").dequantize())
    size = np.abs(w).reshape(8, -1, 32).max(-1).repeat(32, -1)
    assert np.median(np.abs(again - w) / size) < 0.01


@pytest.mark.parametrize("format", ["Q8_0", "Q4_0"])
def test_bytes_are_those_of_gguf(format):
    """Q8_0 divides here, where the package multiplies by the reciprocal and rounds ties otherwise."""
    gguf = pytest.importorskip("gguf")
    w = drawn(64, 256)
    want = gguf.quants.quantize(w, gguf.GGMLQuantizationType[format])
    assert (np.asarray(bj.pack_weight(w, format).data) == want).mean() > 0.999


@pytest.mark.parametrize("code", ["nf4", "fp4"])
def test_bytes_are_those_of_bitsandbytes(code):
    torch, functional = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes.functional")
    w = drawn(32, 256)
    q, state = functional.quantize_4bit(torch.tensor(w), blocksize=64, quant_type=code)
    packed = bj.pack_weight(w, code)
    np.testing.assert_array_equal(np.asarray(packed.scale).ravel(), state.absmax.numpy())
    here, there = np.asarray(packed.dequantize()), functional.dequantize_4bit(q, state).numpy()
    assert (here == there).mean() > 0.999


def test_bytes_are_those_of_llm_int8():
    torch, functional = pytest.importorskip("torch"), pytest.importorskip("bitsandbytes.functional")
    w = drawn(32, 256).astype(np.float16)
    q, largest, _ = functional.int8_vectorwise_quant(torch.tensor(w))
    packed = bj.pack_weight(w, "int8", group_size=256)
    np.testing.assert_allclose(packed.scale[:, 0], largest.numpy() / 127, rtol=2e-7)
    assert (np.asarray(packed.data).view(np.int8) == q.numpy()).mean() > 0.999
    np.testing.assert_allclose(
        packed.dequantize(), functional.int8_vectorwise_dequant(q, largest), atol=1.1 * largest.max().item() / 127
    )


@INTEGERS
def test_integers_are_those_of_torchao(format):
    """Scales and zero points; and weights, except for those that are halfway."""
    torch, torchao = pytest.importorskip("torch"), pytest.importorskip("torchao.quantization.quant_primitives")
    w, block, kind = drawn(12, 128), (1, 32), torchao.MappingType.ASYMMETRIC
    of = (torch.uint8, 0, 15) if format == "int4" else (torch.int8, -128, 127)
    scale, zero = torchao.choose_qparams_affine(
        torch.tensor(w), kind, block, *of, scale_dtype=torch.float32, zero_point_dtype=torch.int32
    )
    want = torchao.quantize_affine(torch.tensor(w), block, scale, zero, *of).numpy()
    packed = bj.pack_weight(w, format, group_size=32, zero_points=True)
    np.testing.assert_allclose(packed.scale, scale.numpy(), rtol=3e-7)
    np.testing.assert_array_equal(packed.zero_point, zero.numpy())
    data = np.asarray(packed.data)
    data = np.stack([data & 15, data >> 4], -1).reshape(12, 128) if format == "int4" else data.view(np.int8)
    assert (data == want).mean() > 0.999


@pytest.mark.parametrize("format", FORMATS)
def test_products(format):
    w, x = bj.pack_weight(drawn(24, 256), format), drawn(3, 256, seed=1)
    want = x.astype(np.float64) @ np.asarray(w.dequantize(), np.float64).T
    for y in (x @ w.T, sent.asarray(x) @ w.T, bj.packed_matmul(x, w), jax.jit(lambda x, w: x @ w.T)(x, w)):
        assert isinstance(y, jax.Array)
        np.testing.assert_allclose(y, want, atol=2e-6 * np.abs(want).max())
    assert w.T.shape == (256, 24) and w.T.T is w
    close = bj.packed_matmul(x, w, numerics="q8")
    assert 0 < np.abs(close - want).max() < 3e-2 * np.abs(want).max()


@INTEGERS
def test_a_pytree(format):
    w = bj.pack_weight(drawn(8, 64), format, zero_points=True)
    leaves, tree = jax.tree.flatten(w)
    assert len(leaves) == 3 and w.nbytes == 8 * (32 if format == "int4" else 64) + 2 * 8 * 4
    assert jax.tree.unflatten(tree, leaves) == w or jax.tree.unflatten(tree, leaves).format == format
    steps = jax.jit(lambda x, w: jax.lax.scan(lambda x, _: (x @ w.T @ w.dequantize(), None), x, None, 2)[0])
    assert steps(drawn(64), w).shape == (64,)
    many = jax.tree.map(lambda *a: jnp.stack(a), w, w)
    y = jax.vmap(lambda x, w: x @ w.T)(drawn(2, 3, 64), many)
    same_bits(y[0], drawn(2, 3, 64)[0] @ w.T)


@pytest.mark.parametrize("format", ["nf4", "int8"])
def test_the_gradient_is_that_of_x(format):
    w, x = bj.pack_weight(drawn(8, 64), format), drawn(3, 64, seed=1)
    dx = jax.jit(jax.grad(lambda x: (x @ w.T).sum()))(x)
    np.testing.assert_allclose(dx, np.broadcast_to(np.asarray(w.dequantize()).sum(0), x.shape), rtol=1e-5, atol=1e-5)


@INTEGERS
def test_scales_are_trained(format):
    """On request, as parts of a PackedWeight; under vmap and jvp too."""
    w, x = bj.pack_weight(drawn(8, 64), format, group_size=32), drawn(5, 3, 64, seed=1)
    loss = lambda scale, x: (bj.packed_matmul(x, dataclasses.replace(w, scale=scale), factor_gradients=True) ** 2).sum()
    each = jax.jit(jax.vmap(jax.grad(loss), (None, 0)))(w.scale, x)
    whole, pull = (
        jax.jit(jax.grad(loss))(w.scale, x),
        jax.jit(lambda s, x, t: jax.jvp(lambda s: loss(s, x), (s,), (t,))[1]),
    )
    np.testing.assert_allclose(each.sum(0), whole, rtol=2e-5, atol=1e-4)
    np.testing.assert_allclose(pull(w.scale, x, w.scale), (whole * w.scale).sum(), rtol=1e-5)
    q = np.asarray(w.dequantize()).reshape(8, 2, 32) / np.asarray(w.scale)[..., None]
    dw = 2 * np.einsum("rk,rl,nl->nk", *[x.reshape(15, 64).astype(np.float64)] * 2, np.asarray(w.dequantize()))
    np.testing.assert_allclose(whole, (dw.reshape(8, 2, 32) * q).sum(-1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (TypeError, "packed_matmul: w must be a PackedWeight, got ndarray", lambda w: bj.packed_matmul(w, w)),
        (ValueError, "packed_matmul: w.format must be one of .* got 'Q9'", lambda w: bj.packed_matmul(w, bj.PackedWeight("Q9", w))),
        (ValueError, "packed_matmul: factor_gradients must be False in format 'Q8_0', got True", lambda w: bj.packed_matmul(w[:, :32], bj.pack_weight(w[:, :32]), factor_gradients=True)),
        (ValueError, "packed_matmul: w.scale must be given in format 'nf4', got None", lambda w: bj.packed_matmul(w, bj.PackedWeight("nf4", w))),
        (ValueError, "pack_weight: format must be one of .* got 'Q5_K'", lambda w: bj.pack_weight(w, "Q5_K")),
        (ValueError, r"pack_weight: w must have rows of a multiple of 64 weights, got shape \(4, 96\)", lambda w: bj.pack_weight(w, "nf4")),
        (ValueError, r"pack_weight: w must have rows of a multiple of 256 weights, got shape \(4, 96\)", lambda w: bj.pack_weight(w, "Q4_K")),
        (ValueError, "pack_weight: group_size must be a multiple of 32, got 48", lambda w: bj.pack_weight(w, "nf4", group_size=48)),
        (ValueError, "pack_weight: zero_points must be False in format 'nf4', got True", lambda w: bj.pack_weight(w, "nf4", group_size=32, zero_points=True)),
        (ValueError, r"pack_weight: w must have rank 2 or more, got shape \(96,\)", lambda w: bj.pack_weight(w[0])),
    ],
)  # fmt: skip
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(np.ones((4, 96), np.float32))
