"""Aggregation along edges: what is never in memory, ids of every type, bits, and programs that others wrote for `jax.ops`."""

import math
import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import oracles.graph as oracles
import pytest
import sent
from examples_of import close

import baracuda_jax as bj
from baracuda_jax._core import checks

NODES, EDGES, FEATURES = 311, 5003, 24
REDUCTIONS = ("sum", "mean", "max", "min", "weighted", "heads", "softmax")


def _drawn(reduce, dtype="float32", nodes=NODES, edges=EDGES):
    """(senders, receivers), (x, maybe weights), and the keyword."""
    rng = np.random.default_rng(5)
    normal = lambda *shape: sent.asarray(rng.standard_normal(shape), dtype)
    ids = rng.integers(-2, nodes + 2, (2, edges)).astype("int32")
    if reduce == "heads":
        return ids, (normal(nodes, 3, FEATURES // 3), normal(edges, 3)), "sum"
    if reduce in ("weighted", "softmax"):
        return ids, (normal(nodes, FEATURES), normal(edges)), "sum" if reduce == "weighted" else reduce
    return ids, (normal(nodes, FEATURES),), reduce


def _messages(senders, receivers, x, weights=None, reduce="sum"):
    """The composed program: a row for each edge."""
    inside = (senders >= 0) & (senders < NODES)
    receivers = jnp.where(inside, receivers, -1)
    if reduce == "softmax":
        weights = bj.segment_softmax(jnp.where(inside, weights, -jnp.inf), receivers, NODES, implementation="xla")
    rows = (
        x[senders] if weights is None else x[senders] * weights.reshape(weights.shape + (1,) * (x.ndim - weights.ndim))
    )
    if reduce in ("max", "min"):
        y = getattr(jax.ops, f"segment_{reduce}")(rows, receivers, NODES)
        return jnp.where(jnp.isfinite(y), y, 0)
    y = jax.ops.segment_sum(rows, receivers, NODES)
    count = jax.ops.segment_sum(inside.astype(x.dtype), receivers, NODES)
    return y / jnp.maximum(count, 1)[:, None] if reduce == "mean" else y


def _sizes(text):
    """The numbers of elements of all arrays in a compiled program."""
    return {math.prod(map(int, filter(None, sizes.split(",")))) for sizes in re.findall(r"\b[fs]\d+\[([\d,]*)\]", text)}


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_messages_are_never_in_memory(reduce, platform):
    """Neither in the result nor in the gradients, where the composed program has them; nor in what is allocated, where XLA
    may fuse them on a GPU."""
    ids, arrays, kind = _drawn(reduce)
    aggregated = lambda *a: bj.aggregate(a[0], *ids, *a[1:], reduce=kind, implementation="native")
    of_messages = lambda *a: _messages(*ids, *a, reduce=kind)
    loss = lambda fun: jax.grad(lambda *a: (fun(*a) ** 2).sum(), tuple(range(len(arrays))))
    for program in (lambda fun: fun, loss):
        compiled, composed = (jax.jit(program(fun)).lower(*arrays).compile() for fun in (aggregated, of_messages))
        largest = [max(_sizes(c.as_text())) for c in (compiled, composed)]
        assert largest[0] < EDGES * FEATURES <= largest[1]
        temporary = [c.memory_analysis().temp_size_in_bytes for c in (compiled, composed)]
        assert temporary[0] < 4 * EDGES * FEATURES <= (temporary[1] if platform == "cpu" else math.inf)
        for a, b in zip(jax.tree.leaves(compiled(*arrays)), jax.tree.leaves(composed(*arrays)), strict=True):
            close(a, b, "float32", scale=8)


def test_offsets_need_no_index():
    """Of receivers; nor do those of an index that is given, in the gradient too."""
    ids, (x,), _ = _drawn("sum")
    indptr = np.linspace(0, EDGES, NODES + 1).astype("int32")
    text = lambda fun, *args: jax.jit(fun).lower(*args).as_text()
    by_offsets = lambda x: bj.aggregate(x, ids[0], indptr=indptr, implementation="native")
    assert "segment_index" not in text(by_offsets, x)
    index = [bj.segment_index(i, NODES) for i in ids]
    gradient = lambda x, ids: jax.grad(lambda x: (bj.aggregate(x, *ids, implementation="native") ** 2).sum())(x)
    big = sent.zeros((2**15 + 1, 2), "float32")  # of as many segments that an index has a kernel of its own
    assert "segment_index" in text(gradient, big, list(ids)) and "segment_index" not in text(gradient, x, index)


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", checks.INTEGERS)
def test_edges_of_every_integer_type(dtype, implementation):
    """Also where the dtype does not hold the number of nodes, and out of range on both sides."""
    rng, nodes = np.random.default_rng(6), 300
    info = jnp.iinfo(dtype)
    ids = rng.integers(max(info.min, -4), min(info.max, 304) + 1, (2, 90)).astype(dtype)
    ids[0, :2], ids[1, 2:4] = (info.min, info.max), (info.max, info.min)
    x, weights = rng.integers(-3, 4, (nodes, 2)).astype(float), rng.integers(-3, 4, 90).astype(float)
    for reduce, *more in (("sum",), ("mean",), ("max",), ("min",), ("sum", weights)):
        name = "weighted_sum" if more else reduce
        fun = lambda x, reduce=reduce, more=more: bj.aggregate(
            x, *ids, *more, reduce=reduce, implementation=implementation
        )
        y, pull = jax.vjp(fun, x)
        close(y, getattr(oracles, f"aggregate_{name}")(x, *ids, *more), "float64")
        if reduce == "sum":  # the gradient goes the other way
            want = getattr(oracles, f"aggregate_{name}")(np.ones_like(x), *ids[::-1], *more, num_segments=nodes)
            close(pull(jnp.ones_like(y))[0], want, "float64")


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_a_graph_without_edges(reduce, implementation):
    ids, arrays, kind = _drawn(reduce, edges=0)
    fun = lambda *a: bj.aggregate(a[0], *ids, *a[1:], num_segments=7, reduce=kind, implementation=implementation)
    y, pull = jax.vjp(fun, *arrays)
    assert y.shape == (7, *arrays[0].shape[1:]) and not y.any()
    for dx, x in zip(pull(jnp.ones_like(y)), arrays, strict=True):
        assert dx.shape == x.shape and not dx.any()


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_derivatives_of_nodes_without_features_and_of_no_graphs(reduce, implementation):
    ids = sent.zeros((2, 7), int)
    fun = lambda x, ids: bj.aggregate(x, *ids, num_segments=4, reduce=reduce, implementation=implementation)
    both = lambda x, ids: (jax.jvp(lambda x: fun(x, ids), (x,), (x,))[1], jax.grad(lambda x: fun(x, ids).sum())(x))
    assert [d.shape for d in both(sent.zeros((5, 0)), ids)] == [(4, 0), (5, 0)]
    of_none = jax.vmap(both, (None, 0))(sent.zeros((5, 3)), sent.zeros((0, 2, 7), int))
    assert [d.shape for d in of_none] == [(0, 4, 3), (0, 5, 3)]


BITS = """
import hashlib
import jax, jax.numpy as jnp, numpy as np
import baracuda_jax as bj

rng = np.random.default_rng(0)
nodes, edges, features = 700, 30_011, 24
normal = lambda *shape: jnp.asarray(rng.standard_normal(shape), jnp.float32)
x, w, e = normal(nodes, features), normal(edges), normal(edges, features)
s, r = (nodes * rng.random((2, edges)) ** 3).astype("int32")
bags = jnp.arange(0, edges, 31)
to = jnp.asarray(rng.integers(0, 900, (features, edges // 20)))
experts, top = jnp.asarray(rng.integers(0, 8, (nodes, 2))), normal(nodes, 2)
graphs = {
    reduce: lambda x, w, reduce=reduce: bj.aggregate(x, s, r, w if reduce == "softmax" else None, reduce=reduce)
    for reduce in ("sum", "mean", "max", "min", "softmax")
}
programs = {
    **graphs,
    "weighted": lambda x, w: bj.aggregate(x, s, r, w),
    "edge features": lambda x, e: bj.aggregate(x, s, r, e),
    **{n: lambda e, _, n=n: getattr(bj, n)(e, r, nodes) for n in (
        "segment_sum", "segment_mean", "segment_max", "segment_min", "segment_prod", "segment_softmax", "segment_logsumexp",
        "segment_var", "segment_std")},
    "embedding": lambda x, _: bj.embedding(s, x),
    **{f"bag {m}": lambda x, _, m=m: bj.embedding_bag(s, x, bags, mode=m) for m in ("sum", "mean", "max")},
    "index_add": lambda x, e: bj.index_add(x, s, e, 0),
    "scatter_add": lambda a, b: bj.scatter_add(a, to, b),
    "scatter": lambda a, b: bj.scatter(a, to, b),
    "experts": lambda x, top: bj.moe_combine(*(lambda p: (jnp.tanh(p.x), p.row_map))(bj.moe_permute(x, experts, 8)), top),
}
arrays = {"edge features": (x, e), "index_add": (x, e), "experts": (x, top)}
arrays |= {n: (e, w) for n in programs if n.startswith("segment")}
arrays |= {n: (normal(features, 900), normal(*to.shape)) for n in ("scatter", "scatter_add")}
with bj.prefer("native"):
    for name, fun in programs.items():
        run = jax.jit(lambda *a: (fun(*a), jax.grad(lambda *a: (fun(*a) ** 2).sum(), (0, 1))(*a)))
        of = lambda tree: hashlib.sha1(b"".join(np.asarray(y).tobytes() for y in jax.tree.leaves(tree))).hexdigest()
        print("bits of", name, *{of(run(*arrays.get(name, (x, w)))) for _ in range(10)})
"""


def _bits(threads):
    """{program: the hashes of ten runs}"""
    env = {**os.environ, "NPROC": str(threads), "JAX_PLATFORMS": "cpu"}  # what XLA's thread pool is as large as
    done = subprocess.run([sys.executable, "-P", "-c", BITS], env=env, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.startswith("bits of")]


def test_the_bits_of_ten_runs_and_of_any_number_of_threads():
    alone = _bits(1)
    assert len(alone) == 24 and all(re.fullmatch(r"bits of .* [0-9a-f]{40}", line) for line in alone)
    assert _bits(3) == alone and _bits(8) == alone


# ---------------------------------------------------------------------------------------------------------------------
# Programs that others wrote


def _softplus(x):
    return jax.nn.softplus(x) - np.log(2)


def _energy(params, positions, graph, sums):
    """Of each molecule, by two interactions of continuous filters, as SchNet has them."""
    senders, receivers, kinds, molecules = graph
    distance = jnp.sqrt(((positions[senders] - positions[receivers]) ** 2).sum(1))
    waves = jnp.exp(-2 * (distance[:, None] - np.linspace(0, 5, 12)) ** 2)
    cutoff = 0.5 * (jnp.cos(distance * np.pi / 12) + 1)
    x = params["atoms"][kinds]
    for layer in params["layers"]:
        filters = _softplus(waves @ layer["waves"]) @ layer["filter"] * cutoff[:, None]
        x = x + _softplus(sums(x @ layer["in"], filters) @ layer["out"])
    return jax.ops.segment_sum(_softplus(x) @ params["last"], molecules, 3)


def _molecules():
    """(parameters, positions, graph) of three molecules of 20 atoms, all of whose pairs are edges."""
    rng = np.random.default_rng(7)
    normal = lambda *shape: sent.asarray(rng.standard_normal(shape) / shape[0] ** 0.5)
    layer = lambda: {"waves": normal(12, 8), "filter": normal(8, 8), "in": normal(8, 8), "out": normal(8, 8)}
    params = {"atoms": normal(4, 8), "layers": [layer(), layer()], "last": normal(8)}
    molecules = np.repeat(np.arange(3), 20)
    pairs = np.nonzero((molecules[:, None] == molecules) & ~np.eye(60, dtype=bool))
    kinds = rng.integers(0, 4, 60)
    order = rng.permutation(len(pairs[0]))
    return params, sent.asarray(2 * rng.standard_normal((60, 3))), (*(p[order] for p in pairs), kinds, molecules)


def _learned(sums):
    """Energies, forces, and the gradient of a loss of both: second derivatives through two aggregations."""
    params, positions, graph = _molecules()

    def forces(params, positions):
        return -jax.grad(lambda p: _energy(params, p, graph, sums).sum())(positions)

    def loss(params):
        energies = _energy(params, positions, graph, sums)
        return ((energies - 1) ** 2).mean() + (forces(params, positions) ** 2).mean()

    return jax.jit(lambda p: (_energy(p, positions, graph, sums), forces(p, positions), jax.grad(loss)(p)))(params)


def _same_to_six_digits(got, want):
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.dtype == "float64" and np.abs(b).max() > 1e-3
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * np.abs(b).max())


def test_energies_and_forces_of_molecules():
    """As the program is, under `patch_jax()`, and with `aggregate`."""
    senders, receivers, *_ = _molecules()[2]
    by_jax = lambda x, filters: jax.ops.segment_sum(x[senders] * filters, receivers, len(x))
    want, lines = _learned(by_jax), []
    with bj.patch_jax(verbose=lines.append), bj.prefer("native"):
        _same_to_six_digits(_learned(by_jax), want)
    assert sum(line.startswith("jax.ops.segment_sum: segment_sum native") for line in lines) >= 6
    with bj.prefer("native"):
        _same_to_six_digits(_learned(lambda x, filters: bj.aggregate(x, senders, receivers, filters)), want)


JRAPH = """
import functools, sys, types, unittest
import jax, jax.lib
# What JAX had when jraph was released, and has elsewhere now.
jax.tree_map, jax.tree_leaves = jax.tree.map, jax.tree.leaves
jax.lib.xla_bridge = sys.modules["jax.lib.xla_bridge"] = types.ModuleType("xla_bridge")
jax.lib.xla_bridge.get_backend = functools.cache(jax.devices)
import baracuda_jax as bj
calls = []
if sys.argv[1] == "patched":
    bj.patch_jax(verbose=lambda line: calls.append(line) if "native" in line else None)
from jraph._src import {module}
with bj.prefer("native"):
    result = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule({module}))
print("ran", result.testsRun, "wrong", len(result.errors) + len(result.failures), "native calls", len(calls))
"""


@pytest.mark.large
@pytest.mark.parametrize("how", ["plain", "patched"])
@pytest.mark.parametrize("module, count", [("models_test", 17), ("utils_test", 85)])
def test_jraphs_own_tests(module, count, how):
    pytest.importorskip("jraph")
    code = JRAPH.replace("{module}", module)
    env = {**os.environ, "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, how], env=env, capture_output=True, text=True, timeout=1800
    )
    found = re.search(r"ran (\d+) wrong (\d+) native calls (\d+)", done.stdout)
    assert found, done.stderr[-3000:]
    ran, wrong, native = map(int, found.groups())
    assert (ran, wrong) == (count, 0), done.stderr[-3000:]
    assert (native > 0) == (how == "patched")
