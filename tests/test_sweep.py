"""Benchmarks by size, and of what calls cost besides their kernels: what the command writes, and what it refuses."""

import jax
import jax.numpy as jnp
import pytest
import sent
from bench_command import run

from baracuda_jax.bench import overhead, parts, programs, results, sweep
from baracuda_jax.bench.benchmark import PASSES
from baracuda_jax.bench.cases.by_size import SERIES
from baracuda_jax.bench.checks import WrongError

pytest.importorskip("rich")
pytestmark = pytest.mark.usefixtures("without_x64")


# ---------------------------------------------------------------------------------------------------------------------
# Cases by size


@pytest.mark.parametrize("size", sweep.SIZES)
def test_a_size_is_that_of_the_largest_array(size):
    for series in SERIES:
        benchmark = series.of(size, "float32")
        arrays = jax.eval_shape(benchmark.drawn, 0)[1:]
        sizes = [x.size for x in (*arrays, benchmark.result_type(arrays))]
        assert max(sizes) == size and min(sizes) > 0, series


def test_parts_divide_the_axes_of_large_arrays():
    for series in SERIES:
        for size in sweep.SIZES:
            dy, *arrays = jax.eval_shape(series.of(size, "float32").drawn, 0)
            for x, axis in zip((dy, *arrays), (series.result_axis, *series.operand_axes), strict=True):
                if x is not None and axis is not None:
                    assert x.shape[axis] % parts.number_of_parts(size) == 0, (series, size)
    assert [parts.number_of_parts(size) for size in (2**10, 2**28, 2**30, 2**31 + 2**20)] == [1, 1, 4, 8]


@pytest.mark.parametrize("series", SERIES, ids=str)
def test_no_element_escapes_the_check(series, monkeypatch):
    """Right results pass, and one wrong element in any part is found, of the result and of each gradient."""
    monkeypatch.setattr(parts, "PART", 2**17)
    size = 2**18
    benchmark = series.of(size, "float32")
    arguments = jax.jit(benchmark.drawn)(0)
    program_of = lambda fun: programs.BY_PASS[benchmark.passes[-1]](fun, benchmark.moving)
    compare = parts.program(series, benchmark, program_of, parts.number_of_parts(size))
    right = program_of(lambda *arrays: benchmark.function(*arrays, implementation="native"))(*arguments)
    parts.check(compare, 2, arguments, right, benchmark.flips)
    for i, y in enumerate(right):
        for element in (0, y.size // 2 + 1, y.size - 1):
            off = y.ravel().at[element].set(100 if y.ravel()[element] < 0 else -100).reshape(y.shape)
            with pytest.raises(WrongError, match=f"result {i} is wrong"):
                parts.check(compare, 2, arguments, [*right[:i], off, *right[i + 1 :]], benchmark.flips)


def test_a_sweep_end_to_end(platform, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sweep, "SIZES", (2**10, 2**14))
    file = tmp_path / "sweep.json"
    assert run(platform, "--sweep", "--op", "hardtanh", "quantize_per_tensor", "--repeats", 2, "--json", file) == 0
    assert "hardtanh" in capsys.readouterr().out
    found = results.read(file)
    assert [(row["op"], row["pass"], row["size"]) for row in found["rows"]] == [
        *(("hardtanh", title, size) for size in (2**10, 2**14) for title in PASSES),
        *(("quantize_per_tensor", PASSES[0], size) for size in (2**10, 2**14)),
    ]
    for row in found["rows"]:
        assert row["checked"] and row["note"] is None
        assert all(row[name] > 0 for name in ("native_ms", "xla_ms", "floor_ms"))
    pytest.importorskip("matplotlib")
    assert run("cpu", "--sweep", "--from", file, "--plot", tmp_path / "sweep.svg") == 0
    assert "<svg" in (tmp_path / "sweep.svg").read_text()


def test_a_wrong_size_has_no_row(platform, monkeypatch, tmp_path, capsys):
    import baracuda_jax

    true = baracuda_jax.hardtanh

    def hardtanh(x, implementation):
        y = true(x, implementation=implementation)
        return y.at[-1, -1].add(0.01) if implementation == "native" and x.size == 2**12 else y

    monkeypatch.setattr(baracuda_jax, "hardtanh", hardtanh)
    monkeypatch.setattr(sweep, "SIZES", (2**10, 2**12, 2**14))
    file = tmp_path / "sweep.json"
    assert run(platform, "--sweep", "--op", "hardtanh", "--repeats", 2, "--json", file) == 1
    assert "hardtanh float32 [16, 256], forward: result 0 is wrong" in capsys.readouterr().out
    assert {row["size"] for row in results.read(file)["rows"]} == {2**10, 2**14}


def test_a_program_that_does_not_run_has_no_time():
    def full():
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nmore")

    assert sweep._reason(full) == "RESOURCE_EXHAUSTED: Out of memory"
    assert sweep._reason(lambda: sent.ones(1)) is None


# ---------------------------------------------------------------------------------------------------------------------
# What calls cost


def test_overheads_end_to_end(platform, monkeypatch, tmp_path):
    for name, value in {"CHAIN": 3, "COMPILES": 1, "IMPORTS": 1}.items():
        monkeypatch.setattr(overhead, name, value)
    file = tmp_path / "overhead.json"
    assert run(platform, "--overhead", "--repeats", 3, "--json", file) == 0
    rows = results.read(file)["rows"]
    assert list(dict.fromkeys(row["measure"] for row in rows)) == ["call", "chain", "compile", "import", "size"]
    for row in rows:
        assert set(row) == {"measure", "case", "unit", "native", "xla"}
        assert row["native"] > 0 or "graphs" in row["case"] or "kernels" in row["case"], row
        assert (row["xla"] is None) == (row["measure"] in ("import", "size"))


def test_a_chain_has_as_many_steps_as_it_says(platform, monkeypatch):
    monkeypatch.setattr(overhead, "CHAIN", 5)
    with jax.default_device(jax.devices(platform)[0]):
        for benchmark in overhead.tiny():
            arrays = overhead.arrays_of(benchmark)
            made = {name: jax.jit(overhead.chain(fun)) for name, fun in overhead.backends(benchmark).items()}
            hlo = made["native"].lower(*arrays).compile().as_text()
            assert (
                5 <= hlo.count('custom_call_target="baracuda.') <= overhead.steps(hlo)
            )  # ids may need a call of their own
            got, theirs = (fun(*arrays) for fun in made.values())
            assert jnp.allclose(got, theirs, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


def test_options_that_do_not_go_together(capsys):
    assert run("cpu", "--sweep", "--size", "small") == 1
    assert "--sweep takes no --size" in capsys.readouterr().err
    assert run("cpu", "--overhead", "--op", "affine") == 1
    assert "--overhead takes no --op" in capsys.readouterr().err
    assert run("cpu", "--sweep", "--op", "affine") == 1
    assert "No such op: affine (--sweep has segment_sum" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("cpu", "--sweep", "--overhead")
