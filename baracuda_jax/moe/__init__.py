"""Mixtures of experts: which experts each token is sent to, its row there, and the weighted sum of what comes back.

Data flow: `moe_gating_topk` makes experts [T, k] and weights of logits. `moe_permute` sorts the slots (token, j) by expert
and copies each token's row once for each; its map from slots to rows is all that later calls read. `moe_combine` adds each
token's rows in the order of its slots. A gradient is a sum over each token's slots, which are segments of k entries, or a
copy of each token's row, segments of one: nothing is sorted. Patterns: segment; sampled_dot for the gradient of weights.
"""

from ._combine import moe_combine, moe_combine_backward
from ._gating import moe_gating_topk
from ._gguf import moe_scalar_gguf, moe_wmma
from ._permute import Permuted, moe_permute, moe_permute_backward

moe_wmma_gguf = moe_scalar_gguf  # of floats of 16 bits, too

__all__ = [
    "Permuted",
    "moe_combine",
    "moe_combine_backward",
    "moe_gating_topk",
    "moe_permute",
    "moe_permute_backward",
    "moe_scalar_gguf",
    "moe_wmma",
    "moe_wmma_gguf",
]
