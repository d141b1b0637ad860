"""Faults of what a kernel is given and gives, of kinds that are easily made."""

import jax
import jax.numpy as jnp

from .table import fault
from .ways import kernel_fault

VALUE = "test_value.test_value_is_the_oracles"


def of_kernel(targets, **changes):
    """A fault that is a change of a kernel's calls."""
    return lambda patch, op: kernel_fault(patch, targets, **changes)


def planted(*found_by, op, **claims):
    """Enters the fault that a function without arguments makes, under its name."""

    def enter(make):
        break_ = make()
        break_.__name__ = make.__name__
        return fault(*found_by, op=op, **claims)(break_) and make

    return enter


def _is_half(x):
    return x.dtype.itemsize == 2 and jnp.issubdtype(x.dtype, jnp.floating)


def _narrow(ys, *_, **__):
    """Where a sum of ones in 16 bits stops, or before."""
    return [jnp.minimum(y, jnp.asarray(256, y.dtype)) if _is_half(y) else y for y in ys]


def _replaced(i, change):
    """The operands, or results, with one of them changed."""
    return lambda xs: [change(x) if k == i else x for k, x in enumerate(xs)]


def _operand(i, change):
    return lambda *xs, **_: _replaced(i, change)(xs)


def _result(i, change):
    return lambda ys, *_, **__: _replaced(i, change)(ys)


# ---------------------------------------------------------------------------------------------------------------------
# Ties, NaN, zeros


def _from_the_end(target, axis):
    """Of equal elements the last comes first."""

    def results(ys, x, *_, **__):
        n = x.shape[axis]
        return [n - 1 - y if y.dtype == jnp.int32 else y for y in ys]

    turned = lambda x, *rest, **_: (jnp.flip(x, axis), *rest)
    return of_kernel(target, operands=turned, results=results)


@planted("test_sort.test_sorts_are_stable_and_keep_every_bit", op="sort", tier="changed", shape=(3, 97))
def a_sort_is_not_stable():
    return _from_the_end("sort", -1)


@planted("test_sort.test_the_first_extremum_wins_and_the_first_nan_before_it", op="argmax")
def the_last_extremum_wins():
    return _from_the_end("argextremum", -2)


@planted("test_sort.test_kthvalue_is_an_element_of_the_sort", op="kthvalue", tier="changed", shape=(3, 97))
def the_last_of_equal_ranks_is_selected():
    return _from_the_end("order_statistics", -1)


@planted("test_segment.test_ties", op="segment_max", tier="changed", implementation="native")
def the_last_of_rows_that_tie_wins():
    def turned(data, perm, offsets, **_):
        n, position = data.shape[-2], jnp.arange(perm.shape[-1])
        of = jnp.searchsorted(offsets, position, side="right") - 1
        ends = offsets[of] + offsets[jnp.minimum(of + 1, offsets.shape[-1] - 1)]
        return data[::-1], (n - 1 - perm[jnp.clip(ends - 1 - position, 0, n - 1)]).astype(perm.dtype), offsets

    def back(ys, data, *_, **__):
        n = data.shape[-2]
        return [jnp.where(y < n, n - 1 - y, y) if y.dtype == jnp.int32 else y for y in ys]

    return of_kernel("segment_max segment_min", operands=turned, results=back)


@planted("test_segment.test_ties", op="segment_max_split", tier="changed", implementation="native")
def ties_are_counted_as_one():
    return of_kernel("segment_max segment_min", results=_result(1, lambda n: jnp.minimum(n, jnp.ones_like(n))))


@planted("test_reduce.test_gradients_at_ties", op="max", tier="changed", implementation="native")
def the_maximum_passes_over_nan():
    hidden = lambda x: jnp.where(jnp.isnan(x), jnp.asarray(-jnp.inf, x.dtype), x)
    return of_kernel("reduce_extremum", operands=_operand(0, hidden))


