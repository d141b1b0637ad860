"""Every op on arrays that eight devices divide, and the ways in which these may be sharded.

docs/collectives.csv says what each way communicates."""

import csv
import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import baracuda_jax as bj
from baracuda_jax._core.op import OPS
from baracuda_jax.elementwise._made import MADE
from baracuda_jax.packed._family import random_blocks

TABLE = pathlib.Path(__file__).parent.parent / "docs/collectives.csv"


@dataclasses.dataclass(frozen=True)
class Sharded:
    """`fun(*args)` with args cut over axis "d" as `specs` say, and the result then as `out` says; the first `moving`
    arguments have derivatives."""

    op: str
    way: str
    fun: Callable
    args: tuple
    specs: tuple
    out: P
    moving: int

    def __str__(self):
        return f"{self.op}-{self.way.replace(' ', '_')}"


ROWS, COLUMNS = P("d", None), P(None, "d")
BOTH = {"rows": ROWS, "features": COLUMNS}


def _draw(*shape):
    return np.random.default_rng(len(shape)).permutation(np.linspace(-2, 2, int(np.prod(shape)))).reshape(shape)


def _float(*shape):
    return _draw(*shape).astype(np.float32)


def _scale(*shape):
    return (0.03 + 0.01 * np.abs(_draw(*shape))).astype(np.float32)


def _segments(op, out=None, **options):
    """Rows [n, features], and batches of them."""
    ids = np.random.default_rng(0).integers(-1, 5, 16).astype(np.int32)
    fun = functools.partial(getattr(bj, op.removesuffix("_split")), num_segments=5, implementation="native", **options)
    make = functools.partial(Sharded, op, fun=fun, moving=1)
    rows, batches = (_float(16, 8), ids), (_float(8, 16, 4), np.stack([np.roll(ids, i) for i in range(8)]))
    yield make("rows", args=rows, specs=(ROWS, P("d")), out=P() if out is None else out)
    yield make("features", args=rows, specs=(COLUMNS, P()), out=COLUMNS)
    yield make("batches", args=batches, specs=(P("d"), P("d")), out=P("d"))


def _indexed():
    ids = np.random.default_rng(0).integers(-1, 6, (8, 16)).astype(np.int32)
    fun = lambda ids: bj.segment_index(ids, 5, implementation="native").offsets
    yield Sharded("segment_index", "batches", fun, (ids,), (P("d"),), P("d"), 0)


def _gathered():
    index = np.random.default_rng(0).integers(-5, 5, (8, 16)).astype(np.int32)
    fun = functools.partial(bj.gather, implementation="native")
    yield Sharded("gather", "rows", fun, (_float(8, 5), index), (ROWS, ROWS), ROWS, 1)
    yield Sharded("gather", "the index", fun, (_float(8, 5), index), (P(), COLUMNS), COLUMNS, 1)


def _scattered():
    index = np.random.default_rng(7).integers(0, 5, (8, 4), np.int32)
    for op in ("scatter_add", "scatter_mul", "scatter_max", "scatter_min"):
        fun = lambda x, src, index, op=op: getattr(bj, op)(x, index, src, implementation="native")
        yield Sharded(op, "rows", fun, (_float(8, 5), _float(8, 4), index), (ROWS, ROWS, ROWS), ROWS, 2)


def _aligned():
    fun = lambda x, targets: bj.ctc_loss(x, targets, reduction="none", implementation="native")
    targets = np.random.default_rng(0).integers(1, 5, (8, 2)).astype(np.int32)
    yield Sharded("ctc_loss", "samples", fun, (_float(8, 6, 5), targets), (P("d"), P("d")), P("d"), 1)
    fun = lambda x, targets: bj.rnnt_loss(x, targets, reduction="none", implementation="native")
    yield Sharded("rnnt_loss", "samples", fun, (_float(8, 4, 3, 5), targets), (P("d"), P("d")), P("d"), 1)
    fun = lambda cost: bj.soft_dtw(cost, implementation="native")
    yield Sharded("soft_dtw", "matrices", fun, (_float(8, 4, 5),), (P("d"),), P("d"), 1)


def _state_space():
    fun = functools.partial(bj.causal_conv1d, activation="silu", implementation="native")
    args = _float(8, 16, 5), _float(16, 3), _float(16)
    yield Sharded("causal_conv1d", "sequences", fun, args, (P("d"), P(), P()), P("d"), 3)
    yield Sharded("causal_conv1d", "channels", fun, args, (COLUMNS, ROWS, P("d")), COLUMNS, 3)
    fun = functools.partial(bj.selective_scan, implementation="native")
    args = _float(8, 16, 5), abs(_float(8, 16, 5)), -abs(_float(16, 3)), _float(8, 3, 5), _float(8, 3, 5)
    yield Sharded("selective_scan", "sequences", fun, args, (P("d"), P("d"), P(), P("d"), P("d")), P("d"), 5)
    yield Sharded("selective_scan", "channels", fun, args, (COLUMNS, COLUMNS, ROWS, P(), P()), COLUMNS, 5)
    fun = functools.partial(bj.ssd_chunk_scan, implementation="native")
    args = _float(8, 5, 16, 2), abs(_float(8, 5, 16)), -abs(_float(16)), _float(8, 5, 1, 3), _float(8, 5, 1, 3)
    heads = P(None, None, "d")
    yield Sharded("ssd_chunk_scan", "sequences", fun, args, (P("d"), P("d"), P(), P("d"), P("d")), P("d"), 5)
    yield Sharded("ssd_chunk_scan", "heads", fun, args, (heads, heads, P("d"), P(), P()), heads, 5)


def _depthwise():
    for rank in (1, 2, 3):
        op = f"depthwise_conv{rank}d"
        fun = functools.partial(getattr(bj, op), padding=1, implementation="native")
        args = _float(8, 16, *(5, 4, 3)[:rank]), _float(16, 1, *(3,) * rank), _float(16)
        yield Sharded(op, "examples", fun, args, (P("d"), P(), P()), P("d"), 3)
        yield Sharded(op, "channels", fun, args, (COLUMNS, ROWS, P("d")), COLUMNS, 3)


