"""cuDNN's attention on a GPU: results, lse, and gradients are those of float64, and cuDNN is what ran."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from programs import normal

import baracuda_jax as bj

FAMILY = "attention"
CALL = "__cudnn$fmhaSoftmax"
OPTIONS = {
    "plain": {},
    "causal": dict(is_causal=True),
    "scale": dict(scale=0.3),
    "window": dict(is_causal=True, window=(16, None)),
    "lengths": dict(query_seq_lengths=[64, 0, 5], key_value_seq_lengths=[64, 9, 0]),
    "lengths, causal": dict(is_causal=True, query_seq_lengths=[64, 33, 5], key_value_seq_lengths=[64, 33, 7]),
}


@pytest.fixture(autouse=True)
def _on_a_gpu(platform):
    if platform != "cuda":
        pytest.skip("cuDNN runs on GPUs")


def _arrays(dtype, groups, keys=64, d=64, seed=0):
    shapes = (3, 64, 4, d), (3, keys, groups, d), (3, keys, groups, d)
    return [normal(shape, dtype=dtype, seed=seed + i) for i, shape in enumerate(shapes)]


def _close(got, want, dtype):
    step = float(jnp.finfo(dtype).eps)
    want = np.asarray(want, np.float64)
    np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=4 * step, atol=4 * step * np.abs(want).max())


@pytest.mark.parametrize("name", ["sdpa", "flash_sdpa"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_and_gradients(name, dtype, groups, options):
    options = {key: sent.asarray(x) if isinstance(x, list) else x for key, x in options.items()}
    call = lambda *qkv: getattr(bj, name)(*qkv, **options)
    arrays, dy = _arrays(dtype, groups), normal((3, 64, 4, 64), dtype=dtype, seed=9)

    def both(call, dy, *qkv):
        y, vjp = jax.vjp(call, *qkv)
        return y, *vjp(dy)

    program = jax.jit(lambda *args: both(call, *args)).lower(dy, *arrays).compile()
    assert CALL in program.as_text()
    wide = jax.jit(lambda *args: both(call, *args))(*(x.astype(jnp.float64) for x in (dy, *arrays)))
    for got, want in zip(program(dy, *arrays), wide, strict=True):
        assert got.dtype == dtype
        _close(got, want, dtype)
    again = jax.jit(call)
    np.testing.assert_array_equal(again(*arrays), again(*arrays))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_lse(options):
    options = {key: sent.asarray(x) if isinstance(x, list) else x for key, x in options.items()}
    call = jax.jit(lambda *qkv: bj.flash_sdpa(*qkv, **options, return_lse=True))
    arrays = _arrays("bfloat16", 2)
    y, lse = call(*arrays)
    _, want = call(*(x.astype(jnp.float64) for x in arrays))
    assert CALL in call.lower(*arrays).compile().as_text()
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(want))
    seen = np.isfinite(want)
    np.testing.assert_allclose(np.asarray(lse)[seen], np.asarray(want)[seen], rtol=2e-3, atol=2e-3)
    assert not np.asarray(y)[~seen].any()


def test_lengths_and_heads_that_differ():
    q, k, v = _arrays("bfloat16", 2, keys=96, d=128)
    call = jax.jit(lambda *qkv: bj.flash_sdpa(*qkv, is_causal=True))
    _close(call(q, k, v), call(*(x.astype(jnp.float64) for x in (q, k, v))), "bfloat16")


def test_vmap_and_second_derivatives():
    q, k, v = _arrays("bfloat16", 2)
    call = lambda *qkv: bj.flash_sdpa(*qkv, is_causal=True)
    alone = jnp.stack([call(q[i], k[i], v[i]) for i in range(3)])
    _close(jax.vmap(call)(q, k, v), alone.astype(jnp.float64), "bfloat16")
    loss = lambda q: jnp.sum(jax.grad(lambda q: call(q, k, v).astype(jnp.float32).sum())(q).astype(jnp.float32) ** 2)
    assert np.isfinite(np.asarray(jax.grad(loss)(q), np.float32)).all()
