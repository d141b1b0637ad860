"""Softmax of logits with Gumbel noise: samples of categories with a gradient."""

import functools

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, keys
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide


@facade_api("xla")
def gumbel_softmax(
    x: ArrayLike,
    key: ArrayLike,
    axis: int = -1,
    *,
    tau: float | ArrayLike = 1.0,
    hard: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Gumbel-softmax: a random point of the simplex near a corner, which is drawn with the probabilities softmax(x).

    Formula:
        y = softmax((x + g) / tau), with Gumbel noise g = -log(-log(u)). dx = y (dy - sum(y dy)) / tau. With `hard`, the
        result is 1 at the largest y of each slice and 0 elsewhere, and has the gradient of y.

    Args:
        x: floats, logits, of rank 1 or more.
        key: one PRNG key, typed or uint32 [2].
        axis: static integer, the axis of the categories.
        tau: number above 0, or a scalar array: the temperature. The smaller, the nearer to a corner.
        hard: static, whether the result is a corner. On ties, it is that of the first largest element.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype. The same key draws the same u in every dtype, alone, under vmap and on shards. The
        noise is finite.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: u is drawn in float32. float16 and bfloat16 are computed in float32 and rounded once.

    Source: torch.nn.functional.gumbel_softmax; jax.random.gumbel; Jang et al., Categorical Reparameterization with
    Gumbel-Softmax (2017).
    """
    op = "gumbel_softmax"
    x, key = checks.floats(op, "x", x), keys.typed(op, "key", key)
    axis = checks.axis(op, "x", x, axis)
    number, array = _temperature(op, tau)
    return _gumbel_softmax(x, key, array, axis=axis, tau=number, hard=checks.flag(op, "hard", hard))


def _temperature(op, tau):
    """As a number, or as an array."""
    if isinstance(tau, jax.Array):
        checks.dtype(op, "tau", tau, checks.FLOATS)
        checks.shape(op, "tau", tau, (), "one for all elements")
        return None, tau
    if not checks.is_number(tau) or not tau > 0:
        raise ValueError(f"{op}: tau must be a number above 0 or a scalar array, got {tau!r}")
    return float(tau), None


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _softmax(x, axis):
    """The rule keeps y for the gradient, instead of what y is made of."""
    powers = jnp.exp(x - jax.lax.stop_gradient(x).max(axis, keepdims=True, initial=-jnp.inf))
    return powers / powers.sum(axis, keepdims=True)


@_softmax.defjvp
def _softmax_tangent(axis, primals, tangents):
    y, t = _softmax(*primals, axis), tangents[0]
    return y, y * (t - (y * t).sum(axis, keepdims=True))


def _noise(key, shape, dtype):
    """That of `jax.random.gumbel` in float32. Logarithms are of the dtype: those of float32 differ in their last bits from
    program to program, and a float64 result would show it."""
    u = jax.random.uniform(key, shape, jnp.float32, jnp.finfo(jnp.float32).tiny, 1)
    return -jnp.log(-jnp.log(u.astype(dtype)))


@compiled("axis", "tau", "hard")
def _gumbel_softmax(x, key, array, *, axis, tau, hard):
    logits = wide(x)
    logits = logits + _noise(key, x.shape, logits.dtype)
    y = _softmax(logits / (tau if array is None else array.astype(logits.dtype)), axis)
    if hard:
        first = jnp.argmax(y, axis, keepdims=True)
        corner = jax.lax.broadcasted_iota(first.dtype, y.shape, axis) == first
        y = corner.astype(y.dtype) + (y - jax.lax.stop_gradient(y))  # exactly the corner, and the gradient of y
    return y.astype(x.dtype)


def _draw(*shape):
    return lambda rng: (rng.standard_normal(shape), keys.draw(rng))


facade(
    "gumbel_softmax",
    family="softmax",
    category=OpCategory.SOFTMAX,
    public=gumbel_softmax,
    cases=(Case("rows", _draw(5, 7)), Case("columns", _draw(8, 3), {"axis": 0, "tau": 0.7})),
    dtypes=checks.FLOATS,
    operands=("x", "key"),
    differentiable=("x",),
    constant=keys.CONSTANT,
    own_rules=True,
)
