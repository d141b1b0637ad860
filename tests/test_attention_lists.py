"""Attention by lists: packed sequences, pages, and blocks of keys, under every mask, and what is stored."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from oracles import attention as oracle
from programs import normal

import baracuda_jax as bj

OPTIONS = {
    "plain": dict(is_causal=False),
    "causal": dict(is_causal=True, softcap=1.5),
    "a window": dict(is_causal=False, window=(3, 1)),
    "slopes": dict(is_causal=True, window=(4, None), slopes=True),
}
EVERY = pytest.mark.parametrize("options", OPTIONS)
STARTS, STARTS_K = np.array([1, 5, 5, 6, 9], np.int32), np.array([0, 6, 8, 8, 13], np.int32)


def _options(name, heads):
    options = dict(OPTIONS[name])
    return options | {"slopes": normal((heads,), seed=9)} if options.pop("slopes", False) else options


def _same(op, arrays, **options):
    """Values and lse are the oracle's."""
    y, lse = getattr(bj, op)(*arrays, **options, return_lse=True)
    options = {
        k: np.asarray(v) if isinstance(v, jax.Array) else v
        for k, v in options.items()
        if k != "block_size" or op == "sdpa_block_sparse"
    }
    want = getattr(oracle, op)(*map(np.asarray, arrays), **options, return_lse=True)
    for got, expected in zip((y, lse), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)
    return y, lse


# ---------------------------------------------------------------------------------------------------------------------
# Packed sequences


def _packed(dtype="float64"):
    return (
        normal((10, 4, 3), dtype), normal((14, 2, 3), dtype, seed=1), normal((14, 2, 5), dtype, seed=2),
        sent.asarray(STARTS), sent.asarray(STARTS_K),
    )  # fmt: skip


@EVERY
@pytest.mark.parametrize("alignment", ["top_left", "bottom_right"])
@pytest.mark.parametrize("most", [(None, None), (4, 6)])
def test_packed_sequences(options, alignment, most):
    """Some have no queries, some no keys; rows before the first and after the last are no sequence's."""
    y, lse = _same("flash_sdpa_varlen", (*_packed(), *most), **_options(options, 4), alignment=alignment, block_size=4)
    for nowhere in (0, 5, 9):
        assert not np.asarray(y)[nowhere].any() and np.all(np.asarray(lse)[nowhere] == -np.inf)


def test_one_packed_sequence_alone():
    """And none at all."""
    q, k, v, *_ = _packed()
    ends = sent.asarray(np.array([0, 10], np.int32)), sent.asarray(np.array([0, 14], np.int32))
    y = bj.flash_sdpa_varlen(q, k, v, *ends, is_causal=True)
    np.testing.assert_allclose(
        y, bj.flash_sdpa(q, k, v, is_causal=True, alignment="bottom_right"), rtol=1e-12, atol=1e-14
    )
    nothing = sent.zeros(1, jnp.int32)
    assert not np.asarray(bj.flash_sdpa_varlen(q, k, v, nothing, nothing)).any()


def test_packed_sequences_that_are_their_own_keys():
    """The two arrays of starts are one: aligned at either end."""
    x, starts = normal((10, 2, 4)), sent.asarray(STARTS)
    of = lambda other, **options: bj.flash_sdpa_varlen(x, x, x, starts, other, 4, 4, is_causal=True, **options)
    np.testing.assert_allclose(of(starts), of(starts + 0), rtol=1e-12)
    np.testing.assert_allclose(of(starts), of(starts + 0, alignment="top_left"), rtol=1e-12)


