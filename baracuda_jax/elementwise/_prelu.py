"""The rectifier whose slope is learned."""

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
from ._arguments import cotangent, document, floats, weight, widen


@api
@document(
    """y = x where x > 0, else weight x
    dx = dy where x > 0, else weight dy
    dweight = sum over the elements that a weight serves of x dy where x <= 0""",
    """x: array of floats [N, C, ...].
    weight: array [C], or one number: an array [1] or [], or a Python number. Of x's dtype or, with float16 and
        bfloat16, of float32. It may be traced.""",
    "torch.nn.functional.prelu. He et al., Delving deep into rectifiers (2015).",
)
def prelu(x: ArrayLike, weight: ArrayLike, *, implementation: Implementation = None) -> Array:
    """Leaky rectifier whose slope is an array."""
    x, weight, _ = _arguments("prelu", x, weight)
    return _PRELU(x, weight, implementation=implementation)


@api
def prelu_backward(
    x: ArrayLike, weight: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    """The gradient of `prelu`: see its formula.

    Args:
        x, weight: the arguments of `prelu`.
        dy: the cotangent of its result, of x's shape and dtype.
        implementation: as there.

    Returns:
        The cotangents of x and weight.
    """
    op = "prelu_backward"
    x, weight, shape = _arguments(op, x, weight)
    dx, dweight = _PRELU.vjp(x, weight, cotangent(op, dy, x), implementation=implementation)
    return dx, dweight.reshape(shape)


def _arguments(op, x, weight_):
    """x, the weight along its dimension of x, and the weight's own shape."""
    x = floats(op, "x", x)
    weight_ = weight(op, weight_, "x", x)
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight_.ndim > 1 or weight_.size not in (1, channels):
        raise ValueError(
            f"{op}: weight must have one element or {channels}, one for each index of x's dimension 1, x being "
            f"{x.shape}; got shape {weight_.shape}"
        )
    along = tuple(weight_.size if d == 1 else 1 for d in range(x.ndim))
    return x, weight_.reshape(along), weight_.shape


def _reference(x, weight):
    a, w = widen(x, weight)
    return (jnp.where(a > 0, a, w * a).astype(x.dtype),)


def _tangent_reference(x, weight, of_x, of_weight):
    a, w, ta, tw = widen(x, weight, of_x, of_weight)
    return (jnp.where(a > 0, ta, w * ta + a * tw).astype(x.dtype),)


def _backward_reference(x, weight, dy):
    a, w, ct = widen(x, weight, dy)
    dx, dweight = jnp.where(a > 0, ct, w * ct), jnp.where(a > 0, 0, a * ct)
    return dx.astype(x.dtype), _pattern.gathered(dweight, weight).astype(weight.dtype)


def _native(x, weight, *, save):
    return _pattern.call("prelu", [x, weight], [x.dtype])


def _tangent_native(x, weight, of_x, of_weight):
    return _pattern.call("prelu_tangent", [x, weight, of_x, of_weight], [x.dtype])


def _backward_native(x, weight, dy):
    (dx,) = _pattern.call("prelu_backward", [x, weight, dy], [x.dtype])
    return dx, _pattern.weight_gradient("prelu_backward_weight", [x, dy], weight)


def _draw(shape, weights):
    def draw(rng):
        x = rng.uniform(0.05, 2, shape) * rng.choice([-1.0, 1.0], shape)
        return x, rng.uniform(0.1, 0.9, weights)

    return draw


_PRELU = declare(
    "prelu",
    family="elementwise",
    category=OpCategory.BINARY_ELEMENTWISE,
    public=prelu,
    dtypes=checks.FLOATS,
    cases=(
        Case("channels", _draw((4, 3, 5), (3,))),
        Case("one slope", _draw((4, 6), (1,))),
        Case("channels last", _draw((5, 16), (16,))),
    ),
    operands=("x", "weight"),
    differentiable=("x", "weight"),
    residuals=("x", "weight"),
    cut=_pattern.BY_DIMENSION,
    forward=Body(_reference, _native),
    tangent=Body(_tangent_reference, _tangent_native),
    backward=Body(_backward_reference, _backward_native),
    batched=as_they_are,
    kernels={
        "forward": ("prelu",),
        "tangent": ("prelu_tangent",),
        "backward": ("prelu_backward", "prelu_backward_weight"),
    },
    default="xla",
    weak=True,
)
