"""The arguments of convolutions: x with a batch dimension and its channels first, windows, and the way back of a result."""

import operator
from typing import Literal, TypeAlias

import jax.numpy as jnp
import numpy as np

from .._core import checks, data_format, explicit
from .._core.types import Integers

Padding: TypeAlias = int | Integers | tuple[tuple[int, int], ...] | Literal["same", "valid"]


def image(op, x, rank, form):
    """x as [N, C, *spatial], and the way back of a result of that form."""
    x, is_last = data_format.image(op, x, rank, form)
    is_single = x.ndim == rank + 1
    x = x[None] if is_single else x

    def back(y):
        y = jnp.moveaxis(y, 1, -1) if is_last else y
        return y[0] if is_single else y

    return jnp.moveaxis(x, -1, 1) if is_last else x, back


def parameters(op, x, weight, bias, groups, is_transposed=False):
    """The weights [outer, inner / groups, *window], checked against x's channels; bias as an array or None; groups."""
    rank = x.ndim - 2
    groups = checks.integer(op, "groups", groups, 1)
    weight = checks.array(op, "weight", weight)
    checks.same_dtype(op, "weight", weight, "x", x)
    names = "[Cin, Cout / groups, *window]" if is_transposed else "[Cout, Cin / groups, *window]"
    if weight.ndim != rank + 2 or not all(weight.shape[2:]):
        raise ValueError(
            f"{op}: weight must be {names} with {rank} window sizes of at least 1, got shape {weight.shape}"
        )
    if x.shape[1] % groups or weight.shape[0] % groups:
        raise ValueError(
            f"{op}: groups must divide the {x.shape[1]} channels of x and the {weight.shape[0]} of weight, got {groups}"
        )
    channels, found = weight.shape[0] if is_transposed else weight.shape[1] * groups, x.shape[1]
    if channels != found:
        raise ValueError(
            f"{op}: weight must be {names} for the {found} channels of x and {groups} groups, got shape {weight.shape}"
        )
    if bias is not None:
        bias = checks.array(op, "bias", bias)
        checks.same_dtype(op, "bias", bias, "x", x)
        outputs = weight.shape[1] * groups if is_transposed else weight.shape[0]
        checks.shape(op, "bias", bias, (outputs,), "that of the channels of the result")
    return weight, bias, groups


def pairs(op, padding, window, strides, dilation):
    """How many zeros are before and after each spatial axis."""
    if isinstance(padding, str):
        checks.choice(op, "padding", padding, ("same", "valid"))
        if padding == "valid":
            return ((0, 0),) * len(window)
        if max(strides) > 1:
            raise ValueError(f"{op}: padding must be numbers or 'valid' where strides are not 1, got 'same'")
        zeros = [d * (k - 1) for k, d in zip(window, dilation, strict=True)]
        return tuple((n // 2, n - n // 2) for n in zeros)
    if isinstance(padding, tuple | list) and any(isinstance(p, tuple | list | np.ndarray) for p in padding):
        if len(padding) != len(window):
            raise ValueError(f"{op}: padding must have a pair for each of {len(window)} spatial axes, got {padding}")
        return tuple(checks.integers(op, f"padding[{i}]", p, 2, 0) for i, p in enumerate(padding))
    return tuple((p, p) for p in checks.integers(op, "padding", padding, len(window), 0))


def check_window(op, x, window, padding, dilation):
    spatial = x.shape[2:]
    padded = [n + sum(p) for n, p in zip(spatial, padding, strict=True)]
    spans = [d * (k - 1) + 1 for k, d in zip(window, dilation, strict=True)]
    if any(map(operator.gt, spans, padded)):
        raise ValueError(
            f"{op}: weight must have windows that fit into x's spatial shape {spatial} with padding {padding}, got windows "
            f"{window} with dilation {dilation}"
        )


def grouped(weight, groups):
    """[groups, outer / groups, ...]"""
    return explicit.reshape(weight, groups, weight.shape[0] // groups, *weight.shape[1:])
