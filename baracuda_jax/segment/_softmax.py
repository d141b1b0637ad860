"""The softmax of each segment's rows."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.compiled import compiled
from .._core.op import compose
from .._core.types import Implementation
from .._core.wide import wide
from .._core.within import within
from ._arguments import arguments, document
from ._family import FAMILY, cases
from ._index import with_index
from ._log_sum_exp import segment_logsumexp
from ._take import take_or_zero


@api
@document(
    "y[n] = e^data[n] / (sum of e^data[m] over the rows m of n's segment); ddata = y (dy - g), with g[n] the sum of "
    "y[m] dy[m] over those rows",
    empty=None,
    dtypes="a float type",
    returns="Array [N, ...] of data's dtype; 0 for dropped rows.",
    precision="float16 and bfloat16 are computed in float32 and rounded once. -inf has weight 0, also in a segment of "
    "nothing else; NaN makes its segment NaN, and so does +inf.",
)
def segment_softmax(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    *,
    indices_are_sorted: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Softmax of the rows of each segment."""
    op = "segment_softmax"
    data, ids, index, params = arguments(op, data, segment_ids, num_segments, indices_are_sorted, checks.FLOATS)
    x = _wide(data)
    options = dict(indices_are_sorted=params["sorted"], implementation=implementation)
    y = segment_logsumexp(x, with_index(ids, index), params["num_segments"], **options)
    each = take_or_zero(y, ids, *index, **params, implementation=implementation)
    return _weights(x, each, ids, dtype=data.dtype.name, **_shape(params))


def _shape(params):
    return {name: params[name] for name in ("axis", "num_segments")}


@compiled()
def _wide(x):
    return wide(x)


@compiled("dtype", "axis", "num_segments")
def _weights(x, y, ids, *, dtype, axis, num_segments):
    inside = within(ids, num_segments)
    is_nothing = (x == -jnp.inf) | ~inside.reshape(inside.shape + (1,) * (x.ndim - inside.ndim))
    below = jnp.where(is_nothing, 0, x) - jnp.where(is_nothing, 0, y)
    return jnp.where(is_nothing, 0, jnp.exp(below)).astype(dtype)


compose(
    "segment_softmax",
    family=FAMILY["family"],
    category=FAMILY["category"],
    public=segment_softmax,
    cases=cases(),
    dtypes=checks.FLOATS,
    operands=FAMILY["operands"],
    made_of=("segment_logsumexp", "segment_take"),
    differentiable=FAMILY["differentiable"],
    constant=FAMILY["constant"],
)
