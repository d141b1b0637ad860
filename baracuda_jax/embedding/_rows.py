"""The gradient of an embedding as the rows that it has, for updates of these alone."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled, sent
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..graph._aggregate import SUM
from ..unique import unique_consecutive
from ..unique._sorted import sorted_elements
from ._arguments import flat, gradients_of, ids_of, kept, padding_of

UPDATE = "it is for updates, which are not differentiated"


@api
def embedding_backward_rows(
    x: ArrayLike,
    dy: ArrayLike,
    num_rows: int,
    *,
    size: int | None = None,
    padding_idx: int | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """The gradient of `embedding`, as the rows that it has and their ids.

    Formula:
        ids: each id of x in [0, V) once, ascending; rows[i] = sum of dy[...] over the positions with x[...] == ids[i].

    Args:
        x: integers of any shape and width, as in `embedding`. Those out of range have no row.
        dy: floats [*x.shape, ...], the cotangent of the embedding.
        num_rows: static integer, the number V of rows of the table.
        size: static integer, how many rows there is room for; the ones of the smallest ids are kept. By default the smaller
            of V and the number of positions, which is always enough.
        padding_idx: static, the id that has no row. Negative ones count from the end; None for none.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        ids [size], int32, V after the last one; and rows [size, ...] of dy's dtype, 0 there.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 accumulate in float32 and are rounded once. What equal ids give is added in order: the
    same bits every time.

    Source: torch.nn.functional.embedding with sparse=True, coalesced.
    """
    op = "embedding_backward_rows"
    x = ids_of(op, x)
    count = checks.integer(op, "num_rows", num_rows, 0)
    checks.positions(op, "num_rows", count, "rows")
    return rows_of(op, x, gradients_of(op, x, dy), count, size, padding_idx, implementation)


def rows_of(op, x, dy, count, size, padding_idx, implementation, is_wide=False):
    """ids and rows of dy [N, ...]; the rows in what they are computed in if `is_wide`. One sort serves both, and dy is read
    in its order, once."""
    size = min(x.size, count) if size is None else checks.integer(op, "size", size, 0)
    checks.positions(op, "size", size, "rows")
    at = kept(flat(x), size=count, padding=padding_of(op, padding_idx, count))
    found, order = sorted_elements(at, True, implementation)
    none = sent(np.asarray(count, np.int32))
    ids, run = unique_consecutive(found, return_inverse=True, size=size, fill_value=none, implementation=implementation)
    receivers = _receivers(found, run, count=count, size=size)
    params = dict(axis=0, num_rows=dy.shape[0], num_segments=size, dtype=dy.dtype.name, is_wide=is_wide, sorted=True)
    return ids, SUM(dy, order, receivers, **params, implementation=implementation)


@compiled("count", "size")
def _receivers(found, run, *, count, size):
    return jnp.where(found < count, jnp.minimum(run, size), size)


def _case(name, ids, features, low, high, dtype=np.int32, **kwargs):
    draw = lambda rng: (rng.integers(low, high, ids).astype(dtype), rng.standard_normal((*ids, *features)))
    return Case(name, draw, kwargs)


compose(
    "embedding_backward_rows",
    family="embedding",
    category=OpCategory.EMBEDDING,
    public=embedding_backward_rows,
    cases=(
        _case("sentences", (3, 7), (5,), -1, 40, num_rows=40),
        _case("few rows, padding", (30,), (2, 3), -2, 10, np.int8, num_rows=8, size=9, padding_idx=3),
        _case("no room for all", (25,), (4,), 0, 200, np.uint8, num_rows=300, size=6),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "dy"),
    outputs=("ids", "rows"),
    made_of=("sort", "unique_consecutive", "aggregate_sum"),
    kernels={"forward": ("sort", "run_starts", "cumsum", "segment_sum")},
    constant={"x": "ids are integers", "dy": UPDATE},
)
