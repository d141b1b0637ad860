"""Uses of the package as a type checker sees them: pyright reads this file, in its strict mode; nothing runs it."""

from typing import assert_type

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import baracuda_jax as bj
import baracuda_jax.backward as backward
import baracuda_jax.lax as lax
import baracuda_jax.nn as nn
import baracuda_jax.numpy as bnp
import baracuda_jax.ops as ops


def uses(x: Array, ids: Array) -> None:
    # Arrays of JAX and NumPy, and numbers
    assert_type(bj.exp(x), Array)
    assert_type(bj.exp(np.ones(3)), Array)
    assert_type(bj.add(x, 2.0), Array)
    assert_type(bj.gelu(x, approximate=True), Array)
    assert_type(bj.segment_sum(x, ids, 3), Array)
    assert_type(bj.lerp(x, 2 * x, 0.5), Array)
    assert_type(bj.layer_norm(x, axis=(0, 1)), Array)
    assert_type(bj.lp_pool1d(x[None], 2, window=2), Array | tuple[Array, ...])  # with return_residuals, several
    assert_type(bj.max_pool1d(x[None], 2, padding=((0, 1),)), Array | tuple[Array, ...])  # with return_indices, two
    assert_type(bj.adaptive_avg_pool1d(x[None], 2), Array)

    # Several results
    assert_type(bj.topk(x, 2), tuple[Array, Array])
    assert_type(bj.exp_backward(x, x), Array)
    assert_type(backward.segment_sum_backward(ids, x), Array)

    # Who computes, and plans
    assert_type(bj.cumsum(x, 0, implementation="native"), Array)
    assert_type(bj.cumsum(x, 0, implementation=bj.PlanPreference(backend="xla")), Array)
    assert_type(bj.plan("exp", x), bj.Plan)
    assert_type(bj.plan(bj.exp, jax.ShapeDtypeStruct((3,), jnp.float32)).sku, bj.KernelSku)
    bj.cumsum(x, 0, implementation="cuda")  # pyright: ignore[reportArgumentType]
    bj.exp("1")  # pyright: ignore[reportArgumentType]
    bj.exp(x, dim=0)  # pyright: ignore[reportCallIssue]

    # Mirrors have the types of JAX's functions
    assert_type(bnp.cumsum(x), Array)
    assert_type(bnp.sort(x, axis=0, descending=True), Array)
    assert_type(lax.cumsum(x, 1), Array)
    assert_type(nn.silu(x), Array)
    assert_type(ops.segment_sum(x, ids, num_segments=3), Array)
