"""Which elements share a scale: the four granularities, as views of an array as elements [..., channels, inner]."""

import dataclasses
import math

import jax.numpy as jnp
from jax import lax


@dataclasses.dataclass(frozen=True)
class Granularity:
    """`kind` is "tensor", "channel", "token" or "group". `axis` counts from the end, so that leading batch dimensions
    change nothing."""

    kind: str
    axis: int | None = None
    group_size: int | None = None

    def scale_shape(self, shape):
        return {
            "tensor": lambda: (),
            "channel": lambda: (shape[self.axis],),
            "token": lambda: tuple(shape[:-1]),
            "group": lambda: (*shape[:-1], shape[-1] // self.group_size),
        }[self.kind]()

    def elements(self, x, whole_rows=False):
        """x as elements. Per tensor all dimensions are batches, or all but the last with `whole_rows`."""
        if self.kind == "tensor":
            return x.reshape(*x.shape[:-1], 1, x.shape[-1] if x.ndim else 1) if whole_rows else x[..., None, None]
        if self.kind == "channel":
            begin = x.ndim + self.axis
            return x.reshape(*x.shape[: begin + 1], math.prod(x.shape[begin + 1 :]))
        if self.kind == "token":
            return x[..., None, :]
        return x.reshape(*x.shape[:-1], x.shape[-1] // self.group_size, self.group_size)

    def per_channel(self, scale):
        """A scale or a zero point as [..., channels]; it may have fewer leading dimensions than the elements."""
        return scale[..., None] if self.kind in ("tensor", "token") else scale


def expanded(scale, elements):
    """[..., channels] with the dimensions of elements [..., channels, inner], if it has them not yet."""
    if scale.ndim == elements.ndim:
        return scale
    missing = elements.ndim - 1 - scale.ndim
    return scale.reshape(*scale.shape[:-1], *(1,) * missing, scale.shape[-1], 1)


def sum_to(x, scale):
    """The sum of elements over those that share a scale, `expanded`."""
    return jnp.sum(x, axis=[d for d, n in enumerate(scale.shape) if n == 1])


def compact(elements, *arrays):
    """Elements and arrays expanded to them, without last dimensions of 1: with these XLA's sums on CPU take
    ten times as long."""
    count = 0
    while count < elements.ndim and elements.shape[elements.ndim - 1 - count] == 1:
        count += 1
    return [lax.squeeze(x, range(x.ndim - count, x.ndim)) for x in (elements, *arrays)]


TENSOR, TOKEN = Granularity("tensor"), Granularity("token")
