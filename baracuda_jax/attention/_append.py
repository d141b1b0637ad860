"""Rows written into a cache, each batch from a position of its own, in place."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation


@api
def kv_cache_append(
    cache: ArrayLike, new: ArrayLike, position: ArrayLike, *, implementation: Implementation = None
) -> Array:
    """Write new rows into a cache of keys or values, in place.

    Formula:
        y[..., p + i, :] = new[..., i, :] for the rows i of new with 0 <= p + i < length, p being the batch's position; all
        else is as in cache. dcache is dy with zeros in these rows, and dnew has these rows, and zeros where there are none.

    Args:
        cache: array [..., length, d] of floats, integers or bool, such as [batch, heads, length, d].
        new: array [..., n, d] of cache's dtype, with the batches and d of cache, and n <= length.
        position: integers, of the shape of cache's first dimensions, as [batch]; or one number.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of cache's shape and dtype. Where cache is donated, or nobody reads it after, it is cache's memory, and only
        the new rows are written.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: values are moved as they are.

    Source: jax.lax.dynamic_update_slice, which moves a block inside instead of leaving rows out.
    """
    op = "kv_cache_append"
    cache, new = checks.array(op, "cache", cache), checks.array(op, "new", new)
    checks.dtype(op, "cache", cache, checks.REAL)
    checks.same_dtype(op, "new", new, "cache", cache)
    position = _position(op, position, cache.shape, new.shape)
    return _append(cache, new, position, rows=new.shape[-2], implementation=implementation) if new.size else cache


@api
def kv_cache_append_backward(
    dy: ArrayLike, position: ArrayLike, rows: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    """The gradient of `kv_cache_append`.

    Args:
        dy: floats [..., length, d], the cotangent of the result.
        position: as for `kv_cache_append`.
        rows: static integer, n, 1 or more: how many rows were written.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of cache and of new.
    """
    op = "kv_cache_append_backward"
    dy = checks.floats(op, "dy", dy)
    rows = checks.integer(op, "rows", rows, 1)
    position = _position(op, position, dy.shape, (*dy.shape[:-2], rows, *dy.shape[-1:]))
    return tuple(_append.vjp(position, dy, rows=rows, implementation=implementation))


def _position(op, position, shape, new):
    if (
        len(shape) < 2
        or len(new) != len(shape)
        or (*new[:-2], new[-1]) != (*shape[:-2], shape[-1])
        or new[-2] > shape[-2]
    ):
        raise ValueError(
            f"{op}: cache must be [..., length, d] and new [..., n, d] with n <= length, got {shape} and {new}"
        )
    position = checks.array(op, "position", position)
    checks.dtype(op, "position", position, checks.INTEGERS)
    if position.ndim > len(shape) - 2 or position.shape != shape[: position.ndim]:
        raise ValueError(f"{op}: position must have the first dimensions of cache, {shape[:-2]}, got {position.shape}")
    return _near(position, rows=new[-2], length=shape[-2])


@compiled("rows", "length")
def _near(position, *, rows, length):
    """The position, no further out than the block is long."""
    info = jnp.iinfo(position.dtype)
    return jnp.clip(position, max(info.min, -rows), min(info.max, length)).astype(jnp.int32)


def _each_batch(fun, arrays, position):
    """fun(*arrays [length, d], number), for all batches; positions have the first of them."""
    batches = arrays[0].ndim - 2
    for i in range(batches):
        fun = jax.vmap(fun, (*(0 for _ in arrays), 0 if i >= batches - position.ndim else None))
    return fun(*arrays, position)


def _rows(position, rows, length):
    """The rows of the cache; those outside are after its end, each at an index of its own."""
    index = position + jnp.arange(rows, dtype=position.dtype)
    return jnp.where(index < 0, length + jnp.arange(rows, dtype=position.dtype), index)


def _reference(cache, new, position, *, rows):
    def write(cache, new, position):
        return cache.at[_rows(position, rows, len(cache))].set(new, mode="drop", unique_indices=True)

    return (_each_batch(write, (cache, new), position),)


def _backward_reference(position, dy, *, rows):
    def read(dy, position):
        return dy.at[_rows(position, rows, len(dy))].get(mode="fill", fill_value=0)

    dnew = _each_batch(read, (dy,), position)
    return *_reference(dy, jnp.zeros_like(dnew), position, rows=rows), dnew


def _start(position):
    return jnp.stack([position, jnp.zeros_like(position)], -1)


def _native(cache, new, position, *, rows, save=False):
    out = [jax.ShapeDtypeStruct(cache.shape, cache.dtype)]
    return kernel("write_rows", "...sd, ...nd, ...k -> ...sd", cache, new, _start(position), out=out, aliases=((0, 0),))


def _backward_native(position, dy, *, rows):
    out = [jax.ShapeDtypeStruct((*dy.shape[:-2], rows, dy.shape[-1]), dy.dtype)]
    (dnew,) = kernel("read_rows", "...sd, ...k -> ...nd", dy, _start(position), out=out)
    return *_native(dy, jnp.zeros_like(dnew), position, rows=rows), dnew


def _labels(names, types, params):
    of = {"cache": ("length", "d"), "y": ("length", "d"), "new": ("rows", "d"), "position": ()}
    return [(*(f"batch{i}" for i in range(x.ndim - len(of[n]))), *of[n]) for n, x in zip(names, types, strict=True)]


def _case(name, batch, length, rows, position):
    draw = lambda rng: (
        rng.standard_normal((*batch, length, 5)),
        rng.standard_normal((*batch, rows, 5)),
        np.array(position),
    )
    return Case(name, draw)


_append = declare(
    "kv_cache_append",
    family="attention",
    category=OpCategory.ATTENTION,
    public=kv_cache_append,
    cases=(
        _case("batches", (3, 2), 7, 2, [1, 5, 0]),
        _case("partly outside", (4,), 6, 3, [-1, 4, 9, -3]),
        _case("one position", (2,), 8, 1, 3),
    ),
    dtypes=checks.REAL,
    operands=("cache", "new", "position"),
    aliases={"cache": "y"},
    differentiable=("cache", "new"),
    constant={"position": "positions are integers"},
    residuals=("position",),
    linear=as_they_are,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    batched=as_they_are,
    cut=Partition(_labels, whole=frozenset({"length", "rows"})),
    kernels={"forward": ("write_rows",), "backward": ("read_rows", "write_rows")},
)
