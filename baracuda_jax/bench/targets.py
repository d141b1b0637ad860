"""What is aimed at, compared with what was measured.

A target is a row of a CSV file:

    what                             in words
    results                          name of the results that it is about, a device's
    op, case, variant, pass, dtype   of the rows that count: op has patterns, separated by spaces, the others are one
    measure                          a name in MEASURES
    bound                            "at most" or "at least" a number
"""

import csv
import fnmatch
import pathlib
import statistics

from .results import with_even


def read(file):
    """The rows."""
    with pathlib.Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def judge(target, results):
    """(the worst value, which case has it, whether the bound is met), or None where nothing was measured."""
    rows = [row for row in results["rows"] if _counts(target, row)]
    found = list(MEASURES[target["measure"]](rows, results))
    if not found:
        return None
    side, bound = target["bound"].rsplit(" ", 1)
    worst = {"at most": max, "at least": min}[side](found)
    value, case = worst
    return value, case, value <= float(bound) if side == "at most" else value >= float(bound)


def _counts(target, row):
    ops = target["op"].split()
    return any(fnmatch.fnmatchcase(row["op"], op) for op in ops) and all(
        fnmatch.fnmatchcase(row[name], target[name]) for name in ("case", "variant", "pass", "dtype")
    )


def _name(row):
    words = row["op"], row["dtype"], row["pass"], row["variant"] or row["case"]
    return ", ".join(filter(None, words))


def _over_bound(rows, results):
    for row in rows:
        if not row["even"]:
            yield row["native_ms"] / row["floor_ms"], _name(row)


def _microseconds(rows, results):
    for row in rows:
        if not row["even"]:
            yield row["native_ms"] * 1e3, _name(row)


def _against(name):
    """Times of something else over native's."""

    def ratios(rows, results):
        for row in rows:
            if row[name] and not row["even"]:
                yield row[name] / row["native_ms"], _name(row)

    return ratios


def _mean(ratios):
    """The geometric mean of what `ratios` yields."""

    def mean(rows, results):
        values = [value for value, _ in ratios(rows, results)]
        if values:
            yield statistics.geometric_mean(values), f"{len(values)} cases"

    return mean


def _with_gradient(rows, results):
    """Times of forward and backward together, over those of forward alone."""
    key = lambda row: tuple(row[name] for name in ("op", "dtype", "size", "case"))
    alone = {key(row): row for row in results["rows"] if row["pass"] == "forward"}
    for row in rows:
        if row["pass"] != "forward" and key(row) in alone:
            yield row["native_ms"] / alone[key(row)]["native_ms"], _name(row)


def _gradient(rows, results):
    """What the gradient adds, saving for it included, over the time of forward alone."""
    for value, case in _with_gradient(rows, results):
        yield value - 1, case


def _skewed(rows, results):
    """Times over the bandwidth bound, over those of even ids."""
    over = lambda row: row["native_ms"] / row["floor_ms"]
    for row, even in with_even(rows, results["rows"]):
        yield over(row) / over(even), _name(row)


def _chosen(rows, results):
    """The time of the backend that is chosen, over the faster one's, at random sizes."""
    for row in rows:
        yield row["regret"], f"{_name(row)}, {row['case']}: {row['chosen']}"


XLA, TORCH = _against("xla_ms"), _against("torch_ms")
#: Each yields (value, name of the case) from the rows that count.
MEASURES = {
    "microseconds": _microseconds,
    "time / bound": _over_bound,
    "XLA / native": XLA,
    "PyTorch / native": TORCH,
    "XLA / native (mean)": _mean(XLA),
    "PyTorch / native (mean)": _mean(TORCH),
    "with gradient / alone": _with_gradient,
    "gradient / alone": _gradient,
    "skewed / even": _skewed,
    "chosen / best": _chosen,
}
