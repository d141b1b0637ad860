"""The suite is laws over the table of declared ops: a new op is in all of them as soon as it is declared.

`sampling.py` says what a run takes. `pytest --platform cuda` runs the suite on a GPU."""

import argparse
import collections
import ctypes
import gc
import math
import os
import pathlib
import random
import time
from importlib import metadata

import costs
import hypothesis
import pytest

pytest.register_assert_rewrite("laws")


def pytest_addoption(parser):
    parser.addoption("--platform", default="cpu", choices=("cpu", "cuda"), help="where the ops run")
    parser.addoption("--full", action="store_true", help="every case in every dtype, compiled as users compile")
    parser.addoption(
        "--changed", nargs="?", const="main", metavar="BASE", help="all of the ops that differ from a commit"
    )
    parser.addoption("--budget", type=float, metavar="SECONDS", help="leave out, at random, what takes longer")
    parser.addoption("--deadline", type=float, default=math.inf, help=argparse.SUPPRESS)
    parser.addoption("--sample", type=int, help="the seed of the sample; by default the number of commits")
    parser.addoption("--costs", type=int, default=0, metavar="N", help="print the N tests that cost most")


LEFT_OUT = "left out: the time is over"
MEMORY = 2 << 30  # bytes of a process
# Nearly all time of the suite is XLA's, which compiles small programs. These halve it and more.
QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",
)
if tuple(map(int, metadata.version("jaxlib").split(".")[:2])) < (0, 11):  # later ones end the process: an unknown flag
    QUICK += ("--xla_cpu_use_fusion_emitters=false",)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    gc.set_threshold(100_000, 20, 20)  # to look for garbage took a tenth of the time
    platform, option = config.getoption("platform"), config.option
    os.environ["JAX_PLATFORMS"] = "cpu" if platform == "cpu" else "cuda,cpu"
    quick = QUICK if platform == "cpu" and not option.full else ()
    flags = os.environ.get("XLA_FLAGS", ""), "--xla_force_host_platform_device_count=8", *quick
    os.environ["XLA_FLAGS"] = " ".join(flags)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes share the GPU
    os.environ.pop("BARACUDA_JAX_PREFER", None)
    _import_the_installed_package()
    import jax
    from sampling import seed_of

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")  # a GPU rounds operands of float32 to fewer bits else
    config.addinivalue_line("markers", "exhaustive: a default run takes all parameters, since they cost little")
    config.addinivalue_line("markers", "large: takes GBs of memory and long on a CPU, where --full alone runs it")
    if option.sample is None:  # workers have the controller's options
        option.sample = seed_of(config.rootpath)
    if option.budget and option.deadline == math.inf:
        option.deadline = time.time() + option.budget
    config.tier = _tier(option)
    option.hypothesis_seed = option.hypothesis_seed or str(option.sample)
    hypothesis.settings.register_profile("default", deadline=None, max_examples=4)
    hypothesis.settings.register_profile("full", deadline=None, max_examples=40)
    hypothesis.settings.load_profile("full" if option.full else "default")
    if quick:
        import lowering  # which imports JAX, which reads the environment

        lowering.share_contexts()
    meter = costs.Costs(option.costs)
    meter.listen()
    config.pluginmanager.register(meter)
    _poison(platform)


def _tier(option):
    from sampling import Tier

    from baracuda_jax._core.op import OPS

    if option.full:
        return Tier((option.sample,), frozenset(OPS))
    if option.changed is None:
        return Tier((option.sample,))
    import changes

    try:
        return changes.tier(option.changed, option.sample)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def _import_the_installed_package():
    try:
        import baracuda_jax
    except ImportError as error:
        raise pytest.UsageError(str(error)) from error
    source = pathlib.Path(__file__).parent.parent / "baracuda_jax"
    if pathlib.Path(baracuda_jax.__file__).parent == source and not list(source.glob("_cpu*.so")):
        raise pytest.UsageError("the tests import the source folder: use `pytest`, not `python -m pytest`")


def _poison(platform):
    """Fresh memory holds garbage, so that an output that nobody wrote shows."""
    if platform == "cpu":
        perturb = -6  # M_PERTURB of glibc's mallopt
        ctypes.CDLL(None).mallopt(perturb, 0x5A)
        return
    import jax.numpy as jnp

    # What the GPU's allocator hands out next is this block.
    jnp.full(1 << 28, jnp.nan, jnp.float32).block_until_ready().delete()


