"""Slices as rows, along which kernels go."""

import math

import jax


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

    def back(self, y):
        return y.reshape(self.shape).transpose([self.order.index(i) for i in range(len(self.order))])
