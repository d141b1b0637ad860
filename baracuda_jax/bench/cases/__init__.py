"""The benchmarks, a file for each family of ops. Each op has one at least."""

from . import (
    attention,
    convolution,
    distributed,
    elementwise,
    embedding,
    fft,
    fp8,
    gemm,
    graph,
    histogram,
    image,
    indexing,
    linalg,
    loss,
    moe,
    normalization,
    optim,
    packed,
    pool,
    quantize,
    random,
    reduce,
    scan,
    segment,
    shape,
    softmax,
    sort,
    state_space,
    unique,
)

FAMILIES = (
    segment,
    graph,
    moe,
    pool,
    shape,
    elementwise,
    quantize,
    packed,
    scan,
    sort,
    histogram,
    unique,
    reduce,
    normalization,
    linalg,
    softmax,
    gemm,
    fp8,
    optim,
    distributed,
    attention,
    state_space,
    embedding,
    indexing,
    random,
    loss,
    convolution,
    image,
    fft,
)


def benchmarks(size):
    """All of one size."""
    return [benchmark for family in FAMILIES for benchmark in family.benchmarks(size)]


OPS = tuple(dict.fromkeys(b.op for b in benchmarks("small")))
