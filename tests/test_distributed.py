"""Layers and steps on eight devices compared with those on one, their gradients, and the collectives that they compile to."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import close
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from programs import normal
from sharded import collectives, devices, mesh, put

import baracuda_jax as bj
from baracuda_jax.optim import AdamState, DistributedAdamState

DTYPES = ("float64", "float32", "float16", "bfloat16")
SEQUENCE = P(None, "d", None)
COLUMNS = P(None, None, "d")


@pytest.fixture(autouse=True)
def _several_devices():
    if len(devices()) < 8:
        pytest.skip("needs eight devices")


def _counted(fun, *args):
    """Its result, and its collectives."""
    compiled = jax.jit(fun).lower(*args).compile()
    return compiled(*args), collectives(compiled.as_text())


def _arrays(dtype, seed=0):
    """Sequences, a kernel, a bias, and weights of the result; small sums."""
    x, kernel = normal((2, 16, 24), dtype, seed), normal((24, 32), dtype, seed + 1) * 24**-0.5
    return x, kernel.astype(dtype), normal((32,), dtype, seed + 2), normal((2, 16, 32), dtype, seed + 3)


def _linear(x, kernel, bias):
    wide = lambda a: a.astype(jnp.promote_types(a.dtype, jnp.float32))
    y = wide(x) @ wide(kernel)
    return (y if bias is None else y + wide(bias)).astype(x.dtype)


# layer, options, how x and y are sharded, {collective: count} of the forward pass, of it and the gradient
COLUMN, ROW = bj.column_parallel_linear, bj.row_parallel_linear
LAYERS = {
    "column": (COLUMN, {}, P(), COLUMNS, {}, {"all-reduce": 1}),
    "column, gathered": (COLUMN, {"gather_output": True}, P(), P(), {"all-gather": 1}, {"all-gather": 1, "all-reduce": 1}),
    "column of sequences": (
        COLUMN, {"sequence_parallel": True}, SEQUENCE, COLUMNS, {"all-gather": 1}, {"all-gather": 1, "reduce-scatter": 1},
    ),
    "column of sequences, gathered": (
        COLUMN, {"sequence_parallel": True, "sequence_axis": 1, "gather_output": True}, SEQUENCE, P(), {"all-gather": 2},
        {"all-gather": 2, "reduce-scatter": 1},
    ),
    "row": (ROW, {}, COLUMNS, P(), {"all-reduce": 1}, {"all-reduce": 1}),
    "row of a whole input": (ROW, {"input_is_parallel": False}, P(), P(), {"all-reduce": 1}, {"all-reduce": 2}),
    "row of sequences": (
        ROW, {"sequence_parallel": True}, COLUMNS, SEQUENCE, {"reduce-scatter": 1}, {"reduce-scatter": 1, "all-gather": 1},
    ),
    "row of sequences, a whole input": (
        ROW, {"sequence_parallel": True, "input_is_parallel": False}, P(), SEQUENCE, {"reduce-scatter": 1},
        {"reduce-scatter": 1, "all-gather": 1, "all-reduce": 1},
    ),
}  # fmt: skip


def _specs(fun):
    """How a layer's kernel and bias are sharded."""
    return (P(None, "d"), P("d")) if fun is COLUMN else (P("d", None), P())


def _layer(name, kind="auto", check_vma=True, **more):
    """The layer as a function of whole arrays."""
    fun, options, spec, out, *_ = LAYERS[name]
    fun = functools.partial(fun, axis_name="d", **options, **more)
    specs = (spec, *_specs(LAYERS[name][0]))
    return jax.shard_map(fun, mesh=mesh(kind), in_specs=specs, out_specs=out, check_vma=check_vma)


