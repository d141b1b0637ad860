"""What several oracles share."""

import numpy as np


def wide(x):
    """In float64, or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def per_axis(value, rank):
    return (value,) * rank if np.ndim(value) == 0 else tuple(value)
