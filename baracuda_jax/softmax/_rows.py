"""Slices as rows, along which kernels go."""

import math

import jax

from .._core.wide import wide_dtype


class Rows:
    """Arrays of x's shape as rows of slices, and back."""

    def __init__(self, x, axes):
        self.kept = x.ndim - len(axes)
        self.order = [i for i in range(x.ndim) if i not in axes] + list(axes)
        self.shape = tuple(x.shape[i] for i in self.order)

    def of(self, x):
        return x.transpose(self.order).reshape(self.like(x.dtype).shape)

    def like(self, dtype):
        """The type of rows."""
        return jax.ShapeDtypeStruct((*self.shape[: self.kept], math.prod(self.shape[self.kept :])), dtype)

    def workspace(self, dtype):
        """Bytes for each row of the states of its parts, two numbers each, where rows are few and long
        (ffi/patterns/rows_parts_cuda.h). The kernel may take fewer parts, or none."""
        rows, columns = math.prod(self.shape[: self.kept]), math.prod(self.shape[self.kept :])
        if not (isinstance(rows, int) and isinstance(columns, int)) or not rows:
            return 0
        is_divided = columns >= max(4096, 384 * rows)
        return 528 // rows * 2 * wide_dtype(dtype).itemsize if is_divided else 0

    def back(self, y):
        return y.reshape(self.shape).transpose([self.order.index(i) for i in range(len(self.order))])
