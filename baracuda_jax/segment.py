"""Segment reductions: rows of `data` with the same id are reduced to one.

Data flow: the ids are turned into an index (a stable sort of the row numbers by segment, and the place where each segment
begins), then each segment reads its rows in order. Pattern: segment. The gradients read the ids alone, pattern: gather,
every cell of the data's gradient computing itself. Two ops on the same ids in one program share the index: XLA computes
equal calls once.

Throughout, `axis` is the number of leading batch dimensions of the data. The ids have as many, or fewer: each of their
batches then serves several of the data's.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._core import checks
from ._core.case import Case
from ._core.kernel import kernel
from ._core.op import Body, declare

NUMBERS = (*checks.FLOATS, *checks.INTEGERS)
MOST_ROWS = 2**32 - 2
MOST_SEGMENTS = 2**31 - 1

_DOC = """

    Formula:
        {formula}

    Args:
        data: array [N, ...] of {dtypes}, or with batches [*batch, N, ...] when segment_ids is [*batch, N].
        segment_ids: integers [N]; row n belongs to segment segment_ids[n]. Rows whose id is outside [0, num_segments),
            negative ids too, belong to none and are dropped. In any order.
        num_segments: static integer; by default max(segment_ids) + 1, which is computed from the values and therefore
            must be given under jit.
        indices_are_sorted: promise that segment_ids is sorted, which saves the sort. The result is the same. If the
            promise is broken, the result is unspecified.
{more}        empty_value: static scalar for segments without rows; by default {empty}.
        prefer: "native" (our kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        {returns}

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: {precision} Rows are taken in order, so results are the same bits every time.

    Source: jax.ops.segment_{name}; torch.scatter_reduce; torch_scatter.
    """


def _document(formula, empty, more="", returns=None, precision=None, dtypes="a float or integer type"):
    def decorate(fun):
        name = fun.__name__.removeprefix("segment_")
        fun.__doc__ += _DOC.format(
            name=name,
            formula=formula,
            empty=empty,
            more=more,
            dtypes=dtypes,
            returns=returns or "Array [num_segments, ...] (with the batches, if any), of data's dtype.",
            precision=precision or "float16 and bfloat16 accumulate in float32; integers wrap.",
        )
        return fun

    return decorate


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _arguments(op, data, segment_ids, num_segments, indices_are_sorted, dtypes):
    data, ids = checks.array(op, "data", data), checks.array(op, "segment_ids", segment_ids)
    checks.dtype(op, "data", data, dtypes)
    if data.ndim < 1:
        raise ValueError(f"{op}: data must have at least one dimension, the rows; got a scalar")
    ids = _check_ids(op, ids)
    if data.shape[: ids.ndim] != ids.shape:
        raise ValueError(
            f"{op}: segment_ids must have the shape of data's leading dimensions, one id a row: expected "
            f"{tuple(data.shape[: max(ids.ndim, 1)])} of data {tuple(data.shape)}, got {tuple(ids.shape)}"
        )
    return data, ids, {
        "axis": ids.ndim - 1,
        "num_segments": _num_segments(op, segment_ids, num_segments),
        "sorted": checks.flag(op, "indices_are_sorted", indices_are_sorted),
    }  # fmt: skip


def _check_ids(op, ids):
    checks.dtype(op, "segment_ids", ids, checks.INTEGERS)
    if ids.ndim < 1:
        raise ValueError(f"{op}: segment_ids must have at least one dimension, the rows; got a scalar")
    if ids.shape[-1] > MOST_ROWS:
        raise ValueError(f"{op}: segment_ids may have at most {MOST_ROWS} rows, got {ids.shape[-1]}")
    return ids


def _num_segments(op, ids, num_segments):
    if num_segments is None:
        if isinstance(ids, jax.core.Tracer):
            raise ValueError(
                f"{op}: num_segments must be given under jit and other transformations, where the values of segment_ids "
                "are not known: the result's shape depends on it"
            )
        ids = np.asarray(ids)
        num_segments = int(ids.max(initial=-1)) + 1 if ids.size else 0
        num_segments = max(num_segments, 0)
    num_segments = checks.integer(op, "num_segments", num_segments, 0)
    if num_segments > MOST_SEGMENTS:
        raise ValueError(f"{op}: num_segments must be at most {MOST_SEGMENTS}, got {num_segments}")
    return num_segments


def _empty_bits(op, value, dtype):
    """`value` in data's dtype, as the bits that a kernel gets."""
    if isinstance(value, jax.core.Tracer) or np.ndim(value) != 0:
        raise TypeError(f"{op}: empty_value must be a static scalar, got {value!r}")
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        if value != int(value) or not info.min <= value <= info.max:
            raise ValueError(f"{op}: empty_value must be an integer in [{info.min}, {info.max}], got {value!r}")
        value = int(value)
    return int.from_bytes(np.asarray(value, dtype).tobytes().ljust(8, b"\0"), "little", signed=True)


def _from_bits(bits, dtype):
    return np.frombuffer(bits.to_bytes(8, "little", signed=True)[: dtype.itemsize], dtype)[0]


def _lowest(dtype):
    return -math.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).min


