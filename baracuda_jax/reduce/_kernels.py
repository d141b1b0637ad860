"""The kernel calls that the native bodies are made of."""

import math

import jax

from .._core.kernel import kernel

MOST = 10  # dimensions, of slices and others in turn, that a kernel sees: ElementDimensions of ffi/patterns/reduce.h
_LETTERS = "abcdefghij"


def kept_of(shape, axes):
    """The shape without the axes."""
    return [n for i, n in enumerate(shape) if i not in axes]


def reduce(target, x, axes, dtypes, **attributes):
    """Calls a reduction of x over axes; the results have the others."""
    kept = kept_of(x.shape, axes)
    x, axes = _merged(x, axes)
    batch, core = _layout(x.shape, axes)
    out = [jax.ShapeDtypeStruct((*batch, *core[1::2]), dtype) for dtype in dtypes]
    results = kernel(
        target, _dims(core, [True], [False] * len(dtypes)), x.reshape(*batch, *core), out=out,
        workspace=workspace(batch, core, x.dtype), rank=len(core), **attributes,
    )  # fmt: skip
    return [y.reshape(kept) for y in results]


def broadcast(target, shape, axes, full, per_slice, **attributes):
    """Calls a gradient, of the shape of what was reduced over axes: `full` are arrays of that shape, `per_slice` of the
    result's."""
    order = _order(shape, axes)
    if order is not None:
        turned = lambda x: x.transpose(order)
        axes = tuple(range(len(shape) - len(axes), len(shape)))
        shape, full = [shape[i] for i in order], [turned(x) for x in full]
    batch, core = _layout(shape, axes)
    whole, slices = (*batch, *core), (*batch, *core[1::2])
    arrays = *(x.reshape(whole) for x in full), *(y.reshape(slices) for y in per_slice)
    dims = _dims(core, [True] * len(full) + [False] * len(per_slice), [True])
    out = [jax.ShapeDtypeStruct(whole, per_slice[-1].dtype)]
    (dx,) = kernel(target, dims, *arrays, out=out, rank=len(core), **attributes)
    dx = dx.reshape(shape)
    return dx if order is None else dx.transpose([order.index(i) for i in range(len(order))])


def _layout(shape, axes):
    """The dimensions before the first that is reduced, and those from there on, merged: reduced and kept in turn."""
    first = min(axes, default=len(shape))
    core = [1]
    for i in range(first, len(shape)):
        if shape[i] == 1:
            continue
        if (len(core) % 2 == 1) == (i in axes):
            core[-1] *= shape[i]
        else:
            core.append(shape[i])
    return tuple(shape[:first]), core


def _order(shape, axes):
    """The dimensions with the reduced ones last, where there are too many groups of them; else None."""
    if len(_layout(shape, axes)[1]) <= MOST:
        return None
    return [i for i in range(len(shape)) if i not in axes] + sorted(axes)


def _merged(x, axes):
    order = _order(x.shape, axes)
    return (x, axes) if order is None else (x.transpose(order), tuple(range(x.ndim - len(axes), x.ndim)))


def _dims(core, operands, results):
    term = lambda is_full: "..." + (_LETTERS[: len(core)] if is_full else _LETTERS[1 : len(core) : 2])
    return " -> ".join(", ".join(map(term, side)) for side in (operands, results))


def workspace(batch, core, dtype):
    """Bytes for each batch of the states of parts of slices: ReduceGrid of ffi/patterns/reduce_cuda.h says how many parts
    there are. A state has at most four numbers of 8 bytes."""
    if not all(isinstance(n, int) for n in (*batch, *core)):
        return 0  # in an export for any size
    batches, count, has_columns = math.prod(batch), math.prod(core[::2]), len(core) % 2 == 0
    columns = core[-1] if has_columns else 1
    slices = batches * math.prod(core[1::2]) // max(columns, 1)
    if not batches or not slices * columns * count:
        return 0
    width = max(8 // dtype.itemsize, 1) if has_columns else min(16 // dtype.itemsize, 8)
    width = width if core[-1] % width == 0 else 1
    ahead, lanes, groups, tiles = 4, 1, 1, 1
    if not has_columns:
        while lanes < 256 and lanes * width * (2 if lanes < 32 else ahead) < count:
            lanes *= 2
    else:
        wide = -(-columns // width)
        lanes = min(wide, 32)
        while 2 * groups * lanes <= 256 and 2 * groups * ahead <= count and wide * slices * groups < 132 * 2048:
            groups *= 2
        while 2 * lanes * groups <= 256 and lanes < wide:
            lanes *= 2
        lanes = min(lanes, wide)
        tiles = -(-columns // (lanes * width))
    elements = (groups if has_columns else lanes * width) * ahead
    blocks = -(-slices // min(256 // (lanes * groups), 64 if has_columns else 256)) * tiles
    parts = -(-1056 // blocks) if blocks < 1056 else 1
    parts = max(min(parts, count // (2 * elements)), -(-count // (256 * elements)))
    return -(-(slices * columns * parts * 32 + 256) // batches) if parts > 1 else 0
