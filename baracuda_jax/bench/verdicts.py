"""Writes the table by which the backend is chosen: see `_core/choice.py`, which reads it."""

import json
import pathlib

from .._core import choice
from .._core.op import OPS
from . import between

ABOUT = (
    "Which backend was measured to be faster; written by python -m baracuda_jax bench --write-table. pass: forward is the "
    "op alone, backward the op with its derivative. size: bytes of operands and results, see _core/choice.py. backend: by "
    "the total time of the cases, of elementwise ops between others that XLA fuses them with; the op's default unless the "
    "other one is faster by 5% or more."
)
PASSES = {"forward": "forward", "forward + backward": "backward"}


def write(file, results):
    """Merges results into the file, which need not be there. Cases of one key are one row, whose verdict is that of their
    total times; skewed ones are left out."""
    file = pathlib.Path(file)
    old = json.loads(file.read_text())["rows"] if file.exists() else []
    merged = {_key(row): row for row in old} | _rows(results)
    lines = ",\n".join(f"  {json.dumps(merged[key])}" for key in sorted(merged))
    file.write_text(f'{{"about": {json.dumps(ABOUT)},\n "rows": [\n{lines}\n ]}}\n')


def _key(row):
    return row["op"], row["platform"], row["pass"] != "forward", row["dtype"], row["size"]


def of_backends(result):
    """Milliseconds of native and reference on which a choice rests; None where they were not measured."""
    if between.has(OPS[result["op"]].family):
        return result.get("between_ms") or [None, None]
    return [result["native_ms"], result["reference_ms"]]


def _rows(results):
    rows = {}
    for result in results["rows"]:
        milliseconds = of_backends(result)
        if result["even"] or None in milliseconds or not OPS[result["op"]].has_kernels:
            continue
        new = {
            "op": result["op"], "pass": PASSES[result["pass"]], "platform": results["platform"],
            "dtype": result["dtype"], "size": choice.size_class(result["bytes"]), "backend": None,
            "device": results["device"], "jax": results["jax"], "date": results["date"], "against": "the reference",
            "cases": [],
        }  # fmt: skip
        native, xla = (round(time, 4) for time in milliseconds)
        rows.setdefault(_key(new), new)["cases"].append({"case": result["case"], "native_ms": native, "xla_ms": xla})
    for row in rows.values():
        total = (sum(c[name] for c in row["cases"]) for name in ("native_ms", "xla_ms"))
        row["backend"] = choice.verdict(*total, OPS[row["op"]].default)
    return rows
