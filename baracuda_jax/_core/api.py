"""The decorator of all public functions: errors of a call that a function's body never sees, or sees too late."""

import functools
import inspect

import jax

from . import compat, explicit, hints
from . import prefer as preference
from .types import F


def api(fun: F) -> F:
    """`fun`, whose error for a keyword that it does not have says what to use. An `implementation` that there is not is an
    error also where the body would choose none.

    Where an array is sharded along explicit axes of a mesh such that JAX has no rule for what the body does, the arrays are
    gathered first."""

    @functools.wraps(fun)
    def call(*args, **kwargs):
        if kwargs.get("implementation") is not None:
            preference.checked(kwargs["implementation"], call.__name__)
        try:
            return fun(*args, **kwargs)
        except (compat.ShardingTypeError, TypeError, ValueError) as error:  # JAX raises all three
            refusal = _of_keyword(fun, kwargs) if isinstance(error, TypeError) else None
            if refusal is None and not any(map(_is_sharded, jax.tree.leaves((args, kwargs)))):
                raise
        if refusal is not None:
            raise refusal
        return fun(*_whole(args), **_whole(kwargs))

    return call  # type: ignore


def _of_keyword(fun, kwargs):
    """The error for a keyword that fun does not have, or None."""
    parameters = inspect.signature(fun).parameters
    unknown = next((key for key in kwargs if key not in parameters), None)
    if unknown is None:
        return None
    told = hints.of_keyword(unknown, [key for key, p in parameters.items() if p.kind != p.VAR_POSITIONAL])
    return TypeError(f"{fun.__name__}: got an unexpected keyword argument {unknown!r}; {told}")


def _is_sharded(x):
    return isinstance(x, jax.Array) and explicit.is_sharded(x)


def _whole(arguments):
    return jax.tree.map(lambda x: explicit.whole(x) if isinstance(x, jax.Array) else x, arguments)
