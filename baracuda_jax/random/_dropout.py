"""Dropout, whose mask is drawn again for the gradient."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, keys
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Axes, Implementation
from .._core.wide import wide
from ._arguments import all_of, in_range, parameters, sharding


@facade_api("xla")
def dropout(
    x: ArrayLike,
    key: ArrayLike | None = None,
    rate: ArrayLike = 0.5,
    *,
    training: bool = True,
    broadcast_axes: Axes = (),
    implementation: Implementation = None,
) -> Array:
    """Dropout: random elements become 0, the others grow by 1 / (1 - rate).

    Formula:
        y = keep x / (1 - rate), with keep = (u < 1 - rate) for u uniform in [0, 1); dx = keep dy / (1 - rate). With rate 1,
        and without `training`, y = 0 and y = x.

    Args:
        x: floats of any shape.
        key: PRNG key of threefry2x32 or philox, typed or raw; it may be None without `training`.
        rate: the probability of 0: a number, or an array of one float, which may be traced. It has no gradient.
        training: static, whether anything is dropped.
        broadcast_axes: static, the axes along which all elements are kept or dropped together.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. The mask has the bits of
    `jax.random.bernoulli(key, float32(1 - rate), shape)`, alone, under vmap and on shards. The gradient draws it again:
    the key is all that is kept for it.

    Source: torch.nn.functional.dropout; flax.linen.Dropout, with the same mask; torch.nn.functional.dropout1d to dropout3d
    by broadcast_axes.
    """
    op = "dropout"
    x = checks.floats(op, "x", x)
    arrays, numbers = parameters(op, rate=rate)
    in_range(op, numbers, 0, 1)
    for name, value in arrays.items():
        checks.shape(op, name, value, (), "that of one number")
    axes = _axes(op, x, broadcast_axes)
    if not checks.flag(op, "training", training):
        return x
    return _dropout(x, keys.typed(op, "key", key), arrays, numbers=numbers, axes=axes)


def _axes(op, x, axes):
    listed = axes if isinstance(axes, tuple | list) else () if axes is None else (axes,)
    return tuple(sorted({checks.axis(op, "x", x, a, "broadcast_axes") for a in listed}))


@compiled("numbers", "axes")
def _dropout(x, key, arrays, *, numbers, axes):
    def value(x, key, arrays):
        rate = all_of(arrays, numbers)["rate"]
        kept = 1 - (wide(jax.lax.stop_gradient(rate)) if isinstance(rate, jax.Array) else rate)
        shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        mask = jax.random.bernoulli(key, jnp.asarray(kept, jnp.float32), shape, out_sharding=sharding(x, axes))
        total = wide(x)
        divisor = jnp.asarray(kept, total.dtype)
        divisor = jnp.where(divisor > 0, divisor, 1)  # nothing is kept then
        y = jnp.where(jnp.broadcast_to(mask, x.shape), total / divisor, 0)
        return y.astype(x.dtype)

    # What this computes is computed again for the gradient, and none of it is kept.
    return jax.checkpoint(value)(x, key, arrays)


def _case(name, shape, **kwargs):
    return Case(name, lambda rng: (rng.standard_normal(shape), keys.draw(rng)), kwargs)


facade(
    "dropout",
    family="random",
    category=OpCategory.RANDOM,
    public=dropout,
    cases=(
        _case("rows", (5, 41)),
        _case("channels", (4, 6, 5), rate=0.3, broadcast_axes=(-1,)),
        _case("vector", (33,), rate=0.1),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "key"),
    differentiable=("x",),
    constant=keys.CONSTANT,
    own_rules=True,
)
