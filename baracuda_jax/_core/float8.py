"""8-bit floats, cast to, kept and multiplied."""

import math

import jax
import jax.numpy as jnp

# XLA's GPU compiler gives products with K (M + N) from this on to a library, which pads them. What is smaller, by its option
# xla_gpu_gemm_rewrite_size_threshold, it computes in a loop in float16, where products beyond 65504 are infinite.
_LOOP_BELOW = 100


def to_float8(x, dtype):
    """x as an 8-bit float, also where it is cast back in the same program. There XLA, which may keep more precision than it
    was asked for, would leave out both casts on a GPU, and with them the rounding."""
    return jax.lax.optimization_barrier(x.astype(dtype))


def bits(x):
    """The bits of 8-bit floats that a derivative keeps. Floats `jax.checkpoint` rounds where a policy saves them, by
    `reduce_precision`, of which float8_e4m3fn's numbers beyond 240 are NaN and the subnormal ones 0."""
    return jax.lax.bitcast_convert_type(x, jnp.uint8)


def of_bits(x, dtype):
    """What `bits` were made of."""
    return jax.lax.bitcast_convert_type(x, dtype)


def product(a, b, dims, precision=None, out_sharding=None):
    """dot_general of 8-bit floats, in float32. Operands of a tiny one are widened first, so that products fit; an algorithm
    says itself what is multiplied."""
    if _is_tiny(a.shape, b.shape, dims) and not _is_algorithm(precision):
        a, b = a.astype(jnp.float32), b.astype(jnp.float32)
    return jax.lax.dot_general(a, b, dims, precision, preferred_element_type=jnp.float32, out_sharding=out_sharding)


def rounded_product(a, b, dims, precision, dtype):
    """`product`, rounded to a dtype. cuBLASLt writes 16 bits itself, where float32 would be written and read again."""
    wide = lambda a, b: product(a, b, dims, precision).astype(dtype)
    if jnp.dtype(dtype).itemsize != 2 or _is_tiny(a.shape, b.shape, dims) or _is_algorithm(precision):
        return wide(a, b)
    by_library = lambda a, b: jax.lax.dot_general(a, b, dims, precision, preferred_element_type=dtype)
    return jax.lax.platform_dependent(a, b, cuda=by_library, default=wide)


def _is_tiny(a, b, dims):
    """Of sizes that an export does not know, no product is."""
    (of_a, of_b), _ = dims
    if not all(isinstance(n, int) for n in (*a, *b)):
        return False
    k = math.prod(a[i] for i in of_a)
    kept = [math.prod(n for i, n in enumerate(shape) if i not in axes) for shape, axes in ((a, of_a), (b, of_b))]
    return k * sum(kept) < _LOOP_BELOW


def _is_algorithm(precision):
    presets = jax.lax.DotAlgorithmPreset
    is_named = isinstance(precision, str) and precision in presets.__members__
    return is_named or isinstance(precision, jax.lax.DotAlgorithm | presets)
