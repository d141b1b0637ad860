"""Law: what a plan reports is what runs."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import close, has_derivative, loss_of, same_bits, stacked
from plans import IDS, IMAGE, X, calls, example_of, plan_of

import baracuda_jax as bj
from baracuda_jax import ArchSku, BackendKind, ElementKind, MathPrecision, OpCategory
from baracuda_jax._core import traced
from baracuda_jax._core.op import OPS


def _random(inputs):
    """Arrays for a plan's inputs."""
    rng = np.random.default_rng(0)
    draw = lambda t: (
        rng.integers(0, 3, t.shape) if jnp.issubdtype(t.dtype, jnp.integer) else rng.standard_normal(t.shape)
    )
    return [sent.asarray(draw(t), t.dtype) for _, t in inputs]


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
        bj.plan("segment_max", X, IDS, num_segments=3, implementation="xla"),
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
    jitted(bj.plan("segment_sum", X, IDS, 3, implementation="xla"), X, IDS)
    assert len(traced) == 2


def test_repr_is_one_glance():
    text = repr(bj.plan("segment_max", X, IDS, num_segments=3, platform="cuda", implementation="native"))
    assert (
        text.splitlines()[0]
        == f"Plan segment_max(data: float32[5,3], segment_ids: {IDS.dtype}[5], num_segments=3) -> float32[3,3]"
    )
    for part in (
        "native on ",
        "asked for",
        "baracuda.segment_max",
        "bytes",
        "float32 accumulator",
    ):
        assert part in text
    assert "not deterministic" in repr(bj.plan("segment_max", X, IDS, 3, platform="cuda", implementation="xla"))


# ---------------------------------------------------------------------------------------------------------------------
# It runs what the function does


def _planned_and_called(op):
    """The plan and the function, as functions of an array that has a derivative, or of the first, and that array."""
    example = example_of(op)
    plan, position = plan_of(example), example.moving[0]
    arguments = lambda x: [*example.args[:position], x, *example.args[position + 1 :]]
    planned = lambda x: example.outputs(plan(*example.structured(arguments(x))))
    called = lambda x: example.call(*arguments(x), implementation=None)
    # XLA may fuse a program of its own, and what is between ops, and round it, otherwise in each program.
    same = same_bits if plan.targets and not op.made_of else functools.partial(close, dtype="float32")
    return planned, called, example.args[position], same


def test_it_computes_what_the_function_does(op):
    planned, called, x, same = _planned_and_called(op)
    same(planned(x), called(x))
    same(jax.jit(planned)(x), jax.jit(called)(x))


def test_it_is_transformed_as_the_function_is(op):
    planned, called, x, same = _planned_and_called(op)
    xs = [np.asarray(x), (np.asarray(x) + 1).astype(x.dtype)]
    single = jax.jit(called)
    same(jax.jit(jax.vmap(planned))(np.stack(xs)), stacked([single(x) for x in xs]))
    if not has_derivative(op) or jnp.iscomplexobj(x):
        return
    derivatives = lambda fun, x: (jax.grad(loss_of(fun))(x), jax.jvp(fun, (x,), (x,))[1])
    for got, want in zip(*jax.jit(lambda x: [derivatives(fun, x) for fun in (planned, called)])(x), strict=True):
        close(got, want, "float32")


def test_out_avals_are_those_of_the_function(op):
    example = example_of(op)
    types = lambda tree: [(y.shape, y.dtype) for y in jax.tree.leaves(tree)]
    want = jax.eval_shape(example.public, *example.args)
    assert types(plan_of(example).out_avals) == types(want)


def test_out_avals_with_residuals():
    y, arg = bj.plan("segment_max", X, IDS, 3, return_residuals=True).out_avals
    assert (y.dtype, arg.dtype, arg.shape) == (jnp.float32, jnp.int32, (3, 3))


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_the_compiled_program_has_the_planned_calls(op, backend, platform):
    plan = plan_of(example_of(op), platform=platform, implementation=backend)
    if backend == "xla" or not op.has_kernels:
        backend = (platform == "cuda" and op.library) or "xla"
    has_derivative = op.differentiable and not any(OPS[name].quantized for name in op.made_of)  # else in plain JAX
    for p in (plan, *([plan.backward] if has_derivative else [])):
        parts = [OPS[name] for name in op.made_of or (op.name,)]
        is_mixed = p is not plan and op.has_kernels and not all(part.kernels.get("backward") for part in parts)
        assert is_mixed or (p.sku.backend == backend and bool(p.targets) == (backend == "native"))
        # The entries' bags are read by gradients alone, and XLA drops their search elsewhere.
        dropped = {"baracuda.searchsorted"} if "searchsorted" in op.made_of else set()
        assert calls(p.lower().compile().as_text()) | dropped == set(p.targets) | dropped


