"""XLA's convolution, asked for the dtype that a platform's library is fast in."""

import functools

from jax import lax

from .._core.wide import wide, wide_dtype


def convolution(x, weight, *args, **how):
    """`lax.conv_general_dilated`, in float32 of 16-bit floats.

    cuDNN sums these in float32 and rounds, in the result and in both gradients; of a result in float32, XLA would widen the
    operands first and compute with those."""
    of = functools.partial(lax.conv_general_dilated, **how)
    wide_of = lambda x, weight: of(x, weight, *args, preferred_element_type=wide_dtype(x.dtype))
    if wide_dtype(x.dtype) == x.dtype:
        return wide_of(x, weight)
    return lax.platform_dependent(x, weight, cuda=lambda x, weight: wide(of(x, weight, *args)), default=wide_of)
