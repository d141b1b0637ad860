"""Results as a table for reading: on the terminal, and in the pages."""

from rich.table import Table

HEADER = ("op", "pass", "dtype", "case", "native ms", "/ floor", "XLA / native", "PyTorch / native")
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


def table(results):
    """All rows, for the terminal."""
    made = Table(title=title(results), title_justify="left")
    for i, name in enumerate(HEADER):
        made.add_column(name, justify="left" if i < TEXTS else "right", no_wrap=i != TEXTS - 1)
    for row in results["rows"]:
        made.add_row(*cells(row))
    return made
