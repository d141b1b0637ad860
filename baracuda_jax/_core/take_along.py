"""Elements at an index along the last axis but one, by the kernel."""

import jax

from .bits import words
from .kernel import kernel


def take_along(index, x, fill=b"", wraps=False):
    """The elements of x [..., N, D] that index [..., M, D] names; past the end, the number with the bytes `fill`.
    Negative ones, of int32, count from the end if it `wraps`, else they are past it."""
    out = jax.ShapeDtypeStruct(index.shape, x.dtype)
    return kernel("take_along", "...md, ...nd -> ...md", index, x, out=[out], fill=words(fill), wraps=wraps)[0]
