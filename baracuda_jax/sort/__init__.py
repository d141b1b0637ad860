"""Sorts, selection and order statistics: where along an axis which of its elements are.

Data flow: numbers become unsigned integers in the same order, with which go their positions; these are sorted by radix, or
looked through for those of some ranks. Positions settle ties, so that every order is total, every sort stable, and an index
enough for all derivatives: a tangent is gathered by it, a cotangent is scattered to it. Patterns: sort, select, scatter,
argextremum.
"""

from ._argextremum import argmax, argmin
from ._key_val import sort_key_val, sort_key_val_backward
from ._kth import kthvalue, kthvalue_backward
from ._quantile import median, nanmedian, nanquantile, quantile
from ._sort import argsort, msort, sort, sort_backward
from ._topk import top_k, topk, topk_backward

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "kthvalue",
    "kthvalue_backward",
    "median",
    "msort",
    "nanmedian",
    "nanquantile",
    "quantile",
    "sort",
    "sort_backward",
    "sort_key_val",
    "sort_key_val_backward",
    "top_k",
    "topk",
    "topk_backward",
]
