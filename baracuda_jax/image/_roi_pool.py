"""Maxima in the bins of boxes.

Data flow: plain JAX says of each box its image, and between which rows and columns its bins are; the kernel takes the
maximum of each bin, and keeps which element of its plane that is. The gradient is a sum by elements, in the order of the
boxes, by the kernel of scatters; no derivative reads x. Patterns: region, scatter."""

import functools
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
from .._core.regime import by_bins
from .._core.sku import OpCategory
from .._core.take_along import take_along
from .._core.types import Implementation, Integers
from .._core.wide import wide
from ..sort._kernels import scatter
from ._cut import BY_BOX
from ._regions import arguments, as_boxes, boxes_and_images

FAR = 2**28  # where coordinates end, so that they and their differences are int32


@api
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
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [K, C, H', W'], or [N, K, C, H', W'], of x's dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: exact. Halves are rounded away from zero. NaN is the maximum of its bin. float16 and bfloat16 gradients are
        summed in float32 and rounded once; by kernels in a fixed order, with the same bits every time.

    Source: torchvision.ops.roi_pool; R. Girshick, Fast R-CNN, arXiv:1504.08083.
    """
    x, boxes, size, scale = arguments("roi_pool", x, boxes, output_size, spatial_scale)
    return as_boxes(ROI_POOL(x, boxes, **_how(x, size, scale), implementation=implementation), boxes)


@api
def roi_pool_backward(
    x: ArrayLike,
    boxes: ArrayLike,
    dy: ArrayLike,
    spatial_scale: float = 1.0,
    *,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `roi_pool` in x: see its formula.

    Args:
        x, boxes: as for `roi_pool`.
        dy: the cotangent of its result, of x's dtype, whose last two axes are the output's size.
        spatial_scale, implementation: as for `roi_pool`.

    Returns:
        Array of x's shape and dtype.
    """
    op = "roi_pool_backward"
    dy = checks.floats(op, "dy", dy)
    if dy.ndim < 4:
        raise ValueError(f"{op}: dy must be [K, C, H, W] or [N, K, C, H, W], got shape {dy.shape}")
    x, boxes, size, scale = arguments(op, x, boxes, dy.shape[-2:], spatial_scale)
    checks.same_dtype(op, "dy", dy, "x", x)
    checks.shape(op, "dy", dy, (*boxes.shape[:-1], x.shape[1], *size), "that of the result")
    how = _how(x, size, scale)
    _, arg = ROI_POOL(x, boxes, **how, implementation=implementation, save=True)
    dy = explicit.reshape(dy, math.prod(boxes.shape[:-1]), *dy.shape[-3:])
    return ROI_POOL.vjp(boxes, arg, dy, **how, implementation=implementation)


def _how(x, size, scale):
    """`spatial` is the size of an image, and `images` how many there are where boxes have an index."""
    return dict(size=size, scale=scale, images=x.shape[0], spatial=x.shape[2:])


# ---------------------------------------------------------------------------------------------------------------------
# In plain JAX


def _reference(x, boxes, *, size, scale, images, spatial):
    """x [*batch, N, C, H, W], boxes [*batch, K, 5] or [*batch, N, K, 4]. The results, [*batch, K, C, *size] of all boxes,
    are the maxima and where they are in their planes, one after the last for none."""
    if x.ndim > 4:
        how = dict(size=size, scale=scale, images=images, spatial=spatial)
        return jax.vmap(functools.partial(_reference, **how))(x, boxes)
    n, plane = x.shape[0], math.prod(spatial)
    if n == 0:  # nothing can be indexed
        shape = math.prod(boxes.shape[:-1]), x.shape[1], *size
        return jnp.zeros(shape, x.dtype), jnp.full(shape, plane, jnp.int32)
    image, rows, columns = _framed(boxes, n, size, scale, spatial)
    exists, image = image >= 0, jnp.maximum(image, 0)
    # Box by box: what is compared of one is as large as H' images.
    index = lax.map(lambda box: _arg(x[box[0]], box[1], box[2]), (image, rows, columns))
    has_rows, has_columns = (bounds[..., 0] < bounds[..., 1] for bounds in (rows, columns))
    kept = (exists[:, None, None] & has_rows[:, :, None] & has_columns[:, None, :])[:, None]
    arg = jnp.where(kept, index, plane).astype(jnp.int32)
    return _taken(x, _among_all(boxes, arg, n, spatial)), arg


def _among_all(boxes, arg, n, spatial):
    """Where maxima [*batch, K, C, H', W'] are among the n H W elements of a channel, their number for none."""
    image_of = lambda boxes: boxes_and_images(boxes, 1)[1]
    for _ in range(arg.ndim - 4):
        image_of = jax.vmap(image_of)
    plane = math.prod(spatial)
    image = image_of(boxes)[..., None, None, None]
    return jnp.where((arg < plane) & (image >= 0) & (image < n), jnp.clip(image, 0, n - 1) * plane + arg, n * plane)


def _taken(x, index):
    """The elements of x [N, C, H, W] at an index of `_among_all`, 0 for none."""
    if x.shape[0] == 0:
        return jnp.zeros(index.shape, x.dtype)
    flat = explicit.reshape(jnp.swapaxes(x, 0, 1), x.shape[1], x.shape[0] * math.prod(x.shape[2:]))
    return jax.vmap(lambda values, at: values.at[at].get(mode="fill", fill_value=0), (0, 1), 1)(flat, index)


