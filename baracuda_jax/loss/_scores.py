"""Rows of scores, and the class of each."""

import functools

import jax
import jax.numpy as jnp

from .._core import explicit
from .._core.wide import wide
from ._arguments import number


def counted(target, classes, axis, ignore_index=None):
    """Which rows count; the same along `axis`; and the classes along `axis`, -1 of rows that do not count."""
    counts = (target >= 0) & (target < classes)
    if ignore_index is not None and jnp.iinfo(target.dtype).min <= ignore_index <= jnp.iinfo(target.dtype).max:
        counts &= target != ignore_index
    index = jnp.where(counts, target, -1)
    counts = index >= 0  # one array tells both, so that XLA needs no kernel for the other
    return counts, jnp.expand_dims(counts, axis), jnp.expand_dims(index, axis)


def is_class(index, classes, axis):
    sizes = [classes if i == axis else 1 for i in range(index.ndim)]
    return jax.lax.broadcasted_iota(index.dtype, sizes, axis) == index


def _selected(index, x, axis):
    return jnp.where(is_class(index, x.shape[axis], axis), x, 0).sum(axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def at_class(index, x, axis):
    """x's element at the class of each row, 0 of rows without. x may have size 1 along other axes."""
    if (
        not x.size or explicit.is_sharded(x) or explicit.is_sharded(index)
    ):  # a comparison is sharded as its operands are
        return _selected(index, x, axis)
    first = jnp.maximum(index, 0)
    if all(size == 1 for i, size in enumerate(x.shape) if i != axis):
        found = explicit.take(x.reshape(-1), first)
    else:
        found = jnp.take_along_axis(x, first, axis, mode="promise_in_bounds")
    return jnp.where(index < 0, 0, found).squeeze(axis)


@at_class.defjvp
def _at_class_tangent(axis, primals, tangents):
    """By comparison, unlike the value: a gather's transpose is a scatter, which has an order and does not fuse."""
    index, x = primals
    return at_class(index, x, axis), _selected(index, tangents[1], axis)


def from_peak(x, axis):
    """(x minus the largest of each row, the logarithm of the sum of its exponentials, what was subtracted). The difference
    of the first two is log_softmax(x), which is written nowhere where both are used in sums."""
    peak = jax.lax.stop_gradient(x).max(axis, keepdims=True, initial=-jnp.inf)
    peak = jnp.where(jnp.isfinite(peak), peak, 0)
    x = x - peak
    return x, jnp.log(jnp.exp(x).sum(axis)), peak.squeeze(axis)


def dot(q, x, log_sum, axis):
    """The sum of q log(p). Where q is 0 and log(p) is -inf there is no term."""
    is_none = (q == 0) & (x == -jnp.inf)
    of = lambda a: jnp.where(is_none, 0, a)
    return (q * of(x)).sum(axis) - log_sum * of(q).sum(axis)


def weights_of(weight, counts, index, axis, dtype):
    """Those of the rows, by their classes."""
    return counts.astype(dtype) if weight is None else at_class(index, wide(weight), axis)


def share(op, value):
    """Of each target, what is distributed evenly over all classes."""
    value = number(op, "label_smoothing", value, 0)
    if value > 1:
        raise ValueError(f"{op}: label_smoothing must be at most 1, got {value}")
    return value


def limit(op, value):
    return None if value is None else number(op, "softcap", value, above=0)


def limited(x, softcap):
    return x if softcap is None else softcap * jnp.tanh(x / softcap)
