"""The causal convolution of each channel by itself."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled, full
from .._core.data_format import image
from .._core.op import Body, as_they_are, declare
from .._core.partition import Partition
from .._core.sku import OpCategory
from .._core.types import Implementation
from . import _causal_conv1d_bodies as bodies
from ._segments import elements_before, segments, starts

WIDTHS = (2, 8)


@api
def causal_conv1d(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    initial_state: ArrayLike | None = None,
    segment_ids: ArrayLike | None = None,
    *,
    activation: Literal["silu"] | None = None,
    return_final_state: bool = False,
    data_format: Literal["NCL", "NLC"] = "NCL",
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Causal depthwise convolution: each channel of a sequence, from the elements up to each one.

    Formula:
        z[l] = bias + sum over j < width of weight[width - 1 - j] x[l - j], for each channel; y = z, or z sigmoid(z) with
        activation="silu". x[-1], ..., x[1 - width] are the state's elements, the last first.
        With dz = dy, or dy times the slope of the activation: dx[l] = sum over j of weight[width - 1 - j] dz[l + j],
        dweight[width - 1 - j] = sum over batches and l of dz[l] x[l - j], and dbias = sum of dz.

    Args:
        x: floats [B, D, L], or [B, L, D] with data_format="NLC": D channels of sequences of length L. The batch may be left
            out.
        weight: array [D, width] of x's dtype, with a width of 2 to 8. The last is that of the element itself.
        bias: array [D] of x's dtype, None for 0.
        initial_state: array [B, D, width - 1] of x's dtype, in both layouts: what is before x. None for 0.
        segment_ids: integers [B, L]: a run of equal ids is a segment, which sees nothing before it. The state is part of
            the first one. None for one segment.
        activation: "silu", or None.
        return_final_state: also return the state after x, the initial one of what follows.
        data_format: "NCL", or "NLC" with the channels last.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array of x's shape and dtype. With return_final_state a pair of that and the state [B, D, width - 1]: the last
        elements of the state and x, with 0 for those of other segments than the last.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once. Gradients of weights are added in a fixed
        order, without atomics: results are the same bits every time.

    Source: causal_conv1d.causal_conv1d_fn; Gu and Dao, Mamba: Linear-Time Sequence Modeling with Selective
    State Spaces (2023).
    """
    op = "causal_conv1d"
    arrays, params, is_single = _arguments(op, x, weight, bias, initial_state, segment_ids, activation, data_format)
    y = _CAUSAL_CONV1D(*arrays, **params, implementation=implementation)
    if not checks.flag(op, "return_final_state", return_final_state):
        return y.squeeze(0) if is_single else y
    state = _final_state(arrays[0], arrays[3], arrays[4], channels_last=params["channels_last"])
    return (y.squeeze(0), state.squeeze(0)) if is_single else (y, state)


@api
def causal_conv1d_backward(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    initial_state: ArrayLike | None,
    segment_ids: ArrayLike | None,
    dy: ArrayLike,
    *,
    activation: Literal["silu"] | None = None,
    data_format: Literal["NCL", "NLC"] = "NCL",
    implementation: Implementation = None,
) -> tuple[Array, ...]:
    """The gradient of `causal_conv1d`: see its formula.

    Args:
        x, weight, bias, initial_state, segment_ids, activation, data_format, implementation: as in `causal_conv1d`.
        dy: the cotangent of the result, of x's shape and dtype.

    Returns:
        The cotangents of x, weight, bias and initial_state.
    """
    op = "causal_conv1d_backward"
    arrays, params, is_single = _arguments(op, x, weight, bias, initial_state, segment_ids, activation, data_format)
    dy = checks.array(op, "dy", dy)
    checks.same_dtype(op, "dy", dy, "x", arrays[0])
    checks.shape(op, "dy", dy, arrays[0].shape[1:] if is_single else arrays[0].shape, "that of x")
    dy = jnp.expand_dims(dy, 0) if is_single else dy
    dx, dweight, dbias, dstate = _CAUSAL_CONV1D.vjp(*arrays, dy, **params, implementation=implementation)
    return (dx.squeeze(0), dweight, dbias, dstate.squeeze(0)) if is_single else (dx, dweight, dbias, dstate)


def weights(op, weight, bias, x, channels):
    """The weights and the bias, 0 where there is none, checked against x's channels."""
    weight = checks.array(op, "weight", weight)
    checks.same_dtype(op, "weight", weight, "x", x)
    low, high = WIDTHS
    if weight.ndim != 2 or weight.shape[0] != channels or not low <= weight.shape[1] <= high:
        raise ValueError(
            f"{op}: weight must be [D, width], for the {channels} channels of x and with a width of {low} to {high}, got "
            f"shape {weight.shape}"
        )
    return weight, optional(op, "bias", bias, (channels,), x.dtype, "x")


