"""Reductions of the elements along axes.

Data flow: forward, every element is read once, and each slice of elements is reduced to a few numbers, its state, which are
combined in an order that the shapes alone decide; backward, every element of dx is written once, of its element of x and
what its slice has.
Pattern: reduce.

Of an array's dimensions, those before the first that is reduced are batches. The others are merged as far as they are
neighbors: reduced and kept in turn. Throughout, `axes` are ascending and counted from the first.
"""

from ._count import all, any, count_nonzero
from ._extremum import max, max_backward, min, min_backward
from ._log_sum_exp import logsumexp, logsumexp_backward
from ._prod import prod, prod_backward
from ._sum import mean, mean_backward, sum, sum_backward
from ._trace import trace, trace_backward
from ._unbroadcast import reduce_to, unbroadcast
from ._variance import std, std_backward, var, var_backward
from ._vector_norm import vector_norm, vector_norm_backward

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "logsumexp",
    "logsumexp_backward",
    "max",
    "max_backward",
    "mean",
    "mean_backward",
    "min",
    "min_backward",
    "prod",
    "prod_backward",
    "reduce_to",
    "std",
    "std_backward",
    "sum",
    "sum_backward",
    "trace",
    "trace_backward",
    "unbroadcast",
    "var",
    "var_backward",
    "vector_norm",
    "vector_norm_backward",
]
