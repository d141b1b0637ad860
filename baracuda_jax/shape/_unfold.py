"""Windows of images as columns, and their sums, each the other's gradient.

Forward, each element of a column takes its element of the image, or 0 outside. Of the sums, each element of the image adds
the elements of the columns that are copies of it, in a fixed order."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ._family import OF_X, case, operand
from ._map import CONSTANT, Axis, Map, Origin, Term, index_map, index_map_adjoint, strides
from ._partition import whole_behind_batches


@api
def unfold(
    x: ArrayLike,
    window: int | Integers,
    *,
    strides: int | Integers = 1,
    padding: int | Integers = 0,
    dilation: int | Integers = 1,
    implementation: Implementation = None,
) -> Array:
    """The windows of x as columns, of an image (im2col), a sequence or a volume.

    Formula:
        y[..., c, k, l] = x[..., c, l strides + k dilation - padding], and 0 where that is outside, for each spatial axis;
        k counts the elements of a window and l the windows, the last axis fastest, and c and k make one dimension of y.
        dx is `fold` of dy.

    Args:
        x: array [..., C, *spatial]: floats, integers, bool or complex.
        window: static integers, one for each spatial axis, of which there are as many, 1 to 3; one integer stands for
            two.
        strides, padding, dilation: static integers, or one for each spatial axis: how far apart windows are, how many zeros
            are around x, and how far apart the elements of a window are.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., C K, L] of x's dtype, K being the elements of a window and L the number of windows.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; where no window fits.

    Precision: values are moved as they are. The gradient's sums are formed in float32 for float16 and bfloat16, in the dtype
        itself for others, in a fixed order: results are the same bits every time.

    Source: torch.nn.functional.unfold; jax.lax.conv_general_dilated_patches.
    """
    op = "unfold"
    x = operand(op, "x", x)
    windows = _window(op, window, strides, padding, dilation)
    spatial = len(windows["window"])
    if x.ndim < spatial + 1:
        raise ValueError(f"{op}: x must be [..., C, *spatial] with {spatial} spatial axes, got shape {tuple(x.shape)}")
    _check_windows(op, "x", x.shape[-spatial:], windows)
    return _unfold(x, output_size=tuple(x.shape[-spatial:]), **windows, implementation=implementation)


@api
def unfold_backward(
    dy: ArrayLike,
    output_size: int | Integers,
    window: int | Integers,
    *,
    strides: int | Integers = 1,
    padding: int | Integers = 0,
    dilation: int | Integers = 1,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `unfold`: `fold` of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        output_size: the spatial size of x, as for `fold`.
        window, strides, padding, dilation: as for `unfold`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "unfold_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    return _unfold.vjp(
        dy, **_columns(op, "dy", dy, output_size, window, strides, padding, dilation), implementation=implementation
    )


@api
def fold(
    x: ArrayLike,
    output_size: int | Integers,
    window: int | Integers,
    *,
    strides: int | Integers = 1,
    padding: int | Integers = 0,
    dilation: int | Integers = 1,
    implementation: Implementation = None,
) -> Array:
    """The sum of windows that are given as columns, each at its position in an image (col2im), a sequence or a volume.

    Formula:
        y[..., c, i] = the sum of x[..., c, k, l] over k and l with l strides + k dilation - padding = i, for each spatial
        axis; k counts the elements of a window and l the windows, the last axis fastest, and c and k are one dimension of x.
        dx is `unfold` of dy.

    Args:
        x: array [..., C K, L] of floats or complex numbers: K elements of each of L windows.
        output_size: the spatial size of y, static integers, one for each spatial axis; one integer stands for two.
        window, strides, padding, dilation: as for `unfold`, with as many spatial axes as output_size.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., C, *output_size] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it; for another number of windows
            than fits into output_size.

    Precision: sums are formed in float32 for float16 and bfloat16, in the dtype itself for others, in a fixed order: results
        are the same bits every time.

    Source: torch.nn.functional.fold.
    """
    x = operand("fold", "x", x, checks.INEXACT)
    return _fold(
        x,
        **_columns("fold", "x", x, output_size, window, strides, padding, dilation),
        implementation=implementation,
    )


@api
def fold_backward(
    dy: ArrayLike,
    window: int | Integers,
    *,
    strides: int | Integers = 1,
    padding: int | Integers = 0,
    dilation: int | Integers = 1,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `fold`: `unfold` of dy.

    Args:
        dy: floats or complex, the cotangent of the result.
        window, strides, padding, dilation: as for `fold`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "fold_backward"
    dy = operand(op, "dy", dy, checks.INEXACT)
    windows = _window(op, window, strides, padding, dilation)
    spatial = len(windows["window"])
    if dy.ndim < spatial + 1:
        raise ValueError(
            f"{op}: dy must be [..., C, *spatial] with {spatial} spatial axes, got shape {tuple(dy.shape)}"
        )
    _check_windows(op, "dy", dy.shape[-spatial:], windows)
    return _fold.vjp(dy, output_size=tuple(dy.shape[-spatial:]), **windows, implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def _window(op, window, strides, padding, dilation):
    spatial = len(window) if isinstance(window, tuple | list | np.ndarray) else 2
    if not 1 <= spatial <= 3:
        raise ValueError(f"{op}: window must have 1 to 3 numbers, got {window}")
    return dict(
        window=checks.integers(op, "window", window, spatial, 1),
        dilation=checks.integers(op, "dilation", dilation, spatial, 1),
        padding=checks.integers(op, "padding", padding, spatial, 0),
        strides=checks.integers(op, "strides", strides, spatial, 1),
    )


def _check_windows(op, name, size, windows):
    if min(_windows(size, **windows), default=1) < 1:
        raise ValueError(
            f"{op}: window must fit into {name}'s spatial shape {tuple(size)} with its padding, got {windows}"
        )


def _columns(op, name, x, output_size, window, strides, padding, dilation):
    windows = _window(op, window, strides, padding, dilation)
    size = checks.integers(op, "output_size", output_size, len(windows["window"]), 0)
    _check_windows(op, "output_size", size, windows)
    elements, count = math.prod(windows["window"]), math.prod(_windows(size, **windows))
    if x.ndim < 2 or x.shape[-1] != count or x.shape[-2] % elements:
        raise ValueError(
            f"{op}: {name} must be [..., C {elements}, {count}], columns of the elements of all windows, "
            f"got {tuple(x.shape)}"
        )
    return dict(output_size=size, **windows)


def _windows(size, *, window, strides, padding, dilation):
    """How many there are along each axis."""
    each = zip(size, window, dilation, padding, strides, strict=True)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in each]


# ---------------------------------------------------------------------------------------------------------------------
# References and kernel calls


def _unfold_reference(x, *, output_size, **windows):
    *batch, channels = x.shape[: x.ndim - len(output_size)]
    counts, window = _windows(output_size, **windows), windows["window"]
    none = ((0, 0, 0),) * (len(batch) + 1)
    x = lax.pad(x, np.zeros((), x.dtype), (*none, *((p, p, 0) for p in windows["padding"])))
    each = list(zip(counts, windows["dilation"], windows["strides"], strict=True))

    def of(position):
        begin = [k * d for k, (_, d, _) in zip(position, each, strict=True)]
        end = [b + (count - 1) * s + 1 for b, (count, _, s) in zip(begin, each, strict=True)]
        lead = len(batch) + 1
        return lax.slice(x, (*(0,) * lead, *begin), (*x.shape[:lead], *end), (*(1,) * lead, *windows["strides"]))

    columns = jnp.stack([of(position) for position in np.ndindex(*window)], len(batch) + 1)
    return (columns.reshape(*batch, channels * math.prod(window), math.prod(counts)),)


def _sum_reference(x, *, output_size, **windows):
    channels = x.shape[-2] // math.prod(windows["window"])
    image = jax.ShapeDtypeStruct((*x.shape[:-2], channels, *output_size), wide(x).dtype)
    (y,) = jax.linear_transpose(lambda image: _unfold_reference(image, output_size=output_size, **windows)[0], image)(
        wide(x)
    )
    return (y.astype(x.dtype),)


def _each(output_size, windows):
    """(stride in the image, stride among a window's elements, stride among windows, elements, windows, ...) of each axis"""
    counts, window = _windows(output_size, **windows), windows["window"]
    total = math.prod(counts)
    return zip(
        output_size, strides(output_size), window, [n * total for n in strides(window)], counts, strides(counts),
        windows["dilation"], windows["padding"], windows["strides"], strict=True,
    )  # fmt: skip


def _unfold_native(x, *, save=False, output_size, **windows):
    lead = x.ndim - len(output_size)
    elements, positions, terms = [], [], []
    for t, (n, step, k, _, count, _, d, p, s) in enumerate(_each(output_size, windows)):
        elements.append(Axis(k, 0, t, d))
        positions.append(Axis(count, 0, t, s))
        terms.append(Term(CONSTANT, n, -p, step))
    of = Map((*elements, *positions), tuple(terms))
    rows, columns = (math.prod(axis.size for axis in axes) for axes in (elements, positions))
    y = index_map("unfold", x, lead, of, (rows, columns))
    return [y.reshape(*x.shape[: lead - 1], x.shape[lead - 1] * rows, columns)]


def _sum_native(x, *, save=False, output_size, **windows):
    lead, elements = x.ndim - 1, math.prod(windows["window"])
    columns = x.reshape(*x.shape[:-2], x.shape[-2] // elements, elements * x.shape[-1])
    terms = [
        Origin(CONSTANT, count, -p, windows_step, k, elements_step, d, s)
        for _, _, k, elements_step, count, windows_step, d, p, s in _each(output_size, windows)
    ]
    axes = [Axis(n, 0, t) for t, n in enumerate(output_size)]
    return [index_map_adjoint("fold", columns, lead, axes, terms, output_size)]


_windowed, _sum = Body(_unfold_reference, _unfold_native), Body(_sum_reference, _sum_native)
_spatial = lambda params: len(params["output_size"]) + 1
_unfold = declare(
    "unfold",
    **OF_X,
    public=unfold,
    cases=(
        case("images", (2, 3, 6, 7), window=3),
        case("strides", (2, 2, 9, 8), window=(3, 2), dilation=(1, 2), padding=(1, 0), strides=(2, 3)),
        case("sequences", (3, 2, 17), window=(4,), padding=2, strides=2),
        case("patches", (2, 8, 8), window=4, strides=4),
        case("volumes", (1, 2, 4, 3, 5), window=(2, 2, 2), padding=1),
    ),
    forward=_windowed,
    backward=_sum,
    cut=whole_behind_batches(lambda params: (_spatial(params), 2)),
    kernels={"forward": ("move",), "backward": ("move_add",)},
)
_fold = declare(
    "fold",
    **OF_X | dict(dtypes=checks.INEXACT),
    public=fold,
    cases=(
        case("images", (2, 27, 20), output_size=(6, 7), window=3),
        case(
            "strides",
            (2, 12, 10),
            output_size=(9, 8),
            window=(3, 2),
            dilation=(1, 2),
            padding=(1, 0),
            strides=(2, 3),
        ),
        case("sequences", (3, 8, 9), output_size=(17,), window=(4,), padding=2, strides=2),
        case("patches", (32, 4), output_size=(8, 8), window=4, strides=4),
    ),
    forward=_sum,
    backward=_windowed,
    cut=whole_behind_batches(lambda params: (2, _spatial(params))),
    kernels={"forward": ("move_add",), "backward": ("move",)},
)
