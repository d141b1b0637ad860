"""Results as JSON: what they were measured on, and a row for each benchmark and pass, a line each.

    device, platform, platform_version, cpus, processor, jax, jaxlib, baracuda_jax, torch, date     of the machine
    built_for                                                                                       of the kernels
    copy_bytes_per_s, repeats                                                                       of the method
    rows     op, family, pass, dtype, size, case, variant, even (the case to compare a skewed one with), native_ms,
             quartiles_ms of native's times, xla_ms, torch_ms, floor_ms, floor_bytes, bytes (of operands
             and result), note

What was not measured is null."""

import datetime
import json
import os
import pathlib
import platform as system

import jax
import jaxlib

import baracuda_jax

from .._core.library import LIBRARIES


def about(device, platform, bandwidth, repeats, with_torch):
    """All but the rows."""
    return {
        "device": device.device_kind,
        "platform": platform,
        "platform_version": " ".join(device.client.platform_version.split()),
        "cpus": os.cpu_count(),
        "processor": processor(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "baracuda_jax": baracuda_jax.__version__,
        "built_for": LIBRARIES[platform].built_for,
        "torch": _torch_version() if with_torch else None,
        "date": str(datetime.date.today()),
        "copy_bytes_per_s": bandwidth,
        "repeats": repeats,
    }


def processor(cpuinfo="/proc/cpuinfo"):
    """The CPU's model name, or None where the system does not say. JAX calls every CPU "cpu"."""
    file = pathlib.Path(cpuinfo)
    lines = file.read_text().splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or system.processor() or None


def _torch_version():
    import torch

    return torch.__version__


def write(file, results):
    """`results` is what `about` returns, with "rows"."""
    head = json.dumps({name: value for name, value in results.items() if name != "rows"})
    lines = ",\n".join(f"  {json.dumps(row)}" for row in results["rows"])
    pathlib.Path(file).write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n')


def read(file):
    """What was written."""
    return json.loads(pathlib.Path(file).read_text())


def with_even(rows, among):
    """Yields (row, that of even ids) for the skewed ones of `rows`, where `among` has both."""
    key = lambda row, case: (row["op"], row["pass"], row["dtype"], row["size"], case)
    by_case = {key(row, row["case"]): row for row in among}
    for row in rows:
        even = by_case.get(key(row, row["even"]))
        if even:
            yield row, even
