"""A declaration is complete, or it fails: at import, or in the one test here that says of each op what is missing."""

import jax
import jax.numpy as jnp
import pytest
import sent
from examples_of import Example, has_derivative, stacked, usual_dtype

import baracuda_jax
from baracuda_jax._core import compat
from baracuda_jax._core import op as declaration
from baracuda_jax._core.case import Case
from baracuda_jax._core.kernel import _batch_rank, _kernel, kernel
from baracuda_jax._core.op import Body, as_they_are, declare
from baracuda_jax._core.sku import OpCategory
from baracuda_jax.bench import cases


def missing(op):
    """What the declaration lacks that only shows where the op runs: rules of primitives, kernels, sharding, benchmarks."""
    kinds = ("forward", "tangent", "backward") if op.backward else ("forward",) if op.forward else ()
    for kind in kinds:
        p = getattr(op, kind)
        rules = {"batching": compat.batching.fancy_primitive_batchers, "derivative": compat.ad.primitive_jvps}
        rules |= {"transposition": compat.ad.primitive_transposes} if kind != "forward" else {}
        yield from (f"{p.name} has no rule of {name}" for name, table in rules.items() if p not in table)
    for kind, calls in _kernels_of_a_batch(op).items():
        if kind == "forward" and bool(op.aliases) != any(is_in_place for *_, is_in_place in calls):
            yield "its forward kernel calls and its declaration differ in what they write in place"
        for target, rank, _ in calls:
            if target not in (*op.kernels[kind], *op.sometimes):
                yield f"the {kind} kernels do not name {target}"
            if not rank:
                yield f"the {kind} call of {target} has no rule of sharding: its operands share no batch dimension"
        for target in set(op.kernels[kind]) - {target for target, *_ in calls}:
            yield f"the {kind} program does not call {target}"
    if op.name not in cases.OPS:
        yield "baracuda_jax/bench/cases has no case of it"


def _kernels_of_a_batch(op):
    """{kind: (target, number of dimensions along which XLA may cut the call, whether it is in place) of each call} where all
    operands are mapped."""
    e = Example(op, op.cases[0], usual_dtype(op))
    twice = lambda *arrays: [stacked([a] * 2) for a in arrays]
    programs = {"forward": (jax.vmap(e.call), twice(*e.args))}
    if has_derivative(op):
        at = lambda args: e.with_arguments(args).fun
        tangent = jax.vmap(lambda x, *args: jax.jvp(at(args), (x,), (x,))[1])
        backward = jax.vmap(lambda y, x, *args: jax.vjp(at(args), x)[1](y)[0])
        programs |= {"tangent": (tangent, twice(e.x, *e.args)), "backward": (backward, twice(e.y, e.x, *e.args))}
    found = {}
    for kind, (program, args) in programs.items():
        jaxpr = jax.make_jaxpr(program)(*args)
        for equation in compat.equations(jaxpr):
            if equation.primitive is getattr(op, kind):
                params = {name: value for name, value in equation.params.items() if name != "implementation"}
                native = compat.trace(op.bodies[kind].typed, [v.aval for v in equation.invars], params)
                found[kind] = [
                    (call.params["target"], _batch_rank(call.params["dims_in"]), bool(call.params["aliases"]))
                    for call in compat.equations(native)
                    if call.primitive is _kernel
                ]
    return found


def test_an_op_is_complete(op):
    assert list(missing(op)) == []


def test_a_public_backward_kernel(op):
    if op.name.endswith(("_split", "_lsq", "_folded", "_between", "median", "quantile")) or not op.differentiable:
        pytest.skip("it has another op's, or none")
    if op.name == "map_coordinates":
        pytest.skip("it has none: jax.vjp of the op is its gradient")
    if op.is_facade or op.made_of or (op.has_kernels and not op.kernels["backward"]):
        pytest.skip("JAX differentiates plain JAX, and what an op is made of")
    assert f"{op.name}_backward" in baracuda_jax.backward.__all__


# ---------------------------------------------------------------------------------------------------------------------
# What a broken declaration is told


def double(x, implementation=None):
    """Twice x.

    Formula:
        y = 2 x

    Args:
        x: floats.
        implementation: the backend.

    Returns:
        y.

    Raises:
        TypeError: for no array.

    Precision: x's.

    Source: none.
    """
    return declaration.OPS["double"](sent.asarray(x), implementation=implementation)


def _undocumented(x, implementation=None):
    """Twice x."""


