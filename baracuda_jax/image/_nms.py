"""Boxes that no better one overlaps.

In plain JAX, which pairs overlap is known at once; then each box that is still there, best first, drops those that it
overlaps. As many steps as boxes, though fewer may decide: a loop that asked whether all is decided would make devices that
have a batch each wait for each other. By kernels, on CUDA a word of 64 bits has which boxes of a tile a box overlaps, and a
block goes through the tiles; on CPU each box is compared with those that are kept. Pattern: suppress."""

import functools

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.body import Body
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import as_they_are, declare
from .._core.regime import by_boxes
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ..sort._kernels import sort
from ._arguments import INDEX, next_to
from ._boxes import boxes as checked
from ._boxes import drawn, overlaps

TILE, BAND, GROUP = 64, 5, 4  # ffi/patterns/suppress_words_cuda.h
MOST = 16384  # scores that are ordered as they are; of more the negative ones are sorted


@api
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
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        (int32 [max_output], the indices of the boxes that are kept, then -1; int32 number, how many there are).

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: overlaps of float16 and bfloat16 are computed in float32, and not rounded. The kernel rounds each product and
        sum of an overlap; XLA may not round a product that is added. So only an overlap that is the threshold to the last
        bit may be above it in one and not in the other.

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
    of_class = () if classes is None else (classes,)
    return NMS(boxes, scores, *of_class, limit=limit, size=size, save=True, implementation=implementation)


def _reference(boxes, scores, *classes, limit, size):
    if boxes.ndim > 2:
        return jax.vmap(functools.partial(_reference, limit=limit, size=size))(boxes, scores, *classes)
    # By the negated score, which sorts NaN last and is stable.
    order = jnp.argsort(-wide(scores), stable=True).astype(jnp.int32)
    found = wide(boxes)[order]
    suppresses = jnp.triu(overlaps(found, found) > limit, 1)
    for of_all in classes:
        of_class = of_all[order]
        suppresses &= of_class[:, None] == of_class[None]

    drop = lambda i, kept: kept & ~(suppresses[i] & kept[i])
    kept = jnp.ones_like(order, bool)
    kept = lax.fori_loop(0, len(order), drop, kept) if len(order) else kept
    _, first = lax.sort((~kept, order), num_keys=1, is_stable=True)
    first = first[:size]
    count = jnp.minimum(kept.sum(), size).astype(jnp.int32)
    indices = jnp.where(jnp.arange(len(first), dtype=jnp.int32) < count, first, -1)
    return jnp.pad(indices, (0, size - len(first)), constant_values=-1), count


def _native(boxes, scores, *classes, save=True, limit, size):
    n, batch = boxes.shape[-2], boxes.shape[:-2]
    order = _best_first(scores)
    of_class = [ids.astype(jnp.int64 if ids.dtype.itemsize == 8 else jnp.int32) for ids in classes]
    dims = ", ".join(["...nk", *["...n"] * (1 + len(classes))])
    out = [jax.ShapeDtypeStruct((*batch, size), jnp.int32), jax.ShapeDtypeStruct(batch, jnp.int32)]
    results = kernel(
        "nms", f"{dims} -> ...m, ...", boxes, order, *of_class, out=out, workspace=_workspace(n), limit=limit
    )
    return tuple(results) if save else tuple(results[:1])


def _best_first(scores):
    """The order of the scores, NaN last."""
    if isinstance(scores.shape[-1], int) and scores.shape[-1] <= MOST:
        (order,) = kernel("best_first", "...n -> ...n", scores, out=[jax.ShapeDtypeStruct(scores.shape, jnp.int32)])
        return order
    return sort(-wide(scores), axis=-1, descending=False, indices=True)[1]


def _workspace(n):
    """Bytes of the words of each tile with the band of those after it, of each element with all tiles where there are more,
    and of those that say what is removed (ffi/patterns/suppress_cuda.h)."""
    tiles = -(-n // TILE)
    of_element = -(-tiles // GROUP) * GROUP if tiles > BAND else 0
    return tiles * 8 * (TILE * (BAND + of_element) + 1) + 768


NMS = declare(
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
    operands=("boxes", "scores", "*classes"),
    constant={"boxes": INDEX, "scores": INDEX, "*classes": INDEX},
    results=("indices", "count"),
    forward=Body(_reference, _native),
    kernels={"forward": ("nms",)},
    sometimes=("best_first", "sort"),
    batched=as_they_are,
    cut="each box is compared with all that are better",
    regime=by_boxes,
)
