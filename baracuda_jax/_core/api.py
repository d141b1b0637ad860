"""The decorator of all public functions: errors of a call that a function's body never sees, or sees too late."""

import functools
import inspect

from . import hints
from . import prefer as preference
from .types import F


def api(fun: F) -> F:
    """`fun`, whose error for a keyword that it does not have says what to use. An `implementation` that there is not is an
    error also where the body would choose none."""

    @functools.wraps(fun)
    def call(*args, **kwargs):
        if kwargs.get("implementation") is not None:
            preference.checked(kwargs["implementation"], call.__name__)
        try:
            return fun(*args, **kwargs)
        except TypeError:
            parameters = inspect.signature(fun).parameters
            unknown = next((key for key in kwargs if key not in parameters), None)
            if unknown is None:
                raise
            names = [key for key, p in parameters.items() if p.kind != p.VAR_POSITIONAL]
        told = hints.of_keyword(unknown, names)
        raise TypeError(f"{call.__name__}: got an unexpected keyword argument {unknown!r}; {told}")

    return call  # type: ignore
