"""What the generated parts of the pages are made of. No Sphinx here, so that the tests can read it."""

import csv
import inspect
import pathlib
import re

import baracuda_jax
from baracuda_jax._core import traced
from baracuda_jax._core.op import OPS
from baracuda_jax._elsewhere import rows
from baracuda_jax._mirror.mirror import MIRRORS

DOCS = pathlib.Path(__file__).parent.parent
KINDS = ("forward", "tangent", "backward")


def names_of(family):
    """The public functions of a family, in the order of declaration, each followed by its backward function."""
    package = f"{baracuda_jax.__name__}.{family}"
    public = {name: getattr(baracuda_jax, name) for name in traced.names()}
    names = [
        name for name, x in public.items() if inspect.isfunction(x) and f"{x.__module__}.".startswith(f"{package}.")
    ]
    declared = [op.public.__name__ for op in OPS.values()]

    def position(name):
        forward = public[name].__name__.removesuffix("_backward")
        return declared.index(forward) if forward in declared else len(declared), forward, name != forward, name

    return sorted(names, key=position)


def ops():
    """A row for each op: its name, its public function, and the cells of the table of ops."""
    from baracuda_jax._cli.ops import row

    for op in OPS.values():
        _, family, dtypes, derivative, *_ = row(op)
        yield op.name, op.public.__name__, (family, dtypes, derivative, _computed(op))


def _computed(op):
    """By kernels or libraries, and of which ops."""
    kinds = ", ".join(kind for kind in KINDS if op.kernels.get(kind)) or f"none: {op.library}"
    return f"{kinds}; of {', '.join(op.made_of)}" if op.made_of else kinds


def reasons():
    """{(what is not there, why): the names of the ops}"""
    found = {}
    for op in OPS.values():
        for operand, reason in op.constant.items():
            found.setdefault((f"a derivative in `{operand}`", reason), []).append(op.name)
        if isinstance(op.cut, str):
            found.setdefault(("shards of more than batches", op.cut), []).append(op.name)
    return found


def coming_from(prefixes):
    """The rows of coming_from.csv whose name of theirs begins with one of the prefixes."""
    return [row for row in rows() if row["theirs"].split(".")[0] in prefixes]


def plans():
    """Plans of baracuda-kernels: (category, plan, the ops that stand for it, whether these have a gradient, note)."""
    derivable = {op.public.__name__ for op in OPS.values() if not op.no_derivative}
    with (DOCS / "plans.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            names = row["here"].split()
            yield row["category"], row["plan"], names, bool(derivable & set(names)), row["note"]


def families():
    """{family: its public ops}"""
    found = {}
    for op in OPS.values():
        found.setdefault(op.family, {})[op.public.__name__] = None
    return {family: list(names) for family, names in sorted(found.items())}


def referenced(page):
    """The public names that a page's `reference` directives put on it."""
    found = re.findall(r"^```\{reference\} *(.*)\n((?:(?!```).*\n)*)```", page.read_text(), re.M)
    return [name for family, body in found for name in (names_of(family) if family else body.split())]


def mirrors(namespace):
    """A row for each mirror in a namespace: its name, what runs natively, what differs."""
    for mirror in MIRRORS.values():
        if mirror.name.rpartition(".")[0] == namespace:
            yield mirror.name, mirror.native, mirror.differs


def collectives():
    """The rows of collectives.csv, which the tests of sharding count in compiled programs."""
    with (DOCS / "collectives.csv").open(newline="") as file:
        return list(csv.DictReader(file))
