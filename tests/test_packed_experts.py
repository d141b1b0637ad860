"""Products with the packed weights of experts, and with weights of 8 bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import same_bits
from oracles import packed as oracle

import baracuda_jax as bj
from baracuda_jax.packed._family import random_blocks
from baracuda_jax.packed._formats import GGUF

BACKENDS = pytest.mark.parametrize("implementation", ["native", "xla"])


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def blocks(format, *shape, seed=0):
    """Matrices [*shape, 256]."""
    return random_blocks(np.random.default_rng(seed), format, *shape, 256 // GGUF[format].block)


def near(y, want, eps=3e-6):
    np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=0, atol=eps * np.abs(want).max())


@BACKENDS
@pytest.mark.parametrize("format", ["Q4_0", "Q8_0", "Q2_K", "Q4_K", "Q6_K", "IQ4_XS"])
@pytest.mark.parametrize("tokens", [1, 9, 65])
def test_each_row_has_the_matrix_of_its_expert(format, tokens, implementation):
    data, x = blocks(format, 4, 3), drawn(tokens, 256)
    experts = np.random.default_rng(1).integers(-2, 6, tokens).astype(np.int8)
    experts[0] = 2
    w = oracle.gguf_weights(data, format)
    inside = (experts >= 0) & (experts < 4)
    each = np.where(inside[:, None, None], w[np.where(inside, experts, 0)], 0)
    y = bj.gguf_mmvq_batched(x, data, experts, format, implementation=implementation)
    near(y, np.einsum("tk,tnk->tn", x.astype(np.float64), each))
    np.testing.assert_array_equal(np.asarray(y)[~inside], 0)
    dy = drawn(tokens, 3, seed=2)
    dx = bj.gguf_mmvq_batched_backward(data, experts, dy, format, implementation=implementation)
    near(dx, np.einsum("tn,tnk->tk", dy.astype(np.float64), each))


@BACKENDS
def test_without_experts_rows_are_0(implementation):
    y = bj.gguf_mmvq_batched(
        drawn(5, 256), blocks("Q4_K", 0, 4), sent.zeros(5, np.int32), "Q4_K", implementation=implementation
    )
    np.testing.assert_array_equal(y, np.zeros((5, 4)))


def test_batches_have_matrices_of_their_own():
    """Under vmap, of all operands or of some."""
    data, x = blocks("Q4_K", 2, 3, 5), drawn(2, 4, 256)
    experts = np.array([[0, 2, -1, 1], [1, 1, 0, 3]], np.int32)
    call = lambda x, d, e: bj.gguf_mmvq_batched(x, d, e, "Q4_K", implementation="native")
    for axes in ((0, 0, 0), (0, None, 0), (0, 0, None), (None, 0, None), (None, None, 0)):
        args = [a if axis == 0 else a[0] for a, axis in zip((x, data, experts), axes, strict=True)]
        y = jax.jit(jax.vmap(call, axes))(*args)
        for i in range(2):
            same_bits(y[i], call(*(a[i] if axis == 0 else a for a, axis in zip(args, axes, strict=True))))


def test_many_rows_are_multiplied_by_group():
    """Of batches too that share the matrices; in half precisions, whose weights are rounded."""
    data, x = blocks("Q4_K", 3, 5), drawn(2, 70, 256)
    experts = np.random.default_rng(1).integers(-1, 4, (2, 70)).astype(np.int32)
    w = np.concatenate([oracle.gguf_weights(data, "Q4_K"), np.zeros((1, 5, 256))])
    each = w[np.where((experts >= 0) & (experts < 3), experts, 3)]
    for dtype, eps in (("float32", 3e-6), ("bfloat16", 1e-2)):
        given = sent.asarray(x.astype(dtype))
        call = lambda x, e: bj.gguf_mmvq_batched(x, data, e, "Q4_K", implementation="native")
        y, dx = jax.jit(lambda x, e: (lambda y, of: (y, *of(y)))(*jax.vjp(lambda x: jax.vmap(call)(x, e), x)))(
            given, experts
        )
        near(y, np.einsum("btk,btnk->btn", np.asarray(given, np.float64), each), eps)
        near(dx, np.einsum("btn,btnk->btk", np.asarray(y, np.float64), each), eps)


@BACKENDS
@pytest.mark.parametrize("sizes", [[3, 0, 4], [0, 0, 0], [7, 2, 1]])
def test_rows_that_are_sorted_by_expert(sizes, implementation):
    """Rows after the last group are 0."""
    data, x = blocks("Q5_K", 3, 4), drawn(10, 256)
    w = oracle.gguf_weights(data, "Q5_K")
    experts = np.repeat(np.arange(3), sizes)
    want = np.zeros((10, 4))
    want[: len(experts)] = np.einsum("tk,tnk->tn", x[: len(experts)].astype(np.float64), w[experts])
    y = bj.moe_scalar_gguf(x, data, np.array(sizes), "Q5_K", implementation=implementation)
    near(y, want) if want.any() else np.testing.assert_array_equal(y, 0)
    of_floats = bj.moe_wmma(x, w.astype(np.float32), np.array(sizes))
    np.testing.assert_allclose(of_floats, y, atol=1e-5 * max(np.abs(want).max(), 1))


def test_a_layer_of_packed_experts():
    """Routed, multiplied and combined: that of dense sums over all experts."""
    tokens, experts, k = 6, 4, 2
    x, up = drawn(tokens, 256), blocks("Q8_0", experts, 32)
    weights, chosen = bj.moe_gating_topk(drawn(tokens, experts, seed=3), k, renormalize=True)

    def layer(x):
        rows, sizes, row_map = bj.moe_permute(x, chosen, experts)
        return bj.moe_combine(bj.moe_scalar_gguf(rows, up, sizes, "Q8_0"), row_map, weights)

    w = oracle.gguf_weights(up, "Q8_0")
    want = sum(
        np.asarray(weights)[:, j, None] * np.einsum("tk,tnk->tn", x.astype(np.float64), w[np.asarray(chosen)[:, j]])
        for j in range(k)
    )
    near(jax.jit(layer)(x), want)
    assert np.isfinite(jax.jit(jax.grad(lambda x: layer(x).sum()))(x)).all()


def test_names_of_the_reference_system():
    assert bj.moe_wmma_gguf is bj.moe_scalar_gguf


# ---------------------------------------------------------------------------------------------------------------------
# Weights of 8 bits


def int8(*shape, seed=0):
    return np.random.default_rng(seed).integers(-127, 128, shape, np.int8)


@BACKENDS
def test_rows_are_quantized_one_by_one(implementation):
    x, w, scale, bias = drawn(2, 5, 48), int8(7, 48), drawn(7, seed=1) ** 2, drawn(7, seed=2)
    size = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    q = np.rint(x / size).astype(np.int64)
    want = (q @ w.astype(np.int64).T) * size.astype(np.float64) * scale + bias
    near(bj.quantized_linear(x, w, scale, bias, implementation=implementation), want)
    near(bj.quantized_linear(x, w, np.float32(0.5), implementation=implementation), (q @ w.T.astype(int)) * size * 0.5)
    near(bj.quantized_linear(q.astype(np.int8), w, scale, bias, x_scale=size[..., 0]), want)
    exact = x.astype(np.float64) @ (w * scale[:, None]).T + bias
    assert 1e-4 < np.abs(want - exact).max() / np.abs(exact).max() < 2e-2


@BACKENDS
def test_rows_are_quantized_as_torchao_does(implementation):
    torch, torchao = pytest.importorskip("torch"), pytest.importorskip("torchao.quantization.quant_primitives")
    x, w, scale = drawn(6, 64), int8(5, 64), drawn(5, seed=1) ** 2
    rows, kind = (1, 64), torchao.MappingType.SYMMETRIC
    of = torchao.choose_qparams_affine(torch.tensor(x), kind, rows, torch.int8, -127, 127, scale_dtype=torch.float32)
    q = torchao.quantize_affine(torch.tensor(x), rows, *of, torch.int8, -127, 127).numpy()
    size = of[0].numpy().astype(np.float64).reshape(6, 1)
    want = (q.astype(np.int64) @ w.astype(np.int64).T) * size * scale
    near(bj.quantized_linear(x, w, scale, implementation=implementation), want)


@BACKENDS
def test_smooth_factors_move_outliers_into_the_weights(implementation):
    """A column that is a hundred times the others costs these their bits, unless it is divided."""
    x, w = drawn(6, 64), drawn(5, 64, seed=1)
    x[:, 3] *= 100
    exact = x.astype(np.float64) @ w.T.astype(np.float64)

    def layer(smooth):
        by = np.abs(w * smooth).max(1) / np.float32(127)
        q = np.rint(w * smooth / by[:, None]).astype(np.int8)
        y = bj.smooth_quant_linear(x, smooth, q, by.astype(np.float32), implementation=implementation)
        return np.abs(y - exact).max()

    smooth = np.where(np.arange(64) == 3, 10, 1).astype(np.float32)
    assert layer(smooth) < 0.5 * layer(np.ones(64, np.float32))


def test_the_gradient_is_straight_through():
    x, w, scale, bias = drawn(4, 32), int8(3, 32), drawn(3, seed=1) ** 2, drawn(3, seed=2)
    smooth = 1 + drawn(32, seed=3) ** 2
    dy = drawn(4, 3, seed=4)
    pull = lambda fun: jax.jit(lambda x, b: jax.vjp(fun, x, b)[1](sent.asarray(dy)))(x, bias)
    dx, db = pull(lambda x, b: bj.quantized_linear(x, w, scale, b))
    near(dx, dy.astype(np.float64) @ (w * scale[:, None]))
    near(db, dy.sum(0))
    dx, _ = pull(lambda x, b: bj.smooth_quant_linear(x, smooth, w, scale, b))
    near(dx, dy.astype(np.float64) @ (w * scale[:, None]) / smooth)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_results_have_the_dtype_of_x(dtype):
    x, w = sent.asarray(drawn(3, 32), jnp.dtype(dtype)), int8(4, 32)
    y = bj.quantized_linear(x, w, sent.ones(4))
    assert y.dtype == x.dtype
    near(y, np.asarray(x, np.float64) @ w.T.astype(np.float64), 3e-2)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, r"gguf_mmvq_batched: data must have three dimensions, .* got shape \(3, 18\)", lambda x, d: bj.gguf_mmvq_batched(x, d[0], [0, 1], "Q4_0")),
        (ValueError, r"gguf_mmvq_batched: experts must have shape \(2,\), one for each row of x, got \(3,\)", lambda x, d: bj.gguf_mmvq_batched(x, d, np.zeros(3, int), "Q4_0")),
        (TypeError, "gguf_mmvq_batched: experts must have one of the dtypes int8.*got float64", lambda x, d: bj.gguf_mmvq_batched(x, d, sent.zeros(2), "Q4_0")),
        (ValueError, r"gguf_mmvq_batched: x must have rows of 32 elements, as the weights of format Q4_0, got shape \(2, 31\)", lambda x, d: bj.gguf_mmvq_batched(x[:, 1:], d, np.zeros(2, int), "Q4_0")),
        (ValueError, r"moe_scalar_gguf: group_sizes must have shape \(2,\), one for each expert, got \(3,\)", lambda x, d: bj.moe_scalar_gguf(x, d, np.ones(3, int), "Q4_0")),
        (ValueError, r"moe_wmma: x must be \[R, K\] and w \[E, N, K\]", lambda x, d: bj.moe_wmma(x, x, np.ones(3, int))),
        (TypeError, "quantized_linear: w must have one of the dtypes int8, got uint8", lambda x, d: bj.quantized_linear(x, d[0], sent.ones(3))),
        (ValueError, r"quantized_linear: x must be \[..., K\] and w \[N, K\], got shapes \(2, 32\) and \(3, 18\)", lambda x, d: bj.quantized_linear(x, d[0].astype(np.int8), sent.ones(3))),
        (TypeError, "quantized_linear: x must have one of the dtypes int8, got float32", lambda x, d: bj.quantized_linear(x, int8(3, 32), sent.ones(3), x_scale=sent.ones(2))),
        (ValueError, r"quantized_linear: w_scale must have shape \(\) or \(3,\), got \(2,\)", lambda x, d: bj.quantized_linear(x, int8(3, 32), sent.ones(2))),
        (ValueError, r"smooth_quant_linear: smooth must have shape \(32,\), one for each column of x, got \(2,\)", lambda x, d: bj.smooth_quant_linear(x, sent.ones(2), int8(3, 32), sent.ones(3))),
    ],
)  # fmt: skip
def test_errors(error, match, call):
    with pytest.raises(error, match=match):
        call(np.ones((2, 32), np.float32), np.zeros((2, 3, 18), np.uint8))
