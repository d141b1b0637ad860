"""Quantization with scales that are found in the data."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.types import Implementation
from . import _kernels as k
from ._arguments import code_range, granularity, is_float8, wide_dtype
from ._family import BY_ROW, FAMILY, normal


@api
def dynamic_quantize(
    x: ArrayLike,
    dtype: DTypeLike = "int8",
    *,
    group_size: int | None = None,
    symmetric: bool = True,
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """Quantize x, with a scale found for each row or group of a row.

    Formula:
        symmetric: scale = max |x| / qmax, q = clamp(round(x / scale), qmin, qmax)
        asymmetric: low = min(x, 0), high = max(x, 0), scale = (high - low) / (qmax - qmin),
            zero_point = round(qmin - low / scale), q = clamp(round(x / scale) + zero_point, qmin, qmax)
        over the last dimension, or over groups of it; [qmin, qmax] is the range of q

    Edges: a row of zeros has scale 1. A row that holds infinity or NaN has that for its scale, and q of zero_point,
    or NaN in float8_*.

    Args:
        x: floats [..., n].
        dtype: that of q: int8, uint8, int4, uint4, float8_e4m3fn or float8_e5m2.
        group_size: static, the number of neighbors that share a scale; None for whole rows. It must divide n.
        symmetric: static; False, for integers alone, has zero points. uint8 and uint4 need it to be False.
        implementation: "native" (the kernel), "xla" (plain JAX), or None for automatic.

    Returns:
        (q, scale), or (q, scale, zero_point) where not symmetric. q is shaped as x; scale, in float32 (float64
        for float64), and zero_point, int32, are [...], or [..., n / group_size]. They carry no derivative.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32, or in float64 for float64. The row is read once.

    Source: Dettmers et al., LLM.int8() (2022); Yao et al., ZeroQuant (2022), which quantizes by token and by group.
    """
    op = "dynamic_quantize"
    x = checks.floats(op, "x", x)
    params = code_range(op, dtype, None, None)
    symmetric = checks.flag(op, "symmetric", symmetric)
    if symmetric and params["low"] == 0:
        raise ValueError(f"{op}: symmetric must be False with dtype {params['code']}, which has no negative values")
    if not symmetric and is_float8(params["code"]):
        raise ValueError(f"{op}: symmetric must be True with dtype {params['code']}, got False")
    by = granularity(op, x, "token" if group_size is None else "group", group_size=group_size)
    q, scale, *zero = _dynamic(x, by=by, symmetric=symmetric, **params, save=True, implementation=implementation)
    return (q, scale, *zero)


def _rows(x, by):
    return x if by.kind == "token" else by.elements(x)


def _reference(x, *, by, symmetric, code, low, high):
    rows = k.wide(_rows(x, by))
    if symmetric:
        size = k.divide(jnp.max(jnp.abs(rows), axis=-1, initial=0), high)
        zero = None
    else:
        most, smallest = jnp.max(rows, axis=-1, initial=0), jnp.max(-rows, axis=-1, initial=0)
        size = k.divide(most / 2 + smallest / 2, (high - low) / 2)
    scale = jnp.where(size == 0, 1, size)
    if not symmetric:
        zero = jnp.round(low + k.divide(smallest, scale))
        zero = jnp.clip(jnp.where(jnp.isnan(zero), jnp.clip(0.0, low, high), zero), low, high).astype(jnp.int32)
    elements, zeros = rows[..., None, :], zero if zero is not None else jnp.zeros(scale.shape, jnp.int32)
    q = k.quantize_reference(elements, scale[..., None], zeros[..., None], code=code, low=low, high=high)
    return (q.reshape(x.shape), scale, *(() if zero is None else (zero,)))


def _native(x, *, save, by, symmetric, code, low, high):
    rows = _rows(x, by)
    memory = k.kernel_code(code, rows.shape[-1])
    like = lambda last, dtype: jax.ShapeDtypeStruct((*rows.shape[:-1], last), dtype)
    out = [like(rows.shape[-1], memory), like(1, wide_dtype(x.dtype)), *([] if symmetric else [like(1, jnp.int32)])]
    dims = ", ".join(["...i", "...u", "...u"][: len(out)])
    q, *scales = kernel("dynamic_quantize", f"...i -> {dims}", rows, out=out, low=low, high=high)
    results = (q.astype(code).reshape(x.shape), *(s[..., 0] for s in scales))
    return results if save else results[:1]


_CASES = (
    Case("rows", lambda r: (normal(r, 6, 40),)),
    Case("groups", lambda r: (normal(r, 2, 3, 24),), {"group_size": 8}),
    Case("asymmetric", lambda r: (2 + normal(r, 5, 33),), {"symmetric": False, "dtype": "uint8"}),
    Case("packed", lambda r: (normal(r, 4, 18),), {"dtype": "int4"}),
    Case("float8", lambda r: (normal(r, 4, 17),), {"dtype": "float8_e4m3fn"}),
)

_dynamic = declare(
    "dynamic_quantize",
    **FAMILY,
    cut=BY_ROW,
    public=dynamic_quantize,
    operands=("x",),
    constant={"x": "the output is quantized"},
    results=("q", "scale", "zero_point"),
    cases=_CASES,
    quantized=True,
    forward=Body(_reference, _native),
    kernels={"forward": ("dynamic_quantize",)},
)
