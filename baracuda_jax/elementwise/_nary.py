"""Ops of two arrays and more, which broadcast: their declaration, and what a line of a table makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, promote
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Binary, BinaryBackward, Decorator, Implementation
from . import _pattern
from ._arguments import BOOL, PRECISION, broadcasting, cotangent_of_result, derivable, document, listed, widen
from ._made import MADE, Made, named

CATEGORIES = {2: OpCategory.BINARY_ELEMENTWISE, 3: OpCategory.TERNARY_ELEMENTWISE}
NAMES = ("x1", "x2")
RETURNS = "An array of the shape that the arguments broadcast to, and of the dtype that JAX promotes theirs to."


def binary(
    name, summary, y, gradient, value, source, *, slopes=None, dtypes=checks.FLOATS, at=(-3, 3), precision=None, widens=True
) -> tuple[Binary, BinaryBackward]:  # fmt: skip
    """The op and its backward function. `y` and `gradient` are formulas for readers. `value(x1, x2)` and `slopes(x1, x2,
    d)`, what d becomes of x1 and of x2, are what they say in plain JAX; by default slopes are JAX's. Cases are drawn from
    the range `at`, or from one for each."""

    def fun(x1: ArrayLike, x2: ArrayLike, *, implementation: Implementation = None) -> Array:
        return op(*operands(name, NAMES, (x1, x2), dtypes)[0], implementation=implementation)

    def backward(
        x1: ArrayLike, x2: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
    ) -> tuple[Array, ...]:
        return vjp(op, NAMES, (x1, x2), dy, implementation)

    fun = _document(named(fun, name, summary), f"y = {y}\n{gradient}", source, dtypes, precision)
    ranges = at if isinstance(at[0], tuple) else (at, at)
    MADE[name] = Made(name, 2, tuple(dtypes), value, ranges, source, True)
    op = declare_nary(
        fun, NAMES, value, slopes or _slopes_of(value), broadcast_cases(*ranges), dtypes=dtypes, widens=widens
    )
    return fun, backward_of(fun, "x1, x2")(named(backward, f"{name}_backward", None))


def binary_value(name, summary, y, value, source, *, dtypes, why, result=None, precision="exact.") -> Binary:
    """An op without a derivative, for the reason `why`; its results are of the dtype `result`, or that of its arguments.
    One of bool takes other dtypes too: what is not 0 is true."""

    def fun(x1: ArrayLike, x2: ArrayLike, *, implementation: Implementation = None) -> Array:
        if dtypes == BOOL:
            x1, x2 = (checks.array(name, *pair).astype(bool) for pair in (("x1", x1), ("x2", x2)))
        return op(*operands(name, NAMES, (x1, x2), dtypes)[0], implementation=implementation)

    returns = f"An array of {result} of the shape that the arguments broadcast to." if result else RETURNS
    fun = _document(named(fun, name, summary), f"y = {y}", source, dtypes, precision, returns)
    at = (-3, 3)
    MADE[name] = Made(name, 2, tuple(dtypes), value, (at, at), source, False)
    op = declare_nary(fun, NAMES, value, None, broadcast_cases(at, at), dtypes=dtypes, result=result, why=why)
    return fun


def _document(fun, formula, source, dtypes, precision, returns=RETURNS):
    args = f"x1, x2: arrays or numbers, which broadcast; JAX promotes their dtypes to one of: {listed(dtypes)}."
    return document(formula, args, source, returns=returns, precision=precision or PRECISION)(fun)


def _slopes_of(value):
    """JAX's own derivatives, of arrays of one shape."""
    return lambda *args: jax.vjp(value, *args[:-1])[1](args[-1])


def operands(op, names, values, dtypes):
    """The arguments, of one dtype and rank, and their shapes."""
    arrays = [checks.array(op, name, value) for name, value in zip(names, values, strict=True)]
    plain = [v if isinstance(v, bool | int | float | complex) else x for v, x in zip(values, arrays, strict=True)]
    dtype, is_weak = promote.common(plain)
    for name, x in zip(names, arrays, strict=True):
        checks.dtype(op, name, x if x.dtype == dtype else jax.ShapeDtypeStruct(x.shape, dtype), dtypes)
    return broadcasting(op, names, [promote.cast(x, dtype, is_weak) for x in arrays])


