"""Bad input gets an error at trace time that names the op, the argument, what was expected and what came."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent

import baracuda_jax as bj

pytestmark = pytest.mark.exhaustive
SEGMENT = ("sum", "mean", "max", "min", "prod")
X, IDS = np.ones((6, 3)), np.zeros(6, jnp.int32)
H = X.astype(jnp.bfloat16)
IMAGE = np.ones((2, 3, 8, 8))


@pytest.mark.parametrize("name", SEGMENT)
@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (TypeError, "segment_ids must have one of the dtypes int8.*got float", (X, sent.zeros(6), 3), {}),
        (TypeError, "segment_ids must have one of the dtypes.*got bool", (X, sent.zeros(6, bool), 3), {}),
        (ValueError, r"segment_ids must have the shape.*\(6,\).*got \(5,\)", (X, IDS[:5], 3), {}),
        (ValueError, r"segment_ids must have the shape.*got \(3, 2\)", (X, sent.zeros((3, 2), jnp.int32), 3), {}),
        (ValueError, "segment_ids must have at least one dimension", (X, jnp.int32(1), 3), {}),
        (ValueError, r"segment_ids must have the shape.*\(2, 6\)", (sent.ones((2, 6, 3)), sent.zeros((3, 6), jnp.int32), 3), {}),
        (ValueError, "num_segments must be at least 0, got -1", (X, IDS, -1), {}),
        (TypeError, "num_segments must be an integer, got 2.5", (X, IDS, 2.5), {}),
        (TypeError, "num_segments must be an integer, got True", (X, IDS, True), {}),
        (ValueError, "num_segments must be at most 2147483647", (X, IDS, 2**31), {}),
        (ValueError, "data must have at least one dimension.*scalar", (jnp.float32(1), IDS, 3), {}),
        (TypeError, "data must have one of the dtypes.*got complex64", (X.astype(jnp.complex64), IDS, 3), {}),
        (TypeError, "data must have one of the dtypes.*got bool", (X > 0, IDS, 3), {}),
        (TypeError, "data must be an array, got str", ("rows", IDS, 3), {}),
        (TypeError, "indices_are_sorted must be True or False, got 'yes'", (X, IDS, 3), {"indices_are_sorted": "yes"}),
        (TypeError, "empty_value must be a static scalar", (X, IDS, 3), {"empty_value": np.ones(3)}),
        (ValueError, r"empty_value must be an integer in \[-128, 127\], got 300", (X.astype(jnp.int8), IDS, 3), {"empty_value": 300}),
        (ValueError, r"implementation must be one of \('native', 'xla'\), a PlanPreference or None, got 'cuda'", (X, IDS, 3), {"implementation": "cuda"}),
    ],
)  # fmt: skip
def test_segment(name, error, match, args, kwargs):
    if name == "mean" and "empty_value" in kwargs and args[0].dtype == jnp.int8:
        pytest.skip("mean takes floats")
    fun = getattr(bj, f"segment_{name}")
    with pytest.raises(error, match=f"^segment_{name}: {match}"):
        fun(*args, **kwargs)


def test_segment_mean_takes_floats():
    with pytest.raises(TypeError, match="^segment_mean: data must have one of the dtypes float32.*got int32"):
        bj.segment_mean(X.astype(jnp.int32), IDS, 3)


def test_ties():
    with pytest.raises(ValueError, match="^segment_max: ties must be one of 'first', 'split', got 'last'"):
        bj.segment_max(X, IDS, 3, ties="last")


def test_traced_num_segments():
    with pytest.raises(TypeError, match="^segment_sum: num_segments must be a static integer, got a traced value"):
        jax.jit(lambda n: bj.segment_sum(X, IDS, n))(3)


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (ValueError, r"window must fit into x's spatial shape \(8, 8\), got \(9, 9\)", (IMAGE, 2, 9), {}),
        (ValueError, r"window\[1\] must be at least 1, got 0", (IMAGE, 2, (2, 0)), {}),
        (ValueError, "window must be at least 1, got -2", (IMAGE, 2, -2), {}),
        (ValueError, r"window must be an integer or 2 integers, got \(2, 2, 2\)", (IMAGE, 2, (2, 2, 2)), {}),
        (TypeError, "window must be an integer, got 2.5", (IMAGE, 2, 2.5), {}),
        (ValueError, "strides must be at least 1, got 0", (IMAGE, 2, 2, 0), {}),
        (ValueError, "strides must be at least 1, got -1", (IMAGE, 2, 2, -1), {}),
        (ValueError, "norm_type must be greater than 0, got 0", (IMAGE, 0, 2), {}),
        (ValueError, "norm_type must be greater than 0, got -1", (IMAGE, -1, 2), {}),
        (ValueError, "norm_type must be greater than 0, got nan", (IMAGE, float("nan"), 2), {}),
        (TypeError, "norm_type must be a static number, got '2'", (IMAGE, "2", 2), {}),
        (ValueError, r"x must have rank 4, NCHW, or 3 without the batch, got shape \(8, 8\)", (IMAGE[0, 0], 2, 2), {}),
        (ValueError, "x must have rank 4", (IMAGE[None], 2, 2), {}),
        (TypeError, "x must have one of the dtypes.*got int32", (IMAGE.astype(jnp.int32), 2, 2), {}),
        (TypeError, "x must be an array, got str", ("image", 2, 2), {}),
        (ValueError, "data_format must be one of 'NCHW', 'NHWC', got 'NWHC'", (IMAGE, 2, 2), {"data_format": "NWHC"}),
        (TypeError, "ceil_mode must be True or False, got 1", (IMAGE, 2, 2), {"ceil_mode": 1}),
        (ValueError, "implementation must be one of", (IMAGE, 2, 2), {"implementation": "gpu"}),
    ],
)  # fmt: skip
def test_lp_pool(error, match, args, kwargs):
    with pytest.raises(error, match=f"^lp_pool2d: {match}"):
        bj.lp_pool2d(*args, **kwargs)


def test_traced_norm_type():
    with pytest.raises(TypeError, match="^lp_pool2d: norm_type must be a static number"):
        jax.jit(lambda p: bj.lp_pool2d(IMAGE, p, 2))(2.0)


NINE = (2,) * 9


@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (ValueError, r"repeats\[0\] must be at least 0, got -1", (X, (-1,)), {}),
        (TypeError, r"repeats must be a tuple of integers.*got 3; repeat_interleave repeats.*tile takes an integer", (X, 3), {}),
        (ValueError, r"repeats\[1\] must be at least 0, got -2", (X, (2, -2)), {}),
        (TypeError, r"repeats\[0\] must be an integer, got 2.5", (X, (2.5,)), {}),
        (TypeError, r"repeats\[0\] must be an integer, got '2'", (X, ("2",)), {}),
        (TypeError, "repeats must be static, got an array of .*; repeat_interleave, which.* takes arrays", (X, sent.ones(6)), {}),
        (TypeError, r"repeats\[0\] must be an integer, got True", (X, (True, 2)), {}),
        (TypeError, r"repeats\[0\] must be an integer, got .*1", (X, np.ones(2)), {}),
        (TypeError, "x must be an array, got str", ("rows", (2,)), {}),
        (ValueError, "repeats must repeat at most 8 axes.*repeats 9 axes of", (sent.ones(NINE), NINE), {}),
        (ValueError, r"implementation must be one of \('native', 'xla'\), a PlanPreference or None, got 'cuda'", (X, (2,)), {"implementation": "cuda"}),
    ],
)  # fmt: skip
def test_repeat(error, match, args, kwargs):
    with pytest.raises(error, match=f"^repeat: {match}"):
        bj.repeat(*args, **kwargs)


@pytest.mark.parametrize(
    "name, error, match, args, kwargs",
    [
        ("flip", ValueError, r"axis must be in \[-2, 1\] for x of shape \(6, 3\), got 2", (X, 2), {}),
        ("flip", ValueError, r"axis must name each axis once, got \(0, -2\)", (X, (0, -2)), {}),
        ("flip", TypeError, "axis must be an integer, got '0'", (X, "0"), {}),
        ("flip", TypeError, "x must be an array, got str", ("rows",), {}),
        ("roll", TypeError, "shift must be an integer, got 1.5", (X, 1.5, 0), {}),
        ("roll", ValueError, "shift must have one number for each axis, 2, got 1", (X, (1,), (0, 1)), {}),
        ("permute", ValueError, r"axes must name each of the 2 axes of x once, got \(0, 0\)", (X, (0, 0)), {}),
        ("permute", ValueError, r"axes must name each of the 2 axes of x once, got \(0,\)", (X, (0,)), {}),
        ("permute", TypeError, "axes must be a tuple of integers, got 1", (X, 1), {}),
        ("permute", ValueError, "x must have at most 9 axes", (sent.ones((2,) * 10),), {}),
        ("pad", ValueError, "pad_width must be a number, a pair .* each of 2 axes", (X, ((1, 1),) * 3), {}),
        ("pad", ValueError, r"pad_width\[1\] must leave 0 elements or more of 3, got \(-2, -2\)", (X, ((0, 0), (-2, -2))), {}),
        ("pad", TypeError, r"pad_width\[0\]\[0\] must be an integer, got 1.5", (X, 1.5), {}),
        ("pad", ValueError, "mode must be one of 'constant', 'reflect'.*got 'mirror'", (X, 1, "mirror"), {}),
        ("pad", ValueError, "constant_values must be left out with mode 'reflect', got 3", (X, 1, "reflect", 3), {}),
        ("pad", TypeError, "constant_values must be a static number, got '3'", (X, 1), {"constant_values": "3"}),
        ("pad", TypeError, "constant_values must be a number for x of dtype float", (X, 1), {"constant_values": 1j}),
        ("pad", ValueError, r"constant_values must be an integer in \[-128, 127\]", (IDS.astype(jnp.int8), 1), {"constant_values": 300}),
        ("pad", ValueError, "x must have elements along axes that are padded with mode 'edge'|'replicate'", (X[:0], 1, "edge"), {}),
        ("pad", ValueError, "x must have at most 9 axes, and 6 with positions outside", (sent.ones((2,) * 7), 1), {}),
        ("triu", ValueError, r"x must have at least two dimensions, got shape \(6,\)", (IDS,), {}),
        ("tril", TypeError, "k must be an integer, got 0.5", (X, 0.5), {}),
        ("concat", ValueError, "xs must have one array at least, got none", ((),), {}),
        ("concat", TypeError, "xs must be a sequence of arrays, got int", (3,), {}),
        ("concat", TypeError, r"xs\[1\] must have the dtype of xs\[0\], float64, got int32", ((X, IDS),), {}),
        ("concat", ValueError, r"xs\[1\] must have the shape of xs\[0\], \(6, 3\), except for axis 0, got \(6, 2\)", ((X, X[:, :2]),), {}),
        ("meshgrid", ValueError, "indexing must be one of 'xy', 'ij', got 'yx'", (IDS,), {"indexing": "yx"}),
        ("meshgrid", ValueError, r"xs\[1\] must have at most one dimension", (IDS, X), {}),
        ("broadcast_in_dim", ValueError, r"x must have size 1 or 4 along dimension 0, which becomes dimension 1 of \(3, 4\), got shape \(6,\)", (IDS, (3, 4), (1,)), {}),
        ("broadcast_in_dim", TypeError, "broadcast_dimensions must be a tuple of integers, got 1", (IDS, (3, 6), 1), {}),
        ("broadcast_in_dim", ValueError, r"broadcast_dimensions must ascend and be below 3, the rank of the result, got \(1, 0\)", (X, (3, 6, 3), (1, 0)), {}),
        ("broadcast_in_dim", ValueError, r"broadcast_dimensions must have one number for each of 2 dimensions, got \(1,\)", (X, (3, 6), (1,)), {}),
        ("fill", ValueError, r"value must be one number, got shape \(6, 3\)", (X, 3), {}),
        ("fill", ValueError, r"shape\[1\] must be at least 0, got -1", (1.0, (2, -1)), {}),
        ("dynamic_update_slice", ValueError, r"update must have the rank of x and fit into its shape \(6, 3\), got \(7, 1\)", (X, sent.ones((7, 1)), (0, 0)), {}),
        ("dynamic_update_slice", TypeError, "update must have the dtype of x, float64, got int32", (X, IDS[:, None], (0, 0)), {}),
        ("dynamic_update_slice", ValueError, "start must have one number for each of 2 axes, got 1", (X, X, (0,)), {}),
        ("dynamic_update_slice", TypeError, r"start\[0\] must have one of the dtypes int8.*got float", (X, X, (0.5, 0)), {}),
        ("repeat_interleave", ValueError, "repeats must be at least 0, got -1", (X, -1, 0), {}),
        ("repeat_interleave", ValueError, r"repeats must be one integer or have shape \(6,\)", (X, np.ones(5, int), 0), {}),
        ("repeat_interleave", TypeError, "repeats must have one of the dtypes int8.*got float", (X, np.ones(6), 0), {}),
        ("repeat_interleave", ValueError, "total_repeat_length must be at least 0", (X, 2, 0), {"total_repeat_length": -1}),
        ("unfold", ValueError, r"window must fit into x's spatial shape \(8, 8\)", (IMAGE, 9), {}),
        ("unfold", ValueError, "window must have 1 to 3 numbers", (IMAGE, (1,) * 4), {}),
        ("unfold", ValueError, r"strides\[1\] must be at least 1, got 0", (IMAGE, 2), {"strides": (1, 0)}),
        ("unfold", ValueError, "x must be .* with 2 spatial axes", (X, 2), {}),
        ("fold", ValueError, r"x must be \[..., C 4, 49\], columns", (sent.ones((2, 8, 48)), 8, 2), {}),
        ("fold", TypeError, "x must have one of the dtypes.*got int32", (IDS[:, None], 8, 2), {}),
        ("pixel_shuffle", ValueError, "upscale_factor squared must divide the 3 channels of x, got 2", (IMAGE, 2), {}),
        ("pixel_unshuffle", ValueError, r"downscale_factor must divide the rows and columns of x, \(8, 8\), got 3", (IMAGE, 3), {}),
        ("channel_shuffle", ValueError, "groups must divide the 3 channels of x, got 2", (IMAGE, 2), {}),
        ("flip", ValueError, r"implementation must be one of \('native', 'xla'\)", (X,), {"implementation": "cuda"}),
    ],
)  # fmt: skip
def test_moves(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)


def test_traced_repeats_of_elements():
    with pytest.raises(
        TypeError, match="^repeat_interleave: total_repeat_length must be given where repeats are traced"
    ):
        jax.jit(lambda r: bj.repeat_interleave(X, r, 0))(sent.ones(6, int))


def test_traced_repeats():
    with pytest.raises(TypeError, match="^tile: repeats must be a static integer, got a traced value"):
        jax.jit(lambda r: bj.tile(X, r))(3)
    with pytest.raises(TypeError, match=r"^repeat: repeats\[1\] must be a static integer, got a traced value"):
        jax.jit(lambda r: bj.repeat(X, (2, r)))(3)


@pytest.mark.parametrize(
    "name, error, match, args",
    [
        ("leaky_relu", TypeError, "x must have one of the dtypes float32.*got int32", (IDS,)),
        ("leaky_relu", TypeError, "x must be an array, got str", ("x",)),
        *((name, TypeError, "x must have one of the dtypes.*got complex64", (X.astype(jnp.complex64),)) for name in ("sign", "cbrt", "erf", "relu")),
        *((name, TypeError, "x1 must have one of the dtypes.*got complex", (X, 1j)) for name in ("maximum", "lt", "hypot", "mod")),
        ("sin_backward", TypeError, "dy must have the dtype of x, complex64, got float64", (X.astype(jnp.complex64), X)),
        ("square_backward", TypeError, "x must have one of the dtypes float32.*complex128, got int32", (IDS, IDS)),
        ("leaky_relu", TypeError, "negative_slope must be a static number, got '1'", (X, "1")),
        ("leaky_relu", TypeError, "negative_slope must be a static number, got True", (X, True)),
        ("leaky_relu", ValueError, "negative_slope must be a number, got nan", (X, float("nan"))),
        ("elu", TypeError, "alpha must be a static number", (X, sent.ones(3))),
        ("threshold", TypeError, "value must be a static number, got None", (X, 1, None)),
        ("hardtanh", ValueError, "min_val must be at most max_val, 1.0, got 2.0", (X, 2.0, 1.0)),
        ("softshrink", ValueError, "lambd must be at least 0, got -1.0", (X, -1)),
        ("hardshrink", TypeError, "lambd must be a static number, got None", (X, None)),
        ("integer_pow", TypeError, "exponent must be an integer, got 2.0; pow takes any number", (X, 2.0)),
        ("integer_pow", TypeError, r"exponent must be static, got an array of .* of shape .*; pow takes arrays", (X, jnp.asarray(X))),
        ("clamp", TypeError, "min must be a static number, got '1'", (X, "1")),
        ("integer_pow", ValueError, "exponent must be at most 2147483647, got 2147483648", (X, 2**31)),
        ("integer_pow", ValueError, "exponent must be at least -2147483647", (X, -(2**31))),
        ("affine", TypeError, "shift must be a static number", (X, 1, 1j)),
        ("clamp", TypeError, "x must have one of the dtypes.*got bool", (X > 0,)),
        ("clamp", TypeError, "min must be an integer, got 0.5", (IDS, 0.5)),
        ("clamp", ValueError, "min must be at most 127, the largest int8, got 300", (IDS.astype(jnp.int8), 300)),
        ("clamp", ValueError, "max must be at least 0, got -1", (IDS.astype(jnp.uint8), None, -1)),
        ("lerp", TypeError, "end must have the dtype of start, float64, got float16", (X, X.astype(jnp.float16), 0.5)),
        ("lerp", TypeError, "weight must have the dtype of start, float64, got float16", (X, X, jnp.float16(1))),
        ("lerp", TypeError, "weight must have the dtype of start, float16, or float32, got int32", (X.astype(jnp.float16), X.astype(jnp.float16), IDS)),
        ("lerp", ValueError, r"start, end and weight must broadcast, got shapes \(6, 3\), \(6, 3\), \(2,\)", (X, X, sent.ones(2))),
        ("prelu", ValueError, r"weight must have one element or 3,.*got shape \(6,\)", (X, sent.ones(6))),
        ("prelu", ValueError, r"weight must have one element or 3,.*got shape \(1, 3\)", (X, sent.ones((1, 3)))),
        ("prelu", TypeError, "weight must have the dtype of x, float64, got int32", (X, IDS)),
        ("lerp_backward", ValueError, r"dy must have shape \(6, 3\), that of the result, got \(3,\)", (X, X, 0.5, sent.ones(3))),
        ("elu_backward", ValueError, r"dy must have shape \(6, 3\), that of x", (X, X[1:])),
        ("clamp_backward", TypeError, "dy must have the dtype of x, float64, got float16", (X, X.astype(jnp.float16))),
        ("prelu_backward", ValueError, r"dy must have shape \(6, 3\), that of x", (X, sent.ones(3), X[1:])),
    ],
)  # fmt: skip
def test_elementwise(name, error, match, args):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args)


def test_traced_parameters():
    for fun in (bj.leaky_relu, bj.elu, bj.softshrink, bj.hardshrink, bj.integer_pow):
        with pytest.raises(TypeError, match=f"^{fun.__name__}: .* must be .*static.*, got a traced value"):
            jax.jit(lambda p: fun(X, p))(2.0)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize(
    "error, match, args, kwargs",
    [
        (ValueError, "x must have at least one dimension, which is scanned; got a scalar", (jnp.float32(1),), {}),
        (ValueError, r"axis must be in \[-2, 1\] for x of shape \(6, 3\), got 2", (X, 2), {}),
        (ValueError, "axis must be at least -2, got -3", (X, -3), {}),
        (TypeError, "axis must be an integer, got 1.0", (X, 1.0), {}),
        (TypeError, "axis must be an integer, got None", (X, None), {}),
        (TypeError, "x must have one of the dtypes.*got complex64", (X.astype(jnp.complex64),), {}),
        (TypeError, "x must have one of the dtypes.*got bool", (X > 0,), {}),
        (TypeError, "x must be an array, got str", ("rows",), {}),
        (TypeError, "reverse must be True or False, got 1", (X,), {"reverse": 1}),
        (TypeError, "exclusive must be True or False, got 'yes'", (X,), {"exclusive": "yes"}),
        (ValueError, r"implementation must be one of \('native', 'xla'\), a PlanPreference or None, got 'cuda'", (X,), {"implementation": "cuda"}),
    ],
)  # fmt: skip
def test_scan(name, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(*args, **kwargs)


@pytest.mark.parametrize(
    "error, match, args",
    [
        (ValueError, r"b must have shape \(6, 3\), that of a, got \(3,\)", (X, X[0])),
        (TypeError, "b must have the dtype of a, float64, got float32", (X, X.astype(jnp.float32))),
        (TypeError, "a must have one of the dtypes.*got int32", (IDS, IDS)),
        (ValueError, "a must have at least one dimension", (X[0, 0], X[0, 0])),
        (ValueError, r"axis must be in \[-2, 1\] for a of shape \(6, 3\), got 2", (X, X, 2)),
    ],
)  # fmt: skip
def test_linear_scan(error, match, args):
    with pytest.raises(error, match=f"^linear_scan: {match}"):
        bj.linear_scan(*args)


def test_other_arguments_of_scans():
    with pytest.raises(TypeError, match="^logcumsumexp: x must have one of the dtypes float32.*got int32"):
        bj.logcumsumexp(IDS)
    with pytest.raises(TypeError, match="^cummax: return_indices must be True or False, got 1"):
        bj.cummax(X, return_indices=1)
    with pytest.raises(TypeError, match="^cumsum: axis must be a static integer, got a traced value"):
        jax.jit(lambda axis: bj.cumsum(X, axis))(1)
    long = jax.ShapeDtypeStruct((2, 2**31), jnp.int8)
    with pytest.raises(ValueError, match="^cummin: x may have at most 2147483647 elements along axis, got 2147483648"):
        jax.eval_shape(lambda x: bj.cummin(x, 1), long)


C = X.astype(jnp.complex64)


@pytest.mark.parametrize(
    "name",
    ["sum", "mean", "max", "min", "prod", "logsumexp", "vector_norm", "var", "std", "any", "all", "count_nonzero"],
)
@pytest.mark.parametrize(
    "error, match, kwargs",
    [
        (ValueError, r"axis must be in \[-2, 1\] for [ax] of shape \(6, 3\), got 2", {"axis": 2}),
        (ValueError, "axis must be at least -2, got -3", {"axis": -3}),
        (TypeError, "axis must be an integer, got 1.0", {"axis": 1.0}),
        (ValueError, r"axis must name each axis once, got \(0, -2\)", {"axis": (0, -2)}),
        (TypeError, r"axis\[1\] must be an integer, got 'rows'", {"axis": (0, "rows")}),
        (TypeError, "keepdims must be True or False, got 1", {"keepdims": 1}),
        (ValueError, r"implementation must be one of \('native', 'xla'\), a PlanPreference or None, got 'cuda'", {"implementation": "cuda"}),
    ],
)  # fmt: skip
def test_reductions(name, error, match, kwargs):
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(X, **kwargs)
    with pytest.raises(TypeError, match=f"^{name}: [ax] must be an array, got str"):
        getattr(bj, name)("rows")


@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.max, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.min, ValueError, "initial must be given with where", (X,), {"where": X > 0}),
        (bj.max, ValueError, r"x must have at least one element along axis, or initial be given, got shape \(0, 3\)", (X[:0], 0), {}),
        (bj.max, ValueError, r"initial must be a number, got shape \(3,\)", (X, 0), {"initial": sent.ones(3)}),
        (bj.max, TypeError, "return_residuals must be True or False, got 1", (X,), {"return_residuals": 1}),
        (bj.max, ValueError, "return_residuals must be False where initial is given", (X,), {"return_residuals": True, "initial": 0}),
        (bj.sum, TypeError, "where must have one of the dtypes bool, got float64", (X,), {"where": X}),
        (bj.sum, ValueError, r"where must broadcast to x's shape \(6, 3\), got \(2,\)", (X,), {"where": X[:2, 0] > 0}),
        (bj.sum, TypeError, "dtype must be a dtype, got 'rows'", (X,), {"dtype": "rows"}),
        (bj.logsumexp, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.vector_norm, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.vector_norm, TypeError, "ord must be a number, got 'fro'", (X, "fro"), {}),
        (bj.vector_norm, ValueError, "ord must be a number, got nan", (X, float("nan")), {}),
        (bj.vector_norm, ValueError, "x must have at least one element along axis for ord=-inf", (X[:0], -jnp.inf, 0), {}),
        (bj.var, TypeError, "ddof must be a static number, got 'one'", (X,), {"ddof": "one"}),
        (bj.std, ValueError, "one of ddof and correction must be given, got 1 and 2", (X,), {"ddof": 1, "correction": 2}),
        (bj.var, ValueError, "return_residuals must be False where `where` is given", (X,), {"where": X > 0, "return_residuals": True}),
        (bj.trace, ValueError, r"x must have rank 2 or more, got shape \(3,\)", (X[0],), {}),
        (bj.trace, ValueError, "axis1 and axis2 must be two axes, got 0 and -2", (X, 0, 0, -2), {}),
        (bj.trace, TypeError, "offset must be an integer, got 1.5", (X, 1.5), {}),
        (bj.trace, ValueError, r"axis2 must be in \[-2, 1\]", (X, 0, 0, 2), {}),
        (bj.unbroadcast, ValueError, r"shape must broadcast to x's shape \(6, 3\), got \(2, 3\)", (X, (2, 3)), {}),
        (bj.unbroadcast, ValueError, r"shape must broadcast to x's shape \(6, 3\), got \(1, 6, 3\)", (X, (1, 6, 3)), {}),
        (bj.unbroadcast, ValueError, "op must be one of 'sum', 'max', 'min', 'prod', got 'mean'", (X, (3,), "mean"), {}),
        (bj.unbroadcast, TypeError, "shape must be a tuple of integers, got 3", (X, 3), {}),
        (bj.sum_backward, ValueError, r"dy must have shape \(3,\), that of shape reduced, got \(6,\)", (X[:, 0], (6, 3), 0), {}),
        (bj.mean_backward, TypeError, "dy must have one of the dtypes.*got int32", (IDS, (6, 3), 1), {}),
        (bj.max_backward, TypeError, "ties must have dtype float32, .*got float64", (X, X[0], X[0], X[0], 0), {}),
        (bj.prod_backward, TypeError, "zeros must have dtype uint8", (X, X[0], X[0], X[0], 0), {}),
        (bj.logsumexp_backward, TypeError, "dy must have the dtype of x, float64, got float32", (X, X[0], X[0], X[0].astype(jnp.float32), 0), {}),
        (bj.logsumexp_backward, TypeError, "rest must have dtype float32, as return_residuals gives it for x of bfloat16, got bfloat16", (H, H[0], H[0], H[0], 0), {}),
        (bj.vector_norm_backward, TypeError, "y must have dtype float32, as return_residuals gives it for x of bfloat16, got bfloat16", (H, H[0], H[0], 2, 0), {}),
        (bj.vector_norm, ValueError, "return_residuals must be False for ord=inf, -inf and 0, got ord=inf", (X, jnp.inf), {"return_residuals": True}),
        (bj.vector_norm_backward, ValueError, "ord must be finite and not 0, got inf", (X, X[0], X[0], jnp.inf, 0), {}),
        (bj.std_backward, ValueError, r"mean must have shape \(3,\), that of x reduced", (X, X[0], X, X[0], 0), {}),
        (bj.trace_backward, ValueError, r"dy must have shape \(\), that of \(6, 3\) without the two axes", (X, (6, 3)), {}),
    ],
)  # fmt: skip
def test_other_arguments_of_reductions(fun, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{fun.__name__}: {match}"):
        fun(*args, **kwargs)


def test_traced_arguments_of_reductions():
    with pytest.raises(TypeError, match="^sum: axis must be a static integer, got a traced value"):
        jax.jit(lambda axis: bj.sum(X, axis))(1)
    with pytest.raises(TypeError, match="^vector_norm: ord must be a static number, got a traced value"):
        jax.jit(lambda order: bj.vector_norm(X, order))(2.0)


@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.sort, ValueError, "x must have at least one dimension; got a scalar", (jnp.float32(1),), {}),
        (bj.sort, ValueError, r"axis must be in \[-2, 1\] for x of shape \(6, 3\), got 2", (X, 2), {}),
        (bj.sort, ValueError, "axis must be at least -2, got -3", (X, -3), {}),
        (bj.sort, TypeError, "axis must be an integer, got None", (X, None), {}),
        (bj.sort, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.sort, TypeError, "x must be an array, got str", ("rows",), {}),
        (bj.sort, TypeError, "descending must be True or False, got 1", (X,), {"descending": 1}),
        (bj.argsort, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.argsort, ValueError, "axis must be at least -2, got -3", (X, -3), {}),
        (bj.argsort, TypeError, "descending must be True or False, got None", (X,), {"descending": None}),
        (bj.msort, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.msort, ValueError, "x must have at least one dimension", (X[0, 0],), {}),
        (bj.sort_key_val, TypeError, "keys must have one of the dtypes.*got complex64", (C, X), {}),
        (bj.sort_key_val, ValueError, r"values must have shape \(6, 3\), that of keys, got \(3,\)", (X, X[0]), {}),
        (bj.sort_key_val, ValueError, r"values\[1\] must have shape \(6, 3\), that of keys", (X, (X, X[0])), {}),
        (bj.sort_key_val, TypeError, "values must be an array, got str", (X, "rows"), {}),
        (bj.sort_key_val, ValueError, r"axis must be in \[-2, 1\] for keys", (X, X, 2), {}),
        (bj.sort_key_val, TypeError, "descending must be True or False", (X, X), {"descending": 0}),
        (bj.topk, ValueError, "k must be at most 3, the length of x along axis, got 4", (X, 4), {}),
        (bj.topk, ValueError, "k must be at least 0, got -1", (X, -1), {}),
        (bj.topk, TypeError, "k must be an integer, got 2.0", (X, 2.0), {}),
        (bj.topk, TypeError, "largest must be True or False, got 'no'", (X, 2), {"largest": "no"}),
        (bj.topk, TypeError, "x must have one of the dtypes", (C, 2), {}),
        (bj.topk, ValueError, r"axis must be in \[-2, 1\]", (X, 2, 2), {}),
        (bj.kthvalue, ValueError, "k must be at least 1, got 0", (X, 0), {}),
        (bj.kthvalue, ValueError, "k must be at most 6, the length of x along axis, got 7", (X, 7, 0), {}),
        (bj.kthvalue, TypeError, "keepdims must be True or False, got 1", (X, 1), {"keepdims": 1}),
        (bj.kthvalue, TypeError, "x must have one of the dtypes", (C, 1), {}),
        (bj.median, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.median, TypeError, "x must have one of the dtypes.*got bool", (X > 0,), {}),
        (bj.median, ValueError, r"axis must be in \[-2, 1\] for x of shape \(6, 3\), got 2", (X, 2), {}),
        (bj.median, ValueError, r"axis must name each axis once, got \(0, -2\)", (X, (0, -2)), {}),
        (bj.median, TypeError, r"axis\[1\] must be an integer, got 0.5", (X, (0, 0.5)), {}),
        (bj.nanmedian, TypeError, "keepdims must be True or False, got None", (X,), {"keepdims": None}),
        (bj.quantile, ValueError, r"q must be in \[0, 1\], got 1.5", (X, 1.5), {}),
        (bj.quantile, ValueError, r"q must be in \[0, 1\], got \[0.5, nan\]", (X, sent.asarray([0.5, jnp.nan])), {}),
        (bj.quantile, ValueError, r"q must be a number or a vector, got shape \(6, 3\)", (X, 0 * X), {}),
        (bj.quantile, TypeError, "q must have one of the dtypes.*got complex64", (X, C[0]), {}),
        (bj.nanquantile, ValueError, "method must be one of 'linear', .*, got 'weibull'", (X, 0.5), {"method": "weibull"}),
        (bj.argmax, ValueError, r"x must have at least one element along axis, got shape \(0, 3\)", (X[:0], 0), {}),
        (bj.argmax, TypeError, "x must have one of the dtypes.*got complex64", (C,), {}),
        (bj.argmin, ValueError, r"axis must be in \[-2, 1\]", (X, 2), {}),
        (bj.argmin, TypeError, "keepdims must be True or False, got 0", (X,), {"keepdims": 0}),
        (bj.sort_backward, TypeError, "indices must have one of the dtypes int32, got float64", (X, X), {}),
        (bj.sort_backward, TypeError, "dy must have one of the dtypes.*got int32", (IDS, IDS), {}),
        (bj.sort_key_val_backward, ValueError, r"indices must have shape \(6, 3\), that of dy", (IDS, X), {}),
        (bj.topk_backward, ValueError, "count must be at least 3, got 2", (X.astype(jnp.int32), X, 2), {}),
        (bj.kthvalue_backward, ValueError, "count must be at least 1, got 0", (X.astype(jnp.int32), X, 0), {}),
    ],
)  # fmt: skip
def test_sorts(fun, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{fun.__name__}: {match}"):
        fun(*args, **kwargs)


def test_other_arguments_of_sorts():
    long = jax.ShapeDtypeStruct((2, 2**31), jnp.int8)
    for fun in (bj.sort, bj.argsort, bj.argmax, bj.median):
        with pytest.raises(ValueError, match="may have at most 2147483647 elements along axis, got 2147483648"):
            jax.eval_shape(lambda x, fun=fun: fun(x, axis=1), long)
    for fun in (bj.topk, bj.kthvalue):
        with pytest.raises(TypeError, match=f"^{fun.__name__}: k must be a static integer, got a traced value"):
            jax.jit(lambda k, fun=fun: fun(X, k))(1)
    with pytest.raises(ValueError, match="^sort: implementation must be one of"):
        bj.sort(X, implementation="cuda")


DY = np.ones((4, 3))


@pytest.mark.parametrize(
    "fun, error, match, args",
    [
        (bj.segment_sum_backward, TypeError, "segment_ids must have one of", (sent.ones(6), DY)),
        (bj.segment_sum_backward, TypeError, "dy must have one of the dtypes.*int32", (IDS, DY.astype(jnp.int32))),
        (bj.segment_sum_backward, ValueError, "dy must be", (sent.zeros((2, 6), jnp.int32), DY)),
        (bj.segment_mean_backward, TypeError, "counts must have one of.*float", (IDS, sent.ones(4), DY)),
        (bj.segment_mean_backward, ValueError, r"counts must have shape \(4,\).*got \(3,\)", (IDS, sent.ones(3, jnp.int32), DY)),
        (bj.segment_max_backward, TypeError, "arg must have one of", (IDS, sent.ones((4, 3)), DY)),
        (bj.segment_max_backward, ValueError, "arg must have shape", (IDS, sent.ones((4, 2), jnp.int32), DY)),
        (bj.segment_prod_backward, TypeError, "zeros must have one of", (X, IDS, DY, sent.zeros((4, 3), jnp.int32), DY)),
        (bj.segment_prod_backward, ValueError, "data must have shape", (X[1:], IDS, DY, sent.zeros((4, 3), jnp.uint8), DY)),
        (bj.segment_var_backward, TypeError, "mean must have one of", (X, IDS, DY.astype(jnp.bfloat16), DY, DY)),
        (bj.segment_std_backward, ValueError, "scale must have shape", (X, IDS, DY, sent.ones((4, 2)), DY)),
        (bj.segment_std_backward, ValueError, "data must have shape", (X[1:], IDS, DY, DY, DY)),
        (bj.cumsum_backward, TypeError, "dy must have one of the dtypes.*int32", (IDS,)),
        (bj.cumprod_backward, ValueError, r"y must have shape \(4, 3\), that of dy, got \(6, 3\)", (DY, X, DY)),
        (bj.cumprod_backward, TypeError, "x must have the dtype of dy, float64, got int32", (DY.astype(jnp.int32), DY, DY)),
        (bj.logcumsumexp_backward, ValueError, r"x must have shape \(4, 3\), that of dy", (DY[0], DY, DY, DY)),
        (bj.logcumsumexp_backward, TypeError, "rest must have dtype float32, as return_residuals gives it for dy of bfloat16", (H, H, H, H)),
        (bj.linear_scan_backward, TypeError, "h must have dtype float32", (H.astype(jnp.float16),) * 3),
        (bj.cummax_backward, TypeError, "index must have one of the dtypes int32, got float64", (DY, DY)),
        (bj.cummin_backward, ValueError, r"index must have shape \(4, 3\), that of dy, got \(6,\)", (IDS, DY)),
        (bj.linear_scan_backward, ValueError, r"dy must have shape \(4, 3\), that of a", (DY, DY, X)),
        (bj.repeat_backward, TypeError, "dy must have one of the dtypes.*int32", (DY.astype(jnp.int32), 2)),
        (bj.repeat_backward, ValueError, r"dy must have a shape that repeats \(2,\) divide, got \(4, 3\)", (DY, 2)),
        (bj.repeat_backward, ValueError, r"dy must have a shape that repeats \(1, 1, 1\) divide", (DY, (1, 1, 1))),
        (bj.repeat_backward, ValueError, r"dy must have shape \(4, 6\).*got \(4, 3\)", (DY, (2, 2), (2, 3))),
        (bj.repeat_backward, ValueError, "shape must be given where a repeat is 0", (DY[:0], (0, 1))),
        (bj.repeat_backward, ValueError, r"shape\[0\] must be at least 0, got -2", (DY, 2, (-2, 3))),
        (bj.repeat_backward, TypeError, "shape must be a tuple of integers, got 3", (DY, 2, 3)),
        (bj.lp_pool2d_backward, TypeError, "y must have dtype float32, as return_residuals gives it", (IMAGE.astype(jnp.float16),) * 3 + (2, 2)),
        (bj.lp_pool2d_backward, ValueError, "y must have shape", (IMAGE, IMAGE, IMAGE, 2, 2)),
        (bj.lp_pool2d_backward, TypeError, "dy must have the dtype of x", (IMAGE, IMAGE[..., ::2, ::2], IMAGE[..., ::2, ::2].astype(jnp.float16), 2, 2)),
    ],
)  # fmt: skip
def test_backward(fun, error, match, args):
    with pytest.raises(error, match=f"^{fun.__name__}: {match}"):
        fun(*args)


# ---------------------------------------------------------------------------------------------------------------------
# Searches, counts and positions

POINTS = np.ones((6, 2))


@pytest.mark.parametrize(
    "fun, error, match, args, kwargs",
    [
        (bj.searchsorted, ValueError, "sorted_sequence must have at least one dimension, got a scalar", (X[0, 0], X), {}),
        (bj.searchsorted, TypeError, "sorted_sequence must have one of the dtypes.*got complex64", (X[0].astype(jnp.complex64), X), {}),
        (bj.searchsorted, TypeError, "values must have one of the dtypes.*got bool", (X[0], X > 0), {}),
        (bj.searchsorted, TypeError, "values must be an array, got str", (X[0], "rows"), {}),
        (bj.searchsorted, ValueError, r"values must have the leading dimensions of sorted_sequence, \[\*\(6,\), m\].*got \(5, 3\)", (X, X[1:]), {}),
        (bj.searchsorted, ValueError, "side must be one of 'left', 'right', got 'middle'", (X[0], X), {"side": "middle"}),
        (bj.searchsorted, ValueError, r"sorter must have shape \(3,\), that of sorted_sequence, got \(6,\)", (X[0], X), {"sorter": IDS}),
        (bj.searchsorted, TypeError, "sorter must have one of the dtypes int8.*got float64", (X[0], X), {"sorter": X[0]}),
        (bj.searchsorted, ValueError, "dtype must be one of 'int32', 'int64', got 'int8'", (X[0], X), {"dtype": "int8"}),
        (bj.searchsorted, ValueError, r"implementation must be one of \('native', 'xla'\)", (X[0], X), {"implementation": "cuda"}),
        (bj.digitize, ValueError, r"bins must have one dimension, got shape \(6, 3\)", (X, X), {}),
        (bj.digitize, TypeError, "x must have one of the dtypes.*complex64", (X.astype(jnp.complex64), X[0]), {}),
        (bj.digitize, TypeError, "right must be True or False, got 1", (X, X[0], 1), {}),
        (bj.bincount, TypeError, "x must have one of the dtypes int8.*got float64", (X[0],), {}),
        (bj.bincount, ValueError, r"x must have one dimension, got shape \(2, 3\)", (IDS.reshape(2, 3),), {}),
        (bj.bincount, ValueError, "length must be at least 0, got -1", (IDS,), {"length": -1}),
        (bj.bincount, TypeError, "length must be an integer, got 2.0", (IDS,), {"length": 2.0}),
        (bj.bincount, ValueError, "length must be at most 2147483647, got 2147483648", (IDS,), {"length": 2**31}),
        (bj.bincount, ValueError, "minlength must be at least 0, got -2", (IDS,), {"minlength": -2}),
        (bj.bincount, ValueError, r"weights must have shape \(6,\), that of x, got \(3,\)", (IDS, X[0]), {}),
        (bj.bincount, TypeError, "weights must have one of the dtypes.*complex64", (IDS, IDS.astype(jnp.complex64)), {}),
        (bj.histogram, TypeError, "x must have one of the dtypes.*complex64", (X.astype(jnp.complex64),), {}),
        (bj.histogram, ValueError, "bins must be at least 1, got 0", (X, 0), {}),
        (bj.histogram, TypeError, "bins must be an integer, got 2.5", (X, 2.5), {}),
        (bj.histogram, TypeError, "bins must be an integer, got 'auto'", (X, "auto"), {}),
        (bj.histogram, ValueError, r"bins must be an integer or two or more edges \[n\], got shape \(6, 3\)", (X, X), {}),
        (bj.histogram, ValueError, r"bins must be an integer or two or more edges \[n\], got shape \(1,\)", (X, X[0, :1]), {}),
        (bj.histogram, ValueError, r"range must be None or two numbers.*got \(1, 2, 3\)", (X, 3, (1, 2, 3)), {}),
        (bj.histogram, ValueError, "range must be None or two numbers.*got 3", (X, 3, 3), {}),
        (bj.histogram, ValueError, r"range must be two finite numbers.*got \(2, 1\)", (X, 3, (2, 1)), {}),
        (bj.histogram, ValueError, r"range must be two finite numbers.*got \(0, inf\)", (X, 3, (0, float("inf"))), {}),
        (bj.histogram, ValueError, "range must be given where there are no values", (X[:0],), {}),
        (bj.histogram, ValueError, r"weights must have shape \(6, 3\), that of x, got \(3,\)", (X,), {"weights": X[0]}),
        (bj.histogram, TypeError, "density must be True or False, got 1", (X,), {"density": 1}),
        (bj.histogramdd, ValueError, r"sample must be \[n, d\].*got shape \(6,\)", (IDS,), {}),
        (bj.histogramdd, ValueError, r"bins must be one for all dimensions or 2, one for each, got \[3\]", (POINTS, [3]), {}),
        (bj.histogramdd, ValueError, r"range must be one for all dimensions or 2.*got \[\(0, 1\)\]", (POINTS, 3, [(0, 1)]), {}),
        (bj.histogramdd, ValueError, r"weights must have shape \(6,\), one a point, got \(2,\)", (POINTS,), {"weights": X[0, :2]}),
        (bj.histogramdd, ValueError, "bins may make at most 2147483647 boxes, got 65536 x 65536", (POINTS, 65536, [(0, 1)] * 2), {}),
        (bj.nonzero, ValueError, "x must have at least one dimension, got a scalar", (X[0, 0],), {}),
        (bj.nonzero, TypeError, "x must have one of the dtypes.*complex64", (X.astype(jnp.complex64),), {}),
        (bj.nonzero, ValueError, "size must be at least 0, got -1", (X,), {"size": -1}),
        (bj.nonzero, TypeError, "size must be an integer, got 2.0", (X,), {"size": 2.0}),
        (bj.nonzero, ValueError, r"fill_value must be a scalar or 2, one for each dimension, got \(1,\)", (X,), {"size": 3, "fill_value": (1,)}),
        (bj.nonzero, ValueError, r"fill_value must be a scalar, got shape \(6,\)", (X,), {"size": 3, "fill_value": IDS}),
        (bj.unique, TypeError, "x must have one of the dtypes.*complex64", (X.astype(jnp.complex64),), {}),
        (bj.unique, ValueError, r"axis must be in \[-2, 1\] for x of shape \(6, 3\), got 2", (X,), {"axis": 2}),
        (bj.unique, TypeError, "return_index must be True or False, got 1", (X, 1), {}),
        (bj.unique, TypeError, "equal_nan must be True or False, got None", (X,), {"equal_nan": None}),
        (bj.unique, ValueError, "size must be at least 0, got -1", (X,), {"size": -1}),
        (bj.unique, ValueError, r"fill_value must be a scalar, got shape \(6,\)", (X,), {"size": 3, "fill_value": IDS}),
        (bj.unique_consecutive, TypeError, "x must have one of the dtypes.*complex64", (X.astype(jnp.complex64),), {}),
        (bj.unique_consecutive, ValueError, "axis must be at least -2, got -3", (X,), {"axis": -3}),
        (bj.unique_consecutive, TypeError, "return_counts must be True or False, got 'yes'", (X, False, "yes"), {}),
        (bj.unique_consecutive, ValueError, "size must be at least 0, got -1", (X,), {"size": -1}),
    ],
)  # fmt: skip
def test_counting(fun, error, match, args, kwargs):
    with pytest.raises(error, match=f"^{fun.__name__}: {match}"):
        fun(*args, **kwargs)


def test_sizes_of_counting_are_static_and_limited():
    for fun, name in (
        (bj.bincount, "length"),
        (bj.nonzero, "size"),
        (bj.unique, "size"),
        (bj.unique_consecutive, "size"),
    ):
        with pytest.raises(TypeError, match=f"^{fun.__name__}: {name} must be a static integer, got a traced value"):
            jax.jit(lambda n, fun=fun, name=name: fun(IDS, **{name: n}))(3)
    with pytest.raises(TypeError, match="^histogram: bins must be a static integer, got a traced value"):
        jax.jit(lambda n: bj.histogram(X, n))(3)
    long = jax.ShapeDtypeStruct((2**31,), jnp.int8)
    for fun, name in (
        (lambda x: bj.searchsorted(x, x[:3]), "searchsorted: sorted_sequence"),
        (lambda x: bj.bincount(x, length=3), "bincount: x"),
        (lambda x: bj.histogram(x, 3), "histogram: x"),
        (lambda x: bj.nonzero(x, size=3), "nonzero: x"),
        (lambda x: bj.unique(x, size=3), "unique: x"),
        (lambda x: bj.unique_consecutive(x, size=3), "unique_consecutive: x"),
    ):
        with pytest.raises(ValueError, match=f"^{name} may have at most 2147483647 elements, got 2147483648"):
            jax.eval_shape(fun, long)
