"""Products with matrices of packed weights, by format."""

from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.types import F, Implementation
from . import _arguments as arguments
from . import _multiply as multiply
from ._factors import product_with_factors
from ._family import gguf_blocks, random_blocks
from ._scaled import NestedAbsmax, absmax_of, random_scaled

_DOC = """Product with a matrix of packed weights, {what}.

    Formula:
        y[..., n] = the sum of x[..., k] W[n, k], where W is {weights}; dx[..., k] is the sum of dy[..., n] W[n, k].

    Args:
        x: floats [..., K]: one vector, or rows of them.
{arguments}        numerics: static, "exact" for x as it is; "q8" for x as the format Q8_1 has it, which rounds each 32
            neighbors to integers of 8 bits times a scale. Its derivative is that of "exact".
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [..., N] of x's dtype. It is differentiable in x{moving}.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: of up to 16 rows of x, on CUDA 64 of 16-bit floats, products are added in float32, or in float64 for that, in
    an order that shapes decide, and rounded once. Of more rows, and in gradients, the weights are rounded to x's dtype, and
    XLA multiplies.

    Source: {source}.
    """

_BACKWARD_DOC = """The gradient of `{name}` in x: dx = dy W.

    Args:
        {packed}: the weights, as for `{name}`.
        dy: floats [..., N], the cotangent of the result.
{more}        implementation: "native", "xla" or None.

    Returns:
        The cotangent of x, [..., K].
    """

_GGUF = """        data: uint8 [N, bytes of a row], whole blocks, as they are in the file.
        format: static, a format of `gguf_dequantize`.
"""
_NF4 = """        data: uint8 [N, K / 2], two weights in each, the first in the high four bits; or [N K / 2, 1], as
            bitsandbytes has it, with one vector of absmax.
        absmax: floats [N, groups], or a vector of all; or a NestedAbsmax, of scales that are quantized.
        code: static, "nf4" or "fp4", which table it is.
        factor_gradients: static, whether absmax has a gradient too, which is made of that of all weights, in plain JAX.
"""
_INT4 = """        data: uint8 [N, K / 2], two unsigned integers in each, the first in the low four bits; or with eight bits
            [N, K], the byte of a signed one in each.
        scale: floats [N, groups], for each group of neighbors of a row; groups have a multiple of 32 weights.
        zero_point: integers or floats of scale's shape; None for 8, and for 0 with eight bits.
        bits: static, 4 or 8, of an integer.
        factor_gradients: static, whether scale and zero_point have gradients too, which are made of that of all weights, in
            plain JAX.
"""


def _document(of: dict, **more: str) -> F:
    """Of a function, or of the backward function of a name."""

    def with_doc(fun: F) -> F:
        moving = ", and on request in factors" if "factor_gradients" in of.get("arguments", "") else ""
        fun.__doc__ = _BACKWARD_DOC.format(**more) if "name" in more else _DOC.format(**of, **more, moving=moving)
        return fun

    return with_doc


@api
@_document(
    dict(
        what="of a block format of GGUF files",
        weights="gguf_dequantize(data, format)",
        arguments=_GGUF,
        source="llama.cpp's mul_mat_vec_q",
    )
)
def gguf_mmvq(
    x: ArrayLike,
    data: ArrayLike,
    format: str | int,
    *,
    numerics: str = "exact",
    implementation: Implementation = None,
) -> Array:
    op = "gguf_mmvq"
    return multiply.multiplied(_GGUF_ROWS, op, x, *_blocks(op, data, format), numerics, implementation)


@api
@_document({}, name="gguf_mmvq", packed="data", more="        format: static, as for `gguf_mmvq`.\n")
def gguf_mmvq_backward(
    data: ArrayLike, dy: ArrayLike, format: str | int, *, implementation: Implementation = None
) -> Array:
    op = "gguf_mmvq_backward"
    return multiply.backward(_GGUF_ROWS, op, dy, *_blocks(op, data, format), implementation)


def _blocks(op, data, format):
    data, of = arguments.data(op, "data", data), arguments.gguf_format(op, format)
    arguments.whole_blocks(op, multiply.matrix(op, "data", data), of)
    return (data, *arguments.no_factors(data)), of.name


@api
@_document(
    dict(
        what="of NF4 or FP4",
        weights="nf4_dequantize(data, absmax, code=code)",
        arguments=_NF4,
        source="Dettmers et al., QLoRA (2023); bitsandbytes' gemv_4bit",
    )
)
def nf4_mmvq(
    x: ArrayLike,
    data: ArrayLike,
    absmax: ArrayLike | NestedAbsmax,
    *,
    code: str = "nf4",
    numerics: str = "exact",
    factor_gradients: bool = False,
    implementation: Implementation = None,
) -> Array:
    op = "nf4_mmvq"
    x = checks.floats(op, "x", x)
    packed = _tables(op, data, absmax, code, x.shape[-1] if x.ndim else 0)
    of_factors = _of_factors(op, factor_gradients)
    return multiply.multiplied(_NF4_ROWS, op, x, packed, code, numerics, implementation, of_factors)


