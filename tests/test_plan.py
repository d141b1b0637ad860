"""Law: what a plan reports is what runs."""

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import Example, close, has_derivative, loss_of, same_bits

import baracuda_jax as bj
from baracuda_jax import ArchSku, BackendKind, ElementKind, MathPrecision, OpCategory, PlanPreference
from baracuda_jax._core import choice
from baracuda_jax._core.op import OPS

X, IDS = jnp.arange(15, dtype=jnp.float32).reshape(5, 3), jnp.asarray([0, 2, 1, 0, 2])
IMAGE = jax.ShapeDtypeStruct((32, 64, 112, 112), jnp.float32)


def _example(op, dtype="float32"):
    return Example(op, op.cases[0], dtype)


def _plan(example, **options):
    return bj.plan(example.op.public, *example.args, **example.case.kwargs, **options)


def _calls(text):
    return set(re.findall(r"\bbaracuda\.\w+", text))


def _random(inputs):
    """Arrays for a plan's inputs."""
    rng = np.random.default_rng(0)
    draw = lambda t: (
        rng.integers(0, 3, t.shape) if jnp.issubdtype(t.dtype, jnp.integer) else rng.standard_normal(t.shape)
    )
    return [jnp.asarray(draw(t), t.dtype) for _, t in inputs]


# ---------------------------------------------------------------------------------------------------------------------
# A plan is a value


def test_equal_calls_have_equal_plans():
    plan = bj.plan("segment_max", X, IDS, num_segments=3)
    same = bj.plan(
        bj.segment_max, jax.ShapeDtypeStruct(X.shape, X.dtype), segment_ids=IDS, num_segments=3, ties="first"
    )
    assert plan == same and hash(plan) == hash(same)
    for other in (
        bj.plan("segment_min", X, IDS, num_segments=3),
        bj.plan("segment_max", X, IDS, num_segments=4),
        bj.plan("segment_max", X[:, :2], IDS, num_segments=3),
        bj.plan("segment_max", X, IDS, num_segments=3, prefer="xla"),
        bj.plan("segment_max", X, IDS, num_segments=3, platform="tpu"),
    ):
        assert plan != other


def test_a_plan_is_frozen():
    with pytest.raises(AttributeError):
        bj.plan("segment_max", X, IDS, 3).platform = "cuda"


def test_a_plan_is_a_static_argument_of_jit():
    traced = []

    def run(plan, *args):
        traced.append(plan)
        return plan(*args)

    jitted = jax.jit(run, static_argnums=0)
    for _ in range(2):
        same_bits(jitted(bj.plan("segment_sum", X, IDS, 3), X, IDS), bj.segment_sum(X, IDS, 3))
    assert len(traced) == 1
    jitted(bj.plan("segment_sum", X, IDS, 3, prefer="xla"), X, IDS)
    assert len(traced) == 2


def test_repr_is_one_glance():
    text = repr(bj.plan("segment_max", X, IDS, num_segments=3, platform="cuda", prefer="native"))
    assert (
        text.splitlines()[0]
        == f"Plan segment_max(data: float32[5,3], segment_ids: {IDS.dtype}[5], num_segments=3) -> float32[3,3]"
    )
    for part in (
        "native on ",
        "asked for",
        "baracuda.segment_index, baracuda.segment_max",
        "bytes",
        "float32 accumulator",
    ):
        assert part in text
    assert "not deterministic" in repr(bj.plan("segment_max", X, IDS, 3, platform="cuda", prefer="xla"))


# ---------------------------------------------------------------------------------------------------------------------
# It runs what the function does


def test_it_computes_what_the_function_does(op):
    example = _example(op)
    plan, (x, *rest) = _plan(example), example.args
    planned = lambda x: jax.tree.leaves(plan(x, *rest))[0]
    called = lambda x: example.call(x, *rest, prefer=None)
    same_bits(planned(x), called(x))
    same_bits(jax.jit(planned)(x), called(x))
    xs = jnp.stack([x, x + 1])
    same_bits(jax.vmap(planned)(xs), jnp.stack([called(x) for x in xs]))
    if not has_derivative(op):
        return
    gradient = lambda fun: jax.grad(loss_of(fun))(x)
    close(gradient(planned), gradient(called), "float32")
    close(jax.jvp(planned, (x,), (x,))[1], jax.jvp(called, (x,), (x,))[1], "float32")


