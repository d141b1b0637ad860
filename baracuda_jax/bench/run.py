"""One benchmark: its programs are compiled, checked and timed in turn on the same few sets of random inputs."""

import statistics

import jax
import numpy as np

from . import bounds, checks, programs, times, torch_programs


def run(benchmark, size, platform, bandwidth, against, repeats):
    """Yields a row of results for each pass. `against` has "xla", "torch" or both."""
    draw = jax.jit(benchmark.drawn).lower(0).compile()
    inputs = jax.eval_shape(benchmark.drawn, 0)
    y, operands = benchmark.result_type(inputs[1:]), inputs[1:]
    for title in benchmark.passes:
        program_of = lambda fun, title=title: programs.BY_PASS[title](fun, benchmark.moving)
        compiled, note = compile_all(benchmark, program_of, inputs, against)
        reference = compiled["xla"] if "xla" in compiled and not benchmark.plain else None
        expected = checks.expected(benchmark, program_of, inputs, reference)
        with times.alone_on_device():
            sets = [draw(seed) for seed in range(3 if size == "small" else 2)]
            checks.check(benchmark, expected, compiled["native"], sets[0])
            timed = {name: times.on(program, sets) for name, program in compiled.items()}
            if "torch" in against and benchmark.torch:
                torch = torch_programs.program(benchmark, sets, title != "forward")
                timed |= {"torch": torch} if torch else {}
            seconds = times.measure(platform, timed, repeats)
            del sets, timed  # before others have their turn
        ms = lambda name, seconds=seconds: 1e3 * statistics.median(seconds[name]) if name in seconds else None
        smallest = bounds.BY_PASS[title](benchmark, operands, y)
        yield {
            "op": benchmark.op, "family": benchmark.family, "pass": title, "dtype": benchmark.dtype,
            "size": size, "case": benchmark.case, "variant": benchmark.variant, "even": benchmark.even,
            "native_ms": ms("native"), "quartiles_ms": [1e3 * float(q) for q in np.percentile(seconds["native"], (25, 75))],
            "xla_ms": ms("xla"), "torch_ms": ms("torch"),
            "floor_ms": 1e3 * smallest / bandwidth, "floor_bytes": smallest, "bytes": bounds.size((*operands, y)),
            "temporary_bytes": _temporary(compiled["native"]), "xla_temporary_bytes": _temporary(compiled.get("xla")),
            "note": note,
        }  # fmt: skip


def _temporary(program):
    """The bytes that a compiled program has at its peak besides its arguments and results."""
    sizes = program and program.memory_analysis()
    return sizes.temp_size_in_bytes if sizes else None


def compile_function(benchmark, program_of, name, arguments):
    """The op, by the kernel or by its definition."""
    implementation = name if benchmark.has_native else None
    return program_of(lambda *a: benchmark.function(*a, implementation=implementation)).lower(*arguments).compile()


def compile_all(benchmark, program_of, arguments, against):
    """({name: compiled program}, what is to be said of XLA's or None). XLA's is of plain JAX, or else of the reference."""
    compiled, note = {"native": compile_function(benchmark, program_of, "native", arguments)}, None
    if "xla" not in against:
        return compiled, note
    if benchmark.plain:
        xla, note = programs.compile_or_reason(program_of(benchmark.plain), arguments)
    else:
        xla = compile_function(benchmark, program_of, "xla", arguments)
    if xla:
        compiled["xla"] = xla
        if programs.in_one_kernel(xla.as_text()):
            note = "XLA: one kernel computes both passes"
    return compiled, note
