"""The parts of plain JAX that the references are made of."""

import jax
import jax.numpy as jnp

from .._core.bits import from_bits, to_bits
from .._core.wide import wide
from .._core.within import within


def per_batch(fun, axis):
    """fun of arrays without batches, as one of arrays with `axis` batch dimensions."""
    for _ in range(axis):
        fun = jax.vmap(fun)
    return fun


def broadcast(x, batch):
    """Repeats [batches of ids..., K] for each batch of the data."""
    missing = len(batch) - (x.ndim - 1)
    return jnp.broadcast_to(x.reshape(*x.shape[:-1], *(1,) * missing, x.shape[-1]), (*batch, x.shape[-1]))


def segment_or_last(ids, num_segments):
    """Ids with `num_segments` for those out of range."""
    inside = within(ids, num_segments)
    return jnp.where(inside, ids, 0).astype(jnp.int32) + jnp.where(inside, 0, num_segments)


def column(x, like):
    """[K] shaped to go with [K, ...]."""
    return x.reshape(x.shape + (1,) * (like.ndim - 1))


def count(ids, num_segments):
    count = lambda ids: jax.ops.segment_sum(
        jnp.ones(ids.shape, jnp.int32), segment_or_last(ids, num_segments), num_segments
    )
    return per_batch(count, ids.ndim - 1)(ids)


def reduce_by(fun, identity, data, ids, *, axis, num_segments, empty_bits, **_):
    """fun(rows in a wide dtype, segments) by batch, with `empty_value` for segments without rows, of which fun makes
    `identity`."""

    def one(data, ids):
        y = fun(wide(data), segment_or_last(ids, num_segments)).astype(data.dtype)
        if empty_bits == to_bits(identity, data.dtype):
            return y
        empty = column(count(ids, num_segments) == 0, y)
        return jnp.where(empty, from_bits(empty_bits, data.dtype), y)

    return per_batch(one, axis)(data, broadcast(ids, data.shape[:axis]))


def take(x, ids, *, axis, fill=0, **_):
    """As `kernels.gathered`, of a number `fill`."""

    def one(x, ids):
        if not x.shape[0]:
            return jnp.full((*ids.shape, *x.shape[1:]), fill, x.dtype)
        inside = within(ids, x.shape[0])
        each = x[jnp.where(inside, ids, 0).astype(jnp.uint32)]
        return jnp.where(column(inside, x), each, jnp.asarray(fill, x.dtype))

    return per_batch(one, axis)(x, broadcast(ids, x.shape[:axis]))


def product_of(data, ids, *, axis, num_segments, **_):
    """The product as a scan over the rows in the order of their segments: JAX differentiates it to any order, exactly at
    zeros, which it can't do with jax.ops.segment_prod."""

    def multiply(a, b):
        (begins_a, a), (begins_b, b) = a, b
        return begins_a | begins_b, jnp.where(column(begins_b, b), b, a * b)

    def one(data, ids):
        ids = segment_or_last(ids, num_segments)
        order = jnp.argsort(ids, stable=True)
        ids, rows = ids[order], wide(data)[order]
        begins = jnp.concatenate([jnp.ones(1, bool), ids[1:] != ids[:-1]])
        scanned = jax.lax.associative_scan(multiply, (begins, rows))[1]
        segments = jnp.arange(num_segments, dtype=ids.dtype)
        last = jnp.searchsorted(ids, segments, side="right") - 1
        has_rows = (last >= 0) & (ids[last] == segments)
        return jnp.where(column(has_rows, rows), scanned[last], 1).astype(data.dtype)

    if not data.shape[axis]:
        return jnp.ones((*data.shape[:axis], num_segments, *data.shape[axis + 1 :]), data.dtype)
    return per_batch(one, axis)(data, broadcast(ids, data.shape[:axis]))
