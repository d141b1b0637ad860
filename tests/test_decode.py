"""Decoding over pages: chunks of keys, what a query sees, bits that other sequences do not change, and 8-bit caches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from oracles import attention as oracle
from programs import normal, wide

import baracuda_jax as bj

BOTH = pytest.mark.parametrize("implementation", ["native", "xla"])


def _cache(lengths, heads, groups, d, values, n, table, dtype="float64", holes=()):
    """Pages in any order, of which some are in no table; `holes` are entries of the table that name none."""
    batch, pages = len(lengths), len(lengths) * table + 2
    numbers = np.random.default_rng(5).permutation(pages)[: batch * table].reshape(batch, table)
    for i, at in enumerate(holes):
        numbers[at] = (-1, pages, 2**31 - 1)[i % 3]
    return (
        normal((batch, heads, d), dtype), normal((pages, n, groups, d), dtype, seed=1),
        normal((pages, n, groups, values), dtype, seed=2), sent.asarray(numbers.astype(np.int32)),
        sent.asarray(np.array(lengths, np.int32)),
    )  # fmt: skip


def _wanted(arrays, **options):
    return oracle.batch_paged_decode(
        *(np.asarray(x).astype(float if x.ndim > 2 else x.dtype) for x in arrays), **options
    )


@BOTH
@pytest.mark.parametrize(
    "heads, groups, d, values, n, table, options",
    [
        (4, 2, 8, 8, 16, 70, dict(window=600)),  # chunks of 512 keys, of which the first are seen in part, or not
        (1, 1, 3, 5, 7, 75, dict(softcap=2.0)),
        (11, 1, 6, 2, 1, 20, dict(scale=0.4)),
        (9, 3, 16, 16, 4, 3, dict(window=0)),
        (2, 2, 300, 1, 3, 2, {}),
    ],
)
def test_values(implementation, heads, groups, d, values, n, table, options):
    """Of lengths 0 and 1, of those of whole chunks and of more than the table has room for, and with holes."""
    lengths = [0, 1, n * table, 512, min(513, n * table), 10**6]
    arrays = _cache(lengths, heads, groups, d, values, n, table, holes=[(2, 0), (3, table - 1), (5, table // 2)])
    slopes = normal((heads,), seed=3)
    run = lambda *args: bj.batch_paged_decode(*args, **options, return_lse=True, implementation=implementation)
    y, lse = run(*arrays, slopes)
    want, want_lse = _wanted((*arrays,), slopes=np.asarray(slopes), **options, return_lse=True)
    np.testing.assert_allclose(y, want, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(lse, want_lse, rtol=1e-9, atol=1e-11)
    assert not np.asarray(y)[0].any() and np.all(np.asarray(lse)[0] == -np.inf)


# Rows of whole chunks of 16 bytes, which CUDA multiplies by tensor cores: up to eight queries of a group at a time, up to
# sixteen, and more; columns that fill tiles and that do not.
ROWS = pytest.mark.parametrize(
    "heads, groups, d, values, n, table, options",
    [
        (2, 2, 128, 128, 16, 40, dict(window=590)),
        (8, 1, 64, 48, 7, 30, dict(softcap=2.0)),
        (22, 2, 128, 64, 16, 9, {}),
        (20, 1, 16, 96, 1, 90, dict(window=40)),
        (3, 1, 256, 192, 5, 12, dict(scale=0.05)),
    ],
)


@BOTH
@ROWS
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_values_of_16_bits(implementation, dtype, heads, groups, d, values, n, table, options):
    lengths = [0, 1, n * table, min(513, n * table), 10**6]
    arrays = _cache(lengths, heads, groups, d, values, n, table, dtype, holes=[(2, 0), (3, table - 1), (4, table // 2)])
    slopes = np.random.default_rng(3).uniform(0, 0.1, heads).astype(np.float32)
    run = lambda *args: bj.batch_paged_decode(*args, **options, return_lse=True, implementation=implementation)
    y, lse = run(*arrays, sent.asarray(slopes).astype(dtype))
    slopes = np.asarray(sent.asarray(slopes).astype(dtype)).astype(float)
    want, want_lse = _wanted(arrays, slopes=slopes, **options, return_lse=True)
    # y is rounded once, and a little more than that.
    np.testing.assert_allclose(wide(y), want, rtol=1.01 * float(jnp.finfo(dtype).eps) / 2, atol=1e-5)
    np.testing.assert_allclose(lse, want_lse, rtol=1e-5, atol=1e-5)


@BOTH
@ROWS
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_values_of_8_bits(implementation, dtype, heads, groups, d, values, n, table, options):
    """Of queries of all sizes, which have more bits than keys."""
    lengths = [0, 1, n * table, min(513, n * table), 10**6]
    arrays = _cache(
        lengths, heads, groups, d, values, n, table, "float32", holes=[(2, 0), (3, table - 1), (4, table // 2)]
    )
    sizes = 2.0 ** np.array([0, 3, -20, 40, -90], np.float32)[:, None, None]
    scale = options.get("scale", d**-0.5)
    q, k, v, *others = arrays
    k, v = (np.asarray(x).astype(jnp.dtype(dtype)) for x in (k, v))
    for i, size in enumerate(sizes.ravel()):
        q_of_size = q[i : i + 1] * size
        parts = (q_of_size, sent.asarray(k), sent.asarray(v), *(x[i : i + 1] for x in others))
        rest = dict(options, scale=float(scale / size), return_lse=True)
        y, lse = bj.batch_paged_decode_fp8(*parts, **rest, implementation=implementation)
        want, want_lse = _wanted(parts, **rest)
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(lse, want_lse, rtol=1e-5, atol=1e-5)


@BOTH
@pytest.mark.parametrize("d, dtype", [(4, "float64"), (64, "bfloat16")])
def test_what_is_not_seen_may_be_anything(implementation, d, dtype):
    """After the end, before the window and in pages of nobody: infinities and NaN, in the gradient too."""
    arrays = _cache([5, 0, 8], 2, 1, d, d, 4, 2, dtype, holes=[(2, 0)])
    q, k, v, table, lengths = arrays
    garbage = np.ones(k.shape[:2], bool)
    for b in range(3):
        for j in range(int(lengths[b])):
            if 0 <= table[b, j // 4] < len(k) and j >= int(lengths[b]) - 3:
                garbage[table[b, j // 4], j % 4] = False
    spoilt = lambda x, value: sent.asarray(np.where(garbage[..., None, None], value, np.asarray(x)), x.dtype)

    def loss(q, k, v):
        y, lse = bj.batch_paged_decode(
            q, k, v, table, lengths, window=2, return_lse=True, implementation=implementation
        )
        return jnp.sum(jnp.sin(y)) + jnp.sum(jnp.where(lse == -jnp.inf, 0, lse))

    both = jax.jit(jax.value_and_grad(loss, (0, 1, 2)))
    want, got = both(q, k, v), both(q, spoilt(k, np.nan), spoilt(v, np.inf))
    jax.tree.map(np.testing.assert_array_equal, got, want)
    assert np.isfinite(got[0])


@BOTH
@pytest.mark.parametrize("d, dtype", [(2, "float64"), (64, "float16"), (64, "bfloat16")])
def test_nan_and_infinity_that_are_seen(implementation, d, dtype):
    q, k, v, table, lengths = _cache([4, 4, 4], 1, 1, d, d, 2, 2, dtype)
    k = np.array(k)
    k[table[0, 1], 0], k[table[1, 0], 1] = np.nan, np.inf * np.sign(np.asarray(q)[1, 0])
    y, lse = bj.batch_paged_decode(
        q, sent.asarray(k), v, table, lengths, return_lse=True, implementation=implementation
    )
    assert np.isnan(y[:2]).all() and np.isnan(lse[:2]).all() and np.isfinite(y[2]).all()


@BOTH
@pytest.mark.parametrize("d, dtype", [(2, "float64"), (64, "float16"), (64, "bfloat16")])
def test_an_infinite_value_is_in_its_column_alone(implementation, d, dtype):
    q, k, v, table, lengths = _cache([4, 4], 2, 1, d, d, 2, 2, dtype)
    v = np.array(v)
    v[table[0, 1], 0, 0, 1] = -np.inf
    y = np.asarray(bj.batch_paged_decode(q, k, sent.asarray(v), table, lengths, implementation=implementation))
    assert (y[0, :, 1] == -np.inf).all() and np.isfinite(np.delete(y, 1, -1)).all() and np.isfinite(y[1]).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "float8_e4m3fn"])
def test_a_sequence_has_the_same_bits_in_any_batch(dtype):
    q, k, v, table, lengths = _cache([700, 3, 1111, 0], 8, 2, 16, 16, 8, 140, "float32" if "8" in dtype else dtype)
    k, v = (sent.asarray(np.asarray(x).astype(jnp.dtype(dtype))) for x in (k, v))
    decode = bj.batch_paged_decode_fp8 if "8" in dtype else bj.batch_paged_decode
    run = jax.jit(lambda q, table, lengths: decode(q, k, v, table, lengths, return_lse=True, implementation="native"))
    whole = run(q, table, lengths)
    for i in range(4):
        alone = run(q[i : i + 1], table[i : i + 1], lengths[i : i + 1])
        jax.tree.map(lambda a, b, i=i: np.testing.assert_array_equal(a[0], b[i]), alone, whole)
    twice = run(
        jnp.concatenate([q, q[::-1]]), jnp.concatenate([table, table[::-1]]), jnp.concatenate([lengths, lengths[::-1]])
    )
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:4], b), twice, whole)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[4:], b[::-1]), twice, whole)


def test_the_order_of_pages_does_not_change_bits():
    q, k, v, table, lengths = _cache([33, 40], 4, 4, 8, 8, 8, 5, "float32")
    order = np.random.default_rng(0).permutation(len(k))
    moved = np.argsort(order)[np.asarray(table)].astype(np.int32)
    run = lambda k, v, table: bj.batch_paged_decode(q, k, v, table, lengths, implementation="native")
    np.testing.assert_array_equal(run(k[order], v[order], sent.asarray(moved)), run(k, v, table))


@BOTH
def test_a_page_of_several_sequences_has_the_sum_of_their_gradients(implementation):
    q, k, v, _, lengths = _cache([6, 5, 6], 2, 2, 4, 3, 2, 3)
    table, dy = sent.asarray(np.array([[0, 1, 2], [0, 1, 3], [0, 0, 4]], np.int32)), normal((3, 2, 3), seed=6)
    run = lambda k, v, rows: bj.batch_paged_decode(
        q[rows], k, v, table[rows], lengths[rows], implementation=implementation
    )
    whole = jax.vjp(lambda k, v: run(k, v, slice(None)), k, v)[1](dy)
    parts = [jax.vjp(lambda k, v, i=i: run(k, v, slice(i, i + 1)), k, v)[1](dy[i : i + 1]) for i in range(3)]
    for got, *each in zip(whole, *parts, strict=True):
        np.testing.assert_allclose(got, sum(each), rtol=1e-12, atol=1e-12)


def test_the_backward_function_is_the_gradient():
    arrays, dy, slopes = _cache([5, 2], 4, 2, 4, 3, 2, 3), normal((2, 4, 3), seed=6), normal((4,), seed=7)
    q, k, v, table, lengths = arrays
    fun = lambda q, k, v, slopes: bj.batch_paged_decode(q, k, v, table, lengths, slopes, softcap=2.0, return_lse=True)
    (_, lse), pull = jax.vjp(fun, q, k, v, slopes)
    got = bj.batch_paged_decode_backward(*arrays, lse, dy, slopes, softcap=2.0)
    for a, b in zip(got, pull((dy, jnp.zeros_like(lse))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_it_is_attention_of_the_last_query():
    """As sdpa, aligned at the bottom right, with its window, softcap and grouped heads."""
    q, k, v = normal((2, 3, 6, 8)), normal((2, 3, 9, 2, 8), seed=1), normal((2, 3, 9, 2, 5), seed=2)
    lengths, options = sent.asarray([[9, 1, 4], [0, 8, 5]]), dict(softcap=1.5, window=3)
    y, lse = bj.flash_decoding(q, k, v, lengths, **options, return_lse=True)
    options["window"] = (3, None)
    want = bj.sdpa(
        q[:, :, None], k, v, alignment=lengths - 1, key_value_seq_lengths=lengths, **options, return_lse=True
    )  # fmt: skip
    np.testing.assert_allclose(y, want[0][:, :, 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lse, want[1][:, :, 0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_pages_and_one_array_have_the_same_bits(dtype):
    """Where both have room for as many keys."""
    k, v, q = (
        normal((3, 24, 2, 8), dtype),
        normal((3, 24, 2, 8), dtype, seed=1),
        normal((3, 4, 8), dtype, seed=2),
    )
    lengths, table = sent.asarray([24, 7, 0]), sent.asarray(np.arange(9, dtype=np.int32).reshape(3, 3))
    pages = (x.reshape(9, 8, 2, 8) for x in (k, v))
    paged = bj.batch_paged_decode(q, *pages, table, lengths, implementation="native")
    np.testing.assert_array_equal(paged, bj.flash_decoding(q, k, v, lengths, implementation="native"))


@BOTH
def test_appended_rows_are_those_that_are_read(implementation):
    """Token by token, over pages that paged_kv_append writes."""
    q, k, v = normal((6, 2, 4, 8)), normal((6, 2, 2, 8), seed=1), normal((6, 2, 2, 8), seed=2)
    pages, table = sent.zeros((5, 2, 2, 8)), sent.asarray(np.array([[3, 0, 4], [1, 2, -1]], np.int32))

    @jax.jit
    def generate(pages):
        def step(caches, new):
            i, q, *rows = new
            at = jnp.full(2, i)
            caches = [bj.paged_kv_append(c, r[:, None], table, at) for c, r in zip(caches, rows, strict=True)]
            return caches, bj.batch_paged_decode(q, *caches, table, at + 1, implementation=implementation)

        return jax.lax.scan(step, [pages, pages], (sent.arange(6), q, k, v))[1]

    want = bj.sdpa(*(jnp.swapaxes(x, 0, 1) for x in (q, k, v)), is_causal=True)
    got = jnp.swapaxes(generate(pages), 0, 1)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10)
    np.testing.assert_allclose(got[1, :4], want[1, :4], rtol=1e-10)  # the second sequence has two pages


# ---------------------------------------------------------------------------------------------------------------------
# 8-bit floats


@BOTH
@pytest.mark.parametrize("d", [1, 16])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_float_of_8_bits(implementation, dtype, d):
    """As keys of one sequence each, with one value; NaN gives NaN, infinity as a score too."""
    stored = np.arange(256, dtype=np.uint8).view(jnp.dtype(dtype)).reshape(256, 1, 1, 1)
    q, table = sent.ones((256, 1, d), jnp.float32), sent.asarray(np.arange(256, dtype=np.int32)[:, None])
    pages = sent.asarray(np.repeat(stored, d, -1))
    y, lse = bj.batch_paged_decode_fp8(
        q, pages, pages, table, sent.ones(256, jnp.int32), scale=1 / d, return_lse=True, implementation=implementation
    )  # fmt: skip
    wide = stored.astype(np.float32).ravel()
    finite = np.isfinite(wide)
    for column in np.moveaxis(np.asarray(y)[:, 0], -1, 0):
        np.testing.assert_array_equal(column[finite], wide[finite])
        assert not np.isfinite(column[~finite & ~(wide == -np.inf)]).any()
    np.testing.assert_allclose(np.asarray(lse).ravel()[finite], wide[finite], rtol=3e-7)


def test_gradients_where_a_checkpoint_policy_saves_all():
    """Also of keys beyond 240 and subnormal ones, which JAX would not save as floats of 8 bits."""
    stored = np.array([448, -288, 2.0**-9, 240], np.float32).astype(jnp.float8_e4m3fn).reshape(1, 4, 1, 1)
    pages, table, lengths = sent.asarray(stored), sent.zeros((1, 1), jnp.int32), sent.asarray(np.int32([4]))
    loss = lambda q: bj.batch_paged_decode_fp8(q, pages, pages, table, lengths, scale=2.0**-9)[0, 0, 0]
    q, policy = sent.ones((1, 1, 1), jnp.float32), jax.checkpoint_policies.everything_saveable
    want = jax.grad(loss)(q)
    assert np.isfinite(want).all()
    np.testing.assert_allclose(jax.jit(jax.grad(jax.checkpoint(loss, policy=policy)))(q), want, rtol=1e-6)


@BOTH
@pytest.mark.parametrize("shape", [(), (2,)])
def test_scales_of_a_cache_that_saturates(implementation, shape):
    """Keys beyond 448 are the largest number; scales are exact powers of 2, so nothing else is rounded."""
    q, k, v, table, lengths = _cache([7, 3, 0], 4, 2, 8, 6, 4, 2, "float32")
    k_scale, v_scale = (np.float32(s) * (np.float32([1, 2]) if shape else np.float32(1)) for s in (2.0**-7, 0.5))
    quantize = lambda x, s: jnp.clip(x / np.reshape(s, (-1, 1)), -448, 448).astype(jnp.float8_e4m3fn)
    k8, v8 = quantize(9 * k, k_scale), quantize(v, v_scale)
    assert np.any(np.abs(np.asarray(k8, np.float32)) == 448)
    run = lambda q, *scales: bj.batch_paged_decode_fp8(
        q, k8, v8, table, lengths, *scales, scale=0.2, return_lse=True, implementation=implementation
    )
    scales = tuple(sent.asarray(np.asarray(s, np.float32)) for s in (k_scale, v_scale))
    got = run(q, *scales)
    want = oracle.batch_paged_decode_fp8(
        *map(np.asarray, (q, k8, v8, table, lengths)), *scales, scale=0.2, return_lse=True
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    gradients = jax.jit(jax.grad(lambda *args: jnp.sum(run(*args)[0] ** 2), (0, 1, 2)))(q, *scales)
    plain = lambda q, *scales: jnp.sum(
        bj.batch_paged_decode(
            q, *(x.astype(jnp.float32) * jnp.reshape(s, (-1, 1)) for x, s in zip((k8, v8), scales, strict=True)), table,
            lengths, scale=0.2, implementation="xla",
        )
        ** 2
    )  # fmt: skip
    for a, b in zip(gradients, jax.jit(jax.grad(plain, (0, 1, 2)))(q, *scales), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


@pytest.mark.parametrize(
    "error, match, changes",
    [
        (TypeError, "k_pages must have the dtype of query, float64, got float32", {"k_pages": sent.ones((3, 2, 1, 4), jnp.float32)}),
        (ValueError, r"v_pages alike with a d of its own, got shapes .* and \(3, 2, 2, 4\)", {"v_pages": sent.ones((3, 2, 2, 4))}),
        (ValueError, r"query must be \[batch, heads, d\] with the d of k_pages, 4", {"query": sent.ones((2, 2, 3))}),
        (ValueError, "a multiple of the 2 heads of k_pages, got 3 heads", {"query": sent.ones((2, 3, 4)), "k_pages": sent.ones((3, 2, 2, 4)), "v_pages": sent.ones((3, 2, 2, 4))}),
        (ValueError, r"page_table must be \[batch, pages of a sequence\] with the batch of query, 2", {"page_table": sent.zeros((3, 1), int)}),
        (TypeError, "lengths must have one of the dtypes .*, got float64", {"lengths": sent.zeros(2)}),
        (ValueError, r"lengths must have shape \(2,\), the batch of query", {"lengths": sent.zeros(3, int)}),
        (ValueError, r"slopes must have shape \(2,\), one for each head of query", {"slopes": sent.ones(3)}),
        (ValueError, "window must be at least 0, got -1", {"window": -1}),
        (ValueError, "softcap must be a static number above 0, got 0", {"softcap": 0}),
    ],
)  # fmt: skip
def test_what_is_refused(error, match, changes):
    pages = sent.ones((3, 2, 1, 4))
    arguments = dict(
        query=sent.ones((2, 2, 4)),
        k_pages=pages,
        v_pages=pages,
        page_table=sent.zeros((2, 1), int),
        lengths=sent.ones(2, int),
    )
    with pytest.raises(error, match=f"^batch_paged_decode: .*{match}"):
        bj.batch_paged_decode(**arguments | changes)
