"""Plans: bad input, preferences, and the automatic choice."""

import collections
import contextlib
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from plans import IDS, IMAGE, X, calls, example_of, plan_of

import baracuda_jax as bj
from baracuda_jax import PlanPreference
from baracuda_jax._core import choice, measurements
from baracuda_jax._core.op import OPS
from baracuda_jax._core.regime import (
    by_bins,
    by_boxes,
    by_coordinates,
    by_entries,
    by_matrices,
    by_regions,
    by_rows,
    by_samples,
    by_size,
    by_taps,
    by_windows,
)
from baracuda_jax.packed._multiply import by_count

# ---------------------------------------------------------------------------------------------------------------------
# What is wrong is said


@pytest.mark.parametrize(
    "error, match, args",
    [
        (TypeError, "expected 2 arrays, data, segment_ids, got 1", (X,)),
        (ValueError, r"data must have the planned shape \(5, 3\), got \(3, 5\)", (X.T, IDS)),
        (TypeError, "data must have the planned dtype float32, got bfloat16", (X.astype(jnp.bfloat16), IDS)),
        (TypeError, "segment_ids must be an array, got list", (X, [0, 1, 2, 0, 1])),
        (ValueError, r"segment_ids must have the planned shape \(5,\), got \(4,\)", (X, IDS[:4])),
    ],
)
def test_can_implement(error, match, args):
    plan = bj.plan("segment_max", X, IDS, 3)
    assert plan.can_implement(X, IDS) is None
    assert plan.can_implement(jax.ShapeDtypeStruct(X.shape, X.dtype), np.asarray(IDS)) is None
    for check in (plan.can_implement, plan, jax.jit(lambda *_: plan(*args))):
        with pytest.raises(error, match=f"plan of segment_max: {match}"):
            check(*args)


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (ValueError, "plan: op must be a public function or its name, one of .*lp_pool1d.*, got segment_median", ("segment_median",), {}),
        (ValueError, "plan: op must be.*got sin", (jnp.sin, X), {}),
        (TypeError, "plan of segment_max: missing a required argument: 'segment_ids'", ("segment_max", X), {}),
        (TypeError, "plan of segment_max: got an unexpected keyword argument 'rows'", ("segment_max", X, IDS), {"rows": 3}),
        (ValueError, "segment_max: num_segments must be given", ("segment_max", X, IDS), {}),
        (TypeError, "plan of lp_pool2d: window must be an array or a hashable value", ("lp_pool2d", IMAGE, 3, {2}), {}),
        (ValueError, "plan: platform must be one of 'cpu', 'cuda', 'rocm', 'tpu', got 'gpu'", ("segment_max", X, IDS, 3), {"platform": "gpu"}),
        (ValueError, "segment_max: implementation='native', but there is no kernel for platform tpu", ("segment_max", X, IDS, 3), {"platform": "tpu", "implementation": "native"}),
    ],
)  # fmt: skip
def test_what_cannot_be_planned(error, match, args, kwargs):
    with pytest.raises(error, match=match):
        bj.plan(*args, **kwargs)


# ---------------------------------------------------------------------------------------------------------------------
# Preferences


@pytest.mark.parametrize(
    "error, match, fields",
    [
        (ValueError, "PlanPreference: backend must be one of.*got 'cuda'", {"backend": "cuda"}),
        (TypeError, "PlanPreference: deterministic must be True or False, got 1", {"deterministic": 1}),
        (ValueError, "PlanPreference: max_workspace_bytes must be at least 0, got -1", {"max_workspace_bytes": -1}),
        (TypeError, "PlanPreference: max_workspace_bytes must be an integer, got 1.5", {"max_workspace_bytes": 1.5}),
    ],
)
def test_preferences_are_checked(error, match, fields):
    with pytest.raises(error, match=match):
        PlanPreference(**fields)