def _highest(dtype):
    return math.inf if jnp.issubdtype(dtype, jnp.inexact) else jnp.iinfo(dtype).max


# ---------------------------------------------------------------------------------------------------------------------
# The pieces that the native bodies are made of


def _flat(x, axis):
    """[*batch, N, ...] as [*batch, N, D]."""
    shape = (*x.shape[: axis + 1], math.prod(x.shape[axis + 1 :]))
    return x if x.shape == shape else x.reshape(shape)


def _result(x, axis, num_segments, dtype=None):
    """The type of a result: rows [*batch, N, D] with segments for rows."""
    return jax.ShapeDtypeStruct((*x.shape[:axis], num_segments, x.shape[-1]), dtype or x.dtype)


def _unflat(y, like, axis):
    """[*batch, S, D] with the trailing dimensions of `like` [*batch, N, ...]."""
    shape = (*y.shape[: axis + 1], *like.shape[axis + 1 :])
    return y if y.shape == shape else y.reshape(shape)


def _kernel_ids(ids):
    """The kernels read int32 and int64. No id that is too large for those is the id of a segment."""
    if ids.dtype in (jnp.int32, jnp.int64):
        return ids
    if ids.dtype == jnp.uint64:
        return jnp.minimum(ids, MOST_SEGMENTS).astype(jnp.int32)
    if ids.dtype == jnp.uint32:
        return jnp.minimum(ids, MOST_SEGMENTS).astype(jnp.int32)
    return ids.astype(jnp.int32)


def _index(ids, num_segments, sorted):
    """perm and offsets: the rows of segment s are perm[offsets[s]:offsets[s + 1]]; sorted rows need no perm."""
    shape = lambda last: jax.ShapeDtypeStruct((*ids.shape[:-1], last), jnp.uint32)
    out = [shape(0 if sorted else ids.shape[-1]), shape(num_segments + 1)]
    return kernel("segment_index", "...n -> ...p, ...q", _kernel_ids(ids), out=out, sorted=sorted)


def _counts(offsets):
    return jnp.diff(offsets, axis=-1).astype(jnp.int32)


def _index_dtype(rows):
    return jnp.int32 if rows < 2**31 else jnp.uint32


def _reduce(target, data, index, out, *, axis, num_segments, empty_bits, counts=()):
    """Calls a reduction. `out` are the dtypes of its results."""
    rows = _flat(data, axis)
    dims = f"...nd, ...p, ...q{', ...s' * len(counts)} -> {', '.join(['...sd'] * len(out))}"
    types = [_result(rows, axis, num_segments, dtype) for dtype in out]
    results = kernel(target, dims, rows, *index, *counts, out=types, empty_bits=empty_bits)
    return [_unflat(y, data, axis) for y in results]


def _gradient(target, dims, *operands, axis):
    """Calls a backward target, whose result has a row for each id. The last operand is dy."""
    terms = [term.strip() for term in dims.partition("->")[0].split(",")]
    dy, rows = operands[-1], operands[terms.index("...n")].shape[-1]
    flat = [_flat(x, axis) if term.endswith("d") else x for x, term in zip(operands, terms, strict=True)]
    flat = [_kernel_ids(x) if term == "...n" else x for x, term in zip(flat, terms, strict=True)]
    out = jax.ShapeDtypeStruct((*dy.shape[:axis], rows, flat[-1].shape[-1]), dy.dtype)
    return _unflat(kernel(target, dims, *flat, out=[out])[0], dy, axis)


def _each_row(x, ids, axis):
    """Each row's x [*batch, S, ...], zero for rows that are dropped: the gradient of the sum."""
    return _gradient("segment_sum_backward", "...n, ...sd -> ...nd", ids, x, axis=axis)


# ---------------------------------------------------------------------------------------------------------------------
# The pieces that the references are made of


def _per_batch(fun, axis):
    """fun of arrays without batches, as one of arrays with `axis` batch dimensions."""
    for _ in range(axis):
        fun = jax.vmap(fun)
    return fun


def _spread(x, batch):
    """Repeats [batches of ids..., K] for each batch of the data."""
    missing = len(batch) - (x.ndim - 1)
    return jnp.broadcast_to(x.reshape(*x.shape[:-1], *(1,) * missing, x.shape[-1]), (*batch, x.shape[-1]))


