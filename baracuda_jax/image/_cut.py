"""How ops that read images at positions are computed on shards: positions and channels may be cut, and the axes of an image
are whole. Each shard then reads what it needs; gradients of what all shards read are summed over them."""

from .._core.partition import Partition


def by_position(at):
    """x [*batch, C, *axes], `at` [*batch, *points, axes], y [*batch, C, *points]."""

    def labels(names, types, params):
        known = dict(zip(names, types, strict=True))
        axes = known[at].shape[-1]
        batches = known["x"].ndim - axes - 1
        points = [f"p{i}" for i in range(known[at].ndim - batches - 1)]
        core = {"x": ["c", *(f"axis{i}" for i in range(axes))], at: [*points, "k"], "y": ["c", *points]}
        return [(*(f"batch{i}" for i in range(batches)), *core[name]) for name in names]

    return Partition(labels, whole=frozenset({"k", *(f"axis{i}" for i in range(64))}), plain=True)
