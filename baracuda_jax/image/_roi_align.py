"""Means of samples in the bins of boxes.

Data flow: plain JAX says of each box its image and its frame, which is where it begins and how long a bin is along both
axes; the kernel samples bin by bin. The gradient of the image is a sum by elements of the rows that bins name,
[bins, channels], by the kernel of segments; that of a frame is a sum over channels, and over the bins of the box.
Pattern: region."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.body import Body
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import as_they_are, declare
from .._core.regime import by_regions
from .._core.sku import OpCategory
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ._coordinates import clipped
from ._cut import BY_BOX
from ._regions import arguments, as_boxes, boxes_and_images
from ._sample import added, derivatives, weighted

FEW = 2  # samples along an axis of a bin that are terms of one expression; more are a loop


@api
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
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [K, C, H', W'], or [N, K, C, H', W'], of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. By kernels, gradients are sums in a fixed
        order: the same bits every time.

    Source: torchvision.ops.roi_align, with a gradient in the boxes; K. He et al., Mask R-CNN, arXiv:1703.06870.
    """
    x, boxes, how = _arguments("roi_align", x, boxes, output_size, spatial_scale, sampling_ratio, aligned)
    return as_boxes(ROI_ALIGN(x, boxes, **how, implementation=implementation), boxes)


@api
def roi_align_backward(
    x: ArrayLike,
    boxes: ArrayLike,
    dy: ArrayLike,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 2,
    aligned: bool = False,
    *,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradients of `roi_align`: see its formula for dx and dboxes.

    Args:
        x, boxes: as for `roi_align`.
        dy: the cotangent of its result, of x's dtype, whose last two axes are the output's size.
        spatial_scale, sampling_ratio, aligned, implementation: as for `roi_align`.

    Returns:
        (the cotangent of x, that of boxes), of their shapes and dtypes.
    """
    op = "roi_align_backward"
    dy = checks.floats(op, "dy", dy)
    if dy.ndim < 4:
        raise ValueError(f"{op}: dy must be [K, C, H, W] or [N, K, C, H, W], got shape {dy.shape}")
    x, boxes, how = _arguments(op, x, boxes, dy.shape[-2:], spatial_scale, sampling_ratio, aligned)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, (*boxes.shape[:-1], x.shape[1], *how["size"]), "that of the result")
    dy = explicit.reshape(dy, math.prod(boxes.shape[:-1]), *dy.shape[-3:])
    return tuple(ROI_ALIGN.vjp(x, boxes, dy, **how, implementation=implementation))


def _arguments(op, x, boxes, output_size, spatial_scale, sampling_ratio, aligned):
    x, boxes, size, scale = arguments(op, x, boxes, output_size, spatial_scale)
    samples = checks.integer(op, "sampling_ratio", sampling_ratio, 1)
    return x, boxes, dict(size=size, scale=scale, samples=samples, aligned=checks.flag(op, "aligned", aligned))


# ---------------------------------------------------------------------------------------------------------------------
# In plain JAX


def _reference(x, boxes, *, size, scale, samples, aligned):
    """x [*batch, N, C, H, W], boxes [*batch, K, 5] or [*batch, N, K, 4]; [*batch, K, C, *size], of all boxes."""
    if x.ndim > 4:
        how = dict(size=size, scale=scale, samples=samples, aligned=aligned)
        return jax.vmap(functools.partial(_reference, **how))(x, boxes)
    n, channels, height, width = x.shape
    if n == 0:  # nothing can be indexed
        return (jnp.zeros((math.prod(boxes.shape[:-1]), channels, *size), x.dtype),)
    image, frames = _frames(boxes, n, size=size, scale=scale, aligned=aligned)
    exists = (image >= 0)[:, None, None]
    flat = explicit.reshape(jnp.swapaxes(wide(x), 0, 1), channels, n * height * width)[None]
    begin = jnp.where(exists, image[:, None, None], 0) * (height * width)

    def of_sample(s, t):
        """The four elements around sample (s, t) of each bin: [1, K, H', W']."""
        rows = _linear(_positions(frames[:, :2], size[0], (s + 0.5) / samples), height)
        columns = _linear(_positions(frames[:, 2:], size[1], (t + 0.5) / samples), width)
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
    return (jnp.swapaxes(total[0] / samples**2, 0, 1).astype(x.dtype),)


def _frames(boxes, n, *, size, scale, aligned):
    """The image of each box, -1 where there is none, and where bins begin and how long they are along y and x, [K, 4]."""
    (x1, y1, x2, y2), image = boxes_and_images(boxes, scale)
    sides = [_side(low, high, bins, aligned) for low, high, bins in ((y1, y2, size[0]), (x1, x2, size[1]))]
    return jnp.where((image >= 0) & (image < n), image, -1), jnp.stack([part for side in sides for part in side], -1)


def _side(low, high, bins, aligned):
    """(where the first bin begins, the length of one)"""
    length = high - low
    if aligned:
        return low - 0.5, length / bins
    return low, jnp.where(length > 1, length, 1) / bins


def _positions(side, bins, part):
    """Of one sample in each bin, [K, bins]."""
    return side[:, :1] + (jnp.arange(bins, dtype=side.dtype)[None] + part) * side[:, 1:]


def _linear(at, n):
    """(index, weight, whether the sample counts) of both elements."""
    inside = (at >= -1) & (at <= n)
    at = clipped(at, n)
    first = lax.stop_gradient(jnp.floor(at))
    after, index = at - first, first.astype(jnp.int32)
    return (index, 1 - after, inside), (jnp.minimum(index + 1, n - 1), after, inside)


_tangent_reference, _backward_reference = derivatives(_reference)

# ---------------------------------------------------------------------------------------------------------------------
# By kernels

X, IMAGE, FRAMES, Y = "...nchw", "...k", "...kf", "...kcpq"


def _framed(x, boxes, samples, **how):
    """A function boxes -> (images, frames), of any number of batches."""
    of_one = lambda boxes: _frames(boxes, x.shape[-4], **how)
    for _ in range(x.ndim - 4):
        of_one = jax.vmap(of_one)
    return of_one


def _result_type(x, image, size):
    return jax.ShapeDtypeStruct((*image.shape, x.shape[-3], *size), x.dtype)


def _native(x, boxes, *, save=False, size, samples, **how):
    image, frames = _framed(x, boxes, samples, size=size, **how)(boxes)
    out = [_result_type(x, image, size)]
    return tuple(kernel("sample_regions", f"{X}, {IMAGE}, {FRAMES} -> {Y}", x, image, frames, out=out, samples=samples))


def _tangent_native(x, boxes, tx, tboxes, *, size, samples, **how):
    framed = _framed(x, boxes, samples, size=size, **how)
    image, _ = framed(boxes)
    frames, moved = jax.jvp(lambda boxes: framed(boxes)[1], (boxes,), (tboxes,))
    dims, out = f"{X}, {IMAGE}, {FRAMES}, {X}, {FRAMES} -> {Y}", [_result_type(x, image, size)]
    return tuple(kernel("sample_regions_tangent", dims, x, image, frames, tx, moved, out=out, samples=samples))


def _backward_native(x, boxes, dy, *, size, samples, **how):
    framed = _framed(x, boxes, samples, size=size, **how)
    image, _ = framed(boxes)
    frames, pull = jax.vjp(lambda boxes: framed(boxes)[1], boxes)
    out = [jax.ShapeDtypeStruct((*image.shape, *size, 4), frames.dtype)]
    dims = f"{X}, {IMAGE}, {FRAMES}, {Y} -> ...kpqf"
    (moved,) = kernel("sample_regions_backward", dims, x, image, frames, dy, out=out, samples=samples)
    (dboxes,) = pull(moved.sum((-3, -2)))
    return _image_cotangent(x, image, frames, dy, size, samples), dboxes


def _image_cotangent(x, image, frames, dy, size, samples):
    """The sum of dy over the bins that have an element, times its weight: rows [bins of all boxes, channels] by element."""
    *batch, n, channels, height, width = x.shape
    axis, bins = len(batch), image.shape[-1] * size[0] * size[1]
    receivers, weights = jax.vmap(functools.partial(_entries, sizes=(height, width), size=size, samples=samples))(
        image.reshape(math.prod(batch), *image.shape[axis:]), frames.reshape(math.prod(batch), *frames.shape[axis:])
    )
    receivers, weights = (each.reshape(*batch, each.shape[-1]) for each in (receivers, weights))
    rows = jnp.moveaxis(dy, -3, -1).reshape(*batch, bins, channels)
    dx = added(rows, weights, receivers, n * height * width)
    return jnp.moveaxis(dx.reshape(*batch, n, height, width, channels), -1, -3)


def _entries(image, frames, *, sizes, size, samples):
    """The elements of all images that the samples of the bins read, -1 for none, and their weights: [samples, bins] flat."""
    parts = [(s + 0.5) / samples for s in range(samples)]
    of_rows = [_linear(_positions(frames[:, :2], size[0], part), sizes[0]) for part in parts]
    of_columns = [_linear(_positions(frames[:, 2:], size[1], part), sizes[1]) for part in parts]
    begin, exists = (image * (sizes[0] * sizes[1]))[:, None, None], (image >= 0)[:, None, None]
    receivers, weights = [], []
    for rows, columns in itertools.product(of_rows, of_columns):
        for (i, v, has_row), (j, w, has_column) in itertools.product(rows, columns):
            is_there = exists & has_row[:, :, None] & has_column[:, None, :]
            index = begin + i[:, :, None] * sizes[1] + j[:, None, :]
            receivers.append(jnp.where(is_there, index, -1).ravel())
            weights.append((v[:, :, None] * w[:, None, :]).ravel() / samples**2)
    return jnp.concatenate(receivers), jnp.concatenate(weights)


def _case(name, shape, count, **kwargs):
    def draw(rng):
        low = rng.uniform(-2, 4, (count, 2))
        corners = np.concatenate([low, low + rng.uniform(0.3, 5, (count, 2))], 1)
        if count == shape[0]:
            return rng.standard_normal(shape), corners[:, None]
        return rng.standard_normal(shape), np.concatenate([rng.integers(0, shape[0], (count, 1)), corners], 1)

    return Case(name, draw, kwargs)


ROI_ALIGN = declare(
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
    residuals=("x", "boxes"),
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("sample_regions",),
        "tangent": ("sample_regions_tangent",),
        "backward": ("sample_regions_backward", "segment_weighted_sum"),
    },
    sometimes=("segment_index", "take_along"),
    batched=as_they_are,
    cut=BY_BOX,
    regime=by_regions,
    fused=True,
)
