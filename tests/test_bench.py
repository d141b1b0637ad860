"""The command that times kernels: what it writes, what it refuses, and the bandwidth bound by hand."""

import os
import pathlib
import runpy
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from bench_command import run

import baracuda_jax
from baracuda_jax.bench import between, bounds, cases, kinds, programs, results, times
from baracuda_jax.bench.benchmark import PASSES, SIZES
from baracuda_jax.bench.draws import Draws

pytest.importorskip("rich")
pytestmark = pytest.mark.usefixtures("without_x64")

ONE = ["--op", "affine", "--dtype", "float32", "--repeats", "2"]


def row_of(op, title, **changes):
    row = {
        "op": op, "family": "elementwise", "pass": title, "dtype": "float32", "size": "small", "case": "[8]",
        "variant": "", "even": None, "native_ms": 2.0, "quartiles_ms": [1.9, 2.2], "xla_ms": 3.0,
        "torch_ms": None, "floor_ms": 1.0, "floor_bytes": 64, "bytes": 64, "temporary_bytes": 0, "xla_temporary_bytes": 0,
        "note": None,
    }  # fmt: skip
    return row | changes


def file_of(path, *rows):
    about = results.about(jax.devices("cpu")[0], "cpu", 1e10, 3, with_torch=False)
    results.write(path, about | {"rows": list(rows)})
    return path


# ---------------------------------------------------------------------------------------------------------------------
# The command


def test_one_op_end_to_end(platform, tmp_path, capsys):
    times = tmp_path / "times.json"
    assert run(platform, *ONE, "--json", times) == 0
    assert "affine" in capsys.readouterr().out
    found = results.read(times)
    about = {
        "device",
        "platform",
        "platform_version",
        "cpus",
        "processor",
        "jax",
        "jaxlib",
        "baracuda_jax",
        "torch",
        "date",
    }
    assert set(found) == about | {"built_for", "copy_bytes_per_s", "repeats", "rows"}
    assert [row["pass"] for row in found["rows"]] == list(PASSES)
    for row in found["rows"]:
        assert set(row) == set(row_of("affine", ""))
        assert all(row[name] > 0 for name in ("native_ms", "xla_ms", "floor_ms")), row
        assert row["torch_ms"] is None
        low, high = row["quartiles_ms"]
        assert low <= row["native_ms"] <= high


def test_the_processor_is_named(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3.0: GHz\nprocessor\t: 1\nmodel name\t: Another\n")
    assert results.processor(file) == "Some CPU @ 3.0: GHz"


def test_a_plot_of_written_results_is_svg(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [row_of("affine", title, dtype=dtype) for title in PASSES for dtype in ("float32", "bfloat16")]
    times = file_of(tmp_path / "times.json", *rows, row_of("repeat", PASSES[0], family="shape", xla_ms=None))
    assert run("cpu", "--from", times, "--plot", tmp_path / "times.svg") == 0
    text = (tmp_path / "times.svg").read_text()
    assert text.startswith("<?xml") and "<svg" in text and text.rstrip().endswith("</svg>")


def test_a_plot_has_a_style_of_its_own(tmp_path):
    """Whatever style was set before, as by the figures of the pages."""
    matplotlib = pytest.importorskip("matplotlib")
    times = file_of(tmp_path / "times.json", row_of("affine", PASSES[0]))
    drawn = []
    for style in ({}, {"font.size": 30, "axes.facecolor": "red"}):
        with matplotlib.rc_context(style):
            assert run("cpu", "--from", times, "--plot", tmp_path / "times.svg") == 0
        drawn.append((tmp_path / "times.svg").read_text())
    assert drawn[0] == drawn[1]


def test_an_unknown_op_is_named(capsys):
    assert run("cpu", "--op", "affin") == 1
    assert "No such op: affin" in capsys.readouterr().err


def test_a_case_is_chosen_by_a_part_of_its_name(capsys):
    found = kinds.chosen("large", ("qr", "svd"), case="32, 32]")
    assert [str(b) for b in found] == ["qr float32 [4096, 32, 32]", "svd float32 [4096, 32, 32]"]
    assert run("cpu", *ONE, "--case", "[0]") == 1
    assert "No case of these ops contains [0]" in capsys.readouterr().err


def test_what_cannot_be_done_is_said(capsys, tmp_path):
    assert run("cpu", "--from", tmp_path / "times.json", "--op", "affine") == 1
    assert "--from measures nothing" in capsys.readouterr().err
    if not any(device.platform == "gpu" for device in jax.devices()):
        assert run("cuda", *ONE) == 1
        assert "This machine has no device of platform cuda" in capsys.readouterr().err


def test_against_something_else(capsys):
    with pytest.raises(SystemExit):
        run("cpu", "--against", "xla,numpy")
    assert "expected xla, torch, or xla,torch, got xla,numpy" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------------------
# What is refused


def wrong(monkeypatch, change):
    """Native results are changed before they leave."""
    true = baracuda_jax.affine

    def affine(x, scale, shift, implementation):
        y = true(x, scale, shift, implementation=implementation)
        return change(y) if implementation == "native" else y

    monkeypatch.setattr(baracuda_jax, "affine", affine)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda y: y.at[3, 5].add(0.01), "result 0 is wrong: error"),
        (lambda y: y.at[3, 5].set(jnp.nan), "result 0 is wrong: error inf"),
    ],
    ids=["an element", "a NaN"],
)
def test_a_wrong_result_has_no_time(monkeypatch, capsys, platform, tmp_path, change, message):
    wrong(monkeypatch, change)
    times = tmp_path / "times.json"
    assert run(platform, *ONE, "--json", times) == 1
    out = capsys.readouterr().out
    assert f"affine float32 [1024, 1024]: WrongError: {message}" in out
    assert results.read(times)["rows"] == []


