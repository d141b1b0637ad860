"""The product. Its derivatives are exact where factors are zero."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Axes, Implementation
from .._core.wide import wide, wide_dtype
from ._arguments import (
    ROUNDING,
    array,
    axes_of,
    cast,
    document,
    masked,
    per_slice,
    promoted,
    with_initial,
    with_residuals,
)
from ._family import AXES, cases
from ._kernels import broadcast, reduce
from ._partition import prod_by_slices


@api
@document(
    "y = product of the elements x_i of a slice; dx_i = dy times the product of the others",
    "jax.numpy.prod; torch.prod",
    "dtype", "initial", "where", "return_residuals",
    dtypes="any number type or bool",
    residuals="the product of the elements that are not zero, and the number of zeros, uint8, at most 2,",
    returns="Array without the axes: of x's dtype for floats and complex numbers; of int64 or uint64 for integers and bool, "
    "where JAX has 64 bits, else of int32 or uint32.",
    precision=f"{ROUNDING} Integers wrap. The gradient divides the product of the elements that are not zero by an element: "
    "where that over- or underflows, so may the gradient.",
)  # fmt: skip
def prod(
    x: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Product of the elements along axes."""
    op = "prod"
    x = array(op, "x", x, checks.EVERY)
    out = promoted(x.dtype) if dtype is None else None
    x = cast(op, x, dtype)
    save = checks.flag(op, "return_residuals", return_residuals)
    if save:
        checks.dtype(op, "x", x, checks.INEXACT)
    if save and initial is not None:
        raise ValueError(f"{op}: return_residuals must be False where initial is given, which is no element of x")
    axes = axes_of(op, "x", x, axis)
    x = masked(op, "x", x, where, 1)
    y = _prod(x, axes=axes, dtype=jnp.dtype(out or x.dtype), save=save, implementation=implementation)
    return with_residuals(op, y if save else with_initial(op, y, initial, jnp.multiply), axes, keepdims, save)


@api
def prod_backward(
    x: ArrayLike,
    product: ArrayLike,
    zeros: ArrayLike,
    dy: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `prod`: dx_i = dy times the product of the others.

    Args:
        x: floats or complex numbers, what was reduced.
        product, zeros: as `prod` returns them with return_residuals.
        dy: the cotangent of the result, of its shape and of x's dtype.
        axis, keepdims: as in `prod`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "prod_backward"
    x = array(op, "x", x, checks.INEXACT)
    axes = axes_of(op, "x", x, axis)
    arrays = {"product": product, "zeros": zeros, "dy": dy}
    dtypes = {"product": wide_dtype(x.dtype).name, "zeros": "uint8"}
    product, zeros, dy = per_slice(op, "x", x, axes, keepdims, arrays, **dtypes)
    return _prod.vjp(x, product, zeros, dy, axes=axes, dtype=x.dtype, implementation=implementation)


def _factors(x):
    """What stands for the factors: for a zero, 1 with its sign."""
    one = jnp.ones((), x.dtype)
    return jnp.where(x == 0, one if jnp.iscomplexobj(x) else jnp.copysign(one, x), x)


def _reference(x, *, axes, dtype):
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return (x.prod(axes, dtype=dtype),)
    x = wide(x)
    zeros = jnp.minimum((x == 0).sum(axes, dtype=jnp.int32), 2).astype(jnp.uint8)
    return x.prod(axes).astype(dtype), _factors(x).prod(axes), zeros


def _native(x, *, axes, dtype, save):
    dtypes = [dtype, wide_dtype(x.dtype), jnp.uint8]
    return reduce("reduce_prod", x, axes, dtypes[: None if save else 1])


def _product_of(x, axes):
    """The wide product of each slice, whose derivatives by JAX are exact where factors are zero."""
    return wide(x).prod(axes)


def _tangent_reference(x, product, zeros, t, *, axes, dtype):
    return (jax.jvp(lambda x: _product_of(x, axes), (x,), (t,))[1].astype(t.dtype),)


def _tangent_native(x, product, zeros, t, *, axes, dtype):
    one = jnp.ones(product.shape, product.dtype)
    by_element = _broadcast(wide(x), product, zeros, one, axes)
    (y,) = reduce("reduce_sum", by_element * wide(t), axes, [one.dtype], divisor=1.0)
    return (y.astype(t.dtype),)


def _backward_reference(x, product, zeros, dy, *, axes, dtype):
    return (jax.vjp(lambda x: _product_of(x, axes), x)[1](wide(dy))[0],)


def _broadcast(x, product, zeros, dy, axes):
    return broadcast("reduce_prod_backward", x.shape, axes, [x], [product, zeros, dy])


def _backward_native(x, product, zeros, dy, *, axes, dtype):
    return (_broadcast(x, product, zeros, dy, axes),)


def _near_one(rng, *shape):
    """Factors near 1 of both signs, a few of them zero."""
    x = rng.choice([-1.0, 1.0], shape) * (1 + 0.3 * rng.standard_normal(shape))
    return (x * (rng.random(shape) > 0.02),)


_prod = declare(
    "prod",
    **AXES,
    operands=("x",),
    differentiable=("x",),
    public=prod,
    dtypes=checks.EVERY,
    cases=cases(_near_one),
    results=("y", "product", "zeros"),
    residuals=("x", "product", "zeros"),
    cut=prod_by_slices,
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    kernels={
        "forward": ("reduce_prod",),
        "tangent": ("reduce_prod_backward", "reduce_sum"),
        "backward": ("reduce_prod_backward",),
    },
)
