"""Decoding over a cache of 8-bit floats, and over one without pages."""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.api import api
from .._core.case import Case
from .._core.compiled import compiled
from .._core.float8 import bits
from .._core.op import compose
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide
from ._decode import arguments, draw, results

FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


@api
def batch_paged_decode_fp8(
    query: ArrayLike,
    k_pages: ArrayLike,
    v_pages: ArrayLike,
    page_table: ArrayLike,
    lengths: ArrayLike,
    k_scale: ArrayLike | None = None,
    v_scale: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
    implementation: Implementation = None,
) -> Array | tuple[Array, Array]:
    """Attention of one query of each sequence over a cache of 8-bit floats that is made of pages.

    Formula:
        `batch_paged_decode` of the keys k_scale k_pages and the values v_scale v_pages. The scales are put on query and y,
        so that the cache is read as it is.

    Args:
        query: float32, float16 or bfloat16 [batch, heads, d].
        k_pages: array of float8_e4m3fn or float8_e5m2, [number of pages, n, heads of keys, d].
        v_pages: array of k_pages' dtype, [number of pages, n, heads of keys, d of values].
        page_table: integers [batch, pages of a sequence].
        lengths: integers [batch], the number of keys of each sequence, with that of the query.
        k_scale: floats [] or [heads of keys], what the keys are to be multiplied with; None for 1.
        v_scale: floats [] or [heads of keys], what the values are to be multiplied with; None for 1.
        slopes: floats [heads], those of `alibi`; None for 0.
        scale: static number; None for 1 / sqrt(d).
        softcap: static number above 0.
        window: static integer, how many keys before its own a query sees; None for all.
        return_lse: static bool, whether lse is returned too.
        implementation: "native" (the kernel), "xla" (plain JAX), a PlanPreference, or None for automatic.

    Returns:
        As `batch_paged_decode`; lse is float32. There are no derivatives with respect to quantized pages.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: computed in float32, with the exact values of the 8-bit floats, and rounded once.

    Source: vLLM's paged_attention_v2 with kv_cache_dtype="fp8".
    """
    op = "batch_paged_decode_fp8"
    query = checks.array(op, "query", query)
    checks.dtype(op, "query", query, ("float32", "float16", "bfloat16"))
    arrays, params = arguments(
        op,
        query,
        k_pages,
        v_pages,
        page_table,
        lengths,
        slopes,
        scale=scale,
        softcap=softcap,
        window=window,
        stored=FLOAT8,
    )
    query, k_pages, v_pages, *others = arrays
    scales = [_scale_of(op, name, x, k_pages) for name, x in (("k_scale", k_scale), ("v_scale", v_scale))]
    params |= {"float8": k_pages.dtype.name}
    query, k_pages, v_pages = _scaled(query, scales[0]), *_bits(k_pages, v_pages)
    of_y = lambda y: _scaled(y, scales[1]).astype(arrays[0].dtype)
    return results(op, (query, k_pages, v_pages, *others), params, return_lse, implementation, of_y)


def _scale_of(op, name, x, pages):
    if x is None:
        return None
    x, heads = checks.floats(op, name, x), pages.shape[-2]
    if x.shape not in ((), (heads,)):
        raise ValueError(f"{op}: {name} must have shape () or {(heads,)}, one for each head of keys, got {x.shape}")
    return x


@compiled()
def _scaled(x, scale):
    """x [batch, heads, ...] wide, each head by the scale of its keys."""
    x = wide(x)
    if scale is None:
        return x
    if scale.ndim:  # JAX repeats what is sharded along explicit axes only if it is told how the result is
        scale = jnp.repeat(explicit.whole(scale), x.shape[1] // scale.shape[0])[None, :, None]
    return x * scale.astype(x.dtype)


@compiled()
def _bits(*pages):
    return tuple(map(bits, pages))


def _case(name, dtype, scales, drawn, **kwargs):
    def drawn_with_scales(rng):
        query, k, v, *integers, _ = drawn(rng)
        k, v = (np.asarray(x).astype(jnp.dtype(dtype)) for x in (k, v))
        return query, k, v, *integers, *(np.asarray(0.5 + rng.random(shape)) for shape in scales)

    return Case(name, drawn_with_scales, kwargs)


compose(
    "batch_paged_decode_fp8",
    family="attention",
    category=OpCategory.ATTENTION,
    public=batch_paged_decode_fp8,
    cases=(
        _case(
            "scales of tensors", "float8_e4m3fn", ((), ()),
            draw(6, 3, 2, 8, 16, 4, [[4, 1], [0, 2], [5, 3]], [4, 6, 1]), return_lse=True,
        ),
        _case(
            "scales of heads", "float8_e5m2", ((2,), (2,)), draw(4, 4, 2, 7, 5, 2, [[1, -1], [3, 9]], [8, 6]),
            window=5,
        ),
    ),
    dtypes=("float32", "float16", "bfloat16"),
    operands=("query", "k_pages", "v_pages", "page_table", "lengths", "k_scale", "v_scale"),
    outputs=("y", "lse"),
    differentiable=("query", "k_scale", "v_scale"),
    constant={
        "k_pages": "floats of 8 bits are quantized values",
        "v_pages": "floats of 8 bits are quantized values",
        "page_table": "numbers of pages are integers",
        "lengths": "they are integers",
    },
    made_of=("batch_paged_decode",),
    kernels={"forward": ("paged_decode",), "tangent": ("take_rows",), "backward": ("take_rows",)},
)  # fmt: skip
