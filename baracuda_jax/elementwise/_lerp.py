"""Linear interpolation."""

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
from ._arguments import broadcasting, cotangent_of_result, document, floats, weight, widen


@api
@document(
    """y = start + weight (end - start)
    dstart = (1 - weight) dy, dend = weight dy, dweight = (end - start) dy,
    summed over the dimensions along which the argument broadcasts.""",
    """start: array of floats.
    end: array of start's dtype.
    weight: number, or array of start's dtype or, with float16 and bfloat16, of float32. It may be traced. A Python
        number is taken in the precision computed in, and changes no dtype. The three broadcast.""",
    "torch.lerp.",
    returns="An array of the broadcast shape and of start's dtype.",
    precision="float16 and bfloat16 compute in float32. Weights of 0 and 1 give the ends exactly. NaN propagates.",
)
def lerp(start: ArrayLike, end: ArrayLike, weight: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Linear interpolation."""
    operands, _ = _arguments("lerp", start, end, weight)
    return _LERP(*operands, implementation=implementation)


@api
def lerp_backward(
    start: ArrayLike, end: ArrayLike, weight: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    """The gradient of `lerp`: see its formula.

    Args:
        start, end, weight: the arguments of `lerp`.
        dy: the cotangent of its result, of the broadcast shape and start's dtype.
        implementation: as there.

    Returns:
        The cotangents of start, end and weight, each of its argument's shape.
    """
    op = "lerp_backward"
    operands, shapes = _arguments(op, start, end, weight)
    dy = cotangent_of_result(op, dy, operands, operands[0], "start")
    cotangents = _LERP.vjp(*operands, dy, implementation=implementation)
    return tuple(ct.reshape(shape) for ct, shape in zip(cotangents, shapes, strict=True))


def _arguments(op, start, end, weight_):
    """The operands, of one rank, and the arguments' shapes."""
    start, end = floats(op, "start", start), floats(op, "end", end)
    checks.same_dtype(op, "end", end, "start", start)
    return broadcasting(op, ("start", "end", "weight"), (start, end, weight(op, weight_, "start", start)))


def _reference(start, end, weight):
    a, b, w = widen(start, end, weight)
    way = b - a
    return (jnp.where(jnp.abs(w) < 0.5, a + w * way, b - way * (1 - w)).astype(start.dtype),)


def _tangent_reference(*operands):
    start, end, weight, of_start, of_end, of_weight = widen(*operands)
    return (((1 - weight) * of_start + weight * of_end + (end - start) * of_weight).astype(operands[0].dtype),)


def _backward_reference(*operands):
    start, end, weight, dy = widen(*operands)
    full = (1 - weight) * dy, weight * dy, (end - start) * dy
    return tuple(_pattern.gathered(ct, x).astype(x.dtype) for ct, x in zip(full, operands[:3], strict=True))


def _native(start, end, weight, *, save):
    return _pattern.call("lerp", [start, end, weight], [start.dtype])


def _tangent_native(*operands):
    return _pattern.call("lerp_tangent", operands, [operands[0].dtype])


def _backward_native(start, end, weight, dy):
    of_start, of_end = _pattern.call("lerp_backward", [dy, weight], [start.dtype, end.dtype])
    of_weight = _pattern.weight_gradient("lerp_backward_weight", [start, end, dy], weight)
    return _pattern.gathered(of_start, start), _pattern.gathered(of_end, end), of_weight


def _draw(*shapes):
    """Weights of both sides of 1/2."""
    return lambda rng: tuple(rng.uniform(-2, 2, s) if i < 2 else rng.uniform(0, 1, s) for i, s in enumerate(shapes))


_LERP = declare(
    "lerp",
    family="elementwise",
    category=OpCategory.TERNARY_ELEMENTWISE,
    public=lerp,
    dtypes=checks.FLOATS,
    cases=(
        Case("alike", _draw((4, 6), (4, 6), (4, 6))),
        Case("weights of columns", _draw((4, 3, 5), (4, 3, 5), (5,))),
        Case("weights of rows", _draw((4, 6), (1, 6), (4, 1))),
        Case("one weight", _draw((4, 7), (4, 7), ())),
    ),
    operands=("start", "end", "weight"),
    differentiable=("start", "end", "weight"),
    cut=_pattern.BY_DIMENSION,
    residuals=("start", "end", "weight"),
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    batched=as_they_are,
    kernels={"forward": ("lerp",), "tangent": ("lerp_tangent",), "backward": ("lerp_backward", "lerp_backward_weight")},
    default="xla",
    weak=True,
)