@planted(
    "test_elementwise.test_unary_ops_are_torchs", op="clamp", tier="changed", name="clamp", implementation="native"
)
def a_clamped_nan_is_a_number():
    return of_kernel("clamp", results=_result(0, lambda y: jnp.where(jnp.isnan(y), jnp.zeros_like(y), y)))


@planted("test_reduce.test_signs_of_zeros", op="max", tier="changed", implementation="native")
def the_maximum_forgets_the_sign_of_zero():
    return of_kernel("reduce_extremum", results=_result(0, lambda y: jnp.where(y == 0, jnp.zeros_like(y), y)))


@planted("test_reduce.test_gradients_of_products_with_zeros", op="prod", tier="changed", implementation="native")
def zero_factors_are_not_counted():
    return of_kernel("reduce_prod", results=_result(2, jnp.zeros_like))


@planted(
    "test_segment.test_prod_gradient_is_exact_with_zeros", op="segment_prod", tier="changed", implementation="native"
)
def zero_factors_of_segments_are_not_counted():
    return of_kernel("segment_prod", results=_result(2, jnp.zeros_like))


@planted("test_unique.test_nan_is_last_and_one_value_or_many", op="unique", tier="changed", equal_nan=True)
def each_nan_is_a_value_of_its_own():
    return of_kernel("run_starts", attributes=lambda **_: {"equal_nan": False})


@planted(
    "test_scan.test_logcumsumexp_of_minus_infinity_is_no_nan",
    op="logcumsumexp",
    tier="changed",
    implementation="native",
)
def the_logarithm_of_nothing_is_nan():
    return of_kernel("logcumsumexp", results=_result(0, lambda y: jnp.where(jnp.isneginf(y), jnp.nan, y)))


@planted("test_scan.test_a_factor_before_the_first_element_multiplies_nothing", op="linear_scan", tier="changed")
def the_first_factor_multiplies_a_state_of_zero():
    return of_kernel("linear_scan", results=lambda ys, a, b, **_: [ys[0] + 0 * a[..., :1, :]])


# ---------------------------------------------------------------------------------------------------------------------
# Widths


@planted("test_value.test_half_types_accumulate_wide", op="segment_sum")
def sums_of_segments_stop_growing():
    return of_kernel("segment_sum", results=_narrow)


@planted("test_value.test_half_types_accumulate_wide", op="segment_mean")
def the_sum_of_a_mean_overflows():
    over = lambda y: jnp.where(y > 1000, jnp.asarray(jnp.inf, y.dtype), y) if _is_half(y) else y
    return of_kernel("segment_mean", results=_result(0, over))


@planted("test_scan.test_half_types_accumulate_wide", op="cumsum", tier="changed", implementation="native")
def a_scan_stops_growing():
    return of_kernel("cumsum", results=_narrow)


@planted("test_shape.test_half_precision_adds_up_in_float32", op="fold", tier="changed", implementation="native")
def the_sum_of_windows_stops_growing():
    return of_kernel("move_add", results=_narrow)


@planted("test_sort.test_cotangents_of_one_element_are_added", op="kthvalue", tier="changed", implementation="native")
def the_last_cotangent_of_an_element_replaces_the_others():
    return of_kernel("scatter_along", attributes=lambda **_: {"unique": True})


def _pairs_swapped(q):
    pairs = q.astype("int8").reshape(*q.shape[:-1], -1, 2)
    return pairs[..., ::-1].reshape(q.shape).astype(q.dtype)


@planted(VALUE, op="dynamic_quantize", tier="changed", case="packed", dtype="float32")
def the_two_values_of_a_byte_are_swapped():
    swap = lambda q: _pairs_swapped(q) if q.dtype.name.endswith("int4") else q
    return of_kernel("dynamic_quantize", results=_result(0, swap))


# ---------------------------------------------------------------------------------------------------------------------
# Indices, edges and empty segments


@planted("test_segment.test_all_ids_out_of_range", op="segment_sum", tier="changed", name="sum")
@planted(VALUE, op="segment_sum", tier="changed", case="dropped", dtype="float32")
def ids_out_of_range_are_clamped():
    def clamped(data, ids, *others, out, **_):
        return [data, jnp.clip(ids, 0, max(out[-1][0][-2] - 1, 0)).astype(ids.dtype), *others]

    return of_kernel("segment_sum", operands=clamped)


