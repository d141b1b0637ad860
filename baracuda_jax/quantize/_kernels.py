"""The kernel calls that the native bodies are made of, and the same in plain JAX for the references. Operands are cells, and
scales and zero points per channel, as `Granularity` makes them."""

import jax
import jax.numpy as jnp

from .._core.kernel import kernel
from ._arguments import is_float8
from ._granularity import beside


def wide(x):
    return x.astype(jnp.float32) if x.dtype.itemsize <= 2 else x


def _call(target, cells, scale, zero_point, out, **attributes):
    per_channel = [scale] if zero_point is None else _aligned(scale, zero_point)
    dims = ", ".join(["...ci"] * len(cells) + ["...c"] * len(per_channel))
    return kernel(target, f"{dims} -> ...ci", *cells, *per_channel, out=[out], **attributes)[0]


def _aligned(*arrays):
    """Arrays [..., channels] with the batches of the one that has most."""
    most = max(arrays, key=lambda x: x.ndim)
    return [jnp.broadcast_to(beside(x, most[..., None])[..., 0], most.shape) for x in arrays]


def _like(x, dtype=None):
    return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)


def kernel_code(code, row):
    """The codes that a kernel reads or writes. Those of 4 bits share bytes, and so a row must not end inside one."""
    return code.replace("4", "8") if code in ("int4", "uint4") and row % 2 else code


def _row(cells):
    return cells.shape[-1] if cells.shape[-1] > 1 else cells.shape[-2]


def quantize(x, scale, zero_point, *, code, low, high):
    out = _like(x, kernel_code(code, _row(x)))
    return _call("quantize", [x], scale, zero_point, out, low=low, high=high).astype(code)


def dequantize(codes, scale, zero_point, dtype):
    codes = codes.astype(kernel_code(codes.dtype.name, _row(codes)))
    return _call("dequantize", [codes], scale, zero_point, _like(codes, dtype))


def fake_quantize(x, scale, zero_point, *, low, high):
    return _call("fake_quantize", [x], scale, zero_point, _like(x), low=low, high=high)


def straight_through(x, dy, scale, zero_point, *, low, high, divides):
    """dy, over the scale where `divides`, for cells whose code is in the range."""
    return _call("quantize_backward", [x, dy], scale, zero_point, _like(x), low=low, high=high, divides=divides)


# ---------------------------------------------------------------------------------------------------------------------
# References


def divide(x, y):
    """x / y to the last bit. XLA makes the division by a constant, or by what is broadcast, a product with 1 / y, and then
    ties would be rounded otherwise; it does not see that this divisor is one."""
    return x / jnp.where(jnp.isnan(x), x, y)


def unclamped_reference(x, scale, zero_point):
    q = jnp.round(divide(wide(x), beside(scale, x)))
    return q + offset(zero_point, q)


def offset(zero_point, cells):
    """The zero point beside cells, and of their dtype."""
    return beside(zero_point, cells).astype(cells.dtype)


def codes_reference(x, scale, zero_point, *, low, high):
    """The codes of integers, as floats: NaN, which has none, gets the zero point's."""
    q = unclamped_reference(x, scale, zero_point)
    q = jnp.where(jnp.isnan(q), offset(zero_point, q), q)
    return jnp.clip(q, low, high)


def quantize_reference(x, scale, zero_point, *, code, low, high):
    if is_float8(code):
        ratio = divide(wide(x), beside(scale, x))
        return jnp.clip(ratio, low, high).astype(code)
    return codes_reference(x, scale, zero_point, low=low, high=high).astype(jnp.int32).astype(code)


def dequantize_reference(codes, scale, zero_point, dtype):
    codes = codes.astype(scale.dtype)
    return ((codes - offset(zero_point, codes)) * beside(scale, codes)).astype(dtype)


def fake_quantize_reference(x, scale, zero_point, *, low, high):
    q = codes_reference(x, scale, zero_point, low=low, high=high)
    return ((q - offset(zero_point, q)) * beside(scale, x)).astype(x.dtype)


def inside_reference(x, scale, zero_point, *, low, high):
    q = unclamped_reference(x, scale, zero_point)
    return (q >= low) & (q <= high)


def straight_through_reference(x, dy, scale, zero_point, *, low, high, divides):
    part = divide(wide(dy), beside(scale, dy)) if divides else wide(dy)
    return jnp.where(inside_reference(x, scale, zero_point, low=low, high=high), part, 0).astype(dy.dtype)
