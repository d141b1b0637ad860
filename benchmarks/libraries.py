"""Prints the results of what XLA's libraries compute, in microseconds and MiB of temporary memory, next to plain JAX.

python benchmarks/libraries.py
"""

import pathlib

from rich.console import Console
from rich.table import Table

from baracuda_jax.bench import cases, results

FILE = pathlib.Path(__file__).parent / "results/h200.json"
HEAD = "op", "pass", "dtype", "case", "us", "plain JAX us", "PyTorch us", "/ plain JAX", "MiB", "plain JAX MiB"


def rows_of(rows):
    """Those of ops without kernels, and of matrices that are too large for them."""
    computed = {(b.op, b.dtype, b.case) for b in cases.benchmarks("large") if not b.has_native}
    return [row for row in rows if (row["op"], row["dtype"], row["case"]) in computed]


def fields(row):
    times = [row[name] for name in ("native_ms", "xla_ms", "torch_ms")]
    memory = [row[name] for name in ("temporary_bytes", "xla_temporary_bytes")]
    ratio = times[0] / times[1] if times[0] and times[1] else None
    number = lambda x, unit: "" if x is None else f"{x * unit:,.2f}"
    return (
        *(row[name] for name in HEAD[:4]), *(number(time, 1e3) for time in times), number(ratio, 1),
        *(number(size, 2**-20) for size in memory),
    )  # fmt: skip


if __name__ == "__main__":
    table = Table(*HEAD)
    for row in rows_of(results.read(FILE)["rows"]):
        table.add_row(*fields(row))
    Console().print(table)
