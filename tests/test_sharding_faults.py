"""Each law of sharding is needed: a rule that is broken on purpose is caught by the law that the table names."""

import jax
import pytest
from examples_of import forget_traces
from jax.sharding import PartitionSpec as P
from laws.set_mesh import unplaced
from laws.sharding import communicates, shard_map_over_all_axes
from sharded import SHARDED, devices

from baracuda_jax._core import compat, partition
from baracuda_jax._core import op as declaration
from baracuda_jax.scan import _partition as _of_scans
from baracuda_jax.segment import _partition
from baracuda_jax.shape import _repeat_interleave

CASES = {(e.op, e.way): e for e in SHARDED}
FAULTS = {}
ERRORS = AssertionError, ValueError, TypeError, jax.errors.JaxRuntimeError


def fault(op, way, *programs, law=communicates):
    """`break_(patch)` breaks what the law checks of a case; each of the programs, (kind of mesh, program), must show it."""

    def enter(break_):
        for program in programs or [()]:
            FAULTS[" ".join(map(str, (break_.__name__, op, *program)))] = break_, law, CASES[op, way], program
        return break_

    return enter


@fault("segment_sum", "rows", ("auto", "forward"))
@fault("segment_mean", "rows", ("auto", "tangent"), ("explicit", "tangent"))
@fault("prelu", "rows, a slope for each feature", ("auto", "gradient"), ("explicit", "gradient"))
def the_sum_over_shards_is_left_out(patch):
    patch.setattr(partition.Cut, "_sum", lambda cut, y, axes, labels, sources: y)
    patch.setattr(jax.lax, "psum", lambda x, axes: x)


@fault("segment_max", "features", ("explicit", "forward"), ("explicit", "gradient"))
@fault("elu", "rows", ("explicit", "forward"))
def results_have_the_wrong_sharding(patch):
    rule = partition.result_specs
    patch.setattr(partition, "result_specs", lambda *call: tuple(P(*(None,) * len(spec)) for spec in rule(*call)))


@fault("segment_sum", "features", law=shard_map_over_all_axes)
def operands_keep_different_manual_axes(patch):
    patch.setattr(declaration, "bind", lambda primitive, *operands, **params: primitive.bind(*operands, **params))


@fault("segment_sum", "rows", ("auto", "forward"))
@fault("segment_min", "features", ("auto", "forward"), ("auto", "gradient"))
def the_compiler_is_not_told(patch):
    patch.setattr(compat, "is_cut_by_compiler", lambda ctx: False)


@fault("segment_max", "rows", ("auto", "gradient"), ("explicit", "gradient"))
def winners_are_rows_of_the_shard(patch):
    patch.setattr(_partition, "_winner_here", lambda winner, rows, axes: winner)


@fault("segment_min", "rows", ("auto", "forward"))
def parts_are_combined_as_if_for_the_maximum(patch):
    extreme = _partition.extreme
    patch.setattr(_partition, "extreme", lambda x, axes, is_max: extreme(x, axes, True))


@fault("cumsum", "the scanned axis", ("auto", "forward"), ("explicit", "gradient"))
def every_shard_takes_itself_for_the_first(patch):
    patch.setattr(jax.lax, "axis_index", lambda axes: 0)


@fault(
    "associative_linear_scan", "the scanned axis", ("auto", "gradient"), ("explicit", "gradient"), ("auto", "tangent")
)
def the_state_before_a_shard_is_forgotten(patch):
    patch.setattr(_of_scans, "_shard_before", lambda x, axes, reverse: 0 * x[0])


@fault("cumsum", "features", ("auto", "forward"), ("explicit", "as they come"), law=unplaced)
@fault("segment_max", "rows", ("auto", "made inside"), law=unplaced)
def tiles_are_read_by_a_mesh_that_all_programs_have(patch):
    patch.setattr(compat, "placed", lambda mesh, args: (mesh, [arg.sharding.spec for arg in args]))


@fault("repeat_interleave", "repeats", ("auto", "forward"))
def repeats_are_summed_on_shards(patch):
    patch.setattr(_repeat_interleave, "_on_every_device", lambda x, prefer: x)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "-"))
def test_a_fault_is_caught(monkeypatch, fault):
    break_, law, case, program = FAULTS[fault]
    if len(devices()) < 2:
        pytest.skip("needs several devices")
    forget_traces()
    try:
        with monkeypatch.context() as patch, pytest.raises(ERRORS):
            break_(patch)
            law(case, *program)
    finally:
        forget_traces()
    law(case, *program)
