"""Interpolation: images of another size. Each mode is a table of taps for each axis."""

import math
from typing import Literal, Protocol, TypeAlias

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.data_format import DataFormat
from .._core.op import as_they_are, declare
from .._core.regime import by_taps
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from .._core.wide import wide_dtype
from ._arguments import FORMS, images, layout, numbers, spatial_size
from ._resample import LINEAR
from ._taps import taps

Mode: TypeAlias = Literal["nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"]
Scales: TypeAlias = float | tuple[float, ...] | list[float]
RANKS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
    "area": (3, 4, 5),
}
HAS_CORNERS = ("linear", "bilinear", "bicubic", "trilinear")
HAS_ANTIALIAS = ("bilinear", "bicubic")


@api
def interpolate(
    x: ArrayLike,
    size: int | Integers | None = None,
    scale_factor: Scales | None = None,
    mode: Mode = "nearest",
    align_corners: bool | None = None,
    *,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    data_format: DataFormat | None = None,
    implementation: Implementation = None,
) -> Array:
    """Images, sequences or volumes of another size, by interpolation.

    Formula:
        y[o] = sum over the taps t of w[o, t] x[i[o, t]] along each spatial axis, of tables i and w that sizes and mode
        determine; dx[i] = sum of w[o, t] dy[o] over the o and t with i[o, t] = i. An element o of the output is at
        p = (o + 1/2) s - 1/2 in the input, s being size of the input / size of the output, or 1 / scale_factor where that is
        given; with align_corners at o (size of the input - 1) / (size of the output - 1).
        "nearest": floor(o s). "nearest-exact": floor((o + 1/2) s). "linear", "bilinear", "trilinear": the two elements
        around p along each axis, p being at least 0. "bicubic": four, by Keys' kernel with a = -0.75; outside are the
        nearest elements. "area": the mean of the elements in [floor(o s), ceil((o + 1) s)). antialias: the kernel, with
        a = -0.5, is as wide as s where s is larger than 1, and at p = (o + 1/2) s - 1/2 also with align_corners; elements
        outside are left out and the weights sum to 1.

    Args:
        x: floats [N, C, L], [N, C, H, W] or [N, C, D, H, W], with spatial sizes of at least 1; the channels are last where
            data_format says so.
        size: static integer or one for each spatial axis, of the output. Either this or scale_factor.
        scale_factor: static number above 0 or one for each spatial axis: the output has floor(size scale_factor) elements.
        mode: static: "nearest", "nearest-exact", "area" of any rank; "linear" for [N, C, L], "bilinear", "bicubic" for
            [N, C, H, W], "trilinear" for [N, C, D, H, W].
        align_corners: static, whether the first and the last elements of both are at the same positions; None is False. Of
            linear and cubic modes alone.
        recompute_scale_factor: static, whether s is that of the sizes though scale_factor is given; None is False.
        antialias: static, whether elements are averaged where the output is smaller. Of "bilinear" and "bicubic".
        data_format: "NCL", "NCHW" or "NCDHW", by the rank of x, which None stands for; or "NLC", "NHWC" or "NDHWC".
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [N, C, *size], or [N, *size, C], of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: the tables are computed in float64. float16 and bfloat16 are computed in float32 and rounded once. An element
        of weight 0 is not read: NaN and infinities stay where they are. Sums have a fixed order, in gradients too: the same
        bits every time.

    Source: torch.nn.functional.interpolate; R. Keys, Cubic convolution interpolation for digital image processing (1981).
    """
    checks.choice("interpolate", "mode", mode, tuple(RANKS))
    how = dict(recompute_scale_factor=recompute_scale_factor, antialias=antialias, data_format=data_format)
    return _checked("interpolate", x, size, scale_factor, mode, align_corners, implementation, **how)


