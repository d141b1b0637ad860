"""Faults of what is computed on shards."""

import dataclasses

import jax
from jax.sharding import PartitionSpec as P

from baracuda_jax._core import compat, derivatives, partition, primitive
from baracuda_jax._core import op as declaration
from baracuda_jax.random import _dropout, _vocabulary
from baracuda_jax.scan import _partition as _of_scans
from baracuda_jax.segment import _partition
from baracuda_jax.shape import _repeat_interleave

from .table import fault

COMMUNICATES = "test_sharding.test_communicates_what_the_table_says"


def sharded(op=None, way=None, kind=None, program=None, tier="changed", by=COMMUNICATES):
    given = {"way": way, "kind": kind, "program": program}
    return fault(by, op=op, tier=tier, **{name: value for name, value in given.items() if value})


@sharded("segment_sum", "rows", "auto", "forward")
@sharded("segment_mean", "rows", "auto", "tangent")
@sharded("segment_mean", "rows", "explicit", "tangent")
@sharded("prelu", "rows, a slope for each feature", "auto", "gradient")
@sharded("prelu", "rows, a slope for each feature", "explicit", "gradient")
def the_sum_over_shards_is_left_out(patch, op):
    patch.setattr(partition.Cut, "_sum", lambda cut, y, axes, labels, sources: y)
    patch.setattr(jax.lax, "psum", lambda x, axes: x)


@sharded("segment_max", "features", "explicit", "forward")
@sharded("segment_max", "features", "explicit", "gradient")
@sharded("elu", "rows", "explicit", "forward")
def results_have_the_wrong_sharding(patch, op):
    rule = partition.result_specs
    patch.setattr(partition, "result_specs", lambda *call: tuple(P(*(None,) * len(spec)) for spec in rule(*call)))


@sharded("segment_sum", "features", by="test_sharding.test_shard_map_over_all_axes")
def operands_keep_different_manual_axes(patch, op):
    for module in (declaration, derivatives, primitive):
        patch.setattr(module, "bind", lambda primitive, *operands, **params: primitive.bind(*operands, **params))


@sharded("segment_sum", "rows", "auto", "forward")
@sharded("segment_min", "features", "auto", "forward")
@sharded("segment_min", "features", "auto", "gradient")
def the_compiler_is_not_told(patch, op):
    patch.setattr(compat, "is_cut_by_compiler", lambda ctx: False)


@sharded("segment_max", "rows", "auto", "gradient")
@sharded("segment_max", "rows", "explicit", "gradient")
def rows_are_counted_on_the_shard(patch, op):
    patch.setattr(_partition, "arg_here", lambda arg, rows, axes: arg)


@sharded("segment_min", "rows", "auto", "forward")
def parts_are_combined_as_if_for_the_maximum(patch, op):
    extreme = _partition.extreme
    patch.setattr(_partition, "extreme", lambda x, axes, is_max: extreme(x, axes, True))


@sharded("cumsum", "the scanned axis", "auto", "forward")
@sharded("cumsum", "the scanned axis", "explicit", "gradient")
def every_shard_takes_itself_for_the_first(patch, op):
    patch.setattr(jax.lax, "axis_index", lambda axes: 0)


@sharded("linear_scan", "the scanned axis", "auto", "gradient")
@sharded("linear_scan", "the scanned axis", "explicit", "gradient")
@sharded("linear_scan", "the scanned axis", "auto", "tangent")
def the_state_before_a_shard_is_forgotten(patch, op):
    patch.setattr(_of_scans, "_shard_before", lambda x, axes, reverse: 0 * x[0])


@sharded("sort", "the sorted axis", "explicit", "forward")
@sharded("cummax", "the scanned axis", "explicit", "forward")
def a_whole_dimension_may_be_cut(patch, op):
    axes = partition.Cut.axes

    def of_all(cut, *call):
        return axes(dataclasses.replace(cut, partition=dataclasses.replace(cut.partition, whole=frozenset())), *call)

    patch.setattr(partition.Cut, "axes", of_all)


@sharded("logsumexp", "the reduced axis", "explicit", "forward")
@sharded("max", "the reduced axis", "auto", "forward")
def parts_of_shards_are_added_up(patch, op):
    local = partition.Cut.local

    def without_combine(cut, *call):
        return local(dataclasses.replace(cut, partition=dataclasses.replace(cut.partition, combine={})), *call)

    patch.setattr(partition.Cut, "local", without_combine)


@sharded("repeat_interleave", "repeats", "auto", "forward")
def repeats_are_summed_on_shards(patch, op):
    patch.setattr(_repeat_interleave, "_on_every_device", lambda x, implementation: x)


@sharded(kind="explicit", tier="default", by="test_sharding.test_batches_need_no_communication")
def nothing_is_taken_for_cut(patch, op):
    patch.setattr(partition, "_is_cut_explicitly", lambda avals: False)


@sharded("top_p_sampling", "the tokens", "auto", "forward")
@sharded("top_k_sampling", "the tokens", "explicit", "forward")
def tokens_are_counted_on_the_shard(patch, op):
    patch.setattr(jax.lax, "axis_index", lambda axes: jax.numpy.int32(0))


@sharded("min_p_sampling", "the tokens", "auto", "forward")
def masses_are_those_of_the_shard(patch, op):
    patch.setattr(_vocabulary, "_sum_over_shards", lambda found, over: _vocabulary._of_parts(
        _vocabulary._parts(*(found[..., i, :] for i in range(3)))
    ))  # fmt: skip


@sharded("dropout", "columns", "auto", "forward")
@sharded("dropout", "columns", "explicit", "gradient")
def each_shard_has_the_mask_of_the_first(patch, op):
    patch.setattr(_dropout, "_first_byte", lambda start, *_: start)
