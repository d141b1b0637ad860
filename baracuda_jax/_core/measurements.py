"""What was measured of both backends, and what it says of a call that was not.

`backends.json` in the package has a row for each (op, pass, platform, dtype), the pass being "forward" for an op alone and
"backward" for an op with its derivative, both parts of which have one backend. A row has cases: the sizes of its regime
(`regime.py`), and the times of the kernel and of XLA's program. `python -m baracuda_jax bench --write-table` writes it.

The user's own table, of the same form, is in the cache folder (`user_table`); `bench --tune` writes it. Where it has a row
for this device, that row is read instead of the package's."""

import functools
import json
import math
import os
import pathlib
import re

import jax
import jax.numpy as jnp

PATH = pathlib.Path(__file__).parent.parent / "backends.json"
FOLDER = "BARACUDA_JAX_CACHE"  # the environment variable
FLAG = 8.0  # octaves between two calls that differ in a flag
NEAR = 0.5  # octaves within which cases count alike
GAIN = 1.05


def user_table(device):
    """The file of what was measured on devices of this kind by `bench --tune`."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get(FOLDER) or pathlib.Path(home) / "baracuda_jax")
    return folder / f"backends_{re.sub(r'[^A-Za-z0-9]+', '_', device)}.json"


@functools.cache
def table():
    """{(op, pass, platform): {dtype: cases}} of the package."""
    return _read(PATH)


@functools.cache
def tuned(platform):
    """The same of the user's own table for the devices that are here; empty without one."""
    try:
        device = jax.devices(platform)[0].device_kind
    except RuntimeError:  # a program for a platform that is not here
        return {}
    file = user_table(device)
    return _read(file) if file.exists() else {}


def _read(file):
    found = {}
    for row in json.loads(file.read_text())["rows"]:
        found.setdefault((row["op"], row["pass"], row["platform"]), {})[row["dtype"]] = row["cases"]
    return found


def decision(native_over_xla, default):
    """The faster backend: the op's default, unless the other one is faster by 5%. An op that XLA fuses with its neighbors,
    by default XLA's, has to gain something."""
    slower = native_over_xla if default == "native" else 1 / native_over_xla
    (other,) = {"native", "xla"} - {default}
    return other if slower >= GAIN else default


def measured(op, pass_, platform, dtype, regime):
    """(time of the kernel over that of XLA's program, in words what that rests on) of a call, or None where nothing of the
    op was measured. A call in a dtype without cases has those of the dtype nearest in width."""
    key = op, pass_, platform
    rows = tuned(platform).get(key) or table().get(key)
    if not rows:
        return None
    width = jnp.dtype(dtype).itemsize
    nearest = min(rows, key=lambda name: (name != dtype, abs(jnp.dtype(name).itemsize - width), name))
    cases = rows[nearest]
    if regime is None:  # an export for any size: as the largest
        regime = max(cases, key=lambda case: case["regime"]["bytes"])["regime"]
    ratio, case = interpolated(cases, regime)
    return ratio, f"measured: {ratio:.2f} of XLA's time near {case}, {nearest}, {pass_}"


def interpolated(cases, regime):
    """(the mean of the cases' native_ms / xla_ms, the nearest case's name). The mean is geometric, and weighted by the
    inverse fourth power of the distance (D. Shepard, 1968)."""
    total = weights = 0.0
    distances = [distance(case["regime"], regime) for case in cases]
    for case, apart in zip(cases, distances, strict=True):
        weight = (NEAR**2 + apart**2) ** -2
        total += weight * math.log(case["native_ms"] / case["xla_ms"])
        weights += weight
    return math.exp(total / weights), cases[distances.index(min(distances))]["case"]


def distance(a, b):
    """In octaves: how many times sizes differ by a factor of two. Bytes, on which times depend smoothly, count half."""
    return math.hypot(*(_apart(name, a[name], b[name]) for name in a))


def _apart(name, a, b):
    if isinstance(a, bool):
        return FLAG * (a != b)
    octaves = abs(math.log2(max(a, 1) / max(b, 1)))
    return octaves / 2 if name == "bytes" else octaves
