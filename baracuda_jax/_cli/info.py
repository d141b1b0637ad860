"""info: versions, devices and compiled modules."""

import collections
import os
import pathlib
import platform as host
import re

import jax
import jaxlib
from rich.console import Console
from rich.table import Table

import baracuda_jax

from .._core import prefer
from .._core.library import LIBRARIES


def info():
    table = Table(title="baracuda_jax", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("baracuda_jax", baracuda_jax.__version__)
    table.add_row("jax, jaxlib", f"{jax.__version__}, {jaxlib.__version__}")
    table.add_row("Python", f"{host.python_version()}, {host.system()} {host.machine()}")
    table.add_row("devices", ", ".join(_devices()))
    table.add_row("preferred backend", os.environ.get(prefer.VARIABLE) or "automatic")
    runtime = runtime_ffi_api_version()
    table.add_row("FFI API of jaxlib", _dotted(runtime))
    for library in LIBRARIES.values():
        table.add_section()
        name = f"{library.platform} module"
        if library.problem:
            table.add_row(name, f"not loaded: {library.problem}")
            continue
        table.add_row(name, f"loaded, {len(library.targets)} targets")
        table.add_row("  built for", library.built_for)
        if library.platform == "cuda":
            table.add_row("  CUDA architectures", _architectures(library.built_for))
        table.add_row("  FFI API", f"{_dotted(library.ffi_api_version)} {_decision(library.ffi_api_version, runtime)}")
    Console().print(table)
    return 0


def _devices():
    devices = jax.devices()
    if devices[0].platform != "cpu":
        devices = [*devices, *jax.devices("cpu")]
    counts = collections.Counter(_device_name(device) for device in devices)
    return [f"{count} x {name}" for name, count in counts.items()]


def _device_name(device):
    capability = getattr(device, "compute_capability", None)
    detail = f", compute capability {capability}" if capability else ""
    kind = "" if device.device_kind == device.platform else f" ({device.device_kind}{detail})"
    return device.platform + kind


def runtime_ffi_api_version():
    """From the header that comes with jaxlib; None where it has none."""
    header = pathlib.Path(jaxlib.__file__).parent / "include/xla/ffi/api/c_api.h"
    if not header.is_file():
        return None
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header.read_text()))
    return (int(found["MAJOR"]), int(found["MINOR"])) if len(found) == 2 else None


def _dotted(version):
    return ".".join(map(str, version)) if version else "unknown"


def _decision(module, runtime):
    if runtime is None:
        return ""
    if module[0] == runtime[0] and module[1] <= runtime[1]:
        return "(jaxlib's is not older: fits)"
    return "(newer than jaxlib's: XLA will refuse the calls; build against the older jaxlib)"


def _architectures(built_for):
    return built_for.partition("architectures ")[2] or "unknown"
