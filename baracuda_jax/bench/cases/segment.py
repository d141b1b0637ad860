"""Segment reductions: ids drawn evenly, sorted or not; for the sum and the maximum also ids that are not spread evenly.

Skewed ids are timed forward + backward alone, which holds the forward pass. Compared with the case of even ids they show
what balance costs. The table of backends has none, since a backend is chosen before ids are known.
"""

import itertools

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark

SHAPES = {"tiny": (24000, 16, 512), "small": (131072, 64, 8192), "large": (4194304, 64, 262144)}
HEADS = 8


def plain_mean(data, ids, segments, **options):
    ones = jnp.ones(ids.shape, jnp.int32)
    counts = jnp.maximum(jax.ops.segment_sum(ones, ids, segments, **options), 1)
    return jax.ops.segment_sum(data, ids, segments, **options) / counts[:, None].astype(data.dtype)


def plain_softmax(data, ids, segments, **options):
    most = jax.ops.segment_max(data, ids, segments, **options)
    powers = jnp.exp((data - most[ids]).astype(jnp.float32))
    return (powers / jax.ops.segment_sum(powers, ids, segments, **options)[ids]).astype(data.dtype)


def plain_logsumexp(data, ids, segments, **options):
    most = jax.ops.segment_max(data, ids, segments, **options)
    powers = jnp.exp((data - most[ids]).astype(jnp.float32))
    return (most + jnp.log(jax.ops.segment_sum(powers, ids, segments, **options))).astype(data.dtype)


def plain_var(data, ids, segments, **options):
    x = data.astype(jnp.float32)
    squares = jnp.square(x - plain_mean(x, ids, segments, **options)[ids])
    return plain_mean(squares, ids, segments, **options).astype(data.dtype)


def plain_std(data, ids, segments, **options):
    return jnp.sqrt(plain_var(data, ids, segments, **options))


PLAIN = {
    "segment_max": jax.ops.segment_max,
    "segment_min": jax.ops.segment_min,
    "segment_sum": jax.ops.segment_sum,
    "segment_mean": plain_mean,
    "segment_prod": jax.ops.segment_prod,
    "segment_logsumexp": plain_logsumexp,
    "segment_softmax": plain_softmax,
    "segment_var": plain_var,
    "segment_std": plain_std,
}
TORCH = {
    "segment_max": "amax", "segment_min": "amin", "segment_sum": "sum", "segment_mean": "mean", "segment_prod": "prod"
}  # fmt: skip
DATA, IDS = 0, 1
NEEDS = dict.fromkeys(PLAIN, (DATA, IDS, "y"))
NEEDS |= {"segment_sum": (IDS,), "segment_mean": (IDS,), "segment_softmax": (IDS, "y")}


def even_ids(draws, rows, segments):
    return draws.integers((rows,), 0, segments)


def benchmark(op, shape, dtype, is_sorted, ids_of=even_ids, **more):
    """Of shape (rows, columns, segments)."""
    rows, columns, segments = shape
    public = op.removesuffix("_split")
    options = {"indices_are_sorted": is_sorted}
    ties = {"ties": "split"} if op.endswith("_split") else {}

    def draw(draws):
        ids = ids_of(draws, rows, segments)
        return data(draws), jnp.sort(ids) if is_sorted else ids

    def data(draws):
        if public == "segment_sum" and ids_of is not even_ids:
            # Whole numbers: sums of millions of rows are exact in any order, so what is compared can be.
            return draws.integers((rows, columns), -8, 9, jnp.float32)
        x = draws.normal((rows, columns))
        return 1 + 0.3 * x if public == "segment_prod" else x

    def torch(torch, data, ids):
        y = torch.zeros(segments, columns, dtype=data.dtype, device=data.device)
        index = ids.long()[:, None].expand(rows, columns)
        reduce = lambda x, how: y.scatter_reduce(0, index, x, how, include_self=False)
        if public in TORCH:
            return reduce(data, TORCH[public])
        if public in ("segment_var", "segment_std"):
            squares = reduce((data - reduce(data, "mean").gather(0, index)) ** 2, "mean")
            return squares if public == "segment_var" else squares.sqrt()
        most = reduce(data, "amax").detach()
        powers = (data - most.gather(0, index)).exp()
        total = reduce(powers, "sum")
        return powers / total.gather(0, index) if public == "segment_softmax" else most + total.log()

    return Benchmark(
        op,
        f"[{rows}, {columns}] into {segments}",
        dtype,
        draw,
        lambda data, ids, implementation: getattr(baracuda_jax, public)(
            data, ids, segments, **options, **ties, implementation=implementation
        ),
        lambda data, ids: PLAIN[public](data, ids, segments, **options),
        torch,
        needs=NEEDS[public],
        saved=(jax.ShapeDtypeStruct((segments, columns), jnp.int32),) if op in ("segment_max", "segment_min") else (),
        **{"variant": "sorted" if is_sorted else "unsorted"} | more,
    )