def test_the_gradient_of_packed_sequences_is_that_of_each():
    q, k, v, starts, starts_k = _packed()
    dy, slopes = normal((10, 4, 5), seed=3), normal((4,), seed=4)
    options = dict(is_causal=True, softcap=2.0)
    fun = lambda q, k, v, slopes: bj.flash_sdpa_varlen(q, k, v, starts, starts_k, 4, 6, slopes, block_size=2, **options)
    got = jax.jit(lambda *args: jax.vjp(fun, *args)[1](dy))(q, k, v, slopes)
    want = [np.zeros(x.shape) for x in (q, k, v, slopes)]
    of = [[slice(*starts[b : b + 2]) for b in range(4)] for starts in (STARTS, STARTS_K)]

    def alone(q, k, v, slopes):
        n, m = len(q), len(k)
        distance = np.arange(m) - np.arange(n)[:, None] - (m - n)
        return bj.sdpa(q, k, v, slopes[:, None, None] * distance[None], alignment="bottom_right", **options)

    @jax.jit
    def each(q, k, v, slopes):
        return [jax.vjp(alone, q[i], k[j], v[j], slopes)[1](dy[i]) for i, j in zip(*of, strict=True)]

    for rows, keys, parts in zip(*of, each(q, k, v, slopes), strict=True):
        for total, part, at in zip(want, parts, (rows, keys, keys, slice(None)), strict=True):
            total[at] += part
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_packed_sequences_store_no_scores():
    """Temporary memory grows with the length."""

    def bytes_of(length):
        x, starts = jax.ShapeDtypeStruct((4 * length, 1, 8), jnp.float32), jax.ShapeDtypeStruct((5,), jnp.int32)
        fun = lambda q, k, v, s: bj.flash_sdpa_varlen(
            q, k, v, s, s, length, length, is_causal=True, block_size=128
        ).sum()
        gradient = jax.jit(jax.grad(fun, (0, 1, 2)))
        return gradient.lower(x, x, x, starts).compile().memory_analysis().temp_size_in_bytes

    assert bytes_of(4096) < 6 * bytes_of(1024)


# ---------------------------------------------------------------------------------------------------------------------
# Pages

TABLE = np.array([[4, 1, 6], [0, -1, 2], [5, 3, 99], [1, 1, 4]], np.int32)
LENGTHS = np.array([7, 9, 20, 0], np.int32)


def _pages():
    return normal((7, 3, 2, 4), seed=1), normal((7, 3, 2, 3), seed=2), sent.asarray(TABLE), sent.asarray(LENGTHS)


@EVERY
@pytest.mark.parametrize("counts", [None, [5, 1, 0, 3]])
def test_queries_over_pages(options, counts):
    """With holes, pages of several sequences, and lengths of 0 and beyond the table."""
    more = () if counts is None else (sent.asarray(np.array(counts, np.int32)),)
    _same("paged_attention", (normal((4, 5, 6, 4)), *_pages(), *more), **_options(options, 6), block_size=4)


@EVERY
@pytest.mark.parametrize("most", [None, 5])
def test_packed_queries_over_pages(options, most):
    starts = sent.asarray(np.array([0, 5, 6, 6, 9], np.int32))
    _same("batch_paged_prefill", (normal((10, 2, 4)), *_pages(), starts, most), **_options(options, 2), block_size=4)


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("options", [dict(), dict(is_causal=False), dict(softcap=1.5, scale=-0.3)], ids=str)
@pytest.mark.parametrize("lengths", [(7, 9, 20, 0), (1, 2, 4, 5)])
def test_queries_as_heads_of_a_decoding(lengths, options, implementation):
    """With slopes, of sequences with fewer keys than queries, and of keys that only the last queries see."""
    options |= dict(slopes=normal((6,), seed=9), implementation=implementation)
    arrays = *_pages()[:3], sent.asarray(np.array(lengths, np.int32))
    counts = sent.asarray(np.array([5, 1, 4, 3], np.int32))
    for t, more in ((5, ()), (5, (counts,)), (1, ()), (12, ())):  # the last are too many for it
        _same("paged_attention", (normal((4, t, 6, 4)), *arrays, *more), **options, block_size=4)
    starts = sent.asarray(np.array([0, 4, 6, 6, 9], np.int32))
    for most in (4, None):
        _same("batch_paged_prefill", (normal((10, 6, 4)), *arrays, starts, most), **options, block_size=4)


