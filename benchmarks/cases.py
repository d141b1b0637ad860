"""What is timed: for each op a few shapes, what runs without our kernels, and what PyTorch runs."""

import dataclasses
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import baracuda_jax

DTYPES = ("float32", "bfloat16")
SIZES = ("small", "large")
SEGMENT_SIZES = {"small": (131072, 64, 8192), "large": (4194304, 64, 262144)}
POOL_SIZES = {"small": (8, 32, 56, 56), "large": (32, 64, 112, 112)}
MATRIX_SIZES = {"small": (1024, 1024), "large": (16384, 4096)}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    op: str
    detail: str
    size: str
    dtype: str
    draw: Callable  # rng -> arrays on the host; floats are cast to dtype, those of `wide` are not
    ours: Callable  # (*arrays, prefer) -> y
    plain: Callable | None = None  # (*arrays) -> y: what one writes without us; None for our reference
    torch: Callable | None = None  # (torch, *tensors) -> y
    moving: int = 1  # so many arrays, the first, have gradients
    wide: tuple[int, ...] = ()
    flips: float = 0.0  # so many of the cells are others where XLA, which divides by multiplying, rounds ties otherwise

    def inputs(self, count):
        """Sets of arrays."""
        rng = np.random.default_rng(0)

        def cast(i, x):
            return jnp.asarray(x, self.dtype) if x.dtype == np.float32 and i not in self.wide else jnp.asarray(x)

        return [tuple(cast(i, x) for i, x in enumerate(self.draw(rng))) for _ in range(count)]


def normal(*shape):
    return lambda rng: (rng.standard_normal(shape, np.float32),)


# ---------------------------------------------------------------------------------------------------------------------
# Segments


def plain_segment_mean(data, ids, segments, **options):
    ones = jnp.ones(ids.shape, jnp.int32)
    counts = jnp.maximum(jax.ops.segment_sum(ones, ids, segments, **options), 1)
    return jax.ops.segment_sum(data, ids, segments, **options) / counts[:, None].astype(data.dtype)


PLAIN_SEGMENT = {
    "segment_max": jax.ops.segment_max,
    "segment_min": jax.ops.segment_min,
    "segment_sum": jax.ops.segment_sum,
    "segment_mean": plain_segment_mean,
    "segment_prod": jax.ops.segment_prod,
}
SEGMENT_OPS = (*PLAIN_SEGMENT, "segment_max_split", "segment_min_split")
TORCH_SEGMENT = {
    "segment_max": "amax", "segment_min": "amin", "segment_sum": "sum", "segment_mean": "mean", "segment_prod": "prod"
}  # fmt: skip


