"""Rows of a table for ids, reduced by bag."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from ..graph import aggregate
from ..graph._aggregate import aggregate_even
from ._arguments import bound_of, flat, ids_of, kept, padding_of, table_of
from ._gradient import adjusted, bounded

MODES = ("sum", "mean", "max")


@api
def embedding_bag(
    x: ArrayLike,
    weight: ArrayLike,
    offsets: ArrayLike | None = None,
    *,
    lengths: ArrayLike | None = None,
    per_sample_weights: ArrayLike | None = None,
    mode: Literal["sum", "mean", "max"] = "mean",
    padding_idx: int | None = None,
    include_last_offset: bool = False,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Rows of a table for the ids of bags, reduced by bag.

    Formula:
        y[b] = sum of w[n] weight[x[n]] over the entries n of bag b; dweight[v] = sum of w[n] dy[b(n)] over the entries with
        x[n] == v; dw[n] = <dy[b(n)], weight[x[n]]>. "mean" divides by the number of entries of the bag; "max" takes the
        largest of weight[x[n]], and on ties the first entry takes the gradient.

    Args:
        x: integers [N] of any width, the ids of all bags one after the other, with offsets or lengths; or [B, L], bags of
            L each. Entries whose id is out of range are dropped, negative ones too.
        weight: floats [V, ...], the table, a row for each id.
        offsets: integers [B], ascending, where each bag begins in x; or [B + 1] with include_last_offset.
        lengths: integers [B], the number of entries of each bag, in place of offsets.
        per_sample_weights: floats of x's shape, w; of weight's dtype, or float32 for float16 and bfloat16. None for 1. Not
            with "max".
        mode: "sum", "mean" or "max".
        padding_idx: static, the id whose entries are dropped. Negative ones count from the end; None for none.
        include_last_offset: whether offsets also has the end of the last bag; else this is the end of x.
        max_norm: static number; rows whose norm is above it are scaled to it first. The table stays as it is: a scaled copy
            is made. The scale has no gradient. None for no bound.
        norm_type: static number above 0, the p of the norm; may be infinite.
        scale_grad_by_freq: whether the gradient of a row is divided by the number of entries with its id.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        Array [B, ...] of weight's dtype. Dropped entries count nowhere; bags without others are 0.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 accumulate in float32 and are rounded once. Entries are taken in order, in gradients too:
    the same bits every time.

    Source: torch.nn.functional.embedding_bag; torchrec.KeyedJaggedTensor; tf.nn.safe_embedding_lookup_sparse.
    """
    op = "embedding_bag"
    x, weight = ids_of(op, x), table_of(op, weight)
    checks.choice(op, "mode", mode, MODES)
    size = weight.shape[0]
    padding, bound = padding_of(op, padding_idx, size), bound_of(op, max_norm, norm_type)
    by_frequency = checks.flag(op, "scale_grad_by_freq", scale_grad_by_freq)
    bags = _bags(op, x, offsets, lengths, checks.flag(op, "include_last_offset", include_last_offset))
    if per_sample_weights is not None:
        per_sample_weights = _weights(op, x, weight, per_sample_weights, mode)
    ids = flat(x)
    table = bounded(adjusted(weight, ids, None, by_frequency), bound)
    # What is out of range the aggregation drops itself.
    at = ids if padding is None else kept(ids, size=size, padding=padding)
    params = dict(reduce=mode, implementation=implementation)
    if bags is None:
        return aggregate_even(table, at, *x.shape, per_sample_weights, **params)
    return aggregate(table, at, weights=per_sample_weights, indptr=bags, **params)


def _bags(op, x, offsets, lengths, has_last):
    """[B + 1], where each bag begins and the last one ends; None where these are the rows of x."""
    if x.ndim == 2:
        if offsets is not None or lengths is not None:
            raise ValueError(f"{op}: offsets and lengths must be None for x of two dimensions, whose rows are the bags")
        return None
    if x.ndim != 1:
        raise ValueError(f"{op}: x must have one dimension, or two with a bag in each row; got shape {tuple(x.shape)}")
    if (offsets is None) == (lengths is None):
        got = "neither" if offsets is None else "both"
        raise TypeError(f"{op}: either offsets or lengths must be given for x of one dimension, got {got}")
    name, bags = ("offsets", offsets) if lengths is None else ("lengths", lengths)
    bags = checks.array(op, name, bags)
    checks.dtype(op, name, bags, checks.INTEGERS)
    if bags.ndim != 1:
        raise ValueError(f"{op}: {name} must have one dimension, the bags; got shape {tuple(bags.shape)}")
    if has_last and (lengths is not None or not bags.shape[0]):
        raise ValueError(
            f"{op}: include_last_offset must be False without offsets, of which there must be one at least"
        )
    which = "lengths" if offsets is None else "ends" if has_last else "starts"
    return _pointers(bags, which=which, count=x.shape[0])


@compiled("which", "count")
def _pointers(bags, *, which, count):
    bags = bags.astype(jnp.int32) if bags.dtype.itemsize < 4 else bags
    if which == "ends":
        return bags
    if which == "starts":
        return jnp.concatenate([bags, jnp.full(1, count, bags.dtype)])
    return jnp.concatenate([jnp.zeros(1, bags.dtype), jnp.cumsum(bags, dtype=bags.dtype)])


def _weights(op, x, weight, weights, mode):
    if mode == "max":
        raise ValueError(f"{op}: per_sample_weights must be None with mode 'max'; got an array")
    weights = checks.floats(op, "per_sample_weights", weights)
    checks.dtype_or_wide(op, "per_sample_weights", weights, "weight", weight)
    checks.shape(op, "per_sample_weights", weights, x.shape, "that of x")
    return flat(weights)


def draw(rng, count=40, bags=7, table=(11, 5), low=-1, high=12, dtype=np.int32):
    """x, the table, and offsets of bags, some of which are empty."""
    offsets = np.sort(rng.integers(0, count, bags)).astype(np.int32)
    offsets[:1] = 0
    ids = rng.integers(low, high, count).astype(dtype)
    return ids, rng.permutation(np.linspace(-2, 2, np.prod(table))).reshape(table), offsets


def _declare(mode, made_of, target, backward):
    compose(
        f"embedding_bag_{mode}",
        family="embedding",
        category=OpCategory.EMBEDDING,
        public=embedding_bag,
        cases=(
            Case(
                "fixed bags, padding",
                lambda rng: (draw(rng, 24, table=(8, 4))[0].reshape(6, 4), rng.standard_normal((8, 4))),
                dict(mode=mode, padding_idx=3),
            ),
            Case("offsets", draw, dict(mode=mode)),
            Case(
                "rows of two dimensions",
                lambda rng: draw(rng, 30, 6, (9, 2, 3), 0, 9, np.uint8),
                dict(mode=mode, include_last_offset=True),
            ),
        ),
        dtypes=checks.FLOATS,
        operands=("x", "weight", "offsets"),
        made_of=(made_of, "searchsorted"),
        # Bags are in order: only gradients sort, and search the bag of each entry where bags are no rows of a matrix.
        kernels={
            "forward": (target,),
            "tangent": ("take_along",) if mode == "max" else (target,),
            "backward": (backward,),
        },
        sometimes=("searchsorted",),
        differentiable=("weight",),
        constant={"x": "ids are integers", "offsets": "they are integers"},
    )


_declare("sum", "aggregate_sum", "segment_sum", "segment_sum")
_declare("mean", "aggregate_mean", "segment_mean_of_sources", "segment_sum")
_declare("max", "aggregate_max", "segment_max", "segment_sum_of_arg")
