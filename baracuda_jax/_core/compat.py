"""Every touch of JAX below its public surface, and what differs between its versions: this file alone."""

import functools
import sys

import jax
import numpy as np
from jax._src import dispatch, dtypes, sharding_impls
from jax._src.core import ShardingTypeError
from jax._src.cudnn import fused_attention_stablehlo as cudnn
from jax._src.interpreters import partial_eval
from jax._src.interpreters.batching import bdim_at_front
from jax._src.lax import lax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import Primitive
from jax.extend.random import define_prng_impl
from jax.interpreters import ad, batching, mlir, xla

__all__ = [
    "Primitive",
    "ShardingTypeError",
    "ad",
    "apply",
    "as_type",
    "batching",
    "bdim_at_front",
    "calling_module",
    "common_type",
    "cudnn_attention",
    "cudnn_head_dim",
    "custom_partitioning",
    "define_prng_impl",
    "equations",
    "instantiated",
    "ir",
    "is_cut_by_compiler",
    "lower_fun",
    "manual_axes",
    "no_mesh",
    "partitioned",
    "place_as",
    "placed",
    "read",
    "register_batcher",
    "register_lowering",
    "trace",
    "with_type",
    "without_dead_code",
]

ir = mlir.ir
lower_fun = mlir.lower_fun
register_lowering = mlir.register_lowering


def apply(primitive):
    """Runs a primitive outside jit: compiled on its own, and cached."""
    return functools.partial(xla.apply_primitive, primitive)


def register_batcher(primitive, rule):
    """rule(axis, args, dims, **params), where axis knows its size and, on an explicit mesh, its mesh axis."""
    batching.fancy_primitive_batchers[primitive] = rule


def partitioned(primitive):
    """Says that lowering a primitive may use custom_partitioning, which needs to know the devices."""
    dispatch.prim_requires_devices_during_lowering.add(primitive)


def is_cut_by_compiler(ctx):
    """Whether a program is lowered for several devices, on which the compiler places it and may ask how. It can't where the
    program is exported, for then nobody is there to answer."""
    context = ctx.module_context.axis_context
    several = isinstance(context, sharding_impls.ShardingContext) and context.num_devices > 1
    return several and not ctx.module_context.lowering_parameters.for_export


def placed(mesh, args):
    """The mesh and the specs by which the compiler has placed the arguments of a custom_partitioning, which has
    `decode_shardings=False`. The compiler knows tiles and no axes: the mesh is empty where no argument of the program has
    one, and tiles may be parts of an axis, as after a reshape. Then it is a mesh of as many axes as the number of devices
    has prime factors, in an order that tells all tiles."""
    devices = next((a.sharding._device_assignment for a in args if a.sharding is not None), tuple(mesh.devices.flat))
    for each in (mesh, *(_mesh_of(devices, sizes) for sizes in _factored(len(devices)))):
        specs = [_spec(each, a) for a in args]
        if None not in specs:
            return each, specs
    return each, [spec or (None,) * len(a.shape) for spec, a in zip(specs, args, strict=True)]


def _factored(n):
    """The prime factors of n, in each order."""
    if n == 1:
        yield ()
    for factor in (f for f in range(2, n + 1) if n % f == 0 and all(f % g for g in range(2, f))):
        yield from ((factor, *rest) for rest in _factored(n // factor))


def _mesh_of(devices, sizes):
    return jax.sharding.Mesh(np.array(devices).reshape(sizes), tuple(f"part{i}" for i in range(len(sizes))))


def _spec(mesh, arg):
    """One entry a dimension, or None where the axes of the mesh do not tell the tiles."""
    try:
        found = (
            () if arg.sharding is None else sharding_impls.parse_flatten_op_sharding(arg.sharding._hlo_sharding, mesh)
        )
    except (AssertionError, LookupError, NotImplementedError, StopIteration, ValueError):
        return None
    spec = tuple(found[0]) if found else ()
    return (*(entry or None for entry in spec), *(None,) * (len(arg.shape) - len(spec)))


def with_type(avals, shape, dtype, spec, is_weak=False):
    """The type of an array that shares the operands' mesh and manual axes. `spec` has one entry a dimension."""
    aval = next((a for a in avals if not a.sharding.mesh.empty), avals[0])  # constants may have no mesh
    sharding = aval.sharding.update(spec=jax.sharding.PartitionSpec(*spec))
    return aval.update(shape=tuple(shape), dtype=jax.numpy.dtype(dtype), weak_type=is_weak, sharding=sharding)


def place_as(x, aval):
    """x, sharded as the type says: on an explicit mesh a cotangent has its operand's type."""
    mesh, spec = aval.sharding.mesh, aval.sharding.spec
    is_other = not mesh.empty and mesh.explicit_axes and jax.typeof(x).sharding.spec != spec
    return jax.sharding.reshard(x, aval.sharding) if is_other else x


def manual_axes(aval):
    """The axes of an enclosing shard_map over which a value varies."""
    return aval.mat.varying


@functools.lru_cache(maxsize=4096)
def _trace(fun, avals, params, mesh, x64):
    return jax.make_jaxpr(functools.partial(fun, **dict(params)))(*avals)


def trace(fun, avals, params):
    """fun's jaxpr, from a trace that is cached. Its `out_avals` are the types of the results."""
    mesh = jax.sharding.get_abstract_mesh()
    return _trace(fun, tuple(avals), tuple(sorted(params.items())), mesh, jax.config.jax_enable_x64)


def instantiated(t):
    """A tangent or cotangent as an array. Zeros are computed, not sent to the device."""
    is_plain = type(t) is ad.Zero and t.aval.sharding.mesh.empty and not manual_axes(t.aval)
    return _zeros(t.aval) if is_plain else ad.instantiate_zeros(t)


@functools.partial(jax.jit, static_argnums=0, inline=True)
def _zeros(aval):
    return ad.instantiate_zeros(ad.Zero(aval))


def no_mesh():
    """A context without the mesh of the surroundings, in which operands have no sharding."""
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), ()))


