"""Images at the positions of a grid.

Data flow: each position has a few elements of the image, the same in all channels; the result is their weighted sum. The
gradient of the image is a sum over the positions around an element, which are listed by bins once for all channels; that
of the grid is a sum over channels. Patterns: sample; sample, adjoint."""

import functools
import itertools
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.body import Body
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import as_they_are, declare
from .._core.regime import by_samples
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import images, next_to
from ._coordinates import PADDINGS, index_of, padded, unnormalized
from ._cut import by_position
from ._sample import adjoint, derivatives, weighted
from ._taps import A, cubic_far, cubic_near

MODES = ("bilinear", "nearest", "bicubic")
Mode = Literal["bilinear", "nearest", "bicubic"]
Padding = Literal["zeros", "border", "reflection"]
TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}
WEIGHTS = {"nearest": "nearest", "bilinear": "linear", "bicubic": "keys"}


@api
def grid_sample(
    x: ArrayLike,
    grid: ArrayLike,
    mode: Mode = "bilinear",
    padding_mode: Padding = "zeros",
    align_corners: bool = False,
    *,
    implementation: Implementation = None,
) -> Array:
    """Images, or volumes, at the positions of a grid.

    Formula:
        y[n, c, h, w] = sum over the elements t around p of k(p - t) x[n, c, t], p being ((g + 1) size - 1) / 2 along each
        axis for g = grid[n, h, w], or (g + 1) (size - 1) / 2 with align_corners.
        "bilinear": k is 1 - |d| along each axis, of 2 elements along each. "nearest": the element at p, halves rounded
        to even.
        "bicubic": Keys' kernel with a = -0.75, of 4 elements along each axis.
        dx[n, c, t] = sum of k(p - t) dy[n, c, h, w]; dgrid is the derivative in p times that of p: 0 for "nearest".

    Args:
        x: floats [N, C, H, W] or [N, C, D, H, W], with spatial sizes of at least 1.
        grid: floats [N, H', W', 2] or [N, D', H', W', 3] of x's dtype, or float32 with half precisions. The last axis has
            the positions along W, H and D, -1 and 1 being the edges of the image.
        mode: static, "bilinear", which is linear along three axes of a volume; "nearest"; "bicubic" of images alone.
        padding_mode: static, what is outside: "zeros"; "border", the nearest element; "reflection", the image mirrored at
            its edges, or, with align_corners, about the centers of its outermost elements.
        align_corners: static, whether -1 and 1 are the centers of the outermost elements instead.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [N, C, H', W'] or [N, C, D', H', W'] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. By kernels, gradients are sums in a fixed
        order: the same bits every time. A NaN or infinite position gives NaN. But "nearest" with "zeros" gives 0 there, and
        with "border" and "reflection" linear modes and "nearest" take NaN for index 0, infinity for the border or, with
        "reflection", for index 0.

    Source: torch.nn.functional.grid_sample; M. Jaderberg et al., Spatial Transformer Networks, arXiv:1506.02025.
    """
    x, grid, how = _arguments("grid_sample", x, grid, mode, padding_mode, align_corners)
    return GRID_SAMPLE(x, grid, **how, implementation=implementation)


grid_sample_2d = grid_sample


