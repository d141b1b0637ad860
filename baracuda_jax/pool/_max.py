"""Maxima of windows that slide."""

from typing import Protocol

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.data_format import FORMATS, DataFormat
from .._core.op import declare
from .._core.types import Implementation, Integers
from ..convolution._arguments import Padding
from ._family import CEIL, DILATION, ERRORS, FAMILY, LAST, RANKS, WINDOWS, X, case, named
from ._maximum import DERIVATIVES, FORWARD, narrow_index, with_index
from ._windows import check_cotangent, cotangent, pooled, strided


class MaxPool(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, window: int | Integers, strides: int | Integers | None = None, padding: Padding = 0, *,
        dilation: int | Integers = 1, ceil_mode: bool = False, return_indices: bool = False,
        data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array | tuple[Array, ...]: ...  # fmt: skip


class MaxPoolBackward(Protocol):
    __name__: str

    def __call__(
        self, index: ArrayLike, dy: ArrayLike, size: int | Integers, window: int | Integers,
        strides: int | Integers | None = None, padding: Padding = 0, *, dilation: int | Integers = 1,
        ceil_mode: bool = False, data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_DOC = (
    """{rank}-dimensional max pooling: the largest element of each window.

    Formula:
        y[o] = the maximum of x[o strides - padding + k dilation] over k = 0, ..., window - 1 along each spatial axis,
        of the elements that are in x; index[o] is that of the first maximum, row by row. dx[i] = the sum of dy[o] over
        the windows with index[o] = i.

    Args:"""
    + X
    + WINDOWS
    + DILATION
    + CEIL
    + """
        return_indices: also return the index of each maximum in its plane of x, the spatial axes as one; the number of
            elements of the plane where a window has none."""
    + LAST
    + """

    Returns:
        The pooled array, of x's dtype; with return_indices also an int32 array of its shape. A window without elements
        is -inf.
"""
    + ERRORS
    + """

    Precision: exact. The first NaN of a window is its maximum. Of equal elements the first one has the index and the
        gradient. Each element of the gradient adds up dy in a fixed order, of float16 and bfloat16 in float32: the same bits
        every time.

    Source: torch.nn.functional.max_pool{rank}d, of which the last NaN has the index.
    """
)
_BACKWARD_DOC = """The gradient of `max_pool{rank}d`: each element of dx is the sum of dy over the windows whose index
is that element.

    Args:
        index: int32, the indices that `max_pool{rank}d` returns with return_indices.
        dy: the cotangent of its result, of index's shape.
        size: static integers, the spatial size of x; one integer stands for all axes.
        window, strides, padding, dilation, ceil_mode, data_format, implementation: as for `max_pool{rank}d`.

    Returns:
        The cotangent of x, of dy's dtype.
    """


def _forward(rank) -> MaxPool:
    name = f"max_pool{rank}d"

    def fun(
        x: ArrayLike,
        window: int | Integers,
        strides: int | Integers | None = None,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array | tuple[Array, ...]:
        x, size, is_last = pooled(name, x, rank, data_format)
        windows = strided(name, size, is_last, window, strides, padding, dilation, ceil_mode)
        save = checks.flag(name, "return_indices", return_indices)
        return with_index(_OPS[rank](x, windows=windows, save=save, implementation=implementation), save)

    return named(fun, name, rank, _DOC)


def _backward(rank) -> MaxPoolBackward:
    name = f"max_pool{rank}d_backward"

    def fun(
        index: ArrayLike,
        dy: ArrayLike,
        size: int | Integers,
        window: int | Integers,
        strides: int | Integers | None = None,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        ceil_mode: bool = False,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        dy, size, is_last = cotangent(name, dy, rank, size, data_format)
        windows = strided(name, size, is_last, window, strides, padding, dilation, ceil_mode)
        check_cotangent(name, dy, windows)
        index = narrow_index(name, index, dy, windows)
        return _OPS[rank].vjp(index, dy, windows=windows, implementation=implementation)

    return named(fun, name, rank, _BACKWARD_DOC)


max_pool1d, max_pool2d, max_pool3d = map(_forward, RANKS)
max_pool1d_backward, max_pool2d_backward, max_pool3d_backward = map(_backward, RANKS)


def _cases(rank):
    return (
        case("apart", rank, window=2),
        case("overlapping, padded", rank, window=3, strides=2, padding=1),
        case("dilated, ceil", rank, window=2, strides=3, padding=1, dilation=2, ceil_mode=True),
        case("pairs", rank, window=(3, 2, 2)[:rank], strides=1, padding=((2, 1), (0, 1), (1, 0))[:rank]),
        case("last", rank, is_last=True, window=3, strides=2, padding=1, ceil_mode=True),
    )


_OPS = {
    rank: declare(
        f"max_pool{rank}d",
        **FAMILY,
        **DERIVATIVES,
        public=public,
        cases=_cases(rank),
        operands=("x",),
        forward=FORWARD,
    )
    for rank, public in zip(RANKS, (max_pool1d, max_pool2d, max_pool3d), strict=True)
}
