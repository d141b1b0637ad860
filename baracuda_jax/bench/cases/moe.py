"""Tokens sent to the experts of a mixture and back. Plain JAX and PyTorch sort the slots, and gather."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark, normal

# Tokens, features, experts, experts of a token.
SHAPES = {"tiny": (512, 64, 16, 4), "small": (2048, 512, 64, 8), "large": (16384, 4096, 128, 8)}


def gating(shape, dtype):
    tokens, _, experts, k = shape

    def plain(logits):
        w = jax.lax.top_k(jax.nn.softmax(logits.astype(jnp.float32)), k)[0]
        return w / w.sum(-1, keepdims=True)

    def torchs(torch, logits):
        w = torch.topk(torch.softmax(logits.float(), -1), k).values
        return w / w.sum(-1, keepdim=True)

    return Benchmark(
        "moe_gating_topk",
        f"{k} of {experts} for {tokens} tokens",
        dtype,
        normal(tokens, experts),
        lambda logits, implementation: baracuda_jax.moe_gating_topk(
            logits, k, renormalize=True, implementation=implementation
        )[0],
        plain,
        torchs,
        needs=(0,),
        saved=(jax.ShapeDtypeStruct((tokens, k), jnp.int32),),
    )


def permute(shape, dtype):
    tokens, features, experts, k = shape
    return Benchmark(
        "moe_permute",
        f"[{tokens}, {features}] to {k} of {experts} experts",
        dtype,
        lambda draws: (draws.normal((tokens, features)), draws.integers((tokens, k), 0, experts)),
        lambda x, ids, implementation: baracuda_jax.moe_permute(x, ids, experts, implementation=implementation).x,
        lambda x, ids: x[jnp.argsort(ids.ravel()) // k],
        lambda torch, x, ids: x[torch.argsort(ids.flatten(), stable=True) // k],
        needs=(1,),
    )


def combine(shape, dtype):
    tokens, features, experts, k = shape

    def draw(draws):
        order = jnp.argsort(draws.integers((tokens * k,), 0, experts))
        row_map = jnp.argsort(order).astype(jnp.int32).reshape(tokens, k)
        return draws.normal((tokens * k, features)), draws.uniform((tokens, k)), row_map

    return Benchmark(
        "moe_combine",
        f"[{tokens * k}, {features}] from {k} of {experts} experts",
        dtype,
        draw,
        lambda y, weights, row_map, implementation: baracuda_jax.moe_combine(
            y, row_map, weights, implementation=implementation
        ),
        lambda y, weights, row_map: (y[row_map] * weights[..., None]).sum(1).astype(y.dtype),
        lambda torch, y, weights, row_map: (y[row_map.long()] * weights[..., None]).sum(1).to(y.dtype),
        moving=2,
        needs=(0, 1, 2),
        wide=(1,),
    )


def products(packed, shape, dtype):
    """Rows that are sorted by expert, as many for each; with weights of floats, or packed."""
    tokens, features, experts, _ = shape
    tokens, experts, hidden, features = tokens // 8, experts // 4, features, max(features, 256)
    sizes = lambda: jnp.full(experts, tokens // experts, jnp.int32)
    if packed:
        of = baracuda_jax.packed.FORMATS["Q4_K"]
        matrices = lambda draws: draws.integers((experts, hidden, features // 256 * of.bytes), 0, 60, jnp.uint8)
        function = lambda x, w, sizes, implementation: baracuda_jax.moe_scalar_gguf(
            x, w, sizes, "Q4_K", implementation=implementation
        )
    else:
        matrices = lambda draws: draws.normal((experts, hidden, features))
        function = lambda x, w, sizes, implementation: baracuda_jax.moe_wmma(x, w, sizes, implementation=implementation)
    return Benchmark(
        "moe_scalar_gguf" if packed else "moe_wmma",
        f"[{tokens}, {features}] by {experts} x [{hidden}, {features}]{' Q4_K' if packed else ''}",
        dtype,
        lambda draws: (draws.normal((tokens, features)), matrices(draws), sizes()),
        function,
        moving=1 if packed else 2,
        needs=(1, 2) if packed else (0, 1, 2),
        rough=4.0,
    )


def benchmarks(size):
    yield products(True, SHAPES[size], "bfloat16")
    yield products(False, SHAPES[size], "bfloat16")
    for dtype in DTYPES:
        yield gating(SHAPES[size], dtype)
        yield permute(SHAPES[size], dtype)
        yield combine(SHAPES[size], dtype)