def segment_benchmark(op, size, dtype, is_sorted):
    rows, columns, segments = SEGMENT_SIZES[size]
    options, public, plain_options = {"indices_are_sorted": is_sorted}, op, {"indices_are_sorted": is_sorted}

    def draw(rng):
        data = rng.standard_normal((rows, columns), np.float32)
        ids = rng.integers(0, segments, rows, np.int32)
        return 1 + 0.3 * data if op == "segment_prod" else data, np.sort(ids) if is_sorted else ids

    if op.endswith("_split"):
        public, options = op.removesuffix("_split"), options | {"ties": "split"}

    def torch(torch, data, ids):
        y = torch.zeros(segments, columns, dtype=data.dtype, device=data.device)
        index = ids.long()[:, None].expand(rows, columns)
        return y.scatter_reduce(0, index, data, TORCH_SEGMENT[public], include_self=False)

    return Benchmark(
        op,
        f"[{rows}, {columns}] into {segments}, {'sorted' if is_sorted else 'unsorted'}",
        size,
        dtype,
        draw,
        lambda data, ids, prefer: getattr(baracuda_jax, public)(data, ids, segments, **options, prefer=prefer),
        lambda data, ids: PLAIN_SEGMENT[public](data, ids, segments, **plain_options),
        torch,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Pooling and repetition


def plain_lp_pool(x):
    """p = 3, window 3, stride 2."""
    total = lax.reduce_window(jnp.abs(x) ** 3, np.zeros((), x.dtype), lax.add, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    return total ** (1 / 3)


def lp_pool2d_benchmark(size, dtype):
    shape = POOL_SIZES[size]
    return Benchmark(
        "lp_pool2d", f"{list(shape)}, p=3, window 3, stride 2", size, dtype, normal(*shape),
        lambda x, prefer: baracuda_jax.lp_pool2d(x, 3, 3, 2, prefer=prefer), plain_lp_pool,
        lambda torch, x: torch.nn.functional.lp_pool2d(x, 3.0, 3, 2),
    )  # fmt: skip


def lp_pool_benchmark(rank, window, size, dtype):
    """The images of lp_pool2d as lines, or as volumes."""
    batch, channels, height, width = POOL_SIZES[size]
    shape = {1: (batch, channels, height * width), 3: (batch, channels // 8, 8, height, width)}[rank]
    op = f"lp_pool{rank}d"
    return Benchmark(
        op, f"{list(shape)}, p=2, window {window}, stride 2", size, dtype, normal(*shape),
        lambda x, prefer: getattr(baracuda_jax, op)(x, 2, window, 2, prefer=prefer),
        torch=lambda torch, x: getattr(torch.nn.functional, op)(x, 2.0, window, 2),
    )  # fmt: skip


def repeat_benchmark(size, dtype):
    shape = (MATRIX_SIZES[size][0], MATRIX_SIZES[size][1] // 4)
    return Benchmark(
        "repeat", f"{list(shape)}, 2 x 2 copies", size, dtype, normal(*shape),
        lambda x, prefer: baracuda_jax.repeat(x, (2, 2), prefer=prefer), lambda x: jnp.tile(x, (2, 2)),
        lambda torch, x: x.repeat(2, 2),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# Elementwise ops

UNARY = {
    "leaky_relu": ((0.1,), lambda x: jax.nn.leaky_relu(x, 0.1), lambda t, x: t.nn.functional.leaky_relu(x, 0.1)),
    "elu": ((1.0,), lambda x: jax.nn.elu(x, 1.0), lambda t, x: t.nn.functional.elu(x, 1.0)),
    "threshold": (
        (0.1, 0.5),
        lambda x: jnp.where(x > 0.1, x, 0.5),
        lambda t, x: t.nn.functional.threshold(x, 0.1, 0.5),
    ),
    "hardtanh": ((), lambda x: jnp.clip(x, -1, 1), lambda t, x: t.nn.functional.hardtanh(x)),
    "softshrink": (
        (0.5,),
        lambda x: jnp.where(x > 0.5, x - 0.5, jnp.where(x < -0.5, x + 0.5, 0)),
        lambda t, x: t.nn.functional.softshrink(x, 0.5),
    ),
    "hardshrink": (
        (0.5,),
        lambda x: jnp.where(jnp.abs(x) > 0.5, x, 0),
        lambda t, x: t.nn.functional.hardshrink(x, 0.5),
    ),
    "powi": ((3,), lambda x: lax.integer_pow(x, 3), lambda t, x: t.pow(x, 3)),
    "affine": ((2.0, 1.0), lambda x: 2 * x + 1, lambda t, x: 2 * x + 1),
    "clamp": ((-1.0, 1.0), lambda x: jnp.clip(x, -1, 1), lambda t, x: t.clamp(x, -1, 1)),
}


def unary_benchmark(op, size, dtype):
    parameters, plain, torch = UNARY[op]
    shape = MATRIX_SIZES[size]
    return Benchmark(
        op, f"{list(shape)}", size, dtype, normal(*shape),
        lambda x, prefer: getattr(baracuda_jax, op)(x, *parameters, prefer=prefer), plain, torch,
    )  # fmt: skip


def lerp_benchmark(size, dtype):
    shape = MATRIX_SIZES[size]
    return Benchmark(
        "lerp", f"{list(shape)}, one weight", size, dtype,
        lambda rng: tuple(rng.standard_normal(shape, np.float32) for _ in range(2)),
        lambda a, b, prefer: baracuda_jax.lerp(a, b, 0.3, prefer=prefer),
        lambda a, b: a + jnp.asarray(0.3, a.dtype) * (b - a),
        lambda torch, a, b: torch.lerp(a, b, 0.3), moving=2,
    )  # fmt: skip


def prelu_benchmark(size, dtype):
    rows, channels = MATRIX_SIZES[size]
    shape = rows, channels // 64, 64
    return Benchmark(
        "prelu", f"{list(shape)}, a slope for each channel", size, dtype,
        lambda rng: (rng.standard_normal(shape, np.float32), rng.uniform(0, 1, shape[1]).astype(np.float32)),
        lambda x, w, prefer: baracuda_jax.prelu(x, w, prefer=prefer),
        lambda x, w: jnp.where(x > 0, x, w[:, None] * x),
        lambda torch, x, w: torch.nn.functional.prelu(x, w),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# Quantisation: [tokens, features], beside our definition in plain JAX

GROUP = 128
SCALES = {
    "tensor": lambda rows, columns: (),
    "channel": lambda rows, columns: (columns,),
    "token": lambda rows, columns: (rows,),
    "group": lambda rows, columns: (rows, columns // GROUP),
}


def scales(rng, kind, shape):
    return np.asarray(rng.uniform(0.01, 0.02, SCALES[kind](*shape)), np.float32)


def quantize_benchmark(kind, size, dtype):
    shape = MATRIX_SIZES[size]
    op, more = f"quantize_per_{kind}", {"group_size": GROUP} if kind == "group" else {}

    def torch(torch, x, scale):
        zeros = torch.zeros_like(scale, dtype=torch.int32)
        if kind == "tensor":
            return torch.quantize_per_tensor(x.float(), float(scale), 0, torch.qint8)
        return torch.quantize_per_channel(x.float(), scale, zeros, 1 if kind == "channel" else 0, torch.qint8)

    return Benchmark(
        op, f"{list(shape)} to int8", size, dtype,
        lambda rng: (rng.standard_normal(shape, np.float32), scales(rng, kind, shape)),
        lambda x, scale, prefer: getattr(baracuda_jax, op)(x, scale, **more, prefer=prefer),
        torch=torch if dtype == "float32" and kind != "group" else None, wide=(1,),
    )  # fmt: skip


def dequantize_benchmark(kind, size, dtype):
    shape = MATRIX_SIZES[size]
    op, more = f"dequantize_per_{kind}", {"group_size": GROUP} if kind == "group" else {}
    return Benchmark(
        op, f"{list(shape)} from int8", size, dtype,
        lambda rng: (scales(rng, kind, shape), rng.integers(-128, 128, shape).astype(np.int8)),
        lambda scale, codes, prefer: getattr(baracuda_jax, op)(codes, scale, **more, dtype=dtype, prefer=prefer),
        wide=(0,),
    )  # fmt: skip


def fake_quantize_benchmark(op, axis, size, dtype):
    shape = MATRIX_SIZES[size]
    kind, lsq = "tensor" if axis is None else "channel", op.endswith("lsq")

    def ours(x, scale, prefer):
        gradient = "lsq" if lsq else "straight_through"
        return baracuda_jax.fake_quantize(x, scale, axis=axis, gradient=gradient, prefer=prefer)

    def torch(torch, x, scale):
        if kind == "tensor":
            return torch.fake_quantize_per_tensor_affine(x, float(scale), 0, -128, 127)
        zeros = torch.zeros_like(scale, dtype=torch.int32)
        return torch.fake_quantize_per_channel_affine(x, scale, zeros, axis, -128, 127)

    return Benchmark(
        op, f"{list(shape)}, per {kind}", size, dtype,
        lambda rng: (rng.standard_normal(shape, np.float32), scales(rng, kind, shape)), ours,
        torch=torch if dtype == "float32" and not lsq else None, moving=2 if lsq else 1, wide=(1,), flips=1e-5,
    )  # fmt: skip


def dynamic_benchmark(code, group, size, dtype):
    shape = MATRIX_SIZES[size]
    return Benchmark(
        "dynamic_quantize", f"{list(shape)} to {code}, {f'groups of {group}' if group else 'per token'}", size, dtype,
        normal(*shape), lambda x, prefer: baracuda_jax.dynamic_quantize(x, code, group_size=group, prefer=prefer)[0],
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------


def benchmarks(size):
    for op, dtype, is_sorted in itertools.product(SEGMENT_OPS, DTYPES, (False, True)):
        yield segment_benchmark(op, size, dtype, is_sorted)
    for dtype in DTYPES:
        yield lp_pool_benchmark(1, 4, size, dtype)
        yield lp_pool2d_benchmark(size, dtype)
        yield lp_pool_benchmark(3, 2, size, dtype)
        yield repeat_benchmark(size, dtype)
        for op in UNARY:
            yield unary_benchmark(op, size, dtype)
        yield lerp_benchmark(size, dtype)
        yield prelu_benchmark(size, dtype)
        for kind in SCALES:
            yield quantize_benchmark(kind, size, dtype)
            yield dequantize_benchmark(kind, size, dtype)
        for op, axis in itertools.product(("fake_quantize", "fake_quantize_lsq"), (None, 1)):
            yield fake_quantize_benchmark(op, axis, size, dtype)
        for code, group in (("int8", None), ("float8_e4m3fn", None), ("int8", GROUP)):
            yield dynamic_benchmark(code, group, size, dtype)


OPS = tuple(dict.fromkeys(b.op for b in benchmarks("small")))
