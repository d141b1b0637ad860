"""Sums over paths in plain JAX: logarithms, which have derivatives of any order, of what kernels have as m 2^e."""

import functools
import math

import jax
import jax.numpy as jnp


def numbers(count):
    """Of the type that lengths have."""
    return jnp.arange(count, dtype=jnp.int32)


def log_sum(*terms):
    """The logarithm of the sum of exponentials. Where all are -inf its derivatives are 0."""
    most = functools.reduce(jnp.maximum, map(jax.lax.stop_gradient, terms))
    most = jnp.where(jnp.isfinite(most), most, 0)
    total = sum(jnp.exp(term - most) for term in terms)
    return jnp.where(total == 0, -jnp.inf, jnp.log(jnp.where(total == 0, 1, total)) + most)


def moved(a, k):
    """Element i + k at i, -inf where there is none."""
    some = jnp.full((min(abs(k), a.size),), -jnp.inf, a.dtype)
    return jnp.concatenate([some, a[:-k]] if k > 0 else [a[-k:], some]) if abs(k) <= a.size else some


def scaled(logs):
    """m and e of m 2^e, m being 0, or at least 1 and below 2."""
    is_zero = logs == -jnp.inf
    logs = jnp.where(is_zero, 0, logs)
    e = jnp.floor(logs / math.log(2))
    m = jnp.where(is_zero, 0, jnp.exp(logs - e * math.log(2)))
    return m, jnp.where(is_zero, -jnp.inf, e)


def start(width, first, dtype):
    """The logarithms of 1 at one state, and of 0 at the others."""
    return jnp.where(numbers(width) == first, jnp.zeros((), dtype), -jnp.inf)


def antidiagonals(a):
    """Element [t, n] at [t + n, n] of [T + N - 1, N], -inf where there is none."""
    height, width = a.shape
    rows = height + width - 1
    shifted = jnp.pad(a.T, [(0, 0), (0, width)], constant_values=-jnp.inf)
    return shifted.reshape(-1)[: width * rows].reshape(width, rows).T


def at(logs, row, state):
    """logs[row, state], -inf where there is none, without a gather."""
    height, width = logs.shape
    here = (numbers(height) == row)[:, None] & (numbers(width) == state)[None]
    some = jnp.where(here, logs, 0).sum()
    return jnp.where(here.any(), some, -jnp.inf)


def half_sums(before, after, rows, states):
    """As the kernels keep them, [rows, 2, states]: of the first half of a sample's rows the sums of the paths before each
    state, of the others those after it."""
    row, state = numbers(before.shape[0])[:, None], numbers(before.shape[1])[None]
    logs = jnp.where(row < rows // 2, before, after)
    logs = jnp.where((row < rows) & (state < states), logs, -jnp.inf)
    return jnp.stack(scaled(logs), 1)


def per_sample(fun, rank=2, **params):
    """fun of arrays with any number of batch dimensions; `rank` is that of a sample's first."""
    fun = functools.partial(fun, **params)

    def run(x, *others):
        batched = fun
        for _ in range(x.ndim - rank):
            batched = jax.vmap(batched)
        return batched(x, *others)

    return run