def test_out_avals_are_those_of_the_function(op):
    example = _example(op)
    types = lambda tree: [(y.shape, y.dtype) for y in jax.tree.leaves(tree)]
    want = jax.eval_shape(lambda *args: op.public(*args, **example.case.kwargs), *example.args)
    assert types(_plan(example).out_avals) == types(want)


def test_out_avals_with_residuals():
    y, winner = bj.plan("segment_max", X, IDS, 3, return_residuals=True).out_avals
    assert (y.dtype, winner.dtype, winner.shape) == (jnp.float32, jnp.int32, (3, 3))


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_the_compiled_program_has_the_planned_calls(op, backend, platform):
    plan = _plan(_example(op), platform=platform, prefer=backend)
    for p in (plan, *([plan.backward] if op.differentiable else [])):
        assert p.sku.backend == backend and bool(p.targets) == (backend == "native")
        assert _calls(p.lower().compile().as_text()) == set(p.targets)


def test_the_context_does_not_move_a_plan():
    plan = bj.plan("segment_sum", X, IDS, 3)
    with bj.prefer("xla"):
        assert _calls(plan.lower().as_text()) == set(plan.targets) != set()
        assert bj.plan("segment_sum", X, IDS, 3).sku.backend == BackendKind.XLA


def test_the_gradient_of_a_plan_runs_its_backward_plan(derivable_op, platform):
    example = _example(derivable_op)
    for backend in ("native", "xla"):
        plan = _plan(example, platform=platform, prefer=backend)
        vjp = jax.jit(lambda x, dy: jax.vjp(lambda x: plan(*example.arguments(x)), x)[1](dy)[0])
        calls = _calls(vjp.lower(example.x, plan(*example.args)).compile().as_text())
        assert calls >= set(plan.backward.targets) and bool(calls) == (backend == "native")


def test_backward_is_the_gradient():
    plan = bj.plan("segment_max", X, IDS, 3)
    y, winner = bj.segment_max(X, IDS, 3, return_residuals=True)
    want = jax.vjp(lambda x: bj.segment_max(x, IDS, 3), X)[1](y)[0]
    same_bits(plan.backward(IDS, winner, y), want)
    image = jnp.sin(jnp.arange(2.0 * 3 * 8 * 8, dtype=jnp.float32)).reshape(2, 3, 8, 8)
    pool = bj.plan("lp_pool2d", image, 3, 3, strides=2)
    y = pool(image)
    same_bits(pool.backward(image, y, y), bj.lp_pool2d_backward(image, y, y, 3, 3, strides=2))


def test_backward_is_the_plan_of_the_public_backward_function(op):
    if not op.differentiable:
        with pytest.raises(TypeError, match=f"plan of {op.name}: there is no derivative"):
            _ = _plan(_example(op)).backward
        return
    backward = _plan(_example(op)).backward
    arrays = _random(backward.inputs)
    gradient = jax.tree.leaves(backward(*arrays))[0]
    assert gradient.shape == _example(op).args[0].shape
    if backward.name in bj.__all__:
        assert bj.plan(backward.name, *arrays, **dict(backward.params)) == backward
    with pytest.raises(TypeError, match=f"plan of {op.name}_backward: a backward plan has no backward plan"):
        _ = backward.backward


def test_integers_have_no_backward_plan():
    with pytest.raises(TypeError, match="plan of segment_sum: there is no derivative for int32"):
        _ = bj.plan("segment_sum", jnp.ones(5, jnp.int32), IDS, 3).backward


@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_workspace_is_that_of_the_cuda_program(op, kind):
    plan = _plan(_example(op), platform="cuda", prefer="native")
    if kind == "backward" and not op.differentiable:
        pytest.skip("the op has no derivative")
    plan = plan if kind == "forward" else plan.backward
    text = plan.lower().as_text()
    results = [line.rpartition("->")[2] for line in text.splitlines() if "@baracuda." in line]
    found = [re.match(r" \(?tensor<([\dx]+)xui8>", r) for r in results]
    assert sum(int(np.prod([int(n) for n in f[1].split("x")])) for f in found if f) == plan.workspace_bytes
    assert _calls(text) == set(plan.targets)
    assert (plan.workspace_bytes > 0) == ("baracuda.segment_index" in plan.targets)