def _tangent_reference(boxes, arg, tx, **how):
    if tx.ndim > 4:
        return jax.vmap(functools.partial(_tangent_reference, **how))(boxes, arg, tx)
    return (_taken(tx, _among_all(boxes, arg, tx.shape[0], how["spatial"])),)


def _backward_reference(boxes, arg, dy, **how):
    if dy.ndim > 4:
        return jax.vmap(functools.partial(_backward_reference, **how))(boxes, arg, dy)
    n, channels, spatial = _images(boxes, how), dy.shape[1], how["spatial"]
    add = lambda at, d: jnp.zeros(n * math.prod(spatial), d.dtype).at[at].add(d, mode="drop")
    index = _among_all(boxes, arg, n, spatial)
    by_channel = lambda a: jnp.swapaxes(a, 0, 1).reshape(channels, math.prod(a.shape) // max(channels, 1))
    dx = jax.vmap(add)(by_channel(index), by_channel(wide(dy)))
    return (jnp.swapaxes(dx.reshape(channels, n, *spatial), 0, 1).astype(dy.dtype),)


def _images(boxes, how):
    """How many images there are: of a shard as many as it has sets of boxes, or all."""
    return boxes.shape[-3] if boxes.shape[-1] == 4 else how["images"]


def _framed(boxes, n, size, scale, spatial):
    """The image of each box, -1 where there is none, and the first row and the one after the last of each bin, [K, H', 2];
    and so the columns."""
    (x1, y1, x2, y2), image = boxes_and_images(boxes, scale)
    rows, columns = _bins(y1, y2, size[0], spatial[0]), _bins(x1, x2, size[1], spatial[1])
    return jnp.where((image >= 0) & (image < n), image, -1), rows, columns


def _bins(low, high, bins, n):
    """The first row of each bin and the one after the last, [K, bins, 2]."""
    is_number = ~(jnp.isnan(low) | jnp.isnan(high))
    low, high = (_rounded(jnp.clip(jnp.where(is_number, c, 0), -FAR, FAR)) for c in (low, high))
    whole, rest = jnp.divmod(jnp.maximum(high - low + 1, 1)[:, None], bins)
    i = jnp.arange(bins, dtype=jnp.int32)[None]
    begin = low[:, None] + i * whole + i * rest // bins
    end = low[:, None] + (i + 1) * whole - (-(i + 1) * rest // bins)
    return jnp.stack([jnp.clip(begin, 0, n), jnp.where(is_number[:, None], jnp.clip(end, 0, n), 0)], -1)


def _rounded(at):
    """Halves away from zero."""
    whole = jnp.trunc(at)
    return (whole + jnp.where(jnp.abs(at - whole) >= 0.5, jnp.sign(at), 0)).astype(jnp.int32)


def _arg(image, rows, columns):
    """The index of the maximum of each bin in an image [C, H, W]: [C, H', W']."""
    width = image.shape[2]
    column = _arg_along(image[:, :, None], columns[:, 0], columns[:, 1])  # [C, H, W'] of each row
    peaks = jnp.swapaxes(jnp.take_along_axis(image, column, 2, mode="clip"), 1, 2)  # [C, W', H]
    row = _arg_along(peaks[:, None], *(bound[:, None] for bound in (rows[:, 0], rows[:, 1])))  # [C, H', W']
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


# ---------------------------------------------------------------------------------------------------------------------
# By kernels


def _native(x, boxes, *, save, size, scale, images, spatial):
    framed = lambda boxes: _framed(boxes, x.shape[-4], size, scale, spatial)
    for _ in range(x.ndim - 4):
        framed = jax.vmap(framed)
    image, rows, columns = framed(boxes)
    shape = (*image.shape, x.shape[-3], *size)
    out = [jax.ShapeDtypeStruct(shape, dtype) for dtype in (x.dtype, jnp.int32)[: 1 + save]]
    dims = f"...nchw, ...k, ...kpf, ...kqf -> {', '.join(['...kcpq'] * len(out))}"
    return tuple(kernel("max_regions", dims, x, image, rows, columns, out=out))


def _by_channel(values):
    """[*batch, K, C, H', W'] as [*batch, C, K H' W']."""
    moved = jnp.moveaxis(values, -3, -4)
    return explicit.reshape(moved, *moved.shape[:-3], math.prod(moved.shape[-3:]))


def _tangent_native(boxes, arg, tx, **how):
    index = _by_channel(_among_all(boxes, arg, tx.shape[-4], how["spatial"]))
    found = take_along(index[..., None], _by_channel(tx)[..., None], bytes(tx.dtype.itemsize))
    channels, boxes_and_size = arg.shape[-3], (arg.shape[-4], *arg.shape[-2:])
    return (jnp.moveaxis(explicit.reshape(found, *arg.shape[:-4], channels, *boxes_and_size), -4, -3),)


def _backward_native(boxes, arg, dy, **how):
    n, spatial = _images(boxes, how), how["spatial"]
    index = _by_channel(_among_all(boxes, arg, n, spatial))
    dx = scatter(index, _by_channel(dy), n * math.prod(spatial), -1, unique=False)
    return (jnp.moveaxis(explicit.reshape(dx, *dx.shape[:-1], n, *spatial), -3, -4),)


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


ROI_POOL = declare(
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
    results=("y", "arg"),
    residuals=("boxes", "arg"),
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    kernels={"forward": ("max_regions",), "tangent": ("take_along",), "backward": ("scatter_along",)},
    batched=as_they_are,
    cut=BY_BOX,
    regime=by_bins,
)
