"""ONNX's image operators."""

import numpy as np

import baracuda_jax as bj

from . import NotApplicable

RATIOS = {b"not_larger": min, b"not_smaller": max}


def Resize(
    x, roi=None, scales=None, sizes=None, *, mode=b"nearest", coordinate_transformation_mode=b"half_pixel",
    nearest_mode=b"round_prefer_floor", cubic_coeff_a=-0.75, exclude_outside=0, antialias=0, axes=None,
    keep_aspect_ratio_policy=b"stretch", extrapolation_value=0.0,
):  # fmt: skip
    """ONNX resizes any axes, by any pair of a mode and a rule of positions; here are PyTorch's pairs, and spatial axes."""
    corners, rule = coordinate_transformation_mode == b"align_corners", coordinate_transformation_mode
    axes = tuple(range(x.ndim)) if axes is None else tuple(axes)
    spatial = tuple(x.shape[a] for a in axes)
    if scales is None and keep_aspect_ratio_policy != b"stretch":
        ratio = RATIOS[keep_aspect_ratio_policy](n / m for n, m in zip(sizes, spatial, strict=True))
        scales = [ratio] * len(axes)
    given = dict(zip(axes, sizes if scales is None else scales, strict=True))
    whole = scales is None or all((n * s) % 1 == 0 for n, s in zip(spatial, scales, strict=True))
    if scales is not None and sizes is not None and not whole:
        raise NotApplicable("a size that is not floor(size scale)")
    if rule == b"half_pixel_symmetric" or corners:
        if not whole:
            raise NotApplicable("positions of an output whose size is not whole")
    elif rule not in (b"half_pixel", b"pytorch_half_pixel") and (rule, mode) != (b"asymmetric", b"nearest"):
        raise NotApplicable(f"no such rule of positions: {rule.decode()}")
    if rule == b"pytorch_half_pixel" and (scales is not None or min(sizes) == 1):
        raise NotApplicable("an output of one element is at the center")
    if antialias and mode == b"linear":
        raise NotApplicable("with antialias elements outside are left out, as in PyTorch; in ONNX they are the nearest")
    numbers = tuple(given.get(a, 1 if scales is not None else x.shape[a]) for a in range(2, x.ndim))
    how = dict(size=tuple(map(int, numbers))) if scales is None else dict(scale_factor=tuple(map(float, numbers)))
    if mode == b"nearest":
        return bj.interpolate(x, **how, mode=_nearest(x, numbers, scales is None, rule, nearest_mode))
    if mode == b"cubic" and (cubic_coeff_a != (-0.5 if antialias else -0.75) or exclude_outside):
        raise NotApplicable(
            "PyTorch's cubics alone: elements outside are the nearest, and a is -0.75, or -0.5 with antialias"
        )
    name = {b"linear": "bilinear", b"cubic": "bicubic"}[mode]
    return bj.interpolate(x, **how, mode=name, align_corners=corners, antialias=bool(antialias))


def _nearest(x, numbers, are_sizes, rule, nearest_mode):
    """The mode of the same elements."""
    if (rule, nearest_mode) == (b"asymmetric", b"floor"):
        return "nearest"
    if rule != b"half_pixel" or nearest_mode not in (b"round_prefer_floor", b"round_prefer_ceil"):
        raise NotApplicable("the element that has an index of at most the position, or that is nearest to it, alone")
    for n, m in zip(x.shape[2:], numbers, strict=True):
        out, step = (m, n / m) if are_sizes else (int(n * m), 1 / m)
        if nearest_mode == b"round_prefer_floor" and (((np.arange(out) + 0.5) * step) % 1 == 0).any():
            raise NotApplicable("of two that are as near, the one after")
    return "nearest-exact"


def GridSample(x, grid, *, align_corners=0, mode=b"linear", padding_mode=b"zeros"):
    name = {b"linear": "bilinear", b"cubic": "bicubic"}.get(mode, mode.decode())
    if name == "bicubic" and x.ndim == 5:
        raise NotApplicable("cubics of images alone")
    return bj.grid_sample(x, grid, name, padding_mode.decode(), bool(align_corners))


def AffineGrid(theta, size, *, align_corners=0):
    return bj.affine_grid(theta, tuple(map(int, size)), bool(align_corners))


def RoiAlign(
    x, rois, batch_indices, *, coordinate_transformation_mode=b"half_pixel", mode=b"avg", output_height=1, output_width=1,
    sampling_ratio=0, spatial_scale=1.0,
):  # fmt: skip
    if mode != b"avg":
        raise NotApplicable("means alone")
    if sampling_ratio < 1:
        raise NotApplicable("as many samples for each box")
    boxes = np.concatenate([batch_indices[:, None].astype(rois.dtype), rois], 1)
    size, is_aligned = (output_height, output_width), coordinate_transformation_mode == b"half_pixel"
    return bj.roi_align(x, boxes, size, spatial_scale, sampling_ratio, is_aligned)


def NonMaxSuppression(boxes, scores, most=0, iou_threshold=0.0, score_threshold=None, *, center_point_box=0):
    """Corners in any order, or centers and sizes; each image and class by itself."""
    if center_point_box:
        center, half = boxes[..., :2], boxes[..., 2:] / 2
        boxes = np.concatenate([center - half, center + half], -1)
    low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    boxes, found = np.concatenate([low, high], -1), []
    for image, of_image in enumerate(scores):
        for category, values in enumerate(of_image):
            if not int(np.ravel(most)[0]):
                continue
            limit, size = float(np.ravel(iou_threshold)[0]), int(np.ravel(most)[0])
            index, count = bj.nms(boxes[image], values, limit, max_output=size)
            kept = np.asarray(index)[: int(count)]
            if score_threshold is not None:
                kept = kept[values[kept] > np.ravel(score_threshold)[0]]
            found += [[image, category, i] for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)