def test_a_plan_is_made_of_tracers_and_under_a_mesh():
    want = bj.plan("segment_sum", X, IDS, 3)
    seen = []
    jax.jit(lambda x, ids: seen.append(bj.plan("segment_sum", x, ids, 3)))(X, IDS)
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,), devices=jax.devices()[:1])
    with jax.set_mesh(mesh):
        seen.append(bj.plan("segment_sum", X, IDS, 3))
        assert not bj.plan("segment_sum", X, IDS, 3, platform="cuda", prefer="xla").precision.deterministic
    assert seen == [want, want]


def test_a_plan_runs_inside_shard_map():
    plan = bj.plan("segment_sum", X[:, :2], IDS, 3)
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices("cpu")[:2])
    P = jax.sharding.PartitionSpec
    sharded = jax.shard_map(plan, mesh=mesh, in_specs=(P(None, "d"), P()), out_specs=P(None, "d"))
    x = jnp.concatenate([X[:, :2], X[:, 1:]], axis=1)
    same_bits(jax.jit(sharded)(x, IDS), bj.segment_sum(x, IDS, 3))


# ---------------------------------------------------------------------------------------------------------------------
# What it reports is true


def test_sku():
    sku = bj.plan("segment_prod", X, IDS.astype(jnp.int8), 3, platform="tpu").sku
    assert (sku.category, sku.op, sku.element, sku.aux_element) == (
        OpCategory.SEGMENT_OPS,
        "segment_prod",
        ElementKind.F32,
        ElementKind.I8,
    )
    assert (sku.arch, sku.backend, sku.layout, sku.epilogue) == (ArchSku.TPU, BackendKind.XLA, None, None)
    pool = bj.plan("lp_pool2d", IMAGE, 3, 3, platform="cpu").sku
    assert (pool.category, pool.aux_element, pool.arch) == (OpCategory.POOLING, None, ArchSku.CPU)
    assert hash(pool) != hash(sku)


def test_every_op_and_dtype_has_a_sku(op):
    for dtype in op.dtypes:
        plan = _plan(_example(op, dtype))
        assert plan.sku.element == dtype and plan.sku.category in set(OpCategory)
        halves = dtype in ("float16", "bfloat16")
        assert plan.precision.accumulator == ("float32" if halves else dtype)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_the_accumulator_is_as_wide_as_it_says(backend):
    """An accumulator of the narrow type would stop at 256 or 2048, one of float32 at 2^24, and integers wrap."""
    total = lambda x: float(
        bj.plan("segment_sum", x, jnp.zeros(len(x), jnp.int32), 1, prefer=backend)(x, jnp.zeros(len(x), jnp.int32))[0]
    )
    precision = lambda dtype: bj.plan("segment_sum", jnp.ones(3, dtype), IDS[:3], 1, prefer=backend).precision
    for dtype in ("bfloat16", "float16"):
        assert precision(dtype).accumulator == ElementKind.F32 and precision(dtype).math_precision == MathPrecision.F32
        assert total(jnp.ones(4096, dtype)) == 4096
    assert (
        precision("float64").accumulator == ElementKind.F64 and precision("float64").math_precision == MathPrecision.F64
    )
    assert total(jnp.asarray([1, 2.0**-40, -1])) == 2.0**-40
    assert precision("float32").accumulator == ElementKind.F32
    assert total(jnp.asarray([1, 2.0**-40, -1], jnp.float32)) == 0
    assert precision("int8").accumulator == ElementKind.I8 and precision("int8").math_precision == MathPrecision.INTEGER
    assert total(jnp.full(3, 100, jnp.int8)) == 300 - 256


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_deterministic_plans_give_the_same_bits(op, backend):
    plan, arrays = _plan(_example(op), prefer=backend), _example(op).args
    assert plan.precision.deterministic == plan.precision.bit_stable_on_same_hardware
    if not plan.precision.deterministic:
        assert backend == "xla"
        return
    first = jax.tree.leaves(plan(*arrays))
    for _ in range(5):
        for again, before in zip(jax.tree.leaves(plan(*arrays)), first, strict=True):
            same_bits(again, before)