def test_queries_as_heads_of_a_decoding_have_the_gradient_of_many():
    """Which is that of keys that are gathered. A window of all keys makes them many."""
    q, (k, v, table, lengths), slopes = normal((4, 5, 6, 4)), _pages(), normal((6,), seed=9)
    counts = sent.asarray(np.array([5, 1, 4, 3], np.int32))
    q = q.at[3, 3:].set(np.nan)  # padding
    dy, dlse = normal((4, 5, 6, 3), seed=5), jnp.where(jnp.isfinite(normal((4, 5, 6), seed=6)), 0.5, 0)
    fun = lambda window: (
        lambda q, k, v, slopes: bj.paged_attention(
            q, k, v, table, lengths, counts, slopes, softcap=2.0, window=window, return_lse=True, block_size=4
        )
    )
    few, many = (
        jax.jit(lambda *args, w=w: jax.vjp(fun(w), *args)[1]((dy, dlse)))(q, k, v, slopes) for w in (None, (9, None))
    )
    assert all(map(np.isfinite, map(np.sum, few)))
    for a, b in zip(few, many, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_few_queries_gather_nothing():
    """But the keys that causal attention hides from some; many do."""

    def temporary(t):
        of = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)
        table, lengths = (jax.ShapeDtypeStruct(shape, jnp.int32) for shape in ((1, 512), (1,)))
        fun = jax.jit(lambda *args: bj.paged_attention(*args, implementation="native"))
        compiled = fun.lower(of(1, t, 4, 64), *[of(512, 16, 4, 64)] * 2, table, lengths).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    keys = 4 * 512 * 16 * 4 * 64
    assert temporary(4) < keys / 8 and temporary(17) >= 2 * keys


def test_one_query_over_pages_is_decoding():
    q, slopes = normal((4, 1, 4, 4)), normal((4,), seed=3)
    got = bj.paged_attention(q, *_pages(), None, slopes, window=(5, None), softcap=2.0, return_lse=True)
    want = bj.batch_paged_decode(q[:, 0], *_pages(), slopes, window=5, softcap=2.0, return_lse=True)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a[:, 0], b, rtol=1e-10, atol=1e-12)


