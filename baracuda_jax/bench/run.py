"""One benchmark: its programs are compiled, checked and timed in turn on the same few sets of random inputs."""

import statistics

import jax
import numpy as np

from . import between, floor, programs, times, torch_programs
from .checks import check

BACKENDS = {"native": "native", "reference": "xla"}


def run(benchmark, size, platform, bandwidth, against, with_reference, repeats):
    """Yields a row of results for each pass. `against` has "xla", "torch" or both; `with_reference` times our definition in
    plain JAX too, and an elementwise op between others."""
    draw = jax.jit(benchmark.drawn)
    sets = [draw(seed) for seed in range(3 if size == "small" else 2)]
    y, operands = benchmark.result_type(sets[0][1:]), sets[0][1:]
    for title in benchmark.passes:
        program_of = lambda fun, title=title: programs.BY_PASS[title](fun, benchmark.moving)
        compiled, note = compile_all(benchmark, program_of, sets[0], against, with_reference)
        check(benchmark, program_of, compiled["native"], sets[0])
        timed = {name: times.on(program, sets) for name, program in compiled.items()}
        if with_reference and between.has(benchmark.family):
            timed |= compile_between(benchmark, program_of, sets)
        if "torch" in against and benchmark.torch:
            torch = torch_programs.program(benchmark, sets, title != "forward")
            timed |= {"torch": torch} if torch else {}
        seconds = times.measure(platform, timed, repeats)
        if "xla" in against and not benchmark.plain:
            seconds["xla"] = seconds["reference"]
        ms = lambda name, seconds=seconds: 1e3 * statistics.median(seconds[name]) if name in seconds else None
        least = floor.BY_PASS[title](benchmark, operands, y)
        yield {
            "op": benchmark.op, "family": benchmark.family, "pass": title, "dtype": benchmark.dtype,
            "size": size, "case": benchmark.case, "variant": benchmark.variant, "even": benchmark.even,
            "native_ms": ms("native"), "quartiles_ms": [1e3 * float(q) for q in np.percentile(seconds["native"], (25, 75))],
            "xla_ms": ms("xla"), "reference_ms": ms("reference"), "torch_ms": ms("torch"),
            "between_ms": [ms("native between"), ms("reference between")] if "native between" in seconds else None,
            "floor_ms": 1e3 * least / bandwidth, "floor_bytes": least, "bytes": floor.size((*operands, y)),
            "note": note,
        }  # fmt: skip


def compile_ours(benchmark, program_of, name, arguments):
    """The op, by the kernel or by its definition."""
    implementation = BACKENDS[name] if benchmark.ours_is_native else None
    return program_of(lambda *a: benchmark.ours(*a, implementation=implementation)).lower(*arguments).compile()


def compile_between(benchmark, program_of, sets):
    """{name: what is timed} of both backends."""
    more = between.sets(benchmark, sets)
    ours = lambda name: compile_ours(benchmark, lambda fun: program_of(between.program(fun)), name, more[0])
    return {f"{name} between": times.on(ours(name), more) for name in BACKENDS}


def compile_all(benchmark, program_of, arguments, against, with_reference):
    """({name: compiled program}, what is to be said of XLA's or None)"""
    ours = lambda name: compile_ours(benchmark, program_of, name, arguments)
    compiled, note = {"native": ours("native")}, None
    if "xla" in against and benchmark.plain:
        plain, note = programs.compile_or_reason(program_of(benchmark.plain), arguments)
        if plain:
            compiled["xla"] = plain
    if with_reference or ("xla" in against and not benchmark.plain):
        compiled["reference"] = ours("reference")
    xla = compiled.get("xla" if benchmark.plain else "reference")
    if "xla" in against and xla and programs.in_one_kernel(xla.as_text()):
        note = "XLA: one kernel computes both passes"
    return compiled, note
