"""Both backends of every op over a grid of sizes, from which the table is written by which the backend is chosen; and at
random sizes outside it, which shows what a wrong choice costs.

Where the faster backend changes between two neighbors in the grid, the sizes half-way between them are measured too, and
some random ones, which no grid has. The programs of many benchmarks are compiled at a time, and timed in one profile."""

import concurrent.futures
import dataclasses
import itertools
import os
import random
import statistics

import jax

from .._core import compat, measurements
from .._core.call import Call
from .._core.op import OPS
from . import between, checks, programs, times
from .cases.spaces import SPACES

REPEATS, CALLS = 5, 20
RANDOM = 4  # sizes of the table that are not of the grid
SETS = 2
COMPILERS = min(16, os.cpu_count())  # a container may count more cores than it has
CHUNK_BYTES = {"cpu": 2**30, "cuda": 2**35}  # of all arrays that are timed in one profile
CHUNK = 32  # benchmarks
PASSES = {"forward": "forward", "forward + backward": "backward"}
BACKENDS = ("native", "xla")


def ops():
    """Those that have a choice."""
    every = (b.op for space in SPACES.values() for dtype in space.dtypes for b in space.of(space.grid("cpu")[0], dtype))
    return tuple(dict.fromkeys(op for op in every if _has_choice(op)))


def _has_choice(op):
    """Ops made of others have theirs."""
    return OPS[op].has_kernels and not OPS[op].made_of


def grid(of):
    """{name: () -> rows} for each space and dtype."""
    return {
        f"{name} {dtype}": lambda which=(name, space, dtype): _grid(*which, of) for name, space, dtype in _spaces(of)
    }


def regret(of, number):
    """The same at so many random sizes for each op, others than the table's, and others for each number."""
    return {
        f"{name} {dtype}": lambda which=(space, dtype, f"outside {name} {dtype} {number}"): _random(*which, of, number)
        for name, space, dtype in _spaces(of)
    }


def _spaces(of):
    for name, space in SPACES.items():
        for dtype in space.dtypes:
            if of.dtypes and dtype not in of.dtypes:
                continue
            if any(b.op in of.ops for b in space.of(space.grid(of.platform)[0], dtype)):
                yield name, space, dtype


def _chosen(space, sizes, dtype, of):
    return [b for b in space.of(sizes, dtype) if b.op in of.ops and _has_choice(b.op) and b.has_native]


def _grid(name, space, dtype, of):
    sizes = space.grid(of.platform)
    rows = yield from _measured([(s, b) for s in sizes for b in _chosen(space, s, dtype, of)], of)
    more = _crossings(space, rows)
    wanted = [
        (s, b) for s in dict.fromkeys(s for s, _ in more) for b in _chosen(space, s, dtype, of) if (s, b.op) in more
    ]
    yield from _measured(wanted, of)
    yield from _random(space, dtype, f"{name} {dtype}", of, RANDOM)


def _random(space, dtype, seed, of, number):
    rng = random.Random(seed)
    sizes = [space.random(rng, of.platform) for _ in range(number)]
    yield from _measured([(s, b) for s in sizes for b in _chosen(space, s, dtype, of)], of)


def _crossings(space, rows):
    """{(sizes, op)} half-way between neighbors of which each has another faster backend."""
    found, by_series = {}, {}
    for sizes, row in rows:
        by_series.setdefault((row["op"], row["pass"], row["variant"]), {})[sizes] = row["native_ms"] < row["xla_ms"]
    for (op, *_), faster in by_series.items():
        for a, b in itertools.combinations(faster, 2):
            if faster[a] != faster[b] and _are_neighbors(space, a, b):
                found[a.between(b), op] = True
    return found


def _are_neighbors(space, a, b):
    """Whether they differ in one size, by one step of the grid; slices that are not batched, and odd ones, differ in their
    elements too."""
    names = [field.name for field in dataclasses.fields(a) if getattr(a, field.name) != getattr(b, field.name)]
    if not space.is_batched or a.length in space.odd:
        names = [name for name in names if name != "elements"]
    if len(names) != 1:
        return False
    (name,) = names
    if name == "elements":
        return True  # there are few
    steps = space.inner if name == "inner" else space.odd if a.length in space.odd else space.lengths
    if getattr(b, name) not in steps:
        return False
    return abs(steps.index(getattr(a, name)) - steps.index(getattr(b, name))) == 1


