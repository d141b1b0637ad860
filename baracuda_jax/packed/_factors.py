"""Products with packed weights that have derivatives in factors too: on request, since these take all weights as floats, in
plain JAX."""

import functools

import jax
from jax.custom_derivatives import SymbolicZero

from .._core.wide import wide, wide_dtype
from ._formats import unpacked
from ._multiply import product_of, rounded_to_q8


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def product_with_factors(product, statics, x, data, scale, zero):
    """product(x, data, scale, zero), by the op; `statics` are the format and the numerics."""
    return product(x, data, scale, zero)


@functools.partial(product_with_factors.defjvp, symbolic_zeros=True)
def _derivative(product, statics, primals, tangents):
    (x, data, scale, zero), (dx, _, *of_factors) = primals, tangents
    y, dy = product(*primals), None
    if not isinstance(dx, SymbolicZero):
        y, dy = jax.jvp(lambda x: product(x, data, scale, zero), (x,), (dx,))
    moving = [i for i, t in enumerate(of_factors) if not isinstance(t, SymbolicZero)]
    if moving:
        format, numerics = statics
        weights = lambda *some: unpacked(
            data, *_replaced((scale, zero), moving, some), format=format, dtype=wide_dtype(x.dtype)
        )
        known = [(scale, zero)[i] for i in moving]
        _, dw = jax.jvp(weights, known, [of_factors[i] for i in moving])
        more = product_of(wide(rounded_to_q8(x) if numerics == "q8" else x), dw, 1).astype(x.dtype)
        dy = more if dy is None else dy + more
    return y, jax.numpy.zeros_like(y) if dy is None else dy


def _replaced(values, positions, some):
    found = dict(zip(positions, some, strict=True))
    return [found.get(i, value) for i, value in enumerate(values)]
