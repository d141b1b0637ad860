"""The kernel calls that the native bodies are made of, and the same in plain JAX for the references. Operands are elements,
and scales and zero points per channel, as `Granularity` makes them."""

import jax
import jax.numpy as jnp

from .._core.float8 import to_float8
from .._core.kernel import kernel
from ._arguments import is_float8
from ._granularity import expanded


def wide(x):
    return x.astype(jnp.float32) if x.dtype.itemsize <= 2 else x


def _call(target, elements, scale, zero_point, out, **attributes):
    per_channel = [scale] if zero_point is None else _aligned(scale, zero_point)
    dims = ", ".join(["...ci"] * len(elements) + ["...c"] * len(per_channel))
    return kernel(target, f"{dims} -> ...ci", *elements, *per_channel, out=[out], **attributes)[0]


def _aligned(*arrays):
    """Arrays [..., channels] with the batches of the one that has most."""
    most = max(arrays, key=lambda x: x.ndim)
    return [jnp.broadcast_to(expanded(x, most[..., None])[..., 0], most.shape) for x in arrays]


def _like(x, dtype=None):
    return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)


def kernel_code(code, row):
    """The dtype that a kernel reads or writes. Values of 4 bits share bytes, and so a row must not end inside one."""
    return code.replace("4", "8") if code in ("int4", "uint4") and row % 2 else code


def _row(elements):
    return elements.shape[-1] if elements.shape[-1] > 1 else elements.shape[-2]


def quantize(x, scale, zero_point, *, code, low, high):
    out = _like(x, kernel_code(code, _row(x)))
    return _call("quantize", [x], scale, zero_point, out, low=low, high=high).astype(code)


def dequantize(q, scale, zero_point, dtype):
    q = q.astype(kernel_code(q.dtype.name, _row(q)))
    return _call("dequantize", [q], scale, zero_point, _like(q, dtype))


def fake_quantize(x, scale, zero_point, *, low, high):
    return _call("fake_quantize", [x], scale, zero_point, _like(x), low=low, high=high)


def straight_through(x, dy, scale, zero_point, *, low, high, divides):
    """dy, over the scale where `divides`, for elements whose code is in the range."""
    return _call("quantize_backward", [x, dy], scale, zero_point, _like(x), low=low, high=high, divides=divides)


# ---------------------------------------------------------------------------------------------------------------------
# References


def divide(x, y):
    """x / y to the last bit. XLA makes the division by a constant, or by what is broadcast, a product with 1 / y, and then
    ties would be rounded otherwise; it does not see that this divisor is one."""
    return x / jnp.where(jnp.isnan(x), x, y)


def unclamped_reference(x, scale, zero_point):
    q = jnp.round(divide(wide(x), expanded(scale, x)))
    return q + offset(zero_point, q)


def offset(zero_point, elements):
    """The zero point expanded to elements, and of their dtype."""
    return expanded(zero_point, elements).astype(elements.dtype)


def clamped_reference(x, scale, zero_point, *, low, high):
    """q of integer dtypes, as floats: NaN gets the zero point."""
    q = unclamped_reference(x, scale, zero_point)
    q = jnp.where(jnp.isnan(q), offset(zero_point, q), q)
    return jnp.clip(q, low, high)


def quantize_reference(x, scale, zero_point, *, code, low, high):
    if is_float8(code):
        ratio = divide(wide(x), expanded(scale, x))
        return to_float8(jnp.clip(ratio, low, high), code)
    return clamped_reference(x, scale, zero_point, low=low, high=high).astype(jnp.int32).astype(code)


def dequantize_reference(q, scale, zero_point, dtype):
    q = q.astype(scale.dtype)
    return ((q - offset(zero_point, q)) * expanded(scale, q)).astype(dtype)


def fake_quantize_reference(x, scale, zero_point, *, low, high):
    q = clamped_reference(x, scale, zero_point, low=low, high=high)
    return ((q - offset(zero_point, q)) * expanded(scale, x)).astype(x.dtype)


def inside_reference(x, scale, zero_point, *, low, high):
    q = unclamped_reference(x, scale, zero_point)
    return (q >= low) & (q <= high)


def straight_through_reference(x, dy, scale, zero_point, *, low, high, divides):
    part = divide(wide(dy), expanded(scale, dy)) if divides else wide(dy)
    return jnp.where(inside_reference(x, scale, zero_point, low=low, high=high), part, 0).astype(dy.dtype)
