"""Prints targets.csv with what was measured.

python benchmarks/targets.py
"""

import pathlib

from rich.console import Console
from rich.table import Table

from baracuda_jax.bench import results, targets

FOLDER = pathlib.Path(__file__).parent
HEAD = "what", "measure", "target", "measured", "met", "worst case"


def cells(target, found):
    """A row's. `found` has the results by name; a device may not be measured."""
    words = target["what"], target["measure"], target["bound"]
    judged = target["results"] in found and targets.judge(target, found[target["results"]])
    if not judged:
        return *words, "not measured", "", ""
    value, case, is_met = judged
    return *words, f"{value:.2f}", "yes" if is_met else "no", case


if __name__ == "__main__":
    table = Table(*HEAD)
    found = {file.stem: results.read(file) for file in sorted((FOLDER / "results").glob("*.json"))}
    for target in targets.read(FOLDER / "targets.csv"):
        table.add_row(*cells(target, found))
    Console().print(table)