def test_the_context_does_not_move_a_plan():
    plan = bj.plan("segment_sum", X, IDS, 3)
    with bj.prefer("xla"):
        assert calls(plan.lower().as_text()) == set(plan.targets) != set()
        assert bj.plan("segment_sum", X, IDS, 3).sku.backend == BackendKind.XLA


def test_the_gradient_of_a_plan_runs_its_backward_plan(derivable_op, platform):
    example = example_of(derivable_op)
    if any(OPS[name].quantized for name in derivable_op.made_of):
        pytest.skip("the derivative is that of what is not rounded, in plain JAX")
    for backend in ("native", "xla") if derivable_op.has_kernels else ("xla",):
        plan = plan_of(example, platform=platform, implementation=backend)
        vjp = jax.jit(lambda x, dy: jax.vjp(lambda x: plan(*example.structured(example.arguments(x))), x)[1](dy)[0])
        called = calls(vjp.lower(example.x, plan(*example.structured(example.args))).compile().as_text())
        assert called >= set(plan.backward.targets) - {f"baracuda.{target}" for target in derivable_op.sometimes}
        assert bool(called) == (backend == "native") or not derivable_op.kernels["backward"]


def test_backward_is_the_gradient():
    plan = bj.plan("segment_max", X, IDS, 3)
    y, arg = bj.segment_max(X, IDS, 3, return_residuals=True)
    want = jax.vjp(lambda x: bj.segment_max(x, IDS, 3), X)[1](y)[0]
    same_bits(plan.backward(IDS, arg, y), want)
    image = jnp.sin(sent.arange(2.0 * 3 * 8 * 8, dtype=jnp.float32)).reshape(2, 3, 8, 8)
    pool = bj.plan("lp_pool2d", image, 3, 3, strides=2)
    y = pool(image)
    same_bits(pool.backward(image, y, y), bj.lp_pool2d_backward(image, y, y, 3, 3, strides=2))


def test_backward_is_the_plan_of_the_public_backward_function(op):
    example = example_of(op)
    plan = plan_of(example)
    has_gradient = op.name.startswith(("unique", "fp8_linear", "int4_awq_dequantize", "soft_nms"))  # all the same
    if not op.differentiable and not has_gradient:
        with pytest.raises(TypeError, match=f"plan of {op.name}: there is no derivative"):
            _ = plan.backward
        return
    backward = plan.backward
    arrays = _random(backward.inputs)
    gradient = jax.tree.leaves(backward(*arrays))[0]
    x = next((a for a in example.args if jnp.issubdtype(a.dtype, jnp.inexact)), example.args[0])
    assert gradient.shape == (() if op.name == "fill" else x.shape)  # whose value may have one dimension
    if backward.name in traced.names():
        names = [name for name, _ in backward.inputs]
        if any(value is None for _, value in backward.params) and all(map(str.isidentifier, names)):
            named = dict(zip(names, arrays, strict=True))  # an array that is left out may be before others
            assert bj.plan(backward.name, **named, **dict(backward.params)) == backward
        else:
            assert bj.plan(backward.name, *arrays, **dict(backward.params)) == backward
    else:
        assert backward.name == f"vjp of {plan.name}"
    with pytest.raises(TypeError, match=f"plan of {backward.name}: a backward plan has no backward plan"):
        _ = backward.backward


def test_integers_have_no_backward_plan():
    with pytest.raises(TypeError, match="plan of segment_sum: there is no derivative for int32"):
        _ = bj.plan("segment_sum", sent.ones(5, jnp.int32), IDS, 3).backward


