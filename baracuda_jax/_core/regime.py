"""The sizes of a call on which the choice of its backend depends. A declaration names one of these rules as `regime`.

A rule takes a Call and returns {name: size}, of its largest array where nothing else is said. Sizes are compared by their
ratios. A flag, such as whether ids are sorted, is True or False."""

import math


def by_size(call):
    """The number of bytes says enough."""
    return {}


def along_axes(call):
    """What is read along an axis, or several: the number of elements of a slice, and the distance between two of them."""
    shape, params = call.largest.shape, call.params
    axes = [i % len(shape) for i in (params["axes"] if "axes" in params else (params["axis"],))]
    if not axes:
        return {"length": 1, "inner": 1}
    return {"length": math.prod(shape[i] for i in axes), "inner": math.prod(shape[max(axes) + 1 :])}


def along_last(call):
    """The same of rows."""
    shape = call.largest.shape
    return {"length": shape[-1] if shape else 1, "inner": 1}


def by_rows(call):
    """Rows that are reduced by segments: their number, their length, and whether ids are sorted."""
    rows = call.operand("segment_ids").shape[-1]
    inner = math.prod(call.largest.shape[call.params["axis"] + 1 :])
    return {"length": rows, "inner": inner, "sorted": call.params["sorted"]}
