"""What a caller asks of the backend: per call, by context, by environment variable, in that order."""

import contextlib
import contextvars
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from . import checks

BACKENDS = ("native", "xla")
VARIABLE = "BARACUDA_JAX_PREFER"
_context = contextvars.ContextVar("baracuda_jax_prefer", default=None)


@dataclasses.dataclass(frozen=True)
class PlanPreference:
    """What a caller asks of the backend of an op.

    Args:
        backend: "native" (the kernel), "xla" (plain JAX), or None for automatic.
        deterministic: the automatic choice never prefers an XLA program whose bits may differ from run to run. A backend
            that is asked for by name is taken as it is; the plan says whether it is deterministic.
        max_workspace_bytes: the most scratch memory that a native kernel may take. Where it needs more, the automatic
            choice is XLA, and backend="native" an error.

    Raises:
        TypeError, ValueError: for a field of the wrong type or range, naming it.
    """

    backend: str | None = None
    deterministic: bool = True
    max_workspace_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.backend not in (None, *BACKENDS):
            raise ValueError(f"PlanPreference: backend must be one of {BACKENDS} or None, got {self.backend!r}")
        checks.flag("PlanPreference", "deterministic", self.deterministic)
        if self.max_workspace_bytes is not None:
            checks.integer("PlanPreference", "max_workspace_bytes", self.max_workspace_bytes, 0)


@dataclasses.dataclass(frozen=True)
class Planned:
    """What a Plan has chosen for each op that it calls, as rows (op, dtype, of a forward call, of its derivatives)."""

    rows: tuple[tuple[str, str, str, str], ...]

    def of(self, call: Any) -> str | None:
        """What was chosen for a call, or None where the plan has no call of this op. A derivative may have another dtype
        than the op."""
        rows = [row for row in self.rows if row[0] == call.op.name]
        row = next((row for row in rows if row[1] == call.dtype.name), rows[0] if rows else None)
        return row and row[2 if call.kind == "forward" else 3]


def checked(implementation, where):
    """A preference as an object, or None where there is none."""
    if implementation is None or isinstance(implementation, PlanPreference | Planned):
        return implementation
    if not isinstance(implementation, str) or implementation not in BACKENDS:
        raise ValueError(
            f"{where}: implementation must be one of {BACKENDS}, a PlanPreference or None, got {implementation!r}"
        )
    return PlanPreference(implementation)


@contextlib.contextmanager
def prefer(backend: str | PlanPreference | None) -> Iterator[None]:
    """Within this context, ops without an argument `implementation` use `backend`.

    Args:
        backend: "native", "xla", a PlanPreference, or None for automatic.

    Raises:
        ValueError: for anything else.
    """
    token = _context.set(checked(backend, "baracuda_jax.prefer"))
    try:
        yield
    finally:
        _context.reset(token)


def default(otherwise: PlanPreference) -> contextlib.AbstractContextManager[None]:
    """A context in which `otherwise` holds where the caller has asked for nothing."""
    is_given = _context.get() is not None or os.environ.get(VARIABLE)
    return contextlib.nullcontext() if is_given else prefer(otherwise)


def resolve(op, implementation):
    """The preference that holds for a call. The first that is given holds whole: a PlanPreference with backend=None is
    automatic also where the context names a backend."""
    return (
        checked(implementation, op)
        or _context.get()
        or checked(os.environ.get(VARIABLE) or None, f"environment {VARIABLE}")
        or PlanPreference()
    )


def demands_native(op, implementation):
    """Whether a call asks for a kernel. A context that prefers kernels means those that there are."""
    wanted = checked(implementation, op)
    return isinstance(wanted, PlanPreference) and wanted.backend == "native"


def refuse_native(op, implementation, library):
    """Raises where a call asks for a kernel that there is not."""
    if demands_native(op, implementation):
        raise ValueError(f"{op}: implementation='native', but the op has no kernel; {library} computes it")


def for_call(implementation, call):
    """The preference for one call of an op's primitive."""
    return PlanPreference(implementation.of(call)) if isinstance(implementation, Planned) else implementation
