"""What `python -m baracuda_jax bench` does with its options."""

import importlib.util
import sys

import jax
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .._core.library import LIBRARIES
from . import results, verdicts
from .cases import OPS, benchmarks
from .floor import copy_bandwidth
from .run import run
from .table import table

WIDTH = 170  # of what is printed to a file


def bench(options):
    """The exit status."""
    problem = _problem(options)
    if problem:
        print(problem, file=sys.stderr)
        return 1
    found, failures = (results.read(options.read), []) if options.read else _measure(options)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table(found), highlight=False)
    for failure in failures:
        console.print(f"[red]failed[/red]  {failure}", highlight=False, soft_wrap=True)
    if options.write_table:
        verdicts.write(options.write_table, found)
    if options.plot and found["rows"]:
        from .plot import draw

        draw(found, options.plot)
    return 1 if failures else 0


def _problem(options):
    """Why this can't be done, said before a long time of measuring."""
    needed = {"matplotlib": options.plot, "torch": "torch" in options.against and not options.read}
    for module, is_needed in needed.items():
        if is_needed and importlib.util.find_spec(module) is None:
            how = "baracuda-jax[bench]" if module == "matplotlib" else module
            return f"This needs {module}, which is not installed: pip install '{how}'"
    unknown = sorted(set(options.op or ()) - set(OPS))
    if unknown:
        return f"No such op: {', '.join(unknown)}. There are {', '.join(OPS)}."
    if options.read:
        more = options.op or options.dtype or options.json
        return "--from measures nothing, and takes no --op, --dtype or --json" if more else None
    try:
        _, platform = _device(options)
    except RuntimeError:
        return f"This machine has no device of platform {options.platform}"
    return LIBRARIES[platform].problem


def _device(options):
    """(the device, its platform as we name it)"""
    device = jax.devices(options.platform)[0]
    return device, "cpu" if device.platform == "cpu" else "cuda"


def _measure(options):
    """(the results, what failed)"""
    device, platform = _device(options)
    chosen = [
        b for b in benchmarks(options.size)
        if b.op in (options.op or OPS) and b.dtype in (options.dtype or (b.dtype,))
    ]  # fmt: skip
    rows, failures = [], []
    bar = Progress(
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with jax.default_device(device), bar:
        bandwidth = copy_bandwidth(platform)
        about = results.about(device, platform, bandwidth, options.repeats, "torch" in options.against)
        task = bar.add_task("", total=len(chosen))
        for number, benchmark in enumerate(chosen, 1):
            bar.update(task, description=str(benchmark))
            if not bar.console.is_terminal:  # a log has no bar
                print(f"[{number}/{len(chosen)}] {benchmark}", file=sys.stderr, flush=True)
            try:
                with_reference = bool(options.write_table)
                rows += run(
                    benchmark, options.size, platform, bandwidth, options.against, with_reference, options.repeats
                )
            except Exception as error:  # one that fails, as for lack of memory, leaves the others their times
                failures.append(f"{benchmark}: {_first_line(error)}")
            if options.json:  # now, so that a run that is cut off leaves what it has
                results.write(options.json, about | {"rows": rows})
            bar.advance(task)
    return about | {"rows": rows}, failures


def _first_line(error):
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"
