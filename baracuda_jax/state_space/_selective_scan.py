"""The selective scan of a state-space model whose steps, inputs and outputs depend on the sequence."""

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _selective_scan_bodies as bodies
from ._segments import segments
from ._selective_arguments import of_channels, of_states, shared


@api
def selective_scan(
    u: ArrayLike,
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
    dt_softplus: bool = False,
    return_final_state: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Selective scan: the state-space model of Mamba, whose steps, inputs and outputs depend on the sequence.

    Formula:
        For each channel with N states h, at each position l, with the step d = dt[l] + dt_bias, or log(1 + e^(that)) with
        dt_softplus: h = e^(d A) h + d u[l] B[:, l]; y[l] = sum over n of C[n, l] h[n] + D u[l], times z[l] sigmoid(z[l])
        where z is given. With dh the cotangent of h after l, that of y[l] times C added, kept = e^(d A) h before:
        dA = sum of d dh kept, dB[:, l] = sum over channels of dh d u, dC[:, l] = sum over channels of dy h,
        dd = sum over n of dh (A kept + B u), du = sum over n of dh d B + dy D; dh e^(d A) is the cotangent of h before.

    Args:
        u: floats [batch, channels, length], the input.
        dt: array of u's shape and dtype, the steps.
        A: floats [channels, N] of u's dtype or, for 16 bits, of float32: the rates, usually below 0. N is at most 256.
        B: array [batch, N, length] of u's dtype, how the input enters the states; or [batch, groups, N, length],
            where so many groups of neighboring channels have their own.
        C: array of B's shape and dtype, how the output is made of the states.
        D: floats [channels], as A: what is added of the input. None for 0.
        z: array of u's shape and dtype, the gate; None for no gate.
        dt_bias: floats [channels], as A, added to dt. None for 0.
        initial_state: floats [batch, channels, N], as A, the states before. None for 0.
        segment_ids: integers [batch, length]: a run of equal ids is a segment, before which the states are 0. The
            initial state is that of the first one. None for one segment.
        dt_softplus: whether steps are softplus of dt and its bias.
        return_final_state: also return the states after the last position.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of u's shape and dtype. With return_final_state a pair of that and the states [batch, channels, N], in float32
        for float16 and bfloat16.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. softplus is exact for all steps. Sums over
        states, channels and positions are in a fixed order, without atomics: results are the same bits every time.

    Source: mamba_ssm.ops.selective_scan_interface.selective_scan_fn; Gu and Dao, Mamba: Linear-Time Sequence Modeling with
        Selective State Spaces (2023).
    """
    op = "selective_scan"
    arrays, params, _ = _arguments(op, u, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, dt_softplus)
    save = checks.flag(op, "return_final_state", return_final_state)
    found = _SELECTIVE_SCAN(*arrays, **params, save=save, implementation=implementation)
    return tuple(found[:2]) if save else found


@api
def selective_scan_backward(
    u: ArrayLike,
    dt: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None,
    z: ArrayLike | None,
    dt_bias: ArrayLike | None,
    initial_state: ArrayLike | None,
    segment_ids: ArrayLike | None,
    dy: ArrayLike,
    dfinal: ArrayLike | None = None,
    *,
    dt_softplus: bool = False,
    implementation: Implementation = None,
) -> tuple[Array | None, ...]:
    """The gradient of `selective_scan`: see its formula. The states are computed here too.

    Args:
        u, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, dt_softplus, implementation: as in `selective_scan`.
        dy: the cotangent of the result, of u's shape and dtype.
        dfinal: floats [batch, channels, N], the cotangent of the final state; None for 0.

    Returns:
        The cotangents of u, dt, A, B, C, D, z, dt_bias and initial_state, those of A, D, dt_bias and the state in float32
        for float16 and bfloat16; None for a z that is not given.
    """
    op = "selective_scan_backward"
    arrays, params, has_groups = _arguments(op, u, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, dt_softplus)
    dy = checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "u", arrays[0])
    checks.shape(op, "dy", dy, arrays[0].shape, "that of u")
    if dfinal is not None:
        dfinal = of_states(op, "dfinal", dfinal, arrays[8].shape, arrays[0])
    states = _SELECTIVE_SCAN(*arrays, **params, save=True, implementation=implementation)[2]
    found = list(_SELECTIVE_SCAN.vjp(*arrays, states, dy, dfinal, **params, implementation=implementation))
    if not has_groups:
        found[3], found[4] = found[3].squeeze(1), found[4].squeeze(1)
    if z is None:
        found[6] = None
    return tuple(found)


def _arguments(op, u, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, dt_softplus):
    """The primitive's operands and parameters, and whether B and C have groups."""
    u = checks.floats(op, "u", u)
    if u.ndim != 3:
        raise ValueError(f"{op}: u must be [batch, channels, length], got shape {u.shape}")
    batches, channels, length = u.shape
    dt = checks.array(op, "dt", dt)
    checks.same_dtype(op, "dt", dt, "u", u)
    checks.shape(op, "dt", dt, u.shape, "that of u")
    A = of_states(op, "A", A, (channels, None), u)
    states = A.shape[1]
    if states > bodies.MOST_STATES:
        raise ValueError(f"{op}: A must have at most {bodies.MOST_STATES} states, got {states}")
    B = shared(op, "B", B, (batches, channels, states, (length,)), u)
    C = shared(op, "C", C, (batches, channels, states, (length,)), u)
    if B[0].shape != C[0].shape:
        raise ValueError(f"{op}: C must have the shape of B, {B[0].shape}, got {C[0].shape}")
    if z is None:
        gate = of_channels(op, "z", None, (batches, channels, 0), u, u.dtype)
    else:
        gate = checks.array(op, "z", z)
        checks.same_dtype(op, "z", gate, "u", u)
        checks.shape(op, "z", gate, u.shape, "that of u")
    D, dt_bias = of_channels(op, "D", D, (channels,), u), of_channels(op, "dt_bias", dt_bias, (channels,), u)
    state = of_channels(op, "initial_state", initial_state, (batches, channels, states), u)
    ids = segments(op, segment_ids, (batches, length))
    params = {"softplus": checks.flag(op, "dt_softplus", dt_softplus)}
    return (u, dt, A, B[0], C[0], D, gate, dt_bias, state, ids), params, B[1]


def _labels(names, types, params):
    """Sequences and channels may be cut; with several groups of B and C, where these are. The length has two labels:
    else the compiler would cut the results too."""
    known = dict(zip(names, types, strict=True))
    groups = known["B"].shape[-3]
    group = "d" if groups > 1 else "one"
    core = {
        "A": ("d", "n"),
        "B": ("b", group, "n", "l"),
        "C": ("b", group, "n", "l"),
        "D": ("d",),
        "dt_bias": ("d",),
        "z": ("b", "d", "l" if known["z"].shape[-1] else "none"),
        "initial_state": ("b", "d", "n"),
        "final_state": ("b", "d", "n"),
        "states": ("b", "d", "chunk", "n"),
        "segment_ids": ("b", "s"),
        "y": ("b", "d", "m"),
    }

    def of(name, rank):
        labels = core.get(name, ("b", "d", "l"))
        return (*(f"batch{i}" for i in range(rank - len(labels))), *labels)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _case(name, batch, channels, length, states, groups=None, gate=True, ids=False, **kwargs):
    def draw(rng):
        shape, of_b = (batch, channels, length), (batch, *(() if groups is None else (groups,)), states, length)
        arrays = [rng.standard_normal(shape), rng.uniform(0.05, 1, shape), -rng.uniform(0.2, 2, (channels, states))]
        arrays += [rng.standard_normal(of_b), rng.standard_normal(of_b), rng.standard_normal(channels)]
        arrays += [rng.standard_normal(shape) if gate else None, rng.uniform(0.05, 0.5, channels)]
        arrays += [rng.standard_normal((batch, channels, states))]
        if ids:
            arrays += [np.sort(rng.integers(0, 4, (batch, length))).astype(np.int32)]
        return tuple(arrays)

    return Case(name, draw, kwargs)


_SELECTIVE_SCAN = declare(
    "selective_scan",
    family="state_space",
    category=OpCategory.ATTENTION,
    public=selective_scan,
    dtypes=checks.FLOATS,
    cases=(
        _case("gated", 2, 3, 20, 4, dt_softplus=True),
        _case("groups and segments", 2, 4, 37, 3, groups=2, ids=True, return_final_state=True),
        _case("no gate", 1, 5, 70, 2, groups=1, gate=False, dt_softplus=True, return_final_state=True),
    ),
    operands=("u", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state", "segment_ids"),
    results=("y", "final_state", "states"),
    outputs=("y", "final_state"),
    differentiable=("u", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state"),
    constant={"segment_ids": "ids are integers"},
    residuals=("u", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state", "segment_ids", "states"),
    batched=as_they_are,
    regime=bodies.regime,
    cut=Partition(_labels, whole=frozenset({"l", "m", "n", "s", "one", "none", "chunk"}), plain=True),
    forward=Body(bodies.forward, bodies.forward_native),
    tangent=Body(bodies.tangent, bodies.tangent_native),
    backward=Body(bodies.backward, bodies.backward_native),
    kernels={
        "forward": ("selective_scan",),
        "tangent": ("linear_scan",),
        "backward": ("selective_scan_backward",),
    },
)