def _segment(ids, num_segments):
    """Ids with `num_segments` for those out of range."""
    inside = (ids >= 0) & (ids < num_segments) if num_segments else jnp.zeros(ids.shape, bool)
    return jnp.where(inside, ids, 0).astype(jnp.int32) + jnp.where(inside, 0, num_segments)


def _column(x, like):
    """[K] shaped to go with [K, ...]."""
    return x.reshape(x.shape + (1,) * (like.ndim - 1))


def _count(ids, num_segments):
    count = lambda ids: jax.ops.segment_sum(jnp.ones(ids.shape, jnp.int32), _segment(ids, num_segments), num_segments)
    return _per_batch(count, ids.ndim - 1)(ids)


def _wide(x):
    return x.astype(jnp.float32) if x.dtype.name in ("float16", "bfloat16") else x


def _reduce_reference(fun, data, ids, *, axis, num_segments, empty_bits, **_):
    """fun(rows in a wide dtype, segments) by batch, with `empty_value` for segments without rows."""

    def one(data, ids):
        y = fun(_wide(data), _segment(ids, num_segments)).astype(data.dtype)
        empty = _column(_count(ids, num_segments) == 0, y)
        return jnp.where(empty, _from_bits(empty_bits, data.dtype), y)

    return _per_batch(one, axis)(data, _spread(ids, data.shape[:axis]))


def _take(x, ids, axis):
    """As `_each_row`."""

    def one(x, ids):
        if not x.shape[0]:
            return jnp.zeros((*ids.shape, *x.shape[1:]), x.dtype)
        inside = (ids >= 0) & (ids < x.shape[0])
        return jnp.where(_column(inside, x), x[jnp.where(inside, ids, 0)], 0)

    return _per_batch(one, axis)(x, _spread(ids, x.shape[:axis]))


# ---------------------------------------------------------------------------------------------------------------------
# sum


@_document("y[s] = sum of data[n] over the rows n with segment_ids[n] == s", empty="0")
def segment_sum(
    data, segment_ids, num_segments=None, *, indices_are_sorted=False, empty_value=0, prefer=None
):
    """Sum of the rows of each segment."""
    op = "segment_sum"
    data, ids, params = _arguments(op, data, segment_ids, num_segments, indices_are_sorted, NUMBERS)
    return _sum(data, ids, **params, empty_bits=_empty_bits(op, empty_value, data.dtype), prefer=prefer)


