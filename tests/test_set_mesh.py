"""Under `jax.set_mesh`, arrays that no mesh knows, and arrays sharded along any dimension, give what arrays on one device give.

In full, each operand of each case is sharded along each dimension; a sample takes few of them."""

import functools
import itertools
import math
import types
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import Example, forget_traces, kernels_of, usual_dtype
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from laws.set_mesh import UNPLACED, Called, along, dimensions, unplaced
from sharded import SHARDED, devices, mesh

import baracuda_jax as bj
from baracuda_jax._core import compat, explicit
from baracuda_jax._core.op import OPS

KINDS = ("auto", "explicit")


@pytest.fixture(autouse=True)
def _several_devices():
    if len(devices()) < 8:
        pytest.skip("needs eight devices")


def _is_chosen(text, one_in, config):
    tier, name = config.tier, text.split()[0]
    return name in tier.ops or any(zlib.crc32(text.encode()) % one_in == seed % one_in for seed in tier.seeds)


# ---------------------------------------------------------------------------------------------------------------------
# Calls: every case of every op, and what the cases leave out


def _of_case(op, case):
    example = Example(op, case, "float64" if "float64" in op.dtypes else usual_dtype(op))
    fun = functools.partial(example.public, implementation=kernels_of(op))
    return Called(f"{op.name} {case.name}", fun, example.args, example.moving if example.has_derivative else ())


def _draw(*shape):
    return np.random.default_rng(len(shape)).permutation(np.linspace(-2, 2, math.prod(shape))).reshape(shape)


def _others():
    """Functions that are made of ops, options that flatten, and small operands that say where."""
    x, few, part = _draw(8, 16), np.round(_draw(8, 16)), np.linspace(0, 1, 8)
    of = lambda name, *args, moving=(0,), fun=None, **options: Called(
        f"{name} {'of ' + str(len(args)) if fun is None else 'again'} {'-'.join(options)}".strip(),
        functools.partial(fun or getattr(bj, name), **options, implementation="native"), args, moving,
    )  # fmt: skip
    none = ()
    edges = np.linspace(-1, 1, 8)
    histogramdd = lambda *args, implementation: bj.histogramdd(
        args[0], 4, ((-2.0, 2.0),) * 4, *args[1:], implementation=implementation
    )[0]
    positions = np.arange(16)[::-1].copy()
    search = lambda a, v, order, implementation: bj.searchsorted(a, v, sorter=order, implementation=implementation)
    yield of("histogramdd", _draw(8, 4), _draw(8), moving=(1,), fun=histogramdd)
    yield of("histogram", x, edges, moving=none, density=True)
    yield of("histogram", x, moving=none, bins=4)
    yield of("digitize", x, edges[::-1].copy(), moving=none)
    yield of("searchsorted", _draw(16), _draw(8), positions, moving=none, fun=search)
    yield of("concat", _draw(8, 4, 4), axis=1)
    yield of("roll", x, shift=5)
    yield of("argmax", x, moving=none, keepdims=True)
    yield of("nanmedian", x, keepdims=True)
    yield of("quantile", x, part, moving=(0, 1))
    yield of("nanquantile", x, part, moving=(0, 1), axis=1)
    yield of("nonzero", few, moving=none, size=20)
    yield of("unique", few, return_index=True, return_inverse=True, return_counts=True, size=8)
    yield of("unique", few, return_index=True, return_inverse=True, return_counts=True, axis=1, size=8)
    yield of("unique_consecutive", few, return_inverse=True, return_counts=True, size=80)
    yield of("unique_consecutive", few, return_inverse=True, axis=1, size=8)
    yield of("repeat_interleave", x, np.arange(128) % 3, total_repeat_length=200)
    yield of("repeat_interleave", x, repeats=3, axis=1)
    yield of("repeat_interleave_backward", _draw(16, 8), np.full(8, 2), axis=0)
    yield of("glu_backward", x, _draw(4, 16), moving=(0, 1), axis=0)
    yield of("dynamic_update_slice", x, _draw(4, 8), np.array([2, 4]), moving=(0, 1))
    yield of("dynamic_quantize", _draw(8, 32), moving=none, group_size=8)


CALLS = (*(_of_case(op, case) for op in OPS.values() for case in op.cases), *_others())


def _is_wrong_in_xla(call, operand, kind, program):
    """Where a spatial axis is sharded, XLA adds up a convolution's weight gradient over the idle axis of the mesh too."""
    is_library = call.name.startswith(("conv1d", "conv2d", "conv3d", "conv_transpose"))
    return is_library and (operand, kind, program) == (0, "auto", "gradient")


def pytest_generate_tests(metafunc):
    if "operand" in metafunc.fixturenames:
        found = [
            pytest.param(call, *where, kind, program, id=f"{call}-{where[0]}-{where[1]}-{kind}-{program}")
            for call in CALLS
            for kind in KINDS
            for where in dimensions(call, kind)
            for program in call.programs
            if not _is_wrong_in_xla(call, where[0], kind, program)
        ]
        metafunc.parametrize(
            "call, operand, dimension, kind, program", [c for c in found if _is_chosen(c.id, 128, metafunc.config)]
        )
    if "sharded" in metafunc.fixturenames:
        found = [
            pytest.param(e, kind, program, id=f"{e}-{kind}-{program.replace(' ', '_')}")
            for e, kind, program in itertools.product(SHARDED, KINDS, UNPLACED)
            if e.moving or program != "gradient"
        ]
        metafunc.parametrize("sharded, kind, program", [c for c in found if _is_chosen(c.id, 128, metafunc.config)])


