"""Calls on which mirrors are compared with JAX's functions: {name: [(label, arguments, keywords)]}."""

import jax
import jax.image
import jax.numpy as jnp
import numpy as np
import sent
from jax import lax

_rng = np.random.default_rng(7)
_NORMAL = np.round(4 * _rng.standard_normal((4, 6))) / 4 + 0.0  # with ties; no -0

X = sent.asarray(_NORMAL, jnp.float32)
V = X[0]
CUBE = sent.asarray(np.round(2 * _rng.standard_normal((2, 3, 4))) + 0.0, jnp.float32)
NAN = X.at[1, 2].set(jnp.nan).at[3, 0].set(jnp.nan).at[2, 3].set(-0.0).at[2, 4].set(0.0)
INF = X.at[0, 1].set(jnp.inf).at[2, 0].set(-jnp.inf)
SINGLE = jnp.float32(1.5)  # of rank 0
EMPTY = sent.zeros((0, 3), jnp.float32)
FLAT = sent.zeros((4, 6), jnp.float32)
INTEGERS = sent.asarray(4 * _NORMAL, jnp.int32)
BYTES = sent.asarray(np.abs(4 * _NORMAL), jnp.uint8)
BOOLS = X > 0
HALF, BRAIN = X.astype(jnp.float16), X.astype(jnp.bfloat16)
COMPLEX = X + 1j * X[::-1]
NUMPY = _NORMAL  # of float64 and NumPy's
MASK = sent.asarray(_rng.random((4, 6)) > 0.3)
WEAK = sent.full((4, 6), 2.0)
IDS = sent.asarray([2, 0, 2, 7, -1, 1], jnp.int32)  # with ids out of range, and segment 3 empty

ARRAYS = {
    "floats": X, "vector": V, "cube": CUBE, "NaN": NAN, "infinite": INF, "rank 0": SINGLE, "equal": FLAT,
    "integers": INTEGERS, "bytes": BYTES, "bools": BOOLS, "float16": HALF, "bfloat16": BRAIN, "complex": COMPLEX,
    "NumPy's": NUMPY, "weak": WEAK, "empty": EMPTY,
}  # fmt: skip
REAL = {name: x for name, x in ARRAYS.items() if name != "complex"}


def call(label, *args, **kwargs):
    return label, args, kwargs


def each(arrays, *rest, **kwargs):
    """A call on each array, the other arguments the same."""
    return [call(f"{name} {rest or ''}{kwargs or ''}".strip(), x, *rest, **kwargs) for name, x in arrays.items()]


def alike(names, calls):
    """The same calls of several functions."""
    return {name: calls for name in names}


def some(*names):
    return {name: ARRAYS[name] for name in names}