def segment_sum_backward(segment_ids, dy, *, prefer=None):
    """The gradient of `segment_sum`: dx[n] = dy[segment_ids[n]], zero for dropped rows.

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        dy: floats [num_segments, ...], the cotangent of the result.
        prefer: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    ids, params = _backward_arguments("segment_sum_backward", segment_ids, dy)
    return _sum.vjp(ids, dy, **params, prefer=prefer)


def _backward_arguments(op, ids, dy, same=(), per_segment=()):
    """Checks a backward function's arguments; `same` and `per_segment` are (name, array) shaped as dy, and as the ids with
    segments for rows."""
    ids = _check_ids(op, checks.array(op, "segment_ids", ids))
    checks.dtype(op, "dy", dy, checks.FLOATS)
    axis = ids.ndim - 1
    if dy.ndim < ids.ndim or dy.shape[:axis] != ids.shape[:axis]:
        raise ValueError(
            f"{op}: dy must be [*batch, num_segments, ...] with the batches of segment_ids, {tuple(ids.shape[:axis])}, "
            f"got {tuple(dy.shape)}"
        )
    for name, x in same:
        checks.shape(op, name, x, dy.shape, "that of dy")
    for name, x in per_segment:
        checks.shape(op, name, x, dy.shape[: axis + 1], "one a segment")
    return ids, {"axis": axis, "num_segments": dy.shape[axis], "sorted": False, "empty_bits": 0}


def _sum_native(data, ids, *, save, axis, num_segments, sorted, empty_bits):
    index = _index(ids, num_segments, sorted)
    return _reduce(
        "segment_sum", data, index, [data.dtype], axis=axis, num_segments=num_segments, empty_bits=empty_bits
    )


def _sum_reference(data, ids, **params):
    return (_reduce_reference(lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"]), data, ids, **params),)


def _spaced(rng, *shape):
    """Random values, no two alike: finite differences meet no tie."""
    return rng.permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)


def _cases(*names, draw_data=None, **kwargs):
    """The shapes that every segment op is tried on."""
    normal = draw_data or _spaced

    def ids(rng, shape, low, high, dtype=np.int32):
        return rng.integers(low, high, shape).astype(dtype)

    table = {
        "rows": (lambda r: (normal(r, 37, 6), ids(r, 37, 0, 9)), dict(num_segments=9)),
        "vector": (lambda r: (normal(r, 50), ids(r, 50, 0, 7, np.int8)), dict(num_segments=7)),
        "dropped": (lambda r: (normal(r, 23, 3), ids(r, 23, -3, 9)), dict(num_segments=6)),
        "sorted": (
            lambda r: (normal(r, 29, 5), np.sort(ids(r, 29, -1, 12))),
            dict(num_segments=11, indices_are_sorted=True),
        ),
        "batched": (lambda r: (normal(r, 2, 13, 2, 2), ids(r, (2, 13), 0, 4)), dict(num_segments=4)),
    }
    return tuple(
        Case(name, draw, {**table_kwargs, **kwargs}) for name, (draw, table_kwargs) in table.items() if not names or name in names
    )


_FAMILY = dict(
    family="segment",
    operands=("data", "segment_ids"),
    differentiable=("data",),
    shared={"segment_ids": 1, "counts": 1},
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)

_sum = declare(
    "segment_sum",
    **_FAMILY,
    public=segment_sum,
    dtypes=NUMBERS,
    cases=_cases(),
    residuals=("segment_ids",),
    linear=lambda params: {**params, "empty_bits": 0},
    forward=Body(_sum_reference, _sum_native),
    backward=Body(
        reference=lambda ids, dy, *, axis, **_: (_take(dy, ids, axis),),
        native=lambda ids, dy, *, axis, **_: (_each_row(dy, ids, axis),),
    ),
    kernels={"forward": ("segment_index", "segment_sum"), "backward": ("segment_sum_backward",)},
)


# ---------------------------------------------------------------------------------------------------------------------
# mean


@_document(
    "y[s] = (sum of data[n] over the rows n with segment_ids[n] == s) / (number of those rows)",
    empty="0",
    more="        return_residuals: also return the number of rows of each segment, int32.\n",
    dtypes="a float type",
)
def segment_mean(
    data,
    segment_ids,
    num_segments=None,
    *,
    indices_are_sorted=False,
    return_residuals=False,
    empty_value=0,
    prefer=None,
):
    """Mean of the rows of each segment."""
    op = "segment_mean"
    data, ids, params = _arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    save = checks.flag(op, "return_residuals", return_residuals)
    bits = _empty_bits(op, empty_value, data.dtype)
    out = _mean(data, ids, **params, empty_bits=bits, save=save, prefer=prefer)
    return tuple(out) if save else out


def segment_mean_backward(segment_ids, counts, dy, *, prefer=None):
    """The gradient of `segment_mean`: dx[n] = dy[s] / counts[s] with s = segment_ids[n], zero for dropped rows.

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        counts: int32 [num_segments], the number of rows of each segment, as `segment_mean` returns it.
        dy: floats [num_segments, ...], the cotangent of the result.
        prefer: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    op = "segment_mean_backward"
    checks.dtype(op, "counts", counts, ("int32",))
    ids, params = _backward_arguments(op, segment_ids, dy, per_segment=[("counts", counts)])
    return _mean.vjp(ids, counts, dy, **params, prefer=prefer)


def _align(ids, counts):
    """Ids and counts with the same batches, whichever has more."""
    batch = max(ids.shape[:-1], counts.shape[:-1], key=len)
    return _spread(ids, batch), _spread(counts, batch)


def _mean_kernel(data, index, counts, *, axis, num_segments, empty_bits, **_):
    shape = dict(axis=axis, num_segments=num_segments, empty_bits=empty_bits)
    return _reduce("segment_mean", data, index, [data.dtype], counts=[counts], **shape)[0]


def _mean_native(data, ids, *, save, **params):
    index = _index(ids, params["num_segments"], params["sorted"])
    counts = _counts(index[1])
    y = _mean_kernel(data, index, counts, **params)
    return (y, counts) if save else (y,)


def _mean_tangent_native(ids, counts, t, **params):
    ids, counts = _align(ids, counts)
    index = _index(ids, params["num_segments"], params["sorted"])
    return (_mean_kernel(t, index, counts, **{**params, "empty_bits": 0}),)


def _mean_backward_native(ids, counts, dy, *, axis, **_):
    ids, counts = _align(ids, counts)
    return (_gradient("segment_mean_backward", "...n, ...s, ...sd -> ...nd", ids, counts, dy, axis=axis),)


def _divide(y, counts, axis):
    one = lambda y, counts: (_wide(y) / _column(jnp.maximum(counts, 1), y).astype(_wide(y).dtype)).astype(y.dtype)
    return _per_batch(one, axis)(y, _spread(counts, y.shape[:axis]))


