"""The names that others have for ops of baracuda_jax, and what is said to who looks for one of them here."""

import csv
import functools
import importlib
import pathlib

import numpy

from ._core import traced
from ._core.near import near
from .elementwise._made import MADE

SAME = "positional arguments alone; half precisions compute in float32"


@functools.cache
def rows():
    """Of coming_from.csv: another library's name, the names here, what differs; and those of ops that are a line of a table,
    where arguments mean the same."""
    with (pathlib.Path(__file__).parent / "coming_from.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    known = {(row["theirs"], here) for row in found for here in row["here"].split()}
    for line in MADE.values():
        names = {line.theirs("torch"), line.theirs("jax")} - {None}
        names |= {
            name.replace("jax.numpy.", "numpy.") for name in names if hasattr(numpy, name.removeprefix("jax.numpy."))
        }
        for name in sorted(name.partition("(")[0] for name in names):
            if (name, line.name) not in known:
                found.append({"theirs": name, "here": line.name, "differs": SAME})
    return found


# Where a name is looked for that has no counterpart here.
LIBRARIES = ("jax.nn", "jax.numpy", "jax.lax", "jax.ops", "jax.random", "jax.numpy.linalg", "jax.scipy.special", "jax")


def no_such(name):
    """The error for a name that is not public, which tells the name here where it is another library's."""
    text = f"module 'baracuda_jax' has no attribute {name!r}"
    told = {}
    for row in rows():
        if row["theirs"].rpartition(".")[2] == name:
            told.setdefault((row["here"], row["differs"]), []).append(row["theirs"])
    for (here, differs), theirs in told.items():
        text += f"; {', '.join(theirs)} is {' or '.join(here.split())} here"
        text += "" if differs in (SAME, "nothing") else f" ({differs.replace('`', '')})"
    return AttributeError(text if told or name.startswith("_") else f"{text}{_other(name)}")


def _other(name):
    """JAX's function of this name; else the nearest names here."""
    for library in LIBRARIES:
        if hasattr(importlib.import_module(library), name):
            return f"; there is no op of this name here, use {library}.{name}"
    found = near(name, traced.names(), 3)
    return f"; did you mean {found}?" if found else ""
