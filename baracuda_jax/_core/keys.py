"""PRNG keys as operands: typed ones, and their bits, uint32 [2], which primitives batch, shard and export as any array."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from . import checks, explicit
from .compiled import compiled

IMPLEMENTATION = "threefry2x32"  # whose bits do not depend on how arrays are batched and sharded
CONSTANT = {"key": "a key is bits"}  # of a declaration: why it has no derivative


def bits_of(op, name, key):
    """Those of one key, typed (`jax.random.key`) or raw (`jax.random.PRNGKey`)."""
    return _bits(op, name, key, ((2,),), "one key, typed or uint32 of shape (2,)")


def _bits(op, name, key, shapes, expected):
    if hasattr(key, "dtype") and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        implementation = str(jax.random.key_impl(key))
        if implementation != IMPLEMENTATION:
            raise TypeError(f"{op}: {name} must be a key of {IMPLEMENTATION}, got one of {implementation}")
        key = jax.random.key_data(key)
    key = checks.array(op, name, key)
    key = explicit.whole(key, [key.ndim - 1])
    if key.dtype != jnp.uint32 or key.shape not in shapes:
        raise TypeError(f"{op}: {name} must be {expected}, got {key.dtype.name} of shape {key.shape}")
    return key


def typed(op, name, key):
    """One key, typed or raw, as a typed one: `jax.random` draws the same from it alone, under vmap, and on shards."""
    return jax.random.wrap_key_data(bits_of(op, name, key), impl=IMPLEMENTATION)


def of_rows(op, name, key, rows):
    """Typed keys of this shape: one for each row, or a single one, into which the number of each row is folded."""
    expected = f"one key, typed or uint32 of shape (2,), or one for each of the rows {rows}"
    key = jax.random.wrap_key_data(_bits(op, name, key, ((2,), (*rows, 2)), expected), impl=IMPLEMENTATION)
    return key if key.shape == rows else _folded(key, rows=rows)


@compiled("rows")
def _folded(key, *, rows):
    numbers = jax.lax.iota(jnp.uint32, math.prod(rows)).reshape(rows)
    return by_row(lambda number: jax.random.fold_in(key, number), len(rows))(numbers)


def by_row(fun, dimensions):
    """fun of each row, mapped over so many leading dimensions: keys on explicit axes of a mesh can't be reshaped."""
    return functools.reduce(lambda fun, _: jax.vmap(fun), range(dimensions), fun)


def draw(rng):
    """A raw key, of a case."""
    return rng.integers(0, 2**32, 2, dtype=np.uint32)
