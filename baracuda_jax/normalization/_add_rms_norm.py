"""A sum, and it normalized by the root of its mean square. Kernels write both in one pass."""

from collections.abc import Sequence

import jax
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import full
from .._core.kernel import kernel
from .._core.op import Body, as_they_are, declare
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from . import _rows
from ._arguments import as_given, cotangent, slices
from ._rms_norm import rms_params


@api
def add_rms_norm(
    x: ArrayLike,
    residual: ArrayLike,
    weight: ArrayLike | None = None,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-6,
    offset: float = 0.0,
    round_before_weight: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """A residual connection and RMS normalization: the sum of two arrays, and it normalized.

    Formula:
        total = x + residual, y = rms_norm(total, weight). dx and dresidual are the same: dtotal and what rms_norm gives for
        dy, added.

    Args:
        x: floats, of rank 1 or more: what a layer gives.
        residual: array of x's shape and dtype, to which that is added.
        weight: array of the sizes of the normalized axes, in x's order; None for a factor of 1. It has x's dtype, or is
            float32 with half precisions.
        axis: static integer or a tuple of them, the axes that a slice consists of.
        eps, offset, round_before_weight: as in `rms_norm`.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        (y, total), both of x's shape and dtype; total is the residual of the next layer.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: total is rounded before it is normalized: y has the bits of `rms_norm` of it. Kernels add in a fixed order,
        without atomics: results are the same bits every time.

    Source: vLLM's fused_add_rms_norm, which writes both in place.
    """
    op = "add_rms_norm"
    x, residual = checks.floats(op, "x", x), checks.array(op, "residual", residual)
    checks.same_dtype(op, "residual", residual, "x", x)
    checks.shape(op, "residual", residual, x.shape, "that of x")
    params = rms_params(op, weight, eps, offset, round_before_weight)
    of_slices, weight, back = slices(op, x, axis, weight=(weight, 1))
    residual, _ = slices(op, residual, axis)
    y, total, _ = _add_rms_norm(of_slices, residual, weight, **params, save=True, implementation=implementation)
    return back(y), back(total)


@api
def add_rms_norm_backward(
    total: ArrayLike,
    weight: ArrayLike | None,
    dy: ArrayLike,
    dtotal: ArrayLike | None = None,
    axis: int | Sequence[int] = -1,
    *,
    eps: float = 1e-6,
    offset: float = 0.0,
    round_before_weight: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradient of `add_rms_norm`: see its formula.

    Args:
        total: floats, the second result of `add_rms_norm`.
        weight, axis, eps, offset, round_before_weight, implementation: as in `add_rms_norm`.
        dy: the cotangent of the first result, of its shape and dtype.
        dtotal: the cotangent of total, of its shape and dtype; None for 0.

    Returns:
        The cotangent of x, which is that of residual too, and the cotangent of weight; the latter has the shape and the
        dtype of weight, or those of one of x's dtype.
    """
    op = "add_rms_norm_backward"
    dy = cotangent(op, total, dy, "total")
    params = rms_params(op, weight, eps, offset, round_before_weight)
    rows, factors, back = slices(op, total, axis, "total", weight=(weight, 1))
    dy, _ = slices(op, dy, axis, "dy")
    if dtotal is not None:
        dtotal, _ = slices(op, cotangent(op, total, dtotal, "total", "dtotal"), axis, "dtotal")
    (r,) = _rows.statistics(rows, centered=False, eps=params["eps"])
    dx, _, dweight = _add_rms_norm.vjp(rows, factors, r, dy, dtotal, **params, implementation=implementation)
    return back(dx), as_given(dweight, weight)


# ---------------------------------------------------------------------------------------------------------------------
# References


def _reference(x, residual, weight, *, over=(), **params):
    total = _rows.rounded(wide(x) + wide(residual), x.dtype).astype(x.dtype)
    y, r = _rows.forward(False, total, weight, **params, over=over)
    return y, total, r


def _tangent(total, weight, r, dx, dresidual, dweight, *, over=(), **params):
    dtotal = (wide(dx) + wide(dresidual)).astype(dx.dtype)
    return *_rows.tangent(False, total, weight, r, dtotal, dweight, **params, over=over), dtotal


def _backward(total, weight, r, dy, dtotal, *, over=(), **params):
    """`dy` or `dtotal` may be None."""
    if dy is None:
        return dtotal, dtotal, full(weight.shape, 0, weight.dtype)
    dx, dweight = _rows.backward(False, total, weight, r, dy, dtotal, **params, over=over)
    return dx, dx, dweight


# ---------------------------------------------------------------------------------------------------------------------
# Kernels


def _native(x, residual, weight, *, save, **params):
    if 0 in x.shape:
        return _reference(x, residual, weight, **params)[: None if save else 1]
    of_rows = jax.ShapeDtypeStruct(x.shape[:-1], wide_dtype(x.dtype))
    out = [jax.ShapeDtypeStruct(x.shape, x.dtype)] * 2 + [of_rows]
    y, *more = kernel("add_rms_norm", "...n, ...n, ...n -> ...n, ...n, ...", x, residual, weight, out=out, **params)
    return [y, *more] if save else [y]


def _backward_native(total, weight, r, dy, dtotal, **params):
    if dy is None:
        return _backward(total, weight, r, dy, dtotal, **params)
    target = "rms_norm_backward" if dtotal is None else "add_rms_norm_backward"
    dx, dweight = _rows.backward_native(target, False, total, weight, r, dy, dtotal, **params)
    return dx, dx, dweight


def _of_shards(fun):
    """As that of `rms_norm`; of some outputs."""
    of_all = _rows.of_shards(fun)

    def tangent(run, over, *values, outputs, **params):
        found = dict(zip(("y", "total"), of_all(run, over, *values, **params), strict=True))
        return [found[name] for name in outputs]

    def backward(run, over, *values, outputs, **params):
        count = len(values) - len(outputs)
        given = dict(zip(outputs, values[count:], strict=True))
        return of_all(run, over, *values[:count], given.get("y"), given.get("total"), **params)

    return {_tangent: tangent, _backward: backward}.get(fun, of_all)


def _case(name, shape, weight, **kwargs):
    return Case(name, lambda rng: (*rng.standard_normal((2, *shape)), rng.standard_normal(weight)), kwargs)


_REFERENCES = {"forward": _reference, "tangent": _tangent, "backward": _backward}
_add_rms_norm = declare(
    "add_rms_norm",
    family="normalization",
    category=OpCategory.NORMALIZATION,
    public=add_rms_norm,
    cases=(
        _case("rows", (5, 41), (41,)),
        _case("columns", (17, 6), (17,), axis=0, offset=1.0, round_before_weight=True),
        _case("aligned rows", (3, 4, 64), (64,)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "residual", "weight"),
    results=("y", "total", "r"),
    outputs=("y", "total"),
    differentiable=("x", "residual", "weight"),
    residuals=("total", "weight", "r"),
    shared={"weight": 1},
    regime=along_axes,
    batched=as_they_are,
    forward=Body(_reference, _native),
    tangent=Body(_tangent),
    backward=Body(_backward, _backward_native),
    cut=_rows.cut({kind: _of_shards(fun) for kind, fun in _REFERENCES.items()}),
    kernels={"forward": ("add_rms_norm",), "backward": ("add_rms_norm_backward",)},
    sometimes=("rms_norm_backward",),
    library="xla",  # for tangents
)
