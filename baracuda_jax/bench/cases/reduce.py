"""Reductions of matrices along rows and along columns, of one long row, and of images by their channels."""

import functools

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark

# (shape, axis)
SHAPES = {
    "tiny": (((4, 9000), 1), ((3000, 40), 0), ((2**15,), 0), ((8, 6, 4, 50), (0, 2, 3))),
    "small": (((64, 4096), 1), ((2**14, 32), 1), ((64, 4096), 0), ((2**18,), 0), ((32, 64, 8, 16), (0, 2, 3))),
    "large": (((4096, 32768), 1), ((2**22, 32), 1), ((4096, 32768), 0), ((2**27,), 0), ((256, 256, 32, 64), (0, 2, 3))),
}
X = 0


def _torch(name, **options):
    return lambda torch, x, axis: getattr(torch, name)(x, axis, **options)


def _torch_prod(torch, x, axis):
    """PyTorch multiplies along one axis alone."""
    for i in sorted((axis,) if isinstance(axis, int) else axis, reverse=True):
        x = torch.prod(x, i)
    return x


def _torch_any(name):
    def whether(torch, x, axis):
        for i in sorted((axis,) if isinstance(axis, int) else axis, reverse=True):
            x = getattr(torch, name)(x, i)
        return x

    return whether


# op: plain JAX, PyTorch, what the gradient reads
OPS = {
    "sum": (jnp.sum, _torch("sum"), ()),
    "mean": (jnp.mean, _torch("mean"), ()),
    "max": (jnp.max, _torch("amax"), (X, "y")),
    "min": (jnp.min, _torch("amin"), (X, "y")),
    "prod": (jnp.prod, _torch_prod, (X, "y")),
    "logsumexp": (jax.nn.logsumexp, _torch("logsumexp"), (X, "y")),
    "vector_norm": (
        lambda x, axis: jnp.linalg.vector_norm(x, axis=axis),
        lambda torch, x, axis: torch.linalg.vector_norm(x, dim=axis),
        (X, "y"),
    ),
    "var": (jnp.var, _torch("var", correction=0), (X, "y")),
    "std": (jnp.std, _torch("std", correction=0), (X, "y")),
    "count_nonzero": (jnp.count_nonzero, _torch("count_nonzero"), ()),
    "any": (jnp.any, _torch_any("any"), ()),
    "all": (jnp.all, _torch_any("all"), ()),
}


def reduction(op, shape, axis, dtype):
    plain, torch, needs = OPS[op]

    def draw(draws):
        # Signs: products of any length are exact, and neither vanish nor overflow.
        return (2 * draws.integers(shape, 0, 2, jnp.float32) - 1 if op == "prod" else draws.normal(shape),)

    has_gradient = op not in ("count_nonzero", "any", "all")
    return Benchmark(
        op, f"{list(shape)}, axis {axis}", dtype, draw,
        lambda x, implementation: getattr(baracuda_jax, op)(x, axis=axis, implementation=implementation),
        functools.partial(plain, axis=axis),
        lambda library, x: torch(library, x, axis),
        needs=needs,
        rough=4.0 if op == "std" else 1.0,  # a gradient is divided by what may nearly vanish of a few elements
        **({} if has_gradient else {"moving": 0, "passes": ("forward",)}),
    )  # fmt: skip


def trace(shape, dtype):
    return Benchmark(
        "trace", str(list(shape)), dtype,
        lambda draws: (draws.normal(shape),),
        lambda x, implementation: baracuda_jax.trace(x, axis1=-2, axis2=-1, implementation=implementation),
        lambda x: jnp.trace(x, axis1=-2, axis2=-1),
        lambda torch, x: torch.diagonal(x, dim1=-2, dim2=-1).sum(-1),
    )  # fmt: skip


TRACES = {"tiny": (9, 40, 40), "small": (64, 256, 256), "large": (1024, 512, 512)}


def benchmarks(size):
    for dtype in DTYPES:
        for shape, axis in SHAPES[size]:
            yield from (reduction(op, shape, axis, dtype) for op in OPS)
        yield trace(TRACES[size], dtype)
