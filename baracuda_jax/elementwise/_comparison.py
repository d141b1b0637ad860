"""Comparisons, and what they choose."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _pattern
from ._arguments import aligned, broadcast, cotangent_of_result, document
from ._nary import RETURNS, backward_of, binary, binary_value, operands

COMPARISON = dict(why="truth values carry no derivative", result="bool",
    precision="exact. NaN equals nothing, and is not less or greater.")  # fmt: skip
EQUALITY = dict(dtypes=checks.EVERY, **COMPARISON)
ORDER = dict(dtypes=checks.REAL, **COMPARISON)

eq = binary_value("eq", "Whether x1 equals x2.", "x1 == x2", jnp.equal, "torch.eq; jax.numpy.equal", **EQUALITY)
ne = binary_value(
    "ne", "Whether x1 differs from x2.", "x1 != x2", jnp.not_equal, "torch.ne; jax.numpy.not_equal", **EQUALITY
)
gt = binary_value("gt", "Whether x1 is greater.", "x1 > x2", jnp.greater, "torch.gt; jax.numpy.greater", **ORDER)
ge = binary_value("ge", "Whether x1 is greater or equal.", "x1 >= x2", jnp.greater_equal,
    "torch.ge; jax.numpy.greater_equal", **ORDER)  # fmt: skip
lt = binary_value("lt", "Whether x1 is less.", "x1 < x2", jnp.less, "torch.lt; jax.numpy.less", **ORDER)
le = binary_value("le", "Whether x1 is less or equal.", "x1 <= x2", jnp.less_equal, "torch.le; jax.numpy.less_equal",
    **ORDER)  # fmt: skip


def _shares(better):
    """All of a cotangent to the better of two, half to each where they are equal."""
    share = lambda first, equal, d: jnp.where(first, d, jnp.where(equal, d / 2, 0))
    return lambda x, y, d: (share(better(x, y), x == y, d), share(better(y, x), x == y, d))


def _number(better):
    """To x where it is better or y is NaN, else to y."""
    first = lambda x, y: better(x, y) | jnp.isnan(y)
    return lambda x, y, d: (jnp.where(first(x, y), d, 0), jnp.where(first(x, y), 0, d))


maximum, maximum_backward = binary("maximum", "The greater of two.", "max(x1, x2), NaN where one is NaN",
    "dx1 = dy where x1 > x2, dy / 2 where x1 = x2, else 0; dx2 alike", jnp.maximum, "torch.maximum; jax.numpy.maximum",
    slopes=_shares(jnp.greater), dtypes=checks.NUMBERS, precision="exact.")  # fmt: skip
minimum, minimum_backward = binary("minimum", "The less of two.", "min(x1, x2), NaN where one is NaN",
    "dx1 = dy where x1 < x2, dy / 2 where x1 = x2, else 0; dx2 alike", jnp.minimum, "torch.minimum; jax.numpy.minimum",
    slopes=_shares(jnp.less), dtypes=checks.NUMBERS, precision="exact.")  # fmt: skip
fmax, fmax_backward = binary("fmax", "The greater of two, or the one that is a number.",
    "max(x1, x2), x1 where x2 is NaN, x2 where x1 is", "dx1 = dy where y is x1 and x1 != x2, else 0; dx2 = dy - dx1",
    jnp.fmax, "torch.fmax; jax.numpy.fmax",
    slopes=_number(jnp.greater), precision="exact.")  # fmt: skip
fmin, fmin_backward = binary("fmin", "The less of two, or the one that is a number.",
    "min(x1, x2), x1 where x2 is NaN, x2 where x1 is", "dx1 = dy where y is x1 and x1 != x2, else 0; dx2 = dy - dx1",
    jnp.fmin, "torch.fmin; jax.numpy.fmin",
    slopes=_number(jnp.less), precision="exact.")  # fmt: skip
heaviside, heaviside_backward = binary("heaviside", "The unit step.", "0 where x1 < 0, x2 where x1 = 0, 1 where x1 > 0",
    "dx1 = 0, dx2 = dy where x1 = 0, else 0",
    lambda x, y: jnp.where(x > 0, 1, jnp.where(x < 0, 0, jnp.where(x == 0, y, x))), "torch.heaviside; jax.numpy.heaviside",
    slopes=lambda x, y, d: (jnp.zeros_like(d), jnp.where(x == 0, d, 0)), precision="exact. NaN propagates.")  # fmt: skip

# ---------------------------------------------------------------------------------------------------------------------
# where


@api
@document(
    """out = x where condition, else y
    dx = dout where condition, else 0; dy = dout - dx for the cotangent dout""",
    """condition: array of bool.
    x, y: arrays or numbers; the three broadcast, and JAX promotes the dtypes of x and y to one.""",
    "torch.where; jax.numpy.where.",
    returns=RETURNS,
    precision="exact: values are moved.",
)
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Values of one array or the other."""
    arrays, _ = _where_operands("where", condition, x, y)
    return _WHERE(*arrays, implementation=implementation)


