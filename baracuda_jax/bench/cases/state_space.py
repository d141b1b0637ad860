"""Layers of state-space models. Plain JAX adds shifted arrays, or combines pairs by an associative scan."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, Benchmark

# Batch, channels, length.
SHAPES = {"tiny": (2, 64, 256), "small": (4, 1024, 1024), "large": (8, 4096, 4096)}
WIDTH = 4


def convolution(shape, dtype, data_format):
    batch, channels, length = shape
    is_last = data_format == "NLC"
    sizes = (batch, length, channels) if is_last else shape
    axis = 1 if is_last else 2

    def plain(x, weight, bias):
        x, pads = x.astype(jnp.float32), [(WIDTH - 1, 0) if i == axis else (0, 0) for i in range(3)]
        padded, along = jnp.pad(x, pads), (lambda w: w if is_last else w[:, None])
        z = along(bias.astype(jnp.float32))
        for k in range(WIDTH):
            earlier = jax.lax.slice_in_dim(padded, k, k + length, axis=axis)
            z = z + along(weight[:, k].astype(jnp.float32)) * earlier
        return jax.nn.silu(z).astype(dtype)

    def torchs(torch, x, weight, bias):
        rows = x.transpose(1, 2) if is_last else x
        z = torch.nn.functional.conv1d(rows, weight[:, None], bias, padding=WIDTH - 1, groups=channels)[..., :length]
        y = torch.nn.functional.silu(z)
        return y.transpose(1, 2) if is_last else y

    def call(x, weight, bias, implementation):
        return baracuda_jax.causal_conv1d(
            x, weight, bias, activation="silu", data_format=data_format, implementation=implementation
        )

    return Benchmark(
        "causal_conv1d",
        f"[{', '.join(map(str, sizes))}] by {WIDTH}",
        dtype,
        lambda draws: (draws.normal(sizes), draws.normal((channels, WIDTH)), draws.normal((channels,))),
        call,
        plain,
        torchs,
        variant="channels last" if is_last else "",
        moving=3,
        needs=(0, 1, 2),
    )


def update(shape, dtype):
    batch, channels = 16 * shape[0], shape[1]

    def plain(x, state, weight, bias):
        elements = jnp.concatenate([state, x[..., None]], -1).astype(jnp.float32)
        return jax.nn.silu((elements * weight).sum(-1) + bias).astype(dtype), elements[..., 1:].astype(dtype)

    def call(x, state, weight, bias, implementation):
        return baracuda_jax.causal_conv1d_update(
            x, state, weight, bias, activation="silu", implementation=implementation
        )

    def draw(draws):
        shapes = (batch, channels), (batch, channels, WIDTH - 1), (channels, WIDTH), (channels,)
        return tuple(map(draws.normal, shapes))

    return Benchmark(
        "causal_conv1d_update", f"[{batch}, {channels}] by {WIDTH}", dtype, draw, call, plain, passes=("forward",)
    )


# Batch, channels, length, states.
SCANS = {"tiny": (2, 32, 128, 8), "small": (2, 512, 512, 16), "large": (4, 2048, 2048, 16)}


def _scanned(u, dt, a, b, c, skip, z, bias):
    """As one writes it in JAX: all states at once."""
    step = jnp.logaddexp(dt.astype(jnp.float32) + bias[:, None], 0)
    factors = jnp.exp(step[..., None] * a[:, None])
    added = (step * u)[..., None] * b.astype(jnp.float32).mT[:, None]
    combine = lambda before, after: (before[0] * after[0], after[0] * before[1] + after[1])
    states = jax.lax.associative_scan(combine, (factors, added), axis=2)[1]
    y = (states * c.mT[:, None]).sum(-1) + skip[:, None] * u
    return (y * jax.nn.silu(z.astype(jnp.float32))).astype(u.dtype)


def _drawn(shape):
    batch, channels, length, states = shape

    def draw(draws):
        of_u, of_b = (batch, channels, length), (batch, states, length)
        arrays = [draws.normal(of_u), draws.normal(of_u), -draws.uniform((channels, states), 0.5, 4.0)]
        arrays += [draws.normal(of_b), draws.normal(of_b), draws.normal((channels,))]
        return *arrays, draws.normal(of_u), draws.normal((channels,)) - 3

    return draw


def scan(shape, dtype):
    batch, channels, length, states = shape

    def call(*arrays, implementation):
        return baracuda_jax.selective_scan(*arrays, dt_softplus=True, implementation=implementation)

    return Benchmark(
        "selective_scan",
        f"[{batch}, {channels}, {length}] of {states} states",
        dtype,
        _drawn(shape),
        call,
        _scanned,
        moving=8,
        needs=tuple(range(8)),
        wide=(2, 5, 7),
    )


def step(shape, dtype):
    batch, channels, _, states = (16 * shape[0], *shape[1:])

    def draw(draws):
        u, dt, a, b, c, skip, z, bias = _drawn((batch, channels, 1, states))(draws)
        return (
            draws.normal((batch, channels, states)),
            *(x[..., 0] for x in (u, dt)),
            a,
            b[..., 0],
            c[..., 0],
            skip,
            z[..., 0],
            bias,
        )

    def plain(state, x, dt, a, b, c, skip, z, bias):
        d = jnp.logaddexp(dt.astype(jnp.float32) + bias, 0)
        state = jnp.exp(d[..., None] * a) * state + (d * x)[..., None] * b[:, None]
        y = (state * c[:, None]).sum(-1) + skip * x
        return (y * jax.nn.silu(z.astype(jnp.float32))).astype(dtype), state

    def call(*arrays, implementation):
        return baracuda_jax.selective_state_update(*arrays, dt_softplus=True, implementation=implementation)

    return Benchmark(
        "selective_state_update",
        f"[{batch}, {channels}] of {states} states",
        dtype,
        draw,
        call,
        plain,
        passes=("forward",),
        wide=(0, 3, 6, 8),
    )


# Batch, length, heads, rows, columns.
CHUNKED = {"tiny": (2, 128, 2, 8, 8), "small": (2, 1024, 16, 64, 64), "large": (4, 4096, 64, 64, 128)}


def chunk_scan(shape, dtype):
    """Plain JAX scans position by position."""
    batch, length, heads, rows, columns = shape

    def draw(draws):
        of_x, of_b = (batch, length, heads, rows), (batch, length, 1, columns)
        arrays = [draws.normal(of_x), draws.uniform(of_x[:3], 0.01, 0.2), -draws.uniform((heads,), 0.5, 4.0)]
        return *arrays, draws.normal(of_b), draws.normal(of_b)

    def plain(x, dt, a, b, c):
        def step(h, at):
            x, dt, b, c = (v.astype(jnp.float32) for v in at)
            h = jnp.exp(dt * a)[..., None, None] * h + (dt[..., None] * x)[..., None] * b[:, :, None]
            return h, (h * c[:, :, None]).sum(-1)

        first = jnp.zeros((batch, heads, rows, columns), jnp.float32)
        y = jax.lax.scan(step, first, jax.tree.map(lambda v: v.swapaxes(0, 1), (x, dt, b, c)))[1]
        return y.swapaxes(0, 1).astype(x.dtype)

    def call(*arrays, implementation):
        return baracuda_jax.ssd_chunk_scan(*arrays, implementation=implementation)

    return Benchmark(
        "ssd_chunk_scan",
        f"[{batch}, {length}, {heads}, {rows}] of {columns} columns",
        dtype,
        draw,
        call,
        plain,
        moving=5,
        needs=tuple(range(5)),
        wide=(2,),
        rough=10,  # sums over all positions
    )


def benchmarks(size):
    for dtype in DTYPES:
        for data_format in ("NCL", "NLC"):
            yield convolution(SHAPES[size], dtype, data_format)
        yield update(SHAPES[size], dtype)
        yield scan(SCANS[size], dtype)
        yield step(SCANS[size], dtype)
        yield chunk_scan(CHUNKED[size], dtype)