def take(shape, dtype, is_sorted):
    """Rows of segments, as an embedding has them: the time is that of its gradient."""
    rows, columns, segments = shape

    def draw(draws):
        ids = even_ids(draws, rows, segments)
        return draws.normal((segments, columns)), jnp.sort(ids) if is_sorted else ids

    return Benchmark(
        "segment_take",
        f"[{segments}, {columns}] at {rows}",
        dtype,
        draw,
        lambda x, ids, implementation: baracuda_jax.segment_take(
            x, ids, indices_are_sorted=is_sorted, implementation=implementation
        ),
        lambda x, ids: x.at[ids].get(indices_are_sorted=is_sorted, mode="clip"),
        lambda torch, x, ids: torch.nn.functional.embedding(ids.long(), x),
        needs=(IDS,),
        variant="sorted" if is_sorted else "unsorted",
    )


def index(shape, is_sorted):
    rows, _, segments = shape

    def draw(draws):
        ids = even_ids(draws, rows, segments)
        return (jnp.sort(ids) if is_sorted else ids,)

    def plain(ids):
        order = jnp.argsort(ids, stable=True).astype(jnp.uint32)
        return order, jnp.searchsorted(ids[order], jnp.arange(segments + 1, dtype=ids.dtype)).astype(jnp.uint32)

    def function(ids, implementation):
        made = baracuda_jax.segment_index(ids, segments, indices_are_sorted=is_sorted, implementation=implementation)
        return made.perm, made.offsets

    return Benchmark(
        "segment_index",
        f"[{rows}] into {segments}",
        "int32",
        draw,
        function,
        lambda ids: (jnp.zeros(0, jnp.uint32), plain(ids)[1]) if is_sorted else plain(ids),
        passes=PASSES[:1],
        variant="sorted" if is_sorted else "unsorted",
    )


# ---------------------------------------------------------------------------------------------------------------------
# Skewed ids

SKEWED_OPS = ("segment_sum", "segment_max")


def one_segment(draws, rows, segments):
    return jnp.full(rows, segments // 2, jnp.int32)


def power_law(draws, rows, segments):
    """The k-th largest segment has 1 / k as many rows as the largest."""
    return jnp.minimum(segments ** draws.uniform((rows,)), segments).astype(jnp.int32) - 1


def one_row_each(draws, rows, segments):
    return jnp.arange(rows, dtype=jnp.int32)


SKEWS = {
    "all rows in one": (one_segment, True),
    "power law": (power_law, False),
    "one row a segment": (one_row_each, True),
}


def skewed(op, size, dtype, skew):
    ids_of, is_sorted = SKEWS[skew]
    even = benchmark(op, SHAPES[size], dtype, is_sorted)
    rows, columns, segments = SHAPES[size]
    shape = rows, columns, rows if ids_of is one_row_each else segments
    variant = f"{even.variant}, {skew}"
    return benchmark(op, shape, dtype, is_sorted, ids_of, variant=variant, even=even.case, passes=PASSES[1:])


def benchmarks(size):
    ops = (*PLAIN, "segment_max_split", "segment_min_split")
    yield from (benchmark(op, SHAPES[size], *which) for op, *which in itertools.product(ops, DTYPES, (False, True)))
    rows, _, segments = SHAPES[size]
    heads = rows, HEADS, segments  # scores of a graph's edges
    yield from (benchmark("segment_softmax", heads, *which) for which in itertools.product(DTYPES, (False, True)))
    yield from (take(SHAPES[size], *which) for which in itertools.product(DTYPES, (False, True)))
    yield from (index(SHAPES[size], is_sorted) for is_sorted in (False, True))
    yield from (skewed(op, size, *which) for op, *which in itertools.product(SKEWED_OPS, DTYPES, SKEWS))