@planted(
    "test_histogram.test_ids_out_of_range_are_dropped",
    op="bincount",
    tier="changed",
    dtype="int32",
    implementation="native",
)
def negative_ids_count_from_the_end():
    wrapped = lambda x, out, **_: [jnp.where(x < 0, x + out[0][0][-1], x).astype(x.dtype)]
    return of_kernel("bincount", operands=wrapped)


@planted(VALUE, op="scatter_add", tier="changed", case="columns", dtype="float32")
def negative_positions_are_dropped():
    return of_kernel("scatter_add", attributes=lambda **_: {"wraps": False})


@planted("test_segment.test_empty_value", op="segment_max", tier="changed", name="max")
def empty_segments_are_zero():
    return of_kernel("segment_max", attributes=lambda **_: {"empty_bits": 0})


@planted("test_histogram.test_values_on_edges_and_next_to_them", op="histogram")
def the_last_bin_has_no_right_edge():
    def open_at_the_end(a, edges, *rest, **_):
        return jnp.where(a == edges[..., -1:], jnp.asarray(jnp.nan, a.dtype), a), edges, *rest

    return of_kernel("histogram", operands=open_at_the_end)


@planted(VALUE, op="searchsorted", tier="changed", case="right", dtype="float32")
def the_right_side_is_the_left():
    # Of whole numbers, some of which are equal.
    whole = lambda *xs, **_: [jnp.round(x) for x in xs]
    return of_kernel("searchsorted", operands=whole, attributes=lambda **_: {"right": False})


@planted("test_unique.test_positions_are_those_of_jax", op="nonzero", tier="changed", size=60)
def what_fills_the_indices_is_forgotten():
    return of_kernel("nonzero", attributes=lambda fill, **_: {"fill": fill + 1})


@planted(VALUE, op="dynamic_update_slice", tier="changed", case="matrix", dtype="float32")
def a_block_begins_one_element_late():
    return of_kernel("write_slice", operands=_operand(2, lambda start: start + 1))


@planted(VALUE, op="tanh")
def what_is_left_after_whole_vectors_is_not_written():
    def tail(y):
        whole = y.size - (y.size % 16 or 1)
        return y.ravel().at[whole:].set(jnp.asarray(0, y.dtype)).reshape(y.shape)

    return of_kernel("tanh", results=_result(0, tail))


# ---------------------------------------------------------------------------------------------------------------------
# Axes and directions


@planted(VALUE, op="cumsum", tier="changed", case="exclusive reverse", dtype="float32")
def exclusive_scans_from_the_end_are_inclusive():
    return of_kernel("cumsum", attributes=lambda exclusive, reverse: {"exclusive": exclusive and not reverse})


@planted("derivatives_of_the_definition", op="cummax", tier="changed", case="vector reverse", dtype="float32")
def the_gradient_of_a_scan_from_the_end_goes_the_same_way():
    return of_kernel("cumextremum_backward", attributes=lambda **_: {"reverse": False})


def _as_rows(y, x, **_):
    """The sums of an axis that is not last, as if its elements were neighbors."""
    return [jnp.cumsum(x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]), -1).reshape(x.shape).astype(x.dtype)]


@planted(VALUE, op="cumsum", tier="changed", case="columns", dtype="float32")
def the_stride_of_an_axis_that_is_not_last_is_one():
    return of_kernel("cumsum", results=_as_rows)


@planted(VALUE, op="lp_pool2d", tier="changed", case="p3 last", dtype="float32")
def channels_that_are_last_are_taken_for_first():
    return of_kernel("lp_pool", attributes=lambda **_: {"channels_last": False})


@planted(VALUE, op="causal_conv1d", tier="changed", case="segments", dtype="float32")
def segments_see_what_is_before_them():
    return of_kernel("causal_conv1d", operands=_operand(4, jnp.zeros_like))


