"""Results as a table for reading: on the terminal, and in the pages."""

from rich.table import Table

HEADER = ("op", "pass", "dtype", "case", "native ms", "/ bound", "XLA / native", "PyTorch / native")
TEXTS = 4  # columns of words, before those of numbers


def title(results):
    """One line: what was measured on what."""
    versions = ", ".join(f"{name} {results[name]}" for name in ("jax", "baracuda_jax", "torch") if results[name])
    return f"{results['device']}, {versions}, {results['date']}; a copy runs at {speed(results['copy_bytes_per_s'])}"


def speed(bytes_per_s):
    return f"{bytes_per_s / 1e12:.2f} TB/s" if bytes_per_s >= 1e12 else f"{bytes_per_s / 1e9:.0f} GB/s"


def cells(row):
    """A row's, under HEADER. A note makes XLA's ratio "none", where JAX has no gradient, or "fused", where one kernel
    computes both passes."""
    native = row["native_ms"]
    ratio = lambda name: f"{row[name] / native:.2f}" if row[name] else ""
    xla = ratio("xla_ms") + (" fused" if row["xla_ms"] else "none") * bool(row["note"])
    words = row["op"], row["pass"], row["dtype"], row["case"]
    return *words, f"{native:.3f}", f"{native / row['floor_ms']:.2f}", xla, ratio("torch_ms")


def sweep_cells(row):
    """A row's of a sweep, under its header."""
    words = row["op"], row["pass"], row["dtype"], row["case"]
    per_element = f"{1e6 * row['native_ms'] / row['size']:.4g}"
    ratio = f"{row['xla_ms'] / row['native_ms']:.2f}" if row["xla_ms"] else ""
    numbers = f"{row['size']:,}", per_element, f"{row['native_ms'] / row['floor_ms']:.2f}", ratio
    return *words, *numbers, "yes" if row["checked"] else "no"


def overhead_cells(row):
    """A row's of overheads, under their header."""
    value = lambda name: "" if row[name] is None else f"{row[name]:.4g}"
    return row["measure"], row["case"], row["unit"], value("native"), value("xla")


def regime_cells(row):
    """A row's of both backends, under their header."""
    words = row["op"], row["pass"], row["dtype"], row["case"]
    times = f"{row['native_ms']:.4f}", f"{row['xla_ms']:.4f}"
    return *words, *times, row["chosen"], f"{row['regret']:.2f}"


# Kind of results: names of the columns, how many of these are words, and cells of a row.
COLUMNS = {
    "cases": (HEADER, TEXTS, cells),
    "sweep": (
        (*HEADER[:TEXTS], "elements", "native ns / element", "/ bound", "XLA / native", "checked"), TEXTS, sweep_cells
    ),
    "regimes": ((*HEADER[:TEXTS], "native ms", "XLA ms", "chosen", "chosen / best"), TEXTS, regime_cells),
    "overhead": (("measure", "case", "unit", "native", "XLA"), 3, overhead_cells),
}  # fmt: skip


def of(kind, results):
    """All rows, for the terminal."""
    header, words, cells_of = COLUMNS[kind]
    made = Table(title=title(results), title_justify="left")
    for i, name in enumerate(header):
        made.add_column(name, justify="left" if i < words else "right", no_wrap=i != words - 1)
    for row in results["rows"]:
        made.add_row(*cells_of(row))
    return made
