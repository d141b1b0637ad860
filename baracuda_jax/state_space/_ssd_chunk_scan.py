"""The state-space model of Mamba-2, whose heads have one rate each: products of matrices within chunks of the sequence, and
one state from chunk to chunk."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.case import Case
from .._core.compiled import compiled, full
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._activation import silu
from ._segments import segments, starts
from ._selective_arguments import of_channels, of_states


@facade_api("xla")
def ssd_chunk_scan(
    x: ArrayLike,
    dt: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    z: ArrayLike | None = None,
    dt_bias: ArrayLike | None = None,
    initial_state: ArrayLike | None = None,
    segment_ids: ArrayLike | None = None,
    *,
    chunk_size: int = 128,
    dt_softplus: bool = False,
    return_final_state: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """State-space duality: the state-space model of Mamba-2, by products of matrices within chunks.

    Formula:
        For each head with a state h of P rows and N columns, at each position l, with the step d = dt[l] + dt_bias, or
        log(1 + e^(that)) with dt_softplus: h = e^(d A) h + d x[l] B[l]^T; y[l] = h C[l] + D x[l], times z[l] sigmoid(z[l])
        where z is given. Within a chunk y[i] is the sum over j <= i of e^(A (d[j + 1] + ... + d[i])) d[j] (C[i] . B[j]) x[j]
        and what the state before the chunk gives.

    Args:
        x: floats [batch, length, heads, P], the input.
        dt: array [batch, length, heads] of x's dtype, the steps.
        A: floats [heads] of x's dtype or, for 16 bits, of float32: the rates, usually below 0.
        B: array [batch, length, groups, N] of x's dtype, how the input enters the states; neighboring heads share a group.
        C: array of B's shape and dtype, how the output is made of the states.
        D: floats [heads] or [heads, P], as A: what is added of the input. None for 0.
        z: array of x's shape and dtype, the gate; None for no gate.
        dt_bias: floats [heads], as A, added to dt. None for 0.
        initial_state: floats [batch, heads, P, N], as A, the states before. None for 0.
        segment_ids: integers [batch, length]: a run of equal ids is a segment, before which the states are 0. The initial
            state is that of the first one. None for one segment.
        chunk_size: static integer, the positions of a chunk. Memory and products within chunks grow with it, the number of
            steps from chunk to chunk falls.
        dt_softplus: whether steps are softplus of dt and its bias.
        return_final_state: also return the states after the last position.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype. With return_final_state a pair of that and the states [batch, heads, P, N], in float32
        for float16 and bfloat16.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once; factors of their products may be rounded to
        TensorFloat-32 on a GPU. Decays within a chunk are of differences of sums over it.

    Source: mamba_ssm.ops.triton.ssd_combined.mamba_chunk_scan_combined; Dao and Gu, Transformers are SSMs (2024).
    """
    op = "ssd_chunk_scan"
    x, dt = checks.floats(op, "x", x), checks.array(op, "dt", dt)
    if x.ndim != 4:
        raise ValueError(f"{op}: x must be [batch, length, heads, P], got shape {x.shape}")
    batches, length, heads, rows = x.shape
    checks.same_dtype(op, "dt", dt, "x", x)
    checks.shape(op, "dt", dt, x.shape[:3], "x's without its last dimension")
    A, dt_bias = of_states(op, "A", A, (heads,), x), of_channels(op, "dt_bias", dt_bias, (heads,), x)
    B, C = checks.array(op, "B", B), checks.array(op, "C", C)
    checks.same_dtype(op, "B", B, "x", x)
    checks.same_dtype(op, "C", C, "x", x)
    if B.ndim != 4 or B.shape[:2] != (batches, length) or (heads % B.shape[2] if B.shape[2] else heads):
        raise ValueError(
            f"{op}: B must be [batch, length, groups, N] with groups that divide the {heads} heads of x {x.shape}, got "
            f"shape {B.shape}"
        )
    checks.shape(op, "C", C, B.shape, "that of B")
    if D is None:
        D = full((heads,), 0, A.dtype)
    else:
        D = checks.array(op, "D", D)
        D = of_states(op, "D", D, (heads, rows)[: max(1, D.ndim)], x)
    if z is not None:
        z = checks.array(op, "z", z)
        checks.same_dtype(op, "z", z, "x", x)
        checks.shape(op, "z", z, x.shape, "that of x")
    state = of_channels(op, "initial_state", initial_state, (batches, heads, rows, B.shape[3]), x)
    ids = segments(op, segment_ids, (batches, length))
    chunk_size = checks.integer(op, "chunk_size", chunk_size, 1)
    softplus, save = (
        checks.flag(op, name, value)
        for name, value in (("dt_softplus", dt_softplus), ("return_final_state", return_final_state))
    )
    y, state = _scan(x, dt, A, B, C, D, z, dt_bias, state, ids, chunk_size=chunk_size, softplus=softplus)
    return (y, state) if save else y


@compiled("chunk_size", "softplus")
def _scan(x, dt, a, b, c, skip, z, dt_bias, state, segment_ids, *, chunk_size, softplus):
    dtype, length = x.dtype, x.shape[1]
    product = functools.partial(
        jnp.einsum, precision=lax.Precision.DEFAULT if dtype.itemsize == 2 else lax.Precision.HIGHEST
    )
    # The gate alone reads z, whose chunks are not needed.
    each = x, dt, b, c, starts(segment_ids) if segment_ids.shape[-1] else jnp.zeros(x.shape[:2], bool)
    run = functools.partial(_chunk, product, a, dt_bias, softplus)
    count = length // chunk_size
    parts = []
    if count:
        split = lambda v: v[:, : count * chunk_size].reshape(v.shape[0], count, chunk_size, *v.shape[2:]).swapaxes(0, 1)
        state, y = lax.scan(jax.checkpoint(run), state, jax.tree.map(split, each))
        parts.append(y.swapaxes(0, 1).reshape(x.shape[0], count * chunk_size, *x.shape[2:]))
    if length > count * chunk_size or not count:
        state, y = run(state, jax.tree.map(lambda v: v[:, count * chunk_size :], each))
        parts.append(y)
    y = jnp.concatenate(parts, 1) + (skip if skip.ndim == 2 else skip[:, None])[None, None] * wide(x)
    y = y if z is None else y * silu(wide(z))
    return y.astype(dtype), state


def _chunk(product, a, dt_bias, softplus, state, positions):
    """The state after a chunk, and y of it without D. Of heads [g, k], k of them share B and C."""
    x, dt, b, c, is_start = positions
    x, dt, b, c = map(wide, (x, dt, b, c))
    groups, length = b.shape[2], x.shape[1]
    grouped = lambda v, axis: v.reshape(
        *v.shape[:axis], groups, v.shape[axis] // max(groups, 1), *v.shape[axis + 1 :]
    )  # fmt: skip
    step = dt + dt_bias[None, None]
    step = grouped(jnp.logaddexp(step, 0) if softplus else step, 2)
    decay = jnp.cumsum(step * grouped(a, 0)[None, None], 1)  # logarithms of what is kept of the state, [b, l, g, k]
    run = jnp.cumsum(is_start, 1)  # the segment of each position, 0 being that of the state
    x, h = grouped(x, 2), grouped(state, 1)

    is_seen = (run[:, :, None] == run[:, None, :]) & jnp.tril(jnp.ones((1, length, length), bool))
    kept = _where_exp(is_seen[..., None, None], decay[:, :, None] - decay[:, None])  # [b, i, j, g, k]
    scores = product("bign,bjgn->bijg", c, b)[..., None] * kept * step[:, None]
    y = product("bijgk,bjgkp->bigkp", scores, x)
    before = _where_exp((run == 0)[..., None, None], decay)
    y = y + before[..., None] * product("bign,bgkpn->bigkp", c, h)

    if not length:
        return state, y.reshape(y.shape[0], 0, *state.shape[1:3])
    after = _where_exp((run == run[:, -1:])[..., None, None], decay[:, -1:] - decay) * step
    h = before[:, -1, ..., None, None] * h + product("bjgkp,bjgn->bgkpn", after[..., None] * x, b)
    return h.reshape(state.shape), y.reshape(*y.shape[:2], *state.shape[1:3])


def _where_exp(condition, exponent):
    """e^exponent, or 0: without the infinities of what is not taken, of which the gradient would be NaN."""
    return jnp.where(condition, jnp.exp(jnp.where(condition, exponent, 0)), 0)


def _case(name, batch, length, heads, rows, states, groups, gate=True, ids=False, by_row=False, **kwargs):
    def draw(rng):
        shape, of_b = (batch, length, heads, rows), (batch, length, groups, states)
        arrays = [rng.standard_normal(shape), rng.uniform(0.05, 1, shape[:3]), -rng.uniform(0.2, 2, heads)]
        arrays += [rng.standard_normal(of_b), rng.standard_normal(of_b)]
        arrays += [
            rng.standard_normal((heads, rows) if by_row else heads),
            rng.standard_normal(shape) if gate else None,
        ]
        arrays += [rng.uniform(0.05, 0.5, heads), rng.standard_normal((batch, heads, rows, states))]
        if ids:
            arrays += [np.sort(rng.integers(0, 4, (batch, length))).astype(np.int32)]
        return tuple(arrays)

    return Case(name, draw, kwargs)


_SSD_CHUNK_SCAN = facade(
    "ssd_chunk_scan",
    family="state_space",
    category=OpCategory.ATTENTION,
    public=ssd_chunk_scan,
    dtypes=checks.FLOATS,
    cases=(
        _case("gated", 2, 13, 4, 3, 5, 2, dt_softplus=True, chunk_size=4, return_final_state=True),
        _case("segments", 2, 11, 3, 2, 4, 1, gate=False, ids=True, by_row=True, chunk_size=4, return_final_state=True),
        _case("one chunk", 1, 7, 2, 3, 4, 2, return_final_state=True),
    ),
    operands=("x", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state", "segment_ids"),
    differentiable=("x", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state"),
    constant={"segment_ids": "ids are integers"},
    outputs=("y", "final_state"),
)