def _loss(fun, weights):
    return lambda *args: jnp.sum(fun(*args).astype(jnp.float32) * weights)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_that_of_one_device(name, dtype, has_bias):
    x, kernel, bias, weights = _arrays(dtype)
    bias = bias if has_bias else None
    y = jax.jit(_layer(name))(x, kernel, bias)
    assert y.dtype == dtype
    close(y, jax.jit(_linear)(x, kernel, bias), dtype, scale=4)
    argnums = (0, 1, 2) if has_bias else (0, 1)
    got, want = (jax.jit(jax.grad(_loss(fun, weights), argnums))(x, kernel, bias) for fun in (_layer(name), _linear))
    for a, b in zip(got, want, strict=True):
        assert a.dtype == dtype
        close(a, b, dtype, scale=8)


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("name", LAYERS)
def test_collectives_of_a_layer(name, kind):
    """The bias adds none, except where each device adds it to another part of the sequence."""
    fun, _, spec, out, forward, both = LAYERS[name]
    layer, over = _layer(name, kind), mesh(kind)
    # The value is the sum of what each device has.
    total = {} if out == P() else {"all-reduce": 1}
    of_bias = {"all-reduce": 1} if name.startswith("row of sequences") else {}
    with jax.set_mesh(over):
        *args, weights = put(_arrays("float32"), over, (spec, *_specs(fun), out))
        assert _counted(layer, *args)[1] == forward
        loss = _loss(layer, weights)
        assert _counted(jax.value_and_grad(loss, (0, 1)), *args)[1] == _sum(both, total)
        assert _counted(jax.value_and_grad(loss, (0, 1, 2)), *args)[1] == _sum(both, total, of_bias)


def _sum(*counts):
    return {name: sum(of.get(name, 0) for of in counts) for name in {name for of in counts for name in of}}


@pytest.mark.parametrize("name", LAYERS)
def test_the_gradient_alone_communicates_no_more(name):
    """Taken inside the shard_map, where no sum of the devices' losses is needed."""
    fun, options, spec, out, forward, both = LAYERS[name]
    specs, (x, kernel, bias, weights) = (spec, *_specs(fun)), _arrays("float32")

    def local(x, kernel, bias, w):
        pull = jax.vjp(functools.partial(fun, axis_name="d", **options), x, kernel, bias)[1]
        return pull(w)[:2]

    sharded = jax.shard_map(local, mesh=mesh("auto"), in_specs=(*specs, out), out_specs=specs[:2])
    backward = {key: n for key in both if (n := both[key] - forward.get(key, 0))}
    if "column of sequences" in name:  # dkernel is of the gathered x
        backward["all-gather"] = 1
    got, found = _counted(sharded, x, kernel, bias, weights)
    assert found == backward
    for a, b in zip(got, jax.grad(_loss(_linear, weights), (0, 1))(x, kernel, bias), strict=True):
        close(a, b, "float32", scale=8)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_without_checked_types(name):
    """Of a function that is differentiated outside its shard_map."""
    *args, weights = _arrays("float32")
    got, want = (
        jax.jit(jax.grad(_loss(fun, weights), (0, 1, 2)))(*args) for fun in (_layer(name, check_vma=False), _linear)
    )
    for a, b in zip(got, want, strict=True):
        close(a, b, "float32", scale=8)


@pytest.mark.parametrize("sequence_parallel, expected", [
    (False, ({"all-reduce": 1}, {"all-reduce": 2})),
    (True, ({"all-gather": 1, "reduce-scatter": 1}, {"all-gather": 2, "reduce-scatter": 2})),
])  # fmt: skip
def test_two_layers_as_in_a_transformer(sequence_parallel, expected):
    """Columns, then rows: one collective a pass, or its two halves; batches are sharded over another axis of the mesh."""
    over = jax.make_mesh((2, 4), ("batch", "d"), axis_types=(AxisType.Auto,) * 2, devices=devices())
    x, first, of_first, weights = _arrays("float32")
    second, of_second = normal((32, 24), "float32", 7) / 6, normal((24,), "float32", 8)
    weights = weights[..., :24]

    def block(column, row):
        return lambda x, a, b, c, d: x + row(jax.nn.gelu(column(x, a, b)), c, d)

    options = {"axis_name": "d", "sequence_parallel": sequence_parallel}
    spec = P("batch", "d" if sequence_parallel else None)
    specs = spec, P(None, "d"), P("d"), P("d", None), P()
    local = block(functools.partial(COLUMN, **options), functools.partial(ROW, **options))
    sharded = jax.shard_map(local, mesh=over, in_specs=specs, out_specs=spec)
    args = x, first, of_first, second, of_second
    whole = block(_linear, _linear)
    y, found = _counted(sharded, *args)
    close(y, whole(*args), "float32", scale=8)
    assert found == expected[0]
    for a, b in zip(
        jax.jit(jax.grad(_loss(sharded, weights), range(5)))(*args),
        jax.jit(jax.grad(_loss(whole, weights), range(5)))(*args),
        strict=True,
    ):
        close(a, b, "float32", scale=16)

    def both(x, *rest):
        y, pull = jax.vjp(lambda x: local(x, *rest[:-1]), x)
        return y, pull(rest[-1])[0]

    passes = jax.shard_map(both, mesh=over, in_specs=(*specs, spec), out_specs=(spec, spec))
    assert _counted(passes, *args, weights)[1] == expected[1]