@planted(VALUE, op="depthwise_conv2d", tier="changed", case="two each", dtype="float32")
def windows_begin_at_the_first_element():
    return of_kernel("depthwise_conv", attributes=lambda **_: {"before": (0, 0)})


@planted(VALUE, op="selective_scan", tier="changed", case="gated", dtype="float32")
def states_are_forgotten():
    return of_kernel("selective_scan", operands=_operand(8, jnp.zeros_like))


@planted(VALUE, op="ssd_chunk_scan", tier="changed", case="gated", dtype="float32")
def the_state_before_the_first_chunk_is_forgotten():
    return of_kernel("ssd_chunk_scan", operands=_operand(8, jnp.zeros_like))


@planted(VALUE, op="avg_pool2d", tier="changed", case="without padding, ceil", dtype="float32")
def padding_is_counted():
    return of_kernel("avg_pool", attributes=lambda **_: {"counts_padding": True})


@planted(VALUE, op="max_unpool2d", tier="changed", case="several at one", dtype="float32")
def the_first_item_at_an_index_is_kept():
    return of_kernel("scatter_last", operands=lambda index, x, **_: (jnp.flip(index, -1), jnp.flip(x, -1)))


@planted(VALUE, op="grid_sample", tier="changed", case="border", dtype="float32")
def positions_outside_are_zeros():
    return of_kernel("sample", attributes=lambda **_: {"padding": 0})


@planted(VALUE, op="map_coordinates", tier="changed", case="channels", dtype="float32")
def coordinates_outside_are_the_nearest_ones():
    return of_kernel("sample_coordinates", attributes=lambda **_: {"mode": 2})


@planted(VALUE, op="roi_align", tier="changed", case="of each image", dtype="float32")
def a_bin_has_one_sample_less():
    return of_kernel("sample_regions", attributes=lambda samples, **_: {"samples": max(samples - 1, 1)})


def _one_row_later(x, image, rows, columns):
    return x, image, rows + 1, columns


@planted(VALUE, op="roi_pool", tier="changed", case="boxes", dtype="float32")
def bins_begin_one_row_later():
    return of_kernel("max_regions", operands=_one_row_later)


@planted(VALUE, op="nms", tier="changed", case="boxes", dtype="float32")
def overlaps_have_another_threshold():
    return of_kernel("nms", attributes=lambda limit, **_: {"limit": limit + 0.1})


@planted(VALUE, op="cholesky", tier="changed", case="of a team", dtype="float32")
def a_factor_is_of_one_triangle():
    return of_kernel("cholesky", operands=_operand(0, jnp.tril))


@planted(VALUE, op="eigh", tier="changed", case="of a team", dtype="float32")
def the_last_eigenvector_has_the_other_sign():
    return of_kernel("eigh", results=_result(1, lambda v: v.at[..., -1].multiply(-1)))


@planted(VALUE, op="lu_factor", tier="changed", case="of a team", dtype="float32")
def the_last_row_is_not_eliminated():
    return of_kernel("lu", results=lambda ys, x, **_: [ys[0].at[..., -1, :].set(x[..., -1, :]), *ys[1:]])


@planted(VALUE, op="triangular_solve", tier="changed", case="ones", dtype="float32")
def a_diagonal_of_ones_is_read():
    return of_kernel("triangular_solve", attributes=lambda unit, **_: {"unit": False})


@planted(VALUE, op="qr", tier="changed", case="of a team", dtype="float32")
def a_row_of_r_has_the_other_sign():
    return of_kernel("qr", results=_result(1, lambda r: r.at[..., -1, :].multiply(-1)))


@planted(VALUE, op="svd", tier="changed", case="of a team", dtype="float32")
def the_last_two_singular_values_are_exchanged():
    return of_kernel("svd", results=_result(1, lambda s: s.at[..., -2:].set(s[..., :-3:-1])))


