"""Elements moved: copies, orders of axes and of elements, padding, concatenation and updates of arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import baracuda_jax

from ..benchmark import DTYPES, Benchmark, normal

SHAPES = {"tiny": (64, 64), "small": (1024, 256), "large": (16384, 1024)}
IMAGES = {"tiny": (2, 8, 16, 16), "small": (8, 32, 56, 56), "large": (32, 64, 112, 112)}
LEFT, RIGHT = (2, 3), (5, 2)


def _of(op, words, dtype, shape, function, plain=None, torch=None, **more):
    """`function` has the op as its first argument."""
    run = lambda *arrays, implementation: function(
        lambda *args, **kw: getattr(baracuda_jax, op)(*args, implementation=implementation, **kw), *arrays
    )
    name, draw = more.pop("name", op), more.pop("draw", normal(*shape))
    return Benchmark(name, f"{list(shape)}, {words}", dtype, draw, run, plain, torch, **more)


def repeat(shape, dtype):
    return _of(
        "repeat", "2 x 2 copies", dtype, shape, lambda op, x: op(x, (2, 2)), lambda x: jnp.tile(x, (2, 2)),
        lambda torch, x: x.repeat(2, 2),
    )  # fmt: skip


def matrices(shape, dtype):
    rows, columns = shape
    yield repeat(shape, dtype)
    yield _of(
        "repeat_interleave", "rows 0 to 3 times", dtype, shape,
        lambda op, x, times: op(x, times, 0, total_repeat_length=rows),
        lambda x, times: jnp.repeat(x, times, 0, total_repeat_length=rows),
        draw=lambda draws: (draws.normal(shape), jnp.asarray(np.arange(rows) * 7 % 4, jnp.int32)),
    )  # fmt: skip
    yield _of(
        "flip", "rows turned round", dtype, shape, lambda op, x: op(x, -1), lambda x: jnp.flip(x, -1),
        lambda torch, x: torch.flip(x, (-1,)),
    )  # fmt: skip
    yield _of(
        "roll", "by 5 and 7", dtype, shape, lambda op, x: op(x, (5, 7), (0, 1)), lambda x: jnp.roll(x, (5, 7), (0, 1)),
        lambda torch, x: torch.roll(x, (5, 7), (0, 1)),
    )  # fmt: skip
    yield _of(
        "permute", "turned", dtype, shape, lambda op, x: op(x), lambda x: x.T, lambda torch, x: x.T.contiguous(),
    )  # fmt: skip
    for op in ("triu", "tril"):
        yield _of(
            op, "the main diagonal", dtype, shape, lambda op, x: op(x), getattr(jnp, op),
            lambda torch, x, op=op: getattr(torch, op)(x),
        )  # fmt: skip
    yield _of(
        "concat", "3 of these, columns", dtype, shape, lambda op, *xs: op(xs, 1), lambda *xs: jnp.concatenate(xs, 1),
        lambda torch, *xs: torch.cat(xs, 1), draw=lambda draws: tuple(draws.normal(shape) for _ in range(3)), moving=3,
    )  # fmt: skip
    yield _of(
        "dynamic_update_slice", "a quarter, anywhere", dtype, shape,
        lambda op, x, update, start: op(x, update, start),
        lambda x, update, start: lax.dynamic_update_slice(x, update, (start[0], start[1])),
        draw=lambda draws: (draws.normal(shape), draws.normal((rows // 2, columns // 2)), jnp.array([9, 3])), moving=2,
    )  # fmt: skip
    yield _of(
        "broadcast_in_dim",
        "along the rows",
        dtype,
        shape,
        lambda op, x: op(x, shape, (0,)),
        lambda x: jnp.broadcast_to(x[:, None], shape),
        lambda torch, x: x[:, None].expand(shape).contiguous(),
        draw=lambda draws: (draws.normal((rows,)),),
    )  # fmt: skip
    yield _of(
        "fill", "one value", dtype, shape, lambda op, x: op(x, shape), lambda x: jnp.full(shape, x),
        lambda torch, x: x.expand(shape).contiguous(), draw=lambda draws: (draws.normal(()),),
    )  # fmt: skip


def images(shape, dtype):
    batch, channels, rows, columns = shape
    windows = dict(padding=1)
    width = ((0, 0), (0, 0), LEFT, RIGHT)
    around = (*RIGHT, *LEFT)
    yield _of(
        "permute", "channels last", dtype, shape, lambda op, x: op(x, (0, 2, 3, 1)),
        lambda x: x.transpose(0, 2, 3, 1), lambda torch, x: x.permute(0, 2, 3, 1).contiguous(),
    )  # fmt: skip
    for mode in ("constant", "reflect", "replicate", "circular"):
        name = "pad" if mode == "constant" else "pad_folded"
        in_jax = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
        yield _of(
            "pad", mode, dtype, shape, lambda op, x, mode=mode: op(x, width, mode),
            lambda x, mode=in_jax: jnp.pad(x, width, mode),
            lambda torch, x, mode=mode: torch.nn.functional.pad(x, around, mode), name=name,
        )  # fmt: skip
    columns_of = (batch, 9 * channels // 8, rows * columns)
    yield _of(
        "unfold", "windows of 3 x 3", dtype, (batch, channels // 8, rows, columns), lambda op, x: op(x, 3, **windows),
        lambda x: _patches(x, 3), lambda torch, x: torch.nn.functional.unfold(x, 3, **windows),
    )  # fmt: skip
    yield _of(
        "fold", "windows of 3 x 3", dtype, columns_of, lambda op, x: op(x, (rows, columns), 3, **windows),
        lambda x: _joined(x, (batch, channels // 8, rows, columns), 3),
        lambda torch, x: torch.nn.functional.fold(x, (rows, columns), 3, **windows),
    )  # fmt: skip
    yield _of(
        "pixel_shuffle", "r = 2", dtype, shape, lambda op, x: op(x, 2), None,
        lambda torch, x: torch.nn.functional.pixel_shuffle(x, 2),
    )  # fmt: skip
    yield _of(
        "pixel_unshuffle", "r = 2", dtype, shape, lambda op, x: op(x, 2), None,
        lambda torch, x: torch.nn.functional.pixel_unshuffle(x, 2),
    )  # fmt: skip
    yield _of(
        "channel_shuffle", "4 groups", dtype, shape, lambda op, x: op(x, 4), None,
        lambda torch, x: torch.nn.functional.channel_shuffle(x, 4),
    )  # fmt: skip


def _patches(x, k):
    """Windows of k x k, one shifted array for each of their elements."""
    batch, channels, rows, columns = x.shape
    x = jnp.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    shifted = [x[:, :, i : i + rows, j : j + columns] for i in range(k) for j in range(k)]
    return jnp.stack(shifted, 2).reshape(batch, channels * k * k, rows * columns)


def _joined(x, image, k):
    return jax.linear_transpose(lambda y: _patches(y, k), jax.ShapeDtypeStruct(image, x.dtype))(x)[0]


def benchmarks(size):
    return [b for dtype in DTYPES for b in (*matrices(SHAPES[size], dtype), *images(IMAGES[size], dtype))]