def test_the_gradient_of_shared_pages():
    """That of pages that are repeated, added up; what nobody sees may be NaN."""
    q, (k, v, table, lengths), dy = normal((4, 2, 2, 4)), _pages(), normal((4, 2, 2, 3), seed=5)
    keys = [
        np.where(
            (TABLE >= 0)[..., None, None, None] & (TABLE < 7)[..., None, None, None],
            np.asarray(x)[np.clip(TABLE, 0, 6)],
            0,
        )
        for x in (k, v)
    ]
    keys = [sent.asarray(x.reshape(4, 9, 2, -1)) for x in keys]
    exists = np.repeat((TABLE >= 0) & (TABLE < 7), 3, 1)[:, None, None]
    plain = lambda *args: bj.sdpa(
        *args,
        None,
        sent.asarray(exists),
        is_causal=True,
        alignment="bottom_right",
        key_value_seq_lengths=jnp.minimum(lengths, 9),
    )
    want_q, *wanted = jax.vjp(plain, q, *keys)[1](dy)
    fun = lambda q, k, v: bj.paged_attention(q, k, v, table, lengths)
    spoilt = [np.array(x) for x in (k, v)]
    for x in spoilt:
        x[6, 1:] = np.nan  # of the first sequence, after its end
    got_q, *got = jax.jit(lambda *args: jax.vjp(fun, *args)[1](dy))(q, *map(sent.asarray, spoilt))
    np.testing.assert_allclose(got_q, want_q, rtol=1e-9, atol=1e-12)
    for a, rows in zip(got, wanted, strict=True):
        total = np.zeros(a.shape)
        for b, m in np.ndindex(*TABLE.shape):
            if 0 <= TABLE[b, m] < 7:
                total[TABLE[b, m]] += np.asarray(rows).reshape(4, 3, 3, 2, -1)[b, m]
        np.testing.assert_allclose(a, total, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------------
# Lists of blocks


@pytest.mark.parametrize("alignment", ["top_left", "bottom_right"])
@pytest.mark.parametrize("sizes", [2, (3, 4), (100, 1)])
@EVERY
def test_lists_of_blocks(sizes, options, alignment):
    """In any order, of any length, with numbers of no block."""
    m, n = sizes if isinstance(sizes, tuple) else (sizes, sizes)
    rng, rows, count = np.random.default_rng(0), -(-7 // m), -(-9 // n)
    lists = np.stack([rng.permutation(count) for _ in range(rows)])[:, : max(count - 1, 1)]
    lists[rng.random(lists.shape) < 0.3] = -1
    lists[-1, -1] = count
    arrays = normal((2, 7, 4, 3)), normal((2, 9, 2, 3), seed=1), normal((2, 9, 2, 5), seed=2), sent.asarray(lists)
    _same("sdpa_block_sparse", arrays, block_size=sizes, alignment=alignment, **_options(options, 4))


def test_all_blocks_are_dense_attention():
    arrays = normal((8, 2, 4)), normal((12, 2, 4), seed=1), normal((12, 2, 4), seed=2)
    every = sent.asarray(np.broadcast_to(np.arange(3, dtype=np.uint8), (2, 3)))
    sparse = lambda *args: bj.sdpa_block_sparse(*args, every, block_size=4, is_causal=True)
    dense = lambda *args: bj.sdpa(*args, is_causal=True)
    dy = normal((8, 2, 4), seed=3)
    for a, b in zip(*(jax.vjp(f, *arrays)[1](dy) for f in (sparse, dense)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_memory_is_that_of_the_listed_blocks():
    def bytes_of(length, op):
        x, lists = jax.ShapeDtypeStruct((length, 1, 8), jnp.float32), np.zeros((length // 64, 2), np.int32)
        fun = {"sdpa": bj.sdpa, "sdpa_block_sparse": lambda *args: bj.sdpa_block_sparse(*args, lists, block_size=64)}[
            op
        ]
        gradient = jax.jit(jax.grad(lambda *args: fun(*args).sum(), (0, 1, 2)))
        return gradient.lower(x, x, x).compile().memory_analysis().temp_size_in_bytes

    assert 4 * bytes_of(8192, "sdpa_block_sparse") < bytes_of(8192, "sdpa")


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, r"cu_seqlens_k must be \[4 \+ 1\], .* got \(3,\)", lambda: bj.flash_sdpa_varlen(*_packed()[:4], sent.zeros(3, int))),
        (TypeError, "cu_seqlens_q must have one of the dtypes", lambda: bj.flash_sdpa_varlen(*_packed()[:3], sent.zeros(3), sent.zeros(3))),
        (ValueError, r"query must be \[queries, heads, d\]", lambda: bj.flash_sdpa_varlen(normal((2, 3, 4, 3)), *_packed()[1:])),
        (ValueError, "max_seqlen_q must be at least 0", lambda: bj.flash_sdpa_varlen(*_packed(), -1)),
        (TypeError, 'alignment must be "top_left" or "bottom_right"', lambda: bj.flash_sdpa_varlen(*_packed(), alignment=1)),
        (ValueError, r"query must be \[batch, queries, heads, d\]", lambda: bj.paged_attention(normal((4, 5, 4)), *_pages())),
        (ValueError, r"query must have the d of k_pages and a multiple of its heads, \(2, 4\)", lambda: bj.paged_attention(normal((4, 5, 3, 4)), *_pages())),
        (ValueError, r"page_table must be \[batch, pages of a sequence\] with a batch of 3", lambda: bj.paged_attention(normal((3, 5, 4, 4)), *_pages())),
        (ValueError, "with a batch of 2", lambda: bj.batch_paged_prefill(normal((3, 4, 4)), *_pages(), sent.zeros(3, int))),
        (ValueError, r"key_blocks must be \[4, most blocks", lambda: bj.sdpa_block_sparse(*[normal((7, 2, 4))] * 3, sent.zeros((2, 2), int), block_size=2)),
    ],
)  # fmt: skip
def test_what_is_refused(error, match, call):
    with pytest.raises(error, match=match):
        call()
