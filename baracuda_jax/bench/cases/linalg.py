"""Linear algebra of many small matrices, and of few large ones."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ...linalg._small import largest
from ..benchmark import Benchmark

SHAPES = {
    "tiny": ((2, 4, 4),),
    "small": ((4096, 3, 3), (4096, 8, 8), (256, 32, 32)),
    "large": ((1_000_000, 3, 3), (4096, 32, 32), (2, 512, 512)),
}
MANY = 10**5  # matrices, for which ops without a kernel take too long
SEVERAL = 100  # of which XLA finds the eigenvalues one matrix after the other
SMALL = (
    "cholesky",
    "lu_factor",
    "det",
    "slogdet",
    "eigh",
    "inverse",
    "qr",
    "geqrf",
    "svd",
    "svdvals",
    "matrix_exp",
)  # and those of linear systems: they have kernels for small matrices
ROUGH = 200.0  # sums of n products, and what an inverse adds to their errors


def _first(found):
    return found[0] if isinstance(found, tuple) else found


def _regular(draws, shape, share=1.0):
    """Without singular values that are close to each other or to 0, which would make errors large."""
    n = shape[-1]
    return share * draws.normal(shape) / n + jnp.diag(jnp.linspace(1.0, 3.0, n, dtype=jnp.float32))[None]


def _definite(draws, shape):
    return _regular(draws, shape, 0.2)


def _tau(draws, shape):
    """Of reflections that are nearly orthogonal."""
    return draws.uniform(shape, 0.0, 0.1)


def _upper(x):
    return jax.vmap(jax.scipy.linalg.lu)(x)[2]


def _eigenvalues(x):
    return jnp.linalg.eigh(x)[0]


# op: (keywords, what is returned, plain JAX or None, PyTorch, arrays after the first, what the gradient reads)
MATRIX = {
    "cholesky": ({}, _first, jnp.linalg.cholesky, lambda torch, x: torch.linalg.cholesky((x + x.mT) / 2)),
    "lu": ({}, lambda y: y[2], _upper, lambda torch, x: torch.linalg.lu(x)[2]),
    "lu_factor": (
        {}, _first, lambda x: jax.scipy.linalg.lu_factor(x)[0], lambda torch, x: torch.linalg.lu_factor(x)[0],
    ),
    "det": ({}, _first, jnp.linalg.det, lambda torch, x: torch.linalg.det(x)),
    "slogdet": ({}, lambda y: y[1], lambda x: jnp.linalg.slogdet(x)[1], lambda torch, x: torch.linalg.slogdet(x)[1]),
    "qr": ({}, _first, lambda x: jnp.linalg.qr(x)[0], lambda torch, x: torch.linalg.qr(x)[0]),
    "geqrf": ({}, _first, None, None),
    "svd": (
        {}, lambda y: y[1], lambda x: jnp.linalg.svd(x, full_matrices=False)[1],
        lambda torch, x: torch.linalg.svd(x, full_matrices=False)[1],
    ),
    "svdvals": (
        {}, lambda s: s, lambda x: jnp.linalg.svd(x, compute_uv=False), lambda torch, x: torch.linalg.svdvals(x),
    ),
    "batched_svda": ({"rank": 2}, lambda y: y[1], lambda x: jnp.linalg.svd(x, full_matrices=False)[1][:, :2], None),
    "eigh": ({}, _first, _eigenvalues, lambda torch, x: torch.linalg.eigh((x + x.mT) / 2)[0]),
    "eig": ({}, lambda y: y[0].real, lambda x: jnp.linalg.eig(x)[0].real, lambda torch, x: torch.linalg.eig(x)[0].real),
    "inverse": ({}, _first, jnp.linalg.inv, lambda torch, x: torch.linalg.inv(x)),
    "matrix_exp": ({}, _first, jax.scipy.linalg.expm, lambda torch, x: torch.linalg.matrix_exp(x)),
}  # fmt: skip


def _of_matrix(op, shape):
    kwargs, take, plain, theirs = MATRIX[op]
    return Benchmark(
        op, str(list(shape)), "float32",
        lambda draws: ((_definite if op == "cholesky" else _regular)(draws, shape),),
        lambda x, implementation: take(getattr(baracuda_jax, op)(x, **kwargs, implementation=implementation)),
        plain, theirs, needs=(0,), rough=ROUGH, by_library=shape[-1] > largest(op),
    )  # fmt: skip


def _of_system(op, shape, plain, theirs, columns=None):
    right = (*shape[:-1], columns or shape[-1])
    return Benchmark(
        op, f"{list(shape)}, {list(right)}", "float32",
        lambda draws: (_regular(draws, shape), draws.normal(right)),
        lambda a, b, implementation: _first(getattr(baracuda_jax, op)(a, b, implementation=implementation)),
        plain, theirs, moving=2, needs=(0, 1), rough=ROUGH, by_library=shape[-1] > largest(op),
    )  # fmt: skip


def _of_equations(shape, columns=None):
    return _of_system("solve", shape, jnp.linalg.solve, lambda torch, a, b: torch.linalg.solve(a, b), columns)


def _of_triangles(shape):
    plain = lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    torch_program = lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False)
    return _of_system("triangular_solve", shape, plain, torch_program)


def small(shape):
    """The ops that have kernels for small matrices."""
    reflections = (_of_reflections("ormqr", shape),)
    return [*(_of_matrix(op, shape) for op in SMALL), _of_equations(shape), _of_triangles(shape), *reflections]


def _of_reflections(op, shape):
    other = (shape,) if op == "ormqr" else ()
    torch_name = {"ormqr": "ormqr", "householder_product": "orgqr"}[op]
    return Benchmark(
        op, ", ".join(map(str, (list(shape), list(shape[:2]), *map(list, other)))), "float32",
        lambda draws: (draws.normal(shape) / shape[-1], _tau(draws, shape[:2]), *map(draws.normal, other)),
        lambda *arrays, implementation: getattr(baracuda_jax, op)(*arrays, implementation=implementation),
        None, lambda torch, *arrays: getattr(torch, torch_name)(*arrays),
        moving=2 + len(other), needs=tuple(range(2 + len(other))), rough=ROUGH,
        by_library=shape[-1] > largest(op),
    )  # fmt: skip


def benchmarks(size):
    for shape in SHAPES[size]:
        if shape[0] > MANY:
            yield from small(shape)
            continue
        for op in MATRIX:
            several = min(shape[0], SEVERAL) if op == "eig" else shape[0]
            yield _of_matrix(op, (several, *shape[1:]))
        yield _of_equations(shape)
        if shape[-1] <= largest("solve"):
            yield _of_equations(shape, columns=1)
        yield _of_triangles(shape)
        plain = lambda a, b: jax.vmap(lambda a, b: jnp.linalg.lstsq(a, b)[0])(a, b)
        yield _of_system("lstsq", shape, plain, lambda torch, a, b: torch.linalg.lstsq(a, b)[0])
        for op in ("householder_product", "ormqr"):
            yield _of_reflections(op, shape)