def test_a_program_without_our_kernel_has_no_time(monkeypatch, capsys, platform, tmp_path):
    monkeypatch.setattr(baracuda_jax, "affine", lambda x, scale, shift, implementation: scale * x + shift)
    assert run(platform, *ONE, "--json", tmp_path / "times.json") == 1
    assert "the native program calls no kernel of baracuda_jax" in capsys.readouterr().out
    assert results.read(tmp_path / "times.json")["rows"] == []


# ---------------------------------------------------------------------------------------------------------------------
# Both passes in two steps


def test_both_passes_are_two_kernels(platform):
    program = programs.forward_and_backward(lambda x: jax.nn.leaky_relu(x, 0.1), 1)
    x = jax.device_put(sent.ones((256, 256)), jax.devices(platform)[0])
    lowered = program.lower(x, x)
    assert "optimization_barrier" in lowered.as_text()
    assert not programs.in_one_kernel(lowered.compile().as_text())
    assert not programs.in_one_kernel(programs.forward(jax.nn.relu, 1).lower(x, x).compile().as_text())


@pytest.mark.parametrize(
    "results, is_one",
    [("%y, %dx", True), ("%y, %other", False), ("%copied, %dx", True), ("%x, %dx", False)],
)
def test_a_fusion_of_both_passes_is_found(results, is_one):
    hlo = f"""HloModule jit_program

%fused (p: f32[8]) -> (f32[8], f32[8]) {{
  ROOT %tuple.1 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%p, %p)
}}

ENTRY %main (x: f32[8]) -> (f32[8], f32[8]) {{
  %x = f32[8]{{0}} parameter(0), metadata={{op_name="x"}}
  %both = (f32[8]{{0}}, f32[8]{{0}}) fusion(%x), kind=kLoop, calls=%fused
  %other = f32[8]{{0}} fusion(%x), kind=kLoop, calls=%fused.1
  %y = f32[8]{{0}} get-tuple-element(%both), index=0
  %copied = f32[8]{{0}} copy(%y)
  %dx = f32[8]{{0}} get-tuple-element(%both), index=1
  ROOT %tuple = (f32[8]{{0}}, f32[8]{{0}}) tuple({results})
}}
"""
    assert programs.in_one_kernel(hlo) is is_one


# ---------------------------------------------------------------------------------------------------------------------
# Bandwidth bounds


def bound(op, variant, title, operands, y):
    """Of the benchmark, but on arrays of these types."""
    chosen = [b for b in cases.benchmarks("small") if (b.op, b.variant, b.dtype) == (op, variant, "float32")]
    types = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in operands]
    return bounds.BY_PASS[title](chosen[0], types, jax.ShapeDtypeStruct(*y))


def test_kernels_that_overlap_count_once():
    """A second that waits from within the first, a third inside both, a fourth after a gap."""
    kernels = [(0, 5000), (1000, 6000), (2000, 1000), (9000, 500)]
    assert times.busy_ns(kernels) == 7000 + 500 + 2 * times.GAP_NS


