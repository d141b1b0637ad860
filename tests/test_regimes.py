"""Both backends over a grid of sizes: what is measured, what is refused, and the table that is written."""

import itertools
import json
import math
import random

import jax
import jax.numpy as jnp
import pytest
from bench_command import run

import baracuda_jax
from baracuda_jax._core import measurements
from baracuda_jax._core.op import OPS
from baracuda_jax.bench import backends, regimes, results
from baracuda_jax.bench.cases import spaces
from baracuda_jax.bench.cases.spaces import SPACES, Sizes

pytest.importorskip("rich")
pytestmark = pytest.mark.usefixtures("without_x64")

ONE = ["--op", "mean", "--dtype", "float32", "--repeats", "2"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(spaces, "ELEMENTS", {"cpu": (2**10,), "cuda": (2**10,)})
    monkeypatch.setattr(spaces, "RANGE", {"cpu": (2**9, 2**10), "cuda": (2**9, 2**10)})


def row_of(op, **changes):
    return {
        "op": op, "pass": "forward", "dtype": "float32", "case": "[8]", "variant": "", "regime": {"bytes": 32},
        "native_ms": 1.0, "xla_ms": 2.0, "chosen": "native", "regret": 1.0,
    } | changes  # fmt: skip


def file_of(path, *rows):
    about = results.about(jax.devices("cpu")[0], "cpu", 1e10, 3, with_torch=False)
    results.write(path, about | {"rows": list(rows)})
    return path


def test_every_op_with_a_kernel_is_in_a_space():
    missing = {op.name for op in OPS.values() if op.has_kernels and not op.made_of} - set(regimes.ops())
    assert not missing
    for space, platform in itertools.product(SPACES.values(), ("cpu", "cuda")):
        grid = space.grid(platform)
        assert len(set(grid)) == len(grid) >= 1
        assert all(sizes.length * sizes.inner <= sizes.elements for sizes in grid)


@pytest.mark.parametrize("seed", range(3))
def test_random_sizes_are_within_those_of_the_grid(seed):
    rng = random.Random(seed)
    for space in SPACES.values():
        for _ in range(50):
            sizes = space.random(rng, "cpu")
            assert 1 <= sizes.length * sizes.inner <= sizes.elements
            if space.lengths and space.is_batched:
                shape, axis = sizes.matrix
                assert shape[axis] == sizes.length and math.prod(shape) == sizes.elements


def test_the_grid_end_to_end(platform, tmp_path, capsys):
    """Its rows are a table, by which what was measured is then chosen."""
    times, table = tmp_path / "times.json", tmp_path / "backends.json"
    assert run(platform, *ONE, "--json", times, "--write-table", table) == 0
    assert "mean" in capsys.readouterr().out
    rows = results.read(times)["rows"]
    assert {row["pass"] for row in rows} == {"forward", "forward + backward"}
    assert {tuple(row["regime"]) for row in rows} == {("bytes", "length", "inner", "aligned")}
    assert {(row["regime"]["length"], row["regime"]["inner"]) for row in rows} >= {(16, 1), (256, 1)}
    written = json.loads(table.read_text())
    assert written["about"] == backends.ABOUT
    assert [(row["op"], row["pass"]) for row in written["rows"]] == [("mean", "forward"), ("mean", "backward")]
    for row in written["rows"]:
        names = {r["case"] for r in rows if regimes.PASSES[r["pass"]] == row["pass"]}
        assert {case["case"] for case in row["cases"]} == names


def test_sizes_half_way_are_measured_where_the_faster_backend_changes():
    space, (a, b, c) = SPACES["reduce"], (Sizes(2**20, length) for length in (16, 256, 4096))
    row = lambda native: row_of("sum", native_ms=native)
    rows = [(a, row(1.0)), (b, row(3.0)), (c, row(3.0)), (Sizes(2**20, 16, 64), row(1.0))]
    assert set(regimes._crossings(space, rows)) == {(Sizes(2**20, 64), "sum")}


def test_random_sizes_end_to_end(platform, tmp_path):
    times = tmp_path / "times.json"
    assert run(platform, *ONE, "--json", times, "--regret", 2) == 0
    rows = results.read(times)["rows"]
    assert len(rows) == 4
    for row in rows:
        assert row["chosen"] in ("native", "xla") and row["regret"] >= 1
        assert row["regret"] == row[f"{row['chosen']}_ms"] / min(row["native_ms"], row["xla_ms"])


def test_a_wrong_kernel_has_no_row(monkeypatch, capsys, platform, tmp_path):
    true = baracuda_jax.mean
    wrong = lambda x, axis, implementation: (
        true(x, axis=axis, implementation=implementation) + (1 if implementation == "native" else 0)
    )
    monkeypatch.setattr(baracuda_jax, "mean", wrong)
    table = tmp_path / "backends.json"
    assert run(platform, *ONE, "--regret", 1, "--write-table", table) == 1
    assert "result 0 is wrong: error" in capsys.readouterr().out
    assert json.loads(table.read_text())["rows"] == []


def test_a_case_replaces_that_of_its_name(tmp_path):
    table = tmp_path / "backends.json"
    for name, *rows in (
        ("a", row_of("sum"), row_of("max")),
        ("b", row_of("sum", native_ms=9.0), row_of("sum", case="[9]")),
    ):
        backends.write(table, results.read(file_of(tmp_path / f"{name}.json", *rows)))
    rows = {row["op"]: row["cases"] for row in json.loads(table.read_text())["rows"]}
    assert [(case["case"], case["native_ms"]) for case in rows["sum"]] == [("[8]", 9.0), ("[9]", 1.0)]
    assert len(rows["max"]) == 1


def test_tuning_writes_the_users_own_table(monkeypatch, tmp_path):
    monkeypatch.setenv(measurements.FOLDER, str(tmp_path / "cache"))
    times = file_of(tmp_path / "times.json", row_of("flip", native_ms=1.0, xla_ms=9.0))
    assert run("cpu", "--from", times, "--tune") == 0
    measurements.tuned.cache_clear()
    assert measurements.measured("flip", "forward", "cpu", "float32", {"bytes": 9})[0] == pytest.approx(1 / 9)
    measurements.tuned.cache_clear()


def test_the_table_in_the_package_is_what_the_command_writes():
    assert json.loads(measurements.PATH.read_text())["about"] == backends.ABOUT


@pytest.mark.parametrize("name", ["sum", "segment_max", "median", "unfold", "gelu"])
def test_the_regime_of_a_benchmark_is_that_of_its_call(name):
    space = next(s for s in SPACES.values() if any(b.op == name for b in s.of(s.grid("cpu")[0], "float32")))
    benchmark = next(b for b in space.of(space.grid("cpu")[-1], "float32") if b.op == name)
    arrays = jax.eval_shape(benchmark.drawn, 0)[1:]
    assert regimes.regime(benchmark)["bytes"] >= max(x.size * jnp.dtype(x.dtype).itemsize for x in arrays)