def _native(x, dims="...n -> ...n"):
    return kernel("affine", dims, x, out=[jax.ShapeDtypeStruct(x.shape, x.dtype)], scale=2.0, shift=0.0)


def _whole(x, **_):
    """A kernel on all elements at once, whatever the batches."""
    return [_native(x.ravel(), "n -> n")[0].reshape(x.shape)]


TWICE = Body(lambda x, **_: (2 * x,), lambda x, **_: _native(x))
COMPLETE = dict(
    family="toy",
    category=OpCategory.UNARY_ELEMENTWISE,
    public=double,
    cases=(Case("vector", lambda rng: (rng.standard_normal(5),)),),
    dtypes=("float32",),
    operands=("x",),
    differentiable=("x",),
    forward=TWICE,
    tangent=TWICE,
    backward=TWICE,
    batched=as_they_are,
    cut="it is a toy",
    kernels=dict.fromkeys(("forward", "tangent", "backward"), ("affine",)),
)
CONSTANT = dict(differentiable=(), tangent=None, backward=None, kernels={"forward": ("affine",)})


@pytest.fixture
def toys(monkeypatch):
    monkeypatch.setattr(declaration, "OPS", {})


BROKEN = {
    "no sections": (dict(public=_undocumented), "the docstring of _undocumented has no section Formula; .* Source"),
    "an argument without a word": (dict(public=_undocumented), "_undocumented does not say what implementation is"),
    "no derivative, no reason": (CONSTANT, "x must be differentiable, or constant for a stated reason"),
    "no derivative, an empty reason": (CONSTANT | dict(constant={"x": " "}), "no reason is stated why x is constant"),
    "a derivative and a reason": (dict(constant={"x": "it is"}), "x must be differentiable, or constant .* not both"),
    "no backward": (dict(tangent=None, backward=None), "backward must be given, since something is differentiable"),
    "no tangent": (dict(tangent=None), "either tangent must be given, or linear"),
    "a residual of no one": (dict(residuals=("y", "z")), "residuals has z, which is none of x, y"),
    "no cases": (dict(cases=()), "there are no cases"),
    "no dtypes": (dict(dtypes=()), "there are no dtypes"),
    "no sharding rule, no reason": (dict(cut=""), "cut must be a sharding rule, or the reason why"),
    "no kernels": (dict(kernels={"forward": ("affine",)}), "does not name the targets of tangent; .* of backward"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_an_incomplete_declaration_fails(toys, broken):
    changes, message = BROKEN[broken]
    with pytest.raises(ValueError, match=f"^double: the declaration is incomplete: .*{message}"):
        declare("double", **COMPLETE | changes)
    assert not declaration.OPS


@pytest.mark.parametrize("part", ["batched", "cut", "public", "cases", "dtypes", "kernels"])
def test_a_declaration_that_leaves_a_part_out_fails(toys, part):
    with pytest.raises(TypeError, match=f"'{part}'"):
        declare("double", **{name: value for name, value in COMPLETE.items() if name != part})


def test_a_kernel_without_place_for_batches_fails(toys):
    body = Body(TWICE.reference, lambda x, **_: _native(x, "n -> n"))
    declare("double", **COMPLETE | dict(forward=body))
    assert double(sent.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="kernel affine: an operand of rank 2 came for the dimensions 'n'"):
        jax.vmap(double)(sent.ones((2, 3)))


def test_what_only_a_run_shows_is_told_of_each_op(toys):
    of = lambda **changes: list(missing(declare("double", **COMPLETE | changes)))
    no_benchmark = "baracuda_jax/bench/cases has no case of it"
    assert of() == [no_benchmark]
    assert of(forward=Body(TWICE.reference, _whole)) == [
        "the forward call of affine has no rule of sharding: its operands share no batch dimension",
        no_benchmark,
    ]
    assert of(tangent=Body(TWICE.reference, lambda x, **_: [2 * x])) == [
        "the tangent program does not call affine",
        no_benchmark,
    ]
    assert of(kernels=COMPLETE["kernels"] | {"backward": ("powi",)}) == [
        "the backward kernels do not name affine",
        "the backward program does not call powi",
        no_benchmark,
    ]


def test_a_complete_toy_is_an_op(toys):
    declare("double", **COMPLETE)
    x = sent.arange(6.0).reshape(2, 3)
    assert (jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(double(x) ** 2))))(x) == 8 * x).all()
