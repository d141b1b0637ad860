"""Layers whose parameters are sharded over the devices of a mesh axis: XLA's collectives and cuBLASLt's products are at the
bound, so that these ops have no kernels."""

from ._column import column_parallel_linear
from ._row import row_parallel_linear

__all__ = ["column_parallel_linear", "row_parallel_linear"]