@api
@backward_of(where, "condition, x, y", of="x, y")
def where_backward(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, dout: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    op = "where_backward"
    arrays, shapes = _where_operands(op, condition, x, y)
    checks.dtype(op, "x", arrays[1], checks.INEXACT)
    dout = cotangent_of_result(op, dout, arrays, arrays[1], "x", "dout")
    cotangents = _WHERE.vjp(*arrays, dout, implementation=implementation)
    return tuple(ct.reshape(shape) for ct, shape in zip(cotangents, shapes, strict=True))


def _where_operands(op, condition, x, y):
    condition = checks.array(op, "condition", condition)
    checks.dtype(op, "condition", condition, ("bool",))
    arrays, shapes = operands(op, ("x", "y"), (x, y), checks.EVERY)
    shape = broadcast(op, ("condition", "x", "y"), (condition.shape, *shapes))
    return [aligned(a, len(shape)) for a in (condition, *arrays)], shapes


def _backward_reference(condition, x, y, dout):
    full = jnp.where(condition, dout, 0), jnp.where(condition, 0, dout)
    return tuple(_pattern.gathered(ct, like) for ct, like in zip(full, (x, y), strict=True))


def _backward_native(condition, x, y, dout):
    full = _pattern.call("where_backward", [condition, dout], [dout.dtype] * 2)
    return tuple(_pattern.gathered(ct, like) for ct, like in zip(full, (x, y), strict=True))


def _where_draw(*shapes):
    def draw(rng):
        of, *others = shapes
        return rng.uniform(0, 1, of) < 0.5, *(rng.uniform(-3, 3, shape) for shape in others)

    return draw


_WHERE = declare(
    "where",
    family="elementwise",
    category=OpCategory.TERNARY_ELEMENTWISE,
    public=where,
    dtypes=checks.EVERY,
    cases=(
        Case("alike", _where_draw((4, 6), (4, 6), (4, 6))),
        Case("rows", _where_draw((4, 1), (4, 6), (1, 6))),
        Case("one number", _where_draw((7,), (7,), ())),
    ),
    operands=("condition", "x", "y"),
    results=("out",),
    differentiable=("x", "y"),
    constant={"condition": "bool carries no derivative"},
    residuals=("condition", "x", "y"),
    cut=_pattern.BY_DIMENSION,
    forward=Body(
        lambda condition, x, y: (jnp.where(condition, x, y),),
        lambda *args, save: _pattern.call("where", args, [args[1].dtype]),
    ),
    tangent=Body(
        lambda condition, x, y, of_x, of_y: (jnp.where(condition, of_x, of_y),),
        lambda condition, x, y, *tangents: _pattern.call("where_tangent", [condition, *tangents], [x.dtype]),
    ),
    backward=Body(_backward_reference, _backward_native),
    batched=as_they_are,
    kernels={"forward": ("where",), "tangent": ("where_tangent",), "backward": ("where_backward",)},
    kin="nary",
    weak=True,
    default="xla",
)
