"""Caches: where rows go, in a loop and outside, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from programs import normal

import baracuda_jax as bj


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_a_cache_that_is_filled_step_by_step(implementation):
    """Rows that have no position are left out, and everything else stays."""
    new, start = normal((5, 3, 2, 1, 4)), sent.asarray([0, 2, 3])

    @jax.jit
    def fill(cache):
        step = lambda cache, i: (bj.kv_cache_append(cache, new[i], start + i, implementation=implementation), None)
        return jax.lax.scan(step, cache, sent.arange(5))[0]

    got, want = fill(sent.zeros((3, 2, 6, 4))), np.zeros((3, 2, 6, 4))
    for i in range(5):
        for batch in range(3):
            if start[batch] + i < 6:
                want[batch, :, start[batch] + i] = new[i, batch, :, 0]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
def test_positions_far_outside_write_nothing(implementation, dtype):
    cache, new, info = normal((2, 4, 3)), normal((2, 2, 3), seed=1), jnp.iinfo(dtype)
    for position in (info.max, info.min if info.min else info.max - 1):
        y = bj.kv_cache_append(cache, new, sent.full(2, position, dtype), implementation=implementation)
        np.testing.assert_array_equal(y, cache)


def test_the_backward_function_is_the_gradient():
    cache, new, dy, position = (
        normal((2, 5, 3)),
        normal((2, 3, 3), seed=1),
        normal((2, 5, 3), seed=2),
        sent.asarray([-1, 4]),
    )
    want = jax.vjp(lambda *args: bj.kv_cache_append(*args, position), cache, new)[1](dy)
    for got, expected in zip(bj.kv_cache_append_backward(dy, position, 3), want, strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(want[1][0, 1:], dy[0, :2])
    np.testing.assert_array_equal(want[1][1], np.stack([dy[1, 4], np.zeros(3), np.zeros(3)]))


@pytest.mark.parametrize(
    "error, match, changes",
    [
        (
            TypeError,
            "new must have the dtype of cache, float64, got float32",
            {"new": sent.ones((2, 1, 3), jnp.float32)},
        ),
        (
            ValueError,
            r"cache must be \[..., length, d\] .* n <= length, got .* and \(2, 5, 3\)",
            {"new": normal((2, 5, 3))},
        ),
        (
            ValueError,
            r"position must have the first dimensions of cache, \(2,\), got \(3,\)",
            {"position": sent.zeros(3, int)},
        ),
        (TypeError, "position must have one of the dtypes .*, got float64", {"position": sent.zeros(2)}),
    ],
)
def test_what_is_refused(error, match, changes):
    arguments = {"cache": normal((2, 4, 3)), "new": normal((2, 1, 3)), "position": sent.zeros(2, int)} | changes
    with pytest.raises(error, match=f"^kv_cache_append: {match}"):
        bj.kv_cache_append(**arguments)


# ---------------------------------------------------------------------------------------------------------------------
# Softmax attention


def _qkv(*batch, t=5, s=9, heads=4, groups=2, d=4, dtype="float64"):
    return (
        normal((*batch, t, heads, d), dtype),
        normal((*batch, s, groups, d), dtype, seed=1),
        normal((*batch, s, groups, d + 1), dtype, seed=2),
    )


OPTIONS = {
    "plain": {},
    "causal": dict(is_causal=True),
    "bottom right": dict(is_causal=True, alignment="bottom_right"),
    "a mask": dict(mask=np.random.default_rng(0).random((2, 1, 5, 9)) > 0.4),
    "a bias": dict(bias=np.random.default_rng(1).standard_normal((4, 5, 9)), scale=0.3),
}


@pytest.mark.parametrize("name", ["sdpa", "flash_sdpa"])
@pytest.mark.parametrize("options", OPTIONS)
def test_values_and_gradients_are_torchs(name, options):
    torch = pytest.importorskip("torch")
    options, arrays = dict(OPTIONS[options]), _qkv(2)
    more = {"block_size": 4} if name == "flash_sdpa" else {}
    fun = lambda *args: getattr(bj, name)(*args, **options, **more)
    dy = normal((2, 5, 4, 5), seed=3)
    y, cts = jax.jit(lambda *args: (lambda y, pull: (y, pull(dy)))(*jax.vjp(fun, *args)))(*arrays)
    tensors = [torch.tensor(np.asarray(x), requires_grad=True) for x in arrays]
    seen = options.get("mask", options.get("bias"))
    if options.get("is_causal"):
        seen = np.tril(np.ones((5, 9), bool), 4 if "alignment" in options else 0)
    want = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in tensors), attn_mask=None if seen is None else torch.tensor(seen),
        scale=options.get("scale"), enable_gqa=True,
    ).transpose(1, 2)  # fmt: skip
    want.backward(torch.tensor(np.asarray(dy)))
    np.testing.assert_allclose(y, want.detach(), rtol=1e-10, atol=1e-10)
    for ct, x in zip(cts, tensors, strict=True):
        np.testing.assert_allclose(ct, x.grad, rtol=1e-10, atol=1e-10)


OF_JAX = {
    "plain": ({}, {}),
    "causal": (dict(is_causal=True, scale=0.3),) * 2,
    "a mask and a bias": (dict(mask=OPTIONS["a mask"]["mask"], bias=OPTIONS["a bias"]["bias"]),) * 2,
    "a window": (dict(window=(2, 1)), dict(local_window_size=(2, 1))),
    "lengths": (dict(query_seq_lengths=np.int32([5, 3]), key_value_seq_lengths=np.int32([9, 4])),) * 2,
}


@pytest.mark.parametrize("name", ["sdpa", "flash_sdpa"])
@pytest.mark.parametrize("options", OF_JAX)
def test_values_and_gradients_are_jaxs(name, options):
    """Those of `jax.nn.dot_product_attention`, which computes softmax in float32. Rows of padding are left out."""
    options, of_jax = (
        {k: sent.asarray(v) if isinstance(v, np.ndarray) else v for k, v in x.items()} for x in OF_JAX[options]
    )
    q, k, v = _qkv(2)
    more = {"block_size": 4} if name == "flash_sdpa" else {}
    dy = normal((2, 5, 4, 4), seed=3)
    rows = options.get("query_seq_lengths", sent.full(2, 5, "int32"))
    dy = jnp.where(jnp.arange(5)[:, None, None] < rows[:, None, None, None], dy, 0)

    @jax.jit
    def both(*arrays):
        of_bj = lambda *args: getattr(bj, name)(*args, **options, **more)
        plain = lambda *args: jax.nn.dot_product_attention(*args, **of_jax, implementation="xla")
        return [(jnp.where(dy != 0, y, 0), pull(dy)) for y, pull in (jax.vjp(f, *arrays) for f in (of_bj, plain))]

    got, want = both(q, k, v[..., :4])
    for a, b in zip(*map(jax.tree.leaves, (got, want)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("block_size", [None, 1, 4, 100])
@pytest.mark.parametrize(
    "options",
    [
        dict(query_seq_lengths=[5, 2], key_value_seq_lengths=[0, 7]),
        dict(query_seq_lengths=[5, 2], key_value_seq_lengths=[9, 7], is_causal=True, alignment="bottom_right"),
        dict(window=(2, 1), softcap=1.5),
        dict(window=1, is_causal=True, alignment=3),
        dict(window=(None, 2), alignment=[-2, 4]),
        dict(is_causal=True, alignment=[-4, 2**62]),
    ],
    ids=str,
)
def test_what_a_query_sees(options, block_size):
    from oracles import attention as oracle

    arrays = _qkv(2)
    options = {k: np.array(v) if isinstance(v, list) else v for k, v in options.items()}
    of_arrays = {k: sent.asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    op, more = ("sdpa", {}) if block_size is None else ("flash_sdpa", {"block_size": block_size})
    y, lse = getattr(bj, op)(*arrays, **of_arrays, **more, return_lse=True)
    offset, mask = options.get("alignment"), None
    if not isinstance(offset, str) and offset is not None:  # the oracle knows words: what it sees, as a mask
        at = np.broadcast_to(offset, 2).astype(object)[:, None, None, None] + np.arange(5)[:, None]
        j, (left, right) = np.arange(9), options.get("window", (None, None)) if options.get("window") != 1 else (1, 1)
        mask = np.ones((2, 1, 5, 9), bool)
        mask &= (j <= at) | (not options.get("is_causal"))
        mask &= (left is None) | (j >= at - (left or 0))
        mask &= (right is None) | (j <= at + (right or 0))
        options = {}
    want, want_lse = oracle.sdpa(*map(np.asarray, arrays), mask=mask, **options, return_lse=True)
    np.testing.assert_allclose(y, want, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lse, want_lse, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["sdpa", "flash_sdpa"])
def test_a_query_that_sees_nothing(name):
    q, k, v = _qkv(t=3, s=4)
    more = {"block_size": 2} if name == "flash_sdpa" else {}
    mask = sent.asarray([[True] * 4, [False] * 4, [True] * 4])

    def loss(q, k, v):
        y, lse = getattr(bj, name)(q, k, v, mask=mask, return_lse=True, **more)
        return jnp.sum(y[1] ** 2 + y[1]) + jnp.sum(jnp.where(jnp.isfinite(lse[1]), lse[1], 0)), (y, lse)

    gradients, (y, lse) = jax.jit(jax.grad(loss, (0, 1, 2), has_aux=True))(q, k, v)
    np.testing.assert_array_equal(y[1], 0)
    np.testing.assert_array_equal(lse[1], -np.inf)
    for ct in gradients:
        np.testing.assert_array_equal(ct, 0)
    empty, none = getattr(bj, name)(q, k[:0], v[:0], return_lse=True, **more)
    assert not empty.any() and np.all(none == -np.inf)


def test_blocks_have_the_derivatives_of_all_scores_at_once():
    """Of results and lse, by every way, the second too."""
    arrays, bias = _qkv(), normal((4, 1, 9), seed=4)

    def loss(op, **more):
        def total(*args):
            y, lse = getattr(bj, op)(*args, is_causal=True, softcap=2.0, return_lse=True, **more)
            return jnp.sum(jnp.sin(y)) + jnp.sum(jnp.cos(lse))

        return total

    def derivatives(fun):
        gradient = jax.grad(fun, (0, 1, 2, 3))
        squared = lambda *args: sum(jnp.sum(ct**2) for ct in gradient(*args))
        args = (*arrays, bias)
        return gradient(*args), jax.jvp(gradient, args, args)[1], jax.grad(squared, (0, 1, 2, 3))(*args)

    both = jax.jit(lambda: [derivatives(loss("sdpa")), derivatives(loss("flash_sdpa", block_size=4))])()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), *both)


def test_blocks_store_no_scores():
    """Temporary memory of the gradient grows with the length, not with its square."""

    def bytes_of(length, op):
        x = jax.ShapeDtypeStruct((length, 1, 8), jnp.float32)
        gradient = jax.jit(jax.grad(lambda *args: getattr(bj, op)(*args, is_causal=True).sum(), (0, 1, 2)))
        return gradient.lower(x, x, x).compile().memory_analysis().temp_size_in_bytes

    assert 4 * bytes_of(8192, "flash_sdpa") < bytes_of(8192, "sdpa") > 8192 * 8192 * 4


def test_lse_of_16_bits_is_float32():
    arrays = _qkv(2, dtype="bfloat16")
    y, lse = bj.flash_sdpa(*arrays, return_lse=True)
    assert y.dtype == jnp.bfloat16 and lse.dtype == jnp.float32
    _, want = bj.flash_sdpa(*(x.astype(jnp.float32) for x in arrays), return_lse=True)
    np.testing.assert_allclose(lse, want, rtol=1e-6)


@pytest.fixture
def with_cudnn(monkeypatch):
    """As on a machine with cuDNN: programs for CUDA are lowered, and none runs."""
    from baracuda_jax._core import compat

    monkeypatch.setattr(compat.cudnn, "check_cudnn_version", lambda: 91900)
    jax.clear_caches()
    yield
    jax.clear_caches()


def _cudnn_calls(fun, *args, platforms=("cuda",)):
    return jax.jit(fun).trace(*args).lower(lowering_platforms=platforms).as_text().count("__cudnn$fmhaSoftmax")


def test_cudnn_computes_what_it_can(with_cudnn):
    x = jax.ShapeDtypeStruct((2, 3, 16, 4, 64), jnp.bfloat16)
    lengths = sent.full((2, 3), 7)
    calls = lambda dtype=None, platforms=("cuda",), **options: _cudnn_calls(
        lambda *args: bj.flash_sdpa(*args, **options), *[x.update(dtype=dtype or x.dtype)] * 3, platforms=platforms
    )
    for able in ({}, dict(is_causal=True), dict(is_causal=True, window=(3, None)), dict(key_value_seq_lengths=lengths)):
        assert calls(**able) == 1, able
    assert calls(return_lse=True) == 1 and calls(platforms=("cpu", "cuda")) == 1
    assert calls(jnp.float32) == calls(platforms=("cpu",)) == 0
    for unable in (dict(softcap=1.0), dict(window=2), dict(bias=sent.ones(16)), dict(is_causal=True, alignment=1)):
        assert calls(**unable) == 0, unable


def test_derivatives_beyond_cudnns_are_plain_jaxs(with_cudnn):
    """The first gradient is cuDNN's; the tangent, that of lse, and the second order are the definition's, which a CPU runs."""
    arrays = [x.astype(jnp.bfloat16) for x in _qkv(2, t=4, s=6, d=8)[:2]]
    arrays = arrays[0], arrays[1], arrays[1]
    loss = lambda *args: bj.flash_sdpa(*args).astype(jnp.float32).sum()
    assert _cudnn_calls(jax.grad(loss), *arrays) == 3  # forward, and forward and backward
    both = lambda q, *kv: (
        jax.grad(loss)(q, *kv),
        jax.jvp(jax.grad(loss), (q, *kv), (q, *kv))[1],
        jax.vmap(loss)(q, *kv),
    )
    found = jax.jit(both)(*arrays)
    as_float32 = jax.jit(both)(*(x.astype(jnp.float32) for x in arrays))
    for got, want in zip(found, as_float32, strict=True):
        np.testing.assert_allclose(np.asarray(got, np.float32), want, rtol=0.1, atol=0.02)


# ---------------------------------------------------------------------------------------------------------------------
# Parts, rings, positions, pages, streams


def test_parts_of_keys_merge_to_all():
    q, k, v = _qkv(2)
    parts = [bj.sdpa(q, k[:, a:b], v[:, a:b], return_lse=True) for a, b in ((0, 4), (4, 5), (5, 9))]
    got = bj.cascade_merge_states(*(jnp.stack(xs, 1) for xs in zip(*parts, strict=True)), axis=1)
    for a, b in zip(got, bj.sdpa(q, k, v, return_lse=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_cascade_is_attention_over_both():
    q, k, v = _qkv(2, s=6)
    prefix = [x[0] for x in _qkv(1, s=7)[1:]]
    joined = [jnp.concatenate([jnp.broadcast_to(p, (2, *p.shape)), x], 1) for p, x in zip(prefix, (k, v), strict=True)]
    got = bj.cascade_attention(q, *prefix, k, v, is_causal=True, return_lse=True)
    want = bj.sdpa(q, *joined, is_causal=True, alignment="bottom_right", return_lse=True)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), got, want)
    few = sent.asarray([2, 5])
    y, lse = bj.cascade_attention(q, *prefix, k, v, query_seq_lengths=few, return_lse=True)
    assert not y[0, 2:].any() and np.all(lse[0, 2:] == -np.inf) and y[1].all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_ring_is_attention_over_the_whole_sequence(is_causal):
    if len(jax.devices()) < 8:
        pytest.skip("needs eight devices")
    mesh = jax.make_mesh((4, 2), ("d", "e"), axis_types=(jax.sharding.AxisType.Auto,) * 2, devices=jax.devices()[:8])
    arrays = _qkv(2, t=8, s=8)

    def loss(fun):
        def total(*args):
            y, lse = fun(*args)
            return jnp.sum(jnp.sin(y)) + jnp.sum(jnp.cos(lse)), (y, lse)

        return jax.jit(jax.value_and_grad(total, (0, 1, 2), has_aux=True))

    options = dict(is_causal=is_causal, return_lse=True)
    got = loss(lambda *args: bj.ring_attention(*args, mesh=mesh, axis_name="d", **options))(*arrays)
    want = loss(lambda *args: bj.sdpa(*args, **options))(*arrays)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), got, want)


SCALINGS = {
    "linear": dict(factor=4.0),
    "dynamic": dict(factor=2.0, original_length=4096, length=20000),
    "yarn": dict(factor=8.0, original_length=2048),
    "longrope": dict(
        factor=4.0, original_length=4096, length=9000, short_factor=(1.0,) * 32,
        long_factor=tuple(1 + 0.3 * i for i in range(32)),
    ),
    "llama3": dict(factor=8.0, original_length=1024),
}  # fmt: skip


@pytest.mark.parametrize("scaling", SCALINGS)
def test_frequencies_are_those_of_transformers(scaling):
    """Of its functions where it is installed, and as the papers have them."""
    from oracles import attention as oracle

    options = SCALINGS[scaling]
    cos, sin = bj.rope_scaled_table(jnp.float64(1e-3), 64, scaling=scaling, **options)
    by, freq = np.hypot(cos, sin), 1e3 * np.arctan2(sin, cos)
    of_paper = {k: v for k, v in options.items() if k in ("factor", "original_length", "length")}
    of_paper = {"original_length": 1, "factors": options.get("long_factor")} | of_paper
    want = [oracle.rope_frequency(i, 64, 10000.0, scaling, **of_paper) for i in range(32)]
    np.testing.assert_allclose(freq, want, rtol=1e-9)
    factor = {"yarn": 0.1 * np.log(8) + 1, "longrope": np.sqrt(1 + np.log(4) / np.log(4096))}
    np.testing.assert_allclose(by, factor.get(scaling, 1), rtol=1e-12)
    rope_utils = pytest.importorskip("transformers.modeling_rope_utils")
    from transformers import LlamaConfig

    config = LlamaConfig(head_dim=64, max_position_embeddings=4096)
    config.rope_parameters = {
        "rope_type": scaling,
        "rope_theta": 10000.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }
    config.rope_parameters |= {"original_max_position_embeddings": options.get("original_length")} | options
    theirs, theirs_by = rope_utils.ROPE_INIT_FUNCTIONS[scaling](config, "cpu", seq_len=options.get("length"))
    np.testing.assert_allclose(freq, theirs, rtol=1e-5)
    np.testing.assert_allclose(by, theirs_by, rtol=1e-6)


def test_rotations_of_far_positions_are_exact():
    """Angles of float32, whose sines have no error of their own."""
    x = sent.ones((3, 1, 2), jnp.float32)
    y = bj.rope(x, sent.asarray([0, 1_000_003, 16_000_001]))
    angle = np.array([0, 1_000_003, 16_000_001], np.float64)
    np.testing.assert_allclose(y[:, 0, 0], np.cos(angle) - np.sin(angle), atol=1e-6)


def test_rotations_keep_products_of_equal_distances():
    q, k = normal((6, 1, 8)), normal((6, 1, 8), seed=1)
    dot = lambda i, j: jnp.sum(bj.rope(q, sent.full(6, i)) * bj.rope(k, sent.full(6, j)))
    np.testing.assert_allclose(dot(3, 1), dot(1007, 1005), rtol=1e-9)


def test_tables_are_ropes():
    x, positions = normal((2, 5, 3, 8)), sent.arange(10).reshape(2, 5)
    tables = bj.rope_scaled_table(sent.arange(10.0), 8)
    for interleaved in (False, True):
        want = bj.rope(x, positions, interleaved=interleaved)
        got = bj.rope_apply_table(x, *tables, positions, interleaved=interleaved)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
        rows = [t[positions] for t in tables]
        np.testing.assert_allclose(bj.rope_apply_table(x, *rows, interleaved=interleaved), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("heads", [1, 4, 6])
def test_usual_slopes(heads):
    """Those of the paper; for six heads, of four and then every other one of eight."""
    bias = bj.alibi(sent.zeros((heads, 3, 3)))
    want = {1: [2**-8], 4: [2**-2, 2**-4, 2**-6, 2**-8], 6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]}[heads]
    np.testing.assert_allclose(-bias[:, 2, 0] / 2, want, rtol=1e-12)
    assert not bias[:, 1, 1].any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_pages_are_written_in_place(dtype):
    from laws.values import in_place

    pages, new = sent.zeros((64, 4, 2, 8), dtype), sent.ones((3, 2, 2, 8), dtype)
    table, position = sent.arange(24).reshape(3, 8), sent.asarray([0, 7, 31])
    step = jax.jit(bj.paged_kv_append, donate_argnums=0)
    assert in_place(step.lower(pages, new, table, position).compile().as_text(), pages)
    y = np.asarray(step(pages, new, table, position), np.float64)
    written = {tuple(at) for at in np.argwhere(y[:, :, 0, 0])}
    assert written == {(0, 0), (0, 1), (9, 3), (10, 0), (23, 3)}  # the last row of the third is outside


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64"])
def test_pages_far_outside_are_not_written(dtype):
    info = jnp.iinfo(dtype)
    pages, new = normal((2, 3, 4)), normal((1, 2, 4), seed=1)
    for table, position in (([[0, 1]], info.max), ([[info.max, 2]], 0), ([[0, 1]], info.min or info.max - 1)):
        y = bj.paged_kv_append(pages, new, sent.asarray(table, dtype), sent.asarray([position], dtype))
        np.testing.assert_array_equal(y, pages)


def test_streams_with_a_layer_between():
    """One stream with open gates is a residual connection; the matrix is doubly stochastic."""
    x, layer = normal((3, 1, 4)), lambda h: 2 * h
    y = bj.hyper_connection(x, sent.full(1, 60.0), sent.zeros(1), sent.zeros((1, 1)), layer=layer, eps=0.0)
    h = np.asarray(x[:, 0])
    np.testing.assert_allclose(y[:, 0], h + 2 * h / np.sqrt((h**2).mean(-1, keepdims=True)), rtol=1e-12)
    x = normal((4, 1))
    closed = sent.full(4, -800.0)
    y = bj.hyper_connection(x, closed, closed, 300 * normal((4, 4), seed=1), iterations=200)
    np.testing.assert_allclose(y.sum(), x.sum(), rtol=1e-6)


Q, K = np.ones((2, 5, 4, 8)), np.ones((2, 7, 2, 8))


@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.sdpa, TypeError, "query must be an array, got str", ("q", K, K), {}),
        (bj.sdpa, TypeError, "query must have one of the dtypes .*, got int32", (Q.astype("int32"), K, K), {}),
        (bj.sdpa, TypeError, "value must have the dtype of query, float64, got float32", (Q, K, K.astype("float32")), {}),
        (bj.sdpa, ValueError, r"query must be \[..., length, heads, d\], got shape \(8,\)", (Q[0, 0, 0], K, K), {}),
        (bj.sdpa, ValueError, r"key must be \[2, length, heads, 8\], for query .*, got \(2, 7, 2, 7\)", (Q, K[..., :7], K), {}),
        (bj.sdpa, ValueError, r"key must be \[2, length, heads, 8\], .* got \(1, 7, 2, 8\)", (Q, K[:1], K), {}),
        (bj.sdpa, ValueError, "query must have a multiple of the 2 heads of key, got 3 heads", (Q[:, :, :3], K, K), {}),
        (bj.sdpa, ValueError, "value must have the shape of key, .*, except for the last", (Q, K, K[:, :6]), {}),
        (bj.sdpa, ValueError, r"bias must broadcast to .*\(2, 4, 5, 7\), got shape \(5, 6\)", (Q, K, K, sent.ones((5, 6))), {}),
        (bj.sdpa, TypeError, "mask must have one of the dtypes bool, got float64", (Q, K, K, None, sent.ones(7)), {}),
        (bj.sdpa, ValueError, "scale must be a static finite number or None, got nan", (Q, K, K), dict(scale=float("nan"))),
        (bj.sdpa, ValueError, "softcap must be a static number above 0, got 0", (Q, K, K), dict(softcap=0)),
        (bj.sdpa, ValueError, r"window\[1\] must be at least 0, got -1", (Q, K, K), dict(window=(2, -1))),
        (bj.sdpa, ValueError, r"window must be an integer or two, .* got \(1, 2, 3\)", (Q, K, K), dict(window=(1, 2, 3))),
        (bj.sdpa, ValueError, "alignment must be one of 'top_left', 'bottom_right', got 'left'", (Q, K, K), dict(alignment="left")),
        (bj.sdpa, ValueError, r"alignment must be one of .*, got shape \(3,\)", (Q, K, K), dict(alignment=sent.arange(3))),
        (bj.sdpa, TypeError, "is_causal must be True or False, got 1", (Q, K, K), dict(is_causal=1)),
        (bj.sdpa, ValueError, r"query_seq_lengths must have shape \(2,\)", (Q, K, K), dict(query_seq_lengths=sent.ones(3, int))),
        (bj.sdpa, TypeError, "return_lse must be True or False, got 'yes'", (Q, K, K), dict(return_lse="yes")),
        (bj.sdpa, ValueError, "implementation='native', but the op has no kernel", (Q, K, K), dict(implementation="native")),
        (bj.flash_sdpa, ValueError, "block_size must be at least 1, got 0", (Q, K, K), dict(block_size=0)),
        (bj.ring_attention, ValueError, "key must have the length of query, 5, where is_causal, got 7", (Q, K, K), dict(is_causal=True)),
        (bj.cascade_attention, ValueError, r"prefix_key must be \[length, heads, 8\]", (Q, K, K, K, K), {}),
        (bj.cascade_attention, ValueError, "prefix_key and prefix_value must have the heads", (Q, K[0, :, :1], K[0, :, :1], K, K), {}),
        (bj.cascade_merge_states, ValueError, r"lse must have shape \(2, 5, 4\), that of x", (Q, Q), {}),
        (bj.cascade_merge_states, ValueError, r"axis must be in \[-3, 2\] for lse", (Q, Q[..., 0], 3), {}),
        (bj.rope, ValueError, r"x must be \[..., length, heads, d\], got shape \(4, 8\)", (Q[0, 0],), {}),
        (bj.rope, ValueError, "rotary_dim must be even and at most d, 8, got 3", (Q,), dict(rotary_dim=3)),
        (bj.rope, ValueError, r"positions must broadcast to .*\(2, 5\), got shape \(4,\)", (Q, sent.arange(4)), {}),
        (bj.rope, TypeError, "positions must have one of the dtypes int8.*, got float64", (Q, sent.ones(5)), {}),
        (bj.rope, ValueError, "base must be a static number above 0, got -1", (Q,), dict(base=-1)),
        (bj.rope_apply_table, ValueError, r"cos must be \[rows, n\] .* got \(6, 4\)", (Q, *[sent.ones((6, 4))] * 2), {}),
        (bj.rope_scaled_table, ValueError, "dim must be even, got 3", (sent.arange(3), 3), {}),
        (bj.rope_scaled_table, ValueError, "scaling must be one of 'default', .*, got 'ntk'", (sent.arange(3), 4), dict(scaling="ntk")),
        (bj.rope_scaled_table, ValueError, "factor must be a static number above 0 for 'linear', got None", (sent.arange(3), 4), dict(scaling="linear")),
        (bj.rope_scaled_table, ValueError, "short_factor must have dim / 2, 2, numbers", (sent.arange(3), 4), dict(scaling="longrope", factor=2.0, original_length=8)),
        (bj.alibi, ValueError, r"slopes must have shape \(5,\), one for each head", (Q, sent.ones(4)), {}),
        (bj.paged_kv_append, ValueError, r"pages must be \[pages, n, ...\] .*", (Q, Q[0], sent.ones((2, 2), int), sent.ones(2, int)), {}),
        (bj.paged_kv_append, ValueError, r"page_table must be \[batch, pages of a sequence\]", (Q, Q, sent.ones((3, 2), int), sent.ones(2, int)), {}),
        (bj.hyper_connection, ValueError, r"pre must have shape \(4,\) or \(2, 5, 4\), got \(3,\)", (Q, sent.ones(3), sent.ones(4), sent.ones((4, 4))), {}),
        (bj.hyper_connection, TypeError, "layer must be a function or None, got 3", (Q, sent.ones(4), sent.ones(4), sent.ones((4, 4))), dict(layer=3)),
    ],
)  # fmt: skip
def test_bad_input_of_attention(fun, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{fun.__name__}: {match}"):
        fun(*args, **kwargs)
