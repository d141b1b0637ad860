"""The logarithm of the sum of exponentials."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Axes, Implementation
from .._core.wide import wide, wide_dtype, with_rest
from ._arguments import ROUNDING, array, axes_of, document, masked, per_slice, with_residuals
from ._family import AXES, cases, derivatives, slices
from ._kernels import broadcast, reduce
from ._partition import log_sum_exp_by_slices
from ._references import log_sum_exp_reference


@api
@document(
    "y = log(sum of e^(x_i) over the elements of a slice); dx_i = dy e^(x_i - y)",
    "jax.scipy.special.logsumexp; torch.logsumexp",
    "where",
    "return_residuals",
    dtypes="a float type; integers and bool are cast to one",
    residuals="what rounding took from y, in float32 for float16 and bfloat16,",
    precision=f"{ROUNDING} Sums are kept with their maximum: nothing overflows. -inf adds nothing and has gradient 0, "
    "+inf gives +inf, NaN gives NaN, and a slice without elements -inf. The gradient's weights are of y before it is "
    "rounded: their sum is 1, however large the elements are.",
)
def logsumexp(
    x: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Logarithm of the sum of exponentials of the elements along axes."""
    op = "logsumexp"
    x = array(op, "x", x, checks.FLOATS, to_float=True)
    save = checks.flag(op, "return_residuals", return_residuals)
    axes = axes_of(op, "x", x, axis)
    x = masked(op, "x", x, where, -jnp.inf)
    return with_residuals(
        op, _log_sum_exp(x, axes=axes, save=save, implementation=implementation), axes, keepdims, save
    )


@api
def logsumexp_backward(
    x: ArrayLike,
    y: ArrayLike,
    rest: ArrayLike,
    dy: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `logsumexp`: dx_i = dy e^(x_i - y), y being the sum of `y` and `rest`.

    Args:
        x: floats, the exponents.
        y, rest: as `logsumexp` returns them with return_residuals: the result, and what rounding took from it, which is
            float32 for float16 and bfloat16.
        dy: the cotangent of y, of its shape and of x's dtype.
        axis, keepdims: as in `logsumexp`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    op = "logsumexp_backward"
    x = array(op, "x", x, checks.FLOATS)
    axes = axes_of(op, "x", x, axis)
    arrays = {"y": y, "rest": rest, "dy": dy}
    y, rest, dy = per_slice(op, "x", x, axes, keepdims, arrays, rest=wide_dtype(x.dtype))
    return _log_sum_exp.vjp(x, y, rest, dy, axes=axes, implementation=implementation)


def _reference(x, *, axes):
    return with_rest(*log_sum_exp_reference(wide(x), axes), x.dtype)


def _native(x, *, axes, save):
    return reduce("reduce_logsumexp", x, axes, [x.dtype, wide_dtype(x.dtype)][: 2 if save else 1])


def _slope(x, y, rest, *, axes):
    """e^(x - y), 0 for -inf, 1 for equal infinities, which have no difference."""
    y = slices(y, axes)
    is_nothing, is_same = x == -jnp.inf, jnp.isinf(x) & (x == y)
    return jnp.where(is_nothing, 0, jnp.exp(jnp.where(is_nothing | is_same, 0, x - y) - slices(rest, axes)))


def _backward(x, y, rest, dy, *, axes):
    return broadcast("reduce_logsumexp_backward", x.shape, axes, [x], [y, rest, dy])


_log_sum_exp = declare(
    "logsumexp",
    **AXES,
    operands=("x",),
    differentiable=("x",),
    public=logsumexp,
    dtypes=checks.FLOATS,
    cases=cases(),
    results=("y", "rest"),
    residuals=("x", "y", "rest"),
    cut=log_sum_exp_by_slices,
    forward=Body(_reference, _native),
    **derivatives(_slope, _backward),
    kernels={
        "forward": ("reduce_logsumexp",),
        "tangent": ("reduce_logsumexp_backward", "reduce_sum"),
        "backward": ("reduce_logsumexp_backward",),
    },
)
