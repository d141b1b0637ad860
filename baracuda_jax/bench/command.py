"""What `baracuda-jax bench` does with its options."""

import importlib.util
import pathlib
import sys
import time

import jax
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .._cli.names import unknown
from .._core.library import LIBRARIES
from .._core.measurements import user_table
from . import backends, kinds, results, table
from .bounds import copy_bandwidth
from .programs import first_line

WIDTH = 170  # of what is printed to a file
WRITE_SECONDS = 5.0


def bench(options):
    """The exit status."""
    kind = kinds.of(options)
    problem = _problem(kind, options)
    if problem:
        print(problem, file=sys.stderr)
        return 1
    found, failures = (results.read(options.read), []) if options.read else _measure(kind, options)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(table.of(kind.name, found), highlight=False)
    for failure in failures:
        console.print(f"[red]failed[/red]  {failure}", highlight=False, soft_wrap=True)
    if options.write_table:
        backends.write(options.write_table, found)
    if options.tune:
        backends.write(user_table(found["device"]), found)
    if options.plot and found["rows"]:
        from . import curves, plot

        {"cases": plot, "sweep": curves}[kind.name].draw(found, options.plot)
    return 1 if failures else 0


def _problem(kind, options):
    """Why this can't be done, said before a long time of measuring."""
    against = options.against or ()
    for name in kinds.CASES.options:
        if getattr(options, name) and name not in kind.options:
            return f"--{kind.name} takes no --{name.replace('_', '-')}"
    needed = {"matplotlib": options.plot, "torch": "torch" in against and not options.read}
    for module, is_needed in needed.items():
        if is_needed and importlib.util.find_spec(module) is None:
            return f"This needs {module}, which is not installed: pip install {module}"
    where = "`baracuda-jax ops` lists all" if kind is kinds.CASES else f"--{kind.name} has {', '.join(kind.ops)}"
    if problem := unknown(options.op, kind.ops, where):
        return problem
    if options.repeats is not None and options.repeats < 1:
        return f"--repeats must be at least 1, got {options.repeats}"
    if options.read:
        more = options.op or options.dtype or options.case or options.json
        if more:
            return "--from measures nothing, and takes no --op, --dtype, --case or --json"
        return None if pathlib.Path(options.read).is_file() else f"No such file: {options.read}"
    if options.case and not kinds.chosen(options.size or "small", options.op, case=options.case):
        return f"No case of these ops contains {options.case}"
    try:
        _, platform = _device(options)
    except RuntimeError:
        return f"This machine has no device of platform {options.platform}"
    return LIBRARIES[platform].problem


def _device(options):
    """(the device, its platform as we name it)"""
    device = jax.devices(options.platform)[0]
    return device, "cpu" if device.platform == "cpu" else "cuda"


def _measure(kind, options):
    """(the results, what failed)"""
    device, platform = _device(options)
    rows, failures = [], []
    bar = Progress(
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with jax.default_device(device), bar:
        bandwidth = copy_bandwidth(platform)
        settings = kinds.Settings.of(kind, options, platform, bandwidth)
        about = results.about(device, platform, bandwidth, settings.repeats, "torch" in settings.against)
        jobs, due = kind.jobs(settings), 0.0
        task = bar.add_task("", total=len(jobs))
        for number, (name, measure) in enumerate(jobs.items(), 1):
            bar.update(task, description=name)
            if not bar.console.is_terminal:  # a log has no bar
                print(f"[{number}/{len(jobs)}] {name}", file=sys.stderr, flush=True)
            try:
                for row in measure():
                    if isinstance(row, Exception):
                        failures.append(_said(row))
                        continue
                    rows.append(row)
                    if options.json and time.monotonic() > due:  # a run that is cut off leaves what it has
                        results.write(options.json, about | {"rows": rows})
                        due = time.monotonic() + WRITE_SECONDS
            except Exception as error:  # one that fails, as for lack of memory, leaves the others their times
                failures.append(f"{name}: {_said(error)}")
            bar.advance(task)
        if options.json:
            results.write(options.json, about | {"rows": rows})
    return about | {"rows": rows}, failures


def _said(error):
    return f"{type(error).__name__}: {first_line(error)}"
