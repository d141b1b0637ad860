"""Products of matrices compared with PyTorch's and NumPy's, in 16 bits, at the edges, and what they refuse."""

import functools
import itertools
import re

import by_torch
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from by_torch import torch
from examples_of import close, same_bits
from programs import FLOATS, normal

import baracuda_jax as bj
from baracuda_jax._core import compat

F = torch.nn.functional

# name: (shapes, baracuda_jax's function, PyTorch's)
CALLS = {
    "gemm": (
        ((4, 5), (5, 3), (4, 3)),
        lambda a, b, c: bj.gemm(a, b, c, alpha=0.5, beta=2), lambda a, b, c: torch.addmm(c, a, b, alpha=0.5, beta=2),
    ),
    "gemm_bias": (
        ((4, 5), (3, 5), (3,)),
        lambda a, b, bias: bj.gemm_bias(a, b, bias, transpose_b=True), lambda a, b, bias: F.linear(a, b, bias),
    ),
    "gemm_bias_relu": (
        ((5, 4), (5, 3), (3,)),
        lambda a, b, bias: bj.gemm_bias_relu(a, b, bias, transpose_a=True), lambda a, b, bias: F.relu(a.T @ b + bias),
    ),
    "gemm_bias_gelu": (
        ((4, 5), (5, 3), (3,), (4, 3)),
        lambda a, b, bias, c: bj.gemm_bias_gelu(a, b, bias, c, beta=2), lambda a, b, bias, c: F.gelu(a @ b + bias + 2 * c),
    ),
    "gemm_bias_silu": (
        ((4, 5), (5, 3), (3,)),
        lambda a, b, bias: bj.gemm_bias_silu(a, b, bias, alpha=2), lambda a, b, bias: F.silu(2 * a @ b + bias),
    ),
    "dense_gemm": (
        ((2, 4, 5), (2, 5, 3), (2, 4, 3)),
        lambda a, b, c: bj.dense_gemm(a, b, c, beta=2), lambda a, b, c: torch.baddbmm(c, a, b, beta=2),
    ),
    "batched_gemm": (((2, 4, 5), (2, 5, 3)), bj.batched_gemm, torch.bmm),
    "gemv": (
        ((4, 5), (5,), (4,)),
        lambda a, x, c: bj.gemv(a, x, c, alpha=2), lambda a, x, c: torch.addmv(c, a, x, alpha=2),
    ),
    "grouped_gemm": (
        ((7, 5), (3, 5, 4)),
        lambda a, b: bj.grouped_gemm(a, b, sent.asarray([4, 0, 2])),
        lambda a, b: torch.cat([a[:4] @ b[0], a[4:6] @ b[2], 0 * a[6:] @ b[2]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", CALLS)
def test_value_and_gradients_are_torchs(name, dtype):
    shapes, function, theirs = CALLS[name]
    args = [normal(shape, dtype, i) for i, shape in enumerate(shapes)]
    dy = normal(jax.eval_shape(function, *args).shape, dtype, 9)
    want, gradients = by_torch.vjp(theirs, [np.asarray(a, np.float64) for a in args], np.asarray(dy, np.float64))
    y, pulled = jax.jit(lambda dy, *args: (lambda y, pull: (y, pull(dy)))(*jax.vjp(function, *args)))(dy, *args)
    assert y.dtype == dtype
    close(y, want, dtype, scale=2)
    for got, expected in zip(pulled, gradients, strict=True):
        close(got, expected, dtype, scale=4)


def test_it_is_rounded_once(platform):
    """1 + 2^-8 is no bfloat16: after the product, after the bias or after the factor it would be 1. On CUDA the library adds
    a bias of 16 bits before or after it rounds, as the size has it."""
    a, b = sent.asarray([[1.0, 2**-8]], jnp.bfloat16), sent.ones((2, 1), jnp.bfloat16)
    assert bj.gemm(a, b, alpha=256)[0, 0] == 256 and bj.gemm(a, b, sent.asarray([[-1.0]], a.dtype))[0, 0] == 2**-8
    assert bj.gemm_bias_relu(a, b, -sent.ones(1, jnp.bfloat16))[0, 0] in ((2**-8,) if platform == "cpu" else (0, 2**-8))
    assert bj.gemm_bias(a, b, sent.full(1, 2.0**-9 - 1, jnp.float32))[0, 0] == 2**-8 + 2**-9


def test_ones_in_16_bits_accumulate_wide():
    for dtype, n in ((jnp.bfloat16, 4096), (jnp.float16, 8192)):
        ones = sent.ones((1, n), dtype)
        assert bj.gemm(ones, ones, transpose_b=True)[0, 0] == n
        assert bj.grouped_gemm(ones, ones[None], sent.asarray([1]), transpose_b=True)[0, 0] == n


@pytest.mark.parametrize("name", ["gemm_bias_gelu", "grouped_gemm", "gemm_sparse24"])
def test_gradients_in_16_bits_are_products_of_16_bits(name):
    """On a GPU, where one of float32 would be slow."""
    if name == "gemm_sparse24":
        args, fun = (normal((4, 4), "bfloat16"), normal((8, 3), "bfloat16")), None
        metadata = sent.full((4, 2), 0b1100, jnp.uint8)
        fun = lambda values, b: bj.gemm_sparse24(values, metadata, b)
    else:
        shapes, fun, _ = CALLS[name]
        args = [normal(shape, "bfloat16") for shape in shapes]
    both = jax.jit(jax.value_and_grad(lambda *args: fun(*args).astype(jnp.float32).sum(), (0, 1)))
    with bj.prefer("xla"):
        text = both.trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert len(products) == 3
    assert all(re.search(r": \(tensor<\S+xbf16>, tensor<\S+xbf16>\)", line) for line in products)


def test_a_gradient_in_one_operand_is_one_product():
    a, b = normal((4, 5)), normal((5, 3))
    for fun, count in (
        (jax.grad(lambda a: bj.gemm(a, b).sum()), 2),
        (lambda a: jax.jvp(lambda a: bj.gemm(a, b), (a,), (a,)), 2),
    ):
        assert str(jax.make_jaxpr(fun)(a)).count("dot_general[") == count


def test_c_is_not_read_with_a_factor_of_0():
    a, b = normal((4, 5)), normal((5, 3))
    same_bits(bj.gemm(a, b, sent.full((4, 3), jnp.nan), beta=0), bj.gemm(a, b))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (4, 1), (4, 3)], ids=str)
def test_c_broadcasts(shape):
    a, b, c = normal((4, 5)), normal((5, 3)), normal(shape, seed=1)
    with jax.numpy_rank_promotion("raise"):
        close(bj.gemm(a, b, c), np.asarray(a) @ np.asarray(b) + np.asarray(c), "float64")
        gradient = jax.jit(jax.grad(lambda c: bj.gemm(a, b, c).sum()))(c)
    assert gradient.shape == shape and gradient.sum() == 12


@pytest.mark.parametrize("m, k, n", [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_sizes_of_0(m, k, n):
    a, b, bias = sent.ones((m, k)), sent.ones((k, n)), sent.ones(n)
    same_bits(bj.gemm_bias(a, b, bias), np.full((m, n), k + 1.0))
    same_bits(bj.grouped_gemm(a, b[None], sent.asarray([m])), np.full((m, n), float(k)))
    same_bits(bj.gemv(a, sent.ones(k)), np.full(m, float(k)))
    assert (bj.int8_gemm(a.astype(jnp.int8), b.astype(jnp.uint8), b_zero_point=1) == 0).all()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_2_in_4_are_those_of_a_dense_matrix(dtype):
    """Of each four the two largest are kept."""
    dense, b = np.asarray(normal((6, 16), dtype)), normal((16, 5), dtype, 1)
    groups = dense.reshape(6, 4, 4)
    kept = np.sort(np.argsort(-np.abs(groups.astype(np.float64)), -1)[..., :2], -1)
    values = np.take_along_axis(groups, kept, -1).reshape(6, 8)
    metadata = (kept[..., 0] | kept[..., 1] << 2 | 0xA0).astype(np.uint8)  # the other bits say nothing
    sparse = np.zeros_like(groups)
    np.put_along_axis(sparse, kept, np.take_along_axis(groups, kept, -1), -1)
    sparse = sent.asarray(sparse.reshape(6, 16))
    fun = lambda values: bj.gemm_sparse24(values, metadata, b)
    same_bits(fun(sent.asarray(values)), bj.gemm(sparse, b))
    gradient = jax.jit(jax.grad(lambda values: fun(values).sum()))(sent.asarray(values))
    of_dense = np.asarray(jax.jit(jax.grad(lambda a: bj.gemm(a, b).sum()))(sparse)).reshape(6, 4, 4)
    same_bits(gradient, np.take_along_axis(of_dense, kept, -1).reshape(6, 8))


# ---------------------------------------------------------------------------------------------------------------------
# 8 bits


@pytest.mark.parametrize("left", ["int8", "uint8"])
@pytest.mark.parametrize("right", ["int8", "uint8"])
def test_products_of_integers_are_exact(left, right):
    """At the ends of the ranges, of either sign, with zero points for all and for each row and column."""
    rng = np.random.default_rng(0)
    draw = lambda dtype, *shape: rng.choice([np.iinfo(dtype).min, np.iinfo(dtype).max, 1], shape).astype(dtype)
    a, b = draw(left, 4, 1000), draw(right, 1000, 3)
    for zeros in ((), (draw(left), draw(right)), (draw(left, 4), draw(right, 3)), (None, draw(right, 3))):
        a_zero, b_zero = (0 if z is None else z.astype(np.int64) for z in (zeros or (None, None)))
        want = (a.astype(np.int64) - np.reshape(a_zero, (-1, 1))) @ (b.astype(np.int64) - b_zero)
        got = bj.int8_gemm(a, b, None, None, *zeros)
        assert got.dtype == jnp.int32
        np.testing.assert_array_equal(got, want)


def test_quantized_results_are_rounded_to_even_and_saturate():
    a, b = sent.asarray([[1, 3, 5, 127, -128]], jnp.int8).T, sent.asarray([[1, -1]], jnp.int8)
    assert bj.int8_gemm(a, b, 0.5).tolist() == [[0, 0], [2, -2], [2, -2], [64, -64], [-64, 64]]
    assert bj.int8_gemm(a, b, 0.5, zero_point=10, dtype="uint8")[:, 1].tolist() == [10, 8, 8, 0, 74]
    assert bj.int8_gemm(a, b, 2.0)[3].tolist() == [127, -128]
    assert bj.int8_gemm(a, b, 0.5, sent.ones(2, jnp.int32), activation="relu", dtype="float32")[1].tolist() == [2.5, 0]
    assert bj.int8_gemm(a, b, sent.asarray([jnp.nan, jnp.inf], jnp.float32))[0].tolist() == [0, -128]
    assert bj.int8_gemm(a, b, None, sent.asarray([7, 8], jnp.int32))[0].tolist() == [8, 7]


FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize("left", FLOAT8)
@pytest.mark.parametrize("right", FLOAT8)
def test_products_of_8_bit_floats(left, right):
    a, b = normal((4, 32)).astype(left), normal((32, 3), seed=1).astype(right)
    wide = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
    scales = normal((4,), "float32", 2), normal((3,), "float32", 3)
    want = wide * np.asarray(scales[0], np.float64)[:, None] * np.asarray(scales[1], np.float64)
    close(bj.fp8_gemm(a, b, *scales, dtype="float32"), want, "float32")
    close(bj.fp8_gemm(a, b, 0.5, dtype=jnp.float16), wide / 2, "float16")
    assert bj.fp8_gemm(a, b).dtype == jnp.bfloat16


@pytest.mark.parametrize("dtype", FLOAT8)
def test_results_of_8_bit_floats_saturate(dtype):
    largest = float(jnp.finfo(dtype).max)
    a = sent.asarray([[448.0, 448.0], [1.0, 0.0], [jnp.nan, 0.0]], FLOAT8[0])
    b = sent.asarray([[448.0, -448.0], [448.0, -448.0]], FLOAT8[0])
    y = bj.fp8_gemm(a, b, dtype=dtype).astype(jnp.float32)
    np.testing.assert_array_equal(y, [[largest, -largest], [448, -448], [np.nan] * 2])
    y = bj.fp8_gemm(a, b, out_scale=896.0, dtype=dtype).astype(jnp.float32)
    np.testing.assert_array_equal(y[:2], [[448, -448], [0.5, -0.5]])


@pytest.mark.parametrize(
    "m, k, n, is_wide", [(2, 2, 2, True), (9, 5, 10, True), (10, 5, 10, False), (16, 16, 16, False)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_tiny_products_of_8_bit_floats_are_products_of_float32(m, k, n, is_wide, transposed):
    """XLA's GPU compiler computes a product whose operands have less than 100 elements in float16, where 448 x 448 is infinite,
    except by an algorithm that says otherwise."""
    a = jax.ShapeDtypeStruct((k, m) if transposed else (m, k), FLOAT8[0])
    b = jax.ShapeDtypeStruct((n, k) if transposed else (k, n), FLOAT8[1])
    fun = lambda a, b, **more: bj.fp8_gemm(a, b, transpose_a=transposed, transpose_b=transposed, **more)
    for precision, dtypes in ((None, ["float32"] * 2 if is_wide else [*FLOAT8]), ("ANY_F8_ANY_F8_F32", [*FLOAT8])):
        jaxpr = jax.make_jaxpr(functools.partial(fun, precision=precision))(a, b)
        found = [e for e in compat.equations(jaxpr) if e.primitive.name == "dot_general"]
        assert found and all([str(x.aval.dtype) for x in e.invars] == dtypes for e in found)


# ---------------------------------------------------------------------------------------------------------------------
# What is refused

A, B = normal((4, 5)), normal((5, 3))
COMMON = [
    (TypeError, "a must have one of the dtypes .*, got complex128", {"a": A.astype(complex)}),
    (TypeError, "a must be an array, got str", {"a": "rows"}),
    (ValueError, r"b must have a contracted size of 5, for a of shape \(4, 5\), got shape \(4, 5\)", {"b": A}),
    (TypeError, "transpose_a must be True or False, got 1", {"transpose_a": 1}),
    (TypeError, "transpose_b must be True or False, got None", {"transpose_b": None}),
]
OF_FLOATS = [
    (TypeError, "b must have the dtype of a, float64, got float32", {"b": B.astype(jnp.float32)}),
    (ValueError, "precision must be one that jax.lax.dot_general takes, got 'best'", {"precision": "best"}),
    (ValueError, r"precision must be one that jax.lax.dot_general takes, got \[\]", {"precision": []}),
    (TypeError, "alpha must be a static number, got 'x'", {"alpha": "x"}),
    (
        ValueError,
        "implementation='native', but the op has no kernel; cublaslt computes it",
        {"implementation": "native"},
    ),
]
WITH_C = [
    (ValueError, r"c must broadcast to the product's shape \(4, 3\), got \(2,\)", {"c": sent.ones(2)}),
    (TypeError, "c must have the dtype of a, float64, got float32", {"c": sent.ones(3, jnp.float32)}),
    (TypeError, "beta must be a static number, got True", {"beta": True}),
]
BIASED = [
    *COMMON, *OF_FLOATS, *WITH_C,
    (ValueError, r"bias must have shape \(3,\), one for each column of the product, got \(4,\)", {"bias": sent.ones(4)}),
    (TypeError, "bias must be an array, got None; gemm has none", {"bias": None}),
]  # fmt: skip
RANK_2 = [(ValueError, r"a must have rank 2, got shape \(1, 4, 5\)", {"a": A[None]})]
X, Q = np.ones((4, 5), jnp.int8), np.ones((5, 3), jnp.int8)
E4 = jnp.float8_e4m3fn
REFUSED = {
    "gemm": [*COMMON, *OF_FLOATS, *WITH_C, *RANK_2],
    "dense_gemm": [
        *COMMON, *OF_FLOATS, *WITH_C,
        (ValueError, r"a must have rank 2 or more, got shape \(5,\)", {"a": A[0]}),
        (ValueError, r"b must have the batches of a of shape \(1, 4, 5\), got shape \(5, 3\)", {"a": A[None]}),
    ],
    **dict.fromkeys(("gemm_bias", "gemm_bias_relu", "gemm_bias_gelu", "gemm_bias_silu"), BIASED),
    "batched_gemm": [(ValueError, r"a must have rank 3, got shape \(4, 5\)", {})],
    "gemv": [
        (ValueError, r"x must have a contracted size of 5, for a of shape \(4, 5\), got shape \(4,\)", {"x": sent.ones(4)}),
        (ValueError, r"x must have rank 1, got shape \(5, 3\)", {"x": B}),
        (ValueError, r"c must broadcast to the product's shape \(4,\), got \(5,\)", {"c": sent.ones(5)}),
    ],
    "grouped_gemm": [
        (ValueError, r"b must have rank 3, got shape \(5, 3\)", {"b": B}),
        (ValueError, r"group_sizes must have shape \(1,\), .*, got \(2,\)", {"group_sizes": sent.asarray([2, 2])}),
        (TypeError, "group_sizes must have one of the dtypes int8.*, got float64", {"group_sizes": sent.ones(1)}),
        (ValueError, "b must have a contracted size of 5", {"transpose_b": True}),
    ],
    "gemm_sparse24": [
        (TypeError, "metadata must have one of the dtypes uint8, got int32", {"metadata": sent.ones((4, 2), jnp.int32)}),
        (ValueError, r"metadata must have shape \(4, 2\), .*, got \(4, 3\)", {"metadata": sent.ones((4, 3), jnp.uint8)}),
        (ValueError, r"values must have two elements for each four, got shape \(4, 5\)", {"values": A}),
        (ValueError, r"b must have a contracted size of 8, for values of shape \(4, 4\), got shape \(5, 3\)", {"b": B}),
    ],
    "int8_gemm": [
        *COMMON[3:], (TypeError, "a must have one of the dtypes int8, uint8, got float64", {"a": A}),
        (ValueError, r"b must have a contracted size of 5, for a of shape \(4, 5\), got shape \(4, 5\)", {"b": X}),
        (TypeError, "scale must have one of the dtypes float32, got int32", {"scale": sent.ones((), jnp.int32)}),
        (ValueError, r"scale must have shape \(\) or \(3,\), got \(4,\)", {"scale": sent.ones(4, jnp.float32)}),
        (TypeError, "bias must have one of the dtypes int32, got float32", {"bias": sent.ones(3, jnp.float32)}),
        (ValueError, "activation must be 'identity' without a scale, got 'relu'", {"activation": "relu"}),
        (ValueError, "activation must be one of 'identity', .*, got 'tanh'", {"activation": "tanh"}),
        (ValueError, "dtype must be one of 'int32', got 'int8'", {"dtype": "int8"}),
        (TypeError, "dtype must be a dtype, got 'int9'", {"dtype": "int9"}),
        (ValueError, "zero_point must be None for a result of int32, got an array", {"zero_point": 1}),
        (ValueError, r"a_zero_point must have shape \(\) or \(4,\), got \(3,\)", {"a_zero_point": sent.asarray([1, 2, 3])}),
    ],
    "fp8_gemm": [
        (TypeError, "a must have one of the dtypes float8_e4m3fn, float8_e5m2, got float64", {"a": A}),
        (ValueError, "dtype must be one of .*, got 'int8'", {"dtype": "int8"}),
        (ValueError, "out_scale must be None for a result of bfloat16, got an array", {"out_scale": 2.0}),
        (ValueError, r"a_scale must have shape \(\) or \(4,\), got \(3,\)", {"a_scale": sent.ones(3, jnp.float32)}),
        (TypeError, "b_scale must have one of the dtypes float32, got float64", {"b_scale": sent.ones(3)}),
    ],
}  # fmt: skip
GIVEN = {
    **{f"gemm_bias{end}": {"bias": sent.ones(3)} for end in ("", "_relu", "_gelu", "_silu")},
    "grouped_gemm": {"b": B[None], "group_sizes": sent.asarray([4])},
    "gemm_sparse24": {"values": A[:, :4], "metadata": sent.ones((4, 2), jnp.uint8), "b": sent.ones((8, 3))},
    "int8_gemm": {"a": X, "b": Q},
    "fp8_gemm": {"a": A.astype(E4), "b": B.astype(E4)},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name, error, match, kwargs", [(name, *row) for name, rows in REFUSED.items() for row in rows])
def test_what_is_refused(name, error, match, kwargs):
    given = {"a": A, ("x" if name == "gemv" else "b"): B[:, 0] if name == "gemv" else B} | GIVEN.get(name, {})
    if name == "gemm_sparse24":
        del given["a"]
    with pytest.raises(error, match=f"^{name}: {match}"):
        getattr(bj, name)(**(given | kwargs))


def _by_hand(a, b, dy, sizes, transpose_b):
    """The product of groups and its gradients, in float64."""
    a, b, dy = (np.asarray(x, np.float64) for x in (a, b, dy))
    b = b.swapaxes(1, 2) if transpose_b else b
    y, da, db = np.zeros_like(dy), np.zeros_like(a), np.zeros_like(b)
    for g, (i, j) in enumerate(itertools.pairwise(np.concatenate([[0], np.cumsum(sizes)]))):
        y[i:j], da[i:j], db[g] = a[i:j] @ b[g], dy[i:j] @ b[g].T, a[i:j].T @ dy[i:j]
    return y, da, db.swapaxes(1, 2) if transpose_b else db


@pytest.mark.parametrize("implementation", ["native", "xla"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("k, n", [(1032, 136), (72, 136), (13, 8), (8, 5)])
@pytest.mark.parametrize("sizes", [[0, 1, 127, 128, 129, 0], [300, 400], [0, 0], [1]])
def test_groups_around_a_tile(dtype, transpose_b, k, n, sizes, implementation):
    """And rows without a group, whose products are 0. The same bits twice."""
    rng, groups, rows = np.random.default_rng(0), len(sizes), sum(sizes) + 9
    draw = lambda *shape: sent.asarray(rng.standard_normal(shape).astype(dtype))
    a, b, dy = draw(rows, k), draw(groups, n, k) if transpose_b else draw(groups, k, n), draw(rows, n)
    how = dict(transpose_b=transpose_b, implementation=implementation)
    product = lambda a, b: bj.grouped_gemm(a, b, sent.asarray(np.array(sizes, np.int32)), **how)
    both = jax.jit(lambda a, b, dy: (lambda y, of: (y, *of(dy)))(*jax.vjp(product, a, b)))
    tolerance = {"bfloat16": 1e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    for got, again, want in zip(both(a, b, dy), both(a, b, dy), _by_hand(a, b, dy, sizes, transpose_b), strict=True):
        near = dict(rtol=tolerance, atol=tolerance * max(1, np.abs(want).max()))
        np.testing.assert_allclose(np.asarray(got, np.float64), want, **near)
        same_bits(got, again)


@pytest.mark.parametrize("transpose_b", [False, True])
def test_batches_with_the_same_matrices(transpose_b):
    """The rows of a group, which are those of all batches, are not neighbors."""
    rng, sizes, k, n = np.random.default_rng(0), [90, 0, 130], 1032, 136
    draw = lambda *shape: sent.asarray(rng.standard_normal(shape).astype("bfloat16"))
    a, b = draw(3, sum(sizes) + 7, k), draw(3, n, k) if transpose_b else draw(3, k, n)
    sizes = sent.asarray(np.array(sizes, np.int32))
    product = functools.partial(bj.grouped_gemm, transpose_b=transpose_b, implementation="native")
    got = jax.jit(jax.vmap(product, (0, None, None)))(a, b, sizes)
    for a_of_batch, got_of_batch in zip(a, got, strict=True):
        want = _by_hand(a_of_batch, b, np.zeros(got.shape[1:]), np.asarray(sizes), transpose_b)[0]
        np.testing.assert_allclose(
            np.asarray(got_of_batch, np.float64), want, rtol=1e-2, atol=1e-2 * np.abs(want).max()
        )


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (5, 0, 3, 4), (5, 2, 0, 4), (5, 2, 3, 0)])
def test_groups_of_nothing(shape):
    """Without rows, groups, columns of a or columns of b."""
    rows, groups, k, n = shape
    a, b, sizes = sent.ones((rows, k)), sent.ones((groups, k, n)), sent.asarray(np.full(groups, rows // 2, np.int32))
    product = lambda a, b: bj.grouped_gemm(a, b, sizes, implementation="native")
    y, da, db = jax.jit(lambda a, b: (lambda y, of: (y, *of(y)))(*jax.vjp(product, a, b)))(a, b)
    for got, like in ((y, (rows, n)), (da, a.shape), (db, b.shape)):
        np.testing.assert_array_equal(got, np.zeros(like))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_an_export_for_any_groups(dtype):
    """Rows, columns and groups."""
    rows, groups, k, n = jax.export.symbolic_shape("m, g, k, n")
    types = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((rows, k), (groups, k, n))]
    product = jax.jit(functools.partial(bj.grouped_gemm, implementation="native"))
    again = jax.export.export(product, disabled_checks=bj.export_checks)(
        *types, jax.ShapeDtypeStruct((groups,), jnp.int32)
    )
    args = normal((13, 9), dtype), normal((3, 9, 5), dtype), sent.asarray(np.array([5, 0, 7], np.int32))
    same_bits(again.call(*args), product(*args))
