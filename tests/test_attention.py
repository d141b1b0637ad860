"""Caches: where rows go, in a loop and outside, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import normal

import baracuda_jax as bj


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_a_cache_that_is_filled_step_by_step(implementation):
    """Rows that have no position are left out, and everything else stays."""
    new, start = normal((5, 3, 2, 1, 4)), jnp.array([0, 2, 3])

    @jax.jit
    def fill(cache):
        step = lambda cache, i: (bj.kv_cache_append(cache, new[i], start + i, implementation=implementation), None)
        return jax.lax.scan(step, cache, jnp.arange(5))[0]

    got, want = fill(jnp.zeros((3, 2, 6, 4))), np.zeros((3, 2, 6, 4))
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
        y = bj.kv_cache_append(cache, new, jnp.full(2, position, dtype), implementation=implementation)
        np.testing.assert_array_equal(y, cache)


def test_the_backward_function_is_the_gradient():
    cache, new, dy, position = (
        normal((2, 5, 3)),
        normal((2, 3, 3), seed=1),
        normal((2, 5, 3), seed=2),
        jnp.array([-1, 4]),
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
            {"new": jnp.ones((2, 1, 3), jnp.float32)},
        ),
        (
            ValueError,
            r"cache must be \[..., length, d\] .* n <= length, got .* and \(2, 5, 3\)",
            {"new": normal((2, 5, 3))},
        ),
        (
            ValueError,
            r"position must have the first dimensions of cache, \(2,\), got \(3,\)",
            {"position": jnp.zeros(3, int)},
        ),
        (TypeError, "position must have one of the dtypes .*, got float64", {"position": jnp.zeros(2)}),
    ],
)
def test_what_is_refused(error, match, changes):
    arguments = {"cache": normal((2, 4, 3)), "new": normal((2, 1, 3)), "position": jnp.zeros(2, int)} | changes
    with pytest.raises(error, match=f"^kv_cache_append: {match}"):
        bj.kv_cache_append(**arguments)
