"""Images at the positions of a grid."""

import itertools
from typing import Literal

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import images, next_to
from ._coordinates import PADDINGS, index_of, padded, unnormalized
from ._sample import weighted
from ._taps import A, cubic_far, cubic_near

MODES = ("bilinear", "nearest", "bicubic")


@facade_api("xla")
def grid_sample(
    x: ArrayLike,
    grid: ArrayLike,
    mode: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
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
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [N, C, H', W'] or [N, C, D', H', W'] of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. A NaN or infinite position gives NaN. But
        "nearest" with "zeros" gives 0 there, and with "border" and "reflection" linear modes and "nearest" take NaN for
        index 0, infinity for the border or, with "reflection", for index 0.

    Source: torch.nn.functional.grid_sample; M. Jaderberg et al., Spatial Transformer Networks, arXiv:1506.02025.
    """
    op = "grid_sample"
    x, _ = images(op, x, (4, 5))
    rank = x.ndim - 2
    grid = next_to(op, "grid", grid, x)
    if grid.ndim != rank + 2 or grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        form = "[N, H, W, 2]" if rank == 2 else "[N, D, H, W, 3]"
        raise ValueError(f"{op}: grid must be {form} with N = {x.shape[0]} for x of shape {x.shape}, got {grid.shape}")
    checks.choice(op, "mode", mode, MODES)
    if mode == "bicubic" and rank == 3:
        raise ValueError(f"{op}: mode must be 'bilinear' or 'nearest' for x of shape {x.shape}, got 'bicubic'")
    checks.choice(op, "padding_mode", padding_mode, PADDINGS)
    return _grid_sample(
        x, grid, mode=mode, padding=padding_mode, align_corners=checks.flag(op, "align_corners", align_corners)
    )


grid_sample_2d = grid_sample


@compiled("mode", "padding", "align_corners")
def _grid_sample(x, grid, *, mode, padding, align_corners):
    spatial = x.shape[2:]
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
    flat = explicit.reshape(wide(x), *x.shape[:2], -1)
    return weighted(flat, index, weight, inside).astype(x.dtype)


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


def _case(name, shape, points, **kwargs):
    def draw(rng):
        grid = rng.uniform(-1.3, 1.3, (shape[0], *points, len(shape) - 2))
        return rng.standard_normal(shape), grid

    return Case(name, draw, kwargs)


facade(
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
)
