"""One step of a causal convolution, for decoding."""

from typing import Literal

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._activation import silu as silu_of
from ._causal_conv1d import weights


@facade_api("xla")
def causal_conv1d_update(
    x: ArrayLike,
    state: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    activation: Literal["silu"] | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """One step of `causal_conv1d`, and the state after it.

    Formula:
        z = bias + weight[width - 1] x + sum over 0 < j < width of weight[width - 1 - j] state[-j], for each channel;
        y = z, or z sigmoid(z) with activation="silu". The new state has x after the elements of state but the first.

    Args:
        x: floats [..., D], an element of each sequence.
        state: array [..., D, size] of x's dtype, the elements before, with a size of the width - 1 or more.
        weight: array [D, width] of x's dtype, with a width of 2 to 8.
        bias: array [D] of x's dtype, None for 0.
        activation: "silu", or None.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Arrays of the shapes and dtype of x and state: y and the new state, which may have the memory of one that is donated.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: causal_conv1d.causal_conv1d_update.
    """
    op = "causal_conv1d_update"
    x, state = checks.floats(op, "x", x), checks.array(op, "state", state)
    if x.ndim < 1:
        raise ValueError(f"{op}: x must be [..., D], got a scalar")
    weight, bias = weights(op, weight, bias, x, x.shape[-1])
    checks.same_dtype(op, "state", state, "x", x)
    width = weight.shape[1]
    if state.ndim != x.ndim + 1 or state.shape[:-1] != x.shape or state.shape[-1] < width - 1:
        raise ValueError(
            f"{op}: state must have the shape of x, {x.shape}, and last a size of at least {width - 1}, the width less one; "
            f"got shape {state.shape}"
        )
    silu = checks.choice(op, "activation", activation, ("silu", None)) == "silu"
    return _step(x, state, weight, bias, silu=silu)


@compiled("silu")
def _step(x, state, weight, bias, *, silu):
    elements = jnp.concatenate([state, x[..., None]], -1)
    weight, bias = (lax.expand_dims(wide(a), range(x.ndim - 1)) for a in (weight, bias))
    z = bias + (weight * wide(elements[..., -weight.shape[-1] :])).sum(-1)
    return (silu_of(z) if silu else z).astype(x.dtype), elements[..., 1:]


def _case(name, batch, channels, size, width, **kwargs):
    def draw(rng):
        shapes = (*batch, channels), (*batch, channels, size), (channels, width), (channels,)
        return tuple(rng.standard_normal(shape) for shape in shapes)

    return Case(name, draw, kwargs)


_CAUSAL_CONV1D_UPDATE = facade(
    "causal_conv1d_update",
    family="state_space",
    category=OpCategory.ATTENTION,
    public=causal_conv1d_update,
    dtypes=checks.FLOATS,
    cases=(_case("silu", (3,), 6, 3, 4, activation="silu"), _case("a longer state", (2, 2), 4, 5, 2)),
    operands=("x", "state", "weight", "bias"),
    differentiable=("x", "state", "weight", "bias"),
    outputs=("y", "state"),
)
