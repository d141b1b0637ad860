"""Targets compared with what was measured."""

import pathlib

from baracuda_jax.bench import cases, targets
from baracuda_jax.bench.benchmark import DTYPES, PASSES

FILE = pathlib.Path(__file__).parent.parent / "benchmarks/targets.csv"


def row_of(op, **changes):
    row = {
        "op": op, "pass": PASSES[0], "dtype": "float32", "size": "large", "case": "", "variant": "", "even": None,
        "native_ms": 2.0, "xla_ms": 6.0, "torch_ms": 10.0, "floor_ms": 1.0, "bytes": 2**28,
    }  # fmt: skip
    return row | changes


def judge(measure, bound, *rows, **changes):
    target = {
        "op": "*",
        "case": "*",
        "variant": "*",
        "pass": "*",
        "dtype": "*",
        "measure": measure,
        "bound": bound,
    } | changes
    return targets.judge(target, {"platform": "cuda", "rows": rows})


def test_the_worst_case_counts():
    rows = row_of("elu"), row_of("repeat", native_ms=3.0), row_of("lerp", variant="odd", native_ms=1.5)
    assert judge("time / bound", "at most 2.5", *rows) == (3.0, "repeat, float32, forward", False)
    assert judge("time / bound", "at most 3", *rows) == (3.0, "repeat, float32, forward", True)
    assert judge("XLA / native", "at least 2", *rows) == (2.0, "repeat, float32, forward", True)
    assert judge("PyTorch / native", "at least 4", *rows)[2] is False
    assert judge("time / bound", "at most 2", *rows, op="elu l*") == (2.0, "elu, float32, forward", True)
    assert judge("time / bound", "at most 2", *rows, variant="o*") == (1.5, "lerp, float32, forward, odd", True)


def test_a_time_counts_in_microseconds():
    rows = row_of("nms", native_ms=0.05), row_of("nms", variant="skewed", even="even", native_ms=0.07)
    assert judge("microseconds", "at most 40", *rows) == (50.0, "nms, float32, forward", False)  # of even ids alone


def test_what_was_not_measured():
    assert judge("time / bound", "at most 2", row_of("elu"), op="lerp") is None
    assert judge("PyTorch / native", "at least 2", row_of("elu", torch_ms=None)) is None
    assert judge("PyTorch / native (mean)", "at least 2", row_of("elu", torch_ms=None)) is None


def test_means_are_geometric():
    value, case, is_met = judge(
        "XLA / native (mean)",
        "at least 2.9",
        row_of("elu"),
        row_of("lerp", xla_ms=18.0),
        row_of("integer_pow", xla_ms=2.0),
    )
    assert (round(value, 9), case, is_met) == (3.0, "3 cases", True)


def test_skewed_ids_are_judged_by_even_ones():
    even = row_of("segment_sum", case="even")
    skewed = row_of("segment_sum", case="skewed", variant="all in one", even="even", native_ms=5.0, floor_ms=2.0)
    value, case, is_met = judge("skewed / even", "at most 1.2", even, skewed)
    assert (value, is_met) == (1.25, False) and "all in one" in case
    assert judge("time / bound", "at most 9", even, skewed)[0] == 2.0  # of even ids alone


def test_a_case_is_chosen_by_name():
    rows = row_of("sort", case="[8]", native_ms=3.0), row_of("sort", case="[8, 8]")
    assert judge("time / bound", "at most 2", *rows, case="?8, 8]") == (2.0, "sort, float32, forward, [8, 8]", True)


def test_gradients_are_judged_by_what_they_are_gradients_of():
    rows = row_of("sort", case="[8]"), row_of("sort", case="[8]", native_ms=5.0, **{"pass": PASSES[1]})
    name = "sort, float32, forward + backward, [8]"
    assert judge("with gradient / alone", "at most 2", *rows) == (2.5, name, False)
    assert judge("gradient / alone", "at most 2", *rows) == (1.5, name, True)
    assert judge("with gradient / alone", "at most 2", *rows[1:]) is None


def test_the_choice_is_judged_by_what_it_costs():
    rows = [row_of("elu", case="[8]", regret=regret, chosen="native") for regret in (1.0, 3.0)]
    case = "elu, float32, forward, [8], [8]: native"
    assert judge("chosen / best", "at most 1.05", *rows) == (3.0, case, False)
    assert judge("chosen / best", "at most 1.05", rows[0])[2]


def test_each_target_is_about_cases_that_are_measured():
    every = [b for size in ("small", "large") for b in cases.benchmarks(size)]
    rows = [
        row_of(
            b.op,
            dtype=b.dtype,
            variant=b.variant,
            case=b.case,
            even=b.even,
            regret=1.0,
            chosen="native",
            **{"pass": title},
        )
        for b in every
        for title in b.passes
    ]
    assert {b.dtype for b in every} == {*DTYPES, "int32", "uint32", "bool"}
    for target in targets.read(FILE):
        assert target["results"] in ("h200", "cpu", "regret_h200")
        assert targets.judge(target, {"platform": "cuda", "rows": rows}), target["what"]
