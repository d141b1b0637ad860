"""Images, element by element: each output is a sum over all elements of an axis, weighted by a kernel of the distance."""

import itertools
import math

import numpy as np
import scipy.ndimage

# ---------------------------------------------------------------------------------------------------------------------
# Interpolation


def _cubic(d, a):
    d = abs(d)
    if d < 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def _row(mode, o, n, out, step, align, antialias):
    """The weights of the n elements in output element o."""
    row = np.zeros(n)
    if mode == "area":
        first, last = o * n // out, math.ceil((o + 1) * n / out)
        row[first:last] = 1 / (last - first)
        return row
    if mode == "nearest":
        row[min(math.floor(o * step), n - 1)] = 1
        return row
    if antialias:
        wide = max(step, 1)
        kernel = (lambda d: _cubic(d, -0.5)) if mode == "bicubic" else (lambda d: max(1 - abs(d), 0))
        row[:] = [kernel((i + 0.5 - (o + 0.5) * step) / wide) for i in range(n)]
        return row / row.sum()
    position = o * step if align else (o + 0.5) * step - 0.5
    kernel = (lambda d: _cubic(d, -0.75)) if mode == "bicubic" else (lambda d: max(1 - abs(d), 0))
    for i in range(-3, n + 3):
        row[min(max(i, 0), n - 1)] += kernel(i - position)
    return row


def interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, antialias=False, data_format=None
):
    if data_format and data_format.endswith("C"):
        return np.moveaxis(
            interpolate(np.moveaxis(x, -1, 1), size, scale_factor, mode, align_corners, antialias), 1, -1
        )
    for axis, n in enumerate(x.shape[2:]):
        at = lambda value, axis=axis: value[axis] if isinstance(value, tuple) else value
        out = at(size) if size else math.floor(n * at(scale_factor))
        step = (n - 1) / max(out - 1, 1) if align_corners else n / out if size else 1 / at(scale_factor)
        rows = np.stack([_row(mode, o, n, out, step, align_corners, antialias) for o in range(out)])
        x = np.moveaxis(np.tensordot(x, rows, ((axis + 2,), (1,))), -1, axis + 2)
    return x


# ---------------------------------------------------------------------------------------------------------------------
# Positions


def affine_grid(theta, size, align_corners=False):
    spatial = size[2:]
    grid = np.zeros((len(theta), *spatial, len(spatial)))
    for i in np.ndindex(*spatial):
        of = lambda k, n: (2 * k / (n - 1) - 1 if n > 1 else 0.0) if align_corners else (2 * k + 1) / n - 1
        position = [*reversed([of(k, n) for k, n in zip(i, spatial, strict=True)]), 1.0]
        grid[(slice(None), *i)] = theta @ np.array(position)
    return grid


def _bring(p, n, padding, align):
    if padding == "reflection":
        low, high = (0, n - 1) if align else (-0.5, n - 0.5)
        while n > 1 and not low <= p <= high:
            p = 2 * low - p if p < low else 2 * high - p
    return min(max(p, 0), n - 1) if padding != "zeros" else p


def _taps(g, n, mode, padding, align):
    """(index, weight) of an axis."""
    p = (g + 1) * (n - 1) / 2 if align else ((g + 1) * n - 1) / 2
    if mode == "bicubic":
        first = math.floor(p)
        found = [(_bring(i, n, padding, align), _cubic(i - p, -0.75)) for i in range(first - 1, first + 3)]
    else:
        p = _bring(p, n, padding, align)
        first = math.floor(p)
        found = [(round(p), 1.0)] if mode == "nearest" else [(first, first + 1 - p), (first + 1, p - first)]
    return [(int(i), w) for i, w in found if 0 <= i < n]


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for b, *o in np.ndindex(*grid.shape[:-1]):
        axes = zip(reversed(grid[(b, *o)]), x.shape[2:], strict=True)
        taps = [_taps(g, n, mode, padding_mode, align_corners) for g, n in axes]
        for each in itertools.product(*taps):
            index, weights = zip(*each, strict=True)
            y[(b, slice(None), *o)] += math.prod(weights) * x[(b, slice(None), *index)]
    return y


def map_coordinates(x, coordinates, order=3, mode="constant", cval=0.0, prefilter=True):
    outer = x.shape[: x.ndim - len(coordinates)]
    y = np.zeros((*outer, *coordinates.shape[1:]))
    for i in np.ndindex(*outer):
        y[i] = scipy.ndimage.map_coordinates(x[i], coordinates, None, order, mode, cval, prefilter)
    return y


