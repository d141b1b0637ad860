"""Elements of images at indices that are computed, weighted and summed."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core import explicit
from .._core.kernel import kernel
from .._core.wide import wide
from ..graph._kernels import weighted as weighted_rows


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


TAPS = {"nearest": 1, "linear": 2, "keys": 4, "spline": 4}  # by weights
OUTSIDE = 6, 3  # elements before and after an axis, for which others may stand


def adjoint(dy, along, sizes, weights, other=None):
    """The cotangent [*batch, channels, *sizes] of images, from that of the result [*batch, channels, points]: each element
    has the sum of what the positions around it have, times their weights, which depend on distances.

    `along` has, of each axis, positions [*batch, points], the element at or before each, and whether it reads any at all.
    other(index, n) says which elements of an axis those of an index outside it stand for."""
    if other is not None:
        below, above = OUTSIDE
        along = [(at + below, before + below, is_in) for at, before, is_in in along]
        longer = adjoint(wide(dy), along, tuple(n + below + above for n in sizes), weights)
        for axis, n in enumerate(sizes, dy.ndim - 1):
            longer = _folded(longer, axis, n, other)
        return longer.astype(dy.dtype)
    taps, bins, inside = TAPS[weights], 0, True
    for (_, before, is_in), n in zip(along, sizes, strict=True):
        number = before + taps // 2
        bins = bins * (n + taps - 1) + number
        inside &= is_in & (number >= 0) & (number < n + taps - 1)
    bins = jnp.where(inside, bins, -1)
    positions = jnp.stack([at for at, _, _ in along[::-1]], -2)
    points, itemsize, many = bins.shape[-1], positions.dtype.itemsize, math.prod(n + taps - 1 for n in sizes)
    # Entries, ranks and numbers of positions; offsets of bins, and of tiles of these.
    workspace = points * (4 * itemsize + 8) + (many + many // 1024 + 2048) * 4 + 5 * 256
    (dx,) = kernel(
        "sample_adjoint", "...cp, ...p, ...kp -> ...cn", dy, bins, positions, workspace=workspace,
        out=[jax.ShapeDtypeStruct((*dy.shape[:-1], math.prod(sizes)), dy.dtype)],
        weights=list(TAPS).index(weights), sizes=tuple(sizes[::-1]),
    )  # fmt: skip
    return dx.reshape(*dy.shape[:-1], *sizes)


def _folded(longer, axis, n, other):
    """An axis of elements and those outside, which are added, one after the other, to the ones that they stand for."""
    below, above = OUTSIDE
    cut = lambda first, count: lax.slice_in_dim(longer, first, first + count, axis=axis)
    padding = [(0, 0, 0)] * longer.ndim
    x = cut(below, n)
    for i in (*range(-1, -below - 1, -1), *range(n, n + above)):
        (to,) = other(np.array([i]), n).tolist()
        padding[axis] = (to, n - 1 - to, 0)
        x = x + lax.pad(cut(below + i, 1), np.zeros((), x.dtype), padding)
    return x


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
