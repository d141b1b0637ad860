"""A linear layer whose kernel is sharded by columns: each device computes some of the features."""

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
from ..gemm._arguments import known_precision
from . import _arguments
from ._product import multiplied, plus, rounds_first


@facade_api("cublaslt")
def column_parallel_linear(
    x: ArrayLike,
    kernel: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    axis_name: Hashable | None = None,
    gather_output: bool = False,
    sequence_parallel: bool = False,
    sequence_axis: int = -2,
    precision: Any = None,
    implementation: Implementation = None,
) -> Array:
    """Linear layer whose kernel is sharded by columns over the devices of a mesh axis, for use inside jax.shard_map.

    Formula:
        y = x kernel + bias, of which each device computes the columns of its kernel. dx is the sum over the devices of
        dy kernel^T, dkernel = x^T dy and dbias = the sum of dy over rows, of the device's columns of dy.

    Args:
        x: floats [..., K], the same on all devices; with sequence_parallel, the device's part of the sequence.
        kernel: matrix [K, N / devices] of x's dtype, the device's columns.
        bias: vector [N / devices] of x's dtype, or float32 with half precisions; None for 0.
        axis_name: name of the mesh axis, or a tuple of names; None for one device, which has the whole kernel.
        gather_output: static, whether every device gets all columns of y: one all-gather, and none in the gradient.
        sequence_parallel: static, whether x is sharded along the sequence: one all-gather, whose gradient is a
            reduce-scatter instead of the all-reduce of dx.
        sequence_axis: static integer, the axis of x along which sequence_parallel gathers; not the last.
        precision: that of jax.lax.dot_general: None, "default", "high", "highest", a jax.lax.Precision or an algorithm.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array [..., N / devices] of x's dtype, which varies over the axis; with gather_output [..., N], the same on all
        devices.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: products of float16 and bfloat16 are accumulated in float32 and rounded. A bias of x's dtype is added to what
    is rounded, one of float32 before. dx is summed over the devices in x's dtype.

    Source: Shoeybi et al., Megatron-LM (arXiv 1909.08053); Korthikanti et al. (arXiv 2205.05198) for sequence_parallel.
    """
    op = "column_parallel_linear"
    mesh_axis.size(op, axis_name)
    x, kernel, bias = _arguments.layer(op, x, kernel, bias)
    return _column(
        x, kernel, bias, axis_name=axis_name, gather_output=checks.flag(op, "gather_output", gather_output),
        sequence_axis=_arguments.sequence(op, x, sequence_parallel, sequence_axis),
        precision=known_precision(op, precision),
    )  # fmt: skip


@compiled("axis_name", "gather_output", "sequence_axis", "precision")
def _column(x, kernel, bias, *, axis_name, gather_output, sequence_axis, precision):
    if sequence_axis is not None and axis_name is not None:
        x = jax.lax.all_gather(mesh_axis.varying(x, axis_name), axis_name, axis=sequence_axis, tiled=True)
    y = plus(multiplied(x, kernel, axis_name, precision, rounds_first(x, bias)), bias).astype(x.dtype)
    return mesh_axis.whole(y, axis_name, y.ndim - 1) if gather_output else y


def _case(name, *shapes, **kwargs):
    return Case(name, lambda rng: tuple(rng.standard_normal(shape) for shape in shapes), kwargs)


facade(
    "column_parallel_linear",
    family="distributed",
    category=OpCategory.DISTRIBUTED,
    public=column_parallel_linear,
    cases=(
        _case("a bias", (5, 7), (7, 4), (4,)),
        _case("sequences", (2, 3, 7), (7, 4), (4,), sequence_parallel=True, gather_output=True),
        _case("a vector", (7,), (7, 3), (3,)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "kernel", "bias"),
    differentiable=("x", "kernel", "bias"),
    own_rules=True,
)