@pytest.fixture(scope="session")
def platform(request):
    return request.config.getoption("platform")


@pytest.fixture
def without_x64():
    """As in a fresh Python: 64 bits are on for the other tests."""
    import jax

    with jax.enable_x64(False):
        yield


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Compiled programs stay in JAX's caches, and would fill the memory."""
    import jax

    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    if pages * os.sysconf("SC_PAGE_SIZE") > MEMORY:
        jax.clear_caches()
        gc.collect()
        # Else the process stays as large, and what is shared is compiled again for each test.
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True)
def _no_measurements(request, monkeypatch):
    """The laws are about the kernels, also those that XLA beats; tests of the choice are marked `measured`."""
    from baracuda_jax._core import measurements

    if request.node.get_closest_marker("measured") is None:
        monkeypatch.setattr(measurements, "table", dict)


def pytest_generate_tests(metafunc):
    """A test with an argument `example` runs on each op, in one case and dtype; `op` on one op of each kind whose turn it is,
    `derivable_op` on those that have a derivative; `law` goes with an example to which it applies."""
    import laws
    from examples_of import examples, has_derivative
    from sampling import due, kind, number_of

    from baracuda_jax._core.op import OPS

    tier, name = metafunc.config.tier, metafunc.function.__qualname__
    if "law" in metafunc.fixturenames:
        pairs = list(laws.chosen(tier))
        metafunc.parametrize("law, example", pairs, ids=[f"{law.name}-{example}" for law, example in pairs])
        return
    if "example" in metafunc.fixturenames:
        metafunc.parametrize("example", examples(tier, name), ids=str)
    for argument, keep in {"op": lambda op: True, "derivable_op": has_derivative}.items():
        if argument in metafunc.fixturenames:
            ops = [op for op in OPS.values() if keep(op)]
            if metafunc.definition.get_closest_marker("exhaustive") is None:
                ops = tier.of(ops, lambda seed, ops=ops: due(ops, kind, seed, number_of(name)))
            metafunc.parametrize(argument, ops, ids=[op.name for op in ops])


def pytest_collection_finish():
    """What was imported and collected stays: nobody looks for garbage there again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config, items):
    is_small = config.option.platform == "cpu" and not config.tier.is_full
    kept = [item for item in config.tier.items(items) if not (is_small and item.get_closest_marker("large"))]
    known = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in known])
    if config.option.budget:  # whatever is left out may be anything
        random.Random(config.option.sample).shuffle(kept)
    items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if time.time() > item.config.option.deadline:
        pytest.skip(LEFT_OUT)


def pytest_terminal_summary(terminalreporter):
    """The tier; and the law matrix: what ran, what does not apply and why."""
    import laws

    option, tier = terminalreporter.config.option, terminalreporter.config.tier
    terminalreporter.section("tier")
    what = (
        "everything"
        if tier.is_full
        else f"samples {tier.seeds}, {len(tier.ops)} ops and {len(tier.files)} files in full"
    )
    terminalreporter.write_line(what)
    skipped = terminalreporter.stats.get("skipped", [])
    if left := sum(LEFT_OUT in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"{left} tests were left out, as they did not fit into {option.budget:.0f} s")

    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, [])]
    ids = [r.nodeid.partition("::test_law[")[2] for r in reports if getattr(r, "when", "") == "call"]
    runs = [id.rstrip("]").split("-") for id in ids if id]
    if not runs:
        return
    entries = laws.entries()
    ran = {(law, op, dtype) for law, op, *_, dtype in runs}
    reasons = collections.Counter(filter(None, entries.values()))
    write = terminalreporter.write_line
    terminalreporter.section("law matrix")
    for reason, count in reasons.most_common():
        write(f"{count:6} entries do not apply: {reason}")
    write(
        f"{len(laws.LAWS)} laws on ops x dtypes: {len(entries)} entries, of which {reasons.total()} do not apply, "
        f"{len(ran)} ran ({len(runs)} examples), {len(entries) - reasons.total() - len(ran)} are not in this sample"
    )
