"""Aggregations on shards: features are apart from each other; shards of entries give parts of each segment, which are
added, and so do shards of rows of x, which have the entries of their senders. Segments are on every device. Where all have
as many neighboring entries, as the bags that are rows of a matrix of ids, they are cut as these are, and are whole."""

from jax import lax

from .._core.partition import Partition
from ..segment._family import INDEX
from ..segment._partition import rows_here

WHOLE = frozenset({"r", "s", *(f"index{i}" for i in range(4))})
EVEN = "even"  # the label of entries and of segments where all of these have as many neighboring entries


def labels(by_row, by_segment):
    """The rule of an op whose arrays of these names have rows of x, and segments; others are by entry."""

    def of_call(names, types, params):
        entries, segments = (EVEN, EVEN) if params.get("length") else ("e", "s")
        of = lambda name: "r" if name in by_row else segments if name in by_segment else entries
        return [_of(name, x.ndim, params["axis"], of(name)) for name, x in zip(names, types, strict=True)]

    return of_call


def _of(name, rank, axis, rows):
    if name.startswith("index"):
        return (*(f"batch{i}" for i in range(rank - 1)), name)
    lead = rank - 1 if name in ("senders", "receivers") else axis
    return (*(f"batch{i}" for i in range(lead)), rows, *(f"feature{i}" for i in range(rank - lead - 1)))


def by_edges(labels):
    """A shard of the edges has no index of them all."""
    return Partition(labels, WHOLE, without={"e": INDEX})


def by_edges_or_rows(of_rows, of_even=None, **of_edges):
    """Of x by row, which may be cut too, and y by segment."""
    combine = {label: of for label, of in (("e", of_edges), ("r", of_rows), (EVEN, of_even)) if of}
    return Partition(
        labels(("x",), ("y", "arg")),
        WHOLE - {"r"},
        combine,
        dict.fromkeys(("e", "r", EVEN), INDEX),
        placed=_segments_here,
        sizes={"num_segments": EVEN},
    )


def _segments_here(axes, names, operands, *, num_segments, **_):
    """Of segments that are cut as their entries are, receivers count from the shard's first."""
    if EVEN not in axes:
        return operands
    first = lax.axis_index(axes[EVEN]) * num_segments
    return [x - first.astype(x.dtype) if name == "receivers" else x for name, x in zip(names, operands, strict=False)]


def on_rows(**combine):
    """What combines shards of the rows of x: each has the entries whose senders are its rows."""
    return {kind: _on_rows(kind, of_shard) for kind, of_shard in combine.items()}


def _on_rows(kind, of_shard):
    def combined(run, axes, *operands, num_rows, **params):
        """Operands are (x, senders, ...) or (senders, ...)."""
        i, count = int(kind == "forward"), num_rows // lax.axis_size(axes)
        here = rows_here(operands[i], count, axes)
        return of_shard(run, axes, *operands[:i], here, *operands[i + 1 :], num_rows=count, **params)

    return combined


def added(kind):
    return lambda run, axes, *operands, **params: [lax.psum(run[kind](*operands, **params)[0], axes)]


def apart(kind):
    return lambda run, axes, *operands, **params: run[kind](*operands, **params)


def _weighted_on_rows(kind):
    def of_shard(run, axes, x, senders, *operands, axis, **params):
        here = rows_here(senders, x.shape[axis], axes)
        *dx, y = run[kind](x, here, *operands, axis=axis, **params)  # of the gradient that of the weights is last
        return [*dx, lax.psum(y, axes)]

    return of_shard


KINDS = "forward", "tangent", "backward"
sum_partition = by_edges_or_rows(
    on_rows(forward=added("forward"), tangent=added("tangent"), backward=apart("backward"))
)
weighted_partition = by_edges_or_rows({kind: _weighted_on_rows(kind) for kind in KINDS})