@api
@_document(
    {},
    name="nf4_mmvq",
    packed="data, absmax",
    more='        code: static, "nf4" or "fp4".\n        columns: static, K, for data [N K / 2, 1]; else None.\n',
)
def nf4_mmvq_backward(
    data: ArrayLike,
    absmax: ArrayLike | NestedAbsmax,
    dy: ArrayLike,
    *,
    code: str = "nf4",
    columns: int | None = None,
    implementation: Implementation = None,
) -> Array:
    op = "nf4_mmvq_backward"
    columns = None if columns is None else checks.integer(op, "columns", columns, 0)
    packed = _tables(op, data, absmax, code, columns)
    return multiply.backward(_NF4_ROWS, op, dy, packed, code, implementation)


def _tables(op, data, absmax, code, columns):
    """The data and the scales as matrices, with so many weights in a row, if that is known."""
    checks.choice(op, "code", code, arguments.TABLES)
    data, absmax = arguments.data(op, "data", data), absmax_of(op, absmax)
    if columns and data.ndim == 2 and data.shape[1] == 1 and absmax.ndim == 1:
        rows = 2 * data.size // columns
        if columns % 2 or 2 * data.size % columns or absmax.size % max(rows, 1):
            raise ValueError(
                f"{op}: data [n, 1] and absmax must be rows of {columns} weights, whole groups each, got shapes "
                f"{tuple(data.shape)} and {tuple(absmax.shape)}"
            )
        data, absmax = data.reshape(rows, columns // 2), absmax.reshape(rows, absmax.size // max(rows, 1))
    scale = arguments.factors(op, "absmax", absmax, multiply.matrix(op, "data", data), code)
    return data, scale, arguments.no_factors(data)[0]


@api
@_document(
    dict(
        what="of four-bit integers, or of eight bits, with a scale for each group",
        weights="int4_dequantize(data, scale, zero_point, bits=bits)",
        arguments=_INT4,
        source="Frantar et al., GPTQ (2023); Marlin",
    )
)
def int4_mmvq(
    x: ArrayLike,
    data: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None = None,
    *,
    bits: int = 4,
    numerics: str = "exact",
    factor_gradients: bool = False,
    implementation: Implementation = None,
) -> Array:
    op = "int4_mmvq"
    packed, format = _integers(op, data, scale, zero_point, bits)
    of_factors = _of_factors(op, factor_gradients)
    return multiply.multiplied(_INT4_ROWS, op, x, packed, format, numerics, implementation, of_factors)


def _of_factors(op, is_wanted):
    return product_with_factors if checks.flag(op, "factor_gradients", is_wanted) else None


@api
@_document(
    {}, name="int4_mmvq", packed="data, scale, zero_point", more="        bits: static, 4 or 8, of an integer.\n"
)
def int4_mmvq_backward(
    data: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike | None,
    dy: ArrayLike,
    *,
    bits: int = 4,
    implementation: Implementation = None,
) -> Array:
    op = "int4_mmvq_backward"
    return multiply.backward(_INT4_ROWS, op, dy, *_integers(op, data, scale, zero_point, bits), implementation)


def _integers(op, data, scale, zero_point, bits):
    data, format = multiply.matrix(op, "data", arguments.data(op, "data", data)), arguments.integers(op, bits)
    scale = arguments.factors(op, "scale", scale, data, format)
    return (data, scale, arguments.zero_points(op, zero_point, scale)), format


def _gguf_case(name, format, rows, count, **kwargs):
    def draw(rng):
        data = random_blocks(rng, format, rows, count // 256 * gguf_blocks(format))
        return rng.standard_normal((*kwargs.get("of", ()), count)), data

    return Case(name, draw, {"format": format})


_GGUF_ROWS = multiply.declare_multiply(
    "gguf_mmvq",
    gguf_mmvq,
    (
        _gguf_case("vector", "Q4_K", 5, 256),
        _gguf_case("rows", "Q6_K", 6, 512, of=(3,)),
    ),
    ("k", "legacy"),
)


def _scaled_case(name, rows, count, groups, zeros=False, of=(), **kwargs):
    bits = kwargs.get("bits", 4)
    draw = lambda rng: (rng.standard_normal((*of, count)), *random_scaled(rng, (rows,), count, groups, zeros, bits))
    return Case(name, draw, kwargs)


_NF4_ROWS = multiply.declare_multiply(
    "nf4_mmvq",
    nf4_mmvq,
    (
        _scaled_case("vector", 5, 192, 3),
        _scaled_case("rows", 4, 128, 1, of=(2, 3), code="fp4"),
    ),
    ("scaled",),
)
_INT4_ROWS = multiply.declare_multiply(
    "int4_mmvq",
    int4_mmvq,
    (
        _scaled_case("vector", 5, 192, 3, zeros=True),
        _scaled_case("rows", 4, 128, 1, of=(5,)),
        _scaled_case("vector of eight bits", 5, 96, 3, zeros=True, bits=8),
        _scaled_case("rows of eight bits", 4, 64, 1, of=(5,), bits=8),
    ),
    ("scaled",),
)
