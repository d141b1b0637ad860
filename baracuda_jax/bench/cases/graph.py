"""Aggregation along edges that are drawn evenly: in any order, by receiver, or with an index of both that was built before.
PyTorch and plain JAX form the messages first."""

import functools
import itertools

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark
from .segment import one_segment, power_law

# Edges, features, nodes.
SHAPES = {"tiny": (24000, 16, 512), "small": (131072, 64, 8192), "large": (4194304, 64, 262144)}
REDUCTIONS = {
    "aggregate_sum": "sum",
    "aggregate_mean": "mean",
    "aggregate_weighted_sum": "sum",
    "aggregate_max": "max",
    "aggregate_min": "min",
}
TORCH = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}


VARIANTS = ("unsorted", "sorted", "indexed")
SKEWS = {"all edges to one": one_segment, "power law": power_law}  # of receivers


def _even(draws, edges, nodes):
    return draws.integers((edges,), 0, nodes)


def _draw(op, edges, features, nodes, variant, ids_of):
    def draw(draws):
        x, senders = draws.normal((nodes, features)), draws.integers((edges,), 0, nodes)
        receivers = ids_of(draws, edges, nodes)
        receivers = jnp.sort(receivers) if variant == "sorted" else receivers
        weights = (draws.normal((edges,)),) if op == "aggregate_weighted_sum" else ()
        both = [baracuda_jax.segment_index(ids, nodes) for ids in (senders, receivers) if variant == "indexed"]
        return x, *weights, senders, receivers, *(array for index in both for array in (index.perm, index.offsets))

    return draw


def _edges(senders, receivers, *index):
    """With their indices, if there are any."""
    if not index:
        return senders, receivers
    return baracuda_jax.SegmentIndex(senders, *index[:2]), baracuda_jax.SegmentIndex(receivers, *index[2:])


def _plain(reduce, count, is_sorted, x, *rest):
    weights, (senders, receivers) = rest[:count], rest[count : count + 2]
    messages = x[senders] if not weights else x[senders] * weights[0][:, None].astype(x.dtype)
    segment = getattr(jax.ops, f"segment_{'sum' if reduce == 'mean' else reduce}")
    y = segment(messages, receivers, x.shape[0], indices_are_sorted=is_sorted)
    if reduce == "mean":
        counts = jax.ops.segment_sum(jnp.ones(receivers.shape, y.dtype), receivers, x.shape[0])
        return y / jnp.maximum(counts, 1)[:, None]
    return y if reduce == "sum" else jnp.where(jnp.isfinite(y), y, 0)


def _torch(reduce, count, torch, x, *rest):
    weights, (senders, receivers) = rest[:count], rest[count : count + 2]
    messages = x[senders.long()] if not weights else x[senders.long()] * weights[0][:, None]
    y = torch.zeros_like(x)
    index = receivers.long()[:, None].expand(*messages.shape)
    return y.scatter_reduce(0, index, messages, TORCH[reduce], include_self=False)


def benchmark(op, shape, dtype, variant, ids_of=_even, **more):
    """Of shape (edges, features, nodes)."""
    edges, features, nodes = shape
    reduce, count, is_sorted = REDUCTIONS[op], int(op == "aggregate_weighted_sum"), variant == "sorted"
    moving = 1 + count
    index = tuple(range(moving, moving + (6 if variant == "indexed" else 2)))

    def function(x, *rest, implementation):
        options = dict(reduce=reduce, indices_are_sorted=is_sorted, implementation=implementation)
        return baracuda_jax.aggregate(x, *_edges(*rest[count:]), *rest[:count], **options)

    return Benchmark(
        op,
        f"{edges} edges of {nodes} nodes [{features}]",
        dtype,
        _draw(op, *shape, variant, ids_of),
        function,
        functools.partial(_plain, reduce, count, is_sorted),
        functools.partial(_torch, reduce, count),
        moving=moving,
        needs=(0, 1, *index) if moving == 2 else index,
        saved=(jax.ShapeDtypeStruct((nodes, features), jnp.int32),) if reduce in ("max", "min") else (),
        variant=variant,
        **more,
    )


def skewed(op, shape, dtype, skew):
    even = benchmark(op, shape, dtype, "unsorted").case
    rough = 30.0 if SKEWS[skew] is one_segment else 1.0  # of one sum of all messages
    return benchmark(op, shape, dtype, f"unsorted, {skew}", SKEWS[skew], even=even, passes=PASSES[1:], rough=rough)


def dots(shape, dtype):
    edges, features, nodes = shape

    def draw(draws):
        index = lambda: draws.integers((edges,), 0, nodes)
        return draws.normal((nodes, features)), draws.normal((nodes, features)), index(), index()

    return Benchmark(
        "sampled_dot",
        f"{edges} edges of {nodes} nodes [{features}]",
        dtype,
        draw,
        lambda x, y, senders, receivers, implementation: baracuda_jax.sampled_dot(
            x, y, senders, receivers, implementation=implementation
        ),
        lambda x, y, senders, receivers: (x[senders] * y[receivers]).sum(-1),
        lambda torch, x, y, senders, receivers: (x[senders.long()] * y[receivers.long()]).sum(-1),
        moving=2,
        needs=(0, 1, 2, 3),
    )


def benchmarks(size):
    yield from (benchmark(op, SHAPES[size], *which) for op, *which in itertools.product(REDUCTIONS, DTYPES, VARIANTS))
    yield from (skewed("aggregate_sum", SHAPES[size], *which) for which in itertools.product(DTYPES, SKEWS))
    yield from (dots(SHAPES[size], dtype) for dtype in DTYPES)
