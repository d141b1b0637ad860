"""The suite is laws over the table of declared ops: a new op is in all of them as soon as it is declared.

`pytest --platform cuda` runs it on a GPU."""

import collections
import ctypes
import os
import pathlib

import pytest

pytest.register_assert_rewrite("laws")


def pytest_addoption(parser):
    parser.addoption("--platform", default="cpu", choices=("cpu", "cuda"), help="where the ops run")
    parser.addoption("--full", action="store_true", help="every case in every dtype, not a sample")
    parser.addoption("--sample", default=0, type=int, help="the seed of the sample of the law matrix")


def pytest_configure(config):
    platform = config.getoption("platform")
    os.environ["JAX_PLATFORMS"] = "cpu" if platform == "cpu" else "cuda,cpu"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes share the GPU
    os.environ.pop("BARACUDA_JAX_PREFER", None)
    try:
        import baracuda_jax
    except ImportError as error:
        raise pytest.UsageError(str(error)) from error
    source = pathlib.Path(__file__).parent.parent / "baracuda_jax"
    if pathlib.Path(baracuda_jax.__file__).parent == source and not list(source.glob("_cpu*.so")):
        raise pytest.UsageError("the tests import the source folder: use `pytest`, not `python -m pytest`")
    import jax

    jax.config.update("jax_enable_x64", True)
    _poison(platform)


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


@pytest.fixture(autouse=True)
def _no_measurements(request, monkeypatch):
    """The laws are about the kernels, also those that XLA beats; tests of the choice are marked `measured`."""
    from baracuda_jax._core import choice

    if request.node.get_closest_marker("measured") is None:
        monkeypatch.setattr(choice, "table", dict)


def pytest_generate_tests(metafunc):
    """A test with an argument `example` runs on ops, cases and dtypes; `op` on every op, and `derivable_op` on those that have
    a derivative; `law` goes with an example to which it applies."""
    from examples_of import examples, has_derivative

    from baracuda_jax._core.op import OPS

    every = metafunc.config.getoption("full")
    if "law" in metafunc.fixturenames:
        import laws

        pairs = list(laws.chosen(every, metafunc.config.getoption("sample")))
        metafunc.parametrize("law, example", pairs, ids=[f"{law.name}-{example}" for law, example in pairs])
        return
    if "example" in metafunc.fixturenames:
        metafunc.parametrize("example", examples(every), ids=str)
    for name, keep in {"op": lambda op: True, "derivable_op": has_derivative}.items():
        if name in metafunc.fixturenames:
            ops = [op for op in OPS.values() if keep(op)]
            metafunc.parametrize(name, ops, ids=[op.name for op in ops])


def pytest_terminal_summary(terminalreporter):
    """The law matrix: what ran, what does not apply and why."""
    import laws

    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, [])]
    ids = [r.nodeid.partition("::test_law[")[2] for r in reports if getattr(r, "when", "") == "call"]
    runs = [id.rstrip("]").split("-") for id in ids if id]
    if not runs:
        return
    cells = laws.cells()
    ran = {(law, op, dtype) for law, op, *_, dtype in runs}
    reasons = collections.Counter(filter(None, cells.values()))
    write = terminalreporter.write_line
    terminalreporter.section("law matrix")
    for reason, count in reasons.most_common():
        write(f"{count:6} cells do not apply: {reason}")
    write(
        f"{len(laws.LAWS)} laws on ops x dtypes: {len(cells)} cells, of which {reasons.total()} do not apply, "
        f"{len(ran)} ran ({len(runs)} examples), {len(cells) - reasons.total() - len(ran)} are not in this sample"
    )