def equations(jaxpr):
    """All equations of a jaxpr and of those inside it."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


def without_dead_code(jaxpr, is_used=None):
    """The jaxpr without equations whose results nobody uses, all of its own being used, or some; and of each input whether
    it is used."""
    return partial_eval.dce_jaxpr(jaxpr.jaxpr, list(is_used or [True] * len(jaxpr.jaxpr.outvars)))


def read(jaxpr):
    """All variables that the equations of a jaxpr, and of those inside it, or its results are computed from."""
    inner = [getattr(jaxpr, "jaxpr", jaxpr)]
    for equation in equations(jaxpr):
        for value in equation.params.values():
            inner += [
                getattr(j, "jaxpr", j)
                for j in (value if isinstance(value, tuple | list) else (value,))
                if hasattr(j, "eqns")
            ]
    atoms = (a for j in inner for a in (*j.outvars, *(x for equation in j.eqns for x in equation.invars)))
    return {a for a in atoms if not hasattr(a, "val")}


def as_type(x, dtype, is_weak):
    """x as an array of this dtype, weakly typed or not."""
    if x.dtype == dtype and jax.typeof(x).weak_type == is_weak:
        return x
    return lax._convert_element_type(x, dtype, is_weak)


def common_type(*values):
    """(dtype, whether it is weak) to which JAX promotes arrays and Python numbers."""
    return dtypes.result_type(*values, return_weak_type_flag=True)


# Where JAX calls the functions that its transformations are given.
_TRANSFORMATIONS = (
    "ad_checkpoint",
    "api",
    "api_util",
    "core",
    "custom_derivatives",
    "interpreters",
    "lax.control_flow",
    "linear_util",
    "pjit",
    "profiler",
    "shard_map",
    "source_info_util",
    "traceback_util",
    "tree",
    "tree_util",
    "util",
)


def calling_module(depth):
    """The name of the module that calls a function, `depth` frames above this one. Code of a transformation stands for who
    asked for the transformation."""
    frame = sys._getframe(depth + 1)
    while frame is not None and _transforms(name := frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
    return "" if frame is None else name


@functools.cache
def _transforms(module):
    return any(f"{module}.".startswith(f"jax._src.{part}.") for part in _TRANSFORMATIONS)


def cudnn_head_dim():
    """The largest head dimension for which programs can call cuDNN's attention; 0 where there is no cuDNN."""
    try:
        cudnn.check_cudnn_version()
    except RuntimeError:
        return 0
    return 256 if cudnn.check_compute_capability("9.0") else 128


def cudnn_attention(query, key, value, lengths, scale, is_causal, left, save):
    """cuDNN's attention of [batch, length, heads, d]: (y,) or, with `save`, y and lse, float32 [batch, heads, length].
    jax.nn rounds lse to the dtype of y."""
    kind = cudnn.MaskType.CAUSAL if is_causal else cudnn.MaskType.NO_MASK
    if lengths:
        kind = cudnn.MaskType.PADDING_CAUSAL if is_causal else cudnn.MaskType.PADDING
    out = cudnn.dot_product_attention(
        query, key, value, None, None, *lengths, scale=scale, mask_type=kind,
        sliding_window_length=None if left is None else left + 1, return_residual=save,
    )  # fmt: skip
    return tuple(out) if save else (out,)
