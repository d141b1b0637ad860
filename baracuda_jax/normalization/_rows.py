"""What normalizations of rows share: their definitions in plain JAX, their kernel calls, and how they are cut.

Arrays are [*batch, columns]. A weight is [*first dimensions of the batch, columns], and serves all rows after these.
Kernels: patterns rows, and rows with sums."""

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import Body
from .._core.partition import Partition
from .._core.wide import wide, wide_dtype


def row_mean(a, over=()):
    """Of each row, with a dimension of size 1 for it. That of nothing is 0. `over` are axes of a mesh along which rows are
    sharded."""
    total, count = a.sum(-1, keepdims=True), a.shape[-1]
    if over:
        total, count = lax.psum(total, over), lax.psum(count, over)
    return total / max(count, 1)


def by_row(vector, ndim):
    """A weight that broadcasts to the rows that it serves, in the dtype that is computed in."""
    return jnp.expand_dims(wide(vector), range(vector.ndim - 1, ndim - 1))


def rounded(y, dtype):
    """y as rounded to the dtype; casts to it and back XLA may leave out."""
    to = jnp.finfo(dtype)
    return lax.reduce_precision(y, to.nexp, to.nmant)


def moments(x, centered, eps, over=()):
    """The mean, or 0, and r of each row."""
    mean = row_mean(wide(x), over) if centered else jnp.zeros((*x.shape[:-1], 1), wide_dtype(x.dtype))
    return mean, lax.rsqrt(row_mean(jnp.square(wide(x) - mean), over) + eps)


@compiled("centered", "eps")
def statistics(x, *, centered, eps):
    """What the gradient reads of each row: the mean, where rows are centered, and r."""
    return [a.squeeze(-1) for a in moments(x, centered, eps)[not centered :]]


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def normalized(x, mean, r, centered, over=()):
    """x as normalized, and r. What `mean` and `r` are is known."""
    return (x - mean if centered else x) * r, r


@normalized.defjvp
def _normalized_tangent(centered, over, primals, tangents):
    """Mean and r are functions of x, whose tangents need not be known."""
    (n, r), t = normalized(*primals, centered, over), tangents[0]
    return (n, r), (tangent_of_normalized(n, r, t, centered, over), -r * r * row_mean(n * t, over))


def tangent_of_normalized(n, r, t, centered, over=()):
    """Of n. It is its own transpose."""
    return r * ((t - row_mean(t, over) if centered else t) - n * row_mean(n * t, over))


# ---------------------------------------------------------------------------------------------------------------------
# References. `bias` is there where rows are centered, and so is `mean`.


def _split(centered, values):
    """x, mean and r, of which the last two have a dimension of size 1, and what comes after them; values begin with x,
    weight, (mean,) r."""
    x, weight, *rest = values
    mean = rest.pop(0)[..., None] if centered else jnp.zeros((), wide_dtype(x.dtype))
    return (wide(x), mean, rest[0][..., None]), weight, rest[1:]


def forward(centered, x, weight, *bias, eps, offset=0.0, rounds=False, over=()):
    mean, r = moments(x, centered, eps, over)
    n, _ = normalized(wide(x), mean, r, centered, over)
    y = (rounded(n, x.dtype) if rounds else n) * (offset + by_row(weight, x.ndim))
    y = y + by_row(bias[0], x.ndim) if centered else y
    saved = (mean, r) if centered else (r,)
    return y.astype(x.dtype), *(a.squeeze(-1) for a in saved)


def tangent(centered, *values, eps, offset=0.0, rounds=False, over=()):
    saved, weight, (dx, dweight, *dbias) = _split(centered, values)
    n, r = normalized(*saved, centered, over)
    of_n = tangent_of_normalized(n, r, wide(dx), centered, over)
    n = rounded(n, dx.dtype) if rounds else n
    dy = of_n * (offset + by_row(weight, n.ndim)) + n * by_row(dweight, n.ndim)
    return ((dy + by_row(dbias[0], n.ndim) if centered else dy).astype(dx.dtype),)


