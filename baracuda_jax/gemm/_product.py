"""The product of matrices, which accumulates in float32 or wider, and what comes after it, before it is rounded."""

import functools

import jax
import jax.numpy as jnp

from .._core.compiled import compiled
from .._core.wide import wide, wide_dtype

ACTIVATIONS = {
    "identity": lambda y: y,
    "relu": jax.nn.relu,
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "silu": jax.nn.silu,
}


def dimensions(a_rank, b_rank, transpose_a=False, transpose_b=False):
    """dot_general's dimension numbers of [..., M, K] and [..., K, N], or of [M, K] and [K]."""
    of_a = a_rank - (2 if transpose_a else 1)
    of_b = b_rank - (1 if transpose_b or b_rank == 1 else 2)
    batch = tuple(range(max(b_rank - 2, 0)))
    return ((of_a,), (of_b,)), (batch, batch)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def product(a, b, dims, precision, rounds=False):
    """`rounds` to the operands' dtype: nothing wider is written then.

    XLA's CPU has no products of bfloat16 in float32 for some layouts of batches: there operands are widened, which changes
    no bit of the sums' terms."""

    dtype = a.dtype if rounds else wide_dtype(a.dtype)

    def of(a, b):
        return jax.lax.dot_general(a, b, dims, precision, preferred_element_type=dtype)

    if wide_dtype(a.dtype) == a.dtype:
        return of(a, b)
    on_cpu = lambda a, b: jax.lax.dot_general(wide(a), wide(b), dims, precision).astype(dtype)
    return jax.lax.platform_dependent(a, b, cpu=on_cpu, default=of)


def _tangent(dims, precision, rounds, primals, tangents):
    """Of 16 bits, tangents and cotangents are rounded to these before they are multiplied: a product of float32 and bfloat16
    would be one of float32, at half the speed and less."""
    (a, b), (da, db) = primals, tangents
    is_zero = lambda t: type(t) is jax.custom_derivatives.SymbolicZero
    terms = [(da, b)] * (not is_zero(da)) + [(a, db)] * (not is_zero(db))
    y = product(a, b, dims, precision, rounds)
    if not terms:
        return y, jnp.zeros_like(y)
    parts = [wide(jax.lax.dot_general(*pair, dims, precision, preferred_element_type=a.dtype)) for pair in terms]
    return y, sum(parts[1:], parts[0]).astype(y.dtype)


product.defjvp(_tangent, symbolic_zeros=True)


@compiled("dims", "alpha", "beta", "precision", "activation")
def product_with_epilogue(a, b, c, bias, *, dims, alpha, beta, precision, activation):
    """act(alpha a b + beta c + bias), rounded once; on CUDA act(a b + bias) of 16 bits is rounded before act too."""
    product_of = functools.partial(product, dims=dims, precision=precision)

    def exact(a, b, c, bias):
        return epilogue(product_of(a, b), c, bias, alpha, beta, activation).astype(a.dtype)

    if alpha != 1 or c is not None:
        return exact(a, b, c, bias)
    if bias is None and activation == "identity":
        return product_of(a, b, rounds=True)
    if wide_dtype(a.dtype) == a.dtype or (bias is not None and bias.dtype != a.dtype):
        return exact(a, b, c, bias)

    def by_library(a, b, bias):
        """cuBLASLt adds the bias before it rounds. A result in float32 would take longer to write and to read."""
        y = product_of(a, b, rounds=True)
        y = y if bias is None else y + jnp.expand_dims(bias, range(y.ndim - 1))
        # Nothing is rounded where a cast back follows, and cuBLASLt knows relu of 16 bits alone.
        return ACTIVATIONS[activation](y if activation in ("identity", "relu") else wide(y)).astype(y.dtype)

    return jax.lax.platform_dependent(a, b, bias, cuda=by_library, default=lambda a, b, bias: exact(a, b, None, bias))


def epilogue(y, c, bias, alpha, beta, activation="identity"):
    y = y if alpha == 1 else alpha * y
    if c is not None:
        c = wide(c) if c.shape == y.shape else jnp.broadcast_to(wide(c), y.shape)
        y = y + (c if beta == 1 else beta * c)
    if bias is not None:
        y = y + jnp.expand_dims(wide(bias), range(y.ndim - 1))
    return ACTIVATIONS[activation](y)
