"""Regions of interest: boxes of several images, and the sizes that they are reduced to."""

import math

import jax.numpy as jnp

from .._core import checks, explicit
from .._core.wide import wide
from ._arguments import images, next_to, number


def arguments(op, x, boxes, output_size, spatial_scale):
    """x [N, C, H, W], boxes as they are, the output's two sizes, and the scale."""
    x, _ = images(op, x, (4,))
    checks.positions(op, "x", math.prod(x.shape[2:]) * (x.shape[0] if isinstance(x.shape[0], int) else 1))
    boxes = next_to(op, "boxes", boxes, x)
    if not (boxes.ndim == 2 and boxes.shape[1] == 5) and not (boxes.ndim == 3 and boxes.shape[2] == 4):
        raise ValueError(f"{op}: boxes must be [K, 5] or [N, K, 4], got shape {boxes.shape}")
    if boxes.ndim == 3 and boxes.shape[0] != x.shape[0]:
        raise ValueError(
            f"{op}: boxes must be [N, K, 4] with N = {x.shape[0]} for x of shape {x.shape}, got {boxes.shape}"
        )
    return x, boxes, checks.integers(op, "output_size", output_size, 2, 1), number(op, "spatial_scale", spatial_scale)


def boxes_and_images(boxes, scale):
    """The four coordinates of each box, [K] in x's elements, and the index of its image, [K]."""
    n, shape = boxes.shape[0], boxes.shape[:-1]
    if boxes.ndim == 3:
        image = jnp.broadcast_to(jnp.arange(n, dtype=jnp.int32)[:, None], shape)
        found = explicit.reshape(boxes, -1, 4)
        return [wide(found[:, i]) * scale for i in range(4)], explicit.reshape(image, -1)
    image = jnp.round(jnp.clip(jnp.nan_to_num(wide(boxes[:, 0]), nan=-1), -1, 2.0**30)).astype(jnp.int32)
    return [wide(boxes[:, i]) * scale for i in range(1, 5)], image


def as_boxes(y, boxes):
    """[K, ...] as the boxes are: [K, ...] or [N, K, ...]."""
    return explicit.reshape(y, *boxes.shape[:-1], *y.shape[1:])