def backward(centered, *values, eps, offset=0.0, rounds=False, over=()):
    """What comes after dy, or None, is added to dx before it is rounded."""
    saved, weight, (dy, *more) = _split(centered, values)
    n, r = normalized(*saved, centered, over)
    g = (offset + by_row(weight, n.ndim)) * wide(dy)
    dx = tangent_of_normalized(n, r, g, centered, over)
    dx = sum((wide(a) for a in more if a is not None), dx)
    n = rounded(n, dy.dtype) if rounds else n
    of_column = lambda a: a.sum(tuple(range(weight.ndim - 1, a.ndim - 1))).astype(weight.dtype)
    sums = (n * wide(dy), wide(dy))[: 1 + centered]
    return dx.astype(dy.dtype), *map(of_column, sums)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def forward_native(target, centered, x, weight, *bias, save, **params):
    if 0 in x.shape:  # rows of nothing are not read
        return forward(centered, x, weight, *bias, **params)[: None if save else 1]
    like = lambda shape, dtype: jax.ShapeDtypeStruct(shape, dtype)
    saved = [like(x.shape[:-1], wide_dtype(x.dtype))] * (1 + centered if save else 0)
    dims = f"{', '.join(['...n'] * (2 + centered))} -> {', '.join(['...n', *['...'] * len(saved)])}"
    return kernel(target, dims, x, weight, *bias, out=[like(x.shape, x.dtype), *saved], **params)


def backward_native(target, centered, x, weight, *values, eps, **params):
    if 0 in x.shape:
        return backward(centered, x, weight, *values, eps=eps, **params)
    count = 1 + centered  # of what is saved
    saved, linear = values[:count], [a for a in values[count:] if a is not None]
    lead, columns = weight.shape[:-1], x.shape[-1]
    rows = math.prod(x.shape[len(lead) : -1])
    matrix = lambda a: a.reshape(*lead, rows, columns)
    out = [jax.ShapeDtypeStruct((*lead, rows, columns), x.dtype)]
    out += [jax.ShapeDtypeStruct(weight.shape, weight.dtype)] * count
    dims = ["...rn", "...n", *["...r"] * count, *["...rn"] * len(linear)]
    dx, *sums = kernel(
        target, f"{', '.join(dims)} -> ...rn{', ...n' * count}",
        matrix(x), weight, *(a.reshape(*lead, rows) for a in saved), *map(matrix, linear),
        out=out, workspace=workspace(rows, columns, count, x.dtype), **params,
    )  # fmt: skip
    return dx.reshape(x.shape), *sums


def workspace(rows, columns, sums, dtype):
    """Bytes of the sums of columns of so many parts of the rows: the kernel takes their number from it
    (ffi/patterns/rows_with_sums_cuda.h). Where rows are open, it is for many."""
    size, held = wide_dtype(dtype).itemsize, 8 if dtype.itemsize == 8 else 16
    if columns > 512 * held:  # the sums are a pass of their own
        parts = rows // 32 if isinstance(rows, int) else 16
        return max(1, min(16, parts)) * columns * sums * size
    most = 132 if columns > 256 * held else 264
    parts = min(most, rows, -(-rows * columns // (256 * held))) if isinstance(rows, int) else most
    return parts * columns * sums * size


def bodies(name, centered):
    """The bodies of an op, its kernels, and its sharding rule, for `declare`."""
    of = lambda *args: functools.partial(*args, centered)
    references, target = {"forward": of(forward), "tangent": of(tangent), "backward": of(backward)}, f"{name}_backward"
    return dict(
        forward=Body(references["forward"], of(forward_native, name)),
        tangent=Body(references["tangent"]),
        backward=Body(references["backward"], of(backward_native, target)),
        kernels={"forward": (name,), "backward": (target,)},
        library="xla",  # for tangents
        cut=cut({kind: of_shards(fun) for kind, fun in references.items()}),
    )


def of_shards(fun):
    """Of rows that are sharded, in plain JAX: only sums are communicated."""

    def run(run, over, *arrays, save=True, **params):
        return fun(*arrays, **params, over=over)[: None if save else 1]

    return run


# ---------------------------------------------------------------------------------------------------------------------
# Shards


def _labels(names, types, params):
    """All dimensions may be cut, batches that have a weight of their own with it."""
    parts = next(x.ndim for name, x in zip(names, types, strict=True) if name == "weight") - 1

    def of(name, ndim):
        if name in ("weight", "bias"):
            return (*(f"batch{i}" for i in range(ndim - 1)), "n")
        count = ndim if name in ("mean", "r") else ndim - 1
        lead = tuple(f"batch{i}" if i < parts else f"row{i - parts}" for i in range(count))
        return lead if count == ndim else (*lead, "n")

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def cut(of_shards):
    """The sharding rule: `of_shards` has what runs where rows themselves are sharded, by kind."""
    return Partition(_labels, combine={"n": of_shards})
