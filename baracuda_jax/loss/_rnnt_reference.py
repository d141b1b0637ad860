"""The transducer's loss in plain JAX: scans over the antidiagonals of the grid of frames and labels."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._core.wide import wide
from ._paths import antidiagonals, at, half_sums, log_sum, moved, numbers, per_sample, scaled, start


class _Sample(NamedTuple):
    """One without batch dimensions: the logarithms of the probabilities of each node's blank and label [T, U + 1], -inf
    where the sample has none, and its lengths."""

    blank: jax.Array
    label: jax.Array
    frames: jax.Array
    labels: jax.Array

    @property
    def rows(self):
        return jnp.where(self.frames == 0, 0, self.frames + self.labels + 1)

    @property
    def edges(self):
        """Of each antidiagonal, the last of which has none."""
        more = [(0, 1), (0, 0)]
        return tuple(jnp.pad(antidiagonals(a), more, constant_values=-jnp.inf) for a in (self.blank, self.label))


def _lengths(x, targets, frames, labels):
    frames, labels = jnp.clip(frames, 0, x.shape[0]), jnp.clip(labels, 0, targets.shape[0])
    is_node = (numbers(x.shape[0]) < frames)[:, None] & (numbers(x.shape[1]) <= labels)[None]
    return (
        frames,
        labels,
        is_node,
        jnp.where(is_node[..., None], wide(x), 0),
    )  # of other nodes nothing is in a derivative


def _sample(x, targets, frames, labels, *, blank, is_log):
    frames, labels, is_node, x = _lengths(x, targets, frames, labels)
    log = jnp.where(x == jnp.inf, jnp.nan, x) if is_log else jax.nn.log_softmax(x, -1)
    is_label = (targets >= 0) & (targets < x.shape[2]) & (targets != blank) & (numbers(targets.shape[0]) < labels)
    targets = jnp.pad(jnp.where(is_label, targets, -1), [(0, 1)], constant_values=-1)
    is_own = (numbers(x.shape[2])[None] == targets[:, None])[None]
    of_label = jnp.where(is_own, log, 0).sum(-1)
    return _Sample(
        jnp.where(is_node, log[..., blank], -jnp.inf),
        jnp.where(is_node & (targets >= 0)[None], of_label, -jnp.inf),
        frames,
        labels,
    )


def _before(sample):
    """[T + U + 1, U + 1]: the sums over the paths to each node."""

    def step(here, edges):
        blank, label = edges
        return log_sum(here + blank, moved(here + label, 1)), here

    first = start(sample.blank.shape[1], 0, sample.blank.dtype)
    return jax.lax.scan(step, first, sample.edges)[1]


def _after(sample):
    """The same over the paths from it."""
    width, dtype = sample.blank.shape[1], sample.blank.dtype
    end = start(width, sample.labels, dtype)

    def step(later, edges):
        blank, label, row = edges
        here = log_sum(later + blank, moved(later, -1) + label)
        here = jnp.where(row < sample.rows - 1, here, jnp.where(row < sample.rows, end, -jnp.inf))
        return here, here

    edges = sample.edges
    rows = numbers(edges[0].shape[0])
    return jax.lax.scan(step, jnp.full((width,), -jnp.inf, dtype), (*edges, rows), reverse=True)[1]


def _log_probability(x, *others, **params):
    sample = _sample(x, *others, **params)
    return at(_before(sample), sample.frames + sample.labels, sample.labels)


def _saved(x, *others, **params):
    """As the kernels keep it: of each node the logarithms of its blank's and label's probabilities and what its logits are
    normalized by [T, 4, U + 1], the sums [T + U + 1, 2, U + 1], and the probability [2]."""
    sample = _sample(x, *others, **params)
    _, _, _, x = _lengths(x, *others)
    most = jnp.zeros(x.shape[:-1], x.dtype) if params["is_log"] else x.max(-1)
    base = most if params["is_log"] else jnp.log(jnp.exp(x - most[..., None]).sum(-1))
    sums = half_sums(_before(sample), _after(sample), sample.rows, sample.labels + 1)
    total = at(_before(sample), sample.frames + sample.labels, sample.labels)
    return jnp.stack([sample.blank, sample.label, most, base], 1), sums, jnp.stack(scaled(total))


def losses(x, *others, **params):
    """The loss of each sample."""
    return -per_sample(_log_probability, 3, **params)(x, *others)


def forward(x, *others, is_log, **params):
    params |= {"is_log": is_log}
    loss = losses(x, *others, **params)
    loss = loss if is_log else jnp.where(loss <= 0, 0, loss)  # of rounding
    return loss, *per_sample(_saved, 3, **params)(x, *others)


def tangent(x, targets, input_lengths, target_lengths, logs, sums, total, t, **params):
    of = lambda x: losses(x, targets, input_lengths, target_lengths, **params)
    return (jax.jvp(of, (x,), (t,))[1],)


def backward(x, targets, input_lengths, target_lengths, logs, sums, total, dy, **params):
    of = lambda x: losses(x, targets, input_lengths, target_lengths, **params)
    return jax.vjp(of, x)[1](dy)
