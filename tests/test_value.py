"""Law: an op's value is the oracle's."""

import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from examples_of import close


@pytest.mark.parametrize("prefer", ["native", "xla"])
def test_value_is_the_oracles(example, prefer, platform):
    y = example.fun(example.x, prefer=prefer)
    want = oracle.value(example)
    if example.op.codes:
        # XLA's quotients on a GPU may be off by their last bit, which can move a tie.
        steps = 1 if prefer == "xla" and platform == "cuda" else 0
        np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=0.13 * steps, atol=steps)
        return
    assert y.dtype == example.args[0].dtype
    if not example.is_float:
        want = want.astype(example.dtype)
    close(y, want, example.dtype)


def test_types_are_the_references(op):
    """The types that the kernels promise are those of the definition."""
    import jax

    for case in op.cases:
        args = case.arguments(np.random.default_rng(0), op.dtypes[0])
        types = [
            jax.eval_shape(lambda *a, p=p: op.public(*a, **case.kwargs, prefer=p), *args) for p in ("native", "xla")
        ]
        traced = jax.jit(lambda *a: op.public(*a, **case.kwargs, prefer="xla"))(*args)
        assert types[0] == types[1]
        assert jax.tree.map(lambda x: (x.shape, x.dtype), traced) == jax.tree.map(
            lambda x: (x.shape, x.dtype), types[0]
        )


def test_half_types_accumulate_wide():
    """4096 ones and a small number: a narrow accumulator stops growing."""
    import baracuda_jax as bj

    for dtype, n in ((jnp.bfloat16, 4096), (jnp.float16, 8192)):
        y = bj.segment_sum(jnp.ones((n, 3), dtype), jnp.zeros(n, jnp.int32), 1, prefer="native")
        np.testing.assert_array_equal(np.asarray(y, np.float64), n)
        mean = bj.segment_mean(
            jnp.full((n, 3), 60000 if dtype == jnp.float16 else 3, dtype), jnp.zeros(n, jnp.int32), 1
        )
        np.testing.assert_allclose(np.asarray(mean, np.float64), 60000 if dtype == jnp.float16 else 3, rtol=1e-3)
