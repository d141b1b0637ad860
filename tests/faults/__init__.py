"""Faults that are planted on purpose: the table of them, by what they break."""

from . import choices, kernels, rules, sharding
from .table import FAULTS

__all__ = ["FAULTS", "choices", "kernels", "rules", "sharding"]
