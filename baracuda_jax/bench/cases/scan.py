"""Scans of matrices along rows and along columns, and of one long row."""

import jax
import jax.numpy as jnp
from jax import lax

import baracuda_jax

from ..benchmark import DTYPES, Benchmark

# (shape, axis)
SHAPES = {
    "tiny": (((4, 9000), 1), ((3000, 40), 0), ((2**15,), 0)),
    "small": (((64, 4096), 1), ((64, 4096), 0), ((2**18,), 0)),
    "large": (((4096, 32768), 1), ((4096, 32768), 0), ((2**27,), 0)),
}
X = A = 0

# op: plain JAX, PyTorch, what the gradient reads
CUMULATIVE = {
    "cumsum": (lax.cumsum, lambda torch, x, axis: torch.cumsum(x, axis), ()),
    "cumprod": (lax.cumprod, lambda torch, x, axis: torch.cumprod(x, axis), (X, "y")),
    "cummax": (lax.cummax, lambda torch, x, axis: torch.cummax(x, axis).values, (X, "y")),
    "cummin": (lax.cummin, lambda torch, x, axis: torch.cummin(x, axis).values, (X, "y")),
    "logcumsumexp": (lax.cumlogsumexp, lambda torch, x, axis: torch.logcumsumexp(x, axis), (X, "y")),
}


def cumulative(op, shape, axis, dtype):
    plain, torch, needs = CUMULATIVE[op]

    def draw(draws):
        # Signs: products of any length are exact, and neither vanish nor overflow.
        return (2 * draws.integers(shape, 0, 2, jnp.float32) - 1 if op == "cumprod" else draws.normal(shape),)

    return Benchmark(
        op, f"{list(shape)}, axis {axis}", dtype, draw,
        lambda x, implementation: getattr(baracuda_jax, op)(x, axis, implementation=implementation),
        lambda x: plain(x, axis),
        lambda library, x: torch(library, x, axis),
        needs=needs,
        # Its gradient has the rounding of y, in XLA's program too.
        rough=max(16.0, 2 * (shape[axis] / 2**15) ** 0.5) if op == "logcumsumexp" else 1.0,
        saved=(jax.ShapeDtypeStruct(shape, jnp.int32),) if op in ("cummax", "cummin") else (),
    )  # fmt: skip


def linear(shape, axis, dtype):
    def step(earlier, later):
        return later[0] * earlier[0], later[0] * earlier[1] + later[1]

    return Benchmark(
        "linear_scan", f"{list(shape)}, axis {axis}", dtype,
        lambda draws: (draws.uniform(shape, 0.5, 1.0), draws.normal(shape)),
        lambda a, b, implementation: baracuda_jax.linear_scan(a, b, axis, implementation=implementation),
        lambda a, b: lax.associative_scan(step, (a, b), axis=axis)[1],
        moving=2, needs=(A, "y"),
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        for shape, axis in SHAPES[size]:
            yield from (cumulative(op, shape, axis, dtype) for op in CUMULATIVE)
            yield linear(shape, axis, dtype)
