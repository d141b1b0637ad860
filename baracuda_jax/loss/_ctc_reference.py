"""Connectionist temporal classification in plain JAX: scans over the frames, of logarithms, which have derivatives of any
order.

The states of a sample are a blank, a label, a blank, ..., a blank. States that it does not have are never reached."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._core.wide import wide
from ._paths import log_sum, moved, numbers, per_sample, scaled


class _Sample(NamedTuple):
    """One without batch dimensions: the logarithms of the states' probabilities in each frame [T, 2 S + 1], whether an
    alignment may come to a state from the last but one, and masks of the frames and states that there are."""

    log: jax.Array
    skips: jax.Array
    frames: jax.Array
    labels: jax.Array

    @property
    def state(self):
        return numbers(self.log.shape[1])

    @property
    def frame(self):
        return numbers(self.log.shape[0])

    @property
    def ends(self):
        """The last label and the last blank."""
        return (self.state == 2 * self.labels) | (self.state == 2 * self.labels - 1)


@jax.custom_jvp
def _taken(index, log):
    """log[:, index], -inf where an index is negative."""
    return jnp.where(index < 0, -jnp.inf, jnp.take(log, jnp.maximum(index, 0), axis=1, mode="clip"))


@_taken.defjvp
def _taken_tangent(primals, tangents):
    """As a product of matrices: the transpose of a gather would be a scatter, which has no order."""
    index, log = primals
    chosen = jax.nn.one_hot(index, log.shape[1], dtype=log.dtype, axis=0)
    return _taken(index, log), jnp.matmul(tangents[1], chosen, precision="highest")


def _sample(x, targets, frames, labels, *, blank, is_log):
    frames, labels = jnp.clip(frames, 0, x.shape[0]), jnp.clip(labels, 0, targets.shape[0])
    is_frame = numbers(x.shape[0]) < frames
    x = jnp.where(is_frame[:, None], wide(x), 0)  # what other frames have is in no derivative
    log = jnp.where(x == jnp.inf, jnp.nan, x) if is_log else jax.nn.log_softmax(x, -1)
    is_class = (targets >= 0) & (targets < x.shape[1]) & (targets != blank)
    targets = jnp.where(is_class & (numbers(targets.shape[0]) < labels), targets, -1)
    each = _taken(jnp.concatenate([jnp.full((1,), blank, targets.dtype), targets]), log)
    blanks = jnp.broadcast_to(each[:, :1], each.shape)
    log = jnp.stack([blanks, jnp.roll(each, -1, 1)], 2).reshape(x.shape[0], 2 * each.shape[1])[:, :-1]
    differs = jnp.concatenate([jnp.zeros((min(1, targets.size),), bool), targets[1:] != targets[:-1]])
    skips = jnp.stack([jnp.zeros(differs.shape, bool), differs], 1).reshape(-1)
    return _Sample(log, jnp.concatenate([skips, jnp.zeros((1,), bool)]), frames, labels)


def _before(sample):
    """[T, states]: the sums over the alignments of the frames before each that lead to a state in it."""

    def step(here, log):
        now = here + log
        return log_sum(now, moved(now, 1), jnp.where(sample.skips, moved(now, 2), -jnp.inf)), here

    starts = sample.state < jnp.minimum(2, 2 * sample.labels + 1)
    start = jnp.where(starts, jnp.zeros((), sample.log.dtype), -jnp.inf)
    return jax.lax.scan(step, start, sample.log)[1]


def _after(sample):
    """The same over the frames after each, from a state in it to an end."""
    end = jnp.where(sample.ends, jnp.zeros((), sample.log.dtype), -jnp.inf)

    def step(later, at):
        log, t = at
        skipped = jnp.where(sample.skips, later, -jnp.inf)
        here = log_sum(later, moved(later, -1), moved(skipped, -2))
        here = jnp.where(t < sample.frames - 1, here, jnp.where(t < sample.frames, end, -jnp.inf))
        return here + log, here

    start = jnp.full(sample.state.shape, -jnp.inf, sample.log.dtype)
    return jax.lax.scan(step, start, (sample.log, sample.frame), reverse=True)[1]


def _loss(x, *others, **params):
    sample = _sample(x, *others, **params)
    is_end = (sample.frame == sample.frames - 1)[:, None] & sample.ends[None]
    each = jnp.where(is_end, _before(sample) + sample.log, -jnp.inf)
    most = jax.lax.stop_gradient(each).max(initial=-jnp.inf)
    most = jnp.where(jnp.isfinite(most), most, 0)
    total = jnp.exp(each - most).sum()
    loss = jnp.where(total == 0, jnp.inf, -jnp.log(jnp.where(total == 0, 1, total)) - most)
    return jnp.where((sample.frames == 0) & (sample.labels == 0), 0, loss)


def _half_sums(x, *others, **params):
    """As the kernels keep them: of the first half of the frames those before each, of the others those after it, as m and e
    of m 2^e, m being at least 1 and below 2; [T, 4, S + 1], of blanks m and e, of labels m and e."""
    sample = _sample(x, *others, **params)
    t = sample.frame[:, None]
    logs = jnp.where(t < sample.frames // 2, _before(sample), _after(sample))
    logs = jnp.where((t < sample.frames) & (sample.state <= 2 * sample.labels)[None], logs, -jnp.inf)
    logs = jnp.pad(logs, [(0, 0), (0, 1)], constant_values=-jnp.inf)
    logs = logs.reshape(*x.shape[:1], logs.shape[1] // 2, 2)
    m, e = scaled(logs)
    return jnp.stack([m, e], 1).transpose(0, 3, 1, 2).reshape(x.shape[0], 4, logs.shape[1])


def losses(x, *others, **params):
    """The loss of each sample."""
    return per_sample(_loss, **params)(x, *others)


def forward(x, *others, is_log, **params):
    params |= {"is_log": is_log}
    loss = losses(x, *others, **params)
    loss = loss if is_log else jnp.where(loss < 0, 0, loss)  # of rounding
    return loss, per_sample(_half_sums, **params)(x, *others)


def tangent(x, targets, input_lengths, target_lengths, sums, t, **params):
    of = lambda x: losses(x, targets, input_lengths, target_lengths, **params)
    return (jax.jvp(of, (x,), (t,))[1],)


def backward(x, targets, input_lengths, target_lengths, sums, dy, **params):
    of = lambda x: losses(x, targets, input_lengths, target_lengths, **params)
    return jax.vjp(of, x)[1](dy)
