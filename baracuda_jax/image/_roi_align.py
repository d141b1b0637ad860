"""Means of samples in the bins of boxes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ._coordinates import clipped
from ._regions import arguments, as_boxes, boxes_and_images
from ._sample import weighted

FEW = 2  # samples along an axis of a bin that are terms of one expression; more are a loop


@facade_api("xla")
def roi_align(
    x: ArrayLike,
    boxes: ArrayLike,
    output_size: int | Integers,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = False,
    *,
    implementation: Implementation = None,
) -> Array:
    """Each box of an image as an image of a fixed size, of means of samples.

    Formula:
        y[k, c, i, j] = the mean of x[b, c] at sampling_ratio^2 positions (y1 + (i + (s + 1/2) / sampling_ratio) height / H',
        the same along the other axis), interpolated linearly, for the box k = (b, x1, y1, x2, y2) times spatial_scale.
        Positions outside [-1, size] give 0, others are clipped to the centers of the outermost elements. Without `aligned` a
        box is at least 1 high and 1 wide; with it, it is moved by -1/2. dx[b, c, t] = sum of dy times the weights that t
        has; dboxes is the derivative of the interpolation.

    Args:
        x: floats [N, C, H, W], with spatial sizes of at least 1.
        boxes: floats [K, 5] of x's dtype, or float32 with half precisions: the index of the image, x1, y1, x2, y2; or
            [N, K, 4] without the index, K boxes of each image. Boxes of an image that there is not give 0, as do those of
            NaN coordinates.
        output_size: static integer or two, H' and W'.
        spatial_scale: static number above 0, the factor from the boxes' coordinates to those of x.
        sampling_ratio: static integer of at least 1, how many samples a bin has along each axis.
        aligned: static, whether the center of the first element is at 1/2 instead of 0.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [K, C, H', W'], or [N, K, C, H', W'], of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: torchvision.ops.roi_align, with a gradient in the boxes; K. He et al., Mask R-CNN, arXiv:1703.06870.
    """
    op = "roi_align"
    x, boxes, size, scale = arguments(op, x, boxes, output_size, spatial_scale)
    samples = checks.integer(op, "sampling_ratio", sampling_ratio, 1)
    aligned = checks.flag(op, "aligned", aligned)
    return as_boxes(_roi_align(x, boxes, size=size, scale=scale, samples=samples, aligned=aligned), boxes)


@compiled("size", "scale", "samples", "aligned")
def _roi_align(x, boxes, *, size, scale, samples, aligned):
    n, channels, height, width = x.shape
    (x1, y1, x2, y2), image = boxes_and_images(boxes, scale)
    exists = ((image >= 0) & (image < n))[:, None, None]
    flat = explicit.reshape(jnp.swapaxes(wide(x), 0, 1), channels, -1)[None]
    begin = jnp.where(exists, image[:, None, None], 0) * (height * width)

    def of_sample(s, t):
        """The four elements around sample (s, t) of each bin: [1, K, H', W']."""
        rows = _linear(_positions(y1, y2, size[0], (s + 0.5) / samples, aligned), height)
        columns = _linear(_positions(x1, x2, size[1], (t + 0.5) / samples, aligned), width)
        index, weight, inside = [], [], []
        for (i, v, has_row), (j, w, has_column) in itertools.product(rows, columns):
            index.append((begin + i[:, :, None] * width + j[:, None, :])[None])
            weight.append((v[:, :, None] * w[:, None, :])[None])
            inside.append((exists & has_row[:, :, None] & has_column[:, None, :])[None])
        return weighted(flat, index, weight, inside)

    if samples <= FEW:
        total = sum(of_sample(s, t) for s, t in itertools.product(range(samples), repeat=2))
    else:
        pairs = np.array(list(itertools.product(range(samples), repeat=2)), flat.dtype)
        start = jnp.zeros_like(of_sample(0, 0))
        total, _ = lax.scan(jax.checkpoint(lambda y, pair: (y + of_sample(*pair), None)), start, pairs)
    return jnp.swapaxes(total[0] / samples**2, 0, 1).astype(x.dtype)


def _positions(low, high, bins, part, aligned):
    """Of one sample in each bin, [K, bins]."""
    length = high - low
    if aligned:
        low = low - 0.5
    else:
        length = jnp.where(length > 1, length, 1)
    return low[:, None] + (jnp.arange(bins, dtype=low.dtype)[None] + part) * (length / bins)[:, None]


def _linear(at, n):
    """(index, weight, whether the sample counts) of both elements."""
    inside = (at >= -1) & (at <= n)
    at = clipped(at, n)
    first = lax.stop_gradient(jnp.floor(at))
    after, index = at - first, first.astype(jnp.int32)
    return (index, 1 - after, inside), (jnp.minimum(index + 1, n - 1), after, inside)


def _case(name, shape, count, **kwargs):
    def draw(rng):
        low = rng.uniform(-2, 4, (count, 2))
        corners = np.concatenate([low, low + rng.uniform(0.3, 5, (count, 2))], 1)
        if count == shape[0]:
            return rng.standard_normal(shape), corners[:, None]
        return rng.standard_normal(shape), np.concatenate([rng.integers(0, shape[0], (count, 1)), corners], 1)

    return Case(name, draw, kwargs)


facade(
    "roi_align",
    family="image",
    category=OpCategory.IMAGE,
    public=roi_align,
    cases=(
        _case("boxes", (2, 3, 7, 6), 5, output_size=(2, 3)),
        _case("aligned", (2, 2, 6, 8), 3, output_size=2, spatial_scale=0.5, sampling_ratio=1, aligned=True),
        _case("of each image", (2, 2, 5, 6), 2, output_size=(3, 1), sampling_ratio=3),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "boxes"),
    differentiable=("x", "boxes"),
)
