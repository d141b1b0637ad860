"""The checks of the FFI targets, for whoever calls them without our Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from baracuda_jax._core.library import PREFIX

S = jax.ShapeDtypeStruct
F, U, I = jnp.float32, jnp.uint32, jnp.int32
DATA, PERM, OFFSETS, IDS = S((6, 3), F), S((6,), U), S((5,), U), S((6,), I)
Y, DX = S((4, 3), F), S((6, 3), F)
BITS = {"empty_bits": np.int64(0)}
POOL = dict(window=np.array([2, 2]), strides=np.array([2, 2]), norm_type=np.float64(2), channels_last=False)
REVERSE = {"reverse": True}
DESCENDING, UNIQUE = {"descending": True}, {"unique": True}
SCAN = {"reverse": False, "exclusive": False}
TWICE = {"repeats": np.array([2, 1])}
IMAGE, POOLED = S((2, 8, 8), F), S((2, 4, 4), F)


W = S((2**20,), jnp.uint8)  # the workspace, the first result of the targets that may need one


def _call(target, operands, out, attributes):
    arrays = [jnp.zeros(o.shape, o.dtype) for o in operands]
    return jax.jit(lambda *a: jax.ffi.ffi_call(PREFIX + target, out)(*a, **attributes))(*arrays)


@pytest.mark.parametrize(
    "match, target, operands, out, attributes",
    [
        ("segment_index: ids must be int32 or int64", "segment_index", [S((6,), F)], (W, PERM, OFFSETS), {"sorted": False}),
        ("segment_index: perm must have the shape of ids", "segment_index", [IDS], (W, S((5,), U), OFFSETS), {"sorted": False}),
        ("segment_index: perm must be of type", "segment_index", [IDS], (W, S((6,), F), OFFSETS), {"sorted": False}),
        ("segment_index: offsets must be", "segment_index", [IDS], (W, PERM, S((0,), U)), {"sorted": False}),
        ("segment_index: ids must have rank 1", "segment_index", [S((), I)], (W, S((), U), S((), U)), {"sorted": False}),
        ("segment_sum: data must have rank 2", "segment_sum", [S((6,), F), PERM, OFFSETS], (W, Y), BITS),
        ("segment_sum: data must be a float or an integer", "segment_sum", [S((6, 3), jnp.complex64), PERM, OFFSETS], (W, S((4, 3), jnp.complex64)), BITS),
        ("segment_sum: perm must have the batches", "segment_sum", [DATA, S((4,), U), OFFSETS], (W, Y), BITS),
        ("segment_sum: offsets must begin with dimensions", "segment_sum", [DATA, PERM, S((2, 2, 5), U)], (W, Y), BITS),
        ("segment_sum: the result must be", "segment_sum", [DATA, PERM, OFFSETS], (W, S((9, 3), F)), BITS),
        ("segment_sum: the result must have the dtype", "segment_sum", [DATA, PERM, OFFSETS], (W, S((4, 3), jnp.float16)), BITS),
        ("segment_mean: counts must be", "segment_mean", [DATA, PERM, OFFSETS, S((3,), I)], (W, Y), BITS),
        ("segment_mean: data must be float16", "segment_mean", [S((6, 3), I), PERM, OFFSETS, S((4,), I)], (W, S((4, 3), I)), BITS),
        ("segment_max: expected one or two results", "segment_max", [DATA, PERM, OFFSETS], (W, Y, Y, Y), BITS),
        ("segment_max: the second result must be int32", "segment_max", [DATA, PERM, OFFSETS], (W, Y, S((4, 3), jnp.float16)), BITS),
        ("segment_min: the second result must have the shape", "segment_min", [DATA, PERM, OFFSETS], (W, Y, S((4, 2), I)), BITS),
        ("segment_prod: expected one or three results", "segment_prod", [DATA, PERM, OFFSETS], (W, Y, Y), BITS),
        ("segment_prod: zeros must be of type", "segment_prod", [DATA, PERM, OFFSETS], (W, Y, Y, Y), BITS),
        ("segment_sum_backward: offsets must begin", "segment_sum_backward", [PERM, S((2, 2, 5), U), Y], DX, {}),
        ("segment_sum_backward: perm must have the batches", "segment_sum_backward", [PERM, OFFSETS, Y], S((5, 3), F), {}),
        ("segment_sum_backward: dy must be the result's", "segment_sum_backward", [PERM, OFFSETS, S((5, 3), F)], DX, {}),
        ("segment_sum_backward: perm must be of type", "segment_sum_backward", [IDS, OFFSETS, Y], DX, {}),
        ("segment_sum_backward: dy must be float16", "segment_sum_backward", [PERM, OFFSETS, S((4, 3), I)], S((6, 3), I), {}),
        ("segment_mean_backward: counts must be", "segment_mean_backward", [PERM, OFFSETS, S((3,), I), Y], DX, {}),
        ("segment_extremum_backward: winner must have", "segment_extremum_backward", [PERM, OFFSETS, S((3, 3), I), Y], DX, {}),
        ("segment_ties_backward: ties must be", "segment_ties_backward", [DATA, PERM, OFFSETS, Y, S((4, 3), I), Y], DX, {}),
        ("take_along: x must be", "take_along", [S((4, 3), I), S((6, 2), F)], Y, {}),
        ("segment_prod_backward: zeros must be", "segment_prod_backward", [DATA, PERM, OFFSETS, Y, Y, Y], DX, {}),
        ("elu: expected 1 operands, got 2", "elu", [DATA, DATA], DATA, {"alpha": np.float64(1)}),
        ("elu: expected operands, got none", "elu", [], DATA, {"alpha": np.float64(1)}),
        ("elu: expected 1 results, got 2", "elu", [DATA], (DATA, DATA), {"alpha": np.float64(1)}),
        ("elu: expected a float64 attribute alpha", "elu", [DATA], DATA, {}),
        ("elu: expected a float64 attribute alpha", "elu", [DATA], DATA, {"alpha": np.int64(1)}),
        ("elu: x must be float16", "elu", [IDS], IDS, {"alpha": np.float64(1)}),
        ("elu: the result must be of type", "elu", [DATA], S((6, 3), jnp.float16), {"alpha": np.float64(1)}),
        ("elu: x must broadcast to the result's shape", "elu", [DATA], S((6, 4), F), {"alpha": np.float64(1)}),
        ("elu: x must broadcast to the result's shape", "elu", [DATA], S((3,), F), {"alpha": np.float64(1)}),
        ("elu_backward: dy must be of type", "elu_backward", [DATA, S((6, 3), jnp.float16)], DATA, {"alpha": np.float64(1)}),
        ("clamp: expected int64 attributes", "clamp", [DATA], DATA, {}),
        ("clamp_backward: x must be float16", "clamp_backward", [IDS, IDS], IDS, {"min_bits": np.int64(0), "max_bits": np.int64(1)}),
        ("lerp: end must be of type", "lerp", [DATA, S((6, 3), jnp.float16), DATA], DATA, {}),
        ("lerp: weight must be of type", "lerp", [DATA, DATA, S((6, 3), jnp.float16)], DATA, {}),
        ("lerp: weight must broadcast", "lerp", [DATA, DATA, S((2,), F)], DATA, {}),
        ("lerp_backward: the results must have one shape", "lerp_backward", [DATA] * 2, (DATA, S((3,), F)), {}),
        ("lerp: more than 8 dimensions", "lerp", [S((2, 1) * 5, F), S((1, 2) * 5, F), S((), F)], S((2,) * 10, F), {}),
        ("lp_pool: window", "lp_pool", [IMAGE], POOLED, POOL | {"window": np.array([9, 2])}),
        ("lp_pool: ", "lp_pool", [IMAGE], POOLED, POOL | {"window": np.array([0, 2])}),
        ("lp_pool: strides", "lp_pool", [IMAGE], POOLED, POOL | {"strides": np.array([0, 2])}),
        ("lp_pool: strides", "lp_pool", [IMAGE], POOLED, POOL | {"strides": np.array([2])}),
        ("lp_pool: norm_type", "lp_pool", [IMAGE], POOLED, POOL | {"norm_type": np.float64(0)}),
        ("lp_pool: norm_type", "lp_pool", [IMAGE], POOLED, POOL | {"norm_type": np.float64("nan")}),
        ("lp_pool: ", "lp_pool", [IMAGE], S((2, 6, 4), F), POOL),
        ("lp_pool: ", "lp_pool", [IMAGE], S((3, 4, 4), F), POOL),
        ("lp_pool: ", "lp_pool", [S((2, 8, 8), I)], S((2, 4, 4), I), POOL),
        ("lp_pool_tangent: ", "lp_pool_tangent", [IMAGE, POOLED, POOLED], POOLED, POOL),
        ("lp_pool_backward: ", "lp_pool_backward", [IMAGE, IMAGE, POOLED], IMAGE, POOL),
        ("repeat: repeats must have 1 to 8 numbers, got 0", "repeat", [DATA], DATA, {"repeats": np.array([], np.int64)}),
        ("repeat: repeats must have 1 to 8 numbers, got 9", "repeat", [DATA], DATA, {"repeats": np.ones(9, np.int64)}),
        ("repeat: x must have rank 3 or more", "repeat", [DATA], DATA, {"repeats": np.ones(3, np.int64)}),
        ("repeat: repeats must be 0 or more", "repeat", [DATA], DATA, {"repeats": np.array([-1, 1])}),
        ("repeat: dimension 0 of the result must be 12", "repeat", [DATA], Y, TWICE),
        ("repeat: the result must have the rank of x", "repeat", [DATA], S((36,), F), TWICE),
        ("repeat: the result must have the dtype of x", "repeat", [DATA], S((12, 3), I), TWICE),
        ("repeat: x must be bool, a float", "repeat", [S((6, 3), jnp.int4)], S((12, 3), jnp.int4), TWICE),
        ("repeat_backward: dimension 0 of dy must be 12", "repeat_backward", [Y], (W, DATA), TWICE),
        ("repeat_backward: dy must have the dtype of the result", "repeat_backward", [S((12, 3), I)], (W, DATA), TWICE),
        ("repeat_backward: dy must be float16", "repeat_backward", [S((12, 3), I)], (W, S((6, 3), I)), TWICE),
        ("cumsum: operand must have rank 2", "cumsum", [S((6,), F)], (W, S((6,), F)), SCAN),
        ("cumsum: operand must be a float or an integer", "cumsum", [S((6, 3), jnp.complex64)], (W, S((6, 3), jnp.complex64)), SCAN),
        ("cumprod: the result must have the dtype of operand", "cumprod", [DATA], (W, S((6, 3), I)), SCAN),
        ("cumprod: the result must have the shape of operand", "cumprod", [DATA], (W, Y), SCAN),
        ("logcumsumexp: operand must be float16", "logcumsumexp", [S((6, 3), I)], (W, S((6, 3), I)), SCAN),
        ("cummax: expected one or two results, got 3", "cummax", [DATA], (W, DATA, DATA, DATA), SCAN),
        ("cummin: the second result must have the shape of operand", "cummin", [DATA], (W, DATA, S((4, 3), I)), SCAN),
        ("cummin: the second result must be of type", "cummin", [DATA], (W, DATA, DATA), SCAN),
        ("linear_scan: b must have the shape of a", "linear_scan", [DATA, Y], (W, DATA), REVERSE),
        ("linear_scan: a must be a float or complex", "linear_scan", [S((6, 3), I)] * 2, (W, S((6, 3), I)), REVERSE),
        ("cumprod_backward: y must have the shape of operand", "cumprod_backward", [DATA, Y, DATA], (W, DATA), REVERSE),
        ("cumextremum_backward: index must be of type", "cumextremum_backward", [DATA, DATA], (W, DATA), REVERSE),
        ("cumextremum_backward: index must have the shape of dy", "cumextremum_backward", [S((4, 3), I), DATA], (W, DATA), REVERSE),
        ("logcumsumexp_backward: dy must have the dtype", "logcumsumexp_backward", [DATA, DATA, S((6, 3), I)], (W, DATA), REVERSE),
        ("take_along: x must be bool, a number", "take_along", [S((4, 3), I), S((6, 3), jnp.float8_e4m3fn)], S((4, 3), jnp.float8_e4m3fn), {}),
        ("take_along: index must be int32", "take_along", [Y, DATA], Y, {}),
        ("put_along: index must have the shape of dy", "put_along", [S((4, 2), I), Y], (W, S((4, 7), F)), UNIQUE),
        ("put_along: index must be of type", "put_along", [Y, Y], (W, S((4, 7), F)), UNIQUE),
        ("put_along: the result must be dy's", "put_along", [S((4, 3), I), Y], (W, S((5, 7), F)), UNIQUE),
        ("put_along: dy must be float16", "put_along", [S((4, 3), I), S((4, 3), U)], (W, S((4, 7), U)), UNIQUE),
        ("sort: the result must be operand's", "sort", [Y], (W, S((4, 5), F)), DESCENDING),
        ("sort: the result must be operand's", "sort", [Y], (W, DATA), DESCENDING),
        ("sort: the result must have the dtype", "sort", [Y], (W, S((4, 3), I)), DESCENDING),
        ("sort: expected one or two results, got 3", "sort", [Y], (W, Y, S((4, 3), I), Y), DESCENDING),
        ("sort: the second result must have the shape", "sort", [Y], (W, Y, S((4, 2), I)), DESCENDING),
        ("sort: the second result must be of type", "sort", [Y], (W, Y, Y), DESCENDING),
        ("sort: operand must be a float or an integer", "sort", [S((4, 3), jnp.complex64)], (W, S((4, 3), jnp.complex64)), DESCENDING),
        ("order_statistics: ranks must be of type", "order_statistics", [Y, S((2,), F)], (W, S((4, 2), F), S((4, 2), I)), {}),
        ("order_statistics: ranks must begin", "order_statistics", [Y, S((6, 2), I)], (W, S((4, 2), F), S((4, 2), I)), {}),
        ("order_statistics: the first result must have a column", "order_statistics", [Y, S((2,), I)], (W, S((4, 3), F), S((4, 3), I)), {}),
        ("order_statistics: the second result must have the shape", "order_statistics", [Y, S((2,), I)], (W, S((4, 2), F), S((4, 3), I)), {}),
        ("order_statistics: a row without elements", "order_statistics", [S((4, 0), F), S((2,), I)], (W, S((4, 2), F), S((4, 2), I)), {}),
        ("argextremum: the result must be operand's", "argextremum", [DATA], (W, S((4,), I)), {"is_max": True}),
        ("argextremum: the result must be of type", "argextremum", [DATA], (W, S((3,), F)), {"is_max": True}),
        ("argextremum: operand must have 1 to", "argextremum", [S((0, 3), F)], (W, S((3,), I)), {"is_max": False}),
        ("linear_scan_backward: the second result must have", "linear_scan_backward", [DATA] * 3, (W, DATA, Y), REVERSE),
        ("searchsorted: sorted_sequence must be cells, or", "searchsorted", [DATA, S((6,), F)], S((6,), I), {"right": True}),
        ("searchsorted: sorted_sequence must be cells, or", "searchsorted", [S((5, 3), F), DATA], S((6, 3), I), {"right": True}),
        ("searchsorted: values must have the dtype", "searchsorted", [S((3,), I), DATA], S((6, 3), I), {"right": True}),
        ("searchsorted: the result must be of type", "searchsorted", [S((3,), F), DATA], S((6, 3), F), {"right": True}),
        ("searchsorted: the result must have the shape", "searchsorted", [S((3,), F), DATA], S((6,), I), {"right": True}),
        ("searchsorted: sorted_sequence must be a float or an", "searchsorted", [S((3,), bool), S((6, 3), bool)], S((6, 3), I), {"right": True}),
        ("bincount: x must be int32 or int64", "bincount", [DATA], S((6, 9), I), {}),
        ("bincount: x must have rank 1", "bincount", [S((), I)], S((), I), {}),
        ("bincount: the result must be the batches", "bincount", [IDS], S((6, 9), I), {}),
        ("bincount: the result must be of type", "bincount", [IDS], S((9,), F), {}),
        ("histogram: a must be float16", "histogram", [IDS, S((4,), I)], S((3,), I), {"uniform": False}),
        ("histogram: edges must be one more than the bins", "histogram", [DATA, S((4,), F)], S((6, 4), I), {"uniform": False}),
        ("histogram: edges must be numbers, or", "histogram", [DATA, S((5, 4), F)], S((6, 3), I), {"uniform": True}),
        ("histogram: edges must have the dtype", "histogram", [DATA, S((4,), I)], S((6, 3), I), {"uniform": True}),
        ("nonzero: the first result must be the batches", "nonzero", [DATA], (W, S((9,), I), S((6,), I)), {"fill": 0}),
        ("nonzero: the second result must have the batches", "nonzero", [DATA], (W, S((6, 9), I), S((6, 3), I)), {"fill": 0}),
        ("nonzero: the operand must be a float or an", "nonzero", [S((6, 3), jnp.complex64)], (W, S((6, 9), I), S((6,), I)), {"fill": 0}),
        ("run_starts: the first result must be of type", "run_starts", [DATA], (W, S((6, 9), F), S((6,), I)), {"equal_nan": True}),
        ("run_starts: the operand must have rank 1", "run_starts", [S((), F)], (W, S((9,), I), S((), I)), {"equal_nan": True}),
    ],
)  # fmt: skip
def test_a_wrong_call_is_an_error(match, target, operands, out, attributes):
    with pytest.raises(Exception, match=match):
        jax.block_until_ready(_call(target, operands, out, attributes))
