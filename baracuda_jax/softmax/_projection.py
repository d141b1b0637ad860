"""What projections on the simplex share: arguments, declarations, and both derivatives, which are one function of y."""

import functools

import jax.numpy as jnp
from jax import lax

from .._core import checks
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.partition import Partition
from .._core.regime import along_axes
from .._core.sku import OpCategory
from .._core.wide import wide
from ._rows import Rows
from ._where import among


def projected(op, bound, x, axis, where, implementation):
    """The result of the op, which is `bound`, of arguments that are checked here."""
    x = checks.floats(op, "x", x)
    axis = checks.axis(op, "x", x, axis)
    return among(op, bound, x, where, nothing=0, axis=axis, implementation=implementation)


def gradient(op, bound, y, dy, axis, implementation):
    """The cotangent of x."""
    y, dy = checks.floats(op, "y", y), checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "y", y)
    checks.shape(op, "dy", dy, y.shape, "that of y")
    return bound.vjp(y, dy, axis=checks.axis(op, "y", y, axis), implementation=implementation)


def differences(x, axis, scale):
    """The largest element of each slice; and z, what the others differ from it, times the scale, in the wide dtype and in
    descending order too. It is at least -1, since elements below are never in the support."""
    x = wide(x)
    largest = x.max(axis, keepdims=True, initial=-jnp.inf)
    z = jnp.maximum((x - largest) * scale, -1)
    return largest, z, jnp.sort(z, axis, descending=True)


def prefixes(ordered, axis):
    """The ranks 1, 2, ... of sorted elements, and the elements above -1: to sums of the first ones, those that are never in
    the support add nothing, exactly."""
    return 1 + lax.broadcasted_iota(ordered.dtype, ordered.shape, axis), 1 + ordered


def where_finite(largest, y, dtype):
    """Slices whose largest element is not finite are NaN."""
    return jnp.where(jnp.isfinite(largest), y, jnp.nan).astype(dtype)


def _labels(names, types, params):
    """Two labels of the axis: else the compiler would cut the results too, and gather them again for the derivatives."""

    def of(name, rank):
        axis, along = params["axis"], "n" if name == "x" else "m"
        return (*(f"batch{i}" for i in range(axis)), along, *(f"feature{i}" for i in range(rank - axis - 1)))

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _call(target, *operands, axis):
    rows, dims = Rows(operands[0], (axis,)), ", ".join(["...n"] * len(operands))
    like = rows.like(operands[-1].dtype)
    # Steps to the threshold are many, and a block has all of a row.
    workspace = rows.workspace(like.dtype) if target.endswith("_backward") else None
    (y,) = kernel(target, f"{dims} -> ...n", *map(rows.of, operands), out=[like], workspace=workspace)
    return (rows.back(y),)


def _derivative(weight):
    """w (t - the mean of t by weights w), whose transpose is itself."""

    def reference(y, t, *, axis):
        w = weight(wide(y))
        weighted = lambda t: jnp.where(w == 0, 0, w * t)
        total = w.sum(axis, keepdims=True)
        mean = weighted(wide(t)).sum(axis, keepdims=True) / jnp.where(total == 0, 1, total)
        return (weighted(wide(t) - mean).astype(t.dtype),)

    return reference


def _draw(*shape, scale=1.0):
    return lambda rng: (scale * rng.standard_normal(shape),)


CASES = (
    Case("rows", _draw(5, 41)),
    Case("columns", _draw(17, 6), {"axis": 0}),
    Case("middle", _draw(3, 70, 4, scale=0.1), {"axis": 1}),
    Case("vector", _draw(150, scale=3.0)),
)


def declared(name, public, reference, weight):
    """Declares a projection: `reference(x, axis)` is its definition, `weight(y)` that of an element in the gradient."""
    derivative = Body(_derivative(weight), functools.partial(_call, f"{name}_backward"))
    return declare(
        name,
        family="softmax",
        category=OpCategory.SOFTMAX,
        public=public,
        cases=CASES,
        dtypes=checks.FLOATS,
        operands=("x",),
        differentiable=("x",),
        residuals=("y",),
        regime=along_axes,
        batched=lambda params: {**params, "axis": params["axis"] + 1},
        cut=Partition(_labels, whole=frozenset("nm"), plain=True),
        forward=Body(lambda x, *, axis: (reference(x, axis),), lambda x, *, axis, save: _call(name, x, axis=axis)),
        tangent=derivative,
        backward=derivative,
        kernels={"forward": (name,), "tangent": (f"{name}_backward",), "backward": (f"{name}_backward",)},
    )


def support(y):
    """1 above 0; NaN stays. It is constant between the kinks."""
    return lax.stop_gradient(jnp.where(y > 0, 1, y))


def root(y):
    """The square root, whose derivative at 0 is taken to be 0."""
    return jnp.where(y > 0, jnp.sqrt(jnp.where(y > 0, y, 1)), lax.stop_gradient(y))
