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
import numpy as np

PATH = pathlib.Path(__file__).parent.parent / "backends.json"
FOLDER = "BARACUDA_JAX_CACHE"  # the environment variable
FLAG = 8.0  # octaves between two calls that differ in a flag
NEAR = 0.7  # octaves within which cases count alike
SLOPES = 0.1  # squares of octaves: where cases differ by fewer in a size, no slope is seen along it
GAIN = 1.05


def user_table(device):
    """The file of what was measured on devices of this kind by `bench --tune`."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(os.environ.get(FOLDER) or pathlib.Path(home) / "baracuda_jax")
    return folder / f"backends_{re.sub(r'[^A-Za-z0-9]+', '_', device)}.json"


class Cases:
    """What was measured of an op in one pass on one platform: {dtype: cases}."""

    def __init__(self, rows):
        self.all = [case for some in rows.values() for case in some]
        self._dtypes = [name for name, some in rows.items() for _ in some]

    @functools.cached_property
    def names(self):
        """Of the sizes of a regime."""
        return tuple(self.all[0]["regime"])

    @functools.cached_property
    def octaves(self):
        """[cases, sizes]"""
        return np.array([_octaves(case["regime"], self.names) for case in self.all])

    @functools.cached_property
    def ratios(self):
        return np.array([case["native_ms"] / case["xla_ms"] for case in self.all])

    def dtypes_apart(self, dtype):
        """In octaves, from each case's dtype to this one."""
        return np.array([_between_dtypes(name, dtype) for name in self._dtypes])

    def describe(self, i):
        return f"{self.all[i]['case']}, {self._dtypes[i]}"


@functools.cache
def table():
    """{(op, pass, platform): Cases} of the package."""
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
    return {key: Cases(rows) for key, rows in found.items()}


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
    cases = tuned(platform).get(key) or table().get(key)
    if not cases:
        return None
    if regime is None:  # an export for any size: as the largest
        regime = max((case["regime"] for case in cases.all), key=lambda regime: regime["bytes"])
    sizes = cases.octaves
    here = np.clip(_octaves(regime, cases.names), sizes.min(0), sizes.max(0))
    apart = sizes - here
    distances = np.hypot(np.hypot.reduce(apart, axis=1), cases.dtypes_apart(dtype))
    ratio = interpolated(cases.ratios, apart, distances)
    return ratio, f"measured: {ratio:.2f} of XLA's time near {cases.describe(distances.argmin())}, {pass_}"


def interpolated(ratios, apart, distances):
    """The ratio where `apart`, [cases, sizes] in octaves, is 0, on a plane through the logarithms of ratios: by a regression
    that is weighted by the inverse sixth power of the distance and prefers small slopes (locally weighted regression,
    W. S. Cleveland, 1979)."""
    weights = (NEAR**2 + distances**2) ** -3
    weights /= weights.sum()
    logs, middle = np.log(ratios), weights @ apart
    mean, around = weights @ logs, apart - middle
    slopes = np.linalg.solve(
        around.T @ (weights[:, None] * around) + SLOPES * np.eye(len(middle)), around.T @ (weights * (logs - mean))
    )
    return math.exp(mean - middle @ slopes)


@functools.cache
def _between_dtypes(a, b):
    """In octaves: one, and the ratio of their widths."""
    if a == b:
        return 0.0
    return 1 + abs(math.log2(jnp.dtype(a).itemsize / jnp.dtype(b).itemsize))


def _octaves(regime, names):
    """Sizes by their logarithms. Bytes, on which times depend smoothly, count half."""
    sizes = ((name, regime[name]) for name in names)
    return [
        FLAG * size if isinstance(size, bool) else math.log2(max(size, 1)) / (2 if name == "bytes" else 1)
        for name, size in sizes
    ]
