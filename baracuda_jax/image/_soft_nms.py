"""Boxes whose scores fall by how much better ones overlap them.

As many steps as there may be results, each with the best of the boxes that are left: which box that is depends on all steps
before."""

from typing import Literal

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
from ._arguments import INDEX, next_to, number
from ._boxes import boxes as checked
from ._boxes import drawn, overlaps

METHODS = ("gaussian", "linear")


@facade_api("xla")
def soft_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    sigma: float = 0.5,
    iou_threshold: float = 0.3,
    score_threshold: float = 0.001,
    method: Literal["gaussian", "linear"] = "gaussian",
    *,
    max_output: int | None = None,
    classes: ArrayLike | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array, Array]:
    """Soft non-maximum suppression: boxes by scores that fall where better boxes overlap them.

    Formula:
        Again and again the box with the largest score, of equal ones the first, is taken if its score is above
        score_threshold. Then the scores of all others of its class are multiplied by f(box_iou): "gaussian",
        f(o) = exp(-o^2 / sigma); "linear", f(o) = 1 - o where o is above iou_threshold, and 1 elsewhere.

    Args:
        boxes: floats [N, 4]: x1, y1, x2, y2.
        scores: floats [N] of boxes' dtype, or float32 with half precisions. NaN is never taken.
        sigma: static number above 0, of "gaussian".
        iou_threshold: static number in [0, 1], of "linear".
        score_threshold: static number of at least 0.
        method: static, "gaussian" or "linear".
        max_output: static integer of at least 1, the size of the result; None for N.
        classes: integers [N]; boxes of different classes do not change each other. None for one class.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (int32 [max_output], the indices of the boxes that are taken, in this order, then -1; their scores, of scores' dtype,
        then 0; int32 number, how many there are).

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32, and scores rounded once. A NaN overlap changes nothing.

    Source: N. Bodla et al., Soft-NMS: Improving object detection with one line of code, arXiv:1704.04503.
    """
    op = "soft_nms"
    boxes = checked(op, "boxes", boxes, 2)
    scores = next_to(op, "scores", scores, boxes, "boxes")
    checks.shape(op, "scores", scores, boxes.shape[:1], "one for each box")
    if not checks.is_number(iou_threshold) or not 0 <= iou_threshold <= 1:
        raise ValueError(f"{op}: iou_threshold must be a static number in [0, 1], got {iou_threshold!r}")
    if not checks.is_number(score_threshold) or not score_threshold >= 0:
        raise ValueError(f"{op}: score_threshold must be a static number of at least 0, got {score_threshold!r}")
    checks.choice(op, "method", method, METHODS)
    if classes is not None:
        classes = checks.array(op, "classes", classes)
        checks.dtype(op, "classes", classes, checks.INTEGERS)
        checks.shape(op, "classes", classes, boxes.shape[:1], "one for each box")
    size = boxes.shape[0] if max_output is None else checks.integer(op, "max_output", max_output, 1)
    how = dict(sigma=number(op, "sigma", sigma), limit=float(iou_threshold), lowest=float(score_threshold))
    return _soft_nms(boxes, scores, classes, size=size, method=method, **how)


@compiled("size", "method", "sigma", "limit", "lowest")
def _soft_nms(boxes, scores, classes, *, size, method, sigma, limit, lowest):
    n, corners, start = boxes.shape[0], wide(boxes), wide(scores)
    none = -jnp.inf
    indices, found = jnp.full(size, -1, jnp.int32), jnp.zeros(size, start.dtype)
    if not n:
        return indices, found.astype(scores.dtype), jnp.zeros((), jnp.int32)

    def step(k, state):
        left, indices, found = state
        best = jnp.argmax(left)
        score = left[best]
        is_taken = score > lowest
        overlap = overlaps(corners[best][None], corners)[0]
        factor = jnp.exp(-(overlap**2) / sigma) if method == "gaussian" else jnp.where(overlap > limit, 1 - overlap, 1)
        changes = ~jnp.isnan(overlap) if classes is None else ~jnp.isnan(overlap) & (classes == classes[best])
        is_left = (left > none) & (jnp.arange(n) != best)
        kept = jnp.where(is_left, left, 0)  # in a derivative infinity times 0 would be NaN
        lower = jnp.where(changes, kept * jnp.where(changes, factor, 1), kept)
        left = jnp.where(is_taken, jnp.where(is_left, lower, none), left)
        put = lambda many, value: many.at[k].set(jnp.where(is_taken, value, many[k]))
        return left, put(indices, best.astype(jnp.int32)), put(found, score)

    start = jnp.where(jnp.isnan(start), none, start)
    _, indices, found = lax.fori_loop(0, min(n, size), step, (start, indices, found))
    return indices, found.astype(scores.dtype), (indices >= 0).sum(dtype=jnp.int32)


def _case(name, n, **kwargs):
    return Case(name, lambda rng: (drawn(rng, n), (rng.permutation(n) + 1) / n), kwargs)


facade(
    "soft_nms",
    family="image",
    category=OpCategory.IMAGE,
    public=soft_nms,
    cases=(
        _case("gaussian", 12, sigma=0.7),
        _case("linear", 9, method="linear", iou_threshold=0.1),
        _case("room", 5, score_threshold=0.3, max_output=7),
    ),
    dtypes=checks.FLOATS,
    operands=("boxes", "scores"),
    constant={"boxes": INDEX, "scores": INDEX},
    outputs=("indices",),
)
