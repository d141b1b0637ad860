"""The choice of backend: what the caller asks for, or else what was measured to be faster.

The table, `backends.json` in the package, has rows for (op, pass, platform, dtype, size class), the pass being "forward"
for an op alone, and "backward" for an op with its derivative, both parts of which have one backend. `python -m
baracuda_jax bench --write-table` writes it."""

import functools
import json
import pathlib

import jax.numpy as jnp

from . import library

PATH = pathlib.Path(__file__).parent.parent / "backends.json"
SIZES = {"tiny": 2**16, "small": 2**20, "medium": 2**26, "large": float("inf")}  # bytes that are too many


def size_class(count):
    """The class of a call by its bytes of operands and results; the last if an export leaves them open."""
    if not isinstance(count, int):
        return list(SIZES)[-1]
    return next(name for name, limit in SIZES.items() if count < limit)


@functools.cache
def table():
    """{(op, pass, platform): {(dtype, size class): backend}}"""
    found = {}
    for row in json.loads(PATH.read_text())["rows"]:
        key = row["op"], row["pass"], row["platform"]
        found.setdefault(key, {})[row["dtype"], row["size"]] = row["backend"]
    return found


def verdict(native_ms, xla_ms, default):
    """The backend that a row says: the op's default, unless the other one is faster by 5% or more. An op that XLA fuses with
    its neighbours, by default XLA's, has to gain something."""
    times = {"native": native_ms, "xla": xla_ms}
    (other,) = times.keys() - {default}
    return other if times[default] >= 1.05 * times[other] else default


def measured(op, pass_, platform, dtype, size):
    """(backend, the row it is from), or None. A call without a row has its neighbour's: the nearest size, the larger of
    two, in the same dtype, or else in that of the nearest width."""
    rows = table().get((op, pass_, platform), {})
    order = list(SIZES)

    def distance(row):
        apart = abs(jnp.dtype(row[0]).itemsize - jnp.dtype(dtype).itemsize)
        return row[0] != dtype, apart, abs(order.index(row[1]) - order.index(size)), -order.index(row[1]), row[0]

    row = min(rows, key=distance, default=None)
    return row and (rows[row], f"{pass_} {' '.join(row)}")


def choose(call, implementation, platforms):
    """(backend, why) of a call, on platforms that one program is for. Where these disagree the backend is native, if all
    have the kernels."""
    if implementation.backend == "xla":
        return "xla", "asked for"
    if implementation.backend == "native":
        _demand_native(call, implementation, platforms)
        return "native", "asked for"
    if not call.op.kernels[call.kind]:
        return "xla", f"there is no kernel; {call.op.library} computes"
    choices = [_automatic(call, implementation, platform) for platform in platforms]
    if len({backend for backend, _ in choices}) == 1:
        return choices[0]
    if all(library.available(platform, call.op.kernels[call.kind]) for platform in platforms):
        return "native", "the platforms disagree"
    return "xla", "not all platforms have a kernel"


def _demand_native(call, implementation, platforms):
    if not call.op.kernels[call.kind]:
        raise ValueError(
            f"{call.name}: implementation='native', but the op has no kernel; {call.op.library} computes it"
        )
    missing = [platform for platform in platforms if platform not in library.MODULES]
    if missing:
        raise ValueError(
            f"{call.name}: implementation='native', but there is no kernel for platform {', '.join(missing)}"
        )
    if _exceeds(call, implementation):
        raise ValueError(
            f"{call.name}: implementation has backend='native' and "
            f"max_workspace_bytes={implementation.max_workspace_bytes}, but the "
            f"native kernel needs {call.workspace_bytes} bytes"
        )


def _exceeds(call, implementation):
    if implementation.max_workspace_bytes is None:
        return False
    need = call.workspace_bytes
    return not isinstance(need, int) or need > implementation.max_workspace_bytes


def _automatic(call, implementation, platform):
    if not library.available(platform, call.op.kernels[call.kind]):
        return "xla", f"there is no kernel on {platform}"
    if _exceeds(call, implementation):
        return "xla", f"the kernel needs {call.workspace_bytes} bytes of workspace"
    pass_ = "backward" if call.is_differentiated else "forward"
    found = measured(call.op.name, pass_, platform, call.dtype.name, size_class(call.bytes))
    backend, why = (found[0], f"measured: {found[1]}") if found else (call.op.default, "by default")
    if backend == "xla" and implementation.deterministic and not call.is_deterministic("xla", platform):
        return "native", "XLA's program is not deterministic"
    return backend, why
