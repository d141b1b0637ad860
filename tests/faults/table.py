"""The table of faults: what each breaks, what finds it, and in which runs.

A fault claims a tier. "default": every default run finds it, whatever its seed, in the examples that it draws for the law or
the test: those of the op where the fault names one, else of any op that `among` says is broken by it, as all are by a fault of what
they share. "changed": a run of all there is about the op finds it, since it shows in one dtype, case or combination alone, or in
a law that a default run need not try on the op."""

import dataclasses
import functools
import importlib
import inspect
import itertools
import pathlib
import types
from collections.abc import Callable

from laws import LAWS, chosen
from sampling import Tier

from baracuda_jax._core.op import OPS

TESTS = pathlib.Path(__file__).parent.parent
FAULTS = []
MOST = 32  # runs of one fault
ABOUT = ("example", "op", "derivable_op", "sharded", "silent")  # parameters of a test that say which op it is about


@dataclasses.dataclass(frozen=True)
class Run:
    """A law or a test with its parameters, as pytest's items are for `Tier.items`."""

    nodeid: str
    call: Callable
    params: dict
    module: types.ModuleType = None

    @property
    def callspec(self):
        return self

    @property
    def path(self):
        return pathlib.Path(self.nodeid.partition("::")[0])

    def get_closest_marker(self, name):
        return next((mark for mark in getattr(self.call, "pytestmark", ()) if mark.name == name), None)

    def __str__(self):
        return ", ".join(f"{name} {getattr(value, 'name', value)}" for name, value in self.params.items())

    def __call__(self, fixtures):
        """With an example of its own, that nothing was computed of before."""
        params = {
            name: dataclasses.replace(value) if name == "example" else value for name, value in self.params.items()
        }
        wanted = inspect.signature(self.call).parameters
        self.call(**params, **{name: value for name, value in fixtures.items() if name in wanted})


@dataclasses.dataclass(frozen=True)
class Fault:
    """`break_(patch, op)` breaks the op, or any that is `among` the broken ones where none is named. `found_by` names a law, or a
    test and its file; `given` what its parameters must be; for an example, the name of its case and its dtype. One of a platform is
    planted there alone."""

    break_: Callable
    found_by: str
    tier: str
    op: str | None
    among: Callable
    given: dict
    platform: str | None = None

    def __str__(self):
        return "-".join(filter(None, (self.break_.__name__, self.found_by, self.op, *map(str, self.given.values()))))

    def runs(self, seed):
        """What finds it, of a run of its tier; (run, the op that it runs)."""
        tier = Tier((seed,)) if self.tier == "default" else Tier((), frozenset({self.op}))
        runs = _runs_of_law if self.found_by in LAWS else _runs_of_test
        found = []
        for run in runs(self.found_by, tier):
            name = next((name for name in ABOUT if name in run.params), None)
            op = _op(run.params[name] if name else self.op)
            is_meant = op is None or (self.among(op) if self.op is None else op.name == self.op)
            if is_meant and all(_is(run.params, *pair) for pair in self.given.items()):
                found.append((run, op))
        return found[:MOST]


def _op(value):
    """That of a name, of an op, or of what has one."""
    value = getattr(value, "op", value)
    return OPS.get(value, value) if isinstance(value, str) else value


def _is(params, name, wanted):
    values = [params[name]] if name in params else []
    for value in params.values():  # an example has a case and a dtype, what is sharded a way
        if hasattr(value, name):
            value = getattr(value, name)
            values.append(getattr(value, "name", value))
    return wanted in values


def has_rules(op):
    """Plain JAX has none to break."""
    return not op.is_facade


def fault(*found_by, op=None, tier="default", among=has_rules, platform=None, **given):
    """Enters a fault into the table; each of the laws or tests must find it."""

    def enter(break_):
        FAULTS.extend(Fault(break_, name, tier, op, among, given, platform) for name in found_by)
        return break_

    return enter


def _runs_of_law(name, tier):
    check = lambda example: LAWS[name].check(example)
    return [Run("", check, {"example": example}) for law, example in _chosen(tier) if law.name == name]


@functools.cache
def _chosen(tier):
    return list(chosen(tier))


def _runs_of_test(name, tier):
    """What a tier takes of the items that pytest makes of a test."""
    file, function = name.split(".")
    module = importlib.import_module(file)
    nodeid, call = f"{TESTS.name}/{file}.py::{function}", getattr(module, function)
    params = _Parameters(call, tier)
    for source in (importlib.import_module("conftest"), module):
        getattr(source, "pytest_generate_tests", lambda _: None)(params)
    for mark in getattr(call, "pytestmark", ()):
        if mark.name == "parametrize":
            params.parametrize(*mark.args[:2])
    return tier.items([Run(nodeid, call, values, module) for values in params.all()])


class _Parameters:
    """What `pytest_generate_tests` sees of a test."""

    def __init__(self, function, tier):
        self.function, self.definition = function, Run("", function, {})
        self.fixturenames = list(inspect.signature(function).parameters)
        self.config = types.SimpleNamespace(tier=tier)
        self._options = []

    def parametrize(self, names, values, ids=None):
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        values = [getattr(value, "values", value) if hasattr(value, "marks") else value for value in values]
        self._options.append([dict(zip(names, v if len(names) > 1 else [v], strict=True)) for v in values])

    def all(self):
        return [{k: v for part in parts for k, v in part.items()} for parts in itertools.product(*self._options)]
