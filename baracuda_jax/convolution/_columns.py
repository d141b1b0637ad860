"""Windows as columns, and the sum of windows, of sequences and of images: `unfold` and `fold` with so many spatial axes."""

from typing import Protocol

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation, Integers
from ..shape import fold, unfold


class Windows(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, window: int | Integers, *, strides: int | Integers = 1, padding: int | Integers = 0,
        dilation: int | Integers = 1, implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class Sum(Protocol):
    __name__: str

    def __call__(
        self, x: ArrayLike, output_size: int | Integers, window: int | Integers, *, strides: int | Integers = 1,
        padding: int | Integers = 0, dilation: int | Integers = 1, implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_ARGS = """
        window, strides, padding, dilation: static integers{each}: the size of a window, how far apart windows are, how many
            zeros are around {image}, and how far apart the elements of a window are.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.
"""
_EACH = {1: "", 2: ", or one for each spatial axis"}
_IMAGE = {1: "sequence", 2: "image"}
_AXES = {1: "one spatial axis", 2: "two spatial axes"}


def _public(fun, name, doc):
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = doc
    return api(fun)


def _windows(op, rank, **given):
    smallest = dict(output_size=0, window=1, strides=1, padding=0, dilation=1)
    return {key: checks.integers(op, key, value, rank, smallest[key]) for key, value in given.items()}


def _im2col(rank) -> Windows:
    name = f"im2col_{rank}d"

    def fun(
        x: ArrayLike,
        window: int | Integers,
        *,
        strides: int | Integers = 1,
        padding: int | Integers = 0,
        dilation: int | Integers = 1,
        implementation: Implementation = None,
    ) -> Array:
        how = _windows(name, rank, window=window, strides=strides, padding=padding, dilation=dilation)
        return unfold(x, **how, implementation=implementation)

    form = {1: "[..., C, L]", 2: "[..., C, H, W]"}[rank]
    return _public(
        fun, name, f"""The windows of each {_IMAGE[rank]} as columns: `unfold` along {_AXES[rank]}.

    Args:
        x: array {form}: floats, integers, bool or complex.{_ARGS.format(each=_EACH[rank], image="x")}
    Returns:
        Array [..., C K, L] of x's dtype, K being the elements of a window and L the number of windows.
    """,
    )  # fmt: skip


def _col2im(name, rank) -> Sum:
    each = _EACH[rank]

    def fun(
        x: ArrayLike,
        output_size: int | Integers,
        window: int | Integers,
        *,
        strides: int | Integers = 1,
        padding: int | Integers = 0,
        dilation: int | Integers = 1,
        implementation: Implementation = None,
    ) -> Array:
        how = _windows(
            name, rank, output_size=output_size, window=window, strides=strides, padding=padding, dilation=dilation
        )
        return fold(x, **how, implementation=implementation)

    return _public(
        fun, name, f"""The sum of windows that are given as columns: `fold` along {_AXES[rank]}.

    Args:
        x: array [..., C K, L] of floats or complex numbers: K elements of each of L windows.
        output_size: the spatial size of the result, static integers{each}.{_ARGS.format(each=each, image="the result")}
    Returns:
        Array [..., C, *output_size] of x's dtype.
    """,
    )  # fmt: skip


im2col_1d, im2col_2d = _im2col(1), _im2col(2)
col2im_1d, fold_2d = _col2im("col2im_1d", 1), _col2im("fold_2d", 2)
