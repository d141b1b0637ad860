"""Coordinates in an image: of numbers from -1 to 1, and brought back into it by padding."""

import jax.numpy as jnp
from jax import lax

PADDINGS = ("zeros", "border", "reflection")


def unnormalized(grid, n, align_corners):
    """Element i is at i; -1 and 1 are the centers of the first and last element, or else the image's edges."""
    return (grid + 1) * ((n - 1) / 2) if align_corners else ((grid + 1) * n - 1) / 2


def padded(at, n, padding, align_corners):
    """A coordinate in the image. Where padding moves it, it has the slope of what it is moved by: 0 at a border and
    beyond, 1 or -1 of a reflection."""
    if padding == "zeros":
        return at
    return clipped(_reflected(at, n, align_corners) if padding == "reflection" else at, n)


def clipped(at, n):
    """A coordinate brought to the center of the outermost element, where its slope is 0. NaN becomes 0."""
    return jnp.where(at > 0, jnp.where(at < n - 1, at, n - 1), 0)


def _reflected(at, n, align_corners):
    """About the centers of the first and the last element, or about the image's edges."""
    low, span = (0.0, n - 1) if align_corners else (-0.5, n)
    if not span:
        return jnp.zeros_like(at)
    distance = jnp.where(at < low, low - at, at - low)
    turns = jnp.floor(distance / span)
    rest = lax.rem(distance, jnp.full_like(distance, span))
    return jnp.where(lax.rem(turns, jnp.full_like(turns, 2)) == 0, rest + low, span - rest + low)


def index_of(at, n):
    """An integer coordinate as an index, and whether there is such an element. NaN is none."""
    inside = (at >= 0) & (at <= n - 1)
    return jnp.where(inside, at, 0).astype(jnp.int32), inside
