"""Segment reductions: rows of `data` with the same id are reduced to one.

Data flow: the ids are turned into an index (a stable sort of the row numbers by segment, and the position where each segment
begins). Forward each segment reads its rows, in order; backward it writes them, wherever they are: elements of segments,
which many rows share, are read once, and each row of the gradient is written once. Pattern: segment. Ops on the same ids in
one program share the index, as do forward and backward: XLA computes equal calls once.

Throughout, `axis` is the number of leading batch dimensions of the data. The ids have as many, or fewer: each of their
batches then serves several of the data's.
"""

from ._extremum import segment_max, segment_max_backward, segment_min, segment_min_backward
from ._index import SegmentIndex
from ._log_sum_exp import segment_logsumexp, segment_logsumexp_backward
from ._mean import segment_mean, segment_mean_backward
from ._prod import segment_prod, segment_prod_backward
from ._segment_index import segment_index
from ._softmax import segment_softmax, segment_softmax_backward
from ._sum import segment_sum, segment_sum_backward
from ._take import segment_take, segment_take_backward
from ._variance import segment_std, segment_std_backward, segment_var, segment_var_backward

__all__ = [
    "SegmentIndex",
    "segment_index",
    "segment_logsumexp",
    "segment_logsumexp_backward",
    "segment_max",
    "segment_max_backward",
    "segment_mean",
    "segment_mean_backward",
    "segment_min",
    "segment_min_backward",
    "segment_prod",
    "segment_prod_backward",
    "segment_softmax",
    "segment_softmax_backward",
    "segment_std",
    "segment_std_backward",
    "segment_sum",
    "segment_sum_backward",
    "segment_take",
    "segment_take_backward",
    "segment_var",
    "segment_var_backward",
]