def _taken():
    ids = np.random.default_rng(0).integers(-1, 6, 16).astype(np.int32)
    fun = functools.partial(bj.segment_take, implementation="native")
    yield Sharded("segment_take", "rows", fun, (_float(5, 8), ids), (P(), P("d")), ROWS, 1)
    yield Sharded("segment_take", "features", fun, (_float(5, 8), ids), (COLUMNS, P()), COLUMNS, 1)
    yield Sharded("segment_take", "rows of x", fun, (_float(16, 3), 3 * ids), (ROWS, P()), P(), 1)


def _embedding():
    """The table is on every device, or its features or rows are cut."""
    ids = np.random.default_rng(0).integers(-1, 6, 16).astype(np.int32)
    fun = lambda weight, x: bj.embedding(x, weight, implementation="native")
    yield Sharded("embedding", "ids", fun, (_float(5, 8), ids), (P(), P("d")), ROWS, 1)
    yield Sharded("embedding", "features", fun, (_float(5, 8), ids), (COLUMNS, P()), COLUMNS, 1)
    yield Sharded("embedding", "rows of the table", fun, (_float(16, 3), 3 * ids), (ROWS, P()), P(), 1)
    offsets = np.array([0, 3, 3, 10], np.int32)
    for mode in ("sum", "mean", "max"):
        fun = lambda weight, x, offsets, mode=mode: bj.embedding_bag(
            x, weight, offsets, mode=mode, implementation="native"
        )
        op, args = f"embedding_bag_{mode}", (_float(5, 8), ids, offsets)
        yield Sharded(op, "features", fun, args, (COLUMNS, P(), P()), COLUMNS, 1)
        yield Sharded(op, "rows of the table", fun, (_float(16, 3), 3 * ids, offsets), (ROWS, P(), P()), P(), 1)
        fun = lambda weight, x, mode=mode: bj.embedding_bag(x, weight, mode=mode, implementation="native")
        yield Sharded(op, "bags of one length", fun, (_float(5, 8), ids.reshape(8, 2)), (P(), ROWS), ROWS, 1)
    fun = lambda table, x, dy: bj.embedding_sgd_step(table, x, dy, 0.1, implementation="native")
    specs = COLUMNS, P(), COLUMNS
    yield Sharded("embedding_sgd_step", "features", fun, (_float(5, 8), ids, _float(16, 8)), specs, COLUMNS, 0)
    fun = lambda table, x, dy: bj.embedding_adagrad_step(table, table * table, x, dy, 0.1, implementation="native")[0]
    yield Sharded("embedding_adagrad_step", "features", fun, (_float(5, 8), ids, _float(16, 8)), specs, COLUMNS, 0)


def _graph():
    """Edges are cut, or features."""
    ids = lambda seed: np.random.default_rng(seed).integers(-1, 7, 16).astype(np.int32)
    x, edges, weights = _float(6, 8), (ids(0), ids(1)), _float(16)
    options = dict(num_segments=5, implementation="native")
    for op, reduce, more in (
        ("aggregate_sum", "sum", ()),
        ("aggregate_mean", "mean", ()),
        ("aggregate_weighted_sum", "sum", (weights,)),
        ("aggregate_max", "max", ()),
        ("aggregate_min", "min", ()),
    ):
        rest = lambda *args: (args[0], *args[-2:], *args[1:-2])
        fun = lambda *args, rest=rest, reduce=reduce: bj.aggregate(*rest(*args), reduce=reduce, **options)
        args, moving = (x, *more, *edges), 1 + len(more)
        by_edge, whole = (P("d"),) * (2 + len(more)), (P(),) * (2 + len(more))
        yield Sharded(op, "edges", fun, args, (P(), *by_edge), P(), moving)
        yield Sharded(op, "features", fun, args, (COLUMNS, *whole), COLUMNS, moving)
        yield Sharded(op, "rows of x", fun, (_float(8, 3), *args[1:]), (ROWS, *whole), P(), moving)
    dot = functools.partial(bj.sampled_dot, implementation="native")
    args = x, _float(5, 8), *edges
    yield Sharded("sampled_dot", "edges", dot, args, (P(), P(), P("d"), P("d")), P("d"), 2)
    yield Sharded("sampled_dot", "features", dot, args, (COLUMNS, COLUMNS, P(), P()), P(), 2)


def _experts():
    """Features are cut, and the tokens of sums."""
    rng = np.random.default_rng(0)
    native = dict(implementation="native")
    permute = lambda x, experts: bj.moe_permute(x, experts, 5, **native).x
    experts = rng.integers(-1, 6, (16, 2)).astype(np.int32)
    yield Sharded("moe_permute", "features", permute, (_float(16, 8), experts), (COLUMNS, P()), COLUMNS, 1)
    row_map = rng.permutation(40)[:32].reshape(16, 2).astype(np.int32)
    combine = lambda y, weights, row_map: bj.moe_combine(y, row_map, weights, **native)
    args = _float(40, 8), _float(16, 2), row_map
    yield Sharded("moe_combine", "tokens", combine, args, (P(), ROWS, ROWS), ROWS, 2)
    yield Sharded("moe_combine", "features", combine, args, (COLUMNS, P(), P()), COLUMNS, 2)
    args = _float(16, 8), _float(3, 8, 16), np.array([5, 0, 9], np.int32)
    product = lambda a, b, sizes: bj.grouped_gemm(a, b, sizes, **native)
    yield Sharded("grouped_gemm", "rows of a", product, args, (ROWS, P(), P()), ROWS, 2)
    yield Sharded("grouped_gemm", "columns of a", product, args, (COLUMNS, P(None, "d"), P()), P(), 2)
    yield Sharded("grouped_gemm", "columns of b", product, args, (P(), P(None, None, "d"), P()), COLUMNS, 2)


