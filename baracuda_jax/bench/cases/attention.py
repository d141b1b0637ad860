"""Attention, positions, and caches of keys and values: a token for each sequence of a batch."""

import itertools

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark

# sequences, heads, length, d
CACHES = {"tiny": (2, 4, 32, 64), "small": (8, 8, 256, 64), "large": (32, 8, 8192, 128)}

# Products of float32 may be of fewer bits, and angles of frequencies that are rounded.
ROUGH = {"float32": 100.0, "bfloat16": 1.0}


def append(batch, heads, length, d, dtype):
    def plain(cache, new, position):
        write = lambda cache, new, at: jax.lax.dynamic_update_slice(cache, new, (0, at, 0))
        return jax.vmap(write)(cache, new, position)

    return Benchmark(
        "kv_cache_append", f"[{batch}, {heads}, {length}, {d}]", dtype,
        lambda draws: (
            draws.normal((batch, heads, length, d)), draws.normal((batch, heads, 1, d)),
            draws.integers((batch,), 0, length, jnp.int32),
        ),
        lambda *arrays, implementation: baracuda_jax.kv_cache_append(*arrays, implementation=implementation),
        plain,
        moving=2, needs=(2,), passes=PASSES[:1],
    )  # fmt: skip


def paged(batch, heads, length, d, dtype):
    n, of_sequence = 16, length // 16

    def plain(pages, new, page_table, position):
        page = jnp.take_along_axis(page_table, position[:, None] // n, 1)[:, 0]
        return pages.at[page, position % n].set(new[:, 0], unique_indices=True)

    return Benchmark(
        "paged_kv_append", f"[{batch}, {heads}, {length}, {d}]", dtype,
        lambda draws: (
            draws.normal((batch * of_sequence, n, heads, d)), draws.normal((batch, 1, heads, d)),
            jnp.arange(batch * of_sequence, dtype=jnp.int32).reshape(batch, of_sequence),
            draws.integers((batch,), 0, length, jnp.int32),
        ),
        lambda *arrays, implementation: baracuda_jax.paged_kv_append(*arrays, implementation=implementation),
        plain,
        moving=2, needs=(2, 3), passes=PASSES[:1],
    )  # fmt: skip


# sequences, length, heads, heads of keys, d
SEQUENCES = {"tiny": (2, 24, 4, 2, 8), "small": (2, 512, 8, 8, 64), "large": (4, 8192, 16, 16, 128)}


def _queries(batch, length, heads, groups, d):
    return lambda draws: tuple(draws.normal((batch, length, n, d)) for n in (heads, groups, groups))


def _torch(torch, q, k, v):
    by_heads = (x.transpose(1, 2) for x in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(*by_heads, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2)


def attention(op, shape, dtype):
    return Benchmark(
        op, str(list(shape)), dtype, _queries(*shape),
        lambda *arrays, implementation: getattr(baracuda_jax, op)(*arrays, is_causal=True, implementation=implementation),
        lambda *arrays: jax.nn.dot_product_attention(*arrays, is_causal=True),
        _torch,
        moving=3, needs=(0, 1, 2), rough=ROUGH[dtype],
        differs="cuDNN adds gradients in no fixed order" if dtype == "bfloat16" else "",
    )  # fmt: skip


def cascade(batch, length, heads, groups, d, dtype):
    """Sixteen new queries of each sequence, after a prefix that they share."""
    few = min(length, 16)

    def plain(query, prefix_key, prefix_value, key, value):
        whole = lambda prefix, own: jnp.concatenate([jnp.broadcast_to(prefix, (batch, *prefix.shape)), own], 1)
        return jax.nn.dot_product_attention(query, whole(prefix_key, key), whole(prefix_value, value))

    return Benchmark(
        "cascade_attention", f"[{batch}, {few}, {heads}, {d}] after {length}", dtype,
        lambda draws: (
            draws.normal((batch, few, heads, d)), draws.normal((length, groups, d)), draws.normal((length, groups, d)),
            draws.normal((batch, few, groups, d)), draws.normal((batch, few, groups, d)),
        ),
        lambda *arrays, implementation: baracuda_jax.cascade_attention(*arrays, implementation=implementation),
        plain,
        moving=5, needs=(0, 1, 2, 3, 4), rough=ROUGH[dtype],
    )  # fmt: skip


# sequences, length, heads, heads of keys, d
DECODING = {
    "tiny": [(2, 24, 4, 2, 8)],
    "small": [(8, 512, 8, 8, 64)],
    "large": [(64, 8192, 8, 8, 128), (64, 8192, 64, 8, 128)],
}


def _plain_decoding(query, key, value):
    return jax.nn.dot_product_attention(query[:, None], key, value)[:, 0]


def decoding(batch, length, heads, groups, d, dtype):
    def torch(torch, q, k, v):
        by_heads = (x.transpose(1, 2) for x in (q[:, None], k, v))
        return torch.nn.functional.scaled_dot_product_attention(*by_heads, enable_gqa=True)[:, :, 0]

    return Benchmark(
        "flash_decoding", f"[{batch}, {heads}, {d}] of {length}, {groups} heads", dtype,
        lambda draws: (draws.normal((batch, heads, d)), *(draws.normal((batch, length, groups, d)) for _ in range(2))),
        lambda *arrays, implementation: baracuda_jax.flash_decoding(*arrays, implementation=implementation),
        _plain_decoding, torch,
        moving=3, needs=(0, 1, 2), passes=PASSES[:1], rough=ROUGH[dtype],
    )  # fmt: skip


def paged_decoding(batch, length, heads, groups, d, dtype, page=16):
    of_sequence = -(-length // page)

    def plain(query, k_pages, v_pages, page_table, lengths):
        k, v = (x[page_table].reshape(batch, of_sequence * page, groups, d) for x in (k_pages, v_pages))
        return jax.nn.dot_product_attention(query[:, None], k, v, key_value_seq_lengths=lengths)[:, 0]

    pages = (batch * of_sequence, page, groups, d)
    return Benchmark(
        "batch_paged_decode", f"[{batch}, {heads}, {d}] of {length}, {groups} heads", dtype,
        lambda draws: (
            draws.normal((batch, heads, d)), draws.normal(pages), draws.normal(pages),
            jnp.arange(batch * of_sequence, dtype=jnp.int32)[::-1].reshape(batch, of_sequence),
            jnp.full(batch, length, jnp.int32),
        ),
        lambda *arrays, implementation: baracuda_jax.batch_paged_decode(*arrays, implementation=implementation),
        plain,
        moving=3, needs=(0, 1, 2, 3, 4), passes=PASSES[:1], rough=ROUGH[dtype],
    )  # fmt: skip


def float8_decoding(batch, length, heads, groups, d, dtype, page=16):
    of_sequence = -(-length // page)
    pages = (batch * of_sequence, page, groups, d)

    def plain(query, k_pages, v_pages, page_table, k_scale, v_scale):
        k, v = (
            (x[page_table].astype(query.dtype) * scale.astype(query.dtype)).reshape(
                batch, of_sequence * page, groups, d
            )
            for x, scale in ((k_pages, k_scale), (v_pages, v_scale))
        )
        return _plain_decoding(query, k, v)

    def scaled(query, k_pages, v_pages, page_table, *scales, implementation):
        lengths = jnp.full(batch, length, jnp.int32)
        return baracuda_jax.batch_paged_decode_fp8(
            query, k_pages, v_pages, page_table, lengths, *scales, implementation=implementation
        )

    eight = lambda x: x.astype(jnp.float8_e4m3fn)
    return Benchmark(
        "batch_paged_decode_fp8", f"[{batch}, {heads}, {d}] of {length}, {groups} heads", dtype,
        lambda draws: (
            draws.normal((batch, heads, d)), eight(draws.normal(pages)), eight(draws.normal(pages)),
            jnp.arange(batch * of_sequence, dtype=jnp.int32)[::-1].reshape(batch, of_sequence),
            jnp.float32(0.5), jnp.float32(2.0),
        ),
        scaled, plain,
        needs=(0, 1, 2, 3, 4, 5), passes=PASSES[:1], rough=ROUGH[dtype],
    )  # fmt: skip


def _starts(batch, length):
    return jnp.arange(batch + 1, dtype=jnp.int32) * length


def varlen(batch, length, heads, groups, d, dtype):
    """Sequences of one length, as a batch in plain JAX."""

    def plain(*arrays):
        q, k, v = (x.reshape(batch, length, *x.shape[1:]) for x in arrays)
        return jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch * length, heads, d)

    return _varlen([length] * batch, f"{batch} sequences", heads, groups, d, dtype, plain)


def mixed(batch, length, heads, groups, d, dtype):
    """Sequences of a sixteenth of the length to all of it, which a batch would pad."""
    lengths = [max(1, round(length * (1 + 15 * i / (batch - 1)) / 16)) for i in range(batch)]
    return _varlen(lengths, f"{batch} sequences of {lengths[0]} to {length}", heads, groups, d, dtype, None)


def documents(batch, length, heads, groups, d, dtype):
    """Sequences of a sixteenth of a length to all of it that see all of their keys; plain JAX pads them to a batch."""
    batch, length = 4 * batch, length // 2
    lengths = [max(1, round(length * (i + 1) / batch)) for i in range(batch)]
    title = f"{batch} documents of {lengths[0]} to {length}"
    return _varlen(lengths, title, heads, groups, d, dtype, None, is_causal=False)


def _varlen(lengths, title, heads, groups, d, dtype, plain, is_causal=True):
    rows, most = sum(lengths), max(lengths)

    def function(*arrays, implementation):
        starts = jnp.asarray([0, *itertools.accumulate(lengths)], jnp.int32)
        return baracuda_jax.flash_sdpa_varlen(
            *arrays, starts, starts, most, most, is_causal=is_causal, implementation=implementation
        )

    return Benchmark(
        "flash_sdpa_varlen", f"[{rows}, {heads}, {d}], {title}", dtype,
        lambda draws: tuple(draws.normal((rows, n, d)) for n in (heads, groups, groups)),
        function, plain,
        moving=3, needs=(0, 1, 2), rough=ROUGH[dtype],
        differs="cuDNN adds gradients in no fixed order" if dtype == "bfloat16" else "",
    )  # fmt: skip


def _prefill(op, batch, length, heads, groups, d, dtype, page=8):
    """The last sixteen queries of each sequence."""
    few, of_sequence = min(length, 16), -(-length // page)
    pages = (batch * of_sequence, page, groups, d)
    is_packed = op == "batch_paged_prefill"
    shape = (batch * few, heads, d) if is_packed else (batch, few, heads, d)

    def plain(query, k_pages, v_pages, page_table, lengths):
        k, v = (x[page_table].reshape(batch, of_sequence * page, groups, d) for x in (k_pages, v_pages))
        offset = lengths[:, None, None, None] - few
        i, j = (jnp.arange(n) for n in (few, of_sequence * page))
        mask = j[None, None, None, :] <= i[None, None, :, None] + offset
        y = jax.nn.dot_product_attention(query.reshape(batch, few, heads, d), k, v, mask=mask)
        return y.reshape(shape)

    def function(*arrays, implementation):
        more = (_starts(batch, few), few) if is_packed else ()
        return getattr(baracuda_jax, op)(*arrays, *more, implementation=implementation)

    return Benchmark(
        op, f"{list(shape)} of {length}", dtype,
        lambda draws: (
            draws.normal(shape), draws.normal(pages), draws.normal(pages),
            jnp.arange(batch * of_sequence, dtype=jnp.int32)[::-1].reshape(batch, of_sequence),
            jnp.full(batch, length, jnp.int32),
        ),
        function, plain,
        moving=3, needs=(0, 1, 2, 3, 4), rough=ROUGH[dtype],
    )  # fmt: skip


def paged_attention(*shape):
    return _prefill("paged_attention", *shape)


def paged_prefill(*shape):
    return _prefill("batch_paged_prefill", *shape)


def block_sparse(batch, length, heads, groups, d, dtype):
    """The first block of keys, and the block of the queries and the one before it."""
    length = min(length, 4096)  # plain JAX stores all scores
    block = min(64, max(length // 4, 1))
    count = -(-length // block)

    def lists():
        own = jnp.arange(count, dtype=jnp.int32)
        return jnp.stack([jnp.where(own > 1, 0, -1), own - 1, own], 1)

    def plain(*arrays):
        i, j = jnp.arange(length)[:, None] // block, jnp.arange(length)[None] // block
        return jax.nn.dot_product_attention(*arrays, mask=((j == 0) & (i > 1) | (j == i - 1) | (j == i))[None, None])

    return Benchmark(
        "sdpa_block_sparse", f"[{batch}, {length}, {heads}, {d}], 3 blocks of {block}", dtype,
        _queries(batch, length, heads, groups, d),
        lambda *arrays, implementation: baracuda_jax.sdpa_block_sparse(
            *arrays, lists(), block_size=block, implementation=implementation
        ),
        plain,
        moving=3, needs=(0, 1, 2), rough=ROUGH[dtype],
    )  # fmt: skip


def merge(batch, length, heads, groups, d, dtype):
    def plain(x, lse):
        return (x * jax.nn.softmax(lse, 0)[..., None]).sum(0)

    return Benchmark(
        "cascade_merge_states", f"[2, {batch}, {length}, {heads}, {d}]", dtype,
        lambda draws: (draws.normal((2, batch, length, heads, d)), draws.normal((2, batch, length, heads))),
        lambda *arrays, implementation: baracuda_jax.cascade_merge_states(*arrays, implementation=implementation)[0],
        plain,
        moving=2, needs=(0, 1),
    )  # fmt: skip


def _rotated(x, cos, sin):
    u, w = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([u * cos - w * sin, u * sin + w * cos], -1).astype(x.dtype)


def rotary(batch, length, heads, groups, d, dtype):
    frequencies = 10000.0 ** -(jnp.arange(0, d, 2) / d)

    def plain(x):
        angle = jnp.arange(length)[:, None, None] * frequencies[None, None]
        return _rotated(x, jnp.cos(angle)[None], jnp.sin(angle)[None])

    return Benchmark(
        "rope", f"[{batch}, {length}, {heads}, {d}]", dtype,
        lambda draws: (draws.normal((batch, length, heads, d)),),
        lambda x, implementation: baracuda_jax.rope(x, implementation=implementation),
        plain, rough=ROUGH[dtype],
    )  # fmt: skip


def by_table(batch, length, heads, groups, d, dtype):
    return Benchmark(
        "rope_apply_table", f"[{batch}, {length}, {heads}, {d}]", dtype,
        lambda draws: (draws.normal((batch, length, heads, d)), *(draws.normal((length, d // 2)) for _ in range(2))),
        lambda *arrays, implementation: baracuda_jax.rope_apply_table(*arrays, implementation=implementation),
        lambda x, cos, sin: _rotated(x, *(table[None, :, None].astype(jnp.float32) for table in (cos, sin))),
        needs=(1, 2),
    )  # fmt: skip


def table(batch, length, heads, groups, d, dtype):
    def plain(positions):
        return jnp.cos(positions[:, None] * (10000.0 ** -(jnp.arange(0, d, 2) / d))[None])

    return Benchmark(
        "rope_scaled_table", f"[{length}], {d}", dtype,
        lambda draws: (draws.normal((length,)),),
        lambda x, implementation: baracuda_jax.rope_scaled_table(x, d, implementation=implementation)[0],
        plain, needs=(0,), rough=ROUGH[dtype],
    )  # fmt: skip


def linear_bias(batch, length, heads, groups, d, dtype):
    few = min(length, 2048)

    def plain(x, slopes):
        at = jnp.arange(few)
        return x + (slopes[:, None, None] * (at[None, None] - at[None, :, None])).astype(x.dtype)[None]

    return Benchmark(
        "alibi", f"[{batch}, {heads}, {few}, {few}]", dtype,
        lambda draws: (draws.normal((batch, heads, few, few)), draws.normal((heads,))),
        lambda *arrays, implementation: baracuda_jax.alibi(*arrays, implementation=implementation),
        plain,
    )  # fmt: skip


def streams(batch, length, heads, groups, d, dtype):
    """Without normalization plain JAX has the mixture alone."""
    return Benchmark(
        "hyper_connection", f"[{batch}, {length}, 4, {heads * d}]", dtype,
        lambda draws: (
            draws.normal((batch, length, 4, heads * d)), draws.normal((4,)), draws.normal((4,)), draws.normal((4, 4)),
        ),
        lambda *arrays, implementation: baracuda_jax.hyper_connection(*arrays, implementation=implementation),
        needs=(0, 1, 2, 3), rough=ROUGH[dtype],
    )  # fmt: skip


OF_SEQUENCES = (
    cascade,
    varlen,
    documents,
    paged_attention,
    paged_prefill,
    block_sparse,
    merge,
    rotary,
    by_table,
    linear_bias,
    streams,
)


def benchmarks(size):
    for dtype in DTYPES:
        yield append(*CACHES[size], dtype)
        yield paged(*CACHES[size], dtype)
        for shape in DECODING[size]:
            if size != "large" or dtype == "bfloat16":  # in float32 keys and values are 8 GiB
                for of in (decoding, paged_decoding, float8_decoding):
                    yield of(*shape, dtype)
        for op in ("sdpa", "flash_sdpa", "ring_attention"):
            if size != "large" or op != "sdpa" or dtype == "bfloat16":  # whose scores in float32 fill a device
                yield attention(op, SEQUENCES[size], dtype)
        for benchmark in OF_SEQUENCES:
            yield benchmark(*SEQUENCES[size], dtype)
    yield table(*SEQUENCES[size], DTYPES[0])
