"""Products of rows and of elements along an axis, at an index for each: the bodies. Derivatives multiply the other
factors, so that they are exact where some are zero. `axis`, the index and `wraps` are those of `_elements`."""

import jax
import jax.numpy as jnp

from .._core.bits import to_bits
from .._core.body import Body
from .._core.kernel import kernel
from .._core.wide import wide, wide_dtype
from ..segment._kernels import gradient, reduce
from ..segment._references import product_of
from ._arguments import along
from ._elements import added, inside, is_short


def _product(x, index, src, *, axis, wraps):
    """As a function that JAX differentiates to any order, exactly at zeros."""

    def multiply(x, at, src):
        factors = product_of(wide(src), at, axis=0, num_segments=x.shape[0])
        return (wide(x) * factors).astype(x.dtype)

    return along(multiply, axis, x, inside(index, x.shape[axis], wraps), src)


def _reference(x, index, src, *, axis, wraps):
    def multiply(x, at, src):
        factors = jnp.ones(x.shape, wide_dtype(x.dtype)).at[at].multiply(wide(src), mode="drop")
        return (wide(x) * factors).astype(x.dtype)

    return (along(multiply, axis, x, inside(index, x.shape[axis], wraps), src),)


def _tangent_reference(x, index, src, t, of_src, **how):
    return (jax.jvp(lambda x, src: _product(x, index, src, **how), (x, src), (t, of_src))[1],)


def _backward_reference(x, index, src, dy, **how):
    return jax.vjp(lambda x, src: _product(x, index, src, **how), x, src)[1](dy)


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def _native(x, index, src, *, save=False, axis, wraps):
    rows, index, src = (jnp.moveaxis(a, axis, -1) for a in (x, index, src))
    if is_short(rows.shape[-1], src):
        out = [_like(rows)]
        (y,) = kernel("scatter_mul", "...n, ...m, ...m -> ...n", rows, index, src, out=out, wraps=wraps)
    else:
        product, *_ = _of_segments(wide(src), inside(index, rows.shape[-1], wraps), rows.shape[-1])
        y = (wide(rows) * product).astype(rows.dtype)
    return (jnp.moveaxis(y, -1, axis),)


def _backward_native(x, index, src, dy, *, axis, wraps):
    rows, index, src, dy = (jnp.moveaxis(a, axis, -1) for a in (x, index, src, dy))
    if is_short(rows.shape[-1], src):
        dims = "...n, ...m, ...m, ...n -> ...n, ...m"
        out = [_like(rows), _like(src)]
        results = kernel("scatter_mul_backward", dims, rows, index, src, dy, out=out, wraps=wraps)
    else:
        results = _backward_of_segments(rows, inside(index, rows.shape[-1], wraps), src, dy)
    return tuple(jnp.moveaxis(a, -1, axis) for a in results)


def _backward_of_segments(x, at, src, dy):
    factors, total = wide(src), wide(dy)
    y, product, zeros = _of_segments(factors, at, x.shape[-1], save=True)
    how = dict(axis=at.ndim - 1, sorted=False, data=[factors], elements=[product, zeros])
    dsrc = gradient("segment_prod_backward", at, wide(x) * total, **how)
    return (total * y).astype(x.dtype), dsrc.astype(src.dtype)


def _of_segments(factors, at, size, save=False):
    out = [factors.dtype, factors.dtype, jnp.uint8][: 3 if save else 1]
    how = dict(axis=at.ndim - 1, num_segments=size, empty_bits=to_bits(1, factors.dtype))
    return reduce("segment_prod", factors, at, out, **how)


def _tangent_native(x, index, src, t, of_src, *, axis, wraps):
    """Of src the sum of its tangents, each times the other factors."""
    product, others = _backward_native(wide(x), index, wide(src), jnp.ones_like(wide(x)), axis=axis, wraps=wraps)
    sums = added(inside(index, x.shape[axis], wraps), others * wide(of_src), x.shape[axis], axis)
    return ((wide(t) * product + sums).astype(t.dtype),)


def _like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


BODIES = dict(
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
)