@pytest.mark.parametrize("name", ["column of sequences", "row", "row of a whole input"])
def test_layers_under_vmap_scan_checkpoint_and_second_derivatives(name):
    x, kernel, bias, weights = _arrays("float64")
    many = jnp.stack([kernel, 2 * kernel])
    layer = _layer(name)
    got = jax.jit(jax.vmap(layer, (None, 0, None)))(x, many, bias)
    close(got, jnp.stack([_linear(x, k, bias) for k in many]), "float64", scale=8)
    scanned = lambda x, ks: jax.lax.scan(lambda c, k: (c + jax.checkpoint(layer)(x, k, bias), None), weights, ks)[0]
    plain = lambda x, ks: weights + _linear(x, ks[0], bias) + _linear(x, ks[1], bias)
    for a, b in zip(
        jax.jit(jax.grad(_loss(scanned, weights), (0, 1)))(x, many), jax.grad(_loss(plain, weights), (0, 1))(x, many),
        strict=True,
    ):  # fmt: skip
        close(a, b, "float64", scale=64)

    def second(fun):
        slope = jax.grad(lambda k: jnp.sum(fun(x, k, bias) ** 3))
        return jax.jit(lambda k: jax.jvp(slope, (k,), (k,))[1])(kernel)

    close(second(layer), second(_linear), "float64", scale=64)


@pytest.mark.parametrize("fun", [COLUMN, ROW])
def test_a_layer_of_one_device_is_a_linear_layer(fun):
    x, kernel, bias, _ = _arrays("bfloat16")
    for options in ({}, {"sequence_parallel": True}):
        y, found = _counted(lambda *args, options=options: fun(*args, **options), x, kernel, bias.astype("float32"))
        assert found == {}
        np.testing.assert_array_equal(
            y, bj.gemm_bias(x.reshape(-1, 24), kernel, bias.astype("float32")).reshape(y.shape)
        )


def test_an_axis_of_several_names():
    over = mesh("auto", axes=2)
    x, kernel, bias, _ = _arrays("float32")
    both = ("d", "e")
    column = functools.partial(COLUMN, axis_name=both, gather_output=True)
    fun = jax.shard_map(column, mesh=over, in_specs=(P(), P(None, both), P(both)), out_specs=P())
    close(jax.jit(fun)(x, kernel, bias), _linear(x, kernel, bias), "float32", scale=4)
    row = functools.partial(ROW, axis_name=both, input_is_parallel=False, sequence_parallel=True)
    fun = jax.shard_map(row, mesh=over, in_specs=(P(), P(both), P()), out_specs=P(None, both))
    close(jax.jit(fun)(x, kernel, bias), _linear(x, kernel, bias), "float32", scale=4)