@pytest.mark.parametrize("kind", ["forward", "backward"])
def test_workspace_is_that_of_the_cuda_program(op, kind):
    plan = plan_of(example_of(op), platform="cuda", implementation="native")
    if kind == "backward" and not op.differentiable:
        pytest.skip("the op has no derivative")
    plan = plan if kind == "forward" else plan.backward
    text = plan.lower().as_text()
    results = [line.rpartition("->")[2] for line in text.splitlines() if "@baracuda." in line]
    found = [re.match(r" \(tensor<([\dx]+)xui8>, ", r) for r in results]
    assert sum(int(np.prod([int(n) for n in f[1].split("x")])) for f in found if f) == plan.workspace_bytes
    unread = calls(text) - set(plan.targets)  # what XLA drops, where a result is saved and the others are not read
    assert not unread or plan.name.startswith("vjp of ")
    assert calls(text) >= set(plan.targets)
    lattices = [name + end for name in ("ctc_loss", "rnnt_loss", "soft_dtw") for end in ("", "_backward")]
    scratch = {
        f"baracuda.{target}"
        for target in (
            "segment_index",
            "sample_adjoint",
            "nonzero",
            "run_starts",
            "paged_decode",
            "nms",
            "group_norm",
            "batch_norm",
            "ssd_chunk_scan",
            *lattices,
        )
    }
    of_gradients = (
        "causal_conv1d",
        "depthwise_conv",
        "selective_scan",
        "ssd_chunk_scan",
        "layer_norm",
        "rms_norm",
        "add_rms_norm",
        "group_norm",
        "batch_norm",
    )
    scratch |= {f"baracuda.{name}_backward" for name in of_gradients}
    is_sorted = op.name == "repeat_interleave"  # and then the index needs none
    if op.name.startswith("moe_"):
        return  # their index is known, and a sum has some where it has several workers
    assert (plan.workspace_bytes > 0) == (bool(scratch & set(plan.targets)) and not is_sorted)


def test_a_plan_is_made_of_tracers_and_under_a_mesh():
    want = bj.plan("segment_sum", X, IDS, 3)
    seen = []
    jax.jit(lambda x, ids: seen.append(bj.plan("segment_sum", x, ids, 3)))(X, IDS)
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,), devices=jax.devices()[:1])
    with jax.set_mesh(mesh):
        seen.append(bj.plan("segment_sum", X, IDS, 3))
        assert not bj.plan("segment_sum", X, IDS, 3, platform="cuda", implementation="xla").precision.deterministic
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
        plan = plan_of(example_of(op, dtype))
        if op.name == "histogram" and dtype.lstrip("u").startswith(("int", "bool")):  # counts integers as floats
            dtype = plan.sku.element
            assert dtype in ("float32", "float64")
        if op.kin == "sampler" and dtype == "float64":  # which is rounded first
            dtype = "float32"
        if op.is_facade or op.name == "random_bernoulli":  # as integers of bytes give those of 32 bits
            dtype = jax.tree.leaves(plan.out_avals)[0].dtype.name
        # Whose parts may compute in float32, as queries, small matrices and coefficients are.
        if op.made_of or op.name in ("batch_paged_decode", "map_coordinates") or op.family == "linalg":
            dtype = plan.sku.element
        assert plan.sku.element == dtype and plan.sku.category in set(OpCategory)
        is_narrow = dtype in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
        assert plan.precision.accumulator == ("float32" if is_narrow else dtype)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_the_accumulator_is_as_wide_as_it_says(backend):
    """An accumulator of the narrow type would stop at 256 or 2048, one of float32 at 2^24, and integers wrap."""
    total = lambda x: float(
        bj.plan("segment_sum", x, sent.zeros(len(x), jnp.int32), 1, implementation=backend)(
            x, sent.zeros(len(x), jnp.int32)
        )[0]
    )
    precision = lambda dtype: bj.plan("segment_sum", sent.ones(3, dtype), IDS[:3], 1, implementation=backend).precision
    for dtype in ("bfloat16", "float16"):
        assert precision(dtype).accumulator == ElementKind.F32 and precision(dtype).math_precision == MathPrecision.F32
        assert total(sent.ones(4096, dtype)) == 4096
    assert (
        precision("float64").accumulator == ElementKind.F64 and precision("float64").math_precision == MathPrecision.F64
    )
    assert total(sent.asarray([1, 2.0**-40, -1])) == 2.0**-40
    assert precision("float32").accumulator == ElementKind.F32
    assert total(sent.asarray([1, 2.0**-40, -1], jnp.float32)) == 0
    assert precision("int8").accumulator == ElementKind.I8 and precision("int8").math_precision == MathPrecision.INTEGER
    assert total(sent.full(3, 100, jnp.int8)) == 300 - 256


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_deterministic_plans_give_the_same_bits(op, backend):
    plan, arrays = plan_of(example_of(op), implementation=backend), example_of(op).args
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
    assert not is_deterministic(X, platform="cuda", implementation="xla")
    assert is_deterministic(X, platform="cuda", implementation="native")
    assert is_deterministic(X, platform="cpu", implementation="xla")
    assert is_deterministic(X.astype(jnp.int32), platform="cuda", implementation="xla")
    gather = bj.plan("segment_sum", X, IDS, 3, platform="cuda", implementation="xla").backward
    assert gather.precision.deterministic
    assert bj.plan("lp_pool2d", IMAGE, 3, 3, platform="cuda", implementation="xla").backward.precision.deterministic
