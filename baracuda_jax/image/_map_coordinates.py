"""Arrays at coordinates, by splines.

Data flow: as in `grid_sample`, each position has a few elements, the same in all channels, which are the arrays that share
coordinates. Kernels have up to three axes, two with cubic splines; arrays of more axes are read by plain JAX, and their
gradients are the same sums in a fixed order. Coefficients of cubic splines are resampled axes. Patterns: sample,
resample."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.body import Body
from .._core.case import Case
from .._core.compiled import compiled
from .._core.kernel import kernel
from .._core.op import as_they_are, declare
from .._core.regime import by_coordinates
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import next_to
from ._cut import by_position
from ._sample import added, adjoint, derivatives, entries, weighted
from ._splines import MODES, along, around, coefficients, is_outside, other

Mode = Literal[
    "constant", "grid-constant", "nearest", "mirror", "reflect", "grid-mirror", "wrap", "grid-wrap"
]  # fmt: skip
TAPS = {0: 1, 1: 2, 3: 4}
WEIGHTS = {0: "nearest", 1: "linear", 3: "spline"}


@api
def map_coordinates(
    x: ArrayLike,
    coordinates: ArrayLike | Sequence[ArrayLike],
    order: int = 3,
    mode: Mode = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    implementation: Implementation = None,
) -> Array:
    """An array at coordinates between its elements, by splines.

    Formula:
        y[..., p] = sum over the elements t around c = coordinates[:, p] of k(c - t) a[..., t]
        order 0: the element floor(c + 1/2) along each axis. order 1: k(d) is 1 - |d| along each axis, of 2 elements. order
        3: k is the cubic B-spline, of 4 elements along each axis, and a are the coefficients with which the spline is x at
        the elements: x by the filter -6 z / (1 - z^2) z^|d| along each axis, z being sqrt(3) - 2. Without prefilter, and of
        orders 0 and 1, a is x.
        da[..., t] = sum of k(c - t) dy[..., p], and dx is da by the same filter; dcoordinates is the derivative of k.

    Args:
        x: floats [..., *axes], with as many axes as there are coordinates, of sizes of at least 1. Dimensions before them
            are arrays with the same coordinates.
        coordinates: floats [axes, ...] of x's dtype, or float32 with half precisions, which count the elements of each
            axis from 0; or a sequence of such arrays, one for each axis.
        order: static, 0, 1 or 3.
        mode: static, what is outside: "constant", cval wherever a coordinate is outside [0, n - 1]; "grid-constant", cval
            for each element that there is not; "nearest", the outermost element; "mirror", turned back at the outermost
            centers; "reflect" or "grid-mirror", turned back at the edges; "wrap", from the beginning, the last element
            being the first; "grid-wrap", from the beginning, after the last element.
        cval: static number.
        prefilter: static, whether x are values, not coefficients. Orders 0 and 1 have no coefficients.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., *points] of x's dtype, for coordinates [axes, *points].

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. By kernels, gradients are sums in a fixed
        order: the same bits every time. A NaN coordinate gives NaN, with order 0 cval. An infinite one is outside, or NaN
        where there is nothing outside.

    Source: scipy.ndimage.map_coordinates; M. Unser, Splines: a perfect fit for signal and image processing, 1999.
    """
    op = "map_coordinates"
    x, coordinates, how = _arguments(op, x, coordinates, order, mode, cval, prefilter)
    return _read(x, coordinates, implementation=implementation, **how)


def _arguments(op, x, coordinates, order, mode, cval, prefilter):
    x = checks.floats(op, "x", x)
    if isinstance(coordinates, tuple | list):
        arrays = [next_to(op, f"coordinates[{i}]", c, x) for i, c in enumerate(coordinates)]
        if not arrays or len({(c.shape, c.dtype) for c in arrays}) > 1:
            raise ValueError(
                f"{op}: coordinates must be one or more arrays of one shape and dtype, got "
                f"{[(c.shape, c.dtype.name) for c in arrays]}"
            )
        coordinates = jnp.stack(arrays)
    coordinates = next_to(op, "coordinates", coordinates, x)
    if coordinates.ndim == 0 or not 1 <= coordinates.shape[0] <= x.ndim:
        raise ValueError(
            f"{op}: coordinates must be [axes, ...] with 1 to {x.ndim} axes for x of shape {x.shape}, got shape "
            f"{coordinates.shape}"
        )
    sizes = x.shape[x.ndim - coordinates.shape[0] :]
    if not all(isinstance(n, int) and n > 0 for n in sizes):
        raise ValueError(f"{op}: x must have static sizes of at least 1 along its axes, got shape {x.shape}")
    checks.positions(op, "x", math.prod(sizes), "elements along its axes")
    if isinstance(order, bool) or order not in TAPS:
        raise ValueError(f"{op}: order must be 0, 1 or 3, got {order!r}")
    checks.choice(op, "mode", mode, (*MODES, "grid-mirror"))
    if not checks.is_number(cval):
        raise TypeError(f"{op}: cval must be a static number, got {cval!r}")
    prefilter = checks.flag(op, "prefilter", prefilter)
    mode = "reflect" if mode == "grid-mirror" else mode
    return x, coordinates, dict(order=int(order), mode=mode, fill=float(cval), prefilter=prefilter)


@compiled("order", "mode", "fill", "prefilter", "implementation")
def _read(x, coordinates, *, order, prefilter, implementation, **how):
    axes, points = coordinates.shape[0], coordinates.shape[1:]
    outer, dtype, sizes = x.shape[: x.ndim - axes], x.dtype, x.shape[x.ndim - axes :]
    # One dimension at a time, of which JAX knows how explicit axes of a mesh go on.
    a = explicit.reshape(x, math.prod(outer), *sizes) if outer else jnp.expand_dims(x, 0)
    at = wide(coordinates)
    if order == 3 and prefilter:
        # Coefficients are not rounded to half precision.
        a, longer = coefficients(wide(a), axes, how["mode"], how["fill"], implementation)
        at = at + longer
    at = explicit.reshape(at, axes, math.prod(points))
    y = MAP_COORDINATES(a, at, order=order, **how, implementation=implementation)
    y = explicit.reshape(y, *outer, math.prod(points)) if outer else jnp.squeeze(y, 0)
    return explicit.reshape(y, *outer, *points).astype(dtype)


# ---------------------------------------------------------------------------------------------------------------------
# In plain JAX


def _reference(x, coordinates, **how):
    """x [*batch, C, *axes], coordinates [*batch, axes, points]."""
    if coordinates.ndim > 2:
        return jax.vmap(functools.partial(_reference, **how))(x, coordinates)
    index, weight, inside, is_filled = _elements(coordinates, x.shape[1:], order=how["order"], mode=how["mode"])
    flat = explicit.reshape(wide(x), x.shape[0], math.prod(x.shape[1:]))
    one = lambda many: [None if each is None else each[None] for each in many]
    (y,) = weighted(flat[None], one(index), one(weight), one(inside), how["fill"])
    return (jnp.where(is_filled, how["fill"], y).astype(x.dtype),)


def _elements(coordinates, sizes, *, order, mode):
    """(indices, weights, whether there are such elements) of the elements around each position, lists over these; and
    whether the fill value is there instead."""
    at = wide(coordinates)
    is_filled = jnp.zeros((*at.shape[:-2], at.shape[-1]), bool)
    if mode == "constant":
        for axis, n in enumerate(sizes):
            is_filled |= is_outside(at[..., axis, :], n)
        at = jnp.where(is_filled[..., None, :], 0, at)
    taps = [along(at[..., axis, :], n, order, mode) for axis, n in enumerate(sizes)]
    index, weight, inside = [], [], []
    for each in itertools.product(*taps):
        i, w, b = each[0]
        for n, (j, v, c) in zip(sizes[1:], each[1:], strict=True):
            i, w, b = i * n + j, None if v is None else w * v, b & c
        index.append(i)
        weight.append(w)
        inside.append(b)
    return index, weight, inside, is_filled


_tangent_reference, _backward_reference = derivatives(_reference)

# ---------------------------------------------------------------------------------------------------------------------
# By kernels


def _has_kernel(coordinates, order):
    return coordinates.shape[-2] <= (2 if order == 3 else 3)


def _called(target, operands, terms, out, *, order, mode, fill):
    """`terms` names the dimensions of the operands, and then those of the result: those of x, of positions or of y."""
    dims = {"x": f"...c{'dhw'[: operands[1].shape[-2]]}", "at": "...kp", "y": "...cp"}
    *of_operands, of_result = (dims[term] for term in terms)
    (result,) = kernel(
        target, f"{', '.join(of_operands)} -> {of_result}", *operands, out=[out],
        taps=TAPS[order], mode=MODES.index(mode), fill=fill,
    )  # fmt: skip
    return result


def _result_type(x, coordinates):
    axes, points = coordinates.shape[-2:]
    return jax.ShapeDtypeStruct((*x.shape[: x.ndim - axes], points), x.dtype)


def _native(x, coordinates, *, save=False, **how):
    if not _has_kernel(coordinates, how["order"]):
        return _reference(x, coordinates, **how)
    operands = [x, wide(coordinates)]
    return (_called("sample_coordinates", operands, ("x", "at", "y"), _result_type(x, coordinates), **how),)


def _tangent_native(x, coordinates, tx, tcoordinates, **how):
    if not _has_kernel(coordinates, how["order"]):
        return _tangent_reference(x, coordinates, tx, tcoordinates, **how)
    operands, terms = [x, wide(coordinates), tx, wide(tcoordinates)], ("x", "at", "x", "at", "y")
    return (_called("sample_coordinates_tangent", operands, terms, _result_type(x, coordinates), **how),)


def _backward_native(x, coordinates, dy, **how):
    at = wide(coordinates)
    if _has_kernel(coordinates, how["order"]):
        moved = jax.ShapeDtypeStruct(at.shape, at.dtype)
        moved = _called("sample_coordinates_backward", [x, at, dy], ("x", "at", "y", "at"), moved, **how)
    else:
        _, pull = jax.vjp(lambda at: _reference(x, at, **how), at)
        (moved,) = pull((dy,))
    return _array_cotangent(x, at, dy, **how), moved.astype(coordinates.dtype)


def _array_cotangent(x, at, dy, *, order, mode, fill):
    """The sum of dy over the positions that have an element, times its weight."""
    axes, batch = at.shape[-2], at.shape[:-2]
    sizes = x.shape[x.ndim - axes :]
    if axes > 3:
        index, weight, inside, is_filled = _elements(at, sizes, order=order, mode=mode)
        receivers, weights = entries(index, weight, [is_in & ~is_filled for is_in in inside], batch, at.dtype)
        dx = added(jnp.swapaxes(dy, -1, -2), weights, receivers, math.prod(sizes))
        return jnp.swapaxes(dx, -1, -2).reshape(x.shape)
    of_axes = [around(at[..., axis, :], n, order, mode) for axis, n in enumerate(sizes)]
    # Elements outside that are read otherwise have no weight, or there are none.
    has_others = mode != "grid-constant" if order == 3 else order == 1 and mode in ("reflect", "grid-wrap")
    return adjoint(dy, of_axes, sizes, WEIGHTS[order], functools.partial(other, mode=mode) if has_others else None)


def _case(name, shape, axes, points, **kwargs):
    def draw(rng):
        sizes = shape[len(shape) - axes :]
        return rng.standard_normal(shape), np.stack([rng.uniform(-2.3, n + 1.2, points) for n in sizes])

    return Case(name, draw, kwargs)


MAP_COORDINATES = declare(
    "map_coordinates",
    family="image",
    category=OpCategory.IMAGE,
    public=map_coordinates,
    cases=(
        _case("cubic", (5, 6), 2, (4,), mode="mirror"),
        _case("image", (5, 6), 2, (3, 4), order=1),
        _case("channels", (3, 4, 5), 2, (7,), order=1, mode="reflect"),
        _case("volume", (3, 4, 3), 3, (5,), order=1, mode="grid-constant", cval=0.5),
        _case("nearest", (2, 7), 1, (4,), order=0, mode="grid-wrap"),
        _case("coefficients", (6, 4), 2, (2, 3), mode="constant", cval=-1.0, prefilter=False),
        _case("extended", (2, 4, 3), 2, (3,), mode="nearest"),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "coordinates"),
    differentiable=("x", "coordinates"),
    residuals=("x", "coordinates"),
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("sample_coordinates",),
        "tangent": ("sample_coordinates_tangent",),
        "backward": ("sample_coordinates_backward", "sample_adjoint"),
    },
    also=("interpolate",),
    sometimes=("segment_index", "segment_weighted_sum"),
    batched=as_they_are,
    cut=by_position("coordinates", by_axis=True),
    regime=by_coordinates,
    fused=True,
)
