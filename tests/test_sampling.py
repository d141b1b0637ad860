"""What a run takes: every value of every parameter, all pairs over several runs, and the ops that a change touches."""

import functools
import types

import changes
import pytest
import sampling
from examples_of import examples
from laws import LAWS, chosen
from laws.table import ALIKE
from sampling import Tier

from baracuda_jax._core.op import OPS


def _items(**parameters):
    """Items as of a test with these parameters, in all combinations."""
    items = [{}]
    for name, values in parameters.items():
        items = [item | {name: value} for item in items for value in values]
    return [types.SimpleNamespace(callspec=types.SimpleNamespace(params=item)) for item in items]


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_every_value(seed):
    items = _items(a=range(7), b="xyz", c=(True, False))
    taken = [item.callspec.params for item in sampling.covering(items, seed)]
    assert 7 <= len(taken) <= 9
    assert [{item[name] for item in taken} for name in "abc"] == [set(range(7)), set("xyz"), {True, False}]


def test_samples_of_several_seeds_differ():
    items = _items(a=range(7), b=range(7))
    samples = {
        tuple(sorted(tuple(i.callspec.params.values()) for i in sampling.covering(items, seed))) for seed in range(9)
    }
    assert len(samples) == 9


@pytest.mark.parametrize("n, m", [(1, 1), (3, 4), (4, 6), (5, 5), (1, 7)])
def test_every_case_meets_every_dtype(n, m):
    pairs = [sampling.pair(range(n), range(m), turn) for turn in range(n * m)]
    assert len(set(pairs)) == n * m
    assert {dtype for _, dtype in pairs[:m]} == set(range(m))


@functools.cache
def _pairs(seed):
    """{(law, op)} of a default run."""
    return {(law.name, example.op.name) for law, example in chosen(Tier((seed,)))}


def test_each_law_meets_every_op_or_every_kind_in_successive_runs():
    found = set().union(*map(_pairs, range(sampling.RUNS)))
    for law in LAWS.values():
        ops = [op for op in OPS.values() if any(law.applies(op, dtype) is None for dtype in map(_dtype, op.dtypes))]
        assert {ALIKE[law.about](OPS[op]) for name, op in found if name == law.name} == set(
            map(ALIKE[law.about], ops)
        ), law.name


@pytest.mark.parametrize("seed", range(sampling.RUNS))
def test_each_run_has_every_law_and_the_value_of_every_op(seed):
    assert {law for law, _ in _pairs(seed)} == set(LAWS)
    assert {example.op for example in examples(Tier((seed,)), "test_value")} == set(OPS.values())


def test_a_seed_says_what_runs():
    run = lambda: [(law.name, str(example)) for law, example in chosen(Tier((7,)))]
    assert run() == run()


@pytest.mark.parametrize("count", [1, 3, 6])
def test_a_property_meets_every_op_of_a_kind(count):
    """Nine kinds of so many ops: in as many times RUNS runs, once each, and every kind in RUNS runs."""
    ops = [(kind, i) for kind in range(9) for i in range(count)]
    runs = [sampling.due(ops, lambda op: op[0], seed, number=2) for seed in range(count * sampling.RUNS)]
    assert sorted(op for run in runs for op in run) == ops
    for first in range(len(runs) - sampling.RUNS + 1):
        assert {kind for run in runs[first : first + sampling.RUNS] for kind, _ in run} == set(range(9))


@pytest.mark.parametrize("count", [2, 3, 30])
def test_items_are_met_in_successive_runs(count):
    items = _items(a=range(count), b="xy")
    runs = [sampling.sample(items, seed) for seed in range(sampling.RUNS)]
    assert {item.callspec.params["a"] for run in runs for item in run} == set(range(count))
    assert {item.callspec.params["b"] for run in runs for item in run} == set("xy")
    assert all(1 <= len(run) <= count / sampling.RUNS + 1 for run in runs)


def _dtype(name):
    import jax.numpy as jnp

    return jnp.dtype(name)


def test_ops_in_full_run_every_case_in_every_dtype():
    pairs = list(chosen(Tier((), frozenset({"cumsum"}))))
    op = OPS["cumsum"]
    jit = {(e.case.name, e.dtype) for law, e in pairs if law.name == "jit"}
    assert jit == {(case.name, dtype) for case in op.cases for dtype in op.dtypes}
    assert {e.op for _, e in pairs} == {op}


def test_a_change_touches_the_ops_of_its_file():
    family = {name for name, op in OPS.items() if op.family == "scan"}
    assert changes.touched({"baracuda_jax/scan/_sum.py"}) == ({"cumsum"}, False)
    assert changes.touched({"baracuda_jax/scan/_family.py"}) == (family, False)
    users = {name for name, op in OPS.items() if op.targets & {"cumsum", "linear_scan"}}
    assert changes.touched({"ffi/patterns/scan_cuda.h"}) == (family | users, False)
    assert changes.touched({"ffi/patterns/executor.h"}) == (set(), True)
    assert changes.touched({"baracuda_jax/_core/op.py"}) == (set(), True)
    assert changes.touched({"docs/scan.md"}) == (set(), False)


def test_every_op_has_a_declaration_and_a_handler():
    native = {name for name, op in OPS.items() if op.has_kernels}
    for folder, pattern, ops in (("baracuda_jax", "*.py", set(OPS)), ("ffi", "*.cc", native)):
        files = map(changes._name, changes._sources(folder, pattern))
        assert set().union(*map(changes._ops_of, files)) == ops