def test_an_axis_of_vmap():
    """Which stands for devices where there is one."""
    x, kernel, bias, _ = _arrays("float32")
    columns, rows = kernel.reshape(24, 4, 8).swapaxes(0, 1), kernel.reshape(4, 6, 32)
    column = functools.partial(COLUMN, axis_name="i", gather_output=True)
    row = functools.partial(ROW, axis_name="i", input_is_parallel=False)
    for y in (
        *jax.vmap(column, (None, 0, 0), axis_name="i")(x, columns, bias.reshape(4, 8)),
        *jax.vmap(row, (None, 0, None), axis_name="i")(x, rows, bias),
    ):
        close(y, _linear(x, kernel, bias), "float32", scale=4)
    params, grads = jnp.ones(5, jnp.float32), normal((4, 5), "float32")

    def step(g):
        state = DistributedAdamState.zeros(params, axis_name="i")
        return bj.distributed_adam_step(params, g, state, axis_name="i")[0]

    want = bj.adam_step(params, grads.mean(0), AdamState.zeros(params))[0]
    for got in jax.vmap(step, axis_name="i")(grads):
        close(got, want, "float32")


# ---------------------------------------------------------------------------------------------------------------------
# distributed_adam_step

STEPS = 3


def _tree(dtype, seed=0):
    """Sizes that eight devices divide and do not divide, one element, and none."""
    draw = lambda *shape: normal(shape, dtype, seed + sum(shape))
    return {"w": draw(4, 6), "b": (draw(3), draw()), "none": draw(0, 2), "long": draw(17)}


def _own_gradients(params, dtype, step):
    """[devices, ...] for each parameter."""
    shapes = jax.tree.map(lambda p: (8, *p.shape), params)
    is_shape = lambda x: isinstance(x, tuple) and all(isinstance(n, int) for n in x)
    return jax.tree.map(lambda s: normal(s, dtype, sum(s) + 10 * step), shapes, is_leaf=is_shape)


def _on_devices(params, check_vma=True, amsgrad=False, master=True, **options):
    """(the state before the first step, a step of gradients [devices, ...])"""
    over, specs = mesh("auto"), DistributedAdamState.specs("d")
    zeros = functools.partial(DistributedAdamState.zeros, axis_name="d", amsgrad=amsgrad, master=master)

    def local(params, grads, state, rate):
        grads = jax.tree.map(lambda g: g[0], grads)
        return bj.distributed_adam_step(params, grads, state, rate, axis_name="d", **options)

    make = jax.shard_map(zeros, mesh=over, in_specs=P(), out_specs=specs, check_vma=check_vma)
    step = jax.shard_map(
        local, mesh=over, in_specs=(P(), P("d"), specs, P()), out_specs=(P(), specs), check_vma=check_vma
    )
    return jax.jit(make)(params), step


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "options, plain",
    [
        ({}, {}),
        ({"reduction": "sum", "weight_decay": 0.1}, {"weight_decay": 0.1}),
        ({"weight_decay": 0.1, "decoupled": True}, {"weight_decay": 0.1}),
        ({"amsgrad": True, "grad_scale": 0.5, "maximize": True}, {"grad_scale": 0.5, "maximize": True}),
        ({"master": False, "bias_correction": False}, {"bias_correction": False}),
    ],
)
def test_steps_are_adams_of_the_reduced_gradient(options, plain, dtype, check_vma):
    params = _tree(dtype)
    state, step = _on_devices(params, check_vma, **options)
    want_state = AdamState.zeros(params, amsgrad=options.get("amsgrad", False), master=options.get("master", True))
    one, got, want = bj.adamw_step if options.get("decoupled") else bj.adam_step, params, params
    for i in range(STEPS):
        grads = _own_gradients(params, dtype, i)
        got, state = jax.jit(step)(got, grads, state, 0.1)
        wide = lambda g: g.astype(jnp.promote_types(g.dtype, jnp.float32))
        reduce = jnp.sum if options.get("reduction") == "sum" else jnp.mean
        reduced = jax.tree.map(lambda g, reduce=reduce: reduce(wide(g), 0), grads)
        want, want_state = one(want, reduced, want_state, 0.1, **plain)
    for a, b, p in zip(*map(jax.tree.leaves, (got, want, params)), strict=True):
        assert a.dtype == dtype and a.shape == p.shape
        close(a, b, dtype, scale=32)
    assert int(state.step) == STEPS


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_state_is_sharded_rows(dtype):
    params = _tree(dtype)
    state, _ = _on_devices(params)
    for name in ("mu", "nu", "master"):
        found = jax.tree.map(
            lambda x: (x.shape, x.dtype.name, len({str(s.index) for s in x.addressable_shards})), state._asdict()[name]
        )
        assert found == {
            "w": ((24,), "float32", 8), "b": (((8,), "float32", 8), ((8,), "float32", 8)), "none": ((0,), "float32", 1),
            "long": ((24,), "float32", 8),
        }  # fmt: skip
    jax.tree.map(
        lambda m, p: np.testing.assert_array_equal(m[: p.size].reshape(p.shape), p.astype("float32")),
        state.master,
        params,
    )
    assert state.nu_max is None and state.step == 0
    one = DistributedAdamState.zeros(params, master=False)
    assert one.master is None and jax.tree.map(jnp.shape, one.mu) == jax.tree.map(lambda p: (p.size,), params)


