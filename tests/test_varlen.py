"""The kernels of packed attention: sequences of several tiles, every mask, and half precisions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from programs import normal

import baracuda_jax as bj

QUERIES, KEYS = (3, 70, 70, 199), (2, 140, 141, 260)
OPTIONS = {
    "all keys": {},
    "causal": dict(is_causal=True),
    "causal from the first": dict(is_causal=True, alignment="top_left"),
    "a window and slopes": dict(window=(80, 5), slopes=True),
    "softcap": dict(is_causal=True, softcap=2.0, slopes=True),
    "a negative scale": dict(scale=-0.2),
}
# (dtype, d, columns of values): on tensor cores in half precisions where both are multiples of 8.
SIZES = [("float64", 5, 3), ("float32", 64, 80), ("bfloat16", 64, 64), ("float16", 72, 128), ("bfloat16", 6, 8)]


def _starts(*starts):
    return sent.asarray(np.array(starts, np.int32))


def _program(implementation, *, slopes=False, positions=None, **options):
    """y, lse and the gradients of q, k, v and slopes for cotangents of both."""

    def run(q, k, v, rates, dy, dlse, starts, starts_k):
        def fun(q, k, v, rates):
            arrays = (q, k, v, starts, starts_k, None, None, rates if slopes else None, positions)
            return bj.flash_sdpa_varlen(*arrays, return_lse=True, implementation=implementation, **options)

        (y, lse), pull = jax.vjp(fun, q, k, v, rates)
        return y, lse, *pull((dy, jnp.where(lse == -jnp.inf, 0, dlse)))

    return jax.jit(run)


def _arrays(dtype, d, values, rows=200, keys=261, heads=4, groups=2):
    exact = "float64" if dtype == "float64" else "float32"
    return (
        normal((rows, heads, d), dtype), normal((keys, groups, d), dtype, seed=1), normal((keys, groups, values), dtype, seed=2),
        0.1 * normal((heads,), exact, seed=3), normal((rows, heads, values), dtype, seed=4),
        normal((rows, heads), exact, seed=5),
    )  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype, d, values", SIZES)
def test_kernels_are_plain_attention(options, dtype, d, values):
    """Which is computed in float64."""
    _kernels_are_plain_attention(dtype, d, values, **OPTIONS[options])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype, d, values", SIZES)
def test_kernels_of_listed_keys(options, dtype, d, values):
    """Blocks of keys in another order, some twice, with keys that nobody sees, and those that are before all queries."""
    rng = np.random.default_rng(8)
    at = np.concatenate([np.arange(end - begin) for begin, end in zip((0, *KEYS), (*KEYS, 261), strict=True)])
    positions = (at // 16 * 5 % 8 * 16 + at % 16 - 40).astype(np.int32)
    positions[rng.random(261) < 0.2] = -(2**31)
    _kernels_are_plain_attention(dtype, d, values, positions=sent.asarray(positions), **OPTIONS[options])


def test_positions_in_order_are_those_of_keys():
    arrays, starts = _arrays("float64", 5, 3), (_starts(*QUERIES), _starts(*KEYS))
    at = np.arange(261) - np.repeat((0, *KEYS), np.diff((0, *KEYS, 261)))
    listed = _program("native", is_causal=True, slopes=True, positions=sent.asarray(at))(*arrays, *starts)
    for a, b in zip(listed, _program("native", is_causal=True, slopes=True)(*arrays, *starts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _kernels_are_plain_attention(dtype, d, values, **options):
    arrays = _arrays(dtype, d, values)
    starts = _starts(*QUERIES), _starts(*KEYS)
    got = _program("native", **options)(*arrays, *starts)
    want = _program("xla", **options)(*(x.astype(jnp.float64) for x in arrays), *starts)
    eps = float(jnp.finfo(dtype).eps)
    for name, a, b in zip(("y", "lse", "dq", "dk", "dv", "dslopes"), got, want, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b)
        assert (np.isneginf(a) == np.isneginf(b)).all()
        scale = np.abs(b, where=np.isfinite(b), out=np.zeros_like(b)).max(initial=1e-30)
        of = 1e-5 if name == "lse" and eps > 1e-6 else 4 * eps if eps > 1e-6 else 100 * eps
        # What rounding y and the weights of 16 bits does to a row is in all distances of the row.
        of = 2 * of if name == "dslopes" and eps > 1e-6 else of
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=of, err_msg=name)


@pytest.mark.parametrize("dtype, d, values", SIZES[1:3])
def test_a_sequence_has_the_same_bits_alone(dtype, d, values):
    arrays, options = _arrays(dtype, d, values), dict(is_causal=True)
    every = _program("native", **options)(*arrays, _starts(*QUERIES), _starts(*KEYS))
    rows, keys = slice(QUERIES[2], QUERIES[3]), slice(KEYS[2], KEYS[3])
    q, k, v, rates, dy, dlse = arrays
    alone = _program("native", **options)(
        q[rows], k[keys], v[keys], rates, dy[rows], dlse[rows],
        _starts(0, QUERIES[3] - QUERIES[2]), _starts(0, KEYS[3] - KEYS[2]),
    )  # fmt: skip
    for i, at in enumerate((rows, rows, rows, keys, keys)):
        np.testing.assert_array_equal(np.asarray(every[i][at]), np.asarray(alone[i]))


@pytest.mark.parametrize("dtype, d, values", SIZES[1:4])
@pytest.mark.parametrize("step", [0.02, -0.02, 0.5])
def test_scores_that_grow_from_key_to_key(step, dtype, d, values):
    """Also by less than what makes sums relative to another score, and by more."""
    _, _, v, rates, dy, dlse = _arrays(dtype, d, values)
    k = np.broadcast_to(np.arange(261)[:, None, None] * step / d, (261, 2, d))
    q, k = sent.asarray(np.ones((200, 4, d))).astype(dtype), sent.asarray(k).astype(dtype)
    starts, program = (
        (_starts(0, 200), _starts(0, 261)),
        {name: _program(name, scale=1.0) for name in ("native", "xla")},
    )
    got = program["native"](q, k, v, rates, dy, dlse, *starts)
    exact = (x.astype(jnp.float64) for x in (q, k, v, rates, dy, dlse))
    want = program["xla"](*exact, *starts)
    eps = float(jnp.finfo(dtype).eps)
    for name, a, b in zip(("y", "lse", "dq", "dk", "dv"), got[:5], want[:5], strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b)
        atol = (1e-5 if eps < 1e-6 or name == "lse" else 8 * eps) * max(1, np.abs(b).max())
        np.testing.assert_allclose(a, b, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("dtype, d, values", SIZES[1:4])
def test_nan_of_a_query_stays_in_its_row(dtype, d, values):
    arrays = _arrays(dtype, d, values)
    program, starts = _program("native", is_causal=True), (_starts(*QUERIES), _starts(*KEYS))
    want = program(*arrays, *starts)
    row = QUERIES[2] + 40
    got = program(arrays[0].at[row].set(jnp.nan), *arrays[1:], *starts)
    for a, b in zip(got[:3], want[:3], strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert np.isnan(a[row]).all()
        np.testing.assert_array_equal(np.delete(a, row, 0), np.delete(b, row, 0))


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("options", ["all keys", "causal from the first", "a window and slopes"])
@pytest.mark.parametrize("dtype, d, values", SIZES)
def test_nan_of_other_sequences_stays_there(dtype, d, values, options, implementation):
    """That of the rows around a sequence, whose keys and queries share tiles with them, in all operands."""
    arrays = _arrays(dtype, d, values)
    program, starts = _program(implementation, **OPTIONS[options]), (_starts(*QUERIES), _starts(*KEYS))
    own = (slice(QUERIES[2], QUERIES[3]), slice(KEYS[2], KEYS[3]))

    def spoilt(x, of_own):
        y = np.full(x.shape, np.nan).astype(x.dtype)
        y[of_own] = np.asarray(x)[of_own]
        return sent.asarray(y)

    q, k, v, rates, dy, dlse = arrays
    got = program(
        *(spoilt(x, own[i]) for x, i in ((q, 0), (k, 1), (v, 1))),
        rates,
        spoilt(dy, own[0]),
        spoilt(dlse, own[0]),
        *starts,
    )
    want = program(*arrays, *starts)
    for a, b, i in zip(got, want, (0, 0, 0, 1, 1), strict=False):
        a, b = np.asarray(a)[own[i]], np.asarray(b)[own[i]]
        assert np.isfinite(b).any()
        np.testing.assert_array_equal(a, b)


def test_the_backward_function_is_the_gradient():
    q, k, v, rates, dy, _ = _arrays("float64", 5, 3)
    starts, options = (_starts(*QUERIES), _starts(*KEYS)), dict(is_causal=True, softcap=2.0)
    fun = lambda q, k, v, rates: bj.flash_sdpa_varlen(q, k, v, *starts, None, None, rates, return_lse=True, **options)
    (y, lse), pull = jax.vjp(fun, q, k, v, rates)
    got = bj.flash_sdpa_varlen_backward(q, k, v, *starts, y, lse, dy, None, None, rates, **options)
    for a, b in zip(got, pull((dy, sent.zeros(lse.shape, lse.dtype))), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_starts_that_do_not_ascend_read_nothing_outside():
    q, k, v, *_ = _arrays("float32", 8, 8)
    for starts in ((5, 3, 150, 90), (-7, 300, 2, 1000)):
        y = bj.flash_sdpa_varlen(q, k, v, _starts(*starts), _starts(*starts), implementation="native")
        assert np.isfinite(np.asarray(y)).all()