@api
def interpolate_backward(
    dy: ArrayLike,
    input_size: int | Integers,
    scale_factor: Scales | None = None,
    mode: Mode = "nearest",
    align_corners: bool | None = None,
    *,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    data_format: DataFormat | None = None,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `interpolate`: see its formula for dx.

    Args:
        dy: the cotangent of its result.
        input_size: static integers, the spatial size of x; one integer stands for all axes.
        scale_factor: as for `interpolate`, where that was given; otherwise the sizes say all.
        mode, align_corners, recompute_scale_factor, antialias, data_format, implementation: as for `interpolate`.

    Returns:
        The cotangent of x, of dy's dtype.
    """
    op = "interpolate_backward"
    checks.choice(op, "mode", mode, tuple(RANKS))
    dy, channels_last = layout(op, dy, RANKS[mode], data_format, "dy")
    out = spatial_size(dy, channels_last)
    size = checks.integers(op, "input_size", input_size, len(out), 1)
    given = dict(recompute_scale_factor=recompute_scale_factor) if scale_factor is not None else {}
    how = _tables(op, dy.dtype, size, None if given else out, scale_factor, mode, align_corners, antialias, **given)
    found = tuple(len(table.index) for table in how)
    if found != out:
        raise ValueError(f"{op}: dy must have the spatial size that interpolate gives, {found}, got {out}")
    return INTERPOLATE.vjp(dy, tables=how, channels_last=channels_last, implementation=implementation)


def _checked(op, x, size, scale_factor, mode, align_corners, implementation, *, rank=None, data_format=None, **how):
    x, channels_last = images(op, x, (rank,) if rank else RANKS[mode], data_format)
    tables = _tables(op, x.dtype, spatial_size(x, channels_last), size, scale_factor, mode, align_corners, **how)
    return INTERPOLATE(x, tables=tables, channels_last=channels_last, implementation=implementation)


def _tables(op, dtype, spatial, size, scale_factor, mode, align_corners, antialias=False, recompute_scale_factor=None):
    """The taps of each spatial axis."""
    align_corners = align_corners is not None and checks.flag(op, "align_corners", align_corners)
    antialias = checks.flag(op, "antialias", antialias)
    if align_corners and mode not in HAS_CORNERS:
        raise ValueError(f"{op}: align_corners must be None or False with mode {mode!r}, got True")
    if antialias and mode not in HAS_ANTIALIAS:
        raise ValueError(f"{op}: antialias must be False with mode {mode!r}, got True")
    sizes, scales = _sizes(op, spatial, size, scale_factor, recompute_scale_factor)
    name = wide_dtype(dtype).name
    return tuple(taps(mode, *axis, align_corners, antialias, name) for axis in zip(spatial, sizes, scales, strict=True))


def _sizes(op, spatial, size, scale_factor, recompute):
    """The output's sizes, and the scales that count, None for those of the sizes."""
    rank = len(spatial)
    recompute = recompute is not None and checks.flag(op, "recompute_scale_factor", recompute)
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{op}: either size or scale_factor must be given, got {size!r} and {scale_factor!r}")
    if size is not None:
        if recompute:
            raise ValueError(f"{op}: recompute_scale_factor must be None or False where size is given, got True")
        return checks.integers(op, "size", size, rank, 1), (None,) * rank
    scales = numbers(op, "scale_factor", scale_factor, rank)
    sizes = tuple(math.floor(n * s) for n, s in zip(spatial, scales, strict=True))
    if not all(sizes):
        raise ValueError(f"{op}: scale_factor must leave elements of the spatial sizes {spatial}, got {scale_factor!r}")
    return sizes, (None,) * rank if recompute else scales


class Plain(Protocol):
    """Interpolation of one mode that has no choice of corners."""

    __name__: str

    def __call__(
        self, x: ArrayLike, size: int | Integers | None = None, scale_factor: Scales | None = None, *,
        implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class Aligned(Protocol):
    """Interpolation of one mode that has."""

    __name__: str

    def __call__(
        self, x: ArrayLike, size: int | Integers | None = None, scale_factor: Scales | None = None,
        align_corners: bool = False, *, implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


class Antialiased(Protocol):
    """Interpolation of one mode that has both."""

    __name__: str

    def __call__(
        self, x: ArrayLike, size: int | Integers | None = None, scale_factor: Scales | None = None,
        align_corners: bool = False, antialias: bool = False, *, implementation: Implementation = None,
    ) -> Array: ...  # fmt: skip


_DOC = """{what}: `interpolate` with mode "{mode}".

    Args:
        x: floats {form}.
        size: static integer or one for each spatial axis, of the output. Either this or scale_factor.
        scale_factor: static number above 0 or one for each spatial axis.
{more}        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's dtype, with these spatial sizes.
    """
_ALIGN = "        align_corners: static, whether the first and the last elements of both are at the same positions.\n"
_ANTIALIAS = "        antialias: static, whether elements are averaged where the output is smaller.\n"


def _public(fun, name, mode, what, form, more=""):
    fun.__name__ = fun.__qualname__ = name
    fun.__doc__ = _DOC.format(what=what, mode=mode, form=form, more=more)
    return api(fun)


def _plain(name, mode, what) -> Plain:
    def fun(
        x: ArrayLike,
        size: int | Integers | None = None,
        scale_factor: Scales | None = None,
        *,
        implementation: Implementation = None,
    ) -> Array:
        return _checked(name, x, size, scale_factor, mode, None, implementation, rank=4)

    return _public(fun, name, mode, what, FORMS[4])


def _aligned(name, mode, what) -> Aligned:
    (rank,) = RANKS[mode]

    def fun(
        x: ArrayLike,
        size: int | Integers | None = None,
        scale_factor: Scales | None = None,
        align_corners: bool = False,
        *,
        implementation: Implementation = None,
    ) -> Array:
        return _checked(name, x, size, scale_factor, mode, align_corners, implementation)

    return _public(fun, name, mode, what, FORMS[rank], _ALIGN)


def _antialiased(name, mode, what) -> Antialiased:
    def fun(
        x: ArrayLike,
        size: int | Integers | None = None,
        scale_factor: Scales | None = None,
        align_corners: bool = False,
        antialias: bool = False,
        *,
        implementation: Implementation = None,
    ) -> Array:
        return _checked(name, x, size, scale_factor, mode, align_corners, implementation, antialias=antialias)

    return _public(fun, name, mode, what, FORMS[4], _ALIGN + _ANTIALIAS)


interpolate_nearest_2d = _plain("interpolate_nearest_2d", "nearest", "Images of the nearest elements")
interpolate_area_2d = _plain("interpolate_area_2d", "area", "Images of the means of areas")
interpolate_linear_1d = _aligned("interpolate_linear_1d", "linear", "Sequences, interpolated linearly")
interpolate_trilinear_3d = _aligned(
    "interpolate_trilinear_3d", "trilinear", "Volumes, interpolated linearly along each axis"
)
interpolate_bilinear_2d = _antialiased(
    "interpolate_bilinear_2d", "bilinear", "Images, interpolated linearly along each axis"
)
interpolate_bicubic_2d = _antialiased(
    "interpolate_bicubic_2d", "bicubic", "Images, interpolated by cubics along each axis"
)


def _case(name, shape, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape),), kwargs)


INTERPOLATE = declare(
    "interpolate",
    family="image",
    category=OpCategory.IMAGE,
    public=interpolate,
    **LINEAR,
    batched=as_they_are,
    cut="taps reach over the borders of shards",
    regime=by_taps,
    cases=(
        _case("bilinear", (2, 3, 5, 6), size=(9, 4), mode="bilinear"),
        _case("bilinear, twice", (1, 2, 12, 12), size=(24, 24), mode="bilinear"),
        _case("bicubic, twice", (1, 2, 12, 12), size=(24, 24), mode="bicubic"),
        _case("nearest", (2, 2, 5, 4), scale_factor=(1.7, 0.6)),
        _case("bicubic", (1, 2, 6, 5), size=(4, 9), mode="bicubic", align_corners=True),
        _case("trilinear", (1, 2, 3, 4, 3), scale_factor=1.6, mode="trilinear"),
        _case("linear of a scale", (2, 3, 7), scale_factor=2.3, mode="linear"),
        _case("area", (2, 2, 7, 5), size=(3, 6), mode="area"),
        _case("bicubic antialias", (1, 2, 13, 4), size=(4, 6), mode="bicubic", antialias=True),
        _case("channels last", (2, 5, 6, 3), size=(10, 12), mode="bilinear", data_format="NHWC"),
        _case("one axis", (2, 3, 4, 6), size=(4, 9), mode="bilinear"),
    ),
    dtypes=checks.FLOATS,
)
