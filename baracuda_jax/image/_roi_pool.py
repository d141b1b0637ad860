"""Maxima in the bins of boxes."""

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
from ._regions import arguments, as_boxes, boxes_and_images

FAR = 2**28  # where coordinates end, so that they and their differences are int32


@facade_api("xla")
def roi_pool(
    x: ArrayLike,
    boxes: ArrayLike,
    output_size: int | Integers,
    spatial_scale: float = 1.0,
    *,
    implementation: Implementation = None,
) -> Array:
    """Each box of an image as an image of a fixed size, of maxima.

    Formula:
        y[k, c, i, j] = the maximum of x[b, c] over bin (i, j) of the box k = (b, x1, y1, x2, y2), 0 for a bin without
        elements. With r1 = round(y1 spatial_scale), r2 = round(y2 spatial_scale) and h = max(r2 - r1 + 1, 1), bin i has the
        rows from r1 + floor(i h / H') to r1 + ceil((i + 1) h / H') - 1 that there are, and so along the other axis. dx is dy
        at the first maximum of each bin, row by row, and 0 elsewhere.

    Args:
        x: floats [N, C, H, W], with spatial sizes of at least 1.
        boxes: floats [K, 5] of x's dtype, or float32 with half precisions: the index of the image, x1, y1, x2, y2; or
            [N, K, 4] without the index, K boxes of each image. Boxes of an image that there is not give 0, as do those of
            NaN coordinates.
        output_size: static integer or two, H' and W'.
        spatial_scale: static number above 0, the factor from the boxes' coordinates to those of x.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [K, C, H', W'], or [N, K, C, H', W'], of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. Halves are rounded away from zero. NaN is the maximum of its bin.

    Source: torchvision.ops.roi_pool; R. Girshick, Fast R-CNN, arXiv:1504.08083.
    """
    x, boxes, size, scale = arguments("roi_pool", x, boxes, output_size, spatial_scale)
    return as_boxes(_roi_pool(x, boxes, size=size, scale=scale), boxes)


@compiled("size", "scale")
def _roi_pool(x, boxes, *, size, scale):
    n, channels, height, width = x.shape
    (x1, y1, x2, y2), image = boxes_and_images(lax.stop_gradient(boxes), scale)
    exists = (image >= 0) & (image < n)
    image = jnp.where(exists, image, 0)
    rows, columns = _bins(y1, y2, size[0], height), _bins(x1, x2, size[1], width)
    fixed = lax.stop_gradient(x)
    # Box by box: what is compared of one is as large as H' images.
    index = lax.map(lambda box: _arg(fixed[box[0]], box[1], box[2]), (image, rows, columns))
    flat = explicit.reshape(x, n, channels, height * width)
    # Indices of every axis, not slices: the gradient then adds elements of the result up.
    of_axis = lambda values, axis: jnp.expand_dims(values, [i for i in range(4) if i != axis])
    y = flat.at[of_axis(image, 0), of_axis(jnp.arange(channels), 1), index].get(mode="clip")
    has_rows, has_columns = (begin < end for begin, end in (rows, columns))
    kept = (exists[:, None, None] & has_rows[:, :, None] & has_columns[:, None, :])[:, None]
    return jnp.where(kept, y, 0)


def _bins(low, high, bins, n):
    """The first row of each bin and the one after the last, [K, bins]."""
    is_number = ~(jnp.isnan(low) | jnp.isnan(high))
    low, high = (_rounded(jnp.clip(jnp.where(is_number, c, 0), -FAR, FAR)) for c in (low, high))
    whole, rest = jnp.divmod(jnp.maximum(high - low + 1, 1)[:, None], bins)
    i = jnp.arange(bins, dtype=jnp.int32)[None]
    begin = low[:, None] + i * whole + i * rest // bins
    end = low[:, None] + (i + 1) * whole - (-(i + 1) * rest // bins)
    return jnp.clip(begin, 0, n), jnp.where(is_number[:, None], jnp.clip(end, 0, n), 0)


def _rounded(at):
    """Halves away from zero."""
    whole = jnp.trunc(at)
    return (whole + jnp.where(jnp.abs(at - whole) >= 0.5, jnp.sign(at), 0)).astype(jnp.int32)


def _arg(image, rows, columns):
    """The index of the maximum of each bin in an image [C, H, W]: [C, H', W']."""
    width = image.shape[2]
    column = _arg_along(image[:, :, None], *columns)  # [C, H, W'] of each row
    peaks = jnp.swapaxes(jnp.take_along_axis(image, column, 2, mode="clip"), 1, 2)  # [C, W', H]
    row = _arg_along(peaks[:, None], *(bound[:, None] for bound in rows))  # [C, H', W']
    return row * width + jnp.take_along_axis(column, row, 1, mode="clip")


def _arg_along(values, begin, end):
    """The first maximum in [begin, end) of the last axis; begin where all is -inf, or nothing is there."""
    n = values.shape[-1]
    at = jnp.arange(n, dtype=jnp.int32).reshape(*(1,) * (values.ndim - 1), n)
    shape = (1,) * (values.ndim - 1 - begin.ndim)
    begin, end = (jnp.reshape(bound, (*shape, *bound.shape, 1)) for bound in (begin, end))
    inside = (at >= begin) & (at < end)
    low = jnp.array(-jnp.inf, values.dtype)
    found = jnp.argmax(jnp.where(inside, values, low), -1).astype(jnp.int32)
    begin, end = begin[..., 0], end[..., 0]
    return jnp.where((found >= begin) & (found < end), found, jnp.minimum(begin, n - 1))


def _case(name, shape, count, **kwargs):
    def draw(rng):
        low = rng.integers(-2, 4, (count, 2))
        corners = np.concatenate([low, low + rng.integers(0, 6, (count, 2))], 1) + 0.2
        size = np.prod(shape)
        x = (rng.permutation(size) - size / 2).reshape(shape) / 8  # no two alike
        if count == shape[0]:
            return x, corners[:, None]
        return x, np.concatenate([rng.integers(0, shape[0], (count, 1)), corners], 1)

    return Case(name, draw, kwargs)


facade(
    "roi_pool",
    family="image",
    category=OpCategory.IMAGE,
    public=roi_pool,
    cases=(
        _case("boxes", (2, 3, 7, 6), 5, output_size=(2, 3)),
        _case("of each image", (2, 2, 6, 5), 2, output_size=4, spatial_scale=1.5),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "boxes"),
    differentiable=("x",),
    constant={"boxes": "they are rounded to elements"},
)