# ---------------------------------------------------------------------------------------------------------------------
# Boxes


def _boxes(x, boxes):
    """(the image, the coordinates) of each box."""
    if boxes.ndim == 3:
        return [(image, box) for image, of_image in zip(x, boxes, strict=True) for box in of_image]
    return [(x[int(box[0])], box[1:]) for box in boxes]


def _both(value):
    return value if isinstance(value, tuple) else (value, value)


def _linear(image, y, x):
    (_, height, width), total = image.shape, 0.0
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    for i, j in itertools.product((math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1)):
        if i < height and j < width:
            total = total + (1 - abs(y - i)) * (1 - abs(x - j)) * image[:, i, j]
    return total


def roi_align(x, boxes, output_size, spatial_scale=1.0, sampling_ratio=2, aligned=False):
    rows, columns = _both(output_size)
    found = []
    for image, box in _boxes(x, boxes):
        x1, y1, x2, y2 = box * spatial_scale - (0.5 if aligned else 0)
        height, width = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
        y = np.zeros((x.shape[1], rows, columns))
        for i, j, s, t in np.ndindex(rows, columns, sampling_ratio, sampling_ratio):
            at = y1 + (i + (s + 0.5) / sampling_ratio) * height / rows
            y[:, i, j] += _linear(image, at, x1 + (j + (t + 0.5) / sampling_ratio) * width / columns)
        found.append(y / sampling_ratio**2)
    return np.stack(found).reshape(*boxes.shape[:-1], x.shape[1], rows, columns)


def roi_pool(x, boxes, output_size, spatial_scale=1.0):
    rows, columns = _both(output_size)
    away = lambda v: int(math.copysign(math.floor(abs(v) + 0.5), v))
    found = []
    for image, box in _boxes(x, boxes):
        x1, y1, x2, y2 = (away(v) for v in box * spatial_scale)
        height, width = max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1)
        y = np.zeros((x.shape[1], rows, columns))
        for i, j in np.ndindex(rows, columns):
            bin_of = lambda k, first, length, count, n: slice(
                min(max(first + k * length // count, 0), n), min(max(first - (-(k + 1) * length // count), 0), n)
            )
            part = image[:, bin_of(i, y1, height, rows, x.shape[2]), bin_of(j, x1, width, columns, x.shape[3])]
            if part.size:
                y[:, i, j] = part.max((1, 2))
        found.append(y)
    return np.stack(found).reshape(*boxes.shape[:-1], x.shape[1], rows, columns)


def _iou(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = width * height if width > 0 and height > 0 else 0.0
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return common / union if union else 0.0


def box_iou(boxes1, boxes2):
    if boxes1.ndim > 2:
        return np.stack([box_iou(a, b) for a, b in zip(boxes1, boxes2, strict=True)])
    return np.array([[_iou(a, b) for b in boxes2] for a in boxes1]).reshape(len(boxes1), len(boxes2))


def soft_nms(
    boxes, scores, sigma=0.5, iou_threshold=0.3, score_threshold=0.001, method="gaussian", max_output=None, classes=None
):
    left, size, found = scores.astype(np.float64), len(boxes) if max_output is None else max_output, []
    left[np.isnan(left)] = -1
    while len(found) < min(size, len(boxes)) and left.max() > score_threshold:
        best = int(left.argmax())
        found.append(best)
        left[best] = -1
        for i in range(len(boxes)):
            overlap = _iou(boxes[best], boxes[i])
            if math.isnan(overlap) or left[i] < 0 or (classes is not None and classes[i] != classes[best]):
                continue
            linear = 1 - overlap if overlap > iou_threshold else 1
            left[i] *= math.exp(-(overlap**2) / sigma) if method == "gaussian" else linear
    return np.array([*found, *[-1] * (size - len(found))], np.int64)


def nms(boxes, scores, iou_threshold, max_output=None, classes=None):
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        same = [k for k in kept if classes is None or classes[k] == classes[i]]
        if not any(_iou(boxes[k], boxes[i]) > iou_threshold for k in same):
            kept.append(i)
    size = len(boxes) if max_output is None else max_output
    kept = kept[:size]
    return np.array([*kept, *[-1] * (size - len(kept))], np.int64)
