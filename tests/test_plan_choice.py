"""Plans: bad input, preferences, and the automatic choice."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plans import IDS, IMAGE, X, calls, example_of, plan_of

import baracuda_jax as bj
from baracuda_jax import PlanPreference
from baracuda_jax._core import choice
from baracuda_jax._core.op import OPS

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
    need = bj.plan("segment_sum", X, IDS, 3).workspace_bytes
    for limit, backend in ((need, "native"), (need - 1, "xla")):
        implementation = PlanPreference(max_workspace_bytes=limit)
        plan = bj.plan("segment_sum", X, IDS, 3, implementation=implementation)
        text = jax.jit(lambda x: bj.segment_sum(x, IDS, 3, implementation=implementation)).lower(X).as_text()
        assert plan.sku.backend == backend and plan.workspace_bytes <= limit
        assert calls(text) == set(plan.targets)
    implementation = PlanPreference("native", max_workspace_bytes=need - 1)
    message = (
        f"segment_sum: implementation has backend='native' and max_workspace_bytes={need - 1}, but.* needs {need} bytes"
    )
    with pytest.raises(ValueError, match=message):
        bj.plan("segment_sum", X, IDS, 3, implementation=implementation)
    with pytest.raises(ValueError, match=message):
        bj.segment_sum(X, IDS, 3, implementation=implementation)


# ---------------------------------------------------------------------------------------------------------------------
# The automatic choice


@pytest.mark.measured
def test_the_rows_follow_from_their_measurements():
    rows = json.loads(choice.PATH.read_text())["rows"]
    keys = [(r["op"], r["pass"], r["platform"], r["dtype"], r["size"]) for r in rows]
    assert len(set(keys)) == len(keys)
    for row in rows:
        assert row["op"] in OPS and row["pass"] in ("forward", "backward") and row["size"] in choice.SIZES
        assert row["dtype"] in OPS[row["op"]].dtypes and row["device"] and row["jax"] and row["date"]
        total = lambda name: sum(case[name] for case in row["cases"])
        assert row["backend"] == choice.verdict(total("native_ms"), total("xla_ms"), OPS[row["op"]].default)


def test_the_default_stays_unless_the_other_is_faster():
    assert [choice.verdict(1.0, xla, "native") for xla in (0.9, 0.97, 1.0, 1.1)] == [
        "xla",
        "native",
        "native",
        "native",
    ]
    assert [choice.verdict(1.0, xla, "xla") for xla in (0.9, 1.0, 1.03, 1.1)] == ["xla", "xla", "xla", "native"]


@pytest.mark.measured
def test_the_table_chooses_where_nobody_asks():
    """pad in float32: the kernel was no faster than XLA on CUDA, but on CPU."""
    width = ((0, 0),) * (len(IMAGE.shape) - 1) + ((2, 3),)
    program = jax.jit(lambda x: bj.pad(x, width))
    gradient = jax.jit(jax.grad(lambda x: (bj.pad(x, width) ** 2).sum()))
    for platform, size, is_native in (("cuda", "large", False), ("cpu", "medium", True)):
        plan = bj.plan("pad", IMAGE, width, platform=platform)
        assert plan.why == f"measured: forward float32 {size}"
        assert (plan.sku.backend == "native") == (plan.backward.sku.backend == "native") == is_native
        for fun in (program, gradient):
            assert bool(calls(fun.trace(IMAGE).lower(lowering_platforms=(platform,)).as_text())) == is_native
    assert bj.plan("pad", IMAGE, width, platform="cuda", implementation="native").sku.backend == "native"
    assert bj.plan("segment_max", X, IDS, 3, platform="cuda").why == "measured: forward float32 large"
    with bj.prefer("native"):
        assert bj.plan("pad", IMAGE, width, platform="cuda").sku.backend == "native"


@pytest.mark.measured
def test_a_plan_and_a_call_choose_alike(op):
    example = example_of(op)
    for platform in ("cpu", "cuda", "tpu"):
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


def _with_rows(monkeypatch, rows, op="segment_sum", pass_="forward", platform="cuda"):
    monkeypatch.setattr(choice, "table", lambda: {(op, pass_, platform): rows})


def test_a_call_without_a_row_has_its_nearest(monkeypatch):
    rows = {("float32", "tiny"): "native", ("float32", "large"): "xla", ("bfloat16", "small"): "native"}
    _with_rows(monkeypatch, rows)
    nearest = lambda dtype, size: choice.measured("segment_sum", "forward", "cuda", dtype, size)
    assert nearest("float32", "small") == ("native", "forward float32 tiny")
    assert nearest("float32", "medium") == ("xla", "forward float32 large")
    assert nearest("float16", "large") == ("native", "forward bfloat16 small")
    assert nearest("float64", "large") == ("xla", "forward float32 large")
    assert choice.measured("segment_sum", "backward", "cuda", "float32", "large") is None
    assert [choice.size_class(n) for n in (0, 2**16, 2**20, 2**26)] == ["tiny", "small", "medium", "large"]


def test_determinism_goes_before_speed(monkeypatch):
    _with_rows(monkeypatch, {("float32", "tiny"): "xla"})
    backend = lambda x, **fields: (
        bj.plan("segment_sum", x, IDS, 3, platform="cuda", implementation=PlanPreference(**fields)).sku.backend
    )
    assert backend(X) == "native" and backend(X, deterministic=False) == "xla"
    assert backend(X.astype(jnp.int32)) == "xla"  # whose sum has no roundings
    assert bj.plan("segment_sum", X, IDS, 3, platform="cuda").why == "XLA's program is not deterministic"


def test_a_derivative_has_one_backend_in_both_passes(monkeypatch):
    """The row of the backward pass is that of the op with its derivative."""
    _with_rows(monkeypatch, {("float32", "tiny"): "xla"}, "segment_sum", "backward", "cpu")
    plan = bj.plan("segment_sum", X, IDS, 3, platform="cpu")
    assert (plan.sku.backend, plan.backward.sku.backend) == ("native", "xla")
    loss = lambda x: jnp.sin(bj.segment_sum(x, IDS, 3)).sum()
    lowered = lambda fun: jax.jit(fun).trace(X).lower(lowering_platforms=("cpu",)).as_text()
    assert calls(lowered(loss)) and not calls(lowered(jax.grad(loss)))
