"""Max unpooling: maxima put back to where they were, by an index. Pattern: scatter_last.

Of elements with one index the last is written. Which these are, maxima of their numbers say, which are the same in any
order. The gradient finds them again: nothing but the index is kept."""

import math
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.body import Body
from .._core.case import Case
from .._core.compiled import compiled
from .._core.data_format import FORMATS, DataFormat, image
from .._core.kernel import kernel
from .._core.op import as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from ..indexing._arguments import INDEX, along, last_ranks, positions
from ._family import ERRORS, LAST, RANKS, named
from ._windows import spatial_size


class MaxUnpool(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, index: ArrayLike, window: int | Integers, strides: int | Integers | None = None,
        padding: int | Integers = 0, output_size: Integers | None = None, *, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class MaxUnpoolBackward(Protocol):
    __name__: str

    def __call__(
        self, index: ArrayLike, dy: ArrayLike, *, data_format: DataFormat = ..., implementation: Implementation = None
    ) -> Array: ...  # fmt: skip


_DOC = (
    """{rank}-dimensional max unpooling: maxima where they were, and zeros elsewhere.

    Formula:
        y[index[i]] = x[i] in each plane, the spatial axes as one, and 0 where no index says; of several elements that
        have one index the last is written. dx[i] = dy[index[i]], 0 for what was not written.

    Args:
        x: floats {first}, or {last} with data_format="{last}"; the batch dimension N may be left out.
        index: integers of x's shape, as `max_pool{rank}d` returns them with return_indices. Those outside the plane are
            dropped.
        window, strides, padding: as for `max_pool{rank}d`: by default the result has (n - 1) strides - 2 padding +
            window elements along each spatial axis, n being those of x.
        output_size: static integers, the spatial size of the result, where that is not so."""
    + LAST
    + """

    Returns:
        Array of x's dtype and of the size that was pooled.
"""
    + ERRORS
    + """

    Precision: exact. Nothing is added up: the same bits every time.

    Source: torch.nn.functional.max_unpool{rank}d.
    """
)
_BACKWARD_DOC = """The gradient of `max_unpool{rank}d`: dx[i] = dy[index[i]], 0 for what was not written.

    Args:
        index: integers, as in `max_unpool{rank}d`.
        dy: the cotangent of its result.
        data_format, implementation: as for `max_unpool{rank}d`.

    Returns:
        The cotangent of x, of dy's dtype.
    """


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _default_size(op, size, window, strides, padding):
    rank = len(size)
    window = checks.integers(op, "window", window, rank, 1)
    strides = checks.integers(op, "strides", window if strides is None else strides, rank, 1)
    padding = checks.integers(op, "padding", padding, rank, 0)
    return tuple((n - 1) * s - 2 * p + k for n, s, p, k in zip(size, strides, padding, window, strict=True))


def _size(op, given, default, rank):
    """The spatial size of the result."""
    found = default if given is None else checks.integers(op, "output_size", given, rank, 0)
    if any(n < 0 for n in found):
        raise ValueError(f"{op}: padding must leave a size of at least 0, got {found}")
    checks.positions(op, "output_size", math.prod(found), "elements in a plane")
    return found


def _plane_axis(x, is_last):
    return x.ndim - 1 - is_last


def _flat(x, rank, is_last):
    """The spatial axes as one."""
    begin = x.ndim - is_last - rank
    size = spatial_size(x.shape, rank, is_last)
    return explicit.reshape(x, *x.shape[:begin], math.prod(size), *x.shape[begin + rank :])


def _shaped(x, size, is_last):
    axis = _plane_axis(x, is_last)
    return explicit.reshape(x, *x.shape[:axis], *size, *x.shape[axis + 1 :])


@compiled("plane", "rank", "is_last")
def _narrow(index, *, plane, rank, is_last):
    """int32, the spatial axes as one."""
    index = _flat(index, rank, is_last)
    return index if index.dtype == jnp.int32 else positions(index, plane, wraps=False)


# ---------------------------------------------------------------------------------------------------------------------
# Bodies, of planes [..., elements], or [..., elements, channels]


def _written(index, plane):
    """The last of several equal entries is kept, the others are out of range."""
    at = positions(index, plane, wraps=False)
    ranks, last = last_ranks(at, plane)
    return jnp.where(last.at[at].get(mode="fill", fill_value=-1) == ranks, at, plane)


def _reference(x, index, *, plane, channels_last):
    put = lambda x, index: jnp.zeros(plane, x.dtype).at[_written(index, plane)].set(x, mode="drop")
    return (along(put, _plane_axis(x, channels_last), x, index),)


def _backward_reference(index, dy, *, plane, channels_last):
    take = lambda dy, index: dy.at[_written(index, plane)].get(mode="fill", fill_value=0)
    return (along(take, _plane_axis(dy, channels_last), dy, index),)


def _called(target, dims, index, x, count, plane, channels_last):
    axis = _plane_axis(x, channels_last)
    rows, index = (jnp.moveaxis(a, axis, -1) for a in (x, index))
    out = jax.ShapeDtypeStruct((*rows.shape[:-1], count), x.dtype)
    (y,) = kernel(target, dims, index, rows, out=[out], workspace=_workspace(plane))
    return jnp.moveaxis(y, -1, axis)


def _workspace(plane):
    """Bytes of the numbers of the last entries at each element, of planes of more than eight tiles; others are found in
    shared memory, and all where there are none, as in an export for any size (ffi/patterns/scatter_last_cuda.h)."""
    return 4 * plane if isinstance(plane, int) and plane > 8 * 14080 else 0


def _native(x, index, *, save=False, plane, channels_last):
    return (_called("scatter_last", "...m, ...m -> ...n", index, x, plane, plane, channels_last),)


def _backward_native(index, dy, *, plane, channels_last):
    count = index.shape[_plane_axis(index, channels_last)]
    return (_called("take_last", "...m, ...n -> ...m", index, dy, count, plane, channels_last),)


# ---------------------------------------------------------------------------------------------------------------------
# The public functions


def _forward(rank) -> MaxUnpool:
    name = f"max_unpool{rank}d"

    def fun(
        x: ArrayLike,
        index: ArrayLike,
        window: int | Integers,
        strides: int | Integers | None = None,
        padding: int | Integers = 0,
        output_size: Integers | None = None,
        *,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        x, is_last = image(name, x, rank, data_format)
        index = _index(name, index, x.shape, "that of x")
        default = _default_size(name, spatial_size(x.shape, rank, is_last), window, strides, padding)
        size = _size(name, output_size, default, rank)
        how = dict(plane=math.prod(size), channels_last=is_last)
        at = _narrow(index, plane=how["plane"], rank=rank, is_last=is_last)
        y = _OPS[rank](_flat(x, rank, is_last), at, **how, implementation=implementation)
        return _shaped(y, size, is_last)

    return named(fun, name, rank, _DOC)


def _index(op, index, shape, whose):
    index = checks.array(op, "index", index)
    checks.dtype(op, "index", index, checks.INTEGERS)
    checks.shape(op, "index", index, shape, whose)
    return index


def _backward(rank) -> MaxUnpoolBackward:
    name = f"max_unpool{rank}d_backward"

    def fun(
        index: ArrayLike,
        dy: ArrayLike,
        *,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        dy, is_last = image(name, dy, rank, data_format, "dy")
        size = spatial_size(dy.shape, rank, is_last)
        checks.positions(name, "dy", math.prod(size), "elements in a plane")
        index = checks.array(name, "index", index)
        of_index = spatial_size(index.shape, rank, is_last)
        begin = dy.ndim - is_last - rank
        _index(
            name, index, (*dy.shape[:begin], *of_index, *dy.shape[begin + rank :]), "dy's except for its spatial sizes"
        )
        how = dict(plane=math.prod(size), channels_last=is_last)
        at = _narrow(index, plane=how["plane"], rank=rank, is_last=is_last)
        dx = _OPS[rank].vjp(at, _flat(dy, rank, is_last), **how, implementation=implementation)
        return _shaped(dx, of_index, is_last)

    return named(fun, name, rank, _BACKWARD_DOC)


max_unpool1d, max_unpool2d, max_unpool3d = map(_forward, RANKS)
max_unpool1d_backward, max_unpool2d_backward, max_unpool3d_backward = map(_backward, RANKS)


def _case(name, rank, is_last=False, repeated=False, **kwargs):
    sizes = (5, 4, 3)[:rank]
    shape = (2, *sizes, 3) if is_last else (2, 3, *sizes)
    size = kwargs.get("output_size") or tuple(2 * n for n in sizes)
    kwargs |= dict(window=2) | (dict(data_format=FORMATS[rank][1]) if is_last else {})

    def draw(rng):
        count, plane = math.prod(sizes), math.prod(size)
        planes = [rng.integers(-2, plane + 2, count) if repeated else rng.permutation(plane)[:count] for _ in range(6)]
        index = np.array(planes).reshape(2, 3, *sizes)
        return rng.standard_normal(shape), np.moveaxis(index, 1, -1) if is_last else index

    return Case(name, draw, kwargs)


def _cases(rank):
    return (
        _case("one each", rank),
        _case("several at one", rank, repeated=True, output_size=(4, 3, 2)[:rank]),
        _case("as many", rank, output_size=(5, 4, 3)[:rank], repeated=True),
        _case("last", rank, is_last=True),
    )


_OPS = {
    rank: declare(
        f"max_unpool{rank}d",
        family="pool",
        category=OpCategory.POOLING,
        public=public,
        dtypes=checks.FLOATS,
        cases=_cases(rank),
        operands=("x", "index"),
        differentiable=("x",),
        constant=INDEX,
        residuals=("index",),
        forward=Body(_reference, _native),
        backward=Body(_backward_reference, _backward_native),
        linear=lambda params: params,
        batched=as_they_are,
        cut="an index says where in a plane an element goes",
        kernels={"forward": ("scatter_last",), "backward": ("take_last",)},
    )
    for rank, public in zip(RANKS, (max_unpool1d, max_unpool2d, max_unpool3d), strict=True)
}