def _packed():
    """Rows of packed weights are columns of the product."""
    rng = np.random.default_rng(0)
    data, scale = rng.integers(0, 256, (16, 32), np.uint8), rng.uniform(0.1, 1, (16, 2)).astype(np.float32)
    unpack = lambda data, scale: bj.nf4_dequantize(data, scale, implementation="native")
    yield Sharded("nf4_dequantize", "rows", unpack, (data, scale), (ROWS, ROWS), ROWS, 0)
    multiply = lambda x, data, scale: bj.nf4_mmvq(x, data, scale, implementation="native")
    args = _float(8, 64), data, scale
    yield Sharded("nf4_mmvq", "rows of the weights", multiply, args, (P(), ROWS, ROWS), COLUMNS, 1)
    yield Sharded("nf4_mmvq", "rows of x", multiply, args, (ROWS, P(), P()), ROWS, 1)
    groups = rng.integers(0, 256, (16, 256), np.uint8), rng.uniform(0.1, 1, (16, 8)).astype(np.float32)
    by_groups = (_float(8, 512), *groups), (COLUMNS, COLUMNS, COLUMNS), P(), 1
    yield Sharded("nf4_mmvq", "columns of the weights", multiply, *by_groups)
    unpack = lambda data, scale: bj.int4_dequantize(data, scale, implementation="native")
    yield Sharded("int4_dequantize", "rows", unpack, (data, scale), (ROWS, ROWS), ROWS, 0)
    multiply = lambda x, data, scale: bj.int4_mmvq(x, data, scale, implementation="native")
    yield Sharded("int4_mmvq", "rows of the weights", multiply, args, (P(), ROWS, ROWS), COLUMNS, 1)
    yield Sharded("int4_mmvq", "columns of the weights", multiply, *by_groups)
    multiply = lambda x, data, scale: bj.int4_mmvq(x, data, scale / 16, bits=8, implementation="native")
    bytes_of_rows = (_float(8, 32), data, scale[:, :1]), (P(), ROWS, ROWS), COLUMNS, 1
    yield Sharded("int4_mmvq", "rows of the weights of 8 bits", multiply, *bytes_of_rows)
    yield Sharded("int4_mmvq", "columns of the weights of 8 bits", multiply, (_float(8, 256), *groups), *by_groups[1:])
    words = lambda *shape: rng.integers(-(2**31), 2**31, shape, np.int32)
    args = _float(8, 64), words(64, 8), rng.uniform(0.1, 1, (2, 64)).astype(np.float32), words(2, 8)
    multiply = lambda *args: bj.int4_awq_gemm(*args, implementation="native")
    yield Sharded("int4_awq_gemm", "columns of the weights", multiply, args, (P(), *[COLUMNS] * 3), COLUMNS, 1)
    yield Sharded("int4_awq_gemm", "rows of x", multiply, args, (ROWS, P(), P(), P()), ROWS, 1)
    blocks = rng.integers(0, 60, (16, 68), np.uint8)  # two of Q8_0
    unpack = lambda data: bj.gguf_dequantize(data, "Q8_0", implementation="native")
    yield Sharded("gguf_dequantize", "rows", unpack, (blocks,), (ROWS,), ROWS, 0)
    multiply = lambda x, data: bj.gguf_mmvq(x, data, "Q8_0", implementation="native")
    yield Sharded("gguf_mmvq", "rows of the weights", multiply, (_float(8, 64), blocks), (P(), ROWS), COLUMNS, 1)
    args = _float(8, 512), random_blocks(rng, "Q8_0", 16, 16)
    yield Sharded("gguf_mmvq", "columns of the weights", multiply, args, (COLUMNS, COLUMNS), P(), 1)
    experts = rng.integers(-1, 2, 8).astype(np.int32)
    multiply = lambda x, data, experts: bj.gguf_mmvq_batched(x, data, experts, "Q8_0", implementation="native")
    args = _float(8, 64), blocks.reshape(2, 8, 68), experts
    yield Sharded("gguf_mmvq_batched", "rows of x", multiply, args, (ROWS, P(), P("d")), ROWS, 1)


def _unary(op, *parameters):
    fun = lambda x: getattr(bj, op)(x, *parameters, implementation="native")
    for way, spec in BOTH.items():
        yield Sharded(op, way, fun, (_float(8, 16),), (spec,), spec, 1)


def _small_matrices():
    """A batch of them."""
    x = 0.1 * _float(8, 5, 5) + np.diag(3 + 3 * np.arange(5)).astype(np.float32)
    one = lambda op, y: y if not isinstance(y, tuple) else y[1] if op == "slogdet" else y[0]
    each, whole = P("d"), P("d", None, None)
    for op in (
        "cholesky",
        "inverse",
        "lu_factor",
        "det",
        "slogdet",
        "eigh",
        "qr",
        "geqrf",
        "svd",
        "svdvals",
        "matrix_exp",
    ):
        fun = lambda x, op=op: one(op, getattr(bj, op)(x, implementation="native"))
        out = {"det": each, "slogdet": each, "eigh": P("d", None), "svdvals": P("d", None)}.get(op, whole)
        yield Sharded(op, "matrices", fun, (x,), (whole,), out, 1)
    for op in ("solve", "triangular_solve"):
        fun = functools.partial(getattr(bj, op), implementation="native")
        yield Sharded(op, "matrices", fun, (x, _float(8, 5, 3)), (whole, whole), whole, 2)
    fun = functools.partial(bj.ormqr, implementation="native")
    yield Sharded("ormqr", "matrices", fun, (x, _float(8, 5), _float(8, 5, 3)), (whole, P("d", None), whole), whole, 3)


