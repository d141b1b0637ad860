"""Soft dynamic time warping in plain JAX: scans over the antidiagonals of the matrix of costs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._core.wide import wide
from ._paths import antidiagonals, at, half_sums, log_sum, moved, numbers, per_sample, scaled, start


class _Sample(NamedTuple):
    """One without batch dimensions: the logarithms of its weights on antidiagonals [N + M - 1, M], -inf where it has no
    element, and how many rows and columns the matrix has."""

    log: jax.Array
    rows: jax.Array
    columns: jax.Array

    @property
    def antidiagonals(self):
        return jnp.where((self.rows == 0) | (self.columns == 0), 0, self.rows + self.columns - 1)


def _sample(cost, rows, columns, *, gamma):
    rows, columns = jnp.clip(rows, 0, cost.shape[0]), jnp.clip(columns, 0, cost.shape[1])
    is_element = (numbers(cost.shape[0]) < rows)[:, None] & (numbers(cost.shape[1]) < columns)[None]
    log = -jnp.where(is_element, wide(cost), 0) / gamma  # of other elements nothing is in a derivative
    log = jnp.where(is_element, jnp.where(log == jnp.inf, jnp.nan, log), -jnp.inf)
    return _Sample(
        antidiagonals(log) if 0 not in cost.shape else jnp.zeros((0, cost.shape[1]), log.dtype), rows, columns
    )


def _before(sample):
    """[N + M - 1, M]: the sums over the paths that lead to each element."""

    def step(carry, log):
        here, earlier = carry
        now = here + log
        return (log_sum(now, moved(now, 1), moved(earlier, 1)), now), here

    width, dtype = sample.log.shape[1], sample.log.dtype
    nothing = jnp.full((width,), -jnp.inf, dtype)
    return jax.lax.scan(step, (start(width, 0, dtype), nothing), sample.log)[1]


def _after(sample):
    """The same over the paths that lead on from it."""
    width, dtype = sample.log.shape[1], sample.log.dtype
    end = start(width, sample.columns - 1, dtype)

    def step(carry, at):
        later, last = carry
        log, row = at
        here = log_sum(later, moved(later, -1), moved(last, -1))
        here = jnp.where(row < sample.antidiagonals - 1, here, jnp.where(row < sample.antidiagonals, end, -jnp.inf))
        return (here + log, later), here

    nothing = jnp.full((width,), -jnp.inf, dtype)
    rows = numbers(sample.log.shape[0])
    return jax.lax.scan(step, (nothing, nothing), (sample.log, rows), reverse=True)[1]


def _log_total(sample):
    total = at(_before(sample) + sample.log, sample.antidiagonals - 1, sample.columns - 1)
    return jnp.where(total == -jnp.inf, -jnp.inf, total)  # and then its derivatives are 0


def _minimum(cost, *lengths, gamma):
    sample = _sample(cost, *lengths, gamma=gamma)
    is_nothing = (sample.rows == 0) & (sample.columns == 0)
    return jnp.where(is_nothing, 0, -gamma * _log_total(sample))


def _saved(cost, *lengths, gamma):
    """As the kernels keep it: the sums [N + M - 1, 2, M], and that over all paths [2]."""
    sample = _sample(cost, *lengths, gamma=gamma)
    sums = half_sums(_before(sample), _after(sample), sample.antidiagonals, sample.columns)
    return sums, jnp.stack(scaled(_log_total(sample)))


def minima(cost, *lengths, gamma):
    """The soft minimum of each sample."""
    return per_sample(_minimum, gamma=gamma)(cost, *lengths)


def forward(cost, *lengths, gamma):
    return minima(cost, *lengths, gamma=gamma), *per_sample(_saved, gamma=gamma)(cost, *lengths)


def tangent(cost, row_lengths, column_lengths, sums, total, t, *, gamma):
    of = lambda cost: minima(cost, row_lengths, column_lengths, gamma=gamma)
    return (jax.jvp(of, (cost,), (t,))[1],)


def backward(cost, row_lengths, column_lengths, sums, total, dy, *, gamma):
    of = lambda cost: minima(cost, row_lengths, column_lengths, gamma=gamma)
    return jax.vjp(of, cost)[1](dy)
