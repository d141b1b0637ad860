"""Message passing: rows of an array, taken along the edges of a graph, weighted and reduced by the edges' other ends.

Data flow: an edge, or entry, names a row of `x` (its sender) and a segment (its receiver). Entries are sorted by their
receivers, as rows are in segment reductions; a reduction then reads the sender's row in place of the entry's own, times the
entry's weight, so that messages [E, D] are never in memory. Pattern: segment. A gradient of x is the same reduction with
senders and receivers exchanged; one of the weights has a dot product for each entry (pattern: sampled_dot).
"""

from ._aggregate import aggregate
from ._backward import (
    aggregate_max_backward,
    aggregate_mean_backward,
    aggregate_min_backward,
    aggregate_sum_backward,
    aggregate_weighted_sum_backward,
    sampled_dot_backward,
)
from ._dot import sampled_dot

__all__ = [
    "aggregate",
    "aggregate_max_backward",
    "aggregate_mean_backward",
    "aggregate_min_backward",
    "aggregate_sum_backward",
    "aggregate_weighted_sum_backward",
    "sampled_dot",
    "sampled_dot_backward",
]
