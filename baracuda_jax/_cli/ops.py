"""ops: the table of ops."""

import sys

from rich.console import Console
from rich.table import Table

from .._core import checks
from .._core.library import LIBRARIES, PREFIX
from .._core.op import OPS
from .names import unknown

SHORT = {"bfloat16": "bf16"} | {name: name[0] + name.lstrip("abcdefghijklmnopqrstuvwxyz") for name in checks.FLOATS[:3]}
SHORT |= {name: ("u" if name[0] == "u" else "i") + name.partition("int")[2] for name in checks.INTEGERS}
COLUMNS = ("op", "family", "dtypes", "derivative", "kernels on cpu", "kernels on cuda")


def ops(markdown, names=()):
    if names:
        return _pages(names)
    rows = [row(op) for op in OPS.values()]
    if markdown:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for name, *rest in rows:
            print(f"| `{name}` | {' | '.join(rest)} |")
        return 0
    table = Table(*COLUMNS, title=f"{len(rows)} ops", title_justify="left")
    for cells in rows:
        table.add_row(*cells)
    Console().print(table)
    return 0


def _pages(names):
    from .page import known, page

    if problem := unknown(names, known()):
        print(problem, file=sys.stderr)
        return 1
    print("\n\n".join("\n".join(page(name)) for name in names))
    return 0


def row(op):
    names = ", ".join(name.removeprefix("*") for name in op.differentiable)
    derivative = f"none: {reason}" if (reason := op.no_derivative) else f"in {names}, any order"
    name = f"{op.name} ({' + '.join(op.made_of)})" if op.made_of else op.name
    return name, op.family, compact(op.dtypes), derivative, kernels(op, "cpu"), kernels(op, "cuda")


def compact(dtypes):
    """Dtypes in short, a family of integers that is complete as one: f16 bf16 f32 f64 i8-i64."""
    names = [SHORT[name] for name in ("float16", "bfloat16", "float32", "float64") if name in dtypes]
    for sign in "iu":
        family = [SHORT[name] for name in checks.INTEGERS if SHORT[name][0] == sign]
        have = [SHORT[name] for name in checks.INTEGERS if SHORT[name][0] == sign and name in dtypes]
        names += [f"{family[0]}-{family[-1]}"] if have == family else have
    names += [name for name in dtypes if name not in SHORT]
    return " ".join(names)


def kernels(op, platform):
    """Which of forward, tangent and backward are native in this installation."""
    if not op.has_kernels:
        return f"none: {op.library} computes"
    library = LIBRARIES[platform]
    if library.problem:
        return "not loaded"
    loaded = [
        kind
        for kind, targets in op.kernels.items()
        if targets and all(PREFIX + target in library.targets for target in targets)
    ]
    order = [kind for kind in ("forward", "tangent", "backward") if kind in loaded]
    return ", ".join(order) or "none"