def _alike():
    """Ops whose arrays have one shape and are stored alike, each cut in one of the two ways."""
    counts = {name: (line.arrays, "float32" in line.dtypes) for name, line in MADE.items()}
    counts |= {"softplus": (1, True), "logit": (1, True), "ldexp": (2, True), "where": (3, True)}
    counts |= dict.fromkeys(("fma", "addcmul", "addcdiv", "clamp_between"), (3, True))
    for i, (op, (arrays, is_float)) in enumerate(counts.items()):
        fun = functools.partial(OPS[op].public, implementation="native")
        way, spec = list(BOTH.items())[i % 2]
        args = [0.2 + 0.6 * np.abs(_float(8, 16)) for _ in range(arrays)]
        args = args if is_float else [np.round(9 * a).astype(np.int32) for a in args]
        if op == "ldexp":
            args[1] = np.round(9 * args[1]).astype(np.int32)
        if op == "acosh":
            args[0] += 1
        moving = arrays if is_float and OPS[op].differentiable else 0
        if op == "where":
            fun = lambda x, y, c: bj.where(c > 0.5, x, y, implementation="native")
            moving = 2
        yield Sharded(op, way, fun, tuple(args), (spec,) * arrays, spec, 1 if op == "ldexp" else moving)
    for op in ("glu", "reglu", "swiglu", "geglu", "geglu_tanh"):
        fun = functools.partial(getattr(bj, op), implementation="native")
        yield Sharded(op, "rows", fun, (_float(8, 16),), (BOTH["rows"],), BOTH["rows"], 1)


def _lerp():
    fun = functools.partial(bj.lerp, implementation="native")
    for way, spec in BOTH.items():
        args = _float(8, 16), -_float(8, 16), np.abs(_float(16)) / 4
        yield Sharded("lerp", f"{way}, a weight for each feature", fun, args, (spec, spec, P(spec[1])), spec, 3)


def _prelu():
    fun = functools.partial(bj.prelu, implementation="native")
    for way, spec in BOTH.items():
        args = _float(8, 16), np.abs(_float(16)) / 4
        yield Sharded("prelu", f"{way}, a slope for each feature", fun, args, (spec, P(spec[1])), spec, 2)


SCALES = {  # kind: (shape of the scales of [8, 16], how they are cut with rows, with features; options)
    "tensor": ((), P(), P(), {}),
    "channel": ((16,), P(), P("d"), {"axis": -1}),
    "token": ((8,), P("d"), P(), {}),
    "group": ((8, 8), ROWS, COLUMNS, {"group_size": 2}),
}


def _by_scale(name, fun, first, moving):
    def ways(kind):
        shape, by_rows, by_features, options = SCALES[kind]
        for (way, spec), of_scale in zip(BOTH.items(), (by_rows, by_features), strict=True):
            args, call = (first, _scale(*shape)), functools.partial(fun(kind), implementation="native", **options)
            yield Sharded(name.format(kind), way, call, args, (spec, of_scale), spec, moving)

    return ways


_quantize = _by_scale("quantize_per_{}", lambda kind: getattr(bj, f"quantize_per_{kind}"), _float(8, 16), 0)
_dequantize = _by_scale(
    "dequantize_per_{}", lambda kind: getattr(bj, f"dequantize_per_{kind}"), np.round(20 * _float(8, 16)), 2
)


def _fake(gradient):
    fun = lambda kind: functools.partial(bj.fake_quantize, gradient=gradient)
    name = "fake_quantize" if gradient == "straight_through" else "fake_quantize_lsq"
    return _by_scale(name, fun, _float(8, 16), 1 if gradient == "straight_through" else 2)("channel")


def _dynamic():
    fun = lambda x: bj.dynamic_quantize(x, implementation="native")[0]
    yield Sharded("dynamic_quantize", "rows", fun, (_float(8, 16),), (ROWS,), ROWS, 0)
    yield Sharded("dynamic_quantize", "features", fun, (_float(8, 16),), (COLUMNS,), P(), 0)


def _pool(rank):
    fun = lambda x: getattr(bj, f"lp_pool{rank}d")(x, 3, 2, implementation="native")
    for way, position in {"batches": 0, "channels": 1, "pixels": 2}.items():
        spec = P(*(None,) * position, "d")
        args = (np.abs(_float(8, 8, *(16, 4, 4)[:rank])) + 0.1,)
        yield Sharded(f"lp_pool{rank}d", way, fun, args, (spec,), spec if position < 2 else P(), 1)


def _windows():
    """Maxima and averages, and maxima put back; `more` are operands with a number for each plane."""
    sizes = lambda rank: (16, 4, 4)[:rank]
    for rank in (1, 2, 3):
        x = _float(8, 8, *sizes(rank))
        index = np.broadcast_to(np.arange(x[0, 0].size).reshape(sizes(rank)), x.shape)
        ops = {f"{kind}_pool{rank}d": ((), (2,)) for kind in ("max", "avg")}
        ops |= {f"adaptive_{kind}_pool{rank}d": ((), (3,)) for kind in ("max", "avg")}
        ops[f"max_unpool{rank}d"] = (index,), (1,)
        if rank > 1:
            ops[f"fractional_max_pool{rank}d"] = (np.full((8, 8, rank), 0.3),), (2, 2)
        for op, (more, static) in ops.items():
            fun = lambda *arrays, op=op, static=static: getattr(bj, op)(*arrays, *static, implementation="native")
            for way, position in {"batches": 0, "channels": 1, "pixels": 2}.items():
                if position == 2 and op.startswith("max_unpool"):
                    continue  # XLA gathers index and elements, or adds up what shards scatter, as it sees fit
                spec = P(*(None,) * position, "d")
                specs = (spec, *(spec if position < a.ndim - (a.ndim != x.ndim) else P() for a in more))
                yield Sharded(op, way, fun, (x, *more), specs, spec if position < 2 else P(), 1)


def _resampled():
    fun = lambda x: bj.interpolate(x, size=(8, 3), mode="bilinear", implementation="native")
    for way, position in {"batches": 0, "channels": 1, "pixels": 2}.items():
        spec = P(*(None,) * position, "d")
        yield Sharded("interpolate", way, fun, (_float(8, 8, 16, 4),), (spec,), spec if position < 2 else P(), 1)


