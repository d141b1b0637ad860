"""Linear layers on integers of 8 bits: rows of x are quantized as they come, and XLA multiplies."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide_dtype
from ..gemm._int8 import _exact
from ._dynamic import dynamic_quantize

_SHARED = """        w: int8 [N, K], the quantized weights.
        w_scale: floats [N], or of shape [] for one of all.
        bias: floats [N]; None for 0.
"""
_END = """        implementation: "native" (the kernel of `dynamic_quantize`), "xla" (plain JAX), a PlanPreference, or None
            for automatic.

    Returns:
        Array [..., N], {dtype}.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: the product of integers is exact up to K of 2^15 and beyond as long as it fits in int32; scales are multiplied
    in float32, in float64 for that, and the result is rounded once. The gradient in x is as if x was not
    rounded: a convention.

    Source: {source}.
    """


@api
def quantized_linear(
    x: ArrayLike,
    w: ArrayLike,
    w_scale: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    x_scale: ArrayLike | None = None,
    implementation: Implementation = None,
) -> Array:
    op = "quantized_linear"
    x, w, w_scale, bias = _operands(op, x, w, w_scale, bias, () if x_scale is None else ("int8",))
    if x_scale is None:
        q, scale = dynamic_quantize(x, implementation=implementation)
        return _layer(x, bias, q, scale, w, w_scale)
    x_scale = checks.floats(op, "x_scale", x_scale)
    checks.shape(op, "x_scale", x_scale, x.shape[:-1], "one for each row of x")
    return _of_integers(x, x_scale, w, w_scale, bias)


@api
def smooth_quant_linear(
    x: ArrayLike,
    smooth: ArrayLike,
    w: ArrayLike,
    w_scale: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    implementation: Implementation = None,
) -> Array:
    op = "smooth_quant_linear"
    x, w, w_scale, bias = _operands(op, x, w, w_scale, bias)
    smooth = checks.floats(op, "smooth", smooth)
    checks.shape(op, "smooth", smooth, x.shape[-1:], "one for each column of x")
    x = _divided(x, smooth)
    q, scale = dynamic_quantize(x, implementation=implementation)
    return _layer(x, bias, q, scale, w, w_scale)


quantized_linear.__doc__ = f"""Linear layer of weights of 8 bits, on rows that are quantized to 8 bits too.

    Formula:
        y = x_scale w_scale (q w^T) + bias, where q and x_scale are dynamic_quantize(x), for each row; dx = dy w w_scale.

    Args:
        x: floats [..., K]; or int8 where x_scale is given.
{
    _SHARED
}        x_scale: floats [...], the scale of each row of integers x; None for x of floats. Such x carries no derivative.
{
    _END.format(
        dtype="of x's dtype, or of x_scale's",
        source="Dettmers et al., LLM.int8() (2022); torchao's int8 dynamic activations",
    )
}"""
smooth_quant_linear.__doc__ = f"""Linear layer of weights of 8 bits, on rows that are divided by factors and quantized.

    Formula:
        y = x_scale w_scale (q w^T) + bias, where q and x_scale are dynamic_quantize(x / smooth), for each row; dx = dy w
        w_scale / smooth. The weights that w stands for are those of the layer, times smooth.

    Args:
        x: floats [..., K].
        smooth: floats [K], the factors, which are not 0.
{_SHARED}{_END.format(dtype="of x's dtype", source="Xiao et al., SmoothQuant (2023)")}"""


def _operands(op, x, w, w_scale, bias, dtypes=()):
    x, w = checks.array(op, "x", x), checks.array(op, "w", w)
    checks.dtype(op, "x", x, dtypes or checks.FLOATS)
    checks.dtype(op, "w", w, ("int8",))
    if w.ndim != 2 or x.ndim < 1 or x.shape[-1] != w.shape[1]:
        raise ValueError(f"{op}: x must be [..., K] and w [N, K], got shapes {tuple(x.shape)} and {tuple(w.shape)}")
    w_scale = checks.floats(op, "w_scale", w_scale)
    if w_scale.shape not in ((), w.shape[:1]):
        raise ValueError(f"{op}: w_scale must have shape () or {w.shape[:1]}, got {tuple(w_scale.shape)}")
    if bias is not None:
        bias = checks.floats(op, "bias", bias)
        checks.shape(op, "bias", bias, w.shape[:1], "one for each row of w")
    return x, w, w_scale, bias


@compiled()
def _divided(x, smooth):
    wide = wide_dtype(x.dtype)
    return (x.astype(wide) / smooth.astype(wide).reshape(*(1,) * (x.ndim - 1), -1)).astype(x.dtype)


def _scaled(q, scale, w, w_scale, bias, dtype):
    n = _exact(q, w, None, None, (((q.ndim - 1,), (1,)), ((), ())))
    wide = wide_dtype(jnp.dtype(dtype))
    of_column = lambda x: x.astype(wide).reshape(*(1,) * (n.ndim - 1), -1)
    y = n.astype(wide) * scale[..., None].astype(wide) * of_column(w_scale)
    return (y if bias is None else y + of_column(bias)).astype(dtype)


@compiled()
def _of_integers(x, x_scale, w, w_scale, bias):
    return _scaled(x, x_scale, w, w_scale, bias, x_scale.dtype)


@jax.custom_jvp
def _straight_through(x, bias, q, scale, w, w_scale):
    return _scaled(q, scale, w, w_scale, bias, x.dtype)


@_straight_through.defjvp
def _tangent(primals, tangents):
    """That of a layer whose x is not rounded; the parts of the weights are constant."""
    x, bias, _, _, w, w_scale = primals
    t, of_bias, *_ = tangents
    wide = wide_dtype(x.dtype)
    floats = w.astype(wide) * (w_scale.astype(wide)[:, None] if w_scale.ndim else w_scale.astype(wide))
    dims = ((t.ndim - 1,), (1,)), ((), ())
    moved = jax.lax.dot_general(t.astype(wide), floats, dims, precision="highest")
    moved = moved if bias is None else moved + of_bias.astype(wide).reshape(*(1,) * (moved.ndim - 1), -1)
    return _straight_through(*primals), moved.astype(x.dtype)


_layer = compiled()(_straight_through)


def _draw(*shape, rows, columns, smooth=False):
    def draw(rng):
        x, w = rng.standard_normal((*shape, columns)), rng.integers(-127, 128, (rows, columns), "int8")
        more = (rng.uniform(0.5, 2, columns).astype("float32"),) if smooth else ()
        scale = rng.uniform(0.01, 0.1, rows).astype("float32")
        return x, *more, w, scale, rng.standard_normal(rows)

    return draw


_CONSTANT = {"w": "the weights are quantized", "w_scale": "the scales belong to quantized weights"}
compose(
    "quantized_linear",
    family="quantize",
    category=OpCategory.QUANTIZATION,
    public=quantized_linear,
    cases=(
        Case("rows", _draw(5, rows=4, columns=12)),
        Case("batches", _draw(2, 3, rows=3, columns=16)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "w", "w_scale", "bias"),
    made_of=("dynamic_quantize",),
    differentiable=("x", "bias"),
    constant=_CONSTANT,
    surrogate=True,
)
compose(
    "smooth_quant_linear",
    family="quantize",
    category=OpCategory.QUANTIZATION,
    public=smooth_quant_linear,
    cases=(Case("rows", _draw(5, rows=4, columns=12, smooth=True)),),
    dtypes=checks.FLOATS,
    operands=("x", "smooth", "w", "w_scale", "bias"),
    made_of=("dynamic_quantize",),
    differentiable=("x", "bias"),
    constant={**_CONSTANT, "smooth": "the factors belong to quantized weights"},
    surrogate=True,
)
