"""Products of square matrices, with each epilogue, in batches, of groups, and of 8 bits."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark

SIDES = {"tiny": 64, "small": 512, "large": 4096}
# Rows, groups, K and N; and whether there is memory for all rows of each group.
EXPERTS = {
    "tiny": (((64, 4, 32, 16), True),),
    "small": (((2048, 16, 512, 256), True),),
    "large": (((16384, 64, 2048, 1024), True), ((131072, 128, 2048, 1024), False)),
}
BATCH = 16
ROUGH = {"float32": 100.0, "bfloat16": 2.0}  # of float32, products of TF32
ACTIVATIONS = {
    "gemm_bias": (lambda y: y, "identity"),
    "gemm_bias_relu": (jax.nn.relu, "relu"),
    "gemm_bias_gelu": (lambda y: jax.nn.gelu(y, approximate=False), "gelu"),
    "gemm_bias_silu": (jax.nn.silu, "silu"),
}


def _benchmark(name, shapes, dtype, plain, torch, **more):
    """Factors are small, so that sums are near 1."""
    shrink = shapes[0][-1] ** -0.5
    draw = lambda draws: tuple(draws.normal(shape) * (shrink if i == 0 else 1) for i, shape in enumerate(shapes))
    words = " x ".join(str(list(shape)) for shape in shapes[:2])
    function = lambda *arrays, implementation: getattr(baracuda_jax, name)(*arrays, implementation=implementation)
    options = {"moving": len(shapes), "needs": (0, 1), "rough": ROUGH[dtype]} | more
    return Benchmark(name, words, dtype, draw, function, plain, torch, **options)


def _floats(n, dtype):
    square, batches = (n, n), (BATCH, n // 4, n // 4)
    product = lambda torch, a, b: a @ b
    yield _benchmark("gemm", (square, square), dtype, jnp.matmul, product)
    for name, (activation, torchs) in ACTIVATIONS.items():
        plain = lambda a, b, bias, activation=activation: activation(a @ b + bias)
        theirs = lambda torch, a, b, bias, torchs=torchs: (
            torch.addmm(bias, a, b)
            if torchs == "identity"
            else getattr(torch.nn.functional, torchs)(torch.addmm(bias, a, b))
        )
        yield _benchmark(name, (square, square, (n,)), dtype, plain, theirs)
    exact = lambda a, b: jnp.matmul(a, b, precision="highest")
    yield _benchmark("dense_gemm", (batches, batches), dtype, exact, lambda torch, a, b: torch.bmm(a, b))
    yield _benchmark("batched_gemm", (batches, batches), dtype, jnp.matmul, lambda torch, a, b: torch.bmm(a, b))
    yield _benchmark("gemv", (square, (n,)), dtype, jnp.matmul, lambda torch, a, x: torch.mv(a, x))


def grouped(shape, dtype, *, is_even, by_ragged_dot=True):
    """Rows by groups of uneven sizes, up to seven times as large as others. XLA's ragged_dot repeats rows for each group."""
    rows, groups, k, n = shape

    def draw(draws):
        ends = jnp.cumsum(jnp.ones(groups) if is_even else draws.uniform((groups,), 0.25, 1.75))
        sizes = jnp.diff(jnp.round(ends / ends[-1] * rows).astype(jnp.int32), prepend=0)
        return draws.normal((rows, k)) * k**-0.5, draws.normal((groups, k, n)), sizes

    def torchs(torch, a, b, sizes):
        return torch._grouped_mm(a, b, offs=torch.cumsum(sizes, 0, dtype=torch.int32))

    return Benchmark(
        "grouped_gemm", f"[{rows}, {k}] x [{groups}, {k}, {n}]", dtype, draw,
        lambda a, b, sizes, implementation: baracuda_jax.grouped_gemm(a, b, sizes, implementation=implementation),
        jax.lax.ragged_dot if by_ragged_dot else None, torchs if dtype == "bfloat16" else None,
        variant="" if is_even else "uneven", moving=2, needs=(0, 1, 2), rough=ROUGH[dtype],
    )  # fmt: skip


def sparse(n, dtype):
    draw = lambda draws: (
        draws.normal((n, n // 2)) * n**-0.5, jnp.full((n, n // 4), 0b1100, jnp.uint8), draws.normal((n, n)),
    )  # fmt: skip

    def plain(values, metadata, b):
        pairs = values.reshape(n, n // 4, 2)
        return jnp.stack([pairs[..., 0], *[jnp.zeros_like(pairs[..., 0])] * 2, pairs[..., 1]], -1).reshape(n, n) @ b

    return Benchmark(
        "gemm_sparse24", f"[{n}, {n}] of 2:4 x [{n}, {n}]", dtype, draw,
        lambda *arrays, implementation: baracuda_jax.gemm_sparse24(*arrays, implementation=implementation),
        plain, moving=1, needs=(1, 2), rough=ROUGH[dtype],
    )  # fmt: skip


def of_8_bits(n):
    shape, square = f"[{n}, {n}] x [{n}, {n}]", (n, n)
    yield Benchmark(
        "int8_gemm", shape, "int32",
        lambda draws: tuple(draws.integers(square, -128, 128, jnp.int8) for _ in range(2)),
        lambda a, b, implementation: baracuda_jax.int8_gemm(a, b, implementation=implementation),
        lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32), lambda torch, a, b: torch._int_mm(a, b),
        moving=0, passes=("forward",),
    )  # fmt: skip
    yield Benchmark(
        "fp8_gemm", shape, "bfloat16",
        lambda draws: tuple(draws.normal(square).astype(jnp.float8_e4m3fn) for _ in range(2)),
        lambda a, b, implementation: baracuda_jax.fp8_gemm(a, b, implementation=implementation),
        lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.bfloat16), moving=0, passes=("forward",), rough=10.0,
    )  # fmt: skip


def of_bits(n):
    yield Benchmark(
        "int4_gemm", f"[{n}, {n}] x [{n}, {n}]", "int32",
        lambda draws: tuple(draws.integers((n, n), -8, 8, jnp.int4) for _ in range(2)),
        lambda a, b, implementation: baracuda_jax.int4_gemm(a, b, implementation=implementation),
        lambda a, b: jax.lax.dot(a.astype(jnp.int8), b.astype(jnp.int8), preferred_element_type=jnp.int32),
        moving=0, passes=("forward",),
    )  # fmt: skip
    for rows in (8, n):
        yield Benchmark(
            "bin_gemm", f"[{rows}, {n}] x [{n}, {n}] bits", "int32",
            lambda draws, rows=rows: tuple(draws.integers((m, n // 8), 0, 256, jnp.uint8) for m in (rows, n)),
            lambda a, b, implementation: baracuda_jax.bin_gemm(a, b, implementation=implementation),
            lambda a, b: jax.lax.population_count(a[:, None] ^ b[None]).astype(jnp.int32).sum(-1),
            moving=0, passes=("forward",),
        )  # fmt: skip


def benchmarks(size):
    n = SIDES[size]
    yield from of_bits(n)
    for dtype in DTYPES:
        yield from _floats(n, dtype)
        yield grouped((n, 8, n, n), dtype, is_even=True)
        yield sparse(n, dtype)
    yield from of_8_bits(n)
    for shape, by_ragged_dot in EXPERTS[size]:
        yield grouped(shape, "bfloat16", is_even=False, by_ragged_dot=by_ragged_dot)
