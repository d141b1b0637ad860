"""What a call costs besides its kernel: the host's time of tiny calls, of long chains of them, of compiling and importing.

Each part yields rows of {"measure", "case", "unit", "native", "xla"}, one of the last two being null where there is none."""

import collections
import pathlib
import re
import statistics
import subprocess
import sys
import time

import jax
from jax import lax

import baracuda_jax

from . import programs, times
from .cases import elementwise, segment

REPEATS = 1000
WARM = 10
CHAIN = 64
COMPILES = 5
IMPORTS = 7
# A profile otherwise turns graphs off, and kernels are launched one by one.
GRAPHS = {"xla_enable_command_buffers_during_profiling": True}


def tiny(more=0):
    """Benchmarks of 8 elements or rows, or more; results have the operand's shape, so that calls make a chain."""
    rows = 8 + more
    return elementwise.unary("hardtanh", (rows,), "float32"), segment.benchmark(
        "segment_sum", (rows, 8, rows), "float32", False
    )


def backends(benchmark):
    """{name: the function}"""
    return {"native": lambda *arrays: benchmark.function(*arrays, implementation="native"), "xla": benchmark.plain}


def row(measure, case, unit, native, xla=None):
    return {"measure": measure, "case": case, "unit": unit, "native": native, "xla": xla}


def arrays_of(benchmark):
    """Its operands, without a cotangent."""
    return jax.jit(benchmark.drawn)(0)[1:]


# ---------------------------------------------------------------------------------------------------------------------
# Calls


def calls(platform, repeats):
    """One op in a program of its own: the host's time until the result is there, and on a GPU the kernels'."""
    for benchmark in tiny():
        arrays = arrays_of(benchmark)
        made = {name: jax.jit(fun) for name, fun in backends(benchmark).items()}
        name = f"{benchmark.op} {benchmark.case}"
        yield row("call", f"{name}, waited for", "us", **waited_for(made, arrays, repeats))
        if platform != "cpu":
            seconds = times.measure(platform, {k: times.on(f, [arrays]) for k, f in made.items()}, 5)
            yield row("call", f"{name}, kernels", "us", **{k: 1e6 * statistics.median(s) for k, s in seconds.items()})


def waited_for(made, arrays, repeats):
    """{name: median microseconds of a call}, called in turn."""
    found = {name: [] for name in made}
    for i in range(WARM + repeats):
        for name, fun in made.items():
            begin = time.perf_counter()
            jax.block_until_ready(fun(*arrays))
            if i >= WARM:
                found[name].append(time.perf_counter() - begin)
    return {name: 1e6 * statistics.median(seconds) for name, seconds in found.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Chains


def chains(platform, repeats):
    """Many ops in one program, each on the result of the one before. Barriers between them keep XLA from fusing its own, but
    not every version for CPUs: the number of steps tells."""
    for benchmark in tiny():
        arrays = arrays_of(benchmark)
        made = {name: jax.jit(chain(fun)) for name, fun in backends(benchmark).items()}
        name = f"{CHAIN} x {benchmark.op} {benchmark.case}"
        yield row("chain", f"{name}, waited for", "us", **waited_for(made, arrays, repeats))
        found = {k: steps(f.lower(*arrays).compile().as_text()) for k, f in made.items()}
        yield row("chain", f"{name}, steps in the program", "", **found)


def graphs(platform, repeats):
    """What the host launches on a GPU for a call of a chain: one CUDA graph, where its steps are recorded as one."""
    if platform == "cpu":
        return
    for benchmark in tiny():
        arrays = arrays_of(benchmark)
        made = {
            k: jax.jit(chain(f)).lower(*arrays).compile(compiler_options=GRAPHS) for k, f in backends(benchmark).items()
        }
        launched = {name: launches(program, arrays) for name, program in made.items()}
        for what, prefix in (("graphs", "cuGraphLaunch"), ("kernels", "cuLaunchKernel")):
            count = lambda found, prefix=prefix: sum(n for event, n in found.items() if event.startswith(prefix))
            case = f"{CHAIN} x {benchmark.op} {benchmark.case}, {what} launched in a call"
            yield row("chain", case, "", **{name: count(found) for name, found in launched.items()})


def chain(step):
    def program(x, *more):
        for _ in range(CHAIN):
            x = lax.optimization_barrier(step(x, *more))
        return x

    return program


def steps(hlo):
    """How many kernels a compiled program has."""
    return len(re.findall(r" (?:fusion|custom-call)\(", hlo))


def launches(compiled, arrays):
    """{the driver's function: how often a call calls it}, by a profile."""
    program = times.on(compiled, [arrays])
    program.seconds(WARM)
    with times.profile() as events:
        program.seconds(WARM)
    on_host = collections.Counter(event.name for event in events if not event.plane.startswith("/device"))
    found = {name: count / WARM for name, count in on_host.items() if name.startswith("cu")}
    if not found:
        raise RuntimeError(
            f"the profile has no calls of the driver, but {', '.join(n for n, _ in on_host.most_common(20))}"
        )
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Compiling, importing, storing


def compiling(platform, repeats):
    """Tracing, lowering and compiling, each time another shape."""
    for title, program_of in programs.BY_PASS.items():
        seconds = {}
        for more in range(COMPILES + 1):
            for benchmark in tiny(more):
                arguments = jax.jit(benchmark.drawn)(0)
                for name, fun in backends(benchmark).items():
                    begin = time.perf_counter()
                    program_of(fun, benchmark.moving).lower(*arguments).compile()
                    seconds.setdefault((benchmark.op, name), []).append(time.perf_counter() - begin)
        # The first one loads what compilers need.
        ms = {key: 1e3 * statistics.median(of[1:]) for key, of in seconds.items()}
        for op in dict.fromkeys(op for op, _ in ms):
            yield row("compile", f"{op}, {title}", "ms", ms[op, "native"], ms[op, "xla"])


IMPORT = """
import time
import jax
begin = time.perf_counter()
import baracuda_jax
print(time.perf_counter() - begin)
"""


def importing(platform, repeats):
    """`import baracuda_jax` where jax is imported."""
    command = [sys.executable, "-P", "-c", IMPORT]
    run = lambda: float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    yield row("import", "baracuda_jax, after jax", "ms", 1e3 * statistics.median(run() for _ in range(IMPORTS)))


def storing(platform, repeats):
    """The installed package."""
    files = [f for f in pathlib.Path(baracuda_jax.__file__).parent.rglob("*") if f.is_file() and f.suffix != ".pyc"]
    for module in sorted(f for f in files if f.suffix == ".so"):
        yield row("size", module.name, "MB", module.stat().st_size / 1e6)
    yield row("size", "all files", "MB", sum(f.stat().st_size for f in files) / 1e6)


PARTS = {
    "calls": calls, "chains": chains, "graphs": graphs, "compile times": compiling, "import time": importing, "size": storing
}  # fmt: skip
