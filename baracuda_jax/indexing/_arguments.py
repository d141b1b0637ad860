"""The arguments of ops that take an index, and what an index means.

An index may have any integer dtype, also one that does not hold the size of the axis. It becomes int32 in [0, size], where
`size` stands for everything out of range, before anything else is computed with it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .._core import checks, explicit
from .._core.compiled import compiled, full

INDEX = {"index": "an index is an integer"}
MODES = ("fill", "clip")


def operands(op, x, index, allowed=checks.EVERY, name="x"):
    """x, or what has this name, and an index, as arrays of allowed dtypes."""
    x, index = checks.array(op, name, x), checks.array(op, "index", index)
    checks.dtype(op, name, x, allowed)
    checks.dtype(op, "index", index, checks.INTEGERS)
    if not x.ndim:
        raise ValueError(f"{op}: {name} must have at least one dimension, got a scalar")
    return x, index


def axis_of(op, x, axis):
    axis = checks.axis(op, "x", x, axis)
    checks.positions(op, "x", x.shape[axis], "elements along the axis")
    return axis


def one_dimensional(op, index):
    if index.ndim != 1:
        raise ValueError(f"{op}: index must have one dimension, got shape {tuple(index.shape)}")


def fits(op, x, index, axis):
    """Of an index with one entry for each element along an axis; elsewhere it may be smaller than x."""
    if index.ndim != x.ndim or any(
        a < b for i, (a, b) in enumerate(zip(x.shape, index.shape, strict=True)) if i != axis
    ):
        raise ValueError(
            f"{op}: index must have the rank of x and at most its sizes {tuple(x.shape)} except along axis {axis}, got "
            f"{tuple(index.shape)}"
        )


def source(op, x, src, sizes):
    """src, which has at least the sizes of the index, cut to them; or a number for all."""
    if isinstance(src, bool | int | float | complex):
        if not is_representable(src, x.dtype):
            raise TypeError(f"{op}: src must be a number for x of dtype {x.dtype.name}, got {src!r}")
        return full(sizes, src, x.dtype)
    src = checks.array(op, "src", src)
    checks.same_dtype(op, "src", src, "x", x)
    if src.ndim != len(sizes) or any(a < b for a, b in zip(src.shape, sizes, strict=True)):
        raise ValueError(
            f"{op}: src must be a number or have at least the sizes of index, {sizes}, got {tuple(src.shape)}"
        )
    return src if src.shape == sizes else src[tuple(slice(n) for n in sizes)]


def mode_of(op, x, axis, mode):
    checks.choice(op, "mode", mode, MODES)
    if mode == "clip" and not x.shape[axis]:
        raise ValueError(f"{op}: x must have elements along the axis with mode 'clip', got shape {tuple(x.shape)}")
    return mode


def fill_of(op, x, mode, value):
    """What an index out of range gives, as a static number."""
    if value is None:
        return _default_fill(x.dtype)
    if mode != "fill":
        raise ValueError(f"{op}: fill_value must be left out with mode {mode!r}, got {value!r}")
    if not isinstance(value, bool | int | float | complex | np.generic):
        raise TypeError(f"{op}: fill_value must be a static number, got {value!r}")
    if not is_representable(value, x.dtype):
        raise TypeError(f"{op}: fill_value must be a number for x of dtype {x.dtype.name}, got {value!r}")
    return value.item() if isinstance(value, np.generic) else value


def _default_fill(dtype):
    if jnp.issubdtype(dtype, jnp.inexact):
        return float("nan")
    if dtype == jnp.bool_:
        return True
    info = jnp.iinfo(dtype)
    return int(info.max if jnp.issubdtype(dtype, jnp.unsignedinteger) else info.min)


def is_representable(value, dtype):
    """Whether a cast to the dtype keeps its kind, and its value where that is an integer."""
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return True
    if isinstance(value, complex | np.complexfloating):
        return False
    if jnp.issubdtype(dtype, jnp.floating):
        return True
    if isinstance(value, float | np.floating):
        return False
    return value in (0, 1) if dtype == jnp.bool_ else jnp.iinfo(dtype).min <= int(value) <= jnp.iinfo(dtype).max


# ---------------------------------------------------------------------------------------------------------------------
# What an index means


def positions(index, size, mode="fill", wraps=True):
    """int32 in [0, size], `size` for what is out of range; in [0, size) with mode "clip". Negative entries count from the
    end if `wraps`, else they are out of range."""
    info = jnp.iinfo(index.dtype)
    is_negative = index < 0 if info.min < 0 else jnp.zeros(index.shape, bool)
    is_below = index < -size if wraps and info.min < -size else jnp.zeros(index.shape, bool) if wraps else is_negative
    is_above = index >= size if info.max >= size else jnp.zeros(index.shape, bool)
    inside = jnp.where(is_below | is_above, 0, index).astype(jnp.int32)
    inside = jnp.where(is_negative & ~is_below, inside + size, inside) if wraps else inside
    low, high = (0, size - 1) if mode == "clip" else (size, size)
    return jnp.where(is_above, high, jnp.where(is_below, low, inside))


def last_ranks(at, size):
    """(the ranks of the entries, and the rank of the last entry that is each index below size, -1 where none is), int32."""
    ranks = jax.lax.iota(jnp.int32, at.shape[0])
    # Shards that are not of one size XLA fills up with entries of index 0, whose ranks come after the last one.
    ranks = jnp.where(ranks < at.shape[0], ranks, -1)
    return ranks, jnp.full(size, -1, jnp.int32).at[at].max(ranks, mode="drop")


def along(fun, axis, *arrays):
    """fun of each vector along an axis of the arrays, of which the other sizes are equal."""
    moved = [jnp.moveaxis(a, axis, -1) for a in _alike(axis, arrays)]
    mapped = functools.reduce(lambda f, _: jax.vmap(f), range(arrays[0].ndim - 1), fun)
    return jnp.moveaxis(mapped(*moved), -1, axis)


def _alike(axis, arrays):
    """The arrays, sharded alike along other axes than this one if they are on explicit axes, which vmap asks for."""
    first = next(filter(explicit.is_sharded, arrays), None)
    if first is None:
        return arrays
    sharding = jax.typeof(first).sharding
    spec = [None if i == axis else entry for i, entry in enumerate(sharding.spec)]
    return [jax.sharding.reshard(a, sharding.update(spec=jax.sharding.PartitionSpec(*spec))) for a in arrays]


def take(vector, at, fill):
    """Elements, or rows, at positions; `fill` where these are out of range."""
    if not vector.shape[0]:
        return jnp.full((*at.shape, *vector.shape[1:]), fill, vector.dtype)
    return vector.at[at].get(mode="fill", fill_value=fill)


def cut(x, sizes, axis):
    """x with at most these sizes, except along the axis."""
    is_whole = all(i == axis or n == size for i, (n, size) in enumerate(zip(sizes, x.shape, strict=True)))
    return (
        x if is_whole else explicit.whole(x)[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(sizes))]
    )


@compiled("axis", "mode")
def part_and_positions(x, index, *, axis, mode):
    """The part of x that an index reaches, and the positions in it, or without a mode the index."""
    return cut(x, index.shape, axis), index if mode is None else positions(index, x.shape[axis], mode)


def write_part(x, part):
    """x with its first elements replaced by a part of its rank."""
    if part.shape == x.shape:
        return part
    return jax.lax.dynamic_update_slice(explicit.whole(x), explicit.whole(part), (0,) * x.ndim)


@compiled()
def part_written(x, part):
    return write_part(x, part)


def row_labels(names, types, params):
    """How an op is cut that combines elements with rows of x: no row is, since an element may be anywhere in it."""

    def of(name, rank):
        axis = "n" if name in ("index", "src") else "s"
        return [axis if i - rank == params["axis"] else f"feature{rank - i}" for i in range(rank)]

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def draw_index(rng, low, high, shape):
    return rng.integers(low, high, shape, dtype=np.int32)
