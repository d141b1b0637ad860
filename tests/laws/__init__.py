"""The law matrix: what every op does, in every dtype, under every transformation. One file has the laws of one kind."""

from . import batches, control, derivatives, export, values
from .table import LAWS, chosen, entries

__all__ = ["LAWS", "batches", "chosen", "control", "derivatives", "entries", "export", "values"]