@planted(VALUE, op="matrix_exp", tier="changed", case="of a team", dtype="float32")
def the_last_row_is_that_of_x():
    return of_kernel("matrix_exp", results=lambda ys, x, **_: [ys[0].at[..., -1, :].set(x[..., -1, :])])


def _one_on(x, begin, *rest, **_):
    return x, begin + 1, *rest


@planted(VALUE, op="interpolate", tier="changed", case="bilinear", dtype="float32")
def taps_begin_one_element_later():
    return of_kernel("resample", operands=_one_on)


@planted(VALUE, op="max_pool2d", tier="changed", case="pairs", dtype="float32")
def what_is_after_an_axis_is_taken_for_what_is_before():
    return of_kernel("max_pool", attributes=lambda padding, **_: {"padding": padding[len(padding) // 2 :] * 2})


@planted(VALUE, op="topk", tier="changed", case="rows", dtype="float32")
@planted("test_sort.test_topk_is_the_beginning_of_the_sort", op="topk", tier="changed", largest=True)
def the_largest_are_the_smallest():
    return of_kernel("sort", attributes=lambda **_: {"descending": False})


@planted(VALUE, op="concat")
def chunks_are_joined_in_the_other_order():
    return of_kernel("concat", operands=lambda *xs, **_: xs[::-1])


# ---------------------------------------------------------------------------------------------------------------------
# Parameters, and gradients that are another's


@planted(VALUE, op="dequantize_per_tensor")
def zero_points_are_forgotten():
    return of_kernel("dequantize", operands=_operand(2, jnp.zeros_like))


@planted(VALUE, op="dequantize_per_channel")
def scales_are_those_of_the_next_channel():
    return of_kernel("dequantize", operands=_operand(1, lambda scale: jnp.roll(scale, 1, -1)))


@planted("limits_of_differences", "derivatives_of_the_definition", op="segment_mean", tier="changed")
def a_residual_counts_one_row_too_many():
    return of_kernel("segment_mean_backward", operands=_operand(2, lambda counts: counts + 1))


@planted("derivatives_of_the_definition", op="mean", tier="changed")
def the_gradient_of_a_mean_is_that_of_a_sum():
    return of_kernel("reduce_sum_backward", attributes=lambda **_: {"divisor": 1.0})


@planted("derivatives_of_the_definition", op="where", tier="changed")
def the_gradients_of_two_operands_are_swapped():
    return of_kernel("where_backward", results=lambda ys, *_, **__: ys[::-1])


@planted("test_scan.test_complex_gradients_are_not_conjugated", op="linear_scan")
def a_complex_gradient_is_conjugated():
    return of_kernel("linear_scan_backward", results=lambda ys, *_, **__: [jax.numpy.conj(y) for y in ys])


# ---------------------------------------------------------------------------------------------------------------------
# Packed weights


@planted(VALUE, op="nf4_dequantize", tier="changed")
def the_two_weights_of_a_byte_are_swapped():
    return of_kernel("unpack_scaled", operands=_operand(0, lambda data: (data << 4) | (data >> 4)))


@planted(VALUE, op="int4_mmvq", tier="changed", dtype="float32")
def rows_of_packed_weights_have_the_scales_of_the_next():
    return of_kernel("packed_rows_scaled", operands=_operand(2, lambda scale: jnp.roll(scale, 1, -2)))


@planted(VALUE, op="int4_mmvq", tier="changed", case="rows of eight bits", dtype="float32")
def packed_bytes_have_the_other_sign():
    return of_kernel("packed_rows_scaled", operands=_operand(1, lambda data: data ^ 128))


@planted(VALUE, op="int4_awq_gemm", tier="changed", case="groups", dtype="float32")
def columns_of_packed_weights_have_the_zero_points_of_the_next_group():
    return of_kernel("packed_columns", operands=_operand(3, lambda zero: jnp.roll(zero, 1, -2)))


# Attention
@planted(VALUE, op="flash_sdpa_varlen", tier="changed", case="grouped heads, causal", dtype="float32")
def packed_attention_sees_one_key_more():
    return of_kernel("varlen_attention", attributes=lambda right, **_: {"right": right + (right >= 0)})


@planted("derivatives_of_the_definition", op="flash_sdpa_varlen", tier="changed", case="slopes", dtype="float32")
def packed_attention_has_no_gradient_of_its_sums():
    return of_kernel("varlen_attention_backward", operands=_operand(8, jnp.zeros_like))


@planted(VALUE, op="flash_sdpa_varlen", tier="changed", case="listed keys", dtype="float32")
def packed_attention_sees_keys_that_are_nowhere():
    return of_kernel("varlen_attention", operands=_operand(6, lambda positions: jnp.maximum(positions, -1)))


@planted(VALUE, op="batch_paged_decode", tier="changed", case="holes, a window, and lse", dtype="float32")
def a_page_that_there_is_not_is_the_first():
    return of_kernel("paged_decode", operands=_operand(3, lambda table: jnp.maximum(table, 0)))


@planted(VALUE, op="batch_paged_decode", tier="changed", case="holes, a window, and lse", dtype="float32")
def a_query_sees_one_key_less_than_its_window():
    return of_kernel("paged_decode", attributes=lambda left, **_: {"left": left - 1 if left > 0 else left})


@planted(VALUE, op="batch_paged_decode", tier="changed", case="holes, a window, and lse", dtype="float32")
def what_is_after_the_end_is_seen():
    return of_kernel("paged_decode", operands=_operand(4, lambda lengths: lengths + (lengths > 0)))


@planted(VALUE, op="random_bits", tier="changed", case="odd rows", dtype="uint32")
def rows_begin_where_the_first_does():
    return of_kernel("philox_bits", operands=_replaced(0, lambda streams: streams.at[..., 4:].set(0)))


@planted(VALUE, op="dropout", tier="changed", case="long rows", dtype="float32")
def masks_of_rows_begin_where_the_first_does():
    return of_kernel("philox_dropout", operands=_operand(1, lambda streams: streams.at[..., 4:6].set(0)))


# ---------------------------------------------------------------------------------------------------------------------
# Memory that kernels of CUDA are given


@planted(
    "derivatives_of_the_definition", op="layer_norm", tier="changed", platform="cuda", case="rows", dtype="float32"
)
def parts_of_rows_have_no_workspace():
    return of_kernel("layer_norm_backward", workspace=lambda size: 0)


@planted(
    "derivatives_of_the_definition", op="group_norm", tier="changed", platform="cuda", case="one group", dtype="float32"
)
def parts_of_channels_have_no_workspace():
    return of_kernel("group_norm_backward", workspace=lambda size: 0)


# ---------------------------------------------------------------------------------------------------------------------
# Normalization


@planted("derivatives_of_the_definition", op="layer_norm", tier="changed", case="rows", dtype="float32")
def a_gradient_takes_rows_for_centered():
    return of_kernel("layer_norm_backward", operands=_operand(2, jnp.zeros_like))


@planted(
    "test_normalization.test_rows_in_registers_and_longer_ones",
    op="layer_norm", tier="changed", name="layer_norm", dtype="float32",
)  # fmt: skip
def sums_of_columns_are_those_of_other_parts():
    return of_kernel("layer_norm_backward", results=lambda ys, *_, **__: [ys[0], *(y / 2 for y in ys[1:])])


@planted(
    "test_normalization.test_groups_in_memory_of_blocks_and_longer_ones", op="group_norm", tier="changed", dtype="float32",
)  # fmt: skip
def sums_of_channels_leave_out_a_part():
    return of_kernel("group_norm_backward", results=lambda ys, *_, **__: [*ys[:2], ys[2] / 2])


@planted(
    "test_normalization.test_channels_in_memory_of_blocks_and_longer_ones", op="batch_norm", tier="changed", dtype="float32",
)  # fmt: skip
def the_variance_of_a_channel_leaves_out_a_part():
    return of_kernel("batch_norm", results=lambda ys, *_, **__: [*ys[:-1], ys[-1] / 2])
