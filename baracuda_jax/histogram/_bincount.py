"""How often each id is there."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.kernel import kernel
from .._core.op import Body, declare
from .._core.types import Implementation
from ..segment import segment_sum
from ..segment._kernels import kernel_ids
from ..segment._references import count
from ._arguments import vector
from ._family import FAMILY
from ._partition import counts_are_added


@api
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    implementation: Implementation = None,
) -> Array:
    """Count of each id in an array, or sum of its weights.

    Formula:
        y[b] = the number of elements with x == b, or the sum of their weights.

    Args:
        x: integers or bool, [n]. Those outside [0, length), negative ones too, are dropped.
        weights: array of x's shape and a float or integer type; then the counts are sums of weights.
        minlength: static integer, the smallest length where `length` is not given.
        length: static integer, the length of the result; by default max(x) + 1 or minlength, which is computed from the
            values and must therefore be given under jit.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        int32 array [length], or one of weights' dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: counts are exact. Sums of weights are those of `segment_sum`, which has a gradient in the weights: float16 and
    bfloat16 accumulate in float32, integers wrap, and results are the same bits every time.

    Source: jax.numpy.bincount; torch.bincount.
    """
    op = "bincount"
    ids = vector(op, "x", x, (*checks.INTEGERS, "bool"))
    checks.positions(op, "x", ids.shape[0])
    length = _length(op, ids, checks.integer(op, "minlength", minlength, 0), length)
    if ids.dtype == jnp.bool_:
        ids = ids.astype(jnp.int32)
    if weights is None:
        return count_ids(ids, length, implementation)
    weights = vector(op, "weights", weights)
    checks.shape(op, "weights", weights, ids.shape, "that of x")
    return segment_sum(weights, ids, length, implementation=implementation)


def _length(op, ids, smallest, length):
    if length is None:
        if isinstance(ids, jax.core.Tracer):
            raise ValueError(
                f"{op}: length must be given under jit and other transformations, where the values of x are not known: the "
                "result's shape depends on it"
            )
        length = max(smallest, int(np.asarray(ids).max(initial=0)) + 1 if ids.size else 0)
    length = checks.integer(op, "length", length, 0)
    if length > checks.MOST_POSITIONS:
        raise ValueError(f"{op}: length must be at most {checks.MOST_POSITIONS}, got {length}")
    return length


def count_ids(ids, length, implementation):
    return _count(ids, length=length, implementation=implementation)


def _native(x, *, save, length):
    out = jax.ShapeDtypeStruct((*x.shape[:-1], length), jnp.int32)
    return kernel("bincount", "...n -> ...s", kernel_ids(x), out=[out])


def _reference(x, *, length):
    return (count(x, length),)


_count = declare(
    "bincount",
    **FAMILY,
    public=bincount,
    operands=("x",),
    constant={"x": "they are integers"},
    dtypes=checks.INTEGERS,
    cases=(
        Case("spread", lambda r: (r.uniform(-1, 3, 300),), dict(length=10)),
        Case("few", lambda r: (r.uniform(0, 3, 21),), dict(length=40)),
    ),
    cut=counts_are_added,
    forward=Body(_reference, _native),
    kernels={"forward": ("bincount",)},
)
