"""Elements of images at indices that are computed, weighted and summed."""

import functools
import math

import jax
import jax.numpy as jnp

from .._core import explicit
from .._core.kernel import kernel
from ..graph._kernels import weighted as weighted_rows
from ..segment._kernels import index_of


def weighted(x, index, weight, inside, fill=0):
    """y[n, c, ...] = sum over t of weight[n, ..., t] x[n, c, index[n, ..., t]] of x [N, C, elements], `fill` for an element
    that is not inside.

    A term for each t: one array of all of them would be as large as t results."""
    n, channels, _ = x.shape
    shape = index[0].shape[1:]
    y = 0
    for i, w, is_in in zip(index, weight, inside, strict=True):
        flat = explicit.reshape(i, n, math.prod(shape))
        taken = jax.vmap(lambda a, i: jnp.take(a, i, axis=-1, mode="clip"))(x, flat)
        taken = jnp.where(is_in[:, None], explicit.reshape(taken, n, channels, *shape), fill)
        y = y + (taken if w is None else taken * w[:, None])
    return y


def entries(index, weight, inside, batch, dtype):
    """The elements that positions read, -1 for none, and their weights: arrays [*batch, points] after each other."""
    shape = (*batch, math.prod(index[0].shape[len(batch) :]))
    of_entries = lambda many: jnp.concatenate([each.reshape(shape) for each in many], -1)
    receivers = of_entries([jnp.where(is_in, i, -1) for i, is_in in zip(index, inside, strict=True)])
    ones = jnp.ones(shape, dtype)
    return receivers, of_entries([ones if w is None else w for w in weight])


def adjoint(dy, weights, receivers, elements):
    """The cotangent [*batch, channels, elements] of images, from that of the result [*batch, channels, points]: each element
    has the sum of what the entries [*batch, m points] that read it have, times their weights; negative ones read none."""
    perm, offsets = index_of(receivers, elements, False)
    out = jax.ShapeDtypeStruct((*dy.shape[:-1], elements), dy.dtype)
    # Points and weights of entries in the order of elements: 8 or 16 bytes.
    workspace = receivers.shape[-1] * 2 * weights.dtype.itemsize + 256
    (dx,) = kernel(
        "sample_adjoint", "...cp, ...e, ...q, ...e -> ...cn", dy, perm, offsets, weights, out=[out], workspace=workspace
    )
    return dx


def derivatives(reference):
    """The tangent and the backward body, in plain JAX, of that of an image and of where it is sampled."""

    def tangent(x, at, tx, tat, **how):
        return jax.jvp(functools.partial(reference, **how), (x, at), (tx, tat))[1]

    def backward(x, at, dy, **how):
        return jax.vjp(functools.partial(reference, **how), x, at)[1]((dy,))

    return tangent, backward


def added(rows, weights, receivers, elements):
    """The sums by element, [*batch, elements, channels], of rows [*batch, n, channels] times weights. Entries [*batch, m n]
    are of the rows in order, m times, and negative ones are of no element."""
    count = rows.shape[-2]
    senders = jnp.tile(jnp.arange(count, dtype=jnp.int32), receivers.shape[-1] // max(count, 1))
    senders, axis = jnp.broadcast_to(senders, receivers.shape), rows.ndim - 2
    return weighted_rows(rows, weights, senders, receivers, axis=axis, num_segments=elements, sorted=False)
