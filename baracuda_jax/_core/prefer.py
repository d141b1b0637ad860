"""Which backend computes an op: per call, by context, by environment variable, in that order."""

import contextlib
import contextvars
import os

BACKENDS = ("native", "xla")
VARIABLE = "BARACUDA_JAX_PREFER"
_context = contextvars.ContextVar("baracuda_jax_prefer", default=None)


def _checked(backend, where):
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"{where}: prefer must be one of {BACKENDS} or None, got {backend!r}")
    return backend


@contextlib.contextmanager
def prefer(backend):
    """Within this context, ops without an argument `prefer` use `backend`: "native", "xla", or None for automatic."""
    token = _context.set(_checked(backend, "baracuda_jax.prefer"))
    try:
        yield
    finally:
        _context.reset(token)


def resolve(op, backend):
    """The backend that a call asks for, or None where nobody asks: then native where there is a kernel."""
    return (
        _checked(backend, op) or _context.get() or _checked(os.environ.get(VARIABLE) or None, f"environment {VARIABLE}")
    )