@api
def grid_sample_backward(
    x: ArrayLike,
    grid: ArrayLike,
    dy: ArrayLike,
    mode: Mode = "bilinear",
    padding_mode: Padding = "zeros",
    align_corners: bool = False,
    *,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradients of `grid_sample`: see its formula for dx and dgrid.

    Args:
        x, grid: as for `grid_sample`.
        dy: the cotangent of its result, of x's dtype.
        mode, padding_mode, align_corners, implementation: as for `grid_sample`.

    Returns:
        (the cotangent of x, that of grid), of their shapes and dtypes.
    """
    op = "grid_sample_backward"
    x, grid, how = _arguments(op, x, grid, mode, padding_mode, align_corners)
    dy = checks.floats(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, (*x.shape[:2], *grid.shape[1:-1]), "that of the result")
    return tuple(GRID_SAMPLE.vjp(x, grid, dy, **how, implementation=implementation))


def _arguments(op, x, grid, mode, padding, align_corners):
    x, _ = images(op, x, (4, 5))
    rank = x.ndim - 2
    grid = next_to(op, "grid", grid, x)
    if grid.ndim != rank + 2 or grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        form = "[N, H, W, 2]" if rank == 2 else "[N, D, H, W, 3]"
        raise ValueError(f"{op}: grid must be {form} with N = {x.shape[0]} for x of shape {x.shape}, got {grid.shape}")
    checks.choice(op, "mode", mode, MODES)
    if mode == "bicubic" and rank == 3:
        raise ValueError(f"{op}: mode must be 'bilinear' or 'nearest' for x of shape {x.shape}, got 'bicubic'")
    checks.choice(op, "padding_mode", padding, PADDINGS)
    how = dict(mode=mode, padding=padding, align_corners=checks.flag(op, "align_corners", align_corners))
    return x, grid, how


# ---------------------------------------------------------------------------------------------------------------------
# In plain JAX


def _reference(x, grid, **how):
    """x [*batch, N, C, *spatial], grid [*batch, N, *points, rank]."""
    if x.ndim > grid.shape[-1] + 2:
        return jax.vmap(functools.partial(_reference, **how))(x, grid)
    flat = explicit.reshape(wide(x), *x.shape[:2], math.prod(x.shape[2:]))
    return (weighted(flat, *_elements(grid, x.shape[2:], **how)).astype(x.dtype),)


def _elements(grid, spatial, *, mode, padding, align_corners):
    """(indices, weights, whether there are such elements) of the elements around each position, lists over these."""
    of_axis = {"bilinear": _linear, "nearest": _nearest, "bicubic": _cubic}[mode]
    taps = [
        of_axis(unnormalized(wide(grid[..., -1 - axis]), n, align_corners), n, padding, align_corners)
        for axis, n in enumerate(spatial)
    ]
    index, weight, inside = [], [], []
    for each in itertools.product(*taps):
        at, w, is_in = each[0]
        for n, (i, v, b) in zip(spatial[1:], each[1:], strict=True):
            at, w, is_in = at * n + i, None if v is None else w * v, is_in & b
        index.append(at)
        weight.append(w)
        inside.append(is_in)
    return index, weight, inside


_tangent_reference, _backward_reference = derivatives(_reference)

# What is read along an axis: (index, weight, whether there is such an element) of each tap.


def _linear(at, n, padding, align_corners):
    at = padded(at, n, padding, align_corners)
    first = lax.stop_gradient(jnp.floor(at))
    after = at - first
    return [_tap(first, 1 - after, n), _tap(first + 1, after, n)]


def _nearest(at, n, padding, align_corners):
    return [_tap(jnp.round(padded(lax.stop_gradient(at), n, padding, align_corners)), None, n)]


def _cubic(at, n, padding, align_corners):
    """Each tap is brought into the image by itself, its weight being that of where it was."""
    first = lax.stop_gradient(jnp.floor(at))
    after = at - first
    weights = cubic_far(after + 1, A), cubic_near(after, A), cubic_near(1 - after, A), cubic_far(2 - after, A)
    taps = (padded(first + k, n, padding, align_corners) for k in (-1, 0, 1, 2))
    return [_tap(at, weight, n) for at, weight in zip(taps, weights, strict=True)]


def _tap(at, weight, n):
    index, inside = index_of(at, n)
    return index, weight, inside


# ---------------------------------------------------------------------------------------------------------------------
# By kernels


def _called(target, operands, terms, out, *, mode, padding, align_corners):
    """`terms` names the dimensions of the operands, and then those of the result: those of x, of positions or of y."""
    rank = operands[1].shape[-1]
    image, points = "dhw"[-rank:], "pqr"[:rank]
    dims = {"x": f"...c{image}", "grid": f"...{points}k", "y": f"...c{points}"}
    *of_operands, of_result = (dims[term] for term in terms)
    (result,) = kernel(
        target, f"{', '.join(of_operands)} -> {of_result}", *operands, out=[out],
        taps=TAPS[mode], padding=PADDINGS.index(padding), align_corners=align_corners,
    )  # fmt: skip
    return result


def _result_type(x, grid):
    rank = grid.shape[-1]
    return jax.ShapeDtypeStruct((*x.shape[:-rank], *grid.shape[-rank - 1 : -1]), x.dtype)


def _native(x, grid, *, save=False, **how):
    return (_called("sample", [x, wide(grid)], ("x", "grid", "y"), _result_type(x, grid), **how),)


def _tangent_native(x, grid, tx, tgrid, **how):
    operands = [x, wide(grid), tx, wide(tgrid)]
    terms = ("x", "grid", "x", "grid", "y")
    return (_called("sample_tangent", operands, terms, _result_type(x, grid), **how),)


def _backward_native(x, grid, dy, **how):
    moved = jax.ShapeDtypeStruct(grid.shape, wide(grid).dtype)
    dgrid = _called("sample_backward", [x, wide(grid), dy], ("x", "grid", "y", "grid"), moved, **how)
    return _image_cotangent(x, grid, dy, **how), dgrid.astype(grid.dtype)


def _image_cotangent(x, grid, dy, *, mode, **how):
    """The sum of dy over the positions that have an element, times its weight."""
    rank = grid.shape[-1]
    axis, spatial = grid.ndim - rank - 1, x.shape[-rank:]
    points = math.prod(grid.shape[axis:-1])
    at = wide(grid).reshape(*grid.shape[:axis], points, rank)
    along = [_around(at[..., -1 - a], n, mode, **how) for a, n in enumerate(spatial)]
    # Elements outside that linear modes read have no weight.
    other = functools.partial(_other, **how) if mode == "bicubic" and how["padding"] != "zeros" else None
    return adjoint(dy.reshape(*x.shape[: axis + 1], points), along, spatial, WEIGHTS[mode], other)


def _around(grid, n, mode, padding, align_corners):
    """(where positions are along an axis that goes on outside, the element at or before, whether they are numbers)."""
    at = unnormalized(grid, n, align_corners)
    if mode == "nearest":
        before = jnp.round(padded(at, n, padding, align_corners))
        return before, *_index(before, n)
    if mode == "bilinear":
        at = padded(at, n, padding, align_corners)
        return at, *_index(jnp.floor(at), n)
    before = jnp.floor(at)
    after = at - before
    if padding == "border":
        # Far outside all elements are the outermost one.
        before = jnp.where(before > -2, jnp.where(before < n, before, n), -2)
    if padding == "reflection":
        # Elements go up or down, or two are the same at the edge. What is no number has the first element alone.
        low, high = (padded(before + k, n, padding, align_corners) for k in (0, 1))
        is_down, is_edge = high < low, (low == high) & (low == 0) & (not align_corners)
        before = jnp.where(is_down, high, jnp.where(is_edge, -1, low))
        before = jnp.where(jnp.isfinite(after), before, -5)
        after = jnp.where(is_down, 1 - after, after)
    return before + after, *_index(before, n)


def _index(before, n):
    inside = (before >= -5) & (before <= n)
    return jnp.where(inside, before, 0).astype(jnp.int32), inside


def _other(index, n, *, padding, align_corners):
    """The elements that are read instead of those outside."""
    if padding == "border":
        return index.clip(0, n - 1)
    period = max(2 * n - 2, 1) if align_corners else 2 * n
    turned = index % period
    turned = np.minimum(turned, (period if align_corners else period - 1) - turned)
    return np.where(index < -2, 0, turned).clip(0, n - 1)


def _case(name, shape, points, **kwargs):
    def draw(rng):
        grid = rng.uniform(-1.3, 1.3, (shape[0], *points, len(shape) - 2))
        return rng.standard_normal(shape), grid

    return Case(name, draw, kwargs)


GRID_SAMPLE = declare(
    "grid_sample",
    family="image",
    category=OpCategory.IMAGE,
    public=grid_sample,
    cases=(
        _case("bilinear", (2, 3, 5, 4), (3, 4)),
        _case("border", (1, 2, 4, 6), (5, 2), padding_mode="border", align_corners=True),
        _case("volume", (2, 2, 3, 4, 3), (2, 3, 2), padding_mode="reflection"),
        _case("bicubic", (1, 2, 5, 6), (3, 3), mode="bicubic", padding_mode="reflection", align_corners=True),
        _case("nearest", (2, 2, 4, 3), (4, 3), mode="nearest"),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "grid"),
    differentiable=("x", "grid"),
    residuals=("x", "grid"),
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("sample",),
        "tangent": ("sample_tangent",),
        "backward": ("sample_backward", "sample_adjoint"),
    },
    batched=as_they_are,
    cut=by_position("grid"),
    regime=by_samples,
    fused=True,
)
