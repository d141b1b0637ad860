"""The linear recurrence, as a scan."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.op import Body, declare
from .._core.types import Implementation
from .._core.wide import ranged_dtype, wide, with_unrounded
from . import _kernels, _references
from ._arguments import direction, saving
from ._family import FAMILY, cases, spaced
from ._kernels import call
from ._partition import linear_by_totals
from ._references import adjoint, before

DTYPES = checks.INEXACT


@api
def linear_scan(
    a: ArrayLike,
    b: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    return_residuals: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, ...]:
    """The states of a linear recurrence along an axis.

    Formula:
        h_i = a_i h_{i-1} + b_i, with 0 before the first,
        db_i = s_i, da_i = h_{i-1} s_i with s_i = dy_i + a_{i+1} s_{i+1}, where dy is the cotangent of h.

    Args:
        a: array of a float or complex type, of rank 1 or more, the factors.
        b: array of a's shape and dtype, what is added. To broadcast one against the other is left to the caller.
        axis: static integer, the axis that is scanned; a negative one counts from the last.
        reverse: scan from the end of the axis: "before" is then what comes after.
        return_residuals: also return h in float32 for float16, whose range it may leave, and else h itself, which the
            backward function reads.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        h, an array of their shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 accumulate in float32 and are rounded once. Chunks of the axis are computed each by
    itself and then combined, by the products of their factors: where these overflow, so may what follows. Results are
    the same bits every time.

    Source: jax.lax.associative_scan, of pairs; recurrent and state space layers.
    """
    op = "linear_scan"
    (a, b), params = _arguments(op, {"a": a, "b": b}, axis, reverse)
    save = saving(op, "a", a, return_residuals)
    return _linear(a, b, **params, save=save, implementation=implementation)


@api
def linear_scan_backward(
    a: ArrayLike,
    h: ArrayLike,
    dy: ArrayLike,
    axis: int = 0,
    *,
    reverse: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `linear_scan`: db_i = s_i, da_i = h_{i-1} s_i with s_i = dy_i + a_{i+1} s_{i+1}.

    Args:
        a: array of a float or complex type, the factors.
        h: the second result of `linear_scan` with return_residuals: float32 for float16, else the result itself.
        dy: the cotangent of the result. All three have one shape, and except for h one dtype; of complex numbers none is
            conjugated.
        axis, reverse: as in `linear_scan`.
        implementation: "native", "xla" or None.

    Returns:
        The cotangents of a and b.
    """
    arrays = {"a": a, "h": h, "dy": dy}
    arrays, params = _arguments("linear_scan_backward", arrays, axis, reverse, h=ranged_dtype)
    return tuple(_linear.vjp(*arrays, **params, implementation=implementation))


def _arguments(op, arrays, axis, reverse, **dtypes):
    arrays = {name: checks.array(op, name, x) for name, x in arrays.items()}
    a = arrays["a"]
    checks.dtype(op, "a", a, DTYPES)
    for name, x in arrays.items():
        if name in dtypes:
            checks.saved_dtype(op, name, x, dtypes[name](a.dtype), "a", a)
        else:
            checks.same_dtype(op, name, x, "a", a)
        checks.shape(op, name, x, a.shape, "that of a")
    return list(arrays.values()), direction(op, "a", a, axis, reverse)


def _native(a, b, *, save, **params):
    kernel = lambda dtypes: call("linear_scan", a, b, dtypes=dtypes, **params)
    return with_unrounded(kernel, b.dtype, ranged_dtype(b.dtype), save)


def _reference(a, b, **params):
    h = _references.linear_scan(wide(a), wide(b), **params)
    return h.astype(b.dtype), h.astype(ranged_dtype(b.dtype))


def _tangent_by(linear_scan):
    """dh_i = a_i dh_{i-1} + (da_i h_{i-1} + db_i)"""

    def tangent(a, h, da, db, **params):
        added = wide(da) * before(wide(h), 0, **params) + wide(db)
        return (linear_scan(wide(a), added, **params).astype(db.dtype),)

    return tangent


def _backward_reference(a, h, dy, **params):
    s = adjoint(wide(a), wide(dy), **params)
    return (before(wide(h), 0, **params) * s).astype(a.dtype), s.astype(a.dtype)


def _backward_native(a, h, dy, **params):
    return call("linear_scan_backward", a, h, dy, dtypes=[a.dtype, a.dtype], **params)


def _pair(rng, *shape):
    """Factors of both signs that neither grow nor vanish at once, and what is added."""
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.05, shape), *spaced(rng, *shape)


_linear = declare(
    "linear_scan",
    **FAMILY,
    operands=("a", "b"),
    differentiable=("a", "b"),
    public=linear_scan,
    dtypes=DTYPES,
    cases=cases(_pair, exclusive=False),
    results=("h", "wide_h"),
    residuals=("a", "wide_h"),
    cut=linear_by_totals,
    forward=Body(_reference, _native),
    tangent=Body(_tangent_by(_references.linear_scan), _tangent_by(_kernels.linear_scan)),
    backward=Body(_backward_reference, _backward_native),
    kernels={"forward": ("linear_scan",), "tangent": ("linear_scan",), "backward": ("linear_scan_backward",)},
)
