"""The table of faults: what each breaks, what finds it, and in which runs.

A fault claims a tier. "default": every default run finds it, whatever its seed, in the examples that it draws for the law or
the test: those of the same op where these are about its functor, of one of its kin where they are about the declaration, of an
op of the same kind where they are about the machinery; of any op where the fault is in what all ops share, and names none.
"changed": a run of all there is about the op finds it, since it shows in one dtype, case or combination alone."""

import dataclasses
import importlib
import inspect
import itertools
import pathlib
import types
from collections.abc import Callable

from laws import LAWS, chosen
from sampling import Tier, kind

from baracuda_jax._core.op import OPS

TESTS = pathlib.Path(__file__).parent.parent
FAULTS = []
MOST = 4  # runs of one fault
# What ops must share with the broken one, for a parameter of a test to stand for it.
ABOUT = {
    "example": "functor",
    "op": "machinery",
    "derivable_op": "machinery",
    "sharded": "declaration",
    "silent": "declaration",
}
SAME = {"functor": lambda op: op.name, "declaration": lambda op: op.kin or op.name, "machinery": kind}


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
    """`break_(patch, op)` breaks the op, or all where none is named. `found_by` names a law, or a test and its file; `given`
    what its parameters must be; for an example, the name of its case and its dtype."""

    break_: Callable
    found_by: str
    tier: str
    op: str | None
    given: dict

    def __str__(self):
        return "-".join(filter(None, (self.break_.__name__, self.found_by, self.op, *map(str, self.given.values()))))

    def runs(self, seed):
        """What finds it, of a run of its tier; (run, the op that it runs). A facade has no rules to break."""
        tier = Tier((seed,)) if self.tier == "default" else Tier((), frozenset({self.op}))
        about, runs = ABOUT, _runs_of_law(self.found_by, tier)
        if runs is None:
            runs = _runs_of_test(self.found_by, tier)
        else:
            about = {"example": LAWS[self.found_by].about}
        found = []
        for run in runs:
            name = next((name for name in about if name in run.params), None)
            op = _op(run.params[name] if name else self.op)
            same = SAME[about[name] if name and self.tier == "default" else "functor"]
            is_meant = not (op and op.is_facade) if self.op is None else same(op) == same(OPS[self.op])
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


def fault(*found_by, op=None, tier="default", **given):
    """Enters a fault into the table; each of the laws or tests must find it."""

    def enter(break_):
        FAULTS.extend(Fault(break_, name, tier, op, given) for name in found_by)
        return break_

    return enter


def _runs_of_law(name, tier):
    if name not in LAWS:
        return None
    check = lambda example: LAWS[name].check(example)
    return [Run("", check, {"example": example}) for law, example in chosen(tier) if law.name == name]


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
