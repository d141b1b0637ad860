"""Each element several times in a row, along an axis.

With one number for all it is `repeat` of an axis of one element. With a number for each, rows of x are taken by an index
that rises, and the gradient sums segments of rows."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core import prefer as preference
from .._core.api import api
from .._core.bits import words
from .._core.case import Case
from .._core.compiled import compiled, sent
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.types import Implementation
from .._core.wide import wide
from ..histogram._search import search
from ..segment._kernels import reduce
from ._family import FAMILY, operand, spaced
from ._partition import WHOLE
from ._repeat import repeat


@api
def repeat_interleave(
    x: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    implementation: Implementation = None,
) -> Array:
    """Repeat each element of x, along an axis.

    Formula:
        y[..., j, ...] = x[..., i, ...], where i is the first with repeats[0] + ... + repeats[i] > j, or the last one;
        dx[..., i, ...] = sum of dy over the copies of i.

    Args:
        x: array of any rank: floats, integers, bool or complex.
        repeats: one static integer; or an array of integers of at least 0, one for each element along the axis, or one for
            all. It may be traced if total_repeat_length is given.
        axis: a static integer; None to flatten x.
        total_repeat_length: how many elements y has along the axis, a static integer: copies after these are left out, and
            if there are fewer the last element is repeated. By default the sum of repeats.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; for traced repeats without
            total_repeat_length.

    Precision: values are moved as they are. The gradient's sums are formed in float32 for float16 and bfloat16, in the dtype
        itself for others, in a fixed order: results are the same bits every time.

    Source: jax.numpy.repeat; torch.repeat_interleave.
    """
    op = "repeat_interleave"
    x = operand(op, "x", x)
    if axis is None:
        x, axis = explicit.reshape(x, -1), 0
    axis = checks.axis(op, "x", x, axis)
    if _is_one(repeats) and total_repeat_length is None:
        times = checks.integer(op, "repeats", repeats, 0)
        outer, inner = x.shape[: axis + 1], x.shape[axis + 1 :]
        y = repeat(explicit.reshape(x, *outer, 1, *inner), (times, *(1,) * len(inner)), implementation=implementation)
        return explicit.reshape(y, *x.shape[:axis], times * x.shape[axis], *inner)
    rows = _rows(op, x.shape[axis], repeats, total_repeat_length, implementation)
    return _repeat_interleave(x, rows, axis=axis - x.ndim, count=x.shape[axis], implementation=implementation)


@api
def repeat_interleave_backward(
    dy: ArrayLike, repeats: ArrayLike, axis: int | None = None, *, implementation: Implementation = None
) -> Array:
    """The gradient of `repeat_interleave`: dx[..., i, ...] = sum of dy over the copies of i.

    Args:
        dy: floats or complex, the cotangent of the result.
        repeats: an array of integers, one for each element of x along the axis. It may be traced.
        axis: a static integer; None for that of a dy of one axis.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "repeat_interleave_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    axis, repeats = (
        checks.axis(op, "dy", dy.reshape(-1) if axis is None else dy, axis or 0),
        checks.array(op, "repeats", repeats),
    )
    if repeats.ndim != 1:
        raise ValueError(f"{op}: repeats must have one dimension, got shape {tuple(repeats.shape)}")
    rows = _rows(op, repeats.shape[0], repeats, dy.shape[axis], implementation)
    return _repeat_interleave.vjp(rows, dy, axis=axis - dy.ndim, count=repeats.shape[0], implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _is_one(repeats):
    """Whether it is a number of Python or NumPy, or what is to be told that it is none."""
    return not isinstance(repeats, tuple | list | np.ndarray | jax.Array) or (
        isinstance(repeats, np.ndarray) and repeats.ndim == 0
    )


def _rows(op, count, repeats, total, implementation):
    """Of each element of y the one of x that it is a copy of: int32 numbers in ascending order."""
    # What is on the device stays there, unless the result's shape depends on it.
    is_known = not isinstance(repeats, jax.Array) or (total is None and not isinstance(repeats, jax.core.Tracer))
    known = np.asarray(repeats) if is_known else None
    repeats = checks.array(op, "repeats", repeats) if known is None else known
    checks.dtype(op, "repeats", repeats, checks.INTEGERS)
    if repeats.shape not in ((), (1,), (count,)):
        raise ValueError(
            f"{op}: repeats must be one integer or have shape ({count},), one for each element of x, got {repeats.shape}"
        )
    if known is not None and known.size and known.min() < 0:
        raise ValueError(f"{op}: repeats must be at least 0, got {known.min()}")
    if total is None:
        if known is None:
            raise TypeError(f"{op}: total_repeat_length must be given where repeats are traced")
        total = int(_at_most(known, count, checks.MOST_POSITIONS + 1).sum())
    total = checks.integer(op, "total_repeat_length", total, 0)
    checks.positions(op, "the result", max(total, count), "elements along the axis")
    if count == 0:
        if total:
            raise ValueError(f"{op}: total_repeat_length must be 0 where x has no elements along the axis, got {total}")
        return jnp.zeros(0, jnp.int32)
    if known is not None:
        return sent(_known_rows(known, count, total))
    implementation = preference.resolve(
        op, implementation
    )  # the compiled part is kept, whatever the context says later
    return _traced_rows(repeats, count=count, total=total, implementation=implementation)


def _at_most(repeats, count, most):
    """One for each element. Greater numbers than `most` say no more than that one, and the sum stays in 64 bits."""
    return np.minimum(np.broadcast_to(repeats, (count,)).astype(np.uint64), np.uint64(most)).astype(np.int64)


def _known_rows(repeats, count, total):
    ends = np.minimum(np.cumsum(_at_most(repeats, count, total)), total)
    each = np.repeat(np.arange(count, dtype=np.int32), np.diff(ends, prepend=0))
    return np.pad(each, (0, total - each.size), constant_values=count - 1)


@compiled("count", "total", "implementation")
def _traced_rows(repeats, *, count, total, implementation):
    """The number of an element is how many ends of copies are not after it. These are searched and not scattered: where the
    shards of indices are unequal, XLA adds some twice."""
    each = _on_every_device(jnp.broadcast_to(repeats, (count,)), implementation)
    most = jnp.minimum(each, jnp.asarray(min(total, jnp.iinfo(each.dtype).max), each.dtype)).astype(jnp.int32)
    ends = jax.lax.associative_scan(lambda a, b: jnp.minimum(a, total - b) + b, jnp.maximum(most, 0))
    rows = search(ends, jnp.arange(total, dtype=jnp.int32), right=True, implementation=implementation)
    return jnp.minimum(rows, count - 1)


def _on_every_device(x, implementation):
    """x, gathered as the op gathers what it takes from: a scan of shards would communicate at each of its steps."""
    x = explicit.whole(x)
    return _repeat_interleave(
        x, jnp.arange(x.shape[0], dtype=jnp.int32), axis=-1, count=x.shape[0], implementation=implementation
    )


# ---------------------------------------------------------------------------------------------------------------------
# References and kernel calls. rows [m], or of some of the batches.


def _flat(x, axis):
    """[*batches, n, d]"""
    axis += x.ndim
    return x.reshape(*x.shape[: axis + 1], math.prod(x.shape[axis + 1 :]))


def _unflat(y, like, axis):
    return y.reshape(*y.shape[:-1], *like.shape[axis + like.ndim + 1 :])


def _each_batch(fun, x, rows):
    more, shared = x.ndim - 2, rows.ndim - 1
    for i in range(more):
        fun = jax.vmap(fun, (0, None if i < more - shared else 0))
    return fun(x, rows)


def _reference(x, rows, *, axis, count):
    return (_unflat(_each_batch(lambda x, rows: x[rows], _flat(x, axis), rows), x, axis),)


def _backward_reference(rows, dy, *, axis, count):
    zeros = lambda dy: jnp.zeros((count, dy.shape[-1]), dy.dtype)
    each = lambda dy, rows: zeros(dy).at[rows].add(dy, indices_are_sorted=True)
    return (_unflat(_each_batch(each, wide(_flat(dy, axis)), rows).astype(dy.dtype), dy, axis),)


def _native(x, rows, *, save=False, axis, count):
    flat = _flat(x, axis)
    out = [jax.ShapeDtypeStruct((*flat.shape[:-2], rows.shape[-1], flat.shape[-1]), x.dtype)]
    return [_unflat(kernel("take_rows", "...nd, ...m -> ...md", flat, rows, out=out, fill=words(b""))[0], x, axis)]


def _backward_native(rows, dy, *, axis, count):
    flat = _flat(dy, axis)
    parts = jnp.stack([flat.real, flat.imag], -1) if jnp.iscomplexobj(flat) else flat
    how = dict(axis=flat.ndim - 2, num_segments=count, sorted=True, empty_bits=0)
    (sums,) = reduce("segment_sum", parts, rows, [parts.dtype], **how)
    sums = jax.lax.complex(sums[..., 0], sums[..., 1]) if jnp.iscomplexobj(flat) else sums
    return [_unflat(sums, dy, axis)]


def _labels(names, types, params):
    moved, rank = -params["axis"], max(x.ndim for x in types)

    def of(name, ndim):
        if name == "rows":
            return (*(f"d{rank - i}" for i in range(ndim - 1)), "rows")
        side = "y" if name == "y" else "x"
        return tuple(f"{side}{i}" if i == moved else f"d{i}" for i in range(ndim, 0, -1))

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _case(name, shape, repeats, total, **kwargs):
    draw = lambda rng: (spaced(rng, *shape), np.array(repeats))
    return Case(name, draw, dict(total_repeat_length=total, **kwargs))


_repeat_interleave = declare(
    "repeat_interleave",
    **FAMILY,
    public=repeat_interleave,
    cases=(
        _case("rows", (5, 6), (2, 0, 3, 1, 2), 8, axis=0),
        _case("columns", (3, 4), (1, 3, 0, 2), 6, axis=1),
        _case("flat", (7,), (3, 1, 0, 0, 2, 5, 1), 12),
        _case("too short", (4, 8), (1, 2, 3, 2), 5, axis=0),
        _case("too long", (2, 3, 4), (2, 1, 1), 7, axis=1),
    ),
    operands=("x", "rows"),
    differentiable=("x",),
    constant={"rows": "positions are integers"},
    residuals=("rows",),
    shared={"rows": 1},
    linear=lambda params: params,
    forward=Body(_reference, _native),
    backward=Body(_backward_reference, _backward_native),
    cut=Partition(_labels, whole=WHOLE | {"rows"}),
    also=("searchsorted",),
    kernels={"forward": ("take_rows",), "backward": ("segment_sum",)},
    sometimes=("segment_index",),
)
