"""Linear layers of square matrices on one device: what is left of them where nothing is communicated."""

import baracuda_jax

from ..benchmark import DTYPES, Benchmark
from .gemm import ROUGH, SIDES


def _linear(name, n, dtype):
    layer = getattr(baracuda_jax, name)
    return Benchmark(
        name, f"[{n}, {n}] x [{n}, {n}]", dtype,
        lambda draws: (draws.normal((n, n)) * n**-0.5, draws.normal((n, n)), draws.normal((n,))),
        lambda *arrays, implementation: layer(*arrays, implementation=implementation),
        lambda x, kernel, bias: x @ kernel + bias, lambda torch, x, kernel, bias: torch.addmm(bias, x, kernel),
        moving=3, needs=(0, 1), rough=ROUGH[dtype],
    )  # fmt: skip


def benchmarks(size):
    for dtype in DTYPES:
        for name in ("column_parallel_linear", "row_parallel_linear"):
            yield _linear(name, SIDES[size], dtype)
