"""How an op is computed on shards of its operands.

The kernels see to batches by themselves (see kernel.py). For an op's other dimensions its declaration says more: which may
be cut, each shard being computed alone, and along which the shards' results must be combined, by collectives. It says so
with a label for each dimension of each operand and result. What has the same label is cut alike; sizes may be multiples.

A result that lacks the label of a dimension that is cut, of an operand that it is computed from, is summed over the shards,
unless these are combined along it.

On automatic axes of a mesh the compiler decides how a program is cut, and asks (custom_partitioning); on explicit axes the
operands' types say it (shard_map). Inside a shard_map the op is that of the shard.
"""

import dataclasses
import math
import string
from collections.abc import Callable, Mapping

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from . import compat
from .names import has_star, spelled


@dataclasses.dataclass(frozen=True)
class Partition:
    """labels    (names, types, params) -> for each array, by its name, the labels of its dimensions
    whole     labels of dimensions that are never cut
    combine   label -> {kind: (run, axes, *operands, **params) -> results}, where more than a sum is needed when this
              dimension is cut; `run` has the op's primitives by kind, and operands are this shard's. Labels that have one
              function are combined by one call, along the axes of them all; of others the first alone is cut
    without   label -> the starred operand that a shard goes without when this dimension is cut, since it is about all
    placed    ({label: mesh axes}, names, operands, **params) -> operands of this shard, of which one says where it is in the
              whole
    sizes     parameter -> the label of the dimension whose size it is: on a shard, that of the shard's part
    plain     whether this also holds for the op in plain JAX, which the compiler would cut worse by itself
    units     (names, types, params) -> {label: how many units the dimension has, such as blocks of bytes, which are not cut}
    """

    labels: Callable
    whole: frozenset[str] = frozenset()
    combine: Mapping[str, Mapping[str, Callable]] = dataclasses.field(default_factory=dict)
    without: Mapping[str, str] = dataclasses.field(default_factory=dict)
    placed: Callable | None = None
    sizes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    plain: bool = False
    units: Callable | None = None


