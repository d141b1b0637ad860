"""Ops that are a line in a table: what is made of the line besides the op, such as its tests and benchmarks."""

import dataclasses
import functools
import sys
from collections.abc import Callable

from .._core.api import api


@dataclasses.dataclass(frozen=True)
class Made:
    """`value(*arrays)` is plain JAX. Arrays are drawn from `at`, a range for each. `source` names the functions of others
    that are the same."""

    name: str
    arrays: int
    dtypes: tuple[str, ...]
    value: Callable
    at: tuple
    source: str
    has_derivative: bool

    def theirs(self, package):
        """The name of the same function in a package, such as "torch", or None."""
        names = [name.split(",")[0].strip() for name in self.source.split(";")]
        return next((name for name in names if name.split(".")[0] == package), None)

    def call_theirs(self, package, *arrays):
        """That function of arrays; `package` is the module."""
        name, _, keywords = self.theirs(package.__name__).partition("(")
        fun = functools.reduce(getattr, name.split(".")[1:], package)
        key, _, value = keywords.rstrip(")").partition("=")
        return fun(*arrays, **({key: value.strip("'")} if key else {}))


MADE: dict[str, Made] = {}


def named(fun, name, doc):
    """A public function made for the module in which the line of the table is: there it is found again, as by pickle."""
    frame = sys._getframe(1)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    fun.__name__ = fun.__qualname__ = name
    fun.__module__ = frame.f_globals["__name__"]
    fun.__doc__ = doc
    return api(fun)
