"""What a declaration can say that few ops of the package do: ops that are declared here obey every law."""

import functools

import jax
import jax.numpy as jnp
import laws
import numpy as np
import pytest
import sent
import sharded
from examples_of import Example, close, same_bits
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import baracuda_jax as bj
from baracuda_jax._cli.ops import row
from baracuda_jax._core import keys
from baracuda_jax._core import op as declaration
from baracuda_jax._core.case import Case
from baracuda_jax._core.facade import facade, facade_api
from baracuda_jax._core.op import OPS, Body, compose, declare
from baracuda_jax._core.partition import Partition
from baracuda_jax._core.sku import OpCategory

_SECTIONS = """

    Formula: as above.

    Args: {names}.

    Returns: arrays.

    Raises: TypeError: for no array.

    Precision: that of the dtype.

    Source: none.
"""


def _documented(fun):
    fun.__doc__ += _SECTIONS.format(names=", ".join(fun.__code__.co_varnames[: fun.__code__.co_argcount + 1]))
    return fun


def _normal(*shapes):
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)


@pytest.fixture(scope="module")
def declared():
    """The ops of this file, in the table as long as its tests run."""
    before = dict(OPS)
    found = {op.name: op for op in (_softmax_lse(), _mean_of_squares(), _drop(), _descend())}
    yield found
    OPS.clear()
    OPS.update(before)


# ---------------------------------------------------------------------------------------------------------------------
# Several outputs, computed by a library: the softmax of the last axis, and the logarithm of its sum.


@_documented
def softmax_lse(x, return_lse=True, implementation=None):
    """y = exp(x - lse), and lse = log(sum(exp(x)))."""
    outs = OPS["softmax_lse"](sent.asarray(x), save=return_lse, implementation=implementation)
    return tuple(outs) if return_lse else outs


def _softmax_lse():
    def forward(x):
        lse = jax.nn.logsumexp(x, -1)
        return jnp.exp(x - lse[..., None]), lse

    def tangent(x, t):
        y, _ = forward(x)
        dlse = (y * t).sum(-1)
        return y * (t - dlse[..., None]), dlse

    def backward(x, dy, dlse):
        y, _ = forward(x)
        of_y = 0 if dy is None else y * (dy - (y * dy).sum(-1, keepdims=True))
        return (of_y + (0 if dlse is None else y * dlse[..., None]),)

    def labels(names, types, params):
        core = {"x": ("n",), "y": ("n",), "lse": ()}
        rank = lambda name, x: x.ndim - len(core[name])
        return [(*(f"b{i}" for i in range(rank(name, x))), *core[name]) for name, x in zip(names, types, strict=True)]

    return declare(
        "softmax_lse",
        family="toy",
        category=OpCategory.SOFTMAX,
        public=softmax_lse,
        cases=(Case("matrix", _normal((3, 5))), Case("y alone", _normal((4, 3)), {"return_lse": False})),
        dtypes=("float64", "float32"),
        operands=("x",),
        results=("y", "lse"),
        outputs=("y", "lse"),
        differentiable=("x",),
        residuals=("x",),
        forward=Body(forward),
        tangent=Body(tangent),
        backward=Body(backward),
        batched=declaration.as_they_are,
        cut=Partition(labels, whole=frozenset("n"), plain=True),
        kernels={},
        library="xla",
    )


# ---------------------------------------------------------------------------------------------------------------------
# Made of other ops


@_documented
def mean_of_squares(x, implementation=None):
    """The mean of x_i x_i over the last axis."""
    return bj.mean(bj.square(x, implementation=implementation), -1, implementation=implementation)


