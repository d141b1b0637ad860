"""The arguments of 8-bit training: dtypes, scales, and the options of delayed scaling."""

import jax.numpy as jnp

from .._core import checks

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
FLOATS = ("float32", "float16", "bfloat16")
ALGORITHMS = ("max", "most_recent")


def dtype_name(op, dtype, known):
    try:
        name = jnp.dtype(dtype).name
    except TypeError:
        raise TypeError(f"{op}: dtype must be a dtype, got {dtype!r}") from None
    return checks.choice(op, "dtype", name, known)


def floats(op, name, x):
    x = checks.array(op, name, x)
    x = x.astype(jnp.float32) if x.weak_type else x  # a Python number
    checks.dtype(op, name, x, FLOATS)
    return x


def float32(op, name, x, shape, because):
    """An array of float32 of a shape; a Python number is one."""
    x = checks.array(op, name, x)
    x = x.astype(jnp.float32) if x.weak_type else x
    checks.dtype(op, name, x, ("float32",))
    checks.shape(op, name, x, shape, because)
    return x


def history(op, name, x):
    x = checks.array(op, name, x)
    checks.dtype(op, name, x, ("float32",))
    if x.ndim < 1 or x.shape[-1] < 1:
        raise ValueError(f"{op}: {name} must have a last dimension of at least 1, the steps, got shape {x.shape}")
    return x


def recipe(op, margin, amax_compute_algo):
    """The options of delayed scaling."""
    if not checks.is_number(margin):
        raise TypeError(f"{op}: margin must be a static number, got {margin!r}")
    return float(margin), checks.choice(op, "amax_compute_algo", amax_compute_algo, ALGORITHMS)
