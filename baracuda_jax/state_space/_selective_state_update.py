"""One step of a selective scan, for decoding."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._activation import silu
from ._selective_arguments import of_channels, of_states, shared


@facade_api("xla")
def selective_state_update(
    state: ArrayLike,
    x: ArrayLike,
    dt: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    z: ArrayLike | None = None,
    dt_bias: ArrayLike | None = None,
    *,
    dt_softplus: bool = False,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """One step of `selective_scan`, and the states after it.

    Formula:
        For each channel, with the step d = dt + dt_bias, or log(1 + e^(that)) with dt_softplus: the new state is
        e^(d A) state + d x B; y = sum over n of C[n] state[n], the new one, + D x, times z sigmoid(z) where z is given.

    Args:
        state: floats [batch, channels, N], of x's dtype or, for 16 bits, of float32.
        x: floats [batch, channels], the input.
        dt: array of x's shape and dtype, the steps.
        A: floats [channels, N] of x's dtype or, for 16 bits, of float32.
        B: array [batch, N] of x's dtype, or [batch, groups, N].
        C: array of B's shape and dtype.
        D: floats [channels], as A. None for 0.
        z: array of x's shape and dtype, the gate; None for no gate.
        dt_bias: floats [channels], as A, added to dt. None for 0.
        dt_softplus: whether steps are softplus of dt and its bias.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        y, of x's shape and dtype, and the new state, of state's, which may have the memory of one that is donated.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: mamba_ssm.ops.triton.selective_state_update.selective_state_update.
    """
    op = "selective_state_update"
    x, dt = checks.floats(op, "x", x), checks.array(op, "dt", dt)
    if x.ndim != 2:
        raise ValueError(f"{op}: x must be [batch, channels], got shape {x.shape}")
    batches, channels = x.shape
    state = checks.array(op, "state", state)
    states = of_states(op, "state", state, (batches, channels, None), x).shape[2]
    checks.same_dtype(op, "dt", dt, "x", x)
    checks.shape(op, "dt", dt, x.shape, "that of x")
    A = of_states(op, "A", A, (channels, states), x)
    (B, _), (C, _) = (shared(op, name, a, (batches, channels, states, ()), x) for name, a in (("B", B), ("C", C)))
    if B.shape != C.shape:
        raise ValueError(f"{op}: C must have the shape of B, {B.shape}, got {C.shape}")
    if z is not None:
        z = checks.array(op, "z", z)
        checks.same_dtype(op, "z", z, "x", x)
        checks.shape(op, "z", z, x.shape, "that of x")
    D, dt_bias = (of_channels(op, name, a, (channels,), x) for name, a in (("D", D), ("dt_bias", dt_bias)))
    return _step(state, x, dt, A, B, C, D, z, dt_bias, softplus=checks.flag(op, "dt_softplus", dt_softplus))


@compiled("softplus")
def _step(state, x, dt, a, b, c, skip, z, dt_bias, *, softplus):
    dtypes = x.dtype, state.dtype
    state, x, b, c = map(wide, (state, x, b, c))
    a, skip, dt_bias = a[None], skip[None], dt_bias[None]
    step = wide(dt) + dt_bias
    step = jnp.logaddexp(step, 0) if softplus else step
    of_groups = lambda v: jnp.repeat(v, x.shape[1] // max(v.shape[1], 1), axis=1)
    state = jnp.exp(step[..., None] * a) * state + (step * x)[..., None] * of_groups(b)
    y = (of_groups(c) * state).sum(-1) + skip * x
    y = y if z is None else y * silu(wide(z))
    return y.astype(dtypes[0]), state.astype(dtypes[1])


def _case(name, batch, channels, states, groups=None, gate=True, **kwargs):
    def draw(rng):
        shape, of_b = (batch, channels), (batch, *(() if groups is None else (groups,)), states)
        arrays = [
            rng.standard_normal((batch, channels, states)),
            rng.standard_normal(shape),
            rng.uniform(0.05, 1, shape),
        ]
        arrays += [-rng.uniform(0.2, 2, (channels, states)), rng.standard_normal(of_b), rng.standard_normal(of_b)]
        arrays += [rng.standard_normal(channels), rng.standard_normal(shape) if gate else None]
        return (*arrays, rng.uniform(0.05, 0.5, channels))

    return Case(name, draw, kwargs)


_SELECTIVE_STATE_UPDATE = facade(
    "selective_state_update",
    family="state_space",
    category=OpCategory.ATTENTION,
    public=selective_state_update,
    dtypes=checks.FLOATS,
    cases=(_case("gated", 3, 4, 5, dt_softplus=True), _case("groups", 2, 6, 3, groups=2, gate=False)),
    operands=("state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias"),
    differentiable=("state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias"),
    outputs=("y", "state"),
)
