"""Law: an op's value is the oracle's."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import sent
from examples_of import close

from baracuda_jax._core.wide import wide_dtype


def test_value_is_the_oracles(example, platform):
    want = oracles.value(example)
    values = jax.jit(
        lambda x: {
            implementation: example.fun(x, implementation=implementation) for implementation in ("native", "xla")
        }
    )(example.x)
    for implementation, y in values.items():
        if example.op.family == "histogram" or example.op.name == "nonzero":
            np.testing.assert_array_equal(np.asarray(y, np.float64), want)  # positions and counts
            continue
        if example.op.quantized:
            # XLA's quotients on a GPU may be off by their last bit, which can move a tie.
            steps = 1 if implementation == "xla" and platform == "cuda" else 0
            np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=0.13 * steps, atol=steps)
            continue
        if example.op.results[0] == "tokens" or example.op.results[0] == "indices":
            assert y.dtype == jnp.int32
            np.testing.assert_array_equal(y, want)
            continue
        if want.dtype == np.bool_ or example.op.name == "count_nonzero":
            assert y.dtype == want.dtype
            np.testing.assert_array_equal(y, want)
            continue
        if example.op.family == "reduce" and not jnp.issubdtype(example.dtype, jnp.inexact):
            assert y.dtype == want.dtype  # NumPy's, of 64 bits where they are not the operand's
            np.testing.assert_array_equal(y, want)
            continue
        if example.op.name == "eig":  # LAPACK's order depends on the precision
            close(np.sort_complex(y), np.sort_complex(want), example.dtype, scale=4)
            continue
        if example.op.family == "fft" and y.dtype != example.dtype:  # complex of real, real of complex, or widened
            close(y, want, example.dtype)
            continue
        if example.op.is_facade and want.dtype.kind in "iu":
            np.testing.assert_array_equal(y, want)  # whose dtype may be wider
            continue
        if example.op.family == "packed" and want.dtype.kind == "f" and not example.is_float:
            assert y.dtype == jnp.float32
            close(y, want, "float32")  # of bytes
            continue
        if example.op.name in ("cross_entropy_terms", "moe_gating_topk"):
            is_alone = example.op.name == "moe_gating_topk" or not example.case.kwargs.get("return_lse")
            assert y.dtype == (wide_dtype(jnp.dtype(example.dtype)) if is_alone else example.dtype)
            close(y, want, example.dtype)
            continue
        assert y.dtype == example.dtype
        close(y, want if example.is_float else want.astype(example.dtype), example.dtype)


def test_types_are_the_references(op):
    """The types that the kernels promise are those of the definition, which is lowered only if it has them."""
    if not op.has_kernels:
        return
    for case in op.cases:
        args = case.arguments(np.random.default_rng(0), op.dtypes[0])
        of = lambda implementation, case=case: jax.jit(
            lambda *a: op.public(*a, **case.kwargs, implementation=implementation)
        ).lower(*args)
        types = [
            jax.tree.map(lambda x: (x.shape, x.dtype), of(implementation).out_info)
            for implementation in ("native", "xla")
        ]
        assert types[0] == types[1]


def test_half_types_accumulate_wide():
    """4096 ones and a small number: a narrow accumulator stops growing."""
    import baracuda_jax as bj

    for dtype, n in ((jnp.bfloat16, 4096), (jnp.float16, 8192)):
        y = bj.segment_sum(sent.ones((n, 3), dtype), sent.zeros(n, jnp.int32), 1, implementation="native")
        np.testing.assert_array_equal(np.asarray(y, np.float64), n)
        mean = bj.segment_mean(
            sent.full((n, 3), 60000 if dtype == jnp.float16 else 3, dtype), sent.zeros(n, jnp.int32), 1
        )
        np.testing.assert_allclose(np.asarray(mean, np.float64), 60000 if dtype == jnp.float16 else 3, rtol=1e-3)
