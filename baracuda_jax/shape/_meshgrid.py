"""The coordinates of a grid."""

from typing import Literal

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from ._broadcast_in_dim import broadcast_in_dim
from ._family import operand


@api
def meshgrid(
    *xs: ArrayLike, indexing: Literal["xy", "ij"] = "xy", implementation: Implementation = None
) -> list[Array]:
    """The coordinates of the points of a grid, from those along each axis: each broadcast to the grid (`broadcast_in_dim`).

    Args:
        xs: arrays of rank 1, or numbers: floats, integers, bool or complex.
        indexing: "ij", where axis k of the grid is that of xs[k], or "xy", where the first two axes are exchanged.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        List of as many arrays as xs, each of its x's dtype and of the shape of the grid.
    """
    op = "meshgrid"
    checks.choice(op, "indexing", indexing, ("xy", "ij"))
    xs = [operand(op, f"xs[{i}]", x) for i, x in enumerate(xs)]
    for i, x in enumerate(xs):
        if x.ndim > 1:
            raise ValueError(f"{op}: xs[{i}] must have at most one dimension, got shape {tuple(x.shape)}")
    positions = list(range(len(xs)))
    if indexing == "xy":
        positions[:2] = positions[1::-1]
    shape = tuple(xs[position].size for position in positions)
    return [
        broadcast_in_dim(x.reshape(-1), shape, (position,), implementation=implementation)
        for x, position in zip(xs, positions, strict=True)
    ]