def _mean_of(data, ids, counts, *, axis, num_segments, **_):
    def one(data, ids, counts):
        total = jax.ops.segment_sum(_wide(data), _segment(ids, num_segments), num_segments)
        return _divide(total, counts, 0).astype(data.dtype)

    batch = data.shape[:axis]
    return _per_batch(one, axis)(data, _spread(ids, batch), _spread(counts, batch))


def _mean_reference(data, ids, **params):
    counts = _count(ids, params["num_segments"])
    y, axis = _mean_of(data, ids, counts, **params), params["axis"]
    fill = lambda y, counts: jnp.where(_column(counts == 0, y), _from_bits(params["empty_bits"], data.dtype), y)
    return _per_batch(fill, axis)(y, _spread(counts, y.shape[:axis])), counts


_mean = declare(
    "segment_mean",
    **_FAMILY,
    public=segment_mean,
    dtypes=checks.FLOATS,
    cases=_cases(),
    results=("y", "counts"),
    follows={"counts": "segment_ids"},
    residuals=("segment_ids", "counts"),
    forward=Body(_mean_reference, _mean_native),
    tangent=Body(lambda ids, counts, t, **params: (_mean_of(t, ids, counts, **params),), _mean_tangent_native),
    backward=Body(
        reference=lambda ids, counts, dy, *, axis, **_: (_take(_divide(dy, counts, axis), ids, axis),),
        native=_mean_backward_native,
    ),
    kernels={
        "forward": ("segment_index", "segment_mean"),
        "tangent": ("segment_index", "segment_mean"),
        "backward": ("segment_mean_backward",),
    },
)


# ---------------------------------------------------------------------------------------------------------------------
# max and min: the lowest row that has the extreme value takes the gradient, or all that have it share it


def _extremum(op, first, split, data, segment_ids, num_segments, indices_are_sorted, ties, residuals, empty, prefer):
    data, ids, params = _arguments(op, data, segment_ids, num_segments, indices_are_sorted, NUMBERS)
    save = checks.flag(op, "return_residuals", residuals)
    if empty is None:
        empty = _lowest(data.dtype) if op == "segment_max" else _highest(data.dtype)
    bits = _empty_bits(op, empty, data.dtype)
    which = first if checks.choice(op, "ties", ties, ("first", "split")) == "first" else split
    out = which(data, ids, **params, empty_bits=bits, save=save, prefer=prefer)
    return tuple(out) if save else out


_EXTREMUM_ARGUMENTS = """\
        ties: where rows tie, "first" gives the whole gradient to the lowest row number, "split" gives equal parts to all,
            as jax.ops does.
        return_residuals: also return what the backward function needs: with ties="first" the winning row of each cell
            (N where there is none), with ties="split" the number of rows that tie.
"""


@_document(
    "y[s] = max of data[n] over the rows n with segment_ids[n] == s; NaN if any of them is",
    empty="-inf, or the lowest integer",
    more=_EXTREMUM_ARGUMENTS,
    precision="exact.",
)
def segment_max(
    data,
    segment_ids,
    num_segments=None,
    *,
    indices_are_sorted=False,
    ties="first",
    return_residuals=False,
    empty_value=None,
    prefer=None,
):
    """Maximum of the rows of each segment."""
    rest = (data, segment_ids, num_segments, indices_are_sorted, ties, return_residuals, empty_value, prefer)
    return _extremum("segment_max", _max, _max_split, *rest)


@_document(
    "y[s] = min of data[n] over the rows n with segment_ids[n] == s; NaN if any of them is",
    empty="+inf, or the highest integer",
    more=_EXTREMUM_ARGUMENTS,
    precision="exact.",
)
def segment_min(
    data,
    segment_ids,
    num_segments=None,
    *,
    indices_are_sorted=False,
    ties="first",
    return_residuals=False,
    empty_value=None,
    prefer=None,
):
    """Minimum of the rows of each segment."""
    rest = (data, segment_ids, num_segments, indices_are_sorted, ties, return_residuals, empty_value, prefer)
    return _extremum("segment_min", _min, _min_split, *rest)


def _extremum_backward(op, which, segment_ids, winner, dy, prefer):
    checks.dtype(op, "winner", winner, ("int32", "uint32"))
    ids, params = _backward_arguments(op, segment_ids, dy, same=[("winner", winner)])
    return which.vjp(ids, winner, dy, **params, prefer=prefer)


