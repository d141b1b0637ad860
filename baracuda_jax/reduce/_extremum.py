"""The largest and the smallest element. Those that tie share the gradient."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.bits import highest, lowest
from .._core.extreme import same
from .._core.op import Body, declare
from .._core.types import Axes, Implementation
from ._arguments import array, axes_of, document, elements_of, masked, per_slice, with_initial, with_residuals
from ._family import AXES, cases, derivatives, slices
from ._kernels import broadcast, reduce
from ._partition import extremum_by_slices

_DOC = dict(
    dtypes="a float or integer type, or bool",
    residuals="the number of elements that have the value, float32,",
    precision="exact. A NaN beats every number, and NaNs are the same; -0 is less than 0, but ties with it. Slices without "
    "elements are an error, unless initial is given.",
)
_ARGUMENTS = "initial", "where", "return_residuals"


@api
@document(
    "y = max of the elements x_i of a slice; dx_i = dy / (number of elements that have the value) where x_i = y, else 0",
    "jax.numpy.max; torch.amax",
    *_ARGUMENTS,
    **_DOC,
)
def max(
    x: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Largest of the elements along axes."""
    return _extremum("max", _max, x, axis, keepdims, initial, where, return_residuals, implementation)


@api
@document(
    "y = min of the elements x_i of a slice; dx_i = dy / (number of elements that have the value) where x_i = y, else 0",
    "jax.numpy.min; torch.amin",
    *_ARGUMENTS,
    **_DOC,
)
def min(
    x: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """Smallest of the elements along axes."""
    return _extremum("min", _min, x, axis, keepdims, initial, where, return_residuals, implementation)


def _extremum(op, which, x, axis, keepdims, initial, where, save, implementation):
    x = array(op, "x", x, checks.REAL)
    save = checks.flag(op, "return_residuals", save)
    if save:
        checks.dtype(op, "x", x, checks.FLOATS)
    axes = axes_of(op, "x", x, axis)
    if initial is None and where is not None:
        raise ValueError(f"{op}: initial must be given with where, for slices in which no element counts")
    if save and initial is not None:
        raise ValueError(f"{op}: return_residuals must be False where initial is given, which is no element of x")
    if initial is None and not elements_of(x, axes):
        raise ValueError(f"{op}: x must have at least one element along axis, or initial be given, got shape {x.shape}")
    x = masked(op, "x", x, where, weakest(x.dtype, which is _max))
    out = which(x, axes=axes, magnitude=False, save=save, implementation=implementation)
    if not save:
        out = with_initial(op, out, initial, jnp.maximum if which is _max else jnp.minimum)
    return with_residuals(op, out, axes, keepdims, save)


def largest_magnitude(x, axes, is_max, implementation):
    """The norms of order inf and -inf."""
    return (_max if is_max else _min)(x, axes=axes, magnitude=True, implementation=implementation)


def _extremum_backward(op, which, x, y, ties, dy, axis, keepdims, implementation):
    x = array(op, "x", x, checks.FLOATS)
    axes = axes_of(op, "x", x, axis)
    y, ties, dy = per_slice(op, "x", x, axes, keepdims, {"y": y, "ties": ties, "dy": dy}, ties="float32")
    return which.vjp(x, y, ties, dy, axes=axes, magnitude=False, implementation=implementation)


@api
def max_backward(
    x: ArrayLike,
    y: ArrayLike,
    ties: ArrayLike,
    dy: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `max`: dx_i = dy / ties where x_i = y, else 0.

    Args:
        x: floats, what was reduced.
        y, ties: as `max` returns them with return_residuals.
        dy: the cotangent of y, of its shape and dtype.
        axis, keepdims: as in `max`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x.
    """
    return _extremum_backward("max_backward", _max, x, y, ties, dy, axis, keepdims, implementation)


@api
def min_backward(
    x: ArrayLike,
    y: ArrayLike,
    ties: ArrayLike,
    dy: ArrayLike,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    implementation: Implementation = None,
) -> Array:
    """The gradient of `min`: see `max_backward`."""
    return _extremum_backward("min_backward", _min, x, y, ties, dy, axis, keepdims, implementation)


def weakest(dtype, is_max):
    """As a number."""
    return not is_max if dtype == jnp.bool_ else lowest(dtype) if is_max else highest(dtype)


def _slope(x, y, ties, *, axes, magnitude):
    value = jnp.abs(x) if magnitude else x
    share = slices(1 / jnp.maximum(ties, 1).astype(x.dtype), axes)
    return jnp.where(same(value, slices(y, axes)), share * jnp.sign(x) if magnitude else share, 0)


def _backward(x, y, ties, dy, *, axes, magnitude):
    return broadcast("reduce_extremum_backward", x.shape, axes, [x], [y, ties, dy], magnitude=magnitude)


def _declare(public, is_max):
    def reference(x, *, axes, magnitude):
        x = jnp.abs(x) if magnitude else x
        y = (jnp.max if is_max else jnp.min)(x, axes, initial=jnp.asarray(weakest(x.dtype, is_max), x.dtype))
        return y, same(x, slices(y, axes)).sum(axes, dtype=jnp.float32)

    def native(x, *, axes, magnitude, save):
        dtypes = [x.dtype, jnp.float32][: 2 if save else 1]
        return reduce("reduce_extremum", x, axes, dtypes, is_max=is_max, magnitude=magnitude)

    return declare(
        public.__name__,
        **AXES,
        operands=("x",),
        differentiable=("x",),
        public=public,
        dtypes=checks.REAL,
        cases=cases(),
        results=("y", "ties"),
        residuals=("x", "y", "ties"),
        cut=extremum_by_slices(is_max),
        forward=Body(reference, native),
        **derivatives(_slope, _backward),
        kernels={
            "forward": ("reduce_extremum",),
            "tangent": ("reduce_extremum_backward", "reduce_sum"),
            "backward": ("reduce_extremum_backward",),
        },
    )


_max = _declare(max, True)
_min = _declare(min, False)
