"""The sizes of a call on which the choice of its backend depends. A declaration names one of these rules as `regime`.

A rule takes a Call and returns {name: size}, of its largest array where nothing else is said. Sizes are compared by their
ratios. A flag, such as whether ids are sorted, is True or False."""

import math

VECTOR = 16  # bytes


def by_size(call):
    """The number of bytes says enough."""
    return {}


def along_axes(call):
    """What is read along an axis, or several, by default the last: the number of elements of a slice, the distance between
    two of them, and the bytes to which rows in memory are aligned, on which vector loads depend."""
    shape, params = call.largest.shape, call.params
    axes = params["axes"] if "axes" in params else (params.get("axis", -1),)
    axes = [i % len(shape) for i in axes] if shape else []
    if not axes:
        return {"length": 1, "inner": 1, "aligned": VECTOR}
    length, inner = math.prod(shape[i] for i in axes), math.prod(shape[max(axes) + 1 :])
    return {"length": length, "inner": inner, "aligned": aligned(inner if inner > 1 else length, call.largest.dtype)}


def by_rows(call):
    """Rows that are reduced by segments: their number, their length, to how many bytes they are aligned, and whether ids are
    sorted, or how they sort is known."""
    rows = call.operand("segment_ids").shape[-1]
    inner = math.prod(call.largest.shape[call.params["axis"] + 1 :])
    aligned_to = aligned(inner, call.largest.dtype)
    return {"length": rows, "inner": inner, "aligned": aligned_to, "sorted": call.params["sorted"] or call.starred > 0}


def by_entries(call):
    """Rows that entries name and segments reduce: the number of entries, the length of the longest row, to how many bytes it
    is aligned, and whether the segments are sorted."""
    inner = max(math.prod(operand.shape[call.params["axis"] + 1 :]) for operand in call.operands)
    entries = call.operand("receivers").shape[-1]
    aligned_to = aligned(inner, call.dtype)
    return {
        "length": entries,
        "inner": inner,
        "aligned": aligned_to,
        "sorted": call.params["sorted"] or call.starred > 0,
    }


def by_windows(call):
    """Windows: the elements of one, and how many channels are next to each other in memory."""
    windows = call.params["windows"]
    count = math.prod(windows.window)
    if windows.kind == "adaptive":
        count = math.prod(max(1, n // max(m, 1)) for n, m in zip(windows.size, windows.out, strict=True))
    return {"length": count, "inner": call.largest.shape[-1] if windows.channels_last else 1}


def by_taps(call):
    """Axes that are resampled: the elements of x that one of the result reads, as a product over the axes, how many channels
    are next to each other in memory, and how much larger the result is."""
    tables = call.params["tables"]
    taps = math.prod(table.index.shape[1] for table in tables)
    growth = math.prod(len(table.index) / table.size for table in tables)
    inner = call.largest.shape[-1] if call.params["channels_last"] else 1
    return {"length": taps, "inner": inner, "growth": growth}


def by_boxes(call):
    """The number of boxes of a set."""
    return {"length": call.operand("boxes").shape[-2]}


def by_samples(call):
    """Positions in images: their number in one image, the channels, and the elements that are read for each."""
    grid = call.operand("grid").shape
    rank = grid[-1]
    taps = {"nearest": 1, "bilinear": 2, "bicubic": 4}[call.params["mode"]] ** rank
    return {"length": math.prod(grid[-rank - 1 : -1]), "inner": call.operand("x").shape[-rank - 1], "taps": taps}


def by_coordinates(call):
    """Positions in arrays that are listed: their number, the arrays that have the same ones, and the elements that are read
    for each."""
    *_, rank, points = call.operand("coordinates").shape
    return {"length": points, "inner": call.operand("x").shape[-rank - 1], "taps": (call.params["order"] + 1) ** rank}


def by_regions(call):
    """The samples of all boxes, and the channels."""
    boxes, params = call.operand("boxes").shape, call.params
    count = math.prod(boxes[:-1]) * math.prod(params["size"]) * params["samples"] ** 2
    return {"length": count, "inner": call.operand("x").shape[-3]}


def by_matrices(call):
    """Small matrices: the longer side of one, how many there are, and whether they are those of which JAX has formulas."""
    shape = call.operands[0].shape
    return {"length": max(shape[-2:]), "matrices": math.prod(shape[:-2]), "tiny": max(shape[-2:]) <= 3}


def by_bins(call):
    """The elements of a bin of a box that is as large as an image, and how many bins of all boxes and channels there are."""
    boxes, params = call.operand("boxes").shape, call.params
    bins = math.prod(params["size"])
    return {"length": max(1, math.prod(params["spatial"]) // bins), "inner": math.prod(boxes[:-1]) * bins}


def aligned(elements, dtype):
    """The bytes, at most those of a vector load, to which rows of so many elements are aligned."""
    return math.gcd(VECTOR, elements * dtype.itemsize)
