"""Time against size: each series of cases, from arrays that fit in a cache to those whose offsets need 64 bits.

The programs of a series are compiled first, several at a time. Then each size's arrays are drawn, and both passes run: all
elements of native's results are compared with the reference's, and native and XLA's program are timed in turn on one set of
inputs."""

import concurrent.futures
import os
import statistics

import jax

from . import bounds, checks, parts, programs, times

SIZES = (*(2**k for k in range(10, 31, 2)), 2**31, 2**31 + 2**20)
LARGEST_ON_CPU = 2**26
REPEATS = 5


def sizes(platform):
    """Elements of the largest array. On a GPU a series ends by itself, where memory does."""
    return [size for size in SIZES if platform != "cpu" or size <= LARGEST_ON_CPU]


def run(series, platform, dtype, bandwidth, repeats):
    """Yields a row for each size and pass, or the error of what has no row."""
    cases = {size: series.of(size, dtype) for size in sizes(platform)}
    compiled = compile_all(series, cases)
    for size, benchmark in cases.items():
        try:
            arguments = jax.block_until_ready(compiled[size, "draw"](0))
            for title in benchmark.passes:
                some = {name: compiled[size, title, name] for name in ("native", "xla", "compare")}
                try:
                    measured = _measure(benchmark, size, some, arguments, platform, repeats)
                except checks.WrongError as error:
                    yield checks.WrongError(f"{benchmark}, {title}: {error}")
                    continue
                smallest = bounds.BY_PASS[title](benchmark, arguments[1:], benchmark.result_type(arguments[1:]))
                about = {"op": benchmark.op, "pass": title, "dtype": dtype, "size": size, "case": benchmark.case}
                more = {"variant": benchmark.variant, "floor_ms": 1e3 * smallest / bandwidth}
                yield about | measured | more
        except jax.errors.JaxRuntimeError as error:
            yield RuntimeError(f"{benchmark}: {programs.first_line(error)}")
            return  # mostly for lack of memory, which larger arrays lack too


def _measure(benchmark, size, compiled, arguments, platform, repeats):
    """The times of a row, and whether the results were compared."""
    checks.demand_kernel(compiled["native"])
    results = jax.block_until_ready(compiled["native"](*arguments))
    reasons = {
        "check": _reason(
            parts.check, compiled["compare"], parts.number_of_parts(size), arguments, results, benchmark.flips
        ),
        "XLA": _reason(compiled["xla"], *arguments),
    }
    del results  # before times are taken, since XLA's program may need the memory
    names = ["native"] if reasons["XLA"] else ["native", "xla"]
    seconds = times.measure(platform, {name: times.on(compiled[name], [arguments]) for name in names}, repeats)
    ms = lambda name: 1e3 * statistics.median(seconds[name]) if name in seconds else None
    note = "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)
    return {"native_ms": ms("native"), "xla_ms": ms("xla"), "checked": not reasons["check"], "note": note or None}


def compile_all(series, cases):
    """{(size, "draw") and (size, pass, which program): compiled}"""
    lowered = {}
    for size, benchmark in cases.items():
        draw = jax.jit(benchmark.drawn)
        lowered[size, "draw"] = draw.lower(0)
        arguments = jax.eval_shape(draw, 0)
        for title in benchmark.passes:
            program_of = lambda fun, title=title: programs.BY_PASS[title](fun, benchmark.moving)
            native = program_of(lambda *arrays: benchmark.function(*arrays, implementation="native"))
            xla = program_of(benchmark.plain or (lambda *arrays: benchmark.function(*arrays, implementation="xla")))
            compare = parts.program(series, benchmark, program_of, parts.number_of_parts(size))
            lowered[size, title, "native"] = native.lower(*arguments)
            lowered[size, title, "xla"] = xla.lower(*arguments)
            lowered[size, title, "compare"] = compare.lower(0, arguments, jax.eval_shape(native, *arguments))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(lowered, pool.map(_compiled, lowered.values()), strict=True))


def _compiled(lowered):
    """A program. Where there is none, calls raise why."""
    try:
        return lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        return _Failed(error)


class _Failed:
    def __init__(self, error):
        self._error = error

    def __call__(self, *_):
        raise self._error


def _reason(call, *arguments):
    """Why a call does not run, as for lack of memory, or None."""
    try:
        jax.block_until_ready(call(*arguments))
    except jax.errors.JaxRuntimeError as error:
        return programs.first_line(error)