_MATRICES = some("floats", "NaN", "integers", "bools", "bfloat16", "equal")
_AXES = (
    *each(ARRAYS),
    *each(_MATRICES, 0),
    *each(_MATRICES, axis=-1, keepdims=True),
    *each(some("cube"), (0, -1)),
    *each(some("cube"), ()),
    *each(some("empty"), 0),
    *each(some("empty"), 1),
)
_WHERE = each(some("floats", "integers", "bfloat16"), -1, where=MASK)
_WHERE += each(some("floats"), where=MASK[0])
_DTYPE = each(some("floats", "integers"), dtype=jnp.float16) + each(some("bools", "floats"), 0, jnp.int8)
_SCAN = [*each(ARRAYS), *each(_MATRICES, 0), *each(_MATRICES, axis=-1), *_DTYPE, *each(some("empty", "infinite"), 0)]
_API = [
    *each(some("vector")),
    *each(some("infinite"), axis=0),
    *each(_MATRICES, axis=0),
    *each(some("bytes", "cube"), axis=-1),
]
_API += each(some("floats"), axis=0, include_initial=True) + each(some("integers"), axis=1, dtype=jnp.float32)
_LAX_SCAN = [*each(_MATRICES | some("infinite", "weak"), 0), *each(_MATRICES, 1, True), *each(some("cube"), axis=2)]
_LAX_SCAN = [c for c in _LAX_SCAN if not c[0].startswith("bools")]
_SORTS = [*each(ARRAYS), *each(_MATRICES, 0), *each(some("floats", "NaN", "integers"), None)]
_SORTS += each(some("integers", "floats", "NaN", "bools"), descending=True)
_SORTS += each(some("floats"), 0, stable=False) + each(some("integers"), stable=False, descending=True)
_ARG = [c for c in _AXES if not (isinstance(c[1][-1], tuple) or c[0].startswith("empty"))]
_STATISTIC = [c for c in _AXES if not c[0].startswith(("empty", "bools", "complex"))]
_STATISTIC += each(some("infinite"), -1)
_QUANTILES = [
    *each(some("infinite"), 1.0),
    *(c for q in (0.3, 0.5, 1, np.asarray([0.0, 0.25, 0.9], np.float32)) for c in each(some("floats", "NaN"), q, -1)),
    *(c for method in ("lower", "higher", "midpoint", "nearest") for c in each(some("floats"), 0.4, 0, method=method)),
    *each(some("float16", "bfloat16", "integers", "cube", "NumPy's"), 0.7),
    *each(some("cube"), 0.2, (0, 2), keepdims=True),
    *each(some("floats"), jnp.float32(0.4)),
    *each(some("floats"), 1.5),
]
_PERCENTILES = [(label, (x, 100 * q, *rest), kwargs) for label, (x, q, *rest), kwargs in _QUANTILES]
_FLOATS = {name: x for name, x in REAL.items() if name != "empty"} | {
    "kinks": sent.asarray([-6.0, -3, -1, -0.0, 0, 1, 3, 6])
}
_ACTIVATION = each(_FLOATS)
_SHAPES = each(ARRAYS)
_UNIQUE = [c for c in each(REAL) if not c[0].startswith("rank")]
_UNIQUE += each(some("floats", "integers", "NaN"), size=40) + each(some("floats"), size=5)
_UNIQUE += each(some("floats"), size=30, fill_value=-9)


def _windows():
    """Of sums, maxima and minima. Those of equal elements and at infinities, of all ranks, layouts and paddings."""
    image = sent.asarray(_rng.permutation(2 * 3 * 7 * 6).reshape(2, 3, 7, 6) / 16, jnp.float32)
    for name, nothing, fun in (("sum", 0.0, lax.add), ("max", -np.inf, lax.max), ("min", np.inf, lax.min)):
        yield call(f"{name} of an image", image, nothing, fun, (1, 1, 3, 2), (1, 1, 2, 1), "SAME")
        yield call(
            f"{name}, channels last", image, nothing, fun, (1, 2, 2, 1), (1, 2, 1, 1), ((0, 0), (1, 0), (0, 2), (0, 0))
        )
        yield call(f"{name} of all axes", image, nothing, fun, (2, 2, 3, 2), (1, 1, 2, 2), "SAME_LOWER")
        yield call(f"{name} of axes apart", image, nothing, fun, (2, 1, 1, 4))
        yield call(f"{name} of steps", image, nothing, fun, (1, 1, 1, 1), (1, 2, 1, 3))
        yield call(f"dilated {name}", image, nothing, fun, (1, 1, 3, 2), (1, 1, 1, 2), "VALID", None, (1, 1, 2, 3))
        yield call(f"{name} of bases apart", image, nothing, fun, (1, 1, 3, 2), base_dilation=(1, 1, 2, 1))
        yield call(f"{name} of a vector", V, nothing, fun, (2,), (1,), ((1, 1),))
        yield call(f"{name} of equal ones", FLAT, nothing, fun, (2, 3))
        yield call(f"{name} of bfloat16", BRAIN, np.array(nothing, BRAIN.dtype), fun, (2, 3))
        yield call(f"{name} of integers", INTEGERS, int(np.clip(nothing, -(2**31), 2**31 - 1)), fun, (2, 3))
        yield call(f"{name} from 1", X, 1.0, fun, (2, 3))
        yield call(f"{name} of too few", X, nothing, fun, (2, 9))
        yield call(f"{name} of another rank", X, nothing, fun, (2,))
        yield call(f"{name} and NaN", NAN, nothing, fun, (2, 3))
    yield call("product", X, 1.0, lax.mul, (2, 3))