def segment_max_backward(segment_ids, winner, dy, *, prefer=None):
    """The gradient of `segment_max` with ties="first": dx[n] = dy[s] if winner[s] == n, else 0, with s = segment_ids[n].

    Args:
        segment_ids: integers [N] (or with batches [*batch, N]).
        winner: int32 [num_segments, ...], the row that each cell came from, as `segment_max` returns it.
        dy: floats [num_segments, ...], the cotangent of the result.
        prefer: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    return _extremum_backward("segment_max_backward", _max, segment_ids, winner, dy, prefer)


def segment_min_backward(segment_ids, winner, dy, *, prefer=None):
    """The gradient of `segment_min` with ties="first": see `segment_max_backward`."""
    return _extremum_backward("segment_min_backward", _min, segment_ids, winner, dy, prefer)


def _same(x, y):
    return (x == y) | ((x != x) & (y != y))


def _best(extremum, is_nan_free, data, ids, num_segments):
    """The extreme value of each segment, NaN if any; ids in [0, num_segments]."""
    y = extremum(data, ids, num_segments)
    if is_nan_free:
        return y
    any_nan = jax.ops.segment_max(jnp.isnan(data).astype(jnp.int32), ids, num_segments) > 0
    return jnp.where(any_nan, jnp.nan, y)


def _winner(extremum, data, ids, *, axis, num_segments, **_):
    """The lowest row with the extreme value; the number of rows where there is none."""
    rows = data.shape[axis]

    def one(data, ids):
        ids = _segment(ids, num_segments)
        best = _best(extremum, not jnp.issubdtype(data.dtype, jnp.inexact), data, ids, num_segments)
        best = jnp.concatenate([best, jnp.zeros((1, *best.shape[1:]), best.dtype)])[ids]
        row = jnp.where(_same(data, best), _column(jnp.arange(rows, dtype=_index_dtype(rows)), data), rows)
        return jnp.minimum(jax.ops.segment_min(row, ids, num_segments), rows)

    return _per_batch(one, axis)(data, _spread(ids, data.shape[:axis]))


def _at(x, winner, axis, otherwise):
    """x [*batch, N, ...] at the winning rows."""
    if not x.shape[axis]:
        return jnp.full(winner.shape, otherwise, x.dtype)
    row = jnp.minimum(winner, x.shape[axis] - 1)
    return jnp.where(winner < x.shape[axis], jnp.take_along_axis(x, row, axis), otherwise)


def _declare_extremum(name, public, extremum):
    def reference(data, ids, **params):
        winner = _winner(extremum, lax.stop_gradient(data), ids, **params)
        return _at(data, winner, params["axis"], _from_bits(params["empty_bits"], data.dtype)), winner

    def native(data, ids, *, save, axis, num_segments, sorted, empty_bits):
        out = [data.dtype, _index_dtype(data.shape[axis])][: 2 if save else 1]
        index = _index(ids, num_segments, sorted)
        return _reduce(name, data, index, out, axis=axis, num_segments=num_segments, empty_bits=empty_bits)

    def tangent_native(ids, winner, t, *, axis, **_):
        rows = _flat(t, axis)
        out = _result(rows, axis, winner.shape[axis])
        (y,) = kernel("segment_extremum_tangent", "...sd, ...nd -> ...sd", _flat(winner, axis), rows, out=[out])
        return (_unflat(y, t, axis),)

    def backward_reference(ids, winner, dy, *, axis, **_):
        rows = jnp.arange(ids.shape[-1], dtype=winner.dtype)
        rows = rows.reshape((-1,) + (1,) * (dy.ndim - axis - 1))
        return (jnp.where(_take(winner, ids, axis) == rows, _take(dy, ids, axis), 0),)

    def backward_native(ids, winner, dy, *, axis, **_):
        return (_gradient("segment_extremum_backward", "...n, ...sd, ...sd -> ...nd", ids, winner, dy, axis=axis),)

    return declare(
        name,
        **_FAMILY,
        public=public,
        dtypes=NUMBERS,
        cases=_cases(),
        results=("y", "winner"),
        residuals=("segment_ids", "winner"),
        forward=Body(reference, native),
        tangent=Body(lambda ids, winner, t, *, axis, **_: (_at(t, winner, axis, 0),), tangent_native),
        backward=Body(backward_reference, backward_native),
        kernels={
            "forward": ("segment_index", name),
            "tangent": ("segment_extremum_tangent",),
            "backward": ("segment_extremum_backward",),
        },
    )


def _declare_split(name, public, extremum):
    """The derivatives are sums of segments, and gathers from them: the kernels of the sum carry them."""

    def reference(data, ids, **params):
        y = _reduce_reference(
            lambda x, i: _best(extremum, not jnp.issubdtype(x.dtype, jnp.inexact), x, i, params["num_segments"]),
            data, ids, **params,
        )  # fmt: skip
        ties = _same(data, _take(y, ids, params["axis"])).astype(jnp.float32)
        return y, _reduce_reference(add(params), ties, ids, **{**params, "empty_bits": 0})

    def add(params):
        return lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"])

    def native(data, ids, *, save, **params):
        index, shape = _index(ids, params["num_segments"], params["sorted"]), _shape(params)
        (y,) = _reduce(name, data, index, [data.dtype], **shape)
        if not save:
            return (y,)
        ties = _same(data, _each_row(y, ids, params["axis"])).astype(jnp.float32)
        return y, _reduce("segment_sum", ties, index, [ties.dtype], **{**shape, "empty_bits": 0})[0]

    def _shape(params):
        return {key: params[key] for key in ("axis", "num_segments", "empty_bits")}

    def derivatives(each_row, sum_of):
        def tangent(data, ids, y, ties, t, **params):
            winners = _same(data, each_row(y, ids, params["axis"]))
            total = sum_of(jnp.where(winners, _wide(t), 0), ids, params)
            return ((total / jnp.maximum(ties, 1).astype(total.dtype)).astype(t.dtype),)

        def backward(data, ids, y, ties, dy, *, axis, **_):
            winners = _same(data, each_row(y, ids, axis))
            part = (_wide(dy) / jnp.maximum(ties, 1).astype(_wide(dy).dtype)).astype(dy.dtype)
            return (jnp.where(winners, each_row(part, ids, axis), 0),)

        return tangent, backward

    def sum_native(x, ids, params):
        index = _index(ids, params["num_segments"], params["sorted"])
        return _reduce("segment_sum", x, index, [x.dtype], **{**_shape(params), "empty_bits": 0})[0]

    def sum_reference(x, ids, params):
        return _reduce_reference(add(params), x, ids, **{**params, "empty_bits": 0})

    natives, references = derivatives(_each_row, sum_native), derivatives(_take, sum_reference)
    return declare(
        f"{name}_split",
        **_FAMILY,
        public=public,
        dtypes=NUMBERS,
        cases=_cases(ties="split"),
        results=("y", "ties"),
        residuals=("data", "segment_ids", "y", "ties"),
        forward=Body(reference, native),
        tangent=Body(references[0], natives[0]),
        backward=Body(references[1], natives[1]),
        kernels={
            "forward": ("segment_index", name),
            "tangent": ("segment_index", "segment_sum", "segment_sum_backward"),
            "backward": ("segment_sum_backward",),
        },
    )


_max = _declare_extremum("segment_max", segment_max, jax.ops.segment_max)
_min = _declare_extremum("segment_min", segment_min, jax.ops.segment_min)
_max_split = _declare_split("segment_max", segment_max, jax.ops.segment_max)
_min_split = _declare_split("segment_min", segment_min, jax.ops.segment_min)


# ---------------------------------------------------------------------------------------------------------------------
# prod


@_document(
    "y[s] = product of data[n] over the rows n with segment_ids[n] == s",
    empty="1",
    more="""\
        return_residuals: also return, for each cell, the product of the factors that are not zero (in float32, or float64
            for float64) and the number of zeros, 0, 1 or 2 for more (uint8). Floats only.
