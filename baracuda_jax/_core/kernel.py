"""The call of one FFI target, with the types and the sharding that its dimensions say."""

import itertools
import string

import jax
import jax.numpy as jnp
import numpy as np

from . import compat
from .library import PREFIX

_kernel = compat.Primitive("baracuda_kernel")
_kernel.multiple_results = True


def kernel(target, dims, *operands, out, workspace=None, aliases=(), **attributes):
    """Calls FFI target `baracuda.<target>`.

    `dims` names the dimensions: "...nd, ...n -> ...sd". Equal letters are one dimension; dimensions under the dots are
    batches. An operand may have fewer of these than the others: each of its batches then serves several of theirs. Results
    are given in `out`, as ShapeDtypeStructs; they have every batch dimension. Arrays that are sharded along batch
    dimensions stay so, without communication.

    `workspace` is the number of bytes of scratch memory, for each batch, that a CUDA handler gets as its first result; a
    target that never needs any has none.

    `aliases` has pairs (operand, result) that may be one array: where nobody else reads the operand the kernel finds the
    result where that was. Where it is not so the kernel copies. Such an operand is not reshaped, since XLA would copy it:
    operands without batches are repeated instead, so they should be small."""
    sides = [[term.strip() for term in side.split(",")] for side in dims.split("->")]
    core_in, core_out = ([tuple(term.replace("...", "")) for term in side] for side in sides)
    for term, core, x in zip(sides[0], core_in, operands, strict=True):
        if x.ndim < len(core) or (x.ndim > len(core) and not term.startswith("...")):
            raise ValueError(
                f"kernel {target}: an operand of rank {x.ndim} came for the dimensions {term!r}; dots before them leave "
                "room for batches, those of vmap and of shards"
            )
    batches = [operand.ndim - len(core) for operand, core in zip(operands, core_in, strict=True)]
    ones = _extra_batches(batches, operands)
    most = max(batches)
    if ones and aliases:
        shape, ones = operands[aliases[0][0]].shape[:most], 0
        operands = [x if n else jnp.broadcast_to(x, (*shape, *x.shape)) for x, n in zip(operands, batches, strict=True)]
    if workspace is not None:
        out = [jax.ShapeDtypeStruct((*out[0].shape[:most], workspace), jnp.uint8), *out]
        core_out = [("workspace",), *core_out]
    widen = lambda shape: (*shape[:most], *(1,) * ones, *shape[most:])
    operands = [x.reshape(widen(x.shape)) if ones and n == most else x for x, n in zip(operands, batches, strict=True)]
    results = _kernel.bind(
        *operands,
        target=target,
        dims_in=tuple(_labels(x.ndim, core) for x, core in zip(operands, core_in, strict=True)),
        dims_out=tuple(_labels(len(o.shape) + ones, core) for o, core in zip(out, core_out, strict=True)),
        out=tuple((widen(o.shape), jnp.dtype(o.dtype)) for o in out),
        attributes=tuple(sorted(attributes.items())),
        aliases=tuple(aliases),
    )
    results = [result.reshape(o.shape) if ones else result for result, o in zip(results, out, strict=True)]
    return results if workspace is None else results[1:]


def workspaces(jaxpr):
    """(target, bytes of workspace) of every call of `kernel` in a jaxpr."""
    return [
        (e.params["target"], e.outvars[0].aval.size if e.params["dims_out"][0][-1] == "workspace" else 0)
        for e in compat.equations(jaxpr)
        if e.primitive is _kernel
    ]


def _extra_batches(batches, operands):
    """XLA cuts every operand along the first k dimensions, k being the number of batch dimensions, except those that have
    fewer than k. So that an operand without batches is left whole, the others get batch dimensions of size 1 until k is
    more than its rank."""
    most, smallest = max(batches), min(batches)
    if smallest == most or smallest > 0:
        return 0
    whole = max(x.ndim for x, n in zip(operands, batches, strict=True) if n == 0)
    return max(0, whole + 1 - most) if all(n in (0, most) for n in batches) else 0


def _labels(rank, core):
    return (*(f"batch{i}" for i in range(rank - len(core))), *core)


def _batch_rank(dims_in):
    """The number of leading dimensions that XLA may cut: batch dimensions that all operands with any have."""
    counts = [sum(d.startswith("batch") for d in dims) for dims in dims_in]
    common = min((c for c in counts if c > 0), default=0)
    whole = [len(dims) for dims, c in zip(dims_in, counts, strict=True) if c == 0]
    return common if all(rank < common for rank in whole) else 0


def _types(*avals, dims_in, dims_out, out, **_):
    """A result's dimension is sharded as the first operand's dimension of that name is."""
    entry = {}
    for aval, dims in zip(avals, dims_in, strict=True):
        for dim, spec in zip(dims, aval.sharding.spec, strict=True):
            if entry.get(dim) is None:
                entry[dim] = spec
    return [
        compat.with_type(avals, shape, dtype, [entry.get(dim) for dim in dims])
        for (shape, dtype), dims in zip(out, dims_out, strict=True)
    ]


def _sharding_rule(ctx, dims_in, dims_out, batch_rank):
    sizes = {}
    for aval, dims in zip((*ctx.avals_in, *ctx.avals_out), (*dims_in, *dims_out), strict=True):
        sizes |= zip(dims, aval.shape, strict=True)
    if not all(isinstance(size, int) for size in sizes.values()):
        return None  # a rule has sizes, which a program exported for any size has not
    factor = dict(zip(sizes, _factor_names(), strict=False))
    side = lambda many: ", ".join(f"[{', '.join(factor[d] for d in dims)}]" for dims in many)
    whole = [factor[dim] for dim in sizes if not (dim.startswith("batch") and int(dim[5:]) < batch_rank)]
    replicate = f" need_replication={{{', '.join(whole)}}}" if whole else ""
    extents = ", ".join(f"{factor[dim]}={size}" for dim, size in sizes.items())
    return f"#sdy.op_sharding_rule<({side(dims_in)})->({side(dims_out)}) {{{extents}}}{replicate}, custom>"


def _factor_names():
    """Shardy writes its factors i, j, ... z, z_1, z_2, ..."""
    yield from string.ascii_lowercase[8:]
    yield from (f"z_{i}" for i in itertools.count(1))


def _lower(ctx, *operands, target, dims_in, dims_out, out, attributes, aliases):
    batch_rank = _batch_rank(dims_in)
    extra = {}
    if batch_rank:
        extra["mhlo.frontend_attributes"] = compat.ir.DictAttr.get(
            {"num_batch_dims": compat.ir.StringAttr.get(str(batch_rank))}
        )
        if rule := _sharding_rule(ctx, dims_in, dims_out, batch_rank):
            extra["sdy.sharding_rule"] = compat.ir.Attribute.parse(rule)
    shared = {"operand_output_aliases": dict(aliases)} if aliases else {}
    call = jax.ffi.ffi_lowering(PREFIX + target, extra_attributes=extra, **shared)
    return call(ctx, *operands, **{name: _attribute(value) for name, value in attributes})


def _attribute(value):
    """FFI attributes are typed: int64, float64, bool, str and arrays of int64."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, tuple):
        return np.asarray(value, np.int64)
    return np.int64(value) if isinstance(value, int) else np.float64(value)


_kernel.def_impl(compat.apply(_kernel))
_kernel.def_abstract_eval(_types)
compat.register_lowering(_kernel, _lower)
