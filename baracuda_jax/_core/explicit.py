"""Plain JAX on arrays that are sharded along explicit axes of a mesh.

There the types of operands say how a result is sharded. Where they do not, as in most reshapes, JAX raises; here what must
be whole is gathered first. Arrays without explicit axes go through as they are."""

import functools
import itertools
import math

import jax
from jax.sharding import PartitionSpec as P


def is_sharded(x):
    return any(entry is not None for entry in jax.typeof(x).sharding.spec)


def whole(x, axes=None):
    """x, gathered along these axes, counted from the first; by default along all."""
    spec = jax.typeof(x).sharding.spec
    kept = [None if axes is None or i in axes else entry for i, entry in enumerate(spec)]
    return jax.sharding.reshard(x, _with(x, kept)) if is_sharded(x) and kept != [*spec] else x


def first_dimensions(types, y):
    """The spec of y whose first dimensions are sharded as those of the first type that is sharded, as far as sizes agree."""
    first = next((x for x in types if any(x.sharding.spec)), None)
    if first is None:
        return (None,) * y.ndim
    alike = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first.shape, y.shape, strict=False)))
    return (*first.sharding.spec[: len(alike)], *(None,) * (y.ndim - len(alike)))


def on_mesh(y, operands, spec):
    """The type y, with this spec on the mesh that one of the operands is on."""
    meshes = (jax.typeof(x).sharding.mesh for x in operands)
    mesh = next((mesh for mesh in meshes if mesh.explicit_axes), None)
    return y if mesh is None else y.update(sharding=jax.sharding.NamedSharding(mesh, P(*spec)))


def like(x, other, count):
    """x, with so many first dimensions sharded as those of another array."""
    if not is_sharded(other):
        return x
    lead = jax.typeof(other).sharding.spec[:count]
    return jax.sharding.reshard(x, _with(other, [*lead, *(None,) * (x.ndim - count)]))


def mapped(fun, count):
    """fun, mapped over so many leading dimensions, which all operands have sharded as the first one that has any of them
    sharded: vmap asks for it. Other dimensions that share a mesh axis with these are gathered."""
    each = functools.reduce(lambda fun, _: jax.vmap(fun), range(count), fun)

    def alike(*operands):
        first = next((x for x in operands if any(jax.typeof(x).sharding.spec[:count])), None)
        if first is None:
            return each(*operands)
        lead = jax.typeof(first).sharding.spec[:count]
        taken = set(_names(lead))

        def one(x):
            rest = [None if taken & set(_names([entry])) else entry for entry in jax.typeof(x).sharding.spec[count:]]
            return jax.sharding.reshard(x, _with(first, [*lead, *rest]))

        return each(*map(one, operands))

    return alike


def together(arrays):
    """A tree of arrays, all on the mesh that one of them is on: a loop that is mapped along an explicit axis asks for it."""
    first = next((x for x in jax.tree.leaves(arrays) if not jax.typeof(x).sharding.mesh.empty), None)
    if first is None:
        return arrays
    return jax.tree.map(lambda x: jax.sharding.reshard(x, _with(first, jax.typeof(x).sharding.spec)), arrays)


def _names(spec):
    """The mesh axes of a spec."""
    return [name for entry in spec if entry for name in (entry if isinstance(entry, tuple) else (entry,))]


def take(x, index):
    """x[index] on every device, of indices in bounds, also from rows that are on several."""
    sharding = _with(x, [None] * x.ndim) if is_sharded(x) else None
    return x.at[index].get(mode="promise_in_bounds", out_sharding=sharding)


def reshape(x, *shape):
    """x.reshape(*shape). Of the dimensions that are merged or split, the first stays sharded, the others are gathered."""
    if -1 in shape:
        known = math.prod(size for size in shape if size != -1)
        shape = tuple(x.size // max(known, 1) if size == -1 else size for size in shape)
    if not is_sharded(x):
        return x.reshape(shape)
    spec, sizes = jax.typeof(x).sharding.spec, jax.typeof(x).sharding.mesh.shape
    kept, after = [None] * x.ndim, [None] * len(shape)
    for old, new in _firsts(x.shape, shape):
        names = spec[old] if isinstance(spec[old], tuple) else (spec[old],)
        if spec[old] is not None and shape[new] % math.prod(sizes[name] for name in names) == 0:
            kept[old] = after[new] = spec[old]
    x = whole(x, [i for i, entry in enumerate(kept) if entry is None])
    return jax.lax.reshape(x, shape, out_sharding=_with(x, after))


def left_to_compiler(fun, types):
    """fun, where its operands are on explicit axes with the compiler left to place what it computes; its results then have
    these types."""

    def placed(*operands):
        axes = next((a for x in operands if (a := jax.typeof(x).sharding.mesh.explicit_axes)), ())
        if not axes:
            return fun(*operands)
        shardings = tuple(y.sharding for y in types)
        return jax.sharding.auto_axes(lambda *xs: tuple(fun(*xs)), axes=axes, out_sharding=shardings)(*operands)

    return placed


def _with(x, spec):
    return jax.typeof(x).sharding.update(spec=P(*spec))


def _firsts(old, new):
    """(i, j): the first dimensions of each group that becomes a group, dimensions of size 1 left out."""
    old, new = ([(i, size) for i, size in enumerate(shape) if size != 1] for shape in (old, new))
    while old and new:
        i, a = old.pop(0)
        j, b = new.pop(0)
        yield i, j
        while a != b and (old if a < b else new):
            if a < b:
                a *= old.pop(0)[1]
            else:
                b *= new.pop(0)[1]
