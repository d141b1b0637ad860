"""Softmax and its relatives. XLA computes softmax close to the bandwidth bound; only projections on the simplex, for which
it would sort, have kernels."""

from ._entmax15 import entmax15, entmax15_backward
from ._gumbel import gumbel_softmax
from ._softmax import log_softmax, softmax, softmax_strided
from ._sparsemax import sparsemax, sparsemax_backward

__all__ = [
    "entmax15",
    "entmax15_backward",
    "gumbel_softmax",
    "log_softmax",
    "softmax",
    "softmax_strided",
    "sparsemax",
    "sparsemax_backward",
]
