"""Rows of a table for ids, alone or reduced by bag, and steps of optimizers on these rows.

Data flow: forward, each id reads its row (pattern: segment, of which the table's rows are the segments); a bag reads those
of its ids and reduces them, without a copy of them in memory. Backward, the entries are sorted by id, and each row of the
gradient is the sum of what its entries have, in order. For sparse updates the rows without entries are left out.
"""

from ._bag import embedding_bag
from ._bag_backward import embedding_bag_max_backward, embedding_bag_mean_backward, embedding_bag_sum_backward
from ._embedding import embedding, embedding_backward
from ._rows import embedding_backward_rows
from ._steps import embedding_adagrad_step, embedding_sgd_step

__all__ = [
    "embedding",
    "embedding_adagrad_step",
    "embedding_backward",
    "embedding_backward_rows",
    "embedding_bag",
    "embedding_bag_max_backward",
    "embedding_bag_mean_backward",
    "embedding_bag_sum_backward",
    "embedding_sgd_step",
]
