"""Histograms and searches: where values are in a sorted sequence, and how many are in each bin.

Data flow: arrays are [batches, elements]. In a search each value finds its position by itself; a sequence serves all values
of its batch. In a count each element finds its bin and adds one to it, in tables of integers, which sum to the same in any
order. What is weighted is summed by this library's `segment_sum`. Patterns: search, histogram.
"""

from ._bincount import bincount
from ._histogram import histogram, histogramdd
from ._search import digitize, searchsorted

__all__ = ["bincount", "digitize", "histogram", "histogramdd", "searchsorted"]
