"""Random numbers of a key, and what is drawn by them. XLA computes numbers as fast as threefry allows. What philox keys draw
has kernels, and so have samplers, for which XLA would sort."""

from ._bits import philox, random_bits
from ._draws import random_bernoulli, random_normal, random_uniform
from ._dropout import dropout, dropout_backward
from ._multinomial import multinomial
from ._samplers import min_p_sampling, top_k_sampling, top_k_top_p_sampling, top_p_sampling
from ._speculative_sampling import speculative_sampling
from ._speculative_tree import speculative_tree_sampling
from ._token_penalty import token_penalty

__all__ = [
    "dropout",
    "dropout_backward",
    "min_p_sampling",
    "multinomial",
    "philox",
    "random_bernoulli",
    "random_bits",
    "random_normal",
    "random_uniform",
    "speculative_sampling",
    "speculative_tree_sampling",
    "token_penalty",
    "top_k_sampling",
    "top_k_top_p_sampling",
    "top_p_sampling",
]
