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
    op was measured. A size beyond all that were measured counts as the nearest of these: far from all cases, the mean would
    be of small and large ones alike."""
    key = op, pass_, platform
    rows = tuned(platform).get(key) or table().get(key)
    if not rows:
        return None
    cases = [(case, between_dtypes(name, dtype), name) for name, some in rows.items() for case in some]
    if regime is None:  # an export for any size: as the largest
        regime = max((case["regime"] for case, *_ in cases), key=lambda regime: regime["bytes"])
    regime = _in_range(regime, [case["regime"] for case, *_ in cases])
    distances = [math.hypot(apart, distance(case["regime"], regime)) for case, apart, _ in cases]
    ratio = interpolated([case["native_ms"] / case["xla_ms"] for case, *_ in cases], distances)
    nearest, _, name = cases[distances.index(min(distances))]
    return ratio, f"measured: {ratio:.2f} of XLA's time near {nearest['case']}, {name}, {pass_}"


def _in_range(regime, regimes):
    found = dict(regime)
    for name in regimes[0].keys() & regime.keys():
        if not isinstance(regime[name], bool):
            sizes = [other[name] for other in regimes]
            found[name] = min(max(regime[name], min(sizes)), max(sizes))
    return found


def interpolated(ratios, distances):
    """The mean of ratios. It is geometric, and weighted by the inverse fourth power of the distance (D. Shepard, 1968)."""
    weights = [(NEAR**2 + apart**2) ** -2 for apart in distances]
    total = sum(weight * math.log(ratio) for weight, ratio in zip(weights, ratios, strict=True))
    return math.exp(total / sum(weights))


def between_dtypes(a, b):
    """In octaves: one, and the ratio of their widths."""
    if a == b:
        return 0.0
    return 1 + abs(math.log2(jnp.dtype(a).itemsize / jnp.dtype(b).itemsize))


def distance(a, b):
    """In octaves: how many times sizes differ by a factor of two. Bytes, on which times depend smoothly, count half."""
    return math.hypot(*(_apart(name, a[name], b[name]) for name in a))


def _apart(name, a, b):
    if isinstance(a, bool):
        return FLAG * (a != b)
    octaves = abs(math.log2(max(a, 1) / max(b, 1)))
    return octaves / 2 if name == "bytes" else octaves
