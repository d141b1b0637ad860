"""A linear layer whose kernel is sharded by rows: each device has a term of every feature, and these are added."""

from collections.abc import Hashable
from typing import Any

import jax
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, mesh_axis
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ..gemm._arguments import known_precision
from . import _arguments
from ._product import multiplied, plus, rounds_first


@facade_api("cublaslt")
def row_parallel_linear(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    axis_name: Hashable | None = None,
    input_is_parallel: bool = True,
    sequence_parallel: bool = False,
    sequence_axis: int = -2,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Linear layer whose kernel is sharded by rows over the devices of a mesh axis, for use inside jax.shard_map.

    Formula:
        y = the sum over the devices of x kernel, plus bias. dx = dy kernel^T and dkernel = x^T dy, of the device's
        columns of x and rows of kernel, and dbias = the sum of dy over rows.

    Args:
        x: floats [..., K / devices], the device's columns, as `column_parallel_linear` gives them; [..., K] if not
            input_is_parallel.
        kernel: matrix [K / devices, N] of x's dtype, the device's rows.
        bias: vector [N] of x's dtype, or float32 with half precisions, the same on all devices: it is added once, to
            the sum; None for 0.
        axis_name: name of the mesh axis, or a tuple of names; None for one device, which has the whole kernel.
        input_is_parallel: static; if False, x is whole and the same on all devices, and each takes its columns. dx is
            then summed over the devices.
        sequence_parallel: static, whether each device gets its part of the sequence: a reduce-scatter instead of an
            all-reduce, whose gradient is an all-gather.
        sequence_axis: static integer, the axis of x along which sequence_parallel scatters; not the last. The devices
            divide its length.
        precision: that of jax.lax.dot_general: None, "default", "high", "highest", a jax.lax.Precision or an algorithm.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [..., N] of x's dtype, the same on all devices; with sequence_parallel the device's part of it, which
        varies over the axis.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are accumulated in float32. With an axis, each device's product is rounded to x's
    dtype, so that half the bytes are communicated. A bias of x's dtype is added to what is rounded; one of float32 to the
    sum in float32, which without an axis is not rounded before.

    Source: Shoeybi et al., Megatron-LM (arXiv 1909.08053); Korthikanti et al. (arXiv 2205.05198) for sequence_parallel.
    """
    op = "row_parallel_linear"
    devices = mesh_axis.size(op, axis_name)
    is_whole = not checks.flag(op, "input_is_parallel", input_is_parallel)
    x, kernel, bias = _arguments.layer(op, x, kernel, bias, parts=devices if is_whole else 1)
    return _row(
        x, kernel, bias, axis_name=axis_name, is_whole=is_whole,
        sequence_axis=_arguments.sequence(op, x, sequence_parallel, sequence_axis, parts=devices),
        precision=known_precision(op, precision),
    )  # fmt: skip


@compiled("axis_name", "is_whole", "sequence_axis", "precision")
def _row(x, kernel, bias, *, axis_name, is_whole, sequence_axis, precision):
    if is_whole:
        x = mesh_axis.own(x, axis_name, x.ndim - 1)
    rounds = rounds_first(x, bias)
    y = multiplied(x, kernel, axis_name, precision, axis_name is not None or rounds)
    if axis_name is not None:
        y = _summed(y, axis_name, sequence_axis)
    return plus(y if rounds else wide(y), bias).astype(x.dtype)


def _summed(y, axis_name, sequence_axis):
    return jax.lax.psum(y, axis_name) if sequence_axis is None else mesh_axis.summed_parts(y, axis_name, sequence_axis)


def _case(name, *shapes, **kwargs):
    return Case(name, lambda rng: tuple(rng.standard_normal(shape) for shape in shapes), kwargs)


facade(
    "row_parallel_linear",
    family="distributed",
    category=OpCategory.DISTRIBUTED,
    public=row_parallel_linear,
    cases=(
        _case("a bias", (5, 7), (7, 4), (4,)),
        _case("sequences", (2, 3, 7), (7, 4), (4,), sequence_parallel=True, input_is_parallel=False),
        _case("a vector", (7,), (7, 3), (3,)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "kernel", "bias"),
    differentiable=("x", "kernel", "bias"),
    own_rules=True,
)
