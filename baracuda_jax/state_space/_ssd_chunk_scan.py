"""The state-space model of Mamba-2, whose heads have one rate each: products of matrices within chunks of the sequence, and
one state from chunk to chunk."""

import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core import prefer as preference
from .._core.case import Case
from .._core.compiled import compiled, full
from .._core.facade import facade_api
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _ssd_chunk_scan_bodies as bodies
from ._segments import segments
from ._selective_arguments import of_channels, of_states


@facade_api("xla", has_kernels=True)
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
        chunk_size: static integer, the positions of a chunk in plain JAX. Memory and products within chunks grow with it,
            the number of steps from chunk to chunk falls. The kernel's chunks are its own.
        dt_softplus: whether steps are softplus of dt and its bias.
        return_final_state: also return the states after the last position.
        implementation: "native" (the kernel, where N is at most 128), "xla" (plain JAX), a PlanPreference, or None for
            automatic.

    Returns:
        Array of x's shape and dtype. With return_final_state a pair of that and the states [batch, heads, P, N], in float32
        for float16 and bfloat16.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. On a GPU the factors of products may be rounded
        to TensorFloat-32 in plain JAX, and to bfloat16 in the kernel for it. Decays within a chunk are of differences of
        sums over it. Sums are in a fixed order, without atomics.

    Source: mamba_ssm.ops.triton.ssd_combined.mamba_chunk_scan_combined; Dao and Gu, Transformers are SSMs (2024).
    """
    op = "ssd_chunk_scan"
    arrays, params = _arguments(
        op, x, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, chunk_size, dt_softplus
    )  # fmt: skip
    save = checks.flag(op, "return_final_state", return_final_state)
    if not _has_kernel(op, implementation, arrays):
        found = _plain(*arrays, **params)
        return found if save else found[0]
    found = _SSD_CHUNK_SCAN(*arrays, **params, save=save, implementation=implementation)
    return tuple(found[:2]) if save else found


@facade_api("xla", has_kernels=True)
def ssd_chunk_scan_backward(
    x: ArrayLike,
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
    chunk_size: int = 128,
    dt_softplus: bool = False,
    implementation: Implementation = None,
) -> tuple[Array | None, ...]:
    """The gradient of `ssd_chunk_scan`: see its formula. The states are computed here too.

    Args:
        x, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, chunk_size, dt_softplus, implementation: as in
            `ssd_chunk_scan`.
        dy: the cotangent of the result, of x's shape and dtype.
        dfinal: floats [batch, heads, P, N], the cotangent of the final state; None for 0.

    Returns:
        The cotangents of x, dt, A, B, C, D, z, dt_bias and initial_state, those of A, D, dt_bias and the state in float32
        for float16 and bfloat16; None for a z that is not given. That of D has its shape, or [heads] for None.
    """
    op = "ssd_chunk_scan_backward"
    arrays, params = _arguments(
        op, x, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, chunk_size, dt_softplus
    )  # fmt: skip
    dy = checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", arrays[0])
    checks.shape(op, "dy", dy, arrays[0].shape, "that of x")
    dfinal = of_channels(op, "dfinal", dfinal, arrays[8].shape, arrays[0])
    if _has_kernel(op, implementation, arrays):
        states = _SSD_CHUNK_SCAN(*arrays, **params, save=True, implementation=implementation)[2]
        found = list(_SSD_CHUNK_SCAN.vjp(*arrays, states, dy, dfinal, **params, implementation=implementation))
    else:
        found = list(_plain_backward(*arrays, dy, dfinal, **params))
    if D is None or np.ndim(D) == 1:
        found[5] = found[5].squeeze(1)
    if z is None:
        found[6] = None
    return tuple(found)


def _arguments(op, x, dt, A, B, C, D, z, dt_bias, initial_state, segment_ids, chunk_size, dt_softplus):
    """The primitive's operands and parameters."""
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
        D = full((heads, 1), 0, A.dtype)
    else:
        D = checks.array(op, "D", D)
        D = of_states(op, "D", D, (heads, rows)[: max(1, D.ndim)], x)
        D = D[:, None] if D.ndim == 1 else D
    if z is None:
        z = full((*x.shape[:3], 0), 0, x.dtype)
    else:
        z = checks.array(op, "z", z)
        checks.same_dtype(op, "z", z, "x", x)
        checks.shape(op, "z", z, x.shape, "that of x")
    state = of_channels(op, "initial_state", initial_state, (batches, heads, rows, B.shape[3]), x)
    ids = segments(op, segment_ids, (batches, length))
    chunk_size = checks.integer(op, "chunk_size", chunk_size, 1)
    softplus = checks.flag(op, "dt_softplus", dt_softplus)
    return (x, dt, A, B, C, D, z, dt_bias, state, ids), {"chunk_size": chunk_size, "softplus": softplus}


def _has_kernel(op, implementation, arrays):
    """Whether there is one for states of so many columns. A call that asks for one where there is none is refused."""
    columns = arrays[3].shape[-1]
    if isinstance(columns, int) and columns <= bodies.MOST_COLUMNS:
        return True
    if preference.demands_native(op, implementation):
        raise ValueError(
            f"{op}: implementation='native', but there are kernels for states of at most {bodies.MOST_COLUMNS} columns "
            f"alone, got {columns}"
        )
    return False


_plain = compiled("chunk_size", "softplus")(bodies.outputs)


@compiled("chunk_size", "softplus")
def _plain_backward(*arrays, **params):
    return bodies.backward(*arrays[:10], None, *arrays[10:], **params)


def _labels(names, types, params):
    """Sequences and heads may be cut; with several groups of B and C, where these are. The length has two labels: else the
    compiler would cut the results too."""
    known = dict(zip(names, types, strict=True))
    group = "h" if known["B"].shape[-2] > 1 else "one"
    core = {
        "dt": ("b", "l", "h"),
        "A": ("h",),
        "B": ("b", "l", group, "n"),
        "C": ("b", "l", group, "n"),
        "D": ("h", "p" if known["D"].shape[-1] == known["x"].shape[-1] else "one"),
        "dt_bias": ("h",),
        "z": ("b", "l", "h", "p" if known["z"].shape[-1] else "none"),
        "initial_state": ("b", "h", "p", "n"),
        "final_state": ("b", "h", "p", "n"),
        "states": ("b", "h", "chunk", "p", "n"),
        "segment_ids": ("b", "s"),
        "y": ("b", "m", "h", "p"),
    }

    def of(name, rank):
        labels = core.get(name, ("b", "l", "h", "p"))
        return (*(f"batch{i}" for i in range(rank - len(labels))), *labels)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


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


_SSD_CHUNK_SCAN = declare(
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
    results=("y", "final_state", "states"),
    outputs=("y", "final_state"),
    differentiable=("x", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state"),
    constant={"segment_ids": "ids are integers"},
    residuals=("x", "dt", "A", "B", "C", "D", "z", "dt_bias", "initial_state", "segment_ids", "states"),
    batched=as_they_are,
    regime=bodies.regime,
    cut=Partition(_labels, whole=frozenset({"l", "m", "p", "n", "s", "one", "none", "chunk"}), plain=True),
    forward=Body(bodies.forward, bodies.forward_native),
    tangent=Body(bodies.tangent),
    backward=Body(bodies.backward, bodies.backward_native),
    kernels={"forward": ("ssd_chunk_scan",), "backward": ("ssd_chunk_scan_backward",)},
    library="xla",
)
