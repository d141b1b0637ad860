"""Where a token's slots have their rows: the maps between slots and rows that both ops read, in plain JAX.

A slot is a pair (token, j) with the token's j-th expert; slots are numbered token by token. `row_map` [*batch, T, k] has the
row of each slot, -1 where it has none. No two slots have one row, and so the inverse needs no sort."""

import jax.numpy as jnp

from .._core.within import within
from ..segment._references import per_batch, take


def flat(slots):
    """[*batch, T, k] as [*batch, T * k]."""
    return slots.reshape(*slots.shape[:-2], slots.shape[-2] * slots.shape[-1])


def inverse(ids, size, count):
    """The position of each of [0, size) in ids [*batch, n], -1 of what is not there; of ids below `count` alone."""

    def one(ids):
        numbers = jnp.arange(ids.shape[0], dtype=jnp.int32)
        # Numbers past the end are all different too, as is promised.
        target = jnp.where(within(ids, count), ids.astype(jnp.int32), size + numbers)
        return jnp.full(size, -1, jnp.int32).at[target].set(numbers, mode="drop", unique_indices=True)

    return per_batch(one, ids.ndim - 1)(ids)


def each_slot(x, row_map, axis):
    """[*batch, T, k, *features]: the row of x of each slot, 0 where it has none."""
    each = take(x, flat(row_map), axis=axis)
    return each.reshape(*x.shape[:axis], *row_map.shape[-2:], *x.shape[axis + 1 :])


def slots_of_rows(row_map, num_rows):
    """[*batch, num_rows]: the slot of each row, -1 for rows without one."""
    return inverse(flat(row_map), num_rows, num_rows)


def tokens_of(slots, k):
    """The token of each slot, -1 where there is no slot."""
    return jnp.where(slots < 0, -1, slots // max(k, 1))


def rows_of_slots(experts, perm, offsets, capacity):
    """row_map of experts [*batch, T, k], from the slots in the order of their experts and the first of each expert's."""

    def one(experts, perm, offsets):
        ids, num_experts = experts.ravel(), offsets.shape[0] - 1
        inside = within(ids, num_experts)
        rank = inverse(perm, ids.shape[0], ids.shape[0])
        if capacity is None:
            return jnp.where(inside, rank, -1).reshape(experts.shape)
        if not num_experts:
            return jnp.full(experts.shape, -1, jnp.int32)
        expert = jnp.where(inside, ids, 0).astype(jnp.int32)
        position = rank - offsets.astype(jnp.int32)[expert]
        kept = inside & (position < capacity)
        return jnp.where(kept, expert * capacity + position, -1).reshape(experts.shape)

    return per_batch(one, experts.ndim - 2)(experts, perm, offsets)


def sizes_of(offsets, capacity):
    """[*batch, num_experts]: the numbers of rows."""
    counts = jnp.diff(offsets, axis=-1).astype(jnp.int32)
    return counts if capacity is None else jnp.minimum(counts, capacity)