def _sampled():
    grid = np.tanh(_float(8, 4, 6, 2))
    fun = lambda x, grid: bj.grid_sample(x, grid, implementation="native")
    for way, position in {"batches": 0, "channels": 1, "pixels": 2}.items():
        spec = P(*(None,) * position, "d")
        specs = (spec, spec if position == 0 else P())
        yield Sharded("grid_sample", way, fun, (_float(8, 8, 8, 4), grid), specs, spec if position < 2 else P(), 2)
    specs, grid = (P(), P(None, "d")), np.tanh(_float(2, 8, 3, 2))
    yield Sharded("grid_sample", "positions", fun, (_float(2, 2, 4, 4), grid), specs, P(None, None, "d"), 2)


def _at_coordinates():
    at = 4 * np.tanh(_float(8, 2, 6)) + 4
    fun = lambda x, at: bj.map_coordinates(x, at, 1, implementation="native")
    yield Sharded("map_coordinates", "batches", jax.vmap(fun), (_float(8, 8, 8), at), (P("d"), P("d")), P("d"), 2)
    at = 4 * np.tanh(_float(2, 16)) + 4
    yield Sharded("map_coordinates", "points", fun, (_float(8, 8), at), (P(), P(None, "d")), P("d"), 2)
    yield Sharded("map_coordinates", "channels", fun, (_float(8, 4, 4), at), (P("d"), P()), P("d"), 2)


def _regions():
    low = _float(8, 4, 2)
    boxes = np.concatenate([np.zeros((8, 4, 1), np.float32), low, low + 3], -1)
    x = _float(8, 1, 3, 6, 5)
    align = lambda x, boxes: bj.roi_align(x, boxes, 2, implementation="native")
    yield Sharded("roi_align", "batches", jax.vmap(align), (x, boxes), (P("d"), P("d")), P("d"), 2)
    yield Sharded("roi_align", "images", align, (_float(8, 3, 6, 5), boxes[0]), (P("d"), P()), P(), 2)
    many = boxes.reshape(32, 5)
    yield Sharded("roi_align", "boxes", align, (_float(2, 3, 6, 5), many), (P(), P("d")), P("d"), 2)
    yield Sharded("roi_align", "channels", align, (_float(2, 8, 6, 5), many), (P(None, "d"), P()), P(None, "d"), 2)
    of_each = _float(8, 3, 6, 5), boxes[..., 1:]
    yield Sharded("roi_align", "boxes of each image", align, of_each, (P("d"), P("d")), P("d"), 2)
    pool = lambda x, boxes: bj.roi_pool(x, boxes, 2, implementation="native")
    yield Sharded("roi_pool", "batches", jax.vmap(pool), (x, boxes), (P("d"), P("d")), P("d"), 1)
    yield Sharded("roi_pool", "boxes", pool, (_float(2, 3, 6, 5), many), (P(), P("d")), P("d"), 1)
    yield Sharded("roi_pool", "channels", pool, (_float(2, 8, 6, 5), many), (P(None, "d"), P()), P(None, "d"), 1)
    yield Sharded("roi_pool", "boxes of each image", pool, of_each, (P("d"), P("d")), P("d"), 1)


def _boxes():
    """Sets of boxes, and one."""
    low = _float(8, 16, 2)
    boxes, scores = np.concatenate([low, low + 1], -1), _float(8, 16)
    best = lambda boxes, scores: bj.nms(boxes, scores, 0.3, implementation="native")[0]
    yield Sharded("nms", "batches", jax.vmap(best), (boxes, scores), (P("d"), P("d")), P("d"), 0)
    yield Sharded("nms", "boxes", best, (boxes[0], scores[0]), (P("d"), P("d")), P(), 0)


def _repeat():
    fun = lambda x: bj.repeat(x, (1, 2), implementation="native")
    yield Sharded("repeat", "a dimension before the first that is repeated", fun, (_float(8, 16),), (ROWS,), ROWS, 1)
    yield Sharded("repeat", "another dimension", fun, (_float(8, 16),), (COLUMNS,), P(), 1)


def _moved(op, *args, ways, argument=None, moving=1, fun=None, **params):
    """`ways`: {the way: (how args are cut, how the result is)}"""
    fun = fun or (
        lambda *args: jax.tree.leaves(getattr(bj, argument or op)(*args, implementation="native", **params))[0]
    )
    for way, (specs, out) in ways.items():
        yield Sharded(op, way, fun, args, specs, out, moving)


