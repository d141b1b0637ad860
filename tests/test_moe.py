"""Routing, against dense sums over all experts, and against the gates of known models, from their formulas."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, same_bits
from jax.flatten_util import ravel_pytree
from oracles import moe as oracle
from programs import normal, same_bits_every_time

import baracuda_jax as bj

BACKENDS = pytest.mark.parametrize("implementation", ["native", "xla"])


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def drawn_experts(tokens, k, num_experts, seed=0, outside=0):
    return np.random.default_rng(seed).integers(-outside, num_experts + outside, (tokens, k)).astype(np.int32)


# ---------------------------------------------------------------------------------------------------------------------
# The gate


def mixtral(logits, k):
    """Softmax over all experts, the k largest, divided by their sum."""
    p = softmax(logits)
    experts = np.argsort(-p, -1, kind="stable")[:, :k]
    w = np.take_along_axis(p, experts, -1)
    return w / w.sum(-1, keepdims=True), experts


def deepseek_v3(logits, bias, k, groups, topk_groups, scale):
    """Sigmoids; groups by the sum of their two best biased ones; the k best of these groups; unbiased weights, scaled."""
    s = 1 / (1 + np.exp(-logits))
    of_choice = (s + bias).reshape(len(s), groups, -1)
    of_groups = np.sort(of_choice, -1)[..., -2:].sum(-1)
    kept = np.argsort(-of_groups, -1, kind="stable")[:, :topk_groups]
    mask = np.zeros(of_groups.shape, bool)
    np.put_along_axis(mask, kept, True, -1)
    of_choice = np.where(mask[..., None], of_choice, -np.inf).reshape(s.shape)
    experts = np.argsort(-of_choice, -1, kind="stable")[:, :k]
    w = np.take_along_axis(s, experts, -1)
    return w / w.sum(-1, keepdims=True) * scale, experts


def deepseek_v2(logits, k, groups, topk_groups, scale):
    """Softmax; groups by their best; weights as they are, scaled."""
    s = softmax(logits)
    of_groups = s.reshape(len(s), groups, -1).max(-1)
    kept = np.argsort(-of_groups, -1, kind="stable")[:, :topk_groups]
    mask = np.zeros(of_groups.shape, bool)
    np.put_along_axis(mask, kept, True, -1)
    masked = np.where(np.repeat(mask, s.shape[1] // groups, 1), s, 0)
    experts = np.argsort(-masked, -1, kind="stable")[:, :k]
    return np.take_along_axis(masked, experts, -1) * scale, experts


def check(got, want, dtype="float64"):
    close(got[0], want[0], dtype)
    np.testing.assert_array_equal(got[1], want[1])
    assert got[1].dtype == jnp.int32


@BACKENDS
@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_gate_of_mixtral(k, implementation):
    logits = normal((50, 8))
    check(
        bj.moe_gating_topk(logits, k, renormalize=True, implementation=implementation), mixtral(np.asarray(logits), k)
    )


@BACKENDS
def test_the_gate_of_deepseek_v3(implementation):
    logits, bias = normal((60, 32)), np.random.default_rng(1).standard_normal(32) / 3
    options = dict(score="sigmoid", num_groups=8, topk_groups=3, renormalize=True, scale=2.5)
    got = bj.moe_gating_topk(logits, 6, bias=bias, **options, implementation=implementation)
    check(got, deepseek_v3(np.asarray(logits), bias, 6, 8, 3, 2.5))


def test_the_gate_of_deepseek_v2():
    logits = normal((60, 20))
    got = bj.moe_gating_topk(logits, 5, num_groups=5, topk_groups=2, group_score="max", scale=16.0)
    check(got, deepseek_v2(np.asarray(logits), 5, 5, 2, 16.0))


def test_softmax_after_the_choice():
    """Which is softmax before it, renormalized."""
    logits = normal((9, 7))
    check(bj.moe_gating_topk(logits, 3, softmax_after=True), mixtral(np.asarray(logits), 3))


def test_bias_chooses_and_has_no_weight():
    logits, bias = normal((30, 6)), np.array([0, 0, 0, 0, 0, 5.0])
    weights, experts = bj.moe_gating_topk(logits, 2, score="sigmoid", bias=bias)
    assert (experts[:, 0] == 5).all()
    close(weights, np.take_along_axis(1 / (1 + np.exp(-np.asarray(logits))), np.asarray(experts), -1), "float64")
    by_bias = lambda bias: bj.moe_gating_topk(logits, 2, score="sigmoid", bias=bias)[0].sum()
    assert not jax.jit(jax.grad(by_bias))(sent.asarray(bias)).any()


@pytest.mark.parametrize("options", [{}, dict(num_groups=4, topk_groups=2), dict(bias=np.zeros(8))])
def test_ties_go_to_the_lowest_expert(options):
    _, experts = bj.moe_gating_topk(sent.zeros((3, 8)), 3, **options)
    np.testing.assert_array_equal(experts, [[0, 1, 2]] * 3)


def test_an_expert_outside_of_the_best_groups_is_never_chosen():
    """Where all scores are negative too."""
    options = dict(score="sigmoid", bias=-np.arange(9, 1, -1.0), num_groups=4, topk_groups=1)
    _, experts = bj.moe_gating_topk(sent.zeros((2, 8)), 2, **options)
    np.testing.assert_array_equal(experts, [[7, 6]] * 2)


@pytest.mark.parametrize("options", [{}, dict(num_groups=4, topk_groups=2)])
def test_a_gate_without_tokens(options):
    gate = lambda logits: bj.moe_gating_topk(logits, 2, **options)
    assert [y.shape for y in gate(sent.zeros((0, 8)))] == [(0, 2)] * 2
    assert jax.grad(lambda logits: gate(logits)[0].sum())(sent.zeros((0, 8))).shape == (0, 8)


@pytest.mark.parametrize("options", [{}, dict(bias=np.linspace(-0.3, 0.3, 12), num_groups=3, topk_groups=2)])
@pytest.mark.parametrize("score", ["softmax", "sigmoid"])
def test_gradients_of_a_gate(options, score):
    """As those of the formula with the experts given."""
    logits, w = normal((20, 12)), normal((20, 4), seed=1)
    gate = lambda logits: bj.moe_gating_topk(logits, 4, score=score, renormalize=True, scale=1.5, **options)
    experts = gate(logits)[1]

    def formula(logits):
        s = jnp.take_along_axis(getattr(jax.nn, score)(logits), experts, -1)
        return 1.5 * s / s.sum(-1, keepdims=True)

    of = lambda fun: jax.grad(lambda x: (fun(x) * w).sum())
    got, want = jax.jit(lambda x: (of(lambda x: gate(x)[0])(x), of(formula)(x)))(logits)
    close(got, want, "float64")


def test_half_precision_logits_have_float32_weights():
    logits = normal((16, 8), "bfloat16")
    weights, experts = bj.moe_gating_topk(logits, 2, renormalize=True)
    assert weights.dtype == jnp.float32
    check((weights, experts), mixtral(np.asarray(logits).astype(np.float64), 2), "float32")


def test_nan_logits():
    logits = sent.asarray([[0.0, jnp.nan, 1.0]])
    assert np.isnan(bj.moe_gating_topk(logits, 2)[0]).all()
    weights, experts = bj.moe_gating_topk(logits, 2, score="sigmoid")
    np.testing.assert_array_equal(experts, [[1, 2]])
    np.testing.assert_array_equal(np.isnan(weights), [[True, False]])


def test_weights_that_are_all_zero_stay_so():
    weights, _ = bj.moe_gating_topk(sent.full((1, 4), -jnp.inf), 2, score="sigmoid", renormalize=True)
    np.testing.assert_array_equal(weights, [[0, 0]])


# ---------------------------------------------------------------------------------------------------------------------
# Rows of experts


@BACKENDS
@pytest.mark.parametrize("capacity", [None, 0, 1, 7, 40])
@pytest.mark.parametrize(
    "tokens, k, num_experts, outside",
    [(40, 2, 6, 0), (33, 3, 4, 2), (0, 2, 3, 0), (9, 1, 1, 0), (5, 2, 0, 1), (4, 0, 3, 0)],
)
def test_rows_of_experts(tokens, k, num_experts, outside, capacity, implementation):
    x, experts = normal((tokens, 5)), drawn_experts(tokens, k, num_experts, outside=outside)
    got = bj.moe_permute(x, experts, num_experts, capacity=capacity, implementation=implementation)
    want = oracle.moe_permute(np.asarray(x), experts, num_experts, capacity)
    for y, z in zip(got, want, strict=True):
        assert y.dtype == z.dtype
        np.testing.assert_array_equal(y, z)
    weights = normal((tokens, k), seed=1)
    for w in (None, weights):
        out = bj.moe_combine(got.x, got.row_map, w, implementation=implementation)
        close(out, oracle.moe_combine(want[0], want[2], None if w is None else np.asarray(w)), "float64")


def test_fields_of_the_result():
    result = bj.moe_permute(sent.ones((3, 2)), sent.asarray([[0], [1], [5]]), 2)
    assert isinstance(result, bj.moe.Permuted)
    assert result._fields == ("x", "group_sizes", "row_map")
    np.testing.assert_array_equal(result.group_sizes, [1, 1])
    np.testing.assert_array_equal(result.row_map, [[0], [1], [-1]])
    np.testing.assert_array_equal(result.x, [[1, 1], [1, 1], [0, 0]])


def test_against_products_with_one_hot_matrices():
    """y = P x and out = C y, with matrices P and C of zeros, ones and weights."""
    tokens, k, num_experts = 23, 3, 5
    x, weights, dy = normal((tokens, 4)), normal((tokens, k), seed=1), normal((tokens * k, 4), seed=2)
    experts = drawn_experts(tokens, k, num_experts, outside=1)
    row_map = oracle.moe_permute(np.asarray(x), experts, num_experts)[2]
    slots = np.zeros((tokens, k, tokens * k))
    for t, j in np.ndindex(tokens, k):
        slots[t, j, row_map[t, j]] = row_map[t, j] >= 0
    permute = lambda x: bj.moe_permute(x, experts, num_experts).x
    y, pull = jax.vjp(permute, x)
    close(y, np.einsum("tjr,td->rd", slots, x), "float64")
    close(pull(dy)[0], np.einsum("tjr,rd->td", slots, dy), "float64")
    out, pull = jax.vjp(lambda y, w: bj.moe_combine(y, row_map, w), dy, weights)
    close(out, np.einsum("tjr,tj,rd->td", slots, weights, dy), "float64")
    got = pull(x)
    close(got[0], np.einsum("tjr,tj,td->rd", slots, weights, x), "float64")
    close(got[1], np.einsum("tjr,rd,td->tj", slots, dy, x), "float64")


def test_weights_of_half_precision_rows_may_be_float32():
    """They are not rounded, and the sum is rounded once."""
    y, w = normal((12, 8), "bfloat16"), normal((6, 2), "float32", 1)
    row_map = np.random.default_rng(0).permutation(12).reshape(6, 2).astype(np.int32)
    out = bj.moe_combine(y, row_map, w)
    assert out.dtype == y.dtype
    exact = oracle.moe_combine(np.asarray(y).astype(np.float64), row_map, np.asarray(w).astype(np.float64))
    same_bits(out, sent.asarray(exact, jnp.float32).astype(jnp.bfloat16))
    dy, dw = jax.jit(jax.grad(lambda y, w: bj.moe_combine(y, row_map, w).astype(jnp.float32).sum(), (0, 1)))(y, w)
    assert (dy.dtype, dw.dtype) == (y.dtype, w.dtype)


# ---------------------------------------------------------------------------------------------------------------------
# A layer

TOKENS, FEATURES, HIDDEN, EXPERTS, K = 24, 6, 10, 5, 2


def drawn_layer():
    shapes = (TOKENS, FEATURES), (FEATURES, EXPERTS), (EXPERTS, FEATURES, HIDDEN), (EXPERTS, HIDDEN, FEATURES)
    return [normal(shape, seed=i) / shape[-2] ** 0.5 for i, shape in enumerate(shapes)]


def layer(x, router, up, down, implementation="native", capacity=None):
    weights, experts = bj.moe_gating_topk(x @ router, K, renormalize=True, implementation=implementation)
    rows, sizes, row_map = bj.moe_permute(x, experts, EXPERTS, capacity=capacity, implementation=implementation)
    if capacity is None:
        y = bj.grouped_gemm(jax.nn.silu(bj.grouped_gemm(rows, up, sizes)), down, sizes)
    else:
        hidden = jax.nn.silu(rows.reshape(EXPERTS, capacity, -1) @ up)
        y = (hidden @ down).reshape(-1, x.shape[1])
    return bj.moe_combine(y, row_map, weights, implementation=implementation)


def dense_layer(x, router, up, down):
    """All experts of all tokens, with weights that are 0 of those that are not chosen."""
    p = jax.nn.softmax(x @ router)
    best = jax.lax.top_k(p, K)[1]
    p = jnp.where((sent.arange(EXPERTS) == best[..., None]).any(1), p, 0)
    y = jax.nn.silu(jnp.einsum("td,edh->teh", x, up))
    return jnp.einsum("te,teh,ehd->td", p / p.sum(-1, keepdims=True), y, down)


@BACKENDS
@pytest.mark.parametrize("capacity", [None, TOKENS * K])
def test_a_layer_is_the_sum_over_all_experts(capacity, implementation):
    args = drawn_layer()
    sparse = lambda *args: jnp.sin(layer(*args, implementation, capacity)).sum()
    dense = lambda *args: jnp.sin(dense_layer(*args)).sum()
    close(layer(*args, implementation, capacity), dense_layer(*args), "float64")
    got, want = (jax.jit(jax.grad(fun, (0, 1, 2, 3)))(*args) for fun in (sparse, dense))
    for a, b in zip(got, want, strict=True):
        close(a, b, "float64", scale=10)


def test_second_derivatives_of_a_layer():
    args, v = drawn_layer(), normal((TOKENS, FEATURES), seed=9)

    def product(of):
        slope = jax.grad(lambda x: jnp.sin(of(x, *args[1:])).sum())
        return jax.jvp(slope, (args[0],), (v,))[1]

    close(
        jax.jit(product, static_argnums=0)(layer), jax.jit(product, static_argnums=0)(dense_layer), "float64", scale=100
    )


def test_a_batch_of_layers():
    args = drawn_layer()
    xs = jnp.stack([args[0], args[0][::-1], 2 * args[0]])
    got = jax.jit(jax.vmap(lambda x: layer(x, *args[1:])))(xs)
    close(got, jnp.stack([layer(x, *args[1:]) for x in xs]), "float64")


def test_a_layer_has_the_same_bits_every_time():
    args = [a.astype(jnp.float32) for a in drawn_layer()]
    slopes = jax.grad(lambda *args: jnp.sin(layer(*args)).sum(), (0, 1, 2, 3))
    same_bits_every_time(lambda *args: ravel_pytree(slopes(*args))[0], *args)


# ---------------------------------------------------------------------------------------------------------------------
# What the programs hold


def targets(fun, *args):
    text = jax.jit(fun).lower(*args).compile().as_text()
    assert not re.search(r"\bsort\(", text)
    return set(re.findall(r'custom_call_target="baracuda\.(\w+)"', text))


def test_gradients_sort_nothing():
    x, experts = normal((16, 4), "float32"), sent.asarray(drawn_experts(16, 2, 3))
    row_map = bj.moe_permute(x, experts, 3).row_map
    y, w = normal((32, 4), "float32"), normal((16, 2), "float32")
    permute = lambda x: bj.moe_permute(x, experts, 3, implementation="native").x
    combine = lambda y, w, row_map: bj.moe_combine(y, row_map, w, implementation="native")
    assert targets(permute, x) == {"segment_index", "slot_spread"}
    assert targets(combine, y, w, row_map) == {"slot_sum"}
    backward = lambda row_map, dy: bj.moe_permute_backward(row_map, dy, implementation="native")
    assert targets(backward, row_map, y) == {"slot_sum"}
    pulled = lambda y, w, row_map, dout: jax.vjp(lambda y, w: combine(y, w, row_map), y, w)[1](dout)
    assert targets(pulled, y, w, row_map, x) == {"slot_gradient"}
    # The forward pass of both sorts once, and the backward pass sorts no more.
    both = lambda x, w, experts: bj.moe_combine(*bj.moe_permute(x, experts, 3, implementation="native")[::2], w).sum()
    text = jax.jit(jax.grad(both, (0, 1))).lower(x, w, experts).compile().as_text()
    assert text.count('custom_call_target="baracuda.segment_index"') == 1


def test_backward_functions():
    x, experts, w = normal((9, 4)), drawn_experts(9, 2, 3, outside=1), normal((9, 2), seed=1)
    rows, _, row_map = bj.moe_permute(x, experts, 3)
    dy = normal(rows.shape, seed=2)
    pull = jax.vjp(lambda x: bj.moe_permute(x, experts, 3).x, x)[1]
    same_bits(bj.moe_permute_backward(row_map, dy), pull(dy)[0])
    pull = jax.vjp(lambda y, w: bj.moe_combine(y, row_map, w), dy, w)[1]
    for got, want in zip(bj.moe_combine_backward(dy, row_map, w, x), pull(x), strict=True):
        same_bits(got, want)


# ---------------------------------------------------------------------------------------------------------------------
# Bad input

X, IDS = np.ones((6, 3)), np.zeros((6, 2), jnp.int32)
L, W = np.ones((4, 8)), np.ones((6, 2))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.moe_gating_topk, TypeError, "logits must have one of the dtypes.*got int32", (IDS, 1), {}),
        (bj.moe_gating_topk, ValueError, "logits must have at least one dimension.*scalar", (1.0, 1), {}),
        (bj.moe_gating_topk, ValueError, "k must be at least 1, got 0", (L, 0), {}),
        (bj.moe_gating_topk, ValueError, "k must be at most 8, the number of experts, got 9", (L, 9), {}),
        (bj.moe_gating_topk, ValueError, "score must be one of 'softmax', 'sigmoid', got 'relu'", (L, 2), {"score": "relu"}),
        (bj.moe_gating_topk, ValueError, "softmax_after must be False with score='sigmoid', got True", (L, 2), {"score": "sigmoid", "softmax_after": True}),
        (bj.moe_gating_topk, ValueError, r"bias must have shape \(8,\), one for each expert, got \(4,\)", (L, 2), {"bias": sent.ones(4)}),
        (bj.moe_gating_topk, TypeError, "topk_groups must be given with num_groups, got None", (L, 2), {"num_groups": 2}),
        (bj.moe_gating_topk, TypeError, "num_groups must be given with topk_groups, got None", (L, 2), {"topk_groups": 2}),
        (bj.moe_gating_topk, ValueError, "num_groups must divide the number of experts, 8, got 3", (L, 2), {"num_groups": 3, "topk_groups": 1}),
        (bj.moe_gating_topk, ValueError, "topk_groups must be at most 2, the number of groups, got 3", (L, 2), {"num_groups": 2, "topk_groups": 3}),
        (bj.moe_gating_topk, ValueError, "k must be at most 4, the number of experts in topk_groups groups, got 5", (L, 5), {"num_groups": 2, "topk_groups": 1}),
        (bj.moe_gating_topk, ValueError, "group_score must be one of 'top2', 'max', got 'sum'", (L, 2), {"group_score": "sum"}),
        (bj.moe_gating_topk, TypeError, "renormalize must be True or False, got 1", (L, 2), {"renormalize": 1}),
        (bj.moe_gating_topk, TypeError, "scale must be a static number, got '2'", (L, 2), {"scale": "2"}),
        (bj.moe_permute, TypeError, "x must have one of the dtypes.*got int32", (IDS, IDS, 3), {}),
        (bj.moe_permute, TypeError, "experts must have one of the dtypes int8.*got float", (X, X, 3), {}),
        (bj.moe_permute, ValueError, r"experts must have two dimensions, tokens and slots; got shape \(6,\)", (X, IDS[:, 0], 3), {}),
        (bj.moe_permute, ValueError, r"experts must have one row for each of x: expected \(6, k\) of x \(6, 3\), got \(5, 2\)", (X, IDS[:5], 3), {}),
        (bj.moe_permute, TypeError, "num_experts must be an integer, got 2.5", (X, IDS, 2.5), {}),
        (bj.moe_permute, ValueError, "num_experts must be at least 0, got -1", (X, IDS, -1), {}),
        (bj.moe_permute, ValueError, "capacity must be at least 0, got -1", (X, IDS, 3), {"capacity": -1}),
        (bj.moe_permute, ValueError, "capacity times num_experts must be at most 2147483647, got 1073741824 times 3", (X, IDS, 3), {"capacity": 2**30}),
        (bj.moe_combine, TypeError, "x must have one of the dtypes.*got int32", (IDS, IDS), {}),
        (bj.moe_combine, TypeError, "row_map must have one of the dtypes int8.*got float", (X, X), {}),
        (bj.moe_combine, ValueError, r"row_map must have two dimensions, tokens and slots; got shape \(6,\)", (X, IDS[:, 0]), {}),
        (bj.moe_combine, ValueError, r"weights must have shape \(6, 2\), that of row_map, got \(5, 2\)", (X, IDS, W[:5]), {}),
        (bj.moe_combine, TypeError, "weights must have the dtype of x, bfloat16, got float16", (X.astype("bfloat16"), IDS, W.astype("float16")), {}),
        (bj.moe_combine_backward, ValueError, r"dy must have shape \(6, 3\).*got \(5, 3\)", (X, IDS, W, X[:5]), {}),
        (bj.moe_permute_backward, ValueError, "dy must have at least one dimension, the rows; got a scalar", (IDS, 1.0), {}),
    ],
)  # fmt: skip
def test_bad_input(fun, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{fun.__name__}: {match}"):
        fun(*args, **kwargs)