def test_scattering_floats_on_a_gpu_is_not_deterministic():
    is_deterministic = lambda x, **kw: bj.plan("segment_sum", x, IDS, 3, **kw).precision.deterministic
    assert not is_deterministic(X, platform="cuda", prefer="xla")
    assert is_deterministic(X, platform="cuda", prefer="native")
    assert is_deterministic(X, platform="cpu", prefer="xla")
    assert is_deterministic(X.astype(jnp.int32), platform="cuda", prefer="xla")
    gather = bj.plan("segment_sum", X, IDS, 3, platform="cuda", prefer="xla").backward
    assert gather.precision.deterministic
    assert bj.plan("lp_pool2d", IMAGE, 3, 3, platform="cuda", prefer="xla").backward.precision.deterministic


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
        (ValueError, "segment_max: prefer='native', but there is no kernel for platform tpu", ("segment_max", X, IDS, 3), {"platform": "tpu", "prefer": "native"}),
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
    native = lambda **kw: bool(_calls(jax.jit(lambda x: bj.segment_sum(x, IDS, 3, **kw)).lower(X).as_text()))
    assert native(prefer=PlanPreference()) and native(prefer=PlanPreference("native"))
    assert not native(prefer=PlanPreference("xla"))
    with bj.prefer(PlanPreference("xla")):
        assert not native() and native(prefer="native")
        assert native(prefer=PlanPreference(deterministic=False))  # taken whole: automatic


def test_a_workspace_that_is_too_large():
    need = bj.plan("segment_sum", X, IDS, 3).workspace_bytes
    for limit, backend in ((need, "native"), (need - 1, "xla")):
        prefer = PlanPreference(max_workspace_bytes=limit)
        plan = bj.plan("segment_sum", X, IDS, 3, prefer=prefer)
        text = jax.jit(lambda x: bj.segment_sum(x, IDS, 3, prefer=prefer)).lower(X).as_text()
        assert plan.sku.backend == backend and plan.workspace_bytes <= limit
        assert _calls(text) == set(plan.targets)
    prefer = PlanPreference("native", max_workspace_bytes=need - 1)
    message = f"segment_sum: prefer has backend='native' and max_workspace_bytes={need - 1}, but.* needs {need} bytes"
    with pytest.raises(ValueError, match=message):
        bj.plan("segment_sum", X, IDS, 3, prefer=prefer)
    with pytest.raises(ValueError, match=message):
        bj.segment_sum(X, IDS, 3, prefer=prefer)


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
        assert row["backend"] == choice.verdict(total("native_ms"), total("xla_ms"))
        assert row["platform"] != "cpu" or row["backend"] == "native"


@pytest.mark.measured
def test_the_table_chooses_where_nobody_asks():
    """lp_pool2d on CUDA, large, in float32: XLA was faster."""
    program = jax.jit(lambda x: bj.lp_pool2d(x, 3, 3, 2))
    gradient = jax.jit(jax.grad(lambda x: bj.lp_pool2d(x, 3, 3, 2).sum()))
    for platform, is_native in (("cuda", False), ("cpu", True)):
        plan = bj.plan("lp_pool2d", IMAGE, 3, 3, 2, platform=platform)
        assert plan.why == ("by default" if is_native else "measured: forward float32 large")
        assert (plan.sku.backend == "native") == (plan.backward.sku.backend == "native") == is_native
        for fun in (program, gradient):
            assert bool(_calls(fun.trace(IMAGE).lower(lowering_platforms=(platform,)).as_text())) == is_native
    assert bj.plan("lp_pool2d", IMAGE, 3, 3, 2, platform="cuda", prefer="native").sku.backend == "native"
    assert bj.plan("segment_max", X, IDS, 3, platform="cuda").why == "measured: forward float32 large"
    with bj.prefer("native"):
        assert bj.plan("lp_pool2d", IMAGE, 3, 3, 2, platform="cuda").sku.backend == "native"


@pytest.mark.measured
def test_a_plan_and_a_call_choose_alike(op):
    example = _example(op)
    for platform in ("cpu", "cuda", "tpu"):
        plan = _plan(example, platform=platform)
        call = jax.jit(lambda *args: example.call(*args, prefer=None))
        text = call.trace(*example.args).lower(lowering_platforms=(platform,)).as_text()
        assert _calls(text) == set(plan.targets) and bool(plan.targets) == (plan.sku.backend == "native")


@pytest.mark.measured
def test_one_program_for_platforms_that_disagree_is_native():
    text = jax.jit(lambda x: bj.lp_pool2d(x, 3, 3, 2)).trace(IMAGE).lower(lowering_platforms=("cpu", "cuda")).as_text()
    assert _calls(text) == {"baracuda.lp_pool"}


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
        bj.plan("segment_sum", x, IDS, 3, platform="cuda", prefer=PlanPreference(**fields)).sku.backend
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
    assert _calls(lowered(loss)) and not _calls(lowered(jax.grad(loss)))
