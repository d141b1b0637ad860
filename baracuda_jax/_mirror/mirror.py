"""Mirrors: functions with JAX's names, signatures and semantics that compute by ops of baracuda_jax where these can.

A mirror is an adapter with JAX's parameters. It calls these ops, or it returns NotImplemented. JAX's function then takes
the call, with the arguments as they came. So arguments without a native implementation, and wrong arguments, have JAX's
results and errors. Adapters catch no errors of these ops: they ask first.
"""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable

import jax
import numpy as np

from .._core import promote
from .._core.checks import FLOATS
from .._core.op import OPS
from .._core.types import F

PACKAGE = __name__.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class Mirror:
    """One function of JAX's and its mirror.

    Args:
        name: the name below `jax`, such as "numpy.cumsum".
        module: JAX's module, in which `patch_jax` replaces the function.
        original: JAX's function.
        function: the mirror.
        adapter: its native part, which may return NotImplemented.
        ops: the names of the declared ops that it calls.
        differs: what results or gradients differ in beyond rounding, or ""; `patch_jax` then replaces it only if named.
    """

    name: str
    module: types.ModuleType
    original: Callable
    function: Callable
    adapter: Callable
    ops: tuple[str, ...]
    differs: str

    @property
    def native(self):
        """What the docstring says about native execution."""
        return " ".join(inspect.getdoc(self.function).split()).partition("; ")[2]


MIRRORS: dict[str, Mirror] = {}


def mirror(module: types.ModuleType, original: F, *ops: str, differs: str = "") -> Callable[[Callable], F]:
    """Makes a mirror of an adapter that has the name and the parameters of `original`, a function in `module`, one of JAX's.
    Type checkers see JAX's function.

    Parameters that the installed JAX does not have are left out of the mirror's signature. `ops` are the names of the
    declared ops that the adapter calls."""

    def decorate(adapter):
        name = f"{module.__name__.removeprefix('jax.')}.{adapter.__name__}"

        @functools.wraps(adapter)
        def function(*args, **kwargs):
            y = adapter(*args, **kwargs)
            return original(*args, **kwargs) if y is NotImplemented else y

        known, written = inspect.signature(original).parameters, inspect.signature(adapter)
        function.__signature__ = written.replace(parameters=[p for p in written.parameters.values() if p.name in known])
        MIRRORS[name] = Mirror(name, module, original, function, adapter, ops, differs)
        return function  # type: ignore

    return decorate


# ---------------------------------------------------------------------------------------------------------------------
# What adapters ask of arguments


def is_array(x, dtypes):
    """Whether x is an array with one of the dtypes. Python numbers and weakly typed arrays are JAX's."""
    if type(x) is not np.ndarray and (not isinstance(x, jax.Array) or promote.is_weak(x)):
        return False
    return x.dtype.name in dtypes


def takes(op, *xs):
    """Whether all are arrays with one dtype that the op of that name is declared for."""
    return all(is_array(x, OPS[op].dtypes) for x in xs) and len({x.dtype for x in xs}) == 1


def is_float(x):
    return x.dtype.name in FLOATS


def is_integer(value):
    """Whether it is a static integer."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def is_number(value):
    """Whether it is a static real number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def has_axis(x, axis):
    return is_integer(axis) and -x.ndim <= axis < x.ndim


def has_axes(x, axes):
    """Whether `axes` is None, an axis of x, or a tuple of different ones."""
    if axes is None or has_axis(x, axes):
        return True
    return (
        isinstance(axes, tuple) and all(has_axis(x, i) for i in axes) and len({i % x.ndim for i in axes}) == len(axes)
    )


def is_unset(*values):
    """Whether all are the default None."""
    return all(value is None for value in values)


def length_along(x, axes):
    """How many elements of x are reduced along `axes`."""
    axes = range(x.ndim) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    n = 1
    for i in axes:
        n *= x.shape[i]
    return n


def derived_by(theirs, native, *arrays):
    """native(*arrays), with derivatives of all orders of `theirs`. Where derivatives are taken, `theirs` computes the value
    too."""
    if not all(map(is_float, arrays)):
        return native(*arrays)
    function = jax.custom_jvp(native)
    function.defjvp(lambda primals, tangents: jax.jvp(theirs, primals, tangents))
    return function(*arrays)
