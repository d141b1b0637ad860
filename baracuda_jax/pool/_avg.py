"""Averages of windows that slide."""

from typing import Protocol

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.data_format import FORMATS, DataFormat
from .._core.op import declare
from .._core.types import Implementation, Integers
from ..convolution._arguments import Padding
from ._averages import LINEAR
from ._family import CEIL, DILATION, ERRORS, FAMILY, LAST, RANKS, WINDOWS, X, case, named
from ._windows import check_cotangent, cotangent, pooled, strided


class AvgPool(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, window: int | Integers, strides: int | Integers | None = None, padding: Padding = 0, *,
        dilation: int | Integers = 1, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: float | None = None,
        data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class PaddedAvgPool(Protocol):
    """Whose name says whether padding is counted."""

    __name__: str

    def __call__(
        self, x: ArrayLike, window: int | Integers, strides: int | Integers | None = None, padding: Padding = 0, *,
        dilation: int | Integers = 1, ceil_mode: bool = False, data_format: DataFormat = ...,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class AvgPoolBackward(Protocol):
    __name__: str

    def __call__(
        self, dy: ArrayLike, size: int | Integers, window: int | Integers, strides: int | Integers | None = None,
        padding: Padding = 0, *, dilation: int | Integers = 1, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: float | None = None, data_format: DataFormat = ..., implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_FORMULA = """

    Formula:
        y[o] = the sum of x[o strides - padding + k dilation] over k = 0, ..., window - 1 along each spatial axis, of the
        elements that are in x, divided by {divisor}. dx[i] = the sum over the windows o that hold i of dy[o] over the
        same divisor.

    Args:"""
_COUNTS = """
        count_include_pad: whether the elements of a window that are in the padding are counted too; those that
            ceil_mode adds after it never are.
        divisor_override: static number, not 0, to divide by instead of a count."""
_REST = (
    LAST
    + """

    Returns:
        The pooled array, of x's dtype. A window without elements is 0.
"""
    + ERRORS
    + """

    Precision: float16 and bfloat16 are summed in float32 and rounded once. Results are added up in a fixed order: the
    same bits
        every time.

    Source: torch.nn.functional.avg_pool{rank}d; flax.linen.avg_pool.
    """
)
_DOC = (
    "{rank}-dimensional average pooling: the mean of each window."
    + _FORMULA.replace("{divisor}", "their number, or as `count_include_pad` and `divisor_override` say")
    + X
    + WINDOWS
    + DILATION
    + CEIL
    + _COUNTS
    + _REST
)
_PADDED_DOC = (
    "{rank}-dimensional average pooling, `avg_pool{rank}d` with count_include_pad={included}." + _FORMULA + X + WINDOWS
)
_DIVISORS = {
    True: "the number of elements of the window that are in x or its padding",
    False: "the number of elements of the window that are in x",
}
_BACKWARD_DOC = """The gradient of `avg_pool{rank}d`: see its formula for dx.

    Args:
        dy: the cotangent of its result.
        size: static integers, the spatial size of x; one integer stands for all axes.
        window, strides, padding, dilation, ceil_mode, count_include_pad: as for `avg_pool{rank}d`.
        divisor_override, data_format, implementation: as for `avg_pool{rank}d`.

    Returns:
        The cotangent of x, of dy's dtype.
    """


def _counting(op, count_include_pad, divisor):
    """`counts_padding` and `divisor`, 0 for none."""
    if divisor is not None and (not checks.is_number(divisor) or divisor == 0):
        raise (TypeError if not checks.is_number(divisor) else ValueError)(
            f"{op}: divisor_override must be a static number other than 0, or None, got {divisor!r}"
        )
    counts_padding = checks.flag(op, "count_include_pad", count_include_pad)
    return dict(counts_padding=counts_padding, divisor=float(divisor or 0))


def _called(name, rank, x, window, strides, padding, dilation, ceil_mode, counts, divisor, data_format, implementation):
    x, size, is_last = pooled(name, x, rank, data_format)
    windows = strided(name, size, is_last, window, strides, padding, dilation, ceil_mode)
    return _OPS[rank](x, windows=windows, **_counting(name, counts, divisor), implementation=implementation)


def _forward(rank) -> AvgPool:
    name = f"avg_pool{rank}d"

    def fun(
        x: ArrayLike,
        window: int | Integers,
        strides: int | Integers | None = None,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: float | None = None,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        how = dilation, ceil_mode, count_include_pad, divisor_override, data_format, implementation
        return _called(name, rank, x, window, strides, padding, *how)

    return named(fun, name, rank, _DOC)


def _padded(rank, is_included) -> PaddedAvgPool:
    name = f"avg_pool{rank}d_{'include' if is_included else 'exclude'}_pad"

    def fun(
        x: ArrayLike,
        window: int | Integers,
        strides: int | Integers | None = None,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        ceil_mode: bool = False,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        how = dilation, ceil_mode, is_included, None, data_format, implementation
        return _called(name, rank, x, window, strides, padding, *how)

    doc = (_PADDED_DOC + DILATION + CEIL + _REST).replace("{included}", str(is_included))
    return named(fun, name, rank, doc.replace("{divisor}", _DIVISORS[is_included]))


def _backward(rank) -> AvgPoolBackward:
    name = f"avg_pool{rank}d_backward"

    def fun(
        dy: ArrayLike,
        size: int | Integers,
        window: int | Integers,
        strides: int | Integers | None = None,
        padding: Padding = 0,
        *,
        dilation: int | Integers = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: float | None = None,
        data_format: DataFormat = FORMATS[rank][0],
        implementation: Implementation = None,
    ) -> Array:
        dy, size, is_last = cotangent(name, dy, rank, size, data_format)
        windows = strided(name, size, is_last, window, strides, padding, dilation, ceil_mode)
        check_cotangent(name, dy, windows)
        how = _counting(name, count_include_pad, divisor_override)
        return _OPS[rank].vjp(dy, windows=windows, **how, implementation=implementation)

    return named(fun, name, rank, _BACKWARD_DOC)


avg_pool1d, avg_pool2d, avg_pool3d = map(_forward, RANKS)
avg_pool1d_include_pad, avg_pool2d_include_pad, avg_pool3d_include_pad = (_padded(rank, True) for rank in RANKS)
avg_pool1d_exclude_pad, avg_pool2d_exclude_pad, avg_pool3d_exclude_pad = (_padded(rank, False) for rank in RANKS)
avg_pool1d_backward, avg_pool2d_backward, avg_pool3d_backward = map(_backward, RANKS)


def _cases(rank):
    return (
        case("apart", rank, window=2),
        case("overlapping, padded", rank, window=3, strides=2, padding=1),
        case("without padding, ceil", rank, window=3, strides=2, padding=1, ceil_mode=True, count_include_pad=False),
        case("with padding, ceil", rank, window=(3, 2, 3)[:rank], strides=3, padding=1, ceil_mode=True),
        case("dilated, ceil", rank, window=2, strides=3, padding=1, dilation=2, ceil_mode=True),
        case("divisor", rank, window=3, strides=1, padding="same", divisor_override=5),
        case("last", rank, is_last=True, window=3, strides=2, padding=1, count_include_pad=False),
    )


_OPS = {
    rank: declare(f"avg_pool{rank}d", **FAMILY, **LINEAR, public=public, cases=_cases(rank))
    for rank, public in zip(RANKS, (avg_pool1d, avg_pool2d, avg_pool3d), strict=True)
}