def optional(op, name, value, shape, dtype, of):
    """An array of a shape and dtype, or zeros."""
    if value is None:
        return full(shape, 0, dtype)
    value = checks.array(op, name, value)
    if value.dtype != dtype:
        raise TypeError(f"{op}: {name} must have the dtype of {of}, {jnp.dtype(dtype).name}, got {value.dtype.name}")
    checks.shape(op, name, value, shape, "as the other arguments say")
    return value


def _arguments(op, x, weight, bias, initial_state, segment_ids, activation, data_format):
    x, channels_last = image(op, x, 1, data_format)
    is_single = x.ndim == 2
    if is_single:
        x = jnp.expand_dims(x, 0)
        initial_state, segment_ids = (
            None if a is None else jnp.expand_dims(checks.array(op, name, a), 0)
            for name, a in (("initial_state", initial_state), ("segment_ids", segment_ids))
        )
    batches, length, channels = x.shape if channels_last else (x.shape[0], x.shape[2], x.shape[1])
    weight, bias = weights(op, weight, bias, x, channels)
    state = optional(op, "initial_state", initial_state, (batches, channels, weight.shape[1] - 1), x.dtype, "x")
    silu = checks.choice(op, "activation", activation, ("silu", None)) == "silu"
    arrays = x, weight, bias, state, segments(op, segment_ids, (batches, length))
    return arrays, {"silu": silu, "channels_last": channels_last}, is_single


@compiled("channels_last")
def _final_state(x, initial_state, segment_ids, *, channels_last):
    history = initial_state.shape[-1]
    length = x.shape[-2] if channels_last else x.shape[-1]
    last = lax.slice_in_dim(x, max(0, length - history), length, axis=1 if channels_last else 2)
    state = jnp.concatenate([initial_state, last.mT if channels_last else last], -1)[..., -history:]
    if not segment_ids.shape[-1]:
        return state
    before = elements_before(starts(segment_ids), history)[..., -1:]
    return jnp.where(jnp.arange(history)[::-1] <= before, state.swapaxes(0, 1), 0).swapaxes(0, 1)


def _labels(names, types, params):
    """Sequences and channels may be cut. The length has two labels: else the compiler would cut the results too."""

    def of(name, rank):
        if name in ("weight", "bias"):
            core = ("d", "w")[: 1 + (name == "weight")]
        elif name == "initial_state":
            core = ("b", "d", "k")
        elif name == "segment_ids":
            core = ("b", "s")
        else:
            along = "m" if name == "y" else "l"
            core = ("b", along, "d") if params["channels_last"] else ("b", "d", along)
        return (*(f"batch{i}" for i in range(rank - len(core))), *core)

    return [of(name, x.ndim) for name, x in zip(names, types, strict=True)]


def _case(name, batch, channels, length, width, ids=False, state=True, **kwargs):
    def draw(rng):
        shape = (length, channels) if kwargs.get("data_format") == "NLC" else (channels, length)
        arrays = [rng.standard_normal(s) for s in ((*batch, *shape), (channels, width), (channels,))]
        arrays += [rng.standard_normal((*batch, channels, width - 1))] if state else [None] if ids else []
        return (*arrays, np.sort(rng.integers(0, 4, (*batch, length))).astype(np.int32)) if ids else tuple(arrays)

    return Case(name, draw, kwargs)


_CAUSAL_CONV1D = declare(
    "causal_conv1d",
    family="state_space",
    category=OpCategory.ATTENTION,
    public=causal_conv1d,
    dtypes=checks.FLOATS,
    cases=(
        _case("silu", (2,), 5, 24, 4, activation="silu"),
        _case("channels last", (2,), 16, 11, 3, activation="silu", data_format="NLC"),
        _case("segments", (3,), 4, 16, 4, ids=True),
        _case("segments, channels last", (2,), 6, 19, 2, ids=True, activation="silu", data_format="NLC"),
        _case("wide", (), 3, 32, 7, activation="silu"),
    ),
    operands=("x", "weight", "bias", "initial_state", "segment_ids"),
    differentiable=("x", "weight", "bias", "initial_state"),
    constant={"segment_ids": "ids are integers"},
    residuals=("x", "weight", "bias", "initial_state", "segment_ids"),
    batched=as_they_are,
    regime=bodies.regime,
    cut=Partition(_labels, whole=frozenset("lmwks"), plain=True),
    forward=Body(bodies.forward, bodies.forward_native),
    tangent=Body(bodies.tangent, bodies.tangent_native),
    backward=Body(bodies.backward, bodies.backward_native),
    kernels={
        "forward": ("causal_conv1d",),
        "tangent": ("causal_conv1d",),
        "backward": ("causal_conv1d_backward",),
    },
)
