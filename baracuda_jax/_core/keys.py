"""PRNG keys as operands: typed ones, and their bits, uint32 [2], which primitives batch, shard and export as any array."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from . import checks, explicit
from .compiled import compiled

CONSTANT = {"key": "a key is bits"}  # of a declaration: why it has no derivative
# The implementations whose bits do not depend on how arrays are batched and sharded: (name, words of a key). Raw keys are
# told apart by their number of words.
_KINDS = {"threefry2x32": ("threefry2x32", 2)}


def add(implementation, name, words):
    """One more implementation, as `jax.random.key_impl` gives it."""
    _KINDS[implementation] = name, words


def is_of(key, implementation):
    """Of a typed key."""
    return jax.random.key_impl(key) == implementation


def typed(op, name, key):
    """One key, typed (`jax.random.key`) or raw (`jax.random.PRNGKey`), as a typed one: `jax.random` draws the same from it
    alone, under vmap, and on shards."""
    return _typed(op, name, key, ((),), f"one key, typed or uint32 of shape {_raw()}")


def of_rows(op, name, key, rows):
    """Typed keys of this shape: one for each row, or a single one, into which the number of each row is folded."""
    expected = f"one key, typed or uint32 of shape {_raw()}, or one for each of the rows {rows}"
    key = _typed(op, name, key, ((), rows), expected)
    return key if key.shape == rows else _folded(key, rows=rows)


def _raw():
    return " or ".join(f"({words},)" for _, words in _KINDS.values())


def _typed(op, name, key, shapes, expected):
    """A key or keys of one of these shapes."""
    implementation = None
    if hasattr(key, "dtype") and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        implementation = jax.random.key_impl(key)
        if implementation not in _KINDS:
            known = " or ".join(kind for kind, _ in _KINDS.values())
            raise TypeError(f"{op}: {name} must be a key of {known}, got one of {implementation}")
        key = jax.random.key_data(key)
    key = checks.array(op, name, key)
    key = explicit.whole(key, [key.ndim - 1])
    if implementation is None:
        implementation = next((i for i, (_, words) in _KINDS.items() if key.shape[-1:] == (words,)), None)
    if key.dtype != jnp.uint32 or implementation is None or key.shape[:-1] not in shapes:
        raise TypeError(f"{op}: {name} must be {expected}, got {key.dtype.name} of shape {key.shape}")
    return jax.random.wrap_key_data(key, impl=implementation)


@compiled("rows")
def _folded(key, *, rows):
    numbers = jax.lax.iota(jnp.uint32, math.prod(rows)).reshape(rows)
    return explicit.mapped(lambda number: jax.random.fold_in(key, number), len(rows))(numbers)


def draw(rng, words=2):
    """A raw key, of a case."""
    return rng.integers(0, 2**32, words, dtype=np.uint32)
