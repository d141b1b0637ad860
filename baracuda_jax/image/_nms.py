"""Boxes that no better one overlaps.

Which pairs overlap is known at once; then each box that is still there, best first, drops those that it overlaps. As many
steps as boxes, though fewer may decide: a loop that asked whether all is decided would make devices that have a batch each
wait for each other."""

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._arguments import INDEX, next_to
from ._boxes import boxes as checked
from ._boxes import drawn, overlaps


@facade_api("xla")
def nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    max_output: int | None = None,
    classes: ArrayLike | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Non-maximum suppression: the boxes that no better one overlaps, best first.

    Formula:
        Of the boxes by descending score, equal ones by ascending index, a box is kept if box_iou with each box that is kept
        before it is at most iou_threshold, or their classes differ.

    Args:
        boxes: floats [N, 4]: x1, y1, x2, y2.
        scores: floats [N] of boxes' dtype, or float32 with half precisions. NaN is after all others.
        iou_threshold: static number in [0, 1]. A box is suppressed where its overlap is larger; NaN never is.
        max_output: static integer of at least 1, the size of the result; None for N.
        classes: integers [N]; boxes of different classes do not suppress each other. None for one class.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (int32 [max_output], the indices of the boxes that are kept, then -1; int32 number, how many there are).

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: overlaps of float16 and bfloat16 are computed in float32, and not rounded.

    Source: torchvision.ops.nms and batched_nms, whose results are as long as there are boxes.
    """
    op = "nms"
    boxes = checked(op, "boxes", boxes, 2)
    scores = next_to(op, "scores", scores, boxes, "boxes")
    checks.shape(op, "scores", scores, boxes.shape[:1], "one for each box")
    if not checks.is_number(iou_threshold) or not 0 <= iou_threshold <= 1:
        raise ValueError(f"{op}: iou_threshold must be a static number in [0, 1], got {iou_threshold!r}")
    limit = float(iou_threshold)
    if classes is not None:
        classes = checks.array(op, "classes", classes)
        checks.dtype(op, "classes", classes, checks.INTEGERS)
        checks.shape(op, "classes", classes, boxes.shape[:1], "one for each box")
    size = boxes.shape[0] if max_output is None else checks.integer(op, "max_output", max_output, 1)
    return _nms(boxes, scores, classes, limit=limit, size=size)


@compiled("limit", "size")
def _nms(boxes, scores, classes, *, limit, size):
    # By the negated score, which sorts NaN last and is stable.
    order = jnp.argsort(-wide(scores), stable=True).astype(jnp.int32)
    found = wide(boxes)[order]
    suppresses = jnp.triu(overlaps(found, found) > limit, 1)
    if classes is not None:
        of_class = classes[order]
        suppresses &= of_class[:, None] == of_class[None]

    drop = lambda i, kept: kept & ~(suppresses[i] & kept[i])
    kept = jnp.ones_like(order, bool)
    kept = lax.fori_loop(0, len(order), drop, kept) if len(order) else kept
    _, first = lax.sort((~kept, order), num_keys=1, is_stable=True)
    first = first[:size]
    count = jnp.minimum(kept.sum(), size).astype(jnp.int32)
    indices = jnp.where(jnp.arange(len(first), dtype=jnp.int32) < count, first, -1)
    return jnp.pad(indices, (0, size - len(first)), constant_values=-1), count


facade(
    "nms",
    family="image",
    category=OpCategory.IMAGE,
    public=nms,
    cases=(
        Case("boxes", lambda rng: (drawn(rng, 12), rng.permutation(12) / 8 - 0.5), dict(iou_threshold=0.3)),
        Case("few", lambda rng: (drawn(rng, 9), rng.integers(0, 3, 9) / 2), dict(iou_threshold=0.2, max_output=3)),
        Case("room", lambda rng: (drawn(rng, 4), rng.permutation(4) / 4), dict(iou_threshold=0.5, max_output=6)),
    ),
    dtypes=checks.FLOATS,
    operands=("boxes", "scores"),
    constant={"boxes": INDEX, "scores": INDEX},
    outputs=("indices",),
)
