"""The product of each segment's rows."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.body import Body
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from ._arguments import arguments, backward_arguments, bits_of, document
from ._family import FAMILY, cases, declare_with_index
from ._kernels import (
    gradient,
    reduce,
)
from ._partition import prod_by_rows
from ._references import product_of, reduce_by


@api
@document(
    "y[s] = product of data[n] over the rows n with segment_ids[n] == s",
    empty="1",
    more="""\
        return_residuals: also return, for each element, the product of the factors that are not zero (in float32, or float64
            for float64) and the number of zeros, 0, 1 or 2 for more (uint8). Floats only.
""",
    precision="float16 and bfloat16 accumulate in float32; integers wrap. The gradient is exact where factors are zero.",
)
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    return_residuals: bool = False,
    empty_value: float = 1,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Product of the rows of each segment."""
    op = "segment_prod"
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.NUMBERS)
    save = checks.flag(op, "return_residuals", return_residuals)
    if save:
        checks.dtype(op, "data (with return_residuals)", data, checks.FLOATS)
    bits = bits_of(op, empty_value, data.dtype)
    return _prod(data, ids, *index, **params, empty_bits=bits, save=save, implementation=implementation)


@api
def segment_prod_backward(
    data: ArrayLike,
    segment_ids: ArrayLike,
    product: ArrayLike,
    zeros: ArrayLike,
    dy: ArrayLike,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `segment_prod`: dx[n] = dy[s] * product of data[m] over the rows m of s but n, s = segment_ids[n].

    It is formed as product / data[n], or product where data[n] is the only zero, or 0 where another factor is zero.

    Args:
        data: floats [N, ...] (or with batches [*batch, N, ...]).
        segment_ids: integers [N] (or [*batch, N]).
        product, zeros: [num_segments, ...], as `segment_prod` returns them. For further derivatives they are taken to be
            functions of data.
        dy: floats [num_segments, ...], the cotangent of the result.
        indices_are_sorted: as in `segment_prod`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of data, [N, ...].
    """
    op = "segment_prod_backward"
    ids, index, params = backward_arguments(
        op, segment_ids, dy, indices_are_sorted, same=[("product", product), ("zeros", zeros)]
    )
    checks.same_dtype(op, "data", data, "dy", dy)
    checks.shape(op, "data", data, (*ids.shape, *dy.shape[ids.ndim :]), "one row an id")
    checks.dtype(op, "product", product, (wide_dtype(dy.dtype).name,))
    checks.dtype(op, "zeros", zeros, ("uint8",))
    return _prod.vjp(data, ids, product, zeros, *index, dy, **params, implementation=implementation)


def _prod_native(data, ids, *, save, **params):
    out = [data.dtype, wide_dtype(data.dtype), jnp.uint8][: 3 if save else 1]
    return reduce("segment_prod", data, ids, out, **params)


def _prod_backward_native(data, ids, product, zeros, dy, **params):
    return (gradient("segment_prod_backward", ids, dy, data=[data], elements=[product, zeros], **params),)


def _prod_tangent_native(data, ids, product, zeros, t, **params):
    """The sum over the rows of t times the product of the other factors."""
    (others,) = _prod_backward_native(wide(data), ids, product, zeros, jnp.ones_like(product), **params)
    (y,) = reduce("segment_sum", others * wide(t), ids, [others.dtype], **{**params, "empty_bits": 0})
    return (y.astype(t.dtype),)


def _prod_reference(data, ids, **params):
    multiply = lambda x, i: jax.ops.segment_prod(x, i, params["num_segments"])
    is_zero = data == 0
    factors = jnp.where(is_zero, 1, wide(data))
    one = bits_of("segment_prod", 1, factors.dtype)
    product = reduce_by(multiply, 1, factors, ids, **{**params, "empty_bits": one})
    add = lambda x, i: jax.ops.segment_sum(x, i, params["num_segments"])
    zeros = reduce_by(add, 0, is_zero.astype(jnp.int32), ids, **{**params, "empty_bits": 0})
    y = reduce_by(multiply, 1, data, ids, **params)
    return y, product, jnp.minimum(zeros, 2).astype(jnp.uint8)


def _prod_tangent_reference(data, ids, product, zeros, t, **params):
    return (jax.jvp(lambda x: product_of(x, ids, **params), (data,), (t,))[1],)


def _prod_backward_reference(data, ids, product, zeros, dy, **params):
    return jax.vjp(lambda x: product_of(x, ids, **params), data)[1](dy)


def draw_factors(rng, *shape):
    """Factors near 1, some of them zero."""
    return (1 + 0.3 * rng.standard_normal(shape)) * (rng.random(shape) > 0.1)


_prod = declare_with_index(
    "segment_prod",
    **FAMILY,
    public=segment_prod,
    dtypes=checks.NUMBERS,
    cases=cases(draw_data=draw_factors),
    results=("y", "product", "zeros"),
    residuals=("data", "segment_ids", "product", "zeros"),
    cut=prod_by_rows,
    forward=Body(_prod_reference, _prod_native),
    tangent=Body(_prod_tangent_reference, _prod_tangent_native),
    backward=Body(_prod_backward_reference, _prod_backward_native),
    kernels={
        "forward": ("segment_prod",),
        "tangent": ("segment_sum", "segment_prod_backward"),
        "backward": ("segment_prod_backward",),
    },
)