def _measured(wanted, of):
    """Yields rows, or errors; returns [(sizes, row)]."""
    found = []
    for chunk in _chunks(wanted, CHUNK_BYTES[of.platform]):
        with concurrent.futures.ThreadPoolExecutor(COMPILERS) as pool:  # lowers the next ones while it compiles
            futures = [pool.submit(_compiled, _lowered(benchmark)) for _, benchmark in chunk]
            compiled = [future.result() for future in futures]
        regimes = [regime(benchmark) for _, benchmark in chunk]
        jobs, timed, wrong = [], {}, []
        with times.alone_on_device() as release:
            for (sizes, benchmark), programs_, at in zip(chunk, compiled, regimes, strict=True):
                sets = [programs_["draw"](seed) for seed in range(SETS)]
                try:
                    _check(benchmark, programs_, sets[0])
                except checks.WrongError as error:
                    wrong.append(checks.WrongError(f"{benchmark}: {error}"))
                    continue
                for title in benchmark.passes:
                    timed |= {f"{len(jobs)} {name}": times.on(programs_[title, name], sets) for name in BACKENDS}
                    jobs.append((sizes, benchmark, title, at))
            seconds = times.measure(of.platform, timed, of.repeats, CALLS, release) if timed else {}
        yield from wrong
        for number, (sizes, benchmark, title, at) in enumerate(jobs):
            ms = [1e3 * statistics.median(seconds[f"{number} {name}"]) for name in BACKENDS]
            row = _row(benchmark, title, at, of.platform, *ms)
            found.append((sizes, row))
            yield row
    return found


def _chunks(wanted, most):
    chunk, size = [], 0
    for sizes, benchmark in wanted:
        needed = 4 * SETS * 4 * sizes.elements  # operands, results, cotangents, gradients
        if chunk and (size + needed > most or len(chunk) == CHUNK):
            yield chunk
            chunk, size = [], 0
        chunk.append((sizes, benchmark))
        size += needed
    if chunk:
        yield chunk


def _lowered(benchmark):
    """{"draw": seed -> arguments; (pass, backend): arguments -> results; "errors": both backends' results of the last pass
    -> errors}"""
    is_between = between.has(benchmark.family)

    def draw(seed):
        arrays = benchmark.drawn(seed)
        return between.sets(benchmark, [arrays])[0] if is_between else arrays

    def program(title, backend):
        fun = lambda *a: benchmark.function(*a, implementation=backend)
        return programs.BY_PASS[title](between.program(fun) if is_between else fun, benchmark.moving)

    arguments = jax.eval_shape(draw, 0)
    every = {(title, name): program(title, name) for title in benchmark.passes for name in BACKENDS}
    results = jax.eval_shape(every[benchmark.passes[-1], "native"], *arguments)
    errors = jax.jit(lambda function, expected: checks.errors(function, expected, benchmark.tolerance)).lower(
        results, results
    )
    lowered = {which: fun.lower(*arguments) for which, fun in every.items()}
    return lowered | {"draw": jax.jit(draw).lower(0), "errors": errors}


def _compiled(lowered):
    return {which: program.compile() for which, program in lowered.items()}


def _check(benchmark, compiled, arguments):
    for title in benchmark.passes:
        checks.demand_kernel(compiled[title, "native"])
    results = (compiled[benchmark.passes[-1], name](*arguments) for name in BACKENDS)
    checks.refuse_wrong(compiled["errors"](*results), benchmark.flips)


def regime(benchmark):
    """Of the op's own call in the benchmark."""
    op, arrays = OPS[benchmark.op], jax.eval_shape(benchmark.drawn, 0)[1:]
    jaxpr = jax.make_jaxpr(lambda *a: benchmark.function(*a, implementation="native"))(*arrays)
    call = next(e for e in compat.equations(jaxpr) if e.primitive is op.forward)
    types = lambda variables: tuple(v.aval for v in variables)
    return Call(op, "forward", types(call.invars), types(call.outvars), call.params).regime


def _row(benchmark, title, at, platform, native_ms, xla_ms):
    found = measurements.measured(benchmark.op, PASSES[title], platform, benchmark.dtype, at)
    default = OPS[benchmark.op].default
    chosen = measurements.decision(found[0], default) if found else default
    best = min(native_ms, xla_ms)
    return {
        "op": benchmark.op, "pass": title, "dtype": benchmark.dtype, "case": benchmark.case, "variant": benchmark.variant,
        "regime": at, "native_ms": native_ms, "xla_ms": xla_ms, "chosen": chosen,
        "regret": {"native": native_ms, "xla": xla_ms}[chosen] / best,
    }  # fmt: skip
