"""The suite is needed, and loses nothing: what is broken on purpose is found by what the table of faults names, in the runs of the
tier that it claims. A default run plants an eighth of the faults, another for another seed."""

import importlib

import pytest
from examples_of import forget_traces
from faults import FAULTS
from laws import LAWS
from sharded import devices

from baracuda_jax._core import compat

PARTS = 8
FOUND = (
    AssertionError,
    FloatingPointError,
    IndexError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    ZeroDivisionError,
    compat.ShardingTypeError,
    pytest.fail.Exception,
)


def pytest_generate_tests(metafunc):
    if "fault" not in metafunc.fixturenames:
        return
    tier = metafunc.config.tier
    is_whole = tier.is_full or "test_faults.py" in tier.files
    is_taken = lambda i, fault: is_whole or fault.op in tier.ops or any((i + seed) % PARTS == 0 for seed in tier.seeds)
    faults = [fault for i, fault in enumerate(FAULTS) if is_taken(i, fault)]
    metafunc.parametrize("fault", faults, ids=str)


@pytest.mark.exhaustive
def test_a_fault_is_found(monkeypatch, request, platform, fault):
    if "sharding" in fault.break_.__module__ and len(devices()) < 2:
        pytest.skip("needs several devices")
    if fault.platform not in (None, platform):
        pytest.skip(f"is a fault on {fault.platform}")
    runs = fault.runs(request.config.option.sample)
    assert runs, f"no run of tier {fault.tier} is of this op and has these parameters"
    fixtures = {"platform": platform, "monkeypatch": monkeypatch}
    found = next((run for run, op in runs if _finds(monkeypatch, fault, run, op, fixtures)), None)
    assert found, f"not found by {'; '.join(str(run) for run, _ in runs)}"
    with monkeypatch.context() as fixtures["monkeypatch"]:
        found(fixtures)


def test_what_finds_a_fault_is_there():
    for name in {fault.found_by for fault in FAULTS} - LAWS.keys():
        file, function = name.split(".")
        assert callable(getattr(importlib.import_module(file), function, None)), name


def _finds(monkeypatch, fault, run, op, fixtures):
    forget_traces()
    try:
        with monkeypatch.context() as patch:
            fault.break_(patch, op)
            run(fixtures | {"monkeypatch": patch})
    except FOUND:
        return True
    finally:
        forget_traces()
    return False
