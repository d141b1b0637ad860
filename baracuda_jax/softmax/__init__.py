"""Softmax and its relatives. Kernels read a row once, which XLA does only of short ones."""

from ._entmax15 import entmax15, entmax15_backward
from ._gumbel import gumbel_softmax
from ._softmax import log_softmax, log_softmax_backward, softmax, softmax_backward, softmax_strided
from ._sparsemax import sparsemax, sparsemax_backward

__all__ = [
    "entmax15",
    "entmax15_backward",
    "gumbel_softmax",
    "log_softmax",
    "log_softmax_backward",
    "softmax",
    "softmax_backward",
    "softmax_strided",
    "sparsemax",
    "sparsemax_backward",
]
