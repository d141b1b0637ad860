"""The choice of backend: what the caller asks for, or else what was measured to be faster."""

from . import library
from . import prefer as preference
from .measurements import decision, measured


def choose(call, implementation, platforms):
    """(backend, why) of a call, on platforms that one program is for. Where these disagree the backend is native, if all
    have the kernels."""
    if implementation.backend == "xla":
        return "xla", "asked for"
    if not call.op.kernels[call.kind] and call.op.has_kernels:
        return "xla", f"{call.op.library} computes this part"
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
        preference.refuse_native(call.name, implementation, call.op.library)
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
    found = measured(call.op.name, pass_, platform, call.dtype.name, call.regime)
    backend, why = (decision(found[0], call.op.default), found[1]) if found else (call.op.default, "by default")
    if backend == "xla" and implementation.deterministic and not call.is_deterministic("xla", platform):
        return "native", "XLA's program is not deterministic"
    return backend, why
