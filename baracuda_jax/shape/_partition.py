"""Ops that move elements, on shards: dimensions along which none moves may be cut, the others are gathered."""

from .._core.partition import Partition

MOST_RANK = 32
# Two labels for a dimension: else the compiler would cut the result too, and gather it again for the derivatives.
WHOLE = frozenset(f"{name}{i}" for name in "xyu" for i in range(1, MOST_RANK + 1))


def whole_along(axes_of):
    """The rule of an op whose elements move along the dimensions axes_of(params), counted from the last: -1, -2, ..."""

    def labels(names, types, params):
        moved = {-axis for axis in axes_of(params)}
        of = lambda name, i: f"{'y' if name == 'y' else 'x'}{i}" if i in moved else f"d{i}"
        return [[of(name, i) for i in range(x.ndim, 0, -1)] for name, x in zip(names, types, strict=True)]

    return Partition(labels, whole=WHOLE)


def whole_behind_batches(ranks_of):
    """The rule of an op that moves elements along all dimensions but leading ones; ranks_of(params) are those of x and y
    without these."""

    def labels(names, types, params):
        def of(name, rank):
            side = "y" if name == "y" else "x"
            core = ranks_of(params)[side == "y"]
            return (*(f"d{i}" for i in range(rank - core)), *(f"{side}{i + 1}" for i in range(core)))

        return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]

    return Partition(labels, whole=WHOLE)
