"""The kinds of measurements that `baracuda-jax bench` has, and what each takes of its options."""

import dataclasses
from collections.abc import Callable

from . import cases, overhead, regimes, sweep
from .cases import by_size
from .run import run


@dataclasses.dataclass(frozen=True)
class Kind:
    """One kind of measurement.

    ops         those that can be chosen from
    options     what it takes besides --platform, --repeats, --json and --from
    repeats     by default
    jobs        Settings -> {what is measured: () -> rows, and errors of what has no row}
    """

    name: str
    ops: tuple[str, ...]
    options: tuple[str, ...]
    repeats: int
    jobs: Callable


@dataclasses.dataclass(frozen=True)
class Settings:
    """The command's options, with defaults for those that were left out, and the machine's."""

    platform: str
    bandwidth: float
    repeats: int
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    case: str
    size: str
    against: tuple[str, ...]
    regret: int

    @staticmethod
    def of(kind, options, platform, bandwidth):
        return Settings(
            platform,
            bandwidth,
            options.repeats or kind.repeats,
            tuple(options.op or kind.ops),
            tuple(options.dtype or ()),
            options.case or "",
            options.size or "small",
            options.against or ("xla",),
            options.regret or 0,
        )


def chosen(size, ops=None, dtypes=None, case=""):
    """The benchmarks of these ops and dtypes, by default of all, whose names contain `case`."""
    return [
        b for b in cases.benchmarks(size)
        if b.op in (ops or cases.OPS) and b.dtype in (dtypes or (b.dtype,)) and case in str(b)
    ]  # fmt: skip


def _cases(of):
    measure = lambda b: run(b, of.size, of.platform, of.bandwidth, of.against, of.repeats)
    return {str(b): lambda b=b: measure(b) for b in chosen(of.size, of.ops, of.dtypes, of.case)}


def _regimes(of):
    return regimes.regret(of, of.regret) if of.regret else regimes.grid(of)


def _sweep(of):
    chosen = {
        f"{series} {dtype}": (series, dtype)
        for series in by_size.SERIES
        for dtype in of.dtypes or ("float32",)
        if series.op in of.ops
    }
    measure = lambda series, dtype: sweep.run(series, of.platform, dtype, of.bandwidth, of.repeats)
    return {name: lambda which=which: measure(*which) for name, which in chosen.items()}


def _overhead(of):
    return {name: lambda part=part: part(of.platform, of.repeats) for name, part in overhead.PARTS.items()}


CASES = Kind("cases", cases.OPS, ("op", "dtype", "case", "size", "against", "plot"), 15, _cases)
REGIMES = Kind("regimes", regimes.ops(), ("op", "dtype", "write_table", "tune", "regret"), regimes.REPEATS, _regimes)
SWEEP = Kind("sweep", by_size.OPS, ("op", "dtype", "plot"), sweep.REPEATS, _sweep)
OVERHEAD = Kind("overhead", (), (), overhead.REPEATS, _overhead)


def of(options):
    """The kind that was asked for."""
    if options.write_table or options.tune or options.regret:
        return REGIMES
    return SWEEP if options.sweep else OVERHEAD if options.overhead else CASES
