"""Writes the table by which the backend is chosen: `_core/measurements.py` reads it."""

import json
import pathlib

from .regimes import PASSES

ABOUT = (
    "Times of both backends, by which one is chosen; written by python -m baracuda_jax bench --write-table. pass: forward "
    "is the op alone, backward the op with its derivative. regime: the sizes on which the choice depends, see "
    "_core/regime.py. Ops that XLA fuses, elementwise ones and reductions, are timed between others."
)


def write(file, results):
    """Merges results into the file, which need not be there: a case replaces the one of its name and device."""
    file = pathlib.Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = {_key(row): row for row in (json.loads(file.read_text())["rows"] if file.exists() else [])}
    for result in results["rows"]:
        new = {"op": result["op"], "pass": PASSES[result["pass"]], "platform": results["platform"],
               "dtype": result["dtype"]}  # fmt: skip
        row = rows.setdefault(_key(new), new | {"cases": []})
        row |= {"device": results["device"], "jax": results["jax"], "date": results["date"]}
        row["cases"] = [case for case in row["cases"] if case["case"] != result["case"]]
        native, xla = (float(f"{result[name]:.3g}") for name in ("native_ms", "xla_ms"))
        row["cases"].append({"case": result["case"], "regime": result["regime"], "native_ms": native, "xla_ms": xla})
    lines = ",\n".join(f"  {json.dumps(rows[key])}" for key in sorted(rows))
    file.write_text(f'{{"about": {json.dumps(ABOUT)},\n "rows": [\n{lines}\n ]}}\n')


def _key(row):
    return row["op"], row["platform"], row["pass"] != "forward", row["dtype"]