def _segments():
    ids, matrix = IDS, X.T
    yield call("floats", matrix, ids, 4)
    yield call("no number of segments", matrix, jnp.abs(ids))
    for name in ("NaN", "infinite", "integers", "bytes", "float16", "bfloat16", "NumPy's", "equal", "weak"):
        yield call(name, sent.asarray(ARRAYS[name]).T if name != "NumPy's" else NUMPY.T, ids, 4)
    yield call("vector", V, ids, 3)
    yield call("rank 3", jnp.tile(CUBE.reshape(6, 2, 2), (1, 1, 1)), ids, num_segments=4)
    yield call("no segments", matrix, ids, 0)
    yield call("no rows", EMPTY, sent.zeros(0, jnp.int32), 3)
    yield call("sorted", matrix, jnp.sort(ids), 4, indices_are_sorted=True)
    yield call("unique", matrix, sent.arange(6), 8, unique_indices=True)
    yield call("unsigned ids", matrix, jnp.abs(ids).astype(jnp.uint8), 4)
    yield call("clip", matrix, ids, 4, mode="clip")
    yield call("drop", matrix, ids, 4, mode="drop")
    yield call("bucket", matrix, ids, 4, bucket_size=2)
    yield call("NumPy ids", matrix, np.asarray(ids), 4)
    yield call("all equal and -inf", sent.full((6, 2), -jnp.inf), ids, 4)
    yield call("all equal and inf", sent.full((6, 2), jnp.inf), ids, 4)


_SEGMENTS = list(_segments())

_SIZES = {
    "larger": (9, 11), "smaller": (3, 2), "one axis": (4, 5), "the same": (4, 6), "mixed": (8, 3), "none": (0, 6), "another rank": (4,),
}  # fmt: skip
_RESIZED = [
    *(call(f"{method} {size}", X, shape, method) for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5")
      for size, shape in _SIZES.items()),
    *(call(f"{method} aliased {size}", X, _SIZES[size], method, antialias=False) for method in ("linear", "cubic", "lanczos3")
      for size in ("larger", "smaller")),
    *(call(name, x, tuple(n + 2 for n in x.shape), "bilinear")
      for name, x in ARRAYS.items() if name not in ("rank 0", "NaN", "infinite")),
    call("float16 smaller", HALF, (3, 3), "linear"), call("bfloat16 smaller", BRAIN, (3, 3), "cubic"),
    call("by name", X, (7, 5), jax.image.ResizeMethod.CUBIC), call("rank 0", SINGLE, (), "linear"),
    call("cube", CUBE, (5, 3, 2), "trilinear"), call("unknown", X, (7, 5), "sinc"), call("sizes in a list", X, [7, 5], "linear"),
    call("NaN", NAN, (6, 9), "linear"), call("infinite", INF, (6, 9), "linear"),
]  # fmt: skip
_MOVED = [
    *(call(f"{method} {label}", X, (5, 7), (0, 1), np.array(scale), np.array(moved), method)
      for method in ("linear", "cubic", "lanczos3")
      for label, scale, moved in (("larger", (1.3, 1.2), (0.2, -0.4)), ("smaller", (0.6, 0.4), (1.3, 2.1)))),
    call("one axis", X, (4, 9), (-1,), np.array([1.5]), np.array([-0.7]), "linear", antialias=False),
    call("far", X, (4, 9), (1,), np.array([1.5]), np.array([40.3]), "linear"),
    call("on a device", X, (4, 9), (1,), sent.asarray([1.5]), sent.asarray([0.3]), "linear"),
    call("nearest", X, (4, 9), (1,), np.array([1.5]), np.array([0.3]), "nearest"),
    call("integers", INTEGERS, (4, 9), (1,), np.array([1.5]), np.array([0.3]), "linear"),
    call("NaN", NAN, (4, 9), (1,), np.array([1.5]), np.array([0.3]), "linear"),
]  # fmt: skip