""",
    precision="float16 and bfloat16 accumulate in float32; integers wrap. The gradient is exact where factors are zero.",
)
def segment_prod(
    data,
    segment_ids,
    num_segments=None,
    *,
    indices_are_sorted=False,
    return_residuals=False,
    empty_value=1,
    prefer=None,
):
    """Product of the rows of each segment."""
    op = "segment_prod"
    data, ids, params = _arguments(op, data, segment_ids, num_segments, indices_are_sorted, NUMBERS)
    save = checks.flag(op, "return_residuals", return_residuals)
    if save:
        checks.dtype(op, "data (with return_residuals)", data, checks.FLOATS)
    bits = _empty_bits(op, empty_value, data.dtype)
    out = _prod(data, ids, **params, empty_bits=bits, save=save, prefer=prefer)
    return tuple(out) if save else out


def segment_prod_backward(data, segment_ids, product, zeros, dy, *, prefer=None):
    """The gradient of `segment_prod`: dx[n] = dy[s] * product of data[m] over the rows m of s but n, s = segment_ids[n].

    It is formed as product / data[n], or product where data[n] is the only zero, or 0 where another factor is zero.

    Args:
        data: floats [N, ...] (or with batches [*batch, N, ...]).
        segment_ids: integers [N] (or [*batch, N]).
        product, zeros: [num_segments, ...], as `segment_prod` returns them. For further derivatives they are taken to be
            functions of data.
        dy: floats [num_segments, ...], the cotangent of the result.
        prefer: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    op = "segment_prod_backward"
    ids, params = _backward_arguments(op, segment_ids, dy, same=[("product", product), ("zeros", zeros)])
    checks.same_dtype(op, "data", data, "dy", dy)
    checks.shape(op, "data", data, (*ids.shape, *dy.shape[ids.ndim :]), "one row an id")
    checks.dtype(op, "product", product, (_wide_dtype(dy.dtype).name,))
    checks.dtype(op, "zeros", zeros, ("uint8",))
    return _prod.vjp(data, ids, product, zeros, dy, **params, prefer=prefer)


