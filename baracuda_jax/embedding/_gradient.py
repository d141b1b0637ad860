"""Tables whose values are those that are given, and whose gradients are changed."""

import functools

import jax
import jax.numpy as jnp

from .._core import explicit
from .._core.compiled import compiled
from .._core.wide import wide
from ._arguments import kept


def adjusted(weight, ids, padding, by_frequency):
    """The table: the gradient of each row is over the count of its id if `by_frequency`, that of padding is 0."""
    if by_frequency:
        weight = _over(weight, _counts(ids, size=weight.shape[0]))
    return weight if padding is None else _without(weight, padding)


def over_counts(dweight, ids):
    """The gradient of each row over the count of its id."""
    return _divided(dweight, _counts(ids, size=dweight.shape[0]))


@compiled("size")
def _counts(ids, *, size):
    at = explicit.whole(kept(ids, size=size, padding=None))
    return jnp.maximum(jnp.zeros(size, jnp.int32).at[at].add(1, mode="drop"), 1)


@jax.custom_jvp
def _over(weight, counts):
    return weight


@_over.defjvp
def _over_jvp(primals, tangents):
    return primals[0], _divided(tangents[0], primals[1])


@compiled()
def _divided(t, counts):
    return (wide(t) / counts.reshape(-1, *(1,) * (t.ndim - 1)).astype(wide(t).dtype)).astype(t.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _without(weight, padding):
    return weight


@_without.defjvp
def _without_jvp(padding, primals, tangents):
    return primals[0], zeroed(tangents[0], row=padding)


@compiled("row")
def zeroed(t, *, row):
    """Written in place where nobody else reads t, as the gradient that this is transposed to."""
    if explicit.is_sharded(t):
        is_row = jnp.arange(t.shape[0]).reshape(-1, *(1,) * (t.ndim - 1)) == row
        return jnp.where(is_row, 0, t)
    return t.at[row].set(0)


def bounded(rows, bound):
    """Rows whose norm is above the bound, if there is one, scaled to it; the gradient is that of the rows as they are."""
    return rows if bound is None else _bounded(rows, bound)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _bounded(rows, bound):
    return _scaled(rows, bound=bound)


@_bounded.defjvp
def _bounded_jvp(bound, primals, tangents):
    return _bounded(primals[0], bound), tangents[0]


@compiled("bound")
def _scaled(rows, *, bound):
    most, p = bound
    x = jnp.abs(wide(rows))
    axes = tuple(range(1, x.ndim))
    if p == 2:
        norm = jnp.sqrt(jnp.sum(x * x, axes, keepdims=True))
    elif p == float("inf"):
        norm = jnp.max(x, axes, keepdims=True, initial=0)
    else:
        norm = jnp.sum(x**p, axes, keepdims=True) ** (1 / p)
    return jnp.where(norm > most, wide(rows) * (most / (norm + 1e-7)), wide(rows)).astype(rows.dtype)
