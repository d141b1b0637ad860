"""Elements by index. XLA computes them at the bandwidth bound, so that these ops have no kernels, except what is added up,
multiplied or compared, which kernels do in order."""

from ._add import index_add, index_add_backward
from ._combine import (
    scatter_add,
    scatter_add_backward,
    scatter_max,
    scatter_max_backward,
    scatter_min,
    scatter_min_backward,
    scatter_mul,
    scatter_mul_backward,
)
from ._gather import gather, gather_backward, gather_rows, index_select
from ._masked_fill import masked_fill
from ._one_hot import one_hot
from ._scatter import scatter

__all__ = [
    "gather",
    "gather_backward",
    "gather_rows",
    "index_add",
    "index_add_backward",
    "index_select",
    "masked_fill",
    "one_hot",
    "scatter",
    "scatter_add",
    "scatter_add_backward",
    "scatter_max",
    "scatter_max_backward",
    "scatter_min",
    "scatter_min_backward",
    "scatter_mul",
    "scatter_mul_backward",
]