@pytest.mark.parametrize("dtype, grads", [("float32", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")])
@pytest.mark.parametrize("sizes", [((64, 8),), ((64, 8), (17,), (3, 5))])
def test_collectives_of_a_step(sizes, dtype, grads):
    """One reduce-scatter and one all-gather for each array, in the dtypes of gradients and parameters."""
    params = [normal(shape, dtype) for shape in sizes]
    state, step = _on_devices(params)
    compiled = jax.jit(step).lower(params, _own_gradients(params, grads, 0), state, jnp.float32(0.1)).compile()
    assert collectives(compiled.as_text()) == {"reduce-scatter": len(sizes), "all-gather": len(sizes)}
    traced = str(jax.make_jaxpr(step)(params, _own_gradients(params, grads, 0), state, jnp.float32(0.1)))
    short = {"float32": "f32", "bfloat16": "bf16"}
    assert re.findall(r":(\w+)\[\d+\]\S* = reduce_scatter\[", traced) == [short[grads]] * len(sizes)
    assert re.findall(r":(\w+)\[\d+\]\S* = all_gather_invariant\[", traced) == [short[dtype]] * len(sizes)


def test_training_loops_over_steps():
    """The types of parameters and states stay, as a scan requires. Each device has its batch."""
    x, true = normal((64, 5), "float32", 1), normal((5, 3), "float32", 2)
    target, specs = x @ true, DistributedAdamState.specs("d")
    loss = lambda params, x, y: jnp.mean((x @ params["w"] + params["b"] - y) ** 2)
    params = {"w": jnp.zeros((5, 3), jnp.float32), "b": jnp.zeros(3, jnp.float32)}

    def train(params, x, y):
        def step(carry, _):
            params, state = carry
            own = jax.lax.pcast(params, "d", to="varying")
            return bj.distributed_adam_step(params, jax.grad(loss)(own, x, y), state, 0.1, axis_name="d"), None

        start = params, DistributedAdamState.zeros(params, axis_name="d")
        return jax.lax.scan(step, start, length=50)[0]

    fun = jax.shard_map(train, mesh=mesh("auto"), in_specs=(P(), P("d"), P("d")), out_specs=(P(), specs))
    got, _ = jax.jit(fun)(params, x, target)

    def plain(carry, _):
        params, state = carry
        return bj.adam_step(params, jax.grad(loss)(params, x, target), state, 0.1), None

    want, _ = jax.jit(lambda p: jax.lax.scan(plain, (p, AdamState.zeros(p)), length=50)[0])(params)
    jax.tree.map(lambda a, b: close(a, b, "float32", scale=1e3), got, want)
    assert loss(got, x, target) < 0.1 * loss(params, x, target)


def test_parameters_that_are_sharded_over_another_axis():
    """As those of the layers: each of their shards has a state."""
    over = jax.make_mesh((4, 2), ("d", "model"), axis_types=(AxisType.Auto,) * 2, devices=devices())
    params, specs = {"w": normal((3, 10), "float32")}, {"w": P(None, "model")}
    grads = {"w": normal((4, 3, 10), "float32", 1)}
    parts = P(("model", "d"))
    states = DistributedAdamState(P(), parts, parts, parts, parts)

    def local(params, grads):
        def step(carry, _):
            return bj.distributed_adam_step(carry[0], {"w": grads["w"][0]}, carry[1], 0.1, axis_name="d"), None

        return jax.lax.scan(step, (params, DistributedAdamState.zeros(params, axis_name="d")), length=2)[0]

    fun = jax.shard_map(local, mesh=over, in_specs=(specs, {"w": P("d", None, "model")}), out_specs=(specs, states))
    got, state = jax.jit(fun)(params, grads)
    want, of_want = params, AdamState.zeros(params)
    for _ in range(2):
        want, of_want = bj.adam_step(want, {"w": grads["w"].mean(0)}, of_want, 0.1)
    close(got["w"], want["w"], "float32", scale=8)
    assert state.mu["w"].shape == (2 * 4 * 4,)


def test_a_donated_state_is_updated_in_place():
    params = {"w": jnp.ones((64, 32), jnp.bfloat16), "b": jnp.ones(32, jnp.bfloat16)}
    state, step = _on_devices(params)
    grads = _own_gradients(params, "bfloat16", 0)
    compiled = (
        jax.jit(step, donate_argnums=(0, 2), keep_unused=True).lower(params, grads, state, jnp.float32(0.1)).compile()
    )
    size = sum(x.nbytes for x in jax.tree.leaves(params)) + sum(
        x.nbytes // 8 for x in jax.tree.leaves(state._replace(step=None))
    )
    assert compiled.memory_analysis().alias_size_in_bytes == size + state.step.nbytes


# ---------------------------------------------------------------------------------------------------------------------
# Others


@pytest.mark.parametrize("how, gradient", [("shard_map", 6), ("automatic", 3)])
def test_collectives_of_batch_norm_on_a_sharded_batch(how, gradient):
    """The mean, and then the variance about it, are those of all devices. The gradient adds the sums for weight and bias, by
    one all-reduce; that of parts with a name adds sums for each use of a statistic too."""
    x, weight, bias = normal((16, 3, 4), "float32"), normal((3,), "float32", 1), normal((3,), "float32", 2)
    weights = normal((16, 3, 4), "float32", 3)
    over = mesh("auto")
    call = lambda x, weight, bias, **axis: bj.batch_norm(x, None, None, weight, bias, training=True, **axis)[0]
    fun = call
    if how == "shard_map":
        fun = jax.shard_map(
            functools.partial(call, axis_name="d"), mesh=over, in_specs=(P("d"), P(), P()), out_specs=P("d")
        )
    args = put((x, weight, bias), over, (P("d"), P(), P()))
    y, found = _counted(fun, *args)
    close(y, call(x, weight, bias), "float32", scale=4)
    assert found == {"all-reduce": 2}
    grads = lambda fun: jax.grad(_loss(fun, weights), (0, 1, 2))
    got, found = _counted(grads(fun), *args)
    for a, b in zip(got, grads(call)(x, weight, bias), strict=True):
        close(a, b, "float32", scale=16)
    assert found == {"all-reduce": gradient}


X, K, B = np.ones((2, 8, 24), jnp.float32), np.ones((24, 16), jnp.float32), np.ones(16, jnp.float32)
W = {"w": np.ones(3, jnp.float32)}


@pytest.mark.parametrize(
    "error, message, fun, args, options",
    [
        (ValueError, "axis_name must be an axis of .* around the call, got 'rows'", COLUMN, (X, K), {"axis_name": "rows"}),
        (ValueError, r"kernel must have shape \(24, N\) for x of shape \(2, 8, 24\), got \(16, 24\)", COLUMN, (X, K.T), {}),
        (ValueError, r"kernel must have shape \(24, N\) .*, got \(24,\)", COLUMN, (X, K[:, 0]), {}),
        (TypeError, "kernel must have the dtype of x, float32, got float16", COLUMN, (X, K.astype("float16")), {}),
        (ValueError, r"bias must have shape \(16,\), one for each column of the product, got \(3,\)", COLUMN, (X, K, B[:3]), {}),
        (ValueError, "x must have at least one dimension, got a scalar", COLUMN, (X[0, 0, 0], K), {}),
        (TypeError, "gather_output must be True or False, got 1", COLUMN, (X, K), {"gather_output": 1}),
        (ValueError, r"sequence_axis must not be the last axis, .*, got -1", COLUMN, (X, K),
         {"sequence_parallel": True, "sequence_axis": -1}),
        (ValueError, r"sequence_axis must be in \[-1, 0\]|sequence_axis must be at least -1", COLUMN, (X[0, 0], K),
         {"sequence_parallel": True}),
        (ValueError, "precision must be one that jax.lax.dot_general takes, got 'most'", ROW, (X, K), {"precision": "most"}),
        (TypeError, "input_is_parallel must be True or False, got None", ROW, (X, K), {"input_is_parallel": None}),
        (ValueError, r"implementation", ROW, (X, K), {"implementation": "native"}),
    ],
)  # fmt: skip
def test_what_layers_refuse(error, message, fun, args, options):
    with pytest.raises(error, match=f"^{fun.__name__}: .*{message}"):
        fun(*args, **options)


@pytest.mark.parametrize(
    "message, options, x",
    [
        (r"kernel must have shape \(24 / 8, N\) on each of 8 devices for x of shape .*, got \(24, 16\)", {"input_is_parallel": False}, X),
        (r"x must have a length along sequence_axis that the 8 devices divide, got shape \(2, 7, 24\)", {"sequence_parallel": True}, X[:, :7]),
    ],
)  # fmt: skip
def test_what_a_layer_of_rows_refuses_on_devices(message, options, x):
    fun = jax.shard_map(
        functools.partial(ROW, axis_name="d", **options), mesh=mesh("auto"), in_specs=P(), out_specs=P()
    )
    with pytest.raises(ValueError, match=f"^row_parallel_linear: {message}"):
        fun(x, K)


@pytest.mark.parametrize(
    "error, message, state, options",
    [
        (TypeError, "state must be an optim.DistributedAdamState, got AdamState", AdamState.zeros(W), {}),
        (ValueError, r"state.mu\['w'\] must have shape \(3,\), the shard of params on each of 1 devices, got \(2,\)",
         DistributedAdamState.zeros({"w": jnp.ones(2, jnp.float32)}), {}),
        (ValueError, "reduction must be one of 'mean', 'sum', got 'max'", DistributedAdamState.zeros(W), {"reduction": "max"}),
        (TypeError, "decoupled must be True or False, got 1", DistributedAdamState.zeros(W), {"decoupled": 1}),
        (ValueError, "axis_name must be an axis of .* around the call, got 'd'", DistributedAdamState.zeros(W), {"axis_name": "d"}),
    ],
)  # fmt: skip
def test_what_a_step_refuses(error, message, state, options):
    with pytest.raises(error, match=f"^distributed_adam_step: {message}"):
        bj.distributed_adam_step(W, W, state, **options)


def test_gradients_that_are_summed_already_are_refused():
    specs = DistributedAdamState.specs("d")

    def local(params, x):
        state = DistributedAdamState.zeros(params, axis_name="d")
        grads = jax.grad(lambda p: jnp.sum(p["w"] * x))(params)
        return bj.distributed_adam_step(params, grads, state, axis_name="d")

    fun = jax.shard_map(local, mesh=mesh("auto"), in_specs=(P(), P("d")), out_specs=(P(), specs))
    with pytest.raises(ValueError, match=r"^distributed_adam_step: grads\['w'\] must vary over axis_name 'd'"):
        jax.eval_shape(fun, W, jax.ShapeDtypeStruct((8, 3), jnp.float32))
    with pytest.raises(ValueError, match=r"^DistributedAdamState.zeros: axis_name must be an axis"):
        DistributedAdamState.zeros(W, axis_name="d")
