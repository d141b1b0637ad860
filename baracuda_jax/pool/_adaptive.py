"""Maxima and averages of as many windows as are asked for."""

from typing import Protocol

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.data_format import FORMATS, DataFormat
from .._core.op import declare
from .._core.types import Implementation, Integers
from . import _averages, _maximum
from ._family import ERRORS, FAMILY, LAST, RANKS, X, case, named
from ._windows import adaptive, cotangent, pooled, spatial_size


class AdaptiveAvgPool(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, output_size: int | Integers, *, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class AdaptiveMaxPool(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, output_size: int | Integers, *, return_indices: bool = False,
        data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array | tuple[Array, ...]: ...  # fmt: skip


class AdaptiveAvgPoolBackward(Protocol):
    __name__: str

    def __call__(
        self, dy: ArrayLike, size: int | Integers, *, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class AdaptiveMaxPoolBackward(Protocol):
    __name__: str

    def __call__(
        self, index: ArrayLike, dy: ArrayLike, size: int | Integers, *, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_WINDOW = "floor(o n / m), ..., ceil((o + 1) n / m) - 1 along each spatial axis, n being the size of x and m that of y"
_SIZE = """
        output_size: static size of the result, an integer or one for each spatial axis, None for that of x. It may be
            more than that of x."""
_AVERAGE_DOC = (
    "{rank}-dimensional average pooling to a given size."
    """

    Formula:
        y[o] = the mean of x over the elements """
    + _WINDOW
    + """. dx[i] = the
        sum over the windows o that hold i of dy[o] over the number of elements of window o.

    Args:"""
    + X
    + _SIZE
    + LAST
    + """

    Returns:
        The pooled array, of x's dtype.
"""
    + ERRORS
    + """

    Precision: float16 and bfloat16 are summed in float32 and rounded once. Results are added up in a fixed order: the
        same bits every time.

    Source: torch.nn.functional.adaptive_avg_pool{rank}d.
    """
)
_MAX_DOC = (
    "{rank}-dimensional max pooling to a given size."
    """

    Formula:
        y[o] = the maximum of x over the elements """
    + _WINDOW
    + """;
        index[o] is that of the first maximum, row by row. dx[i] = the sum of dy[o] over the windows with index[o] = i.

    Args:"""
    + X
    + _SIZE
    + """
        return_indices: also return the index of each maximum in its plane of x, the spatial axes as one."""
    + LAST
    + """

    Returns:
        The pooled array, of x's dtype; with return_indices also an int32 array of its shape.
"""
    + ERRORS
    + """

    Precision: exact. The first NaN of a window is its maximum. Of equal elements the first one has the index and the
        gradient. Each element of the gradient adds up dy in a fixed order, of float16 and bfloat16 in float32: the same bits
        every time.

    Source: torch.nn.functional.adaptive_max_pool{rank}d.
    """
)
_AVERAGE_BACKWARD_DOC = """The gradient of `adaptive_avg_pool{rank}d`: see its formula for dx.

    Args:
        dy: the cotangent of its result.
        size: static integers, the spatial size of x; one integer stands for all axes.
        data_format, implementation: as for `adaptive_avg_pool{rank}d`.

    Returns:
        The cotangent of x, of dy's dtype.
    """
_MAX_BACKWARD_DOC = """The gradient of `adaptive_max_pool{rank}d`: see its formula for dx.

    Args:
        index: int32, the indices that `adaptive_max_pool{rank}d` returns with return_indices.
        dy: the cotangent of its result, of index's shape.
        size: static integers, the spatial size of x; one integer stands for all axes.
        data_format, implementation: as for `adaptive_max_pool{rank}d`.

    Returns:
        The cotangent of x, of dy's dtype.
    """
_AVERAGE = dict(counts_padding=False, divisor=0.0)


def _average(rank) -> AdaptiveAvgPool:
    name = f"adaptive_avg_pool{rank}d"

    def fun(
        x: ArrayLike,
        output_size: int | Integers,
        *,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        x, size, is_last = pooled(name, x, rank, data_format)
        windows = adaptive(name, size, is_last, output_size)
        return _AVERAGES[rank](x, windows=windows, **_AVERAGE, implementation=implementation)

    return named(fun, name, rank, _AVERAGE_DOC)


def _maximum_of(rank) -> AdaptiveMaxPool:
    name = f"adaptive_max_pool{rank}d"

    def fun(
        x: ArrayLike,
        output_size: int | Integers,
        *,
        return_indices: bool = False,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array | tuple[Array, ...]:
        x, size, is_last = pooled(name, x, rank, data_format)
        windows = adaptive(name, size, is_last, output_size)
        save = checks.flag(name, "return_indices", return_indices)
        return _maximum.with_index(_MAXIMA[rank](x, windows=windows, save=save, implementation=implementation), save)

    return named(fun, name, rank, _MAX_DOC)


def _windows_of_cotangent(name, dy, rank, size, data_format):
    dy, size, is_last = cotangent(name, dy, rank, size, data_format)
    return dy, adaptive(name, size, is_last, spatial_size(dy.shape, rank, is_last))


def _average_backward(rank) -> AdaptiveAvgPoolBackward:
    name = f"adaptive_avg_pool{rank}d_backward"

    def fun(
        dy: ArrayLike,
        size: int | Integers,
        *,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        dy, windows = _windows_of_cotangent(name, dy, rank, size, data_format)
        return _AVERAGES[rank].vjp(dy, windows=windows, **_AVERAGE, implementation=implementation)

    return named(fun, name, rank, _AVERAGE_BACKWARD_DOC)


def _maximum_backward(rank) -> AdaptiveMaxPoolBackward:
    name = f"adaptive_max_pool{rank}d_backward"

    def fun(
        index: ArrayLike,
        dy: ArrayLike,
        size: int | Integers,
        *,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        dy, windows = _windows_of_cotangent(name, dy, rank, size, data_format)
        index = _maximum.narrow_index(name, index, dy, windows)
        return _MAXIMA[rank].vjp(index, dy, windows=windows, implementation=implementation)

    return named(fun, name, rank, _MAX_BACKWARD_DOC)


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_average, RANKS)
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_maximum_of, RANKS)
adaptive_avg_pool1d_backward, adaptive_avg_pool2d_backward, adaptive_avg_pool3d_backward = map(_average_backward, RANKS)
adaptive_max_pool1d_backward, adaptive_max_pool2d_backward, adaptive_max_pool3d_backward = map(_maximum_backward, RANKS)


def _cases(rank):
    return (
        case("smaller", rank, output_size=(4, 3, 5)[:rank]),
        case("divides", rank, output_size=(3, 4, 1)[:rank]),
        case("larger", rank, output_size=(13, 8, 9)[:rank]),
        case("one", rank, output_size=1),
        case("last", rank, is_last=True, output_size=(5, 4, 2)[:rank]),
    )


_AVERAGES = {
    rank: declare(f"adaptive_avg_pool{rank}d", **FAMILY, **_averages.LINEAR, public=public, cases=_cases(rank))
    for rank, public in zip(RANKS, (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d), strict=True)
}
_MAXIMA = {
    rank: declare(
        f"adaptive_max_pool{rank}d",
        **FAMILY,
        **_maximum.DERIVATIVES,
        public=public,
        cases=_cases(rank),
        operands=("x",),
        forward=_maximum.FORWARD,
    )
    for rank, public in zip(RANKS, (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d), strict=True)
}
