"""Images of twice and of half the size, images that are turned a little, and boxes as detectors have them."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, PASSES, Benchmark, normal

# N, C and the height and width of images; how many boxes
SHAPES = {"tiny": (2, 4, 24, 24), "small": (8, 32, 56, 56), "large": (32, 64, 112, 112)}
BOXES = {"tiny": 32, "small": 256, "large": 1024}
MANY = {"tiny": 64, "small": 1024, "large": 4096}  # as a detector has before suppression


def resized(shape, dtype, mode, factor, method, is_antialiased=False):
    out = *shape[:2], *(int(n * factor) for n in shape[2:])
    how = dict(size=out[2:], mode=mode) | (dict(antialias=True) if is_antialiased else {})
    plain = method and (lambda x: jax.image.resize(x, out, method, antialias=is_antialiased))
    return Benchmark(
        "interpolate", f"{list(shape)}", dtype, normal(*shape),
        lambda x, implementation: baracuda_jax.interpolate(x, **how, implementation=implementation), plain,
        lambda torch, x: torch.nn.functional.interpolate(x, **how),
        variant=f"{mode}{', antialias' if is_antialiased else ''}, {factor} times", rough=4,
    )  # fmt: skip


def sizes(shape, dtype):
    """Of few taps, which are one pass over an image, and of many."""
    return [
        resized(shape, dtype, "bilinear", 2, "bilinear"),
        resized(shape, dtype, "nearest", 2, None),
        resized(shape, dtype, "bicubic", 2, None),
        resized(shape, dtype, "area", 0.5, None),
        resized(shape, dtype, "bilinear", 0.5, "bilinear", is_antialiased=True),
        resized(shape, dtype, "bicubic", 0.5, "bicubic", is_antialiased=True),
        resized(shape, dtype, "bicubic", 0.25, None, is_antialiased=True),
    ]


def grids(shape, dtype, mode, is_random=False):
    """Neighbors in the grid are neighbors in the image, or anywhere."""

    def draw(draws):
        positions = draws.uniform((shape[0], *shape[2:], 2), -1, 1) if is_random else _grids(shape)
        return draws.normal(shape), positions

    return Benchmark(
        "grid_sample", f"{list(shape)}", dtype, draw,
        lambda x, grid, implementation: baracuda_jax.grid_sample(x, grid, mode, implementation=implementation),
        torch=lambda torch, x, grid: torch.nn.functional.grid_sample(x, grid.to(x.dtype), mode, align_corners=False),
        variant=f"{mode}{', at random' if is_random else ''}", moving=2, needs=(0, 1), wide=(1,), rough=10,
    )  # fmt: skip


def at_coordinates(shape, dtype, order):
    """An image's channels, turned a little."""

    def draw(draws):
        theta = jnp.array([[0.98, -0.17], [0.17, 0.98]], jnp.float32)
        elements = jnp.stack(jnp.meshgrid(*(jnp.arange(n, dtype=jnp.float32) for n in shape[1:]), indexing="ij"))
        return draws.normal(shape), jnp.einsum("ij,jhw->ihw", theta, elements) + 0.3

    def plain(x, at):
        return jax.vmap(lambda x: jax.scipy.ndimage.map_coordinates(x, at.astype(x.dtype), 1, mode="nearest"))(x)

    return Benchmark(
        "map_coordinates", f"{list(shape)}", dtype, draw,
        lambda x, at, implementation: baracuda_jax.map_coordinates(
            x, at, order, mode="nearest", implementation=implementation
        ),
        plain if order == 1 else None, variant=f"order {order}", moving=2, needs=(0, 1), wide=(1,), rough=10,
    )  # fmt: skip


def suppression(count, dtype):
    """As many boxes as fill an image of 512 by 512."""
    return Benchmark(
        "nms", f"[{count}, 4]", dtype, lambda draws: (_boxes(draws, count, 512, 512), draws.uniform((count,))),
        lambda boxes, scores, implementation: baracuda_jax.nms(boxes, scores, 0.5, implementation=implementation),
        passes=PASSES[:1],
    )  # fmt: skip


def _grids(shape):
    """Turned by a few degrees, and not of whole elements."""
    theta = jnp.array([[0.98, -0.17, 0.03], [0.17, 0.98, -0.02]], jnp.float32)
    return baracuda_jax.affine_grid(jnp.broadcast_to(theta, (shape[0], 2, 3)), shape)


def _boxes(draws, count, height, width):
    """The index of the image comes later."""
    low = draws.uniform((count, 2)) * jnp.array([0.7 * width, 0.7 * height], jnp.float32)
    return jnp.concatenate([low, low + draws.uniform((count, 2), 0.05, 0.3) * jnp.array([width, height])], 1)


ALIGN = dict(sampling_ratio=2, aligned=True)


def regions(name, shape, count, dtype, more, rough=4.0):
    n, _, height, width = shape

    def draw(draws):
        image = draws.integers((count, 1), 0, n).astype(jnp.float32)
        return draws.normal(shape), jnp.concatenate([image, _boxes(draws, count, height, width)], 1)

    function = lambda x, boxes, implementation: getattr(baracuda_jax, name)(
        x, boxes, 7, **more, implementation=implementation
    )
    text = f"{list(shape)}, {count} boxes of 7 by 7"
    return Benchmark(name, text, dtype, draw, function, needs=(1,), wide=(1,), rough=rough)


def benchmarks(size):
    shape, count = SHAPES[size], BOXES[size]
    for dtype in DTYPES:
        yield from sizes(shape, dtype)
        yield Benchmark(
            "affine_grid", f"{list(shape)}", dtype, normal(shape[0], 2, 3),
            lambda theta, implementation: baracuda_jax.affine_grid(theta, shape, implementation=implementation),
            torch=lambda torch, theta: torch.nn.functional.affine_grid(theta, shape, False), rough=4,
        )  # fmt: skip
        yield from (grids(shape, dtype, mode) for mode in ("bilinear", "bicubic"))
        yield grids(shape, dtype, "bilinear", is_random=True)
        yield from (at_coordinates(shape[1:], dtype, order) for order in (1, 3))
        yield regions("roi_align", shape, count, dtype, ALIGN)
        yield regions("roi_pool", shape, count, dtype, {})
    pairs = lambda draws: (_boxes(draws, count, 512, 512), _boxes(draws, count, 512, 512))
    yield Benchmark(
        "box_iou", f"[{count}, 4] with [{count}, 4]", "float32", pairs,
        lambda a, b, implementation: baracuda_jax.box_iou(a, b, implementation=implementation), moving=2, needs=(0, 1),
    )  # fmt: skip
    yield suppression(MANY[size], "float32")
    yield Benchmark(
        "soft_nms", f"[{count}, 4]", "float32", lambda draws: (_boxes(draws, count, 512, 512), draws.uniform((count,))),
        lambda boxes, scores, implementation: baracuda_jax.soft_nms(boxes, scores, implementation=implementation),
    )  # fmt: skip