def _mean_of_squares():
    return compose(
        "mean_of_squares",
        family="toy",
        category=OpCategory.REDUCTION,
        public=mean_of_squares,
        cases=(Case("matrix", _normal((3, 5))),),
        dtypes=("float64", "bfloat16"),
        operands=("x",),
        differentiable=("x",),
        made_of=("square", "mean"),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Plain JAX, with a key among the operands


@facade_api("xla")
@_documented
def drop(x, key, rate=0.5, implementation=None):
    """y = x / (1 - rate) where a number that the key draws is at least rate, else 0."""
    x, key = sent.asarray(x), keys.typed("drop", "key", key)
    keep = jax.random.uniform(key, x.shape, jnp.float32) >= rate  # not of a type that x64 changes
    return jnp.where(keep, x / (1 - rate), 0)


def _drop():
    def draw(rng):
        return rng.standard_normal((4, 6)), keys.draw(rng)

    return facade(
        "drop",
        family="toy",
        category=OpCategory.RANDOM,
        public=drop,
        cases=(Case("half", draw), Case("a third", draw, {"rate": 0.33})),
        dtypes=("float64", "float32"),
        operands=("x", "key"),
        differentiable=("x",),
        constant=keys.CONSTANT,
    )


def test_a_key_is_typed_or_raw(declared):
    x, raw = sent.ones((4, 6)), jax.random.PRNGKey(3)
    want = jnp.where(jax.random.uniform(raw, x.shape, jnp.float32) >= 0.5, 2 * x, 0)
    for key in (raw, jax.random.key(3), np.asarray(raw)):
        same_bits(drop(x, key), want)
    same_bits(jax.grad(lambda x: drop(x, jax.random.key(3)).sum())(x), want)
    for key, got in (
        (jax.random.split(jax.random.key(3)), r"uint32 of shape \(2, 2\)"),
        (x, r"float64 of shape \(4, 6\)"),
    ):
        with pytest.raises(
            TypeError, match=rf"drop: key must be one key, typed or uint32 of shape \(2,\) or \(4,\), got {got}"
        ):
            drop(x, key)
    with pytest.raises(TypeError, match="drop: key must be a key of threefry2x32 or philox, got one of rbg"):
        drop(x, jax.random.key(3, impl="rbg"))


def test_a_key_draws_the_same_alone_and_in_a_batch(declared):
    """Of typed keys too, and of one key for all."""
    x, many = sent.ones((3, 4, 6)), jax.random.split(jax.random.key(0), 3)
    want = jnp.stack([drop(x[i], many[i]) for i in range(3)])
    same_bits(jax.vmap(drop)(x, many), want)
    same_bits(jax.vmap(drop)(x, jax.random.key_data(many)), want)
    same_bits(jax.vmap(drop, (0, None))(x, many[1]), jnp.stack([want[1]] * 3))


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("spec", [P("d", None), P(None, "d"), P("d", "e")], ids=str)
def test_a_key_draws_the_same_on_shards(declared, spec, kind):
    x, key = np.arange(128.0).reshape(8, 16), jax.random.PRNGKey(7)
    both = jax.jit(lambda x, key: (drop(x, key), jax.grad(lambda x: drop(x, key).sum())(x)))
    want, over = both(x, key), sharded.mesh(kind, axes=2)
    with jax.set_mesh(over):
        compiled = both.lower(*sharded.put((x, key), over, (spec, P()))).compile()
        got = compiled(*sharded.put((x, key), over, (spec, P())))
    jax.tree.map(same_bits, got, want)
    assert not sharded.collectives(compiled.as_text())


# ---------------------------------------------------------------------------------------------------------------------
# Plain JAX, of pytrees


@facade_api("xla")
@_documented
def descend(params, slopes, rate=0.5, implementation=None):
    """y = params - rate slopes, each in a pytree."""
    return jax.tree.map(lambda p, s: sent.asarray(p) - rate * sent.asarray(s), params, slopes)


def _descend():
    def draw(rng):
        tree = lambda: {"w": rng.standard_normal((3, 5)), "b": [rng.standard_normal(5), None]}
        return tree(), tree()

    return facade(
        "descend",
        family="toy",
        category=OpCategory.OPTIMIZER,
        public=descend,
        cases=(Case("a dictionary", draw), Case("steep", draw, {"rate": 2.0})),
        dtypes=("float64", "float32"),
        operands=("params", "slopes"),
        differentiable=("params", "slopes"),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Laws


@pytest.mark.parametrize("name", ["softmax_lse", "mean_of_squares", "drop", "descend"])
@pytest.mark.parametrize("each", laws.LAWS.values(), ids=list(laws.LAWS))
def test_laws_of_declarations(declared, each, name):
    op = declared[name]
    for case, dtype in zip(op.cases, op.dtypes, strict=False):
        if each.applies(op, dtype) is None:
            each.check(Example(op, case, dtype))


def _backward_of(fun, *args):
    """The parameters `outputs` of the calls of a backward primitive, and how many operands they have."""
    from baracuda_jax._core import compat

    jaxpr = jax.make_jaxpr(fun)(*args)
    found = [e for e in compat.equations(jaxpr) if e.primitive.name.endswith("_backward")]
    return [(e.params["outputs"], len(e.invars)) for e in found]


def test_a_cotangent_that_is_a_symbolic_zero_is_no_operand(declared):
    x = sent.ones((3, 5))
    of = lambda take: lambda x: jnp.sum(take(*softmax_lse(x)))
    assert _backward_of(jax.grad(of(lambda y, lse: y)), x) == [(("y",), 2)]
    assert _backward_of(jax.grad(of(lambda y, lse: lse)), x) == [(("lse",), 2)]
    assert _backward_of(jax.grad(of(lambda y, lse: y * lse[:, None])), x) == [(("y", "lse"), 3)]
    for fun in (bj.var, bj.std):
        assert _backward_of(jax.grad(lambda x, fun=fun: fun(x, 1).sum()), x) == [(("y",), 4)]


@pytest.mark.parametrize("fun, of_numpy", [(bj.var, jnp.var), (bj.std, jnp.std)], ids=["var", "std"])
@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_the_mean_of_a_variance_has_a_gradient(fun, of_numpy, implementation):
    x = sent.asarray(np.random.default_rng(0).standard_normal((4, 5)))

    def joined(y, mean, *_):
        return jnp.sum(jnp.sin(y) * mean + mean**3)

    function = lambda x: joined(*fun(x, 1, return_residuals=True, implementation=implementation))
    theirs = lambda x: joined(of_numpy(x, 1), x.mean(1))
    both = jax.jit(
        lambda x: [(jax.grad(f)(x), jax.jvp(f, (x,), (x,))[1], jax.hessian(f)(x)) for f in (function, theirs)]
    )
    for got, want in zip(*both(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_backward_functions_take_the_cotangents_that_there_are(declared):
    op, x = declared["softmax_lse"], sent.arange(6.0).reshape(2, 3)
    y, lse = softmax_lse(x)
    pull = jax.vjp(softmax_lse, x)[1]
    close(op.vjp(x, y), pull((y, sent.zeros(2)))[0], "float64")
    close(op.vjp(x, None, lse), pull((sent.zeros((2, 3)), lse))[0], "float64")


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("name", ["softmax_lse", "var"])
def test_gradients_of_several_outputs_on_shards(declared, name, kind):
    """On shards of rows, and for a variance of what is reduced too."""
    x = np.random.default_rng(0).standard_normal((8, 16))
    fun = {"softmax_lse": softmax_lse, "var": functools.partial(bj.var, axis=1, return_residuals=True)}[name]
    loss = lambda x: sum(jnp.sum(jnp.sin(y)) for y in fun(x))
    both = lambda x: (fun(x), jax.grad(loss)(x), jax.jvp(fun, (x,), (x,))[1])
    over = sharded.mesh(kind)
    want = jax.jit(both)(sent.asarray(x))
    for spec in (P("d", None), P(None, "d")):
        with jax.set_mesh(over):
            compiled = jax.jit(both).lower(jax.device_put(x, NamedSharding(over, spec))).compile()
            got = compiled(jax.device_put(x, NamedSharding(over, spec)))
        jax.tree.map(lambda a, b: close(a, b, "float64"), got, want)
        if spec == P("d", None):
            assert not sharded.collectives(compiled.as_text())


# ---------------------------------------------------------------------------------------------------------------------
# Operands updated in place


ALIASED = [
    e for e in sharded.SHARDED if len(OPS[e.op].aliases) == 1 and e.specs[0] == e.out
]  # elsewhere the operand is gathered


@pytest.mark.parametrize("kind", ["auto", "explicit"])
@pytest.mark.parametrize("each", ALIASED, ids=str)
def test_operands_are_updated_in_place_on_shards(each, kind):
    over = sharded.mesh(kind)
    args = sharded.put(each.args, over, each.specs)
    shard = jax.ShapeDtypeStruct(args[0].sharding.shard_shape(args[0].shape), args[0].dtype)
    with jax.set_mesh(over):
        compiled = jax.jit(each.fun, donate_argnums=0).lower(*args).compile()
        assert laws.values.in_place(compiled.as_text(), shard)
        close(compiled(*args), each.fun(*map(sent.asarray, each.args)), "float32")


# ---------------------------------------------------------------------------------------------------------------------
# Tables and errors


def test_tables_say_who_computes(declared):
    assert row(declared["softmax_lse"])[4:] == ("none: xla computes",) * 2
    name, *_, on_cpu, _ = row(declared["mean_of_squares"])
    assert (name, on_cpu) == ("mean_of_squares (square + mean)", "forward, tangent, backward")


def test_plans_name_the_library(declared, monkeypatch):
    """On CUDA; elsewhere XLA computes. A plan of the derivative takes the cotangents of both outputs."""
    from baracuda_jax._core import plan, traced

    for module in (plan, traced):
        monkeypatch.setattr(module, "public", lambda: {"softmax_lse": softmax_lse})
    types = jax.ShapeDtypeStruct((3, 5), jnp.float32)
    plan = bj.plan("softmax_lse", types)
    assert (plan.backend, plan.targets, plan.workspace_bytes) == ("xla", (), 0)
    assert plan.why == "there is no kernel; xla computes"
    declared["softmax_lse"].__dict__["library"] = "cudnn"
    try:
        assert [bj.plan("softmax_lse", types, platform=p).sku.backend for p in ("cuda", "cpu")] == ["cudnn", "xla"]
    finally:
        declared["softmax_lse"].__dict__["library"] = "xla"
    x = sent.arange(15, dtype=jnp.float32).reshape(3, 5)
    want = jax.vjp(softmax_lse, x)[1]((x, x[:, 0]))[0]
    close(plan.backward(x, x, x[:, 0]), want, "float32")


def test_a_kernel_that_is_not_there_is_refused_by_name_only(declared):
    x, boxes = sent.ones((2, 3)), sent.ones((2, 4))
    with pytest.raises(
        ValueError, match="softmax_lse: implementation='native', but the op has no kernel; xla computes it"
    ):
        softmax_lse(x, implementation="native")
    with bj.prefer("native"):
        same_bits(softmax_lse(x)[0], softmax_lse(x, implementation="xla")[0])
        assert bj.plan("box_iou", boxes, boxes).backend == "xla"
    with pytest.raises(ValueError, match="box_iou: implementation='native', but the op has no kernel; xla computes it"):
        bj.plan("box_iou", boxes, boxes, implementation="native")


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(outputs=("lse",)), "outputs must be the first of the results y, lse, got lse"),
        (dict(library=None), "kernels has no targets, and library does not name who computes it"),
        (dict(kernels={"forward": ("sort",)}), "kernels names targets of forward, which has no native body"),
    ],
)
def test_a_declaration_that_contradicts_itself_fails(monkeypatch, changes, message):
    inner = declaration.declare
    monkeypatch.setitem(globals(), "declare", lambda name, **kw: inner(f"{name}_broken", **kw | changes))
    with pytest.raises(ValueError, match=f"^softmax_lse_broken: the declaration is incomplete: .*{message}"):
        _softmax_lse()


def test_a_composed_op_names_ops():
    with pytest.raises(ValueError, match="made_of has cube_root_of, which is no declared op"):
        compose("broken", family="toy", category=OpCategory.REDUCTION, public=mean_of_squares, dtypes=("float32",),
                cases=(Case("one", _normal((2,))),), operands=("x",), differentiable=("x",), made_of=("cube_root_of",))  # fmt: skip
