"""Indices drawn by weights."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit, keys
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide


@facade_api("xla")
def multinomial(
    x: ArrayLike,
    key: ArrayLike,
    num_samples: int = 1,
    *,
    replacement: bool = False,
    logits: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Random indices, each drawn with a probability that its weight gives.

    Formula:
        With g of the Gumbel distribution and l = log(x), or x if `logits`: with replacement each sample is argmax(l + g),
        with a g of its own; without, the samples are the indices of the num_samples largest l + g, in descending order.

    Args:
        x: floats [..., K], weights that need not sum to 1, or their logarithms. Weights that are negative or NaN count as 0,
            logits that are NaN as -inf.
        key: PRNG key of threefry2x32 or philox, typed or raw. All rows are drawn by it, each differently.
        num_samples: static, how many indices are drawn of each row; without replacement at most K.
        replacement: static, whether an index may be drawn several times.
        logits: static, whether x is the logarithm of the weights, up to a constant of each row.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        int32 [..., num_samples]. Where no index of positive weight is left, -1.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: the draws of `jax.random.categorical(key, l)`, in float32 for float16 and bfloat16. In float32, events with a
    probability below 1e-7 are drawn too rarely. The same key gives the same indices alone, under vmap and on shards. On a
    tie the first index is drawn.

    Source: torch.multinomial; jax.random.categorical, jax.random.choice.
    """
    op = "multinomial"
    x, key = checks.floats(op, "x", x), keys.typed(op, "key", key)
    if x.ndim < 1 or not x.shape[-1]:
        raise ValueError(f"{op}: x must have one weight a row at least, got shape {tuple(x.shape)}")
    checks.positions(op, "x", x.shape[-1], "weights a row")
    count = checks.integer(op, "num_samples", num_samples, 0)
    replacement = checks.flag(op, "replacement", replacement)
    if not replacement and count > x.shape[-1]:
        raise ValueError(
            f"{op}: num_samples must be at most {x.shape[-1]}, the number of weights, without replacement, got {count}"
        )
    return _multinomial(x, key, count=count, replacement=replacement, logits=checks.flag(op, "logits", logits))


@compiled("count", "replacement", "logits")
def _multinomial(x, key, *, count, replacement, logits):
    x = wide(x)
    possible = x > (-jnp.inf if logits else 0)
    log = jnp.where(possible, x if logits else jnp.log(x), -jnp.inf)
    if replacement:
        noise = jax.random.gumbel(key, (count, *x.shape), x.dtype)
        found = jnp.argmax(noise + jnp.broadcast_to(log, noise.shape), -1)
        found = jnp.moveaxis(found, 0, -1)
        if explicit.is_sharded(x):
            count_left = jnp.broadcast_to(possible.any(-1, keepdims=True), found.shape)
        else:  # what is found is impossible only where all is, and is less to read
            count_left = jnp.take_along_axis(possible, found, -1, mode="promise_in_bounds")
    else:
        # A sort and not top_k, of which XLA gathers batches that are sharded.
        ids = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
        ordered = jax.lax.sort((-log - jax.random.gumbel(key, x.shape, x.dtype), ids), num_keys=1)[1]
        found = jax.lax.slice_in_dim(ordered, 0, count, axis=x.ndim - 1)
        sums = possible.sum(-1, keepdims=True, dtype=jnp.int32)
        count_left = jnp.broadcast_to(sums, found.shape) > jax.lax.broadcasted_iota(jnp.int32, found.shape, x.ndim - 1)
    return jnp.where(count_left, found.astype(jnp.int32), -1)


def _case(name, shape, **kwargs):
    return Case(name, lambda rng: (rng.uniform(0.1, 1, shape), keys.draw(rng)), kwargs)


facade(
    "multinomial",
    family="random",
    category=OpCategory.RANDOM,
    public=multinomial,
    cases=(
        _case("without replacement", (4, 17), num_samples=5),
        _case("with replacement", (3, 9), num_samples=20, replacement=True),
        _case("logits", (3, 9), num_samples=4, replacement=True, logits=True),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "key"),
    constant=keys.CONSTANT | {"x": "indices have no derivative"},
    outputs=("indices",),
)
