"""check: every op, case and dtype, native against reference, on every platform that this machine has.

Outputs are compared, and for float dtypes the gradients too. The lowered programs are read: the native one must call
this library's targets, the reference must not."""

import collections
import concurrent.futures
import dataclasses
import inspect
import os
import re
import sys
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .._core.library import LIBRARIES, PREFIX
from .._core.op import OPS
from .names import unknown

# The error is |native - reference| / max(1, |reference|). Integers must be equal.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
COLUMNS = (*TOLERANCE, "integers")
PARTS = {"complex64": "float32", "complex128": "float64"}  # complex numbers are judged, and reported, as these


def _kind(dtype):
    """The column of a dtype: that of its parts; integers and bool together."""
    return PARTS.get(dtype, dtype if dtype in TOLERANCE else "integers")


@dataclasses.dataclass(frozen=True)
class Trial:
    op: object
    case: object
    dtype: str

    def __str__(self):
        return f"{self.op.name}, case {self.case}, {self.dtype}"


def check(names, platforms, jobs):
    jax.config.update("jax_enable_x64", True)
    console = Console()
    problem = unknown(names, OPS) or (
        f"--jobs must be at least 1, got {jobs}" if jobs is not None and jobs < 1 else None
    )
    if problem:
        print(problem, file=sys.stderr)
        return 1
    failures = []
    for platform in platforms or LIBRARIES:
        device, problem = _device(platform)
        if device is None:
            if problem:
                failures.append(f"{platform}: {problem}")
            elif platforms:
                failures.append(f"{platform}: this machine has no such device")
            continue
        failures += _check_platform(console, platform, device, [OPS[name] for name in names or OPS], jobs)
    for failure in failures:
        console.print(f"[red]failed[/red]  {failure}", highlight=False, soft_wrap=True)
    console.print("[red]FAILED[/red]" if failures else "[green]All passed.[/green]")
    return 1 if failures else 0


def _device(platform):
    """A device of a platform, or None and, where the machine has one that we can't use, why."""
    try:
        device = jax.devices(platform)[0]
    except RuntimeError:
        return None, None
    problem = LIBRARIES[platform].problem
    return (None, problem) if problem else (device, None)


