"""Ops that move elements and compute nothing.

Data flow: forward, each element of y takes the element of x that a map names, or a fill value (`_map.py`; pattern:
index_map). Most of these gradients move elements back, by the same kernel. Where an element of x has several copies, its
gradient adds them in a fixed order, so that every element of dy is read once and every element of dx written once: whole
copies side by side by the pattern tile, windows and what is folded at the ends of axes by the adjoint of index_map,
rows that are repeated as often as each says by segment.

Leading dimensions along which nothing moves are batches. The others are merged as far as their elements stay neighbors, so
that a kernel sees few axes; what moves is counted in bytes, whatever the dtype.
"""

from ._broadcast_in_dim import broadcast_in_dim, broadcast_in_dim_backward
from ._concat import concat, concat_backward, concatenate
from ._dynamic_update_slice import dynamic_update_slice, dynamic_update_slice_backward, write_slice
from ._fill import fill, fill_backward, full, full_like
from ._flip import flip, flip_backward
from ._meshgrid import meshgrid
from ._pad import pad, pad_backward
from ._permute import permute, permute_backward, transpose
from ._pixel import (
    channel_shuffle,
    channel_shuffle_backward,
    pixel_shuffle,
    pixel_shuffle_backward,
    pixel_unshuffle,
    pixel_unshuffle_backward,
)
from ._repeat import repeat, repeat_backward, tile
from ._repeat_interleave import repeat_interleave, repeat_interleave_backward
from ._roll import roll, roll_backward
from ._triangle import tril, tril_backward, triu, triu_backward
from ._unfold import fold, fold_backward, unfold, unfold_backward

__all__ = [
    "broadcast_in_dim",
    "broadcast_in_dim_backward",
    "channel_shuffle",
    "channel_shuffle_backward",
    "concat",
    "concat_backward",
    "concatenate",
    "dynamic_update_slice",
    "dynamic_update_slice_backward",
    "fill",
    "fill_backward",
    "flip",
    "flip_backward",
    "fold",
    "fold_backward",
    "full",
    "full_like",
    "meshgrid",
    "pad",
    "pad_backward",
    "permute",
    "permute_backward",
    "pixel_shuffle",
    "pixel_shuffle_backward",
    "pixel_unshuffle",
    "pixel_unshuffle_backward",
    "repeat",
    "repeat_backward",
    "repeat_interleave",
    "repeat_interleave_backward",
    "roll",
    "roll_backward",
    "tile",
    "transpose",
    "tril",
    "tril_backward",
    "triu",
    "triu_backward",
    "unfold",
    "unfold_backward",
    "write_slice",
]
