"""Ops of three arrays."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.types import Implementation
from ._arguments import document, number
from ._nary import RETURNS, backward_of, broadcast_cases, declare_nary, operands, vjp

NAMES = ("x1", "x2", "x3")
_THREE = "arrays or numbers, which broadcast; JAX promotes their dtypes to one of floats."

# ---------------------------------------------------------------------------------------------------------------------
# fma


@api
@document(
    """y = x1 x2 + x3
    dx1 = x2 dy, dx2 = x1 dy, dx3 = dy""",
    f"x1, x2, x3: {_THREE}",
    "math.fma; std::fma of C++.",
    returns=RETURNS,
    precision="rounded once; float16 and bfloat16 compute in float32, and round again. Plain JAX may round twice.",
)
def fma(x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, *, implementation: Implementation = None) -> Array:
    """The product of two, and the sum with a third."""
    return _FMA(*operands("fma", NAMES, (x1, x2, x3), checks.FLOATS)[0], implementation=implementation)


@api
@backward_of(fma, "x1, x2, x3")
def fma_backward(
    x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, dy: ArrayLike, *, implementation: Implementation = None
) -> tuple[Array, ...]:
    return vjp(_FMA, NAMES, (x1, x2, x3), dy, implementation)


_FMA = declare_nary(
    fma,
    NAMES,
    lambda x, y, z: x * y + z,
    lambda x, y, z, d: (y * d, x * d, d),
    broadcast_cases((-3, 3), (-3, 3), (-3, 3)),
)

# ---------------------------------------------------------------------------------------------------------------------
# addcmul, addcdiv


@api
@document(
    """y = x1 + value x2 x3
    dx1 = dy, dx2 = value x3 dy, dx3 = value x2 dy""",
    f"""x1, x2, x3: {_THREE}
    value: static number.""",
    "torch.addcmul.",
    returns=RETURNS,
)
def addcmul(
    x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, value: float = 1.0, *, implementation: Implementation = None
) -> Array:
    """A sum with a scaled product."""
    value = number("addcmul", "value", value)
    return _ADDCMUL(
        *operands("addcmul", NAMES, (x1, x2, x3), checks.FLOATS)[0], value=value, implementation=implementation
    )


@api
@backward_of(addcmul, "x1, x2, x3, value")
def addcmul_backward(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    dy: ArrayLike,
    value: float = 1.0,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return vjp(_ADDCMUL, NAMES, (x1, x2, x3), dy, implementation, value=number("addcmul_backward", "value", value))


@api
@document(
    """y = x1 + value x2 / x3
    dx1 = dy, dx2 = value dy / x3, dx3 = -value x2 dy / x3^2""",
    f"""x1, x2, x3: {_THREE}
    value: static number.""",
    "torch.addcdiv.",
    returns=RETURNS,
)
def addcdiv(
    x1: ArrayLike, x2: ArrayLike, x3: ArrayLike, value: float = 1.0, *, implementation: Implementation = None
) -> Array:
    """A sum with a scaled quotient."""
    value = number("addcdiv", "value", value)
    return _ADDCDIV(
        *operands("addcdiv", NAMES, (x1, x2, x3), checks.FLOATS)[0], value=value, implementation=implementation
    )


@api
@backward_of(addcdiv, "x1, x2, x3, value")
def addcdiv_backward(
    x1: ArrayLike,
    x2: ArrayLike,
    x3: ArrayLike,
    dy: ArrayLike,
    value: float = 1.0,
    *,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    return vjp(_ADDCDIV, NAMES, (x1, x2, x3), dy, implementation, value=number("addcdiv_backward", "value", value))


_ADDCMUL = declare_nary(
    addcmul,
    NAMES,
    lambda x, y, z, value: x + value * y * z,
    lambda x, y, z, d, value: (d, value * z * d, value * y * d),
    broadcast_cases((-3, 3), (-3, 3), (-3, 3), value=-0.7),
)
_ADDCDIV = declare_nary(
    addcdiv,
    NAMES,
    lambda x, y, z, value: x + value * (y / z),
    lambda x, y, z, d, value: (d, value * (d / z), -value * (y / z) * (d / z)),
    broadcast_cases((-3, 3), (-3, 3), (0.5, 3), value=1.3),
)