def _wide_dtype(dtype):
    return jnp.dtype(jnp.float32) if dtype.itemsize == 2 else jnp.dtype(dtype)


def _prod_native(data, ids, *, save, axis, num_segments, sorted, empty_bits):
    index = _index(ids, num_segments, sorted)
    out = [data.dtype, _wide_dtype(data.dtype), jnp.uint8][: 3 if save else 1]
    return _reduce("segment_prod", data, index, out, axis=axis, num_segments=num_segments, empty_bits=empty_bits)


def _prod_backward_native(data, ids, product, zeros, dy, *, axis, **_):
    dims = "...nd, ...n, ...sd, ...sd, ...sd -> ...nd"
    return (_gradient("segment_prod_backward", dims, data, ids, product, zeros, dy, axis=axis),)


def _prod_tangent_native(data, ids, product, zeros, t, *, axis, num_segments, sorted, empty_bits):
    """The sum over the rows of t times the product of the other factors."""
    others = _prod_backward_native(data, ids, product, zeros, jnp.ones(product.shape, data.dtype), axis=axis)[0]
    shape = dict(axis=axis, num_segments=num_segments, empty_bits=0)
    return _reduce("segment_sum", others * t, _index(ids, num_segments, sorted), [t.dtype], **shape)


def _prod_reference(data, ids, **params):
    multiply = lambda x, i: jax.ops.segment_prod(x, i, params["num_segments"])
    is_zero = data == 0
    factors = jnp.where(is_zero, 1, _wide(data))
    zero_bits = int.from_bytes(np.ones((), factors.dtype).tobytes().ljust(8, b"\0"), "little", signed=True)
    product = _reduce_reference(multiply, factors, ids, **{**params, "empty_bits": zero_bits})
    add = lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"])
    zeros = _reduce_reference(add, is_zero.astype(jnp.int32), ids, **{**params, "empty_bits": 0})
    y = _reduce_reference(multiply, data, ids, **params)
    return y, product, jnp.minimum(zeros, 2).astype(jnp.uint8)


def _product(data, ids, *, axis, num_segments, **_):
    """The product as a scan over the rows in the order of their segments: JAX differentiates it to any order, exactly at
    zeros, which it can't do with jax.ops.segment_prod."""

    def multiply(a, b):
        (begins_a, a), (begins_b, b) = a, b
        return begins_a | begins_b, jnp.where(_column(begins_b, b), b, a * b)

    def one(data, ids):
        ids = _segment(ids, num_segments)
        order = jnp.argsort(ids, stable=True)
        ids, rows = ids[order], _wide(data)[order]
        begins = jnp.concatenate([jnp.ones(1, bool), ids[1:] != ids[:-1]])
        scanned = lax.associative_scan(multiply, (begins, rows))[1]
        segments = jnp.arange(num_segments)
        last = jnp.searchsorted(ids, segments, side="right") - 1
        has_rows = (last >= 0) & (ids[last] == segments)
        return jnp.where(_column(has_rows, rows), scanned[last], 1).astype(data.dtype)

    if not data.shape[axis]:
        return jnp.ones((*data.shape[:axis], num_segments, *data.shape[axis + 1 :]), data.dtype)
    return _per_batch(one, axis)(data, _spread(ids, data.shape[:axis]))


def _prod_tangent_reference(data, ids, product, zeros, t, **params):
    return (jax.jvp(lambda x: _product(x, ids, **params), (data,), (t,))[1],)


def _prod_backward_reference(data, ids, product, zeros, dy, **params):
    return jax.vjp(lambda x: _product(x, ids, **params), data)[1](dy)


def _factors(rng, *shape):
    """Factors near 1, some of them zero."""
    return (1 + 0.3 * rng.standard_normal(shape)) * (rng.random(shape) > 0.1)


_prod = declare(
    "segment_prod",
    **_FAMILY,
    public=segment_prod,
    dtypes=NUMBERS,
    cases=_cases(draw_data=_factors),
    results=("y", "product", "zeros"),
    residuals=("data", "segment_ids", "product", "zeros"),
    forward=Body(_prod_reference, _prod_native),
    tangent=Body(_prod_tangent_reference, _prod_tangent_native),
    backward=Body(_prod_backward_reference, _prod_backward_native),
    kernels={
        "forward": ("segment_index", "segment_prod"),
        "tangent": ("segment_index", "segment_sum", "segment_prod_backward"),
        "backward": ("segment_prod_backward",),
    },
)