@dataclasses.dataclass(frozen=True)
class Cut:
    """One primitive's call: its operands' names; the labels of operands, of results, and of what each result is computed
    from; and the shapes of operands and results."""

    partition: Partition
    kind: str
    names: tuple[str, ...]
    operands: tuple[tuple[str, ...], ...]
    results: tuple[tuple[str, ...], ...]
    sources: tuple[frozenset[str], ...]
    shapes: tuple[tuple[int, ...], ...]
    units: Mapping[str, int]

    @property
    def smallest(self):
        """{label: the smallest size of a dimension that has it}"""
        smallest = dict(self.units)
        for labels, shape in zip((*self.operands, *self.results), self.shapes, strict=True):
            for label, size in zip(labels, shape, strict=True):
                smallest[label] = min(size, smallest.get(label, size))
        return smallest

    def axes(self, specs, sizes):
        """{label: mesh axes}, from how operands are cut, and results where these are given too: along what no operand has,
        if the partition says how. Of two labels that share a mesh axis the first has it, and no dimension is cut into parts
        that are not equal."""
        axes, taken, smallest = {}, set(), self.smallest
        known = frozenset().union(*self.operands)
        made = {label for label, kinds in self.partition.combine.items() if self.kind in kinds}
        free = (known | made) - self.partition.whole
        combined = lambda label: self.partition.combine.get(label, {}).get(self.kind)
        for labels, spec in zip((*self.operands, *self.results), specs, strict=False):
            for label, entry in zip(labels, spec, strict=True):
                names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
                if not names or label in axes or label not in free or taken & set(names):
                    continue
                if combined(label) and {*map(combined, axes)} - {None, combined(label)}:
                    continue
                if smallest[label] % math.prod(sizes[name] for name in names) == 0:
                    axes[label] = names
                    taken |= set(names)
        return axes

    def specs(self, axes, side):
        return tuple(P(*(axes.get(label) for label in labels)) for labels in side)

    def local(self, run, axes, params):
        """The computation on a shard."""

        gone = {name.removeprefix("*") for label, name in self.partition.without.items() if label in axes}
        sizes = {name: axes[label] for name, label in self.partition.sizes.items() if label in axes}

        def fun(*operands):
            here = params | {name: params[name] // jax.lax.axis_size(over) for name, over in sizes.items()}
            operands = [
                x for x, name in zip(operands, self.names, strict=True) if name.rstrip(string.digits) not in gone
            ]
            if self.partition.placed:
                operands = self.partition.placed(axes, self.names, operands, **here)
            combine, names, left = None, (), dict(axes)
            for label, by_kind in self.partition.combine.items():
                if label in axes and by_kind.get(self.kind) and combine in (None, by_kind[self.kind]):
                    combine, names = by_kind[self.kind], (*names, *left.pop(label))
            outs = combine(run, names, *operands, **here) if combine else run[self.kind](*operands, **here)
            return tuple(self._sum(y, left, *of) for y, *of in zip(outs, self.results, self.sources, strict=True))

        return fun

    def _sum(self, y, axes, labels, sources):
        gone = [name for label in sorted(sources.difference(labels)) for name in axes.get(label, ())]
        return jax.lax.psum(y, tuple(gone)) if gone else y


def of_call(partition, kind, names_of, follows, params, operands, outs):
    """The cut of a call on `operands` with results `outs`, given as types; `names_of` gives the names of both."""
    names, results = names_of(params)
    count, names = len(operands), spelled(names, len(operands))
    results = spelled(results, len(outs)) if has_star(results) else results[: len(outs)]
    labels = [tuple(x) for x in partition.labels((*names, *results), (*operands, *outs), params)]
    known = dict(zip(names, labels[:count], strict=True))
    every = frozenset().union(*labels[:count])
    sources = (frozenset(known[follows[name]]) if name in follows else every for name in results)
    shapes = tuple(x.shape for x in (*operands, *outs))
    units = partition.units((*names, *results), (*operands, *outs), params) if partition.units else {}
    return Cut(partition, kind, names, tuple(labels[:count]), tuple(labels[count:]), tuple(sources), shapes, units)


def result_specs(cut, avals):
    """How the results are cut, on explicit axes."""
    return cut.specs(_explicit_axes(cut, avals), cut.results)


def _explicit_axes(cut, avals):
    if not _is_cut_explicitly(avals):
        return {}
    return cut.axes([a.sharding.spec for a in avals], _mesh_of(avals).shape)


def _is_cut_explicitly(avals):
    return any(entry is not None for a in avals for entry in a.sharding.spec)


def _mesh_of(avals):
    return next(a.sharding.mesh for a in avals if not a.sharding.mesh.empty)


def lower(ctx, cut, run, params, operands):
    """The results on shards, or None where the program is not cut, or not here."""
    if not any(cut.operands):
        return None
    if _is_cut_explicitly(ctx.avals_in):
        return _on_explicit_axes(ctx, cut, run, params, operands)
    if compat.is_cut_by_compiler(ctx):
        return compat.lower_fun(_when_asked(ctx, cut, run, params), multiple_results=True)(ctx, *operands)
    return None


def _on_explicit_axes(ctx, cut, run, params, operands):
    mesh, axes = _mesh_of(ctx.avals_in), _explicit_axes(cut, ctx.avals_in)
    specs = cut.specs(axes, cut.operands)

    def fun(*operands):
        operands = [jax.sharding.reshard(x, NamedSharding(mesh, spec)) for x, spec in zip(operands, specs, strict=True)]
        local = jax.shard_map(
            cut.local(run, axes, params),
            mesh=mesh,
            in_specs=specs,
            out_specs=cut.specs(axes, cut.results),
            check_vma=False,
        )
        return local(*operands)

    return compat.lower_fun(fun, multiple_results=True)(ctx, *operands)


def _when_asked(ctx, cut, run, params):
    """A call that the compiler asks how it may be cut."""

    def partition(mesh, args, results):
        mesh, specs = compat.placed(mesh, (*args, *results))
        axes = cut.axes(specs, mesh.shape)
        sharded = lambda side: tuple(NamedSharding(mesh, spec) for spec in cut.specs(axes, side))
        return mesh, _without_mesh(cut.local(run, axes, params)), sharded(cut.results), sharded(cut.operands)

    def uncut(*operands):
        return tuple(run[cut.kind](*operands, **params))

    fun = compat.custom_partitioning(uncut)
    terms, sizes = _rule(cut)
    known, kept = (dict.fromkeys(label for labels in side for label in labels) for side in (cut.operands, cut.results))
    whole = [label for label in known | kept if label in cut.partition.whole]
    fun.def_partition(
        partition,
        decode_shardings=False,
        sharding_rule=" -> ".join(map(", ".join, (terms[: len(cut.operands)], terms[len(cut.operands) :]))),
        reduction_factors=tuple(label for label in known if label not in kept and label not in whole),
        need_replication_factors=tuple(whole),
        **sizes,
    )
    return fun


def _without_mesh(fun):
    """The same without the mesh of who compiles, which would place its constants."""

    def on_shard(*operands):
        with compat.no_mesh():
            return fun(*operands)

    return on_shard


def _rule(cut):
    """Shardy's terms, and the sizes of their factors. A dimension that is a multiple of others of its label is a factor of
    theirs by one of its own."""
    sides = (*cut.operands, *cut.results)
    smallest, sizes = cut.smallest, {}

    def term(label, size):
        times = size // max(smallest[label], 1)
        if times <= 1:
            return label
        sizes[f"{label}_by{times}"] = times
        return f"({label} {label}_by{times})"

    terms = [
        [term(*of) for of in zip(labels, shape, strict=True)] for labels, shape in zip(sides, cut.shapes, strict=True)
    ]
    alone, every = frozenset().union(*terms), frozenset().union(*sides)
    sizes |= {label: count for label, count in cut.units.items() if label in every and label not in alone}
    return [" ".join(of) for of in terms], sizes
