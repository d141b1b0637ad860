"""Scans: each element sees what comes before it along an axis.

Data flow: arrays are [batches, count, inner], and go along the middle axis, from its end where `reverse`. Every element is
read once and written once; the total of a chunk of elements is combined with those of the chunks before in an order that
shapes alone decide. Gradients are scans the other way. Pattern: scan.

Throughout, `axis` is the number of dimensions before the one that is scanned.
"""

from ._extremum import cummax, cummax_backward, cummin, cummin_backward
from ._linear import linear_scan, linear_scan_backward
from ._log_sum_exp import logcumsumexp, logcumsumexp_backward
from ._prod import cumprod, cumprod_backward
from ._sum import cumsum, cumsum_backward

__all__ = [
    "cummax",
    "cummax_backward",
    "cummin",
    "cummin_backward",
    "cumprod",
    "cumprod_backward",
    "cumsum",
    "cumsum_backward",
    "linear_scan",
    "linear_scan_backward",
    "logcumsumexp",
    "logcumsumexp_backward",
]
