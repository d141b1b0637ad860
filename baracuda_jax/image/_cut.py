"""How ops that read images at positions are computed on shards: positions and channels may be cut, and the axes of an image
are whole. Each shard then reads what it needs; gradients of what all shards read are summed over them."""

from .._core.partition import Partition


def by_position(at, by_axis=False):
    """x [*batch, C, *axes], `at` [*batch, *points, axes], or `by_axis` [*batch, axes, points], y [*batch, C, *points]."""

    def labels(names, types, params):
        known = dict(zip(names, types, strict=True))
        axes = known[at].shape[-2 if by_axis else -1]
        batches = known["x"].ndim - axes - 1
        points = [f"p{i}" for i in range(known[at].ndim - batches - 1)]
        core = {
            "x": ["c", *(f"axis{i}" for i in range(axes))],
            at: ["k", *points] if by_axis else [*points, "k"],
            "y": ["c", *points],
        }
        return [(*(f"batch{i}" for i in range(batches)), *core[name]) for name in names]

    return Partition(labels, whole=frozenset({"k", *(f"axis{i}" for i in range(64))}), plain=True)


def _labels_of_boxes(names, types, params):
    """x [*batch, N, C, H, W], boxes [*batch, K, 5] of any image, or [*batch, N, K, 4] of each, y [*batch, boxes, C,
    *size]."""
    known = dict(zip(names, types, strict=True))
    batches = known["x"].ndim - 4
    are_of_each = known["boxes"].ndim - batches == 3
    first, of_result = ("n", "n") if are_of_each else ("any", "k")
    core = {"x": [first, "c", "h", "w"], "boxes": ["n", "each", "f"] if are_of_each else ["k", "f"]}
    of = lambda name: core.get(name, [of_result, "c", "p", "q"])
    return [(*(f"batch{i}" for i in range(batches)), *of(name)) for name in names]


# Boxes of any image may be cut, and images each of which has its boxes.
BY_BOX = Partition(_labels_of_boxes, whole=frozenset({"any", "each", "h", "w", "f", "p", "q"}), plain=True)