def _moves():
    """Elements that move along some dimensions. The others may be cut."""
    x, image = _float(8, 16), _float(8, 8, 8, 8)
    along = {"another axis": ((ROWS,), ROWS), "the axis": ((COLUMNS,), P())}
    yield from _moved("flip", x, ways=along, axis=1)
    yield from _moved("roll", x, ways=along, shift=3, axis=1)
    yield from _moved("pad", x, ways=along, pad_width=((0, 0), (3, 5)))
    yield from _moved("pad_folded", x, ways=along, argument="pad", pad_width=((0, 0), (3, 5)), mode="reflect")
    yield from _moved("permute", x, ways={"an axis": ((ROWS,), COLUMNS)})
    batches = {"batches": ((P("d"),), P("d")), "another axis": ((P(None, None, "d"),), P())}
    for op in ("triu", "tril"):
        yield from _moved(op, image, ways=batches)
    yield from _moved("unfold", image, ways=batches, window=3)
    columns = {"batches": ((P("d"),), P("d")), "another axis": ((P(None, "d"),), P())}
    yield from _moved("fold", _float(8, 72, 36), ways=columns, output_size=8, window=3)
    yield from _moved("pixel_shuffle", image, ways=batches, upscale_factor=2)
    yield from _moved("pixel_unshuffle", image, ways=batches, downscale_factor=2)
    channels = {"another axis": ((P("d"),), P("d")), "channels": ((P(None, "d"),), P())}
    yield from _moved("channel_shuffle", image, ways=channels, groups=2)
    joined = {"another axis": ((ROWS, ROWS), ROWS), "the axis": ((COLUMNS, COLUMNS), P())}
    concat = lambda *xs: bj.concat(xs, 1, implementation="native")
    yield from _moved("concat", x, _float(8, 8), ways=joined, moving=2, fun=concat)
    position = np.array([0, 3], np.int32)
    written = {"an axis that is whole": ((ROWS, ROWS, P()), ROWS), "another axis": ((COLUMNS, COLUMNS, P()), P())}
    yield from _moved("dynamic_update_slice", x, _float(8, 8), position, ways=written, moving=2)
    rows = {"another axis": ((ROWS, P()), ROWS), "the axis": ((COLUMNS, P()), P())}
    times = np.arange(16, dtype=np.int32) % 3
    rows |= {"repeats": ((P(), P("d")), P())}
    yield from _moved("repeat_interleave", x, times, ways=rows, axis=1, total_repeat_length=16)
    fill = lambda x: jax.vmap(lambda x: bj.fill(x, (3, 4), implementation="native"))(x)
    yield from _moved("fill", _float(8), ways={"batches": ((P("d"),), P("d"))}, fun=fill)
    rows = lambda x: jax.vmap(lambda x: bj.broadcast_in_dim(x, (16, 3), (0,), implementation="native"))(x)
    yield from _moved("broadcast_in_dim", x, ways={"batches": ((ROWS,), P("d"))}, fun=rows)
    yield from _moved(
        "broadcast_in_dim", _float(16), ways={"an axis": ((P("d"),), P())}, shape=(16, 3), broadcast_dimensions=(0,)
    )


def _scan(op, arrays, **options):
    """The middle axis of three, and those next to it."""
    fun = functools.partial(getattr(bj, op), axis=1, implementation="native", **options)
    ways = {"batches": P("d"), "the scanned axis": P(None, "d"), "features": P(None, None, "d")}
    args = tuple(0.4 * (i + 1) * np.roll(_float(8, 16, 8), i) for i in range(arrays))
    for way, spec in ways.items():
        is_whole = way == "the scanned axis" and op not in ("cumsum", "linear_scan")
        yield Sharded(op, way, fun, args, (spec,) * arrays, P() if is_whole else spec, arrays)


def _searches():
    """Eight sequences, and one for all values."""
    fun = functools.partial(bj.searchsorted, implementation="native")
    many = np.sort(_float(8, 16), -1), _float(8, 32)
    one = many[0][0], many[1]
    yield Sharded("searchsorted", "batches", fun, many, (ROWS, ROWS), ROWS, 0)
    yield Sharded("searchsorted", "values of one sequence", fun, one, (P(), COLUMNS), COLUMNS, 0)
    yield Sharded("searchsorted", "the sequence", fun, one, (P("d"), P()), P(), 0)


def _counts(op, fun, x):
    """Elements that are counted, and batches of them."""
    yield Sharded(op, "batches", jax.vmap(fun), (np.stack([np.roll(x, i) for i in range(8)]),), (P("d"),), P("d"), 0)
    yield Sharded(op, "the elements", fun, (x,), (P("d"),), P(), 0)


def _counting():
    yield from _searches()
    ids = np.random.default_rng(0).integers(-1, 5, 64).astype(np.int32)
    yield from _counts("bincount", functools.partial(bj.bincount, length=5, implementation="native"), ids)
    yield from _counts("histogram", lambda a: bj.histogram(a, 5, (-1, 1), implementation="native")[0], _float(64))
    few = np.round(_float(64))
    yield from _counts("nonzero", lambda a: bj.nonzero(a, size=40, implementation="native")[0], few)
    yield from _counts("unique", lambda a: bj.unique(a, size=5, implementation="native"), few)
    yield from _counts("unique_consecutive", lambda a: bj.unique_consecutive(a, size=50, implementation="native"), few)


def _sort(op, reduces=False, arrays=1, axis_name="the sorted axis", **options):
    """The middle axis of three, and those next to it; those of indices and of a first result that is not the op's too."""
    of = bj._core.op.OPS[op]

    def fun(*args):
        return jax.tree.leaves(getattr(bj, op)(*args, axis=1, implementation="native", **options))[of.output]

    if arrays == 2:  # what has a derivative comes first
        fun = lambda values, keys: bj.sort_key_val(keys, values, axis=1, implementation="native")[1]
    position = {"batches": 0, axis_name: 1, "features": 2}
    args = tuple(np.roll(_float(8, 16, 8), i) for i in range(arrays))
    for way, axis in position.items():
        spec = P(*(None,) * axis, "d")
        out = P() if axis == 1 else P(None, "d") if reduces and axis == 2 else spec
        yield Sharded(op, way, fun, args, (spec,) * arrays, out, 1 if of.differentiable else 0)


def _reduce(op):
    """The middle axis of three, and those next to it."""
    fun = lambda x: getattr(bj, op)(x, axis=1, implementation="native")
    moving = 1 if bj._core.op.OPS[op].differentiable else 0
    x = 1 + 0.2 * _float(8, 16, 8)
    yield Sharded(op, "batches", fun, (x,), (P("d"),), P("d"), moving)
    yield Sharded(op, "the reduced axis", fun, (x,), (P(None, "d"),), P(), moving)
    yield Sharded(op, "features", fun, (x,), (P(None, None, "d"),), P(None, "d"), moving)


def _softmax(op):
    """Slices stay where they are."""
    fun = lambda x: getattr(bj, op)(x, axis=1, implementation="native")
    for position, way in enumerate(("batches", "the axis", "features")):
        spec = P(*(None,) * position, "d")
        yield Sharded(op, way, fun, (_float(8, 16, 8),), (spec,), spec, 1)