def vjp(op, names, values, dy, implementation, name=None, **params):
    """The cotangents of an op's arguments, each of its shape. `name` is the backward function's."""
    name = name or f"{op.name}_backward"
    arrays, shapes = operands(name, names, values, derivable(op.dtypes))
    dy = cotangent_of_result(name, dy, arrays, arrays[0], names[0])
    cotangents = op.vjp(*arrays, dy, implementation=implementation, **params)
    return tuple(ct.reshape(shape) for ct, shape in zip(cotangents, shapes, strict=True))


def declare_nary(
    public, names, value, slopes, cases, *, dtypes=checks.FLOATS, result=None, why=None, widens=True, name=None
):
    """`value(*operands, **params)` and `slopes(*operands, d, **params)`, what d becomes of each operand, compute in the wide
    type on arrays that broadcast, the value in their own where not `widens`. An op without slopes has no derivative, and
    `why` says why. `name` is the op's where the public function is several ops."""
    name, count = name or public.__name__, len(names)

    def reference(*args, **params):
        values = widen(*args) if widens else args
        return (value(*values, **params).astype(result or args[0].dtype),)

    def native(*args, save, **params):
        return _pattern.call(name, args, [jnp.dtype(result or args[0].dtype)], **params)

    def tangent_reference(*args, **params):
        full = jnp.broadcast_arrays(*widen(*args))
        primals, tangents = full[:count], full[count:]
        parts = [slopes(*primals, t, **params)[i] for i, t in enumerate(tangents)]
        return (sum(parts[1:], parts[0]).astype(args[0].dtype),)

    def tangent_native(*args, **params):
        return _pattern.call(f"{name}_tangent", args, [args[0].dtype], **params)

    def backward_reference(*args, **params):
        full = slopes(*jnp.broadcast_arrays(*widen(*args)), **params)
        return tuple(_pattern.gathered(ct, x).astype(x.dtype) for ct, x in zip(full, args[:-1], strict=True))

    def backward_native(*args, **params):
        full = _pattern.call(f"{name}_backward", args, [args[0].dtype] * count, **params)
        return tuple(_pattern.gathered(ct, x) for ct, x in zip(full, args[:-1], strict=True))

    more = dict(
        differentiable=names,
        residuals=names,
        tangent=Body(tangent_reference, tangent_native),
        backward=Body(backward_reference, backward_native),
        kernels={"forward": (name,), "tangent": (f"{name}_tangent",), "backward": (f"{name}_backward",)},
    )
    return declare(
        name,
        family="elementwise",
        category=CATEGORIES[count],
        public=public,
        dtypes=dtypes,
        cases=cases,
        operands=names,
        cut=_pattern.BY_DIMENSION,
        forward=Body(reference, native),
        batched=as_they_are,
        kin="nary",
        weak=True,
        default="xla",
        **(more if slopes else dict(constant=dict.fromkeys(names, why), kernels={"forward": (name,)})),
    )


def broadcast_cases(*ranges, **kwargs):
    """Cases of arrays alike and of such that broadcast, drawn from a range each, no two numbers alike."""
    layouts = {
        "alike": ((4, 6), (4, 6), (4, 6)),
        "rows": ((4, 3, 5), (5,), (3, 1)),
        "columns": ((4, 1), (1, 6), (4, 6)),
        "a number": ((7,), (), (7,)),
    }

    def draw(shapes):
        def of(rng):
            total = sum(int(np.prod(shape)) for shape in shapes)
            spread = rng.permutation(total)  # parts of the ranges, so that no two arrays have a value in common
            arrays = []
            for shape, (low, high) in zip(shapes, ranges, strict=True):
                count = int(np.prod(shape))
                part, spread = spread[:count], spread[count:]
                arrays.append((low + (high - low) * (part + 0.5) / total).reshape(shape))
            return tuple(arrays)

        return of

    return tuple(Case(name, draw(shapes[: len(ranges)]), kwargs) for name, shapes in layouts.items())


_BACKWARD = """The gradient of `{op}`: see its formula.

    Args:
        {arguments}: the arguments of `{op}`.
        dy: the cotangent of its result, of the shape that they broadcast to.
        implementation: as there.

    Returns:
        The cotangents of {of}, each of its argument's shape.
    """


def backward_of(forward, arguments, of=None) -> Decorator:
    """Documents the backward function of `forward`, of arguments of which those that `of` names, or all, have cotangents."""

    def decorate(fun):
        fun.__doc__ = _BACKWARD.format(op=forward.__name__, arguments=arguments, of=of or arguments)
        return fun

    return decorate
