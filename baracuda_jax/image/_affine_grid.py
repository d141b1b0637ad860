"""Affine maps of the positions of an image."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from .._core.wide import wide


@facade_api("xla")
def affine_grid(
    theta: ArrayLike, size: Integers, align_corners: bool = False, *, implementation: Implementation = None
) -> Array:
    """Positions in an image that an affine map gives for each element of another: a grid for `grid_sample`.

    Formula:
        grid[n, h, w, k] = theta[n, k, 0] x[w] + theta[n, k, 1] y[h] + theta[n, k, 2], and with depth
        theta[n, k, 0] x[w] + theta[n, k, 1] y[h] + theta[n, k, 2] z[d] + theta[n, k, 3]. Along an axis of m elements
        positions are (2 i + 1) / m - 1, or, with align_corners, 2 i / (m - 1) - 1, which is 0 for m = 1.
        dtheta is the sum of dgrid times these positions.

    Args:
        theta: floats [N, 2, 3] for images, [N, 3, 4] for volumes.
        size: static, of what is sampled: (N, C, H, W) or (N, C, D, H, W).
        align_corners: static, whether -1 and 1 are the centers of the first and the last element, instead of the image's
            edges.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [N, H, W, 2] or [N, D, H, W, 3] of theta's dtype; the last axis has x, y and z.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: positions are computed in float64 and rounded to the dtype that is computed in. float16 and bfloat16 are
        computed in float32 and rounded once.

    Source: torch.nn.functional.affine_grid; M. Jaderberg et al., Spatial Transformer Networks, arXiv:1506.02025.
    """
    op = "affine_grid"
    theta = checks.floats(op, "theta", theta)
    align_corners = checks.flag(op, "align_corners", align_corners)
    rank = {(2, 3): 2, (3, 4): 3}.get(theta.shape[1:])
    if rank is None:
        raise ValueError(f"{op}: theta must be [N, 2, 3] or [N, 3, 4], got shape {theta.shape}")
    form = "(N, C, H, W)" if rank == 2 else "(N, C, D, H, W)"
    if not isinstance(size, tuple | list | np.ndarray) or len(size) != rank + 2:
        raise ValueError(f"{op}: size must be {form} for theta of shape {theta.shape}, got {size!r}")
    if size[0] != theta.shape[0]:
        raise ValueError(f"{op}: size must be {form} with N = {theta.shape[0]}, that of theta, got {size!r}")
    spatial = tuple(checks.integer(op, f"size[{i + 2}]", n, 1) for i, n in enumerate(size[2:]))
    return _affine_grid(theta, spatial=spatial, align_corners=align_corners)


affine_grid_2d = affine_grid


def positions(n, align_corners):
    """Those of the elements of an axis."""
    if align_corners:
        return np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
    return (2 * np.arange(n) + 1) / n - 1


@compiled("spatial", "align_corners")
def _affine_grid(theta, *, spatial, align_corners):
    """Term by term: a product of matrices would be rounded as the platform's products are."""
    rank, wider = len(spatial), wide(theta)
    column = lambda k: jnp.expand_dims(wider[..., k], range(1, rank + 1))
    grid = column(rank)
    for k, n in enumerate(reversed(spatial)):
        at = positions(n, align_corners).astype(wider.dtype).reshape(*(1,) * (rank - k), n, *(1,) * (k + 1))
        grid = grid + column(k) * at
    return grid.astype(theta.dtype)


def _case(name, n, size, **kwargs):
    rank = len(size) - 2
    return Case(name, lambda rng: (rng.standard_normal((n, rank, rank + 1)),), dict(size=size, **kwargs))


facade(
    "affine_grid",
    family="image",
    category=OpCategory.IMAGE,
    public=affine_grid,
    cases=(
        _case("image", 3, (3, 1, 4, 5)),
        _case("volume", 2, (2, 1, 3, 2, 4)),
        _case("corners", 2, (2, 3, 1, 4), align_corners=True),
    ),
    dtypes=checks.FLOATS,
    operands=("theta",),
    differentiable=("theta",),
)