CALLS = {
    "image.resize": _RESIZED,
    "image.scale_and_translate": _MOVED,
    **alike(("numpy.sum", "numpy.prod"), [*_AXES, *_WHERE, *_DTYPE, *each(some("floats"), initial=2.0)]),
    **alike(("numpy.mean",), [*_AXES, *_WHERE, *_DTYPE[:2]]),
    **alike(
        ("numpy.max", "numpy.min", "numpy.amax", "numpy.amin"),
        [*_AXES, *each(some("floats"), 0, initial=0.5), *each(some("floats", "NaN"), -1, where=MASK, initial=-3.0)],
    ),
    **alike(
        ("numpy.var", "numpy.std"),
        [*_AXES, *_WHERE, *each(some("floats", "float16"), 0, ddof=1), *each(some("floats"), correction=1.5),
         *each(some("floats"), 1, ddof=6), *each(some("floats"), 0, mean=X.mean(0, keepdims=True))],
    ),
    **alike(("numpy.any", "numpy.all"), [*_AXES, *_WHERE]),
    "numpy.count_nonzero": [*_AXES],
    "numpy.trace": [*each(_MATRICES), *each(some("cube"), 1, 0, 2), *each(some("cube"), -1, axis1=2, axis2=1),
                    *each(some("floats"), dtype=jnp.float16)],
    "numpy.linalg.trace": [*each(_MATRICES | some("cube")), *each(some("floats"), offset=-2)],
    **alike(("numpy.cumsum", "numpy.cumprod", "numpy.nancumsum", "numpy.nancumprod"), _SCAN),
    **alike(("numpy.cumulative_sum", "numpy.cumulative_prod"), _API),
    **alike(("numpy.sort", "numpy.argsort"), _SORTS),
    **alike(("numpy.argmax", "numpy.argmin"), _ARG),
    **alike(("numpy.median", "numpy.nanmedian"), _STATISTIC),
    **alike(("numpy.quantile", "numpy.nanquantile"), _QUANTILES),
    **alike(("numpy.percentile", "numpy.nanpercentile"), _PERCENTILES),
    "numpy.linalg.norm": [*each(some("vector", "floats", "bfloat16", "integers", "cube", "NumPy's", "complex")),
                          *each(some("floats", "cube"), axis=-1), *each(some("floats"), 2, 0, True),
                          *each(some("floats"), 1, 0), *each(some("floats"), axis=(0, 1)), *each(some("floats"), 2),
                          call("large", 1e30 * X), call("zero", 0 * V)],
    "numpy.linalg.vector_norm": [*each(some("vector", "floats", "bfloat16", "cube", "integers")),
                                 *each(some("cube"), axis=(0, 2)), *each(some("floats"), axis=0, keepdims=True),
                                 *each(some("floats"), ord=1), call("large", 1e30 * X), call("zero", 0 * V)],
    "numpy.repeat": [*each(ARRAYS, 2), *each(some("floats", "bfloat16", "bools"), 3, 0), *each(some("cube"), 0, -1),
                     call("each", X, sent.asarray([2, 0, 1, 3]), 0),
                     call("each and a longer total", X, sent.asarray([2, 0, 1, 3]), 0, total_repeat_length=9),
                     call("each and a shorter total", X, sent.asarray([2, 0, 1, 3]), 0, total_repeat_length=4),
                     call("each, flat", V, sent.asarray([1, 1, 0, 2, 0, 1]), total_repeat_length=5),
                     call("a list", X, [2, 0, 1, 3], 0), call("NumPy's", X, np.asarray([2, 0, 1, 3]), 0),
                     call("one total", X, 2, 0, total_repeat_length=5)],
    "numpy.tile": [*each(ARRAYS, 2), *each(some("cube", "bfloat16"), (2, 1, 3)), *each(some("cube"), (2, 1)),
                   *each(some("floats"), 0), *each(some("floats"), ())],
    "numpy.roll": [*each(ARRAYS, 2), *each(some("floats", "bools"), -7, 0), *each(some("cube"), (1, -1), (0, 2)),
                   *each(some("cube"), 1, (0, 1)), *each(some("cube"), (1, 2), (1, 1)), *each(some("floats"), jnp.int32(2))],
    "numpy.flip": [*each(ARRAYS), *each(some("cube", "complex"), -1), *each(some("cube"), (0, 2)), *each(some("cube"), ())],
    "numpy.fliplr": each(some("floats", "bools", "cube", "complex")),
    "numpy.flipud": each(some("floats", "vector", "cube", "weak")),
    "numpy.pad": [*each(some("floats", "vector", "bools", "bytes", "bfloat16", "NaN", "empty"), 2),
                  *each(some("floats"), (1, 2)), *each(some("floats"), ((1, 0), (3, 2)), constant_values=1.5),
                  *each(some("integers"), 1, constant_values=1), *each(some("integers"), 1, constant_values=1.5),
                  *each(some("bytes"), 1, constant_values=300), *each(some("bools"), 1, constant_values=2),
                  *each(some("floats"), 1, constant_values=(1, 2)), *each(some("floats"), {0: (1, 2)}),
                  *(c for mode in ("edge", "reflect", "symmetric", "wrap") for c in each(some("floats", "cube"), 2, mode)),
                  *each(some("vector"), (9, 14), "reflect"), *each(some("vector"), (9, 14), "symmetric"),
                  *each(some("vector"), (9, 14), "wrap"), *each(some("floats"), 2, "linear_ramp"),
                  *each(some("floats"), 2, "reflect", reflect_type="odd")],
    **alike(("numpy.tril", "numpy.triu"), [*each(ARRAYS), *each(some("floats", "complex"), 2), *each(some("cube"), k=-1)]),
    "numpy.concatenate": [*([call(name, [x, x]) for name, x in ARRAYS.items() if name != "rank 0"]),
                          call("an axis", (X, X[:, :1]), -1), call("promoted", [X, HALF]), call("mixed", [X, INTEGERS], 0),
                          call("a dtype", [X, X], dtype=jnp.float16), call("flat", [X, V], None), call("one", [X]),
                          call("an array", CUBE)],
    "numpy.concat": [call("two", [X, X]), call("an axis", [X, X], axis=1), call("mixed", (X, BRAIN))],
    "numpy.bincount": [call("ids", jnp.abs(IDS)), call("negative", IDS), call("bools", BOOLS[0]),
                       call("minlength", IDS, minlength=12), call("length", IDS, length=3), call("weights", IDS, V),
                       call("weights and a length", IDS, HALF[0], length=5), call("bytes", BYTES[0], INTEGERS[0]),
                       call("weak weights", IDS, WEAK[0]), call("empty", sent.zeros(0, jnp.int32)), call("bools' weights", IDS, BOOLS[0])],
    "numpy.histogram": [*each(some("floats", "cube", "NumPy's", "integers", "infinite")), *each(some("floats"), 4, (-1.0, 1)),
                        *each(some("NaN"), 4, (-1.0, 1.0)), *each(some("floats", "NaN"), sent.asarray([-1.0, 0, 0.5, 2])),
                        *each(some("floats"), 5, density=True), *each(some("floats"), 5, None, X), *each(some("equal"), 3),
                        *each(some("float16"), 3)],
    "numpy.searchsorted": [*(call(f"{name} {side}", jnp.sort(V), x, side) for side in ("left", "right")
                             for name, x in REAL.items()),
                           call("NaN among the sorted", jnp.sort(NAN.ravel()), NAN), call("promoted", jnp.sort(INTEGERS[0]), X),
                           call("a number", jnp.sort(V), 0.5), call("a sorter", V, X, sorter=jnp.argsort(V)),
                           call("empty", EMPTY[:, 0], V), call("a method", jnp.sort(V), X, method="sort"),
                           call("zeros", sent.asarray([-0.0, 0.0, 0.0]), sent.asarray([0.0, -0.0]))],
    "numpy.digitize": [*(call(f"{name} {right}", x, jnp.sort(V), right) for right in (False, True)
                         for name, x in some("floats", "NaN", "integers", "bfloat16").items()),
                       call("descending", X, -jnp.sort(-V)), call("descending, right", X, -jnp.sort(-V), right=True)],
    "numpy.nonzero": [*(c for c in each(REAL) if not c[0].startswith("rank")), *each(some("floats", "cube"), size=30),
                      *each(some("floats", "NaN"), size=5), *each(some("cube"), size=30, fill_value=-1),
                      *each(some("cube"), size=30, fill_value=(1, 2, 3)), *each(some("equal"), size=3)],
    "numpy.flatnonzero": [*each(REAL), *each(some("cube"), size=30, fill_value=99)],
    "numpy.argwhere": [*each(some("floats", "cube", "bools", "equal", "empty")), *each(some("cube"), size=30, fill_value=-2)],
    "numpy.unique": [
        *_UNIQUE,
        *(call(f"{name}, all", x, True, True, True) for name, x in some("floats", "cube", "integers", "NaN").items()),
        call("all, of a size", X, True, True, True, size=30), call("all, of a small size", X, True, True, True, size=4),
        call("an axis", INTEGERS, axis=1), call("equal_nan", NAN, equal_nan=False), call("inverse", BOOLS, return_inverse=True),
        call("NaN, all, each another", NAN, True, True, True, equal_nan=False),
    ],
    **alike(("numpy.unique_all", "numpy.unique_counts", "numpy.unique_inverse", "numpy.unique_values"),
                    [*each(some("floats", "integers", "NaN", "rank 0")), *each(some("cube"), size=30),
                     *each(some("floats"), size=30, fill_value=7)]),
    **alike(("lax.cumsum", "lax.cumprod", "lax.cummax", "lax.cummin"), _LAX_SCAN),
    "lax.reduce_window": list(_windows()),
    "lax.cumlogsumexp": [c for c in _LAX_SCAN if not c[0].startswith("integers")],
    "lax.sort": [*each({n: x for n, x in REAL.items() if n != "rank 0"}), *each(_MATRICES, 0),
                 call("a key and values", (INTEGERS, X, BOOLS)), call("a tuple of one", (X,)), call("a list", [NAN, X], 0),
                 call("two keys", (INTEGERS, X, BOOLS), num_keys=2), call("unstable", X, 0, False)],
    "lax.sort_key_val": [call("floats", X, CUBE.reshape(4, 6)), call("integers", INTEGERS, X, 0), call("NaN", NAN, X),
                         call("bools", BOOLS, X, is_stable=False), call("complex values", X, COMPLEX)],
    "lax.top_k": [*each({k: x for k, x in _MATRICES.items() if k != "NaN"} | some("cube", "bytes", "infinite", "float16"), 2), *each(some("floats"), 3, axis=0),
                  *each(some("floats"), 0), *each(some("floats"), 6), call("NaN", NAN[1], 2),
                  call("zeros of both signs", sent.asarray([-0.0, 0.0, -1.0], jnp.float32), 2)],
    **alike(("lax.argmax", "lax.argmin"),
                    [*each(_MATRICES | some("bytes", "infinite"), 1, jnp.int32), *each(some("floats"), 0, jnp.uint8),
                     *each(some("floats", "cube"), 0, jnp.int64)]),
    **{f"nn.{name}": _ACTIVATION for name in (
        "relu", "relu6", "sigmoid", "silu", "swish", "mish", "selu", "soft_sign", "softplus", "hard_sigmoid", "hard_silu",
        "hard_swish", "hard_tanh")},
    "nn.gelu": [*_ACTIVATION, *each(some("floats", "bfloat16", "integers"), approximate=False)],
    **{f"nn.{name}": [*_ACTIVATION, *each(some("floats"), 0.3), *each(some("floats"), jnp.float32(0.3))]
       for name in ("elu", "leaky_relu")},
    "nn.glu": [*each(some("infinite", "floats", "cube", "bfloat16", "integers", "NaN")), *each(some("floats"), 0)],
    "nn.logsumexp": [*(c for c in _AXES if c[0].partition(" ")[0] not in ("complex", "bools", "empty")),
                     *each(some("infinite"), -1), *each(some("floats"), b=X), *each(some("floats"), return_sign=True),
                     *each(some("floats"), where=MASK), call("all -inf", sent.full((3,), -jnp.inf))],
    **{f"ops.segment_{name}": _SEGMENTS for name in ("sum", "prod", "max", "min")},
}  # fmt: skip


