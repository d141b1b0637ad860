"""Parts of plain JAX in public functions, each as one program, also where JAX runs step by step. Their constants are then
the compiler's: none is sent to the device at each call, which `jax.transfer_guard` may forbid."""

import functools

import jax


def compiled(*static):
    """A decorator; `static` names the arguments that are not arrays."""
    return functools.partial(jax.jit, static_argnames=static, inline=True)


full = compiled("shape", "fill_value", "dtype")(jax.numpy.full)


def sent(x):
    """What the host knows, as an array: put on the device on purpose, which a guard allows."""
    return jax.device_put(x)
