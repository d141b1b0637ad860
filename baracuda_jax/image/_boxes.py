"""How much boxes overlap."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide


@facade_api("xla")
def box_iou(boxes1: ArrayLike, boxes2: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Intersection over union of each pair of two sets of boxes.

    Formula:
        y[i, j] = |a and b| / |a or b| for a = boxes1[i] and b = boxes2[j], |.| being an area, (x2 - x1) (y2 - y1); 0 where
        the union has none. dboxes1 and dboxes2 are its derivatives; boxes that do not overlap have none.

    Args:
        boxes1: floats [..., N, 4]: x1, y1, x2, y2, with x1 <= x2 and y1 <= y2.
        boxes2: floats [..., M, 4] of boxes1's dtype, with the same leading axes.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [..., N, M] of boxes1's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torchvision.ops.box_iou, where the union of no area gives NaN.
    """
    op = "box_iou"
    boxes1 = boxes(op, "boxes1", boxes1)
    boxes2 = boxes(op, "boxes2", boxes2)
    checks.same_dtype(op, "boxes2", boxes2, "boxes1", boxes1)
    if boxes1.shape[:-2] != boxes2.shape[:-2]:
        raise ValueError(
            f"{op}: boxes2 must have the leading axes of boxes1, {boxes1.shape[:-2]}, got shape {boxes2.shape}"
        )
    return _box_iou(boxes1, boxes2)


def boxes(op, name, value, rank=None):
    """Floats [..., N, 4]."""
    value = checks.floats(op, name, value)
    if value.ndim < 2 or value.shape[-1] != 4 or rank not in (None, value.ndim):
        raise ValueError(f"{op}: {name} must be {'[N, 4]' if rank else '[..., N, 4]'}, got shape {value.shape}")
    return value


@compiled()
def _box_iou(boxes1, boxes2):
    return overlaps(wide(boxes1), wide(boxes2)).astype(boxes1.dtype)


def overlaps(a, b):
    """Each of a with each of b."""
    left, top, right, bottom = ((a[..., :, None, i], b[..., None, :, i]) for i in range(4))
    common = _length(left, right) * _length(top, bottom)
    union = _area(a)[..., :, None] + _area(b)[..., None, :] - common
    return jnp.where(union == 0, 0, common / jnp.where(union == 0, 1, union))


def _length(low, high):
    """Of what two intervals have in common."""
    length = jnp.minimum(*high) - jnp.maximum(*low)
    return jnp.where(length <= 0, 0, length)


def _area(boxes):
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def drawn(rng, *shape):
    low = rng.uniform(0, 2, (*shape, 2))
    return np.concatenate([low, low + rng.uniform(0.5, 2, (*shape, 2))], -1)


facade(
    "box_iou",
    family="image",
    category=OpCategory.IMAGE,
    public=box_iou,
    cases=(
        Case("boxes", lambda rng: (drawn(rng, 5), drawn(rng, 4))),
        Case("batches", lambda rng: (drawn(rng, 2, 3), drawn(rng, 2, 2))),
    ),
    dtypes=checks.FLOATS,
    operands=("boxes1", "boxes2"),
    differentiable=("boxes1", "boxes2"),
)