def _check_platform(console, platform, device, ops, jobs):
    ops = [op for op in ops if op.has_kernels]
    trials = [Trial(op, case, dtype) for op in ops for case in op.cases for dtype in op.dtypes]
    waiting = collections.Counter(trial.op.name for trial in trials)
    errors = collections.defaultdict(lambda: collections.defaultdict(float))
    failures, failed_ops = [], set()
    console.print(f"[bold]{platform}[/bold]: {device.device_kind}; max error of outputs and gradients", highlight=False)
    console.print(_line("op", "cases", *COLUMNS, "result"), style="bold", soft_wrap=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    executor = concurrent.futures.ThreadPoolExecutor(jobs or min(8, os.cpu_count() or 1))
    try:
        with bar:
            task = bar.add_task("checking", total=len(trials))
            futures = {executor.submit(_run, trial, device): trial for trial in trials}
            for future in concurrent.futures.as_completed(futures):
                trial = futures[future]
                error, problem = future.result()
                column = _kind(trial.dtype)
                errors[trial.op.name][column] = max(errors[trial.op.name][column], error)
                if problem:
                    failures.append(f"{platform}: {trial}: {problem}")
                    failed_ops.add(trial.op.name)
                bar.advance(task)
                waiting[trial.op.name] -= 1
                if not waiting[trial.op.name]:
                    _report(bar.console, trial.op, errors[trial.op.name], trial.op.name in failed_ops)
    finally:
        executor.shutdown(cancel_futures=True)
    return failures


def _line(name, count, *cells):
    return f"{name:28}{count:>6}  " + " ".join(f"{cell:>9}" for cell in cells)


def _report(console, op, errors, failed):
    cells = [f"{errors[column]:.1e}" if column in errors else "" for column in COLUMNS]
    text = _line(op.name, len(op.cases) * len(op.dtypes), *cells, "FAILED" if failed else "ok")
    console.print(text, style="red" if failed else None, highlight=False, soft_wrap=True)


def _run(trial, device):
    """The largest error, and what is wrong or None."""
    try:
        return _compare(trial, device)
    except Exception as error:
        return np.inf, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


def _compare(trial, device):
    seed = zlib.crc32(f"{trial.op.name} {trial.case}".encode())
    arguments = trial.case.arguments(np.random.default_rng(seed), trial.dtype)
    with jax.default_device(device):
        native, called = _evaluate(trial, arguments, "native")
        reference, called_by_reference = _evaluate(trial, arguments, "xla")
    for kind, arrays in reference.items():
        if not called & set(trial.op.kernels[kind]) and any(x.size for x in arrays):
            return np.inf, f"the native {kind} calls no kernel of baracuda_jax"
    if called_by_reference:
        return np.inf, f"the reference calls kernels: {', '.join(sorted(called_by_reference))}"
    worst = 0.0
    for kind, arrays in reference.items():
        for computed, expected in zip(native[kind], arrays, strict=True):
            if (computed.shape, computed.dtype) != (expected.shape, expected.dtype):
                return np.inf, f"{kind} is {computed.dtype}{computed.shape}, expected {expected.dtype}{expected.shape}"
            error = error_of(computed, expected)
            allowed = TOLERANCE.get(_kind(expected.dtype.name), 0)
            if error > allowed:
                return error, f"{kind} has error {error:.1e}, allowed {allowed:.0e}"
            worst = max(worst, error)
    return worst, None


def _evaluate(trial, arguments, backend):
    """{"forward": outputs, "backward": gradients}, and the names of this library's targets that the program calls."""
    op, kwargs = trial.op, trial.case.kwargs
    parameters = list(inspect.signature(op.public).parameters)
    differentiable = [name.removeprefix("*") for name in op.differentiable]
    moving = [
        i for i, (name, x) in enumerate(zip(parameters, arguments, strict=False))
        if name in differentiable and jnp.issubdtype(x.dtype, jnp.inexact)
    ]  # fmt: skip

    def program(*arguments):
        def outputs(*some):
            full = list(arguments)
            for i, x in zip(moving, some, strict=True):
                full[i] = x
            leaves = jax.tree.leaves(op.public(*full, **kwargs, implementation=backend))
            is_float = [jnp.issubdtype(y.dtype, jnp.inexact) for y in leaves]
            floats = [y for y, yes in zip(leaves, is_float, strict=True) if yes]
            return floats, [y for y, yes in zip(leaves, is_float, strict=True) if not yes]

        if not moving:
            floats, others = outputs()
            return {"forward": [*floats, *others]}
        floats, vjp, others = jax.vjp(outputs, *(arguments[i] for i in moving), has_aux=True)
        if not floats:  # quantized values carry no derivative
            return {"forward": others}
        return {"forward": [*floats, *others], "backward": list(vjp([_cotangent(y) for y in floats]))}

    lowered = jax.jit(program).lower(*arguments)
    called = set(re.findall(rf"@{re.escape(PREFIX)}(\w+)", lowered.as_text()))
    on_cpu = jax.config.jax_default_device.platform == "cpu"
    quick = {"xla_backend_optimization_level": 0} if on_cpu and backend == "xla" else {}
    return jax.tree.map(np.asarray, lowered.compile(quick)(*arguments)), called


def _cotangent(y):
    values = jnp.cos(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape).astype(y.dtype)
    return jax.lax.optimization_barrier(values)  # XLA would leave out a rounding that the reference undoes


def error_of(computed, expected):
    """max |computed - expected| / max(1, |expected|); infinite where integers, infinities or NaNs differ."""
    if not jnp.issubdtype(expected.dtype, jnp.inexact):
        return 0.0 if np.array_equal(computed, expected) else np.inf
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    computed, expected = computed.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore"):
        error = np.abs(computed - expected) / np.maximum(1, np.abs(expected))
    error = np.where((computed == expected) | (np.isnan(computed) & np.isnan(expected)), 0, error)
    return float(np.where(np.isfinite(error), error, np.inf).max(initial=0))