def test_a_preference_is_a_string_or_an_object():
    native = lambda **kw: bool(calls(jax.jit(lambda x: bj.segment_sum(x, IDS, 3, **kw)).lower(X).as_text()))
    assert native(implementation=PlanPreference()) and native(implementation=PlanPreference("native"))
    assert not native(implementation=PlanPreference("xla"))
    with bj.prefer(PlanPreference("xla")):
        assert not native() and native(implementation="native")
        assert native(implementation=PlanPreference(deterministic=False))  # taken whole: automatic


def test_a_workspace_that_is_too_large():
    many = 2**15 + 1  # segments, for which rows have an index
    need = bj.plan("segment_sum", X, IDS, many).workspace_bytes
    for limit, backend in ((need, "native"), (need - 1, "xla")):
        implementation = PlanPreference(max_workspace_bytes=limit)
        plan = bj.plan("segment_sum", X, IDS, many, implementation=implementation)
        text = jax.jit(lambda x: bj.segment_sum(x, IDS, many, implementation=implementation)).lower(X).as_text()
        assert plan.sku.backend == backend and plan.workspace_bytes <= limit
        assert calls(text) == set(plan.targets)
    implementation = PlanPreference("native", max_workspace_bytes=need - 1)
    message = (
        f"segment_sum: implementation has backend='native' and max_workspace_bytes={need - 1}, but.* needs {need} bytes"
    )
    with pytest.raises(ValueError, match=message):
        bj.plan("segment_sum", X, IDS, many, implementation=implementation)
    with pytest.raises(ValueError, match=message):
        bj.segment_sum(X, IDS, many, implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# The automatic choice


@pytest.mark.measured
def test_the_table_is_whole():
    rows = json.loads(measurements.PATH.read_text())["rows"]
    keys = [(r["op"], r["pass"], r["platform"], r["dtype"]) for r in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        op = OPS[row["op"]]
        assert row["pass"] in ("forward", "backward")
        # The results of some have another dtype.
        assert row["dtype"] in op.dtypes or op.name.endswith("dequantize") or op.name == "random_bernoulli"
        assert row["device"] and row["jax"] and row["date"] and row["cases"]
        by_segments = {"length", "inner", "aligned", "sorted"}
        names = {
            by_size: set(),
            by_rows: by_segments,
            by_entries: by_segments,
            **{rule: {"length", "inner"} for rule in (by_windows, by_regions, by_bins)},
            **{rule: {"length", "inner", "taps"} for rule in (by_samples, by_coordinates)},
            by_taps: {"length", "inner", "growth"},
            by_boxes: {"length"},
            **{
                rule: {"length", "inner"}
                for rule in (by_count, OPS["gguf_mmvq_batched"].regime, OPS["int4_awq_gemm"].regime)
            },
            by_matrices: {"length", "matrices", "tiny"},
            OPS["grouped_gemm"].regime: {"length", "matrices"},
            OPS["depthwise_conv2d"].regime: {"length", "inner"},
            OPS["flash_sdpa_varlen"].regime: {"length", "inner", "padding", "tensor cores"},
            OPS["causal_conv1d"].regime: {"length", "inner", "channels last"},
            **{OPS[name].regime: {"length", "inner", "states"} for name in ("selective_scan", "ssd_chunk_scan")},
            OPS["cross_entropy_terms"].regime: {"length", "inner", "aligned", "softcap"},
        }.get(op.regime, {"length", "inner", "aligned"})
        for case in row["cases"]:
            assert set(case["regime"]) == names | {"bytes"} and case["native_ms"] > 0 and case["xla_ms"] > 0


# Calls of less than 0.1 ms on a CPU that others use, whose times are noise: the gradient of [578, 111] took less than half.
NOISE = {
    ("min", "forward", "cpu", "float32", "[64, 1024], axis 1"),
    ("min", "backward", "cpu", "float32", "[589, 111], axis 1"),
}
# Sizes on the other side of a step that no regime knows: rows of images that are not aligned, next to [64, 64]; more than
# 16384 rows, next to as many.
STEPS = {
    ("adaptive_max_pool2d", "forward", "cuda", "float32", "[1, 8, 107, 107] to [1, 1]"),
    ("adaptive_avg_pool3d", "forward", "cuda", "float32", "[1, 1, 8, 22, 22] to [7, 7, 7]"),
    ("batch_paged_decode", "forward", "cuda", "float32", "[1, 32, 64] of 795, 8 heads"),
    ("max_pool2d", "backward", "cuda", "bfloat16", "[1, 8, 65, 65], window 3, stride 2, padding 1"),
    ("max_pool3d", "backward", "cuda", "bfloat16", "[1, 1, 8, 64, 64], window 3, stride 2, padding 1"),
    ("random_normal", "forward", "cuda", "bfloat16", "[640876]"),
    ("random_uniform", "forward", "cuda", "bfloat16", "[640876]"),
}


@pytest.mark.measured
def test_what_was_measured_is_chosen_well():
    """Of the cases of the table, those whose regime no other has. The plane through neighbors smooths what is noise."""
    costs = {}
    for row in json.loads(measurements.PATH.read_text())["rows"]:
        key = row["op"], row["pass"], row["platform"], row["dtype"]
        same = collections.Counter(str(case["regime"]) for case in row["cases"])
        for case in row["cases"]:
            if same[str(case["regime"])] == 1:
                backend = measurements.decision(measurements.measured(*key, case["regime"])[0], OPS[row["op"]].default)
                faster = min(case["native_ms"], case["xla_ms"])
                costs[(*key, case["case"])] = case[f"{backend}_ms"] / faster
    assert {name for name, cost in costs.items() if cost > 1.3} == NOISE | STEPS
    assert sum(cost <= 1.05 for cost in costs.values()) >= 0.99 * len(costs)


def test_the_default_stays_unless_the_other_is_faster():
    assert [measurements.decision(1 / xla, "native") for xla in (0.9, 0.97, 1.0, 1.1)] == ["xla", *["native"] * 3]
    assert [measurements.decision(1 / xla, "xla") for xla in (0.9, 1.0, 1.03, 1.1)] == [*["xla"] * 3, "native"]


@pytest.mark.measured
def test_the_table_chooses_where_nobody_asks():
    """pad in float32: the kernel was no faster than XLA on CUDA, but on CPU."""
    width = ((0, 0),) * (len(IMAGE.shape) - 1) + ((2, 3),)
    program = jax.jit(lambda x: bj.pad(x, width))
    gradient = jax.jit(jax.grad(lambda x: (bj.pad(x, width) ** 2).sum()))
    for platform, is_native in (("cuda", False), ("cpu", True)):
        plan = bj.plan("pad", IMAGE, width, platform=platform)
        assert plan.why.startswith("measured: ") and plan.why.endswith("float32, forward")
        assert (plan.sku.backend == "native") == (plan.backward.sku.backend == "native") == is_native
        for fun in (program, gradient):
            assert bool(calls(fun.trace(IMAGE).lower(lowering_platforms=(platform,)).as_text())) == is_native
    assert bj.plan("pad", IMAGE, width, platform="cuda", implementation="native").sku.backend == "native"
    with bj.prefer("native"):
        assert bj.plan("pad", IMAGE, width, platform="cuda").sku.backend == "native"


@pytest.mark.measured
@pytest.mark.parametrize(
    "dtype, d, is_native", [("bfloat16", 128, True), ("bfloat16", 100, False), ("float32", 128, False)]
)
def test_times_of_tensor_cores_say_nothing_of_kernels_without(dtype, d, is_native):
    x, starts = jax.ShapeDtypeStruct((32768, 16, d), dtype), jax.ShapeDtypeStruct((5,), "int32")
    more = dict(is_causal=True, platform="cuda")
    plan = bj.plan("flash_sdpa_varlen", x, x, x, starts, starts, 8192, 8192, **more)
    assert (plan.backward.sku.backend == "native") == is_native


@pytest.mark.measured
def test_a_plan_and_a_call_choose_alike(op):
    example = example_of(op)
    for platform in ("cpu", "cuda", *(() if op.name == "eig" else ("tpu",))):  # JAX has eig on CPUs and GPUs alone
        plan = plan_of(example, platform=platform)
        call = jax.jit(lambda *args: example.call(*args, implementation=None))
        text = call.trace(*example.args).lower(lowering_platforms=(platform,)).as_text()
        assert calls(text) == set(plan.targets)
        assert bool(plan.targets) == any(call.backend == "native" for call in plan.calls)
        if len(plan.calls) == 1:
            assert (plan.sku.backend == "native") == (plan.calls[0].backend == "native")


@pytest.mark.measured
def test_one_program_for_platforms_that_disagree_is_native():
    text = jax.jit(lambda x: bj.lp_pool2d(x, 3, 3, 2)).trace(IMAGE).lower(lowering_platforms=("cpu", "cuda")).as_text()
    assert calls(text) == {"baracuda.lp_pool"}


def case_of(ratio, **regime):
    """A case in which the kernel takes so many times as long as XLA's program."""
    return {"case": str(regime), "regime": {"bytes": 2**16} | regime, "native_ms": ratio, "xla_ms": 1.0}


def _with_rows(monkeypatch, rows, op="segment_sum", pass_="forward", platform="cuda"):
    monkeypatch.setattr(measurements, "table", lambda: {(op, pass_, platform): measurements.Cases(rows)})


ROWS = dict(length=5, inner=3, sorted=False)


def ratio_of(dtype="float32", **regime):
    return measurements.measured("segment_sum", "forward", "cuda", dtype, {"bytes": 2**16} | regime)[0]


def test_a_call_is_between_cases_near_it(monkeypatch):
    _with_rows(monkeypatch, {"float32": [case_of(0.25, length=16), case_of(4.0, length=2**16)]})
    assert ratio_of(length=16) == pytest.approx(0.25, rel=0.02)
    assert ratio_of(length=2**16) == pytest.approx(4, rel=0.02)
    assert ratio_of(length=2**10) == pytest.approx(1.0)  # half-way
    assert all(a < b for a, b in itertools.pairwise(ratio_of(length=2**k) for k in range(4, 17)))


def test_a_size_beyond_all_is_the_nearest(monkeypatch):
    small, large = (case_of(ratio, length=2**k, bytes=2**k) for ratio, k in ((4.0, 8), (0.5, 20)))
    _with_rows(monkeypatch, {"float32": [small, small, large]})
    assert ratio_of(length=2**30, bytes=2**30) == pytest.approx(0.5, rel=0.02)
    assert ratio_of(length=1, bytes=1) == pytest.approx(4, rel=0.02)


def test_a_flag_is_far(monkeypatch):
    _with_rows(monkeypatch, {"float32": [case_of(0.5, sorted=True), case_of(2.0, sorted=False)]})
    assert ratio_of(sorted=True, bytes=2**20) == pytest.approx(0.5, rel=0.05)
    assert ratio_of(sorted=False, bytes=2**20) == pytest.approx(2.0, rel=0.05)


def test_another_dtype_is_as_far_as_its_width(monkeypatch):
    _with_rows(monkeypatch, {"float32": [case_of(0.5)], "bfloat16": [case_of(2.0)]})
    ratios = [ratio_of(dtype) for dtype in ("float32", "float64", "float16", "bfloat16")]
    assert ratios == sorted(ratios) and ratios[1] < 0.8 and ratios[2] > 1.3
    assert (ratios[0], ratios[3]) == pytest.approx((0.5, 2.0), rel=0.02)
    assert measurements.measured("segment_sum", "backward", "cuda", "float32", {"bytes": 1}) is None


def test_an_export_for_any_size_has_the_largest(monkeypatch):
    small, large = case_of(0.5, bytes=2**10), case_of(2.0, bytes=2**30)
    _with_rows(monkeypatch, {"float32": [small, large]}, op="flip")
    assert measurements.measured("flip", "forward", "cuda", "float32", None)[0] == pytest.approx(2.0, rel=0.02)
    (rows,) = jax.export.symbolic_shape("rows")
    export = jax.export.export(jax.jit(bj.flip), platforms=("cuda",), disabled_checks=bj.export_checks)
    assert not calls(export(jax.ShapeDtypeStruct((rows, 3), jnp.float32)).mlir_module())
    assert calls(export(jax.ShapeDtypeStruct((8, 3), jnp.float32)).mlir_module())


@pytest.mark.parametrize("fun, regime", [
    (lambda x: bj.sum(x, axis=1), {"bytes": 4 * 2 * 5 * 3, "length": 5, "inner": 3, "aligned": 4}),
    (lambda x: bj.sum(x, axis=(0, 2)), {"bytes": 4 * 2 * 5 * 3, "length": 6, "inner": 1, "aligned": 8}),
    (lambda x: bj.cumsum(x, -2), {"bytes": 4 * 2 * 5 * 3, "length": 5, "inner": 3, "aligned": 4}),
    (lambda x: bj.median(x, -1), {"bytes": 4 * 2 * 5 * 3, "length": 3, "inner": 1, "aligned": 4}),
    (lambda x: bj.flip(x), {"bytes": 4 * 2 * 5 * 3}),
    (lambda x: bj.segment_sum(x, sent.zeros(2, int), 4), {"bytes": 4 * 4 * 5 * 3, "length": 2, "inner": 15, "aligned": 4, "sorted": False}),
])  # fmt: skip
def test_the_regime_of_a_call_and_of_its_derivative(fun, regime):
    x = jax.ShapeDtypeStruct((2, 5, 3), jnp.float32)
    with plans_of_calls() as found:
        jax.jit(jax.grad(lambda x: fun(x).sum())).lower(x)
    assert found
    for call in found:
        known = {name: n for name, n in call.regime.items() if name in ("inner", "sorted")}
        assert known == {name: n for name, n in regime.items() if name in known}
    with plans_of_calls() as found:
        jax.jit(fun).lower(x)
    assert regime in [call.regime for call in found]


@contextlib.contextmanager
def plans_of_calls():
    """Yields a list, which has the calls that a backend is chosen for meanwhile."""
    found, choose = [], choice.choose
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "choose", lambda call, *rest: (found.append(call), choose(call, *rest))[1])
        yield found


def test_the_users_own_table_goes_before_the_packages(monkeypatch, tmp_path):
    monkeypatch.setenv(measurements.FOLDER, str(tmp_path))
    x = sent.ones((4, 3))
    for ratio, backend in ((0.5, "native"), (2.0, "xla")):
        row = {"op": "flip", "pass": "forward", "platform": "cpu", "dtype": "float32", "cases": [case_of(ratio)]}
        measurements.user_table(jax.devices("cpu")[0].device_kind).write_text(json.dumps({"rows": [row]}))
        measurements.tuned.cache_clear()
        plan = bj.plan("flip", x, platform="cpu")
        assert plan.backend == backend and plan.why.startswith(f"measured: {ratio:.2f} of XLA's time near")
    measurements.tuned.cache_clear()


def test_determinism_goes_before_speed(monkeypatch):
    _with_rows(monkeypatch, {"float32": [case_of(2.0, **ROWS)]})
    backend = lambda x, **fields: (
        bj.plan("segment_sum", x, IDS, 3, platform="cuda", implementation=PlanPreference(**fields)).sku.backend
    )
    assert backend(X) == "native" and backend(X, deterministic=False) == "xla"
    assert backend(X.astype(jnp.int32)) == "xla"  # whose sum has no roundings
    assert bj.plan("segment_sum", X, IDS, 3, platform="cuda").why == "XLA's program is not deterministic"


def test_a_derivative_has_one_backend_in_both_passes(monkeypatch):
    """The row of the backward pass is that of the op with its derivative."""
    _with_rows(monkeypatch, {"float32": [case_of(2.0, **ROWS)]}, "segment_sum", "backward", "cpu")
    plan = bj.plan("segment_sum", X, IDS, 3, platform="cpu")
    assert (plan.sku.backend, plan.backward.sku.backend) == ("native", "xla")
    loss = lambda x: jnp.sin(bj.segment_sum(x, IDS, 3)).sum()
    lowered = lambda fun: jax.jit(fun).trace(X).lower(lowering_platforms=("cpu",)).as_text()
    assert calls(lowered(loss)) and not calls(lowered(jax.grad(loss)))