def _cross_entropy():
    target = np.random.default_rng(0).integers(-1, 16, (8, 8)).astype(np.int32)
    fun = lambda x, target: bj.cross_entropy_terms(x, target, axis=1, implementation="native")
    for way, of_x, of_rows in (
        ("rows", P("d"), P("d")), ("the classes", P(None, "d"), P()), ("more rows", P(None, None, "d"), P(None, "d")),
    ):  # fmt: skip
        yield Sharded("cross_entropy_terms", way, fun, (_float(8, 16, 8), target), (of_x, of_rows), of_rows, 1)


def _trace():
    fun = lambda x: bj.trace(x, axis1=1, axis2=2, implementation="native")
    yield Sharded("trace", "batches", fun, (_float(8, 16, 16),), (P("d"),), P("d"), 1)
    yield Sharded("trace", "rows", fun, (_float(8, 16, 16),), (P(None, "d"),), P(), 1)


def _bits():
    """A key for each row."""
    keys = np.arange(32, dtype=np.uint32).reshape(8, 4)
    fun = jax.vmap(lambda key: bj.random_bits(key, shape=(3, 7), implementation="native"))
    yield Sharded("random_bits", "keys", fun, (keys,), (ROWS,), P("d"), 0)


def _draws():
    """A key for each row."""
    keys = np.arange(32, dtype=np.uint32).reshape(8, 4)
    options = dict(shape=(3, 7), implementation="native")
    for op in (bj.random_uniform, bj.random_normal):
        fun = jax.vmap(lambda key, op=op: op(key, dtype="float32", **options))
        yield Sharded(op.__name__, "keys", fun, (keys,), (ROWS,), P("d"), 0)
    fun = jax.vmap(lambda key: bj.random_bernoulli(key, 0.3, **options).astype(np.float32))
    yield Sharded("random_bernoulli", "keys", fun, (keys,), (ROWS,), P("d"), 0)


def _dropout():
    """The mask of a shard is that part of the whole one."""
    key = np.array([7, 3, 5, 1], np.uint32)
    fun = lambda x: bj.dropout(x, key, 0.4, implementation="native")
    yield Sharded("dropout", "rows", fun, (_float(8, 16),), (ROWS,), ROWS, 1)
    yield Sharded("dropout", "columns", fun, (_float(5, 16),), (COLUMNS,), COLUMNS, 1)


def _samplers():
    """A key for each row."""
    args = _float(8, 16), np.arange(16, dtype=np.uint32).reshape(8, 2)
    parameters = {"top_k_sampling": (5,), "top_p_sampling": (0.8,), "min_p_sampling": (0.1,)}
    for op, values in (parameters | {"top_k_top_p_sampling": (5, 0.8)}).items():
        fun = lambda x, key, op=op, values=values: getattr(bj, op)(x, key, *values, implementation="native")
        yield Sharded(op, "rows", fun, args, (ROWS, ROWS), P("d"), 0)
        yield Sharded(op, "the tokens", fun, args, (COLUMNS, P()), P(), 0)


def _norms():
    x, residual, weight = _float(8, 16), _float(8, 16), _float(16)
    for op, arrays, vectors in (
        ("layer_norm", (x,), (weight, weight)), ("rms_norm", (x,), (weight,)), ("add_rms_norm", (x, residual), (weight,))
    ):  # fmt: skip
        of = functools.partial(getattr(bj, op), implementation="native")
        fun = of if len(arrays) == 1 else lambda *args, of=of: sum(of(*args))
        args, moving = (*arrays, *vectors), len(arrays) + len(vectors)
        for way, spec, of_vectors in (("rows", ROWS, P()), ("the normalized axis", COLUMNS, P("d"))):
            specs = (spec,) * len(arrays) + (of_vectors,) * len(vectors)
            yield Sharded(op, way, fun, args, specs, spec, moving)

    of = functools.partial(bj.group_norm, num_groups=8, implementation="native")
    args = _float(8, 16, 8), _float(16), _float(16)
    yield Sharded("group_norm", "batches", of, args, (P("d"), P(), P()), P("d"), 3)
    of = functools.partial(bj.instance_norm, implementation="native")
    yield Sharded("instance_norm", "batches", of, args, (P("d"), P(), P()), P("d"), 3)
    yield Sharded("instance_norm", "channels", of, args, (P(None, "d"), P("d"), P("d")), P(None, "d"), 3)
    of = lambda x, *vectors: bj.batch_norm(x, None, None, *vectors, training=True, implementation="native")[0]
    yield Sharded("batch_norm", "batches", of, args, (P("d"), P(), P()), P("d"), 3)
    yield Sharded("batch_norm", "channels", of, args, (P(None, "d"), P("d"), P("d")), P(None, "d"), 3)


def _append():
    fun = lambda cache, new, position: bj.kv_cache_append(cache, new, position, implementation="native")
    args = _float(8, 16, 8), _float(8, 2, 8), np.arange(8, dtype=np.int32) * 2
    for way, spec, position in (("batches", P("d"), P("d")), ("features", P(None, None, "d"), P())):
        yield Sharded("kv_cache_append", way, fun, args, (spec, spec, position), spec, 2)


