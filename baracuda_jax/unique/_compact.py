"""What all ops of the family share: their declarations and the kernel call."""

import jax
import jax.numpy as jnp

from .._core import checks
from .._core.kernel import kernel
from .._core.look_back import look_back_positions
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from ..segment._references import per_batch


def _labels(names, types, params):
    """Elements [*batch, n], positions [*batch, size], and how many there are in all [*batch]."""
    last = {"index": ("size",), "found": ()}
    batches = types[0].ndim - 1
    return [(*(f"batch{i}" for i in range(batches)), *last.get(name, ("n",))) for name in names]


# A position says how many elements come before, on all shards.
whole_axis = Partition(_labels, whole=frozenset({"n", "size"}), plain=True)


def declare_positions(name, target, keeps, **declaration):
    """The op whose result is the positions of the elements of [*batch, n] that keeps(row, **params) says, in ascending
    order: the first `size`, and after the last `fill`, or n where the target has no such parameter. Saved is how many there
    are in all."""

    def native(x, *, save, size, **params):
        batch = x.shape[:-1]
        out = [jax.ShapeDtypeStruct((*batch, size), jnp.int32), jax.ShapeDtypeStruct(batch, jnp.int32)]
        results = kernel(target, "...n -> ...s, ...", x, out=out, workspace=_workspace(x.shape[-1]), **params)
        return results[: 2 if save else 1]

    def reference(x, *, size, fill=None, **params):
        def one(row):
            mask = keeps(row, **params)
            found = jnp.sum(mask, dtype=jnp.int32)
            # The k-th position is after the elements up to which fewer than k + 1 are kept.
            passed = jnp.zeros(size, jnp.int32).at[jnp.cumsum(mask, dtype=jnp.int32)].add(1, mode="drop")
            index = jnp.cumsum(passed, dtype=jnp.int32)
            is_there = jnp.arange(size, dtype=jnp.int32) < found
            return index if fill is None else jnp.where(is_there, index, jnp.int32(fill)), found

        return per_batch(one, x.ndim - 1)(x)

    return declare(
        name,
        family="unique",
        batched=as_they_are,
        results=("index", "found"),
        dtypes=checks.REAL,
        cut=whole_axis,
        forward=Body(reference, native),
        **declaration,
    )


def positions(op, x, size, implementation, **params):
    return op(x, size=size, implementation=implementation, **params)


def found(op, x, implementation, **params):
    """How many there are in all."""
    return op(x, size=0, save=True, implementation=implementation, **params)[1]


def _workspace(count):
    """Bytes for each batch of what the CUDA driver tells its blocks of tiles of 4096 elements or more, which begin where
    memory is aligned (ffi/patterns/compact_tiles_cuda.h)."""
    return 8 * look_back_positions(-(-(count + 15) // 4096)) + 256