# Calls whose results or gradients differ on purpose, as the mirror's `differs` says.
DIFFERENT = {
    "image.resize": ("NaN", "infinite"),
    "image.scale_and_translate": ("NaN",),
    **dict.fromkeys(
        ("nn.silu", "nn.swish", "nn.mish", "nn.gelu", "nn.soft_sign", "nn.hard_silu", "nn.hard_swish"), ("infinite",)
    ),
    "nn.logsumexp": ("infinite", "infinite (-1,)"),
    "numpy.prod": ("NaN (0,)", "NaN {'axis': -1, 'keepdims': True}"),
    **dict.fromkeys(
        ("numpy.cumprod", "numpy.nancumprod", "numpy.cumulative_prod", "lax.cumprod"),
        ("infinite (0,)", "infinite {'axis': 0}"),
    ),
    "numpy.histogram": ("infinite",),
    **dict.fromkeys(
        ("numpy.quantile", "numpy.nanquantile", "numpy.percentile", "numpy.nanpercentile"),
        ("infinite (1.0,)", "infinite (100.0,)"),
    ),
    "lax.reduce_window": ("max and NaN", "min and NaN"),
    "lax.top_k": ("zeros of both signs",),
    **dict.fromkeys(("numpy.linalg.norm", "numpy.linalg.vector_norm"), ("large", "zero")),
}