def _attention():
    many, ring = (tuple(_float(*batch, heads, 4) for heads in (4, 2, 2)) for batch in ((8, 6), (2, 16)))
    for op in ("sdpa", "flash_sdpa"):
        fun = lambda *args, op=op: getattr(bj, op)(*args, is_causal=True)
        yield Sharded(op, "batches", fun, many, (P("d"),) * 3, P("d"), 3)

    def around(*args):
        over = jax.sharding.get_abstract_mesh()
        where = {"mesh": over, "axis_name": "d"} if "d" in over.shape and not over.manual_axes else {}
        return bj.ring_attention(*args, is_causal=True, **where)

    yield Sharded("ring_attention", "lengths", around, ring, (P(None, "d"),) * 3, P(None, "d"), 3)
    rng = np.random.default_rng(0)
    decoding = (
        _float(8, 16, 4), _float(24, 2, 8, 4), _float(24, 2, 8, 4), rng.permutation(24).reshape(8, 3).astype(np.int32),
        rng.integers(0, 7, 8).astype(np.int32),
    )  # fmt: skip
    decode = functools.partial(bj.batch_paged_decode, implementation="native")
    for way, specs, out in (
        ("sequences", (P("d"), P(), P(), P("d"), P("d")), P("d")),
        ("heads", (P(None, "d"), *[P(None, None, "d")] * 2, P(), P()), P(None, "d")),
    ):
        yield Sharded("batch_paged_decode", way, decode, decoding, specs, out, 3)
    packed = _float(16, 8, 4), _float(16, 8, 4), _float(16, 8, 4), *[np.array([0, 5, 16], np.int32)] * 2
    varlen = functools.partial(bj.flash_sdpa_varlen, is_causal=True, implementation="native")
    heads = P(None, "d")
    yield Sharded("flash_sdpa_varlen", "heads", varlen, packed, (*[heads] * 3, P(), P()), heads, 3)
    yield Sharded("rope", "batches", lambda x: bj.rope(x), many[:1], (P("d"),), P("d"), 1)
    spec, at = P(None, "d"), np.arange(16, dtype=np.int32)
    yield Sharded("rope", "lengths", lambda *args: bj.rope(*args), (ring[0], at), (spec, P("d")), spec, 1)


REDUCTIONS = (
    "sum", "mean", "max", "min", "prod", "logsumexp", "vector_norm", "var", "std", "count_nonzero", "any", "all",
)  # fmt: skip

UNARY = {
    "leaky_relu": (0.1,), "elu": (), "threshold": (0.1, 0.5), "hardtanh": (), "softshrink": (), "hardshrink": (),
    "integer_pow": (3,), "affine": (2.0, 1.0), "clamp": (-1.0, 1.0),
}  # fmt: skip


def _all():
    for op in ("sum", "mean", "max", "min", "prod"):
        yield from _segments(f"segment_{op}")
    for op in ("segment_max_split", "segment_min_split"):
        yield from _segments(op, ties="split")
    yield from _segments("segment_logsumexp")
    yield from _segments("segment_softmax", out=ROWS)
    yield from _segments("segment_var")
    yield from _segments("segment_std")
    yield from _taken()
    yield from _indexed()
    yield from _gathered()
    yield from _scattered()
    yield from _aligned()
    yield from _state_space()
    yield from _depthwise()
    yield from _embedding()
    yield from _graph()
    yield from _experts()
    yield from _packed()
    for op, parameters in UNARY.items():
        yield from _unary(op, *parameters)
    yield from _alike()
    yield from _lerp()
    yield from _prelu()
    for kind in SCALES:
        yield from _quantize(kind)
        yield from _dequantize(kind)
    yield from _fake("straight_through")
    yield from _fake("lsq")
    yield from _dynamic()
    for rank in (1, 2, 3):
        yield from _pool(rank)
    yield from _windows()
    yield from _resampled()
    yield from _sampled()
    yield from _at_coordinates()
    yield from _regions()
    yield from _boxes()
    yield from _repeat()
    yield from _moves()
    for op in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        yield from _scan(op, 1)
    yield from _scan("linear_scan", 2)
    yield from _counting()
    yield from _sort("sort")
    yield from _sort("argsort")
    yield from _sort("sort_key_val", arrays=2)
    yield from _sort("topk", k=3)
    yield from _sort("kthvalue", reduces=True, k=3)
    for op in ("median", "nanmedian"):
        yield from _sort(op, reduces=True)
    for op in ("quantile", "nanquantile"):
        yield from _sort(op, reduces=True, q=0.3)
    for op in ("argmax", "argmin"):
        yield from _sort(op, reduces=True)
    for op in ("entmax15", "sparsemax"):
        yield from _sort(op, axis_name="the axis")
    for op in ("softmax", "log_softmax"):
        yield from _softmax(op)
    yield from _cross_entropy()
    for op in REDUCTIONS:
        yield from _reduce(op)
    yield from _trace()
    yield from _bits()
    yield from _draws()
    yield from _dropout()
    yield from _samplers()
    yield from _norms()
    yield from _append()
    yield from _attention()
    yield from _small_matrices()


SHARDED = tuple(_all())


def devices():
    """The GPUs if there are several, else the eight devices that the CPU is made to be."""
    return jax.devices()[:8] if len(jax.devices()) > 1 else jax.devices("cpu")[:8]


def mesh(kind, axes=1):
    """Of all devices, along axis "d", or "d" and another."""
    found = devices()
    shape = (len(found),) if axes == 1 else (len(found) // 2, 2)
    types = (AxisType.Explicit if kind == "explicit" else AxisType.Auto,) * axes
    return jax.make_mesh(shape, ("d", "e")[:axes], axis_types=types, devices=found)


def put(args, mesh, specs):
    return [jax.device_put(np.asarray(a), NamedSharding(mesh, spec)) for a, spec in zip(args, specs, strict=True)]


def collectives(text):
    """{collective: count of arrays} in a compiled program: one instruction may be made of several."""
    found = re.findall(r" (all-\w+|collective-\w+|reduce-scatter|ragged-all-to-all)(?:-start)?\(([^()]*)\)", text)
    return {name: sum(len(arrays.split(",")) for n, arrays in found if n == name) for name in {n for n, _ in found}}


def expected():
    """{(op, way): ({collective: count} of the forward pass, of it and the gradient)}, from the table."""

    def counts(element):
        parts = [] if element.startswith("no") else element.split(", ")
        return {name: int(count) for count, name in map(str.split, parts)}

    with TABLE.open() as file:
        return {
            (row["op"], row["sharded"]): (counts(row["forward"]), counts(row["with gradient"]))
            for row in csv.DictReader(file)
        }
