"""Parts of plain JAX in public functions, each as one program, also where JAX runs step by step. Their constants are then
the compiler's: none is sent to the device at each call, which `jax.transfer_guard` may forbid."""

import functools

import jax


def compiled(*static, inline=True):
    """A decorator; `static` names the arguments that are not arrays. What is not inlined is one program also where JAX
    transposes it step by step, which sends the constants of what is inlined."""
    return functools.partial(jax.jit, static_argnames=static, inline=inline)


full = compiled("shape", "fill_value", "dtype")(jax.numpy.full)


def sent(x):
    """What the host knows, as an array: put on the device on purpose, which a guard allows."""
    return jax.device_put(x)