def test_bounds_by_hand():
    forward, both = PASSES
    x, ids = ((100, 10), jnp.float32), ((100,), jnp.int32)
    y = (5, 10), jnp.float32
    assert bound("leaky_relu", "", forward, [x], x) == 4000 + 4000
    assert bound("leaky_relu", "", both, [x], x) == (4000 + 4000) + (4000 + 4000) + 4000  # x again
    assert bound("affine", "", both, [x], x) == (4000 + 4000) + (4000 + 4000)
    assert bound("lerp", "", both, [x, x], x) == (4000 + 4000 + 4000) + (4000 + 4000 + 4000)
    assert bound("cumsum", "", both, [x], x) == (4000 + 4000) + (4000 + 4000)
    assert bound("cumprod", "", both, [x], x) == (4000 + 4000) + (4000 + 4000) + (4000 + 4000)
    linear = bound("linear_scan", "", both, [x, x], x)
    assert linear == (4000 + 4000 + 4000) + (4000 + 4000 + 4000) + (4000 + 4000)
    assert bound("segment_sum", "sorted", forward, [x, ids], y) == 4000 + 400 + 200
    assert bound("segment_sum", "sorted", both, [x, ids], y) == (4000 + 400 + 200) + (200 + 4000) + 400
    assert bound("segment_prod", "sorted", both, [x, ids], y) == (4000 + 400 + 200) + (200 + 4000) + (4000 + 400 + 200)


def test_the_bound_of_a_maximum_takes_the_smaller_way():
    """The residuals `arg`, written and read, are int32 of the result's shape."""
    both = PASSES[1]
    by_variant = {b.variant: b for b in cases.benchmarks("small") if (b.op, b.dtype) == ("segment_max", "bfloat16")}

    def again(benchmark):
        (args,) = benchmark.saved
        x = jax.ShapeDtypeStruct((131072, 64), jnp.bfloat16)
        ids, y = jax.ShapeDtypeStruct((131072,), jnp.int32), jax.ShapeDtypeStruct(args.shape, jnp.bfloat16)
        smallest = bounds.BY_PASS[both](benchmark, [x, ids], y)
        return smallest - bounds.forward(benchmark, [x, ids], y) - bounds.size([y, x])

    assert again(by_variant["sorted"]) == 2 * 4 * 8192 * 64
    assert again(by_variant["sorted, one row a segment"]) == 2 * 131072 * 64 * 2 + 4 * 131072


# ---------------------------------------------------------------------------------------------------------------------
# The cases


@pytest.mark.parametrize("size", SIZES)
def test_skewed_cases_have_an_even_one(size):
    every = cases.benchmarks(size)
    names = [str(b) for b in every]
    assert len(set(names)) == len(names)
    skewed = [b for b in every if b.even]
    assert {(b.op, b.dtype) for b in skewed} == {
        (op, dtype)
        for op in ("segment_sum", "segment_max", "aggregate_sum", "embedding")
        for dtype in ("float32", "bfloat16")
    }
    for b in skewed:
        assert b.passes == PASSES[1:] and f"{b.op} {b.dtype} {b.even}" in names


def test_ids_are_skewed_as_named():
    chosen = {b.variant: b for b in cases.benchmarks("small") if (b.op, b.dtype) == ("segment_sum", "float32")}
    ids = {variant: jax.jit(lambda b=b: b.draw(Draws(0, "arrays"))[1])() for variant, b in chosen.items()}  # no data
    counts = {variant: np.bincount(x, minlength=8192) for variant, x in ids.items()}
    assert counts["sorted"].max() < 60
    assert counts["sorted, all rows in one"].max() == 131072
    assert counts["sorted, one row a segment"].tolist() == [1] * 131072
    largest = np.sort(counts["unsorted, power law"])[::-1]
    k = np.array([1, 2, 4, 8])
    np.testing.assert_allclose(largest[k - 1] / largest[0], np.log2(1 + 1 / k), rtol=0.1)  # about 1 / k


@pytest.mark.parametrize("name", ["lerp", "eq", "bitwise_not", "concat"])
def test_a_program_between_others_has_the_op(name):
    """Of floats, truth values and integers."""
    benchmark = next(b for b in cases.benchmarks("tiny") if b.op == name)
    drawn = jax.jit(benchmark.drawn)(0)
    function = lambda *arrays: benchmark.function(*arrays, implementation="native")
    ((_, *more),) = between.sets(benchmark, [drawn])
    y, want, gate = between.program(function)(*more), function(*drawn[1:]), more[-1]
    np.testing.assert_array_equal(y, want & gate if want.dtype == bool else want * gate)


def test_what_a_profiler_looks_at(monkeypatch, capsys):
    """Of ops with kernels and without."""
    file = pathlib.Path(__file__).parent.parent / "benchmarks/profiled.py"
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(
        sys, "argv", [str(file), "affine", "selective_state_update", "--size", "tiny", "--dtype", "float32"]
    )
    runpy.run_path(str(file), run_name="__main__")
    assert {line.split()[0] for line in capsys.readouterr().out.splitlines()} == {"affine", "selective_state_update"}
