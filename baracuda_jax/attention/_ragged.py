"""Sequences that follow each other in one array, as a padded batch and back. Each row is read from where it is, and so is
its cotangent."""

import jax
import jax.numpy as jnp

from .._core import checks, explicit


def starts_of(op, name, x, count=None):
    """Where sequences begin, and the last ends: integers [n + 1]."""
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, checks.INTEGERS)
    if x.ndim != 1 or not x.shape[0] or (count is not None and x.shape[0] != count + 1):
        n = "n" if count is None else count
        raise ValueError(
            f"{op}: {name} must be [{n} + 1], where each of {n} sequences begins and the end, got {x.shape}"
        )
    return x


def most_of(op, name, value, rows):
    """The length of the longest sequence, at most that of all."""
    return rows if value is None else min(checks.integer(op, name, value, 0), rows)


def clipped(starts, rows):
    """Where sequences begin and end, int32 and inside of the array."""
    return jnp.clip(starts, 0, min(rows, jnp.iinfo(starts.dtype).max)).astype(jnp.int32)


def bounds(starts, rows):
    """(where sequences begin [n], their lengths), int32 and inside of the array."""
    starts = clipped(starts, rows)
    return starts[:-1], jnp.maximum(starts[1:] - starts[:-1], 0)


def rows_at(x, index):
    """x[index], 0 outside, of indices that are all different: its gradient adds nothing up."""
    return x.at[index].get(mode="fill", fill_value=0, unique_indices=True)


def padded(x, begin, lengths, most, take=rows_at):
    """[rows, ...] as [n, most, ...], 0 after the end of a sequence."""
    n, rows = begin.shape[0], x.shape[0]
    if not rows:
        return jnp.zeros((n, most, *x.shape[1:]), x.dtype)
    i = jax.lax.broadcasted_iota(jnp.int32, (n, most), 1)
    # Indices outside are different ones, so that all are unique.
    nowhere = rows + jnp.arange(n * most, dtype=jnp.int32).reshape(n, most)
    at = jnp.where(i < lengths[:, None], begin[:, None] + i, nowhere)
    return explicit.reshape(take(x, at.reshape(n * most)), n, most, *x.shape[1:])


def packed(y, begin, lengths, rows, fill, take=rows_at):
    """[n, most, ...] as [rows, ...], with `fill` where no sequence is."""
    n, most = y.shape[:2]
    if not n * most:
        return jnp.full((rows, *y.shape[2:]), fill, y.dtype)
    at = jax.lax.broadcasted_iota(jnp.int32, (rows, n), 0)
    b = jax.lax.broadcasted_iota(jnp.int32, (rows, n), 1)
    i = at - begin[None]
    is_of = (i >= 0) & (i < jnp.minimum(lengths, most)[None])  # at most one sequence has a row
    inside = is_of.any(1)
    nowhere = n * most + jnp.arange(rows, dtype=jnp.int32)
    index = jnp.where(inside, jnp.where(is_of, b * most + i, 0).sum(1, dtype=jnp.int32), nowhere)
    found = take(explicit.reshape(y, n * most, *y.shape[2:]), index)
    return jnp.where(inside.reshape(rows, *(1,) * (found.ndim - 1)), found, fill)
