"""Axes by their taps: each output element gathers, and so does each element of the gradient, by the transposed taps.

Data flow: by kernels, two axes that follow each other are one call, if each has few taps; others are a call each, those
that shrink first. Between calls 16-bit floats are float32. Pattern: resample."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.body import Body
from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype

MOST = 16  # taps that are terms of one expression; more are added up in a loop
FEW = (1, 2, 4, 8)  # taps along two axes that one call takes


# ---------------------------------------------------------------------------------------------------------------------
# In plain JAX


def _reference(x, *, tables, channels_last):
    y = wide(x)
    axes = range(-len(tables) - channels_last, -channels_last)
    for axis, table in sorted(zip(axes, tables, strict=True), key=lambda each: _growth(each[1])):
        if not table.is_identity:
            y = _along(y, table, axis)
    return (y.astype(x.dtype),)


def _growth(table):
    return len(table.index) / table.size


def _along(x, taps, axis):
    """y[o] = sum over t of weight[o, t] x[index[o, t]] along an axis that is counted from the end. Of what has weight 0
    nothing comes, also of NaN."""
    size, count = taps.index.shape
    index = taps.index.T
    weight = taps.weight.T.astype(x.dtype).reshape(count, *(1,) * (x.ndim + axis), size, *(1,) * (-axis - 1))
    if count <= MOST:
        return sum((_term(x, i, w, axis, (w == 0).any()) for i, w in zip(index[1:], weight[1:], strict=True)),
                   _term(x, index[0], weight[0], axis, (weight[0] == 0).any()))  # fmt: skip
    index, weight, has_zeros = jnp.asarray(index), jnp.asarray(weight), (taps.weight == 0).any()
    add = lambda t, y: y + _term(x, index[t], weight[t], axis, has_zeros)
    return lax.fori_loop(1, count, add, _term(x, index[0], weight[0], axis, has_zeros))


def _term(x, index, weight, axis, has_zeros):
    taken = jnp.take(x, index, axis=axis, mode="clip")
    if isinstance(weight, np.ndarray) and (weight == 1).all():
        return taken
    return jnp.where(weight == 0, 0, weight * taken) if has_zeros else weight * taken


# ---------------------------------------------------------------------------------------------------------------------
# By kernels


def passes(tables):
    """The spatial axes of each kernel call, in order: those that shrink most first. Of axes that are alike the last is
    where arrays are smallest: on a CPU its elements, which are next to each other, take longer than rows do."""
    left, found = [i for i, table in enumerate(tables) if not table.is_identity], []
    while left:
        *_, last = left
        if last - 1 in left and _are_few(tables[last - 1 : last + 1]):
            found.append((last - 1, last))
        else:
            found.append((last,))
        left = [i for i in left if i not in found[-1]]

    def order(axes):
        growth = np.prod([_growth(tables[i]) for i in axes])
        return growth, axes[0] if growth < 1 else -axes[0]

    return sorted(found, key=order)


def _are_few(tables):
    count = _common(tables)
    return count is not None and all(count <= table.size for table in tables)


def _common(tables):
    """The number of taps that a kernel has for all of these axes."""
    most = max(len(table.band[1]) for table in tables)
    return next((count for count in FEW if most <= count), None)


def _native(x, *, tables, channels_last, save=False):
    calls = passes(tables)
    first = x.ndim - channels_last - len(tables)
    y = x
    for i, axes in enumerate(calls):
        dtype = x.dtype if i + 1 == len(calls) else wide_dtype(x.dtype)
        y = _pass(y, [tables[axis] for axis in axes], first + axes[0], dtype)
    return (y,)


def _pass(x, tables, axis, dtype):
    """x with its axes from `axis` on by `tables`."""
    count = _common(tables) if len(tables) > 1 else None
    after = x.ndim - axis - len(tables)
    inner = "cdefgh"[:after]
    operands = [part for table in tables for part in _operands(table, count, wide_dtype(x.dtype))]
    shape = (*x.shape[:axis], *(len(table.index) for table in tables), *x.shape[axis + len(tables) :])
    n, m = "nm"[: len(tables)], "op"[: len(tables)]
    of_tables = [f"{letter}, {tap}{letter}" for letter, tap in zip(m, "st", strict=False)]
    dims = f"{', '.join([f'...{n}{inner}', *of_tables])} -> ...{m}{inner}"
    scaled = len(tables) > 1 and _are_scaled(tables, count)
    out = [jax.ShapeDtypeStruct(shape, dtype)]
    (y,) = kernel("resample", dims, x, *operands, out=out, inner_rank=after, scaled=scaled)
    return y


def _are_scaled(tables, count):
    """Whether the axes are all of twice, or all of half, the size, with the taps of such (ffi/patterns/resample.h)."""
    are_twice = {len(table.index) == 2 * table.size for table in tables}
    return len(are_twice) == 1 and all(_is_scaled(table, count) for table in tables)


def _is_scaled(table, count):
    begin, weight = table.band
    out, size = len(begin), table.size
    if len(weight) != count or not ((out == 2 * size and count in (2, 4)) or (2 * out == size and count in (4, 8))):
        return False
    o = np.arange(out)
    first = (o + 1) // 2 - count // 2 if out > size else 2 * o + 1 - count // 2
    tap = begin + np.arange(count)[:, None] - first
    is_read = (tap >= 0) & (tap < count)
    return np.array_equal(begin, np.clip(first, 0, size - count)) and np.array_equal(weight != 0, is_read)


def _operands(table, count, dtype):
    """The band, of so many taps at least."""
    begin, weight = table.band
    more = 0 if count is None else count - len(weight)
    if more:  # before the first one where there are none after the last
        moved = np.maximum(begin - (table.size - count), 0)
        shifted = np.zeros((count, len(begin)))
        at = moved + np.arange(len(weight))[:, None]
        shifted[at, np.arange(len(begin))] = weight
        begin, weight = begin - moved, shifted
    return jnp.asarray(begin, jnp.int32), jnp.asarray(weight, dtype)


# ---------------------------------------------------------------------------------------------------------------------
# What is declared


def _transposed(fun):
    def run(dy, *, tables, **how):
        return fun(dy, tables=tuple(table.transposed for table in tables), **how)

    return run


FORWARD = Body(_reference, _native)
LINEAR = dict(
    operands=("x",),
    differentiable=("x",),
    forward=FORWARD,
    backward=FORWARD.map(_transposed),
    linear=lambda params: params,
    kernels={"forward": ("resample",), "backward": ("resample",)},
)