def test_arrays_that_no_mesh_knows(sharded, kind, program):
    unplaced(sharded, kind, program)


def test_any_operand_sharded_along_any_dimension(call, operand, dimension, kind, program):
    along(call, operand, dimension, kind, program)


# ---------------------------------------------------------------------------------------------------------------------
# The compiler's tiles


def _arg(shape, sharding):
    """As the compiler shows an argument: it knows tiles and devices."""
    tiles = sharding and types.SimpleNamespace(
        _hlo_sharding=sharding._to_xla_hlo_sharding(len(shape)),
        _device_assignment=tuple(devices()[: sharding.num_devices]),
    )
    return types.SimpleNamespace(shape=shape, sharding=tiles)


@pytest.mark.parametrize("sizes", [(8,), (4, 2), (2, 4), (2, 2, 2), (6,), (2, 3), (3, 2), (7,)], ids=str)
@pytest.mark.parametrize("is_known", [True, False], ids=["its mesh", "no mesh"])
def test_tiles_are_told_without_a_mesh(sizes, is_known):
    names, total = "abc"[: len(sizes)], math.prod(sizes)
    over = jax.make_mesh(
        sizes, tuple(names), devices=devices()[:total], axis_types=(jax.sharding.AxisType.Auto,) * len(sizes)
    )
    specs = [P(), P(None, names[0]), P(names[-1]), P(tuple(names)), P(None, tuple(reversed(names)))]
    args = [_arg((48, 56 * total), NamedSharding(over, spec)) for spec in specs]
    found, told = compat.placed(
        over if is_known else jax.sharding.Mesh(np.empty((), object), ()), [*args, _arg((5,), None)]
    )
    assert (found == over) == is_known or sizes == (7,)
    assert told[-1] == (None,)
    for arg, spec in zip(args, told, strict=False):
        assert len(spec) == 2
        mine = NamedSharding(found, P(*spec))._to_xla_hlo_sharding(2)
        assert mine == arg.sharding._hlo_sharding


def test_tiles_that_are_parts_of_an_axis():
    x = _draw(8, 16)
    placed = jax.device_put(x.ravel(), NamedSharding(mesh("auto"), P("d")))
    fun = lambda x: bj.cumsum(x.reshape(2, 64), 1, implementation="native")
    np.testing.assert_allclose(jax.jit(fun)(placed), np.cumsum(x.reshape(2, 64), 1), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------------
# Reshapes on explicit axes

RESHAPES = (
    # shape, how it is sharded, new shape, how that is
    ((8, 16), P("d"), (-1,), P("d")),
    ((8, 16), P(None, "d"), (-1,), P(None)),
    ((8, 16), P("d", "e"), (2, 4, 16), P(None, None, "e")),
    ((8, 16), P("d", "e"), (4, 2, 16), P("d", None, "e")),
    ((8, 16), P(("d", "e")), (128,), P(("d", "e"))),
    ((1, 8, 3), P(None, "d"), (24,), P("d")),
    ((24,), P("d"), (1, 8, 3), P(None, "d", None)),
    ((4, 6, 2), P("d", None, "e"), (24, 2), P("d", "e")),
    ((4, 6, 2), P("d", None, "e"), (4, 12), P("d", None)),
    ((0, 8), P(None, "d"), (8, 0), P(None, None)),
)


@pytest.mark.parametrize("shape, spec, new, want", RESHAPES, ids=str)
def test_a_reshape_keeps_what_it_can(shape, spec, new, want):
    over = mesh("explicit", axes=2)
    x = jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(over, spec))
    with jax.set_mesh(over):
        y = jax.eval_shape(lambda x: explicit.reshape(x, *new), x)
    assert y.shape == np.empty(shape).reshape(new).shape
    assert y.sharding.spec == want


@pytest.mark.parametrize(
    "name, way, kind, program",
    [
        ("cumsum", "features", "auto", "forward"),
        ("cumsum", "features", "explicit", "as they come"),
        ("segment_max", "rows", "auto", "made inside"),
    ],
)
def test_tiles_read_by_a_mesh_that_all_programs_have_are_found(monkeypatch, name, way, kind, program):
    """A fault that is planted: the mesh of the program's arguments, which may have none."""
    case = next(e for e in SHARDED if (e.op, e.way) == (name, way))
    forget_traces()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(compat, "placed", lambda mesh, args: (mesh, [arg.sharding.spec for arg in args]))
            with pytest.raises((AssertionError, AttributeError, ValueError, jax.errors.JaxRuntimeError)):
                unplaced(case, kind, program)
    finally:
        forget_traces()
    unplaced(case, kind, program)
