"""Rotary position embeddings: pairs of elements, turned by an angle that grows with the position."""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.facade import facade, facade_api
from .._core.sku import OpCategory
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from ._scaling import SCALINGS, frequencies


@facade_api("xla")
def rope(
    x: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    base: float = 10000.0,
    rotary_dim: int | None = None,
    interleaved: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Rotary position embedding: turn pairs of elements by angles that grow with the position.

    Formula:
        pair i of r / 2 turns by a = position base^(-2 i / r): (u, w) becomes (u cos a - w sin a, u sin a + w cos a).
        r = rotary_dim; elements after the first r stay. The gradient turns dy back.

    Args:
        x: floats [..., length, heads, d].
        positions: integers that broadcast to [..., length]; None for 0, 1, ..., length - 1.
        base: static number above 0.
        rotary_dim: static integer, even and at most d; None for d.
        interleaved: static bool: pairs are the elements 2 i and 2 i + 1 if True, else i and i + r / 2.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: angles are of float32, or float64 for float64, and their sines and cosines are exact to these. float16 and
    bfloat16 are computed in float32 and rounded once.

    Source: torchtune.modules.RotaryPositionalEmbeddings, whose pairs are interleaved, and transformers' rotate_half.
    """
    op = "rope"
    x = _heads(op, x)
    d = x.shape[-1]
    size = d if rotary_dim is None else checks.integer(op, "rotary_dim", rotary_dim, 0)
    if size % 2 or size > d:
        raise ValueError(f"{op}: rotary_dim must be even and at most d, {d}, got {size}")
    if positions is not None:
        positions = checks.array(op, "positions", positions)
        checks.dtype(op, "positions", positions, checks.INTEGERS)
        _broadcasts(op, "positions", positions, x.shape[:-2])
    freq, _ = frequencies(op, size, _number(op, "base", base, 0), "default", {})
    return _rope(x, positions, freq=freq, interleaved=checks.flag(op, "interleaved", interleaved))


@facade_api("xla")
def rope_apply_table(
    x: ArrayLike,
    cos: ArrayLike,
    sin: ArrayLike,
    positions: ArrayLike | None = None,
    *,
    interleaved: bool = False,
    implementation: Implementation = None,
) -> Array:
    """Rotary position embedding by tables of cosines and sines.

    Formula:
        pair i (u, w) becomes (u c - w s, u s + w c) with c = cos[position, i] and s = sin[position, i]. Elements after
        the first 2 n stay.

    Args:
        x: floats [..., length, heads, d].
        cos: floats [rows, n], 2 n at most d, as of `rope_scaled_table`. Without positions, [..., length, n] of x's first
            dimensions, or [length, n] for all.
        sin: array of cos's dtype and shape.
        positions: integers that broadcast to [..., length], the rows of the tables; those outside are the nearest row.
            None where row i is for position i.
        interleaved: static bool: pairs are the elements 2 i and 2 i + 1 if True, else i and i + n.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of x's shape and dtype.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: float16 and bfloat16 are computed in float32 and rounded once.

    Source: onnx RotaryEmbedding, transformers' apply_rotary_pos_emb, whose tables have each column twice.
    """
    op = "rope_apply_table"
    x = _heads(op, x)
    tables = []
    for name, table in (("cos", cos), ("sin", sin)):
        table = checks.floats(op, name, table)
        tables.append(table)
    cos, sin = tables
    checks.same_dtype(op, "sin", sin, "cos", cos)
    checks.shape(op, "sin", sin, cos.shape, "that of cos")
    length = x.shape[-3] if positions is None else cos.shape[0] if cos.ndim else 0
    fits = [(length,), *([x.shape[:-2]] if positions is None else [])]
    if not cos.ndim or cos.shape[:-1] not in fits or 2 * cos.shape[-1] > x.shape[-1]:
        raise ValueError(
            f"{op}: cos must be [rows, n] or, without positions, [..., length, n], with 2 n at most d, for x of shape "
            f"{x.shape}, got {cos.shape}"
        )
    if positions is not None:
        positions = checks.array(op, "positions", positions)
        checks.dtype(op, "positions", positions, checks.INTEGERS)
        _broadcasts(op, "positions", positions, x.shape[:-2])
        if not length:
            raise ValueError(f"{op}: cos must have one row at least, got shape {cos.shape}")
    return _by_table(x, cos, sin, positions, interleaved=checks.flag(op, "interleaved", interleaved))


@facade_api("xla")
def rope_scaled_table(
    positions: ArrayLike,
    dim: int,
    *,
    base: float = 10000.0,
    scaling: Literal["default", "linear", "dynamic", "yarn", "longrope", "llama3"] = "default",
    factor: float | None = None,
    original_length: int | None = None,
    length: int | None = None,
    attention_factor: float | None = None,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    short_factor: tuple[float, ...] | None = None,
    long_factor: tuple[float, ...] | None = None,
    implementation: Implementation = None,
) -> tuple[Array, Array]:
    """Tables of cosines and sines for rotary embeddings, with frequencies scaled for contexts longer than those of training.

    Formula:
        (m cos(position f_i), m sin(position f_i)) for i < dim / 2, with b_i = base^(-2 i / dim), and m = 1 except as said:
        "default": f = b. "linear": f = b / factor.
        "dynamic": f = b of base (factor l / o - (factor - 1))^(dim / (dim - 2)), with o = original_length and
        l = max(length, o).
        "yarn": f = (1 - r) b + r b / factor; r is a ramp from 0 to 1 between the indices whose wavelengths turn beta_fast
        and beta_slow times in o; m = 0.1 log(factor) + 1.
        "longrope": f = b / short_factor, or long_factor where length > o; m = sqrt(1 + log(factor) / log(o)).
        "llama3": f = b where its wavelength is below o / high_freq_factor, b / factor where it is above
        o / low_freq_factor, and interpolated between.

    Args:
        positions: integers or floats [...].
        dim: static even integer, the number of elements that are turned.
        base: static number above 0.
        scaling: static, how frequencies are scaled.
        factor: static number above 0, by how much the context is longer; not needed for "default", and for "longrope" only
            where attention_factor is None.
        original_length: static integer, the length of contexts in training; for all but "default" and "linear".
        length: static integer, the length of the context, for "dynamic" and "longrope"; None for original_length.
        attention_factor: static number, m; None for the formula's.
        beta_fast: static number, for "yarn".
        beta_slow: static number, for "yarn".
        truncate: static bool, for "yarn", whether the ends of the ramp are integers.
        mscale: static number, for "yarn": with mscale_all_dim, m = (0.1 mscale log(factor) + 1) / (0.1 mscale_all_dim
            log(factor) + 1).
        mscale_all_dim: static number, for "yarn".
        low_freq_factor: static number, for "llama3".
        high_freq_factor: static number, for "llama3".
        short_factor: static numbers, dim / 2 of them, for "longrope".
        long_factor: static numbers, dim / 2 of them, for "longrope".
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        (cos, sin), arrays [..., dim / 2] of float32, or of float64 for positions of float64.

    Raises:
        TypeError, ValueError: for an argument of the wrong type, shape or range, naming it.

    Precision: frequencies are computed in float64 and rounded once; angles are of the result's dtype.

    Source: transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS.
    """
    op = "rope_scaled_table"
    positions = checks.array(op, "positions", positions)
    checks.dtype(op, "positions", positions, checks.NUMBERS)
    dim = checks.integer(op, "dim", dim, 0)
    if dim % 2:
        raise ValueError(f"{op}: dim must be even, got {dim}")
    checks.choice(op, "scaling", scaling, SCALINGS)
    options = dict(
        factor=factor, original_length=original_length, length=length, attention_factor=attention_factor,
        beta_fast=beta_fast, beta_slow=beta_slow, truncate=checks.flag(op, "truncate", truncate), mscale=mscale,
        mscale_all_dim=mscale_all_dim, low_freq_factor=low_freq_factor, high_freq_factor=high_freq_factor,
        short_factor=short_factor, long_factor=long_factor,
    )  # fmt: skip
    freq, by = frequencies(op, dim, _number(op, "base", base, 0), scaling, options)
    return _table(positions, freq=freq, by=by)


def _heads(op, x):
    x = checks.floats(op, "x", x)
    if x.ndim < 3:
        raise ValueError(f"{op}: x must be [..., length, heads, d], got shape {x.shape}")
    return x


def _broadcasts(op, name, x, shape):
    pairs = zip(x.shape[::-1], shape[::-1], strict=False)
    if not x.ndim or x.ndim > len(shape) or any(n not in (1, size) for n, size in pairs):
        raise ValueError(f"{op}: {name} must broadcast to [..., length], which is {shape}, got shape {x.shape}")


def _number(op, name, value, above):
    if not checks.is_number(value) or not value > above:
        raise ValueError(f"{op}: {name} must be a static number above {above}, got {value!r}")
    return float(value)


def _of_heads(table, x):
    """[..., length, n] -> [..., length, 1, n], of x's rank."""
    return explicit.reshape(table, *(1,) * (x.ndim - table.ndim - 1), *table.shape[:-1], 1, table.shape[-1])


@compiled("freq", "interleaved")
def _rope(x, positions, *, freq, interleaved):
    if positions is None:
        positions = jnp.arange(x.shape[-3], dtype=jnp.int32)
    cos, sin = (_of_heads(table, x) for table in _table(positions.astype(wide_dtype(x.dtype)), freq=freq, by=1.0))
    return _turned(x, cos, sin, interleaved)


@compiled("interleaved")
def _by_table(x, cos, sin, positions, *, interleaved):
    if positions is not None:
        rows = jnp.clip(positions, 0, min(len(cos) - 1, jnp.iinfo(positions.dtype).max))
        cos, sin = (explicit.take(explicit.whole(table), rows) for table in (cos, sin))
    dtype = jnp.promote_types(wide_dtype(x.dtype), wide_dtype(cos.dtype))
    return _turned(x, *(_of_heads(table.astype(dtype), x) for table in (cos, sin)), interleaved)


def _turned(x, cos, sin, interleaved):
    """Split, not sliced: the gradient is then a concatenation, which slices would pad and add."""
    n, rest = cos.shape[-1], x.shape[-1] - 2 * cos.shape[-1]
    if interleaved:
        moved, *rest = jax.lax.split(x, (2 * n, rest), axis=-1) if rest else (x,)
        pairs = explicit.reshape(moved, *x.shape[:-1], n, 2)
        u, w = (part.squeeze(-1) for part in jax.lax.split(pairs, (1, 1), axis=-1))
    else:
        u, w, *rest = jax.lax.split(x, (n, n, rest) if rest else (n, n), axis=-1)
    u, w = (wide(part).astype(cos.dtype) for part in (u, w))
    pair = [part.astype(x.dtype) for part in (u * cos - w * sin, u * sin + w * cos)]
    if interleaved:
        pair = [explicit.reshape(jnp.stack(pair, -1), *x.shape[:-1], 2 * n)]
    return jnp.concatenate([*pair, *rest], -1)


@compiled("freq", "by")
def _table(positions, *, freq, by):
    dtype = jnp.float64 if positions.dtype == jnp.float64 else jnp.float32
    freq = jnp.asarray(np.array(freq), dtype).reshape(*(1,) * positions.ndim, len(freq))
    angle = positions.astype(dtype)[..., None] * freq
    return by * jnp.cos(angle), by * jnp.sin(angle)


def _draw(shape, rows=None, n=None):
    def draw(rng):
        x = rng.standard_normal(shape)
        if rows is None:
            return x, rng.integers(0, 20, shape[:-2])
        return x, *rng.standard_normal((2, rows, n)), rng.integers(0, rows, shape[:-2])

    return draw


facade(
    "rope",
    family="attention",
    category=OpCategory.ATTENTION,
    public=rope,
    cases=(
        Case("halves", _draw((2, 5, 3, 8))),
        Case("interleaved, some elements", _draw((7, 2, 7)), dict(interleaved=True, rotary_dim=4, base=100.0)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "positions"),
    differentiable=("x",),
    constant={"positions": "positions are integers"},
)

facade(
    "rope_apply_table",
    family="attention",
    category=OpCategory.ATTENTION,
    public=rope_apply_table,
    cases=(
        Case("halves", _draw((2, 5, 3, 8), 9, 4)),
        Case("interleaved, some elements", _draw((7, 2, 7), 6, 2), dict(interleaved=True)),
    ),
    dtypes=checks.FLOATS,
    operands=("x", "cos", "sin", "positions"),
    differentiable=("x", "cos", "sin"),
    constant={"positions": "positions are integers"},
)

_POSITIONS = lambda *shape: lambda rng: (rng.uniform(0, 9, shape),)

facade(
    "rope_scaled_table",
    family="attention",
    category=OpCategory.ATTENTION,
    public=rope_scaled_table,
    cases=(
        Case("yarn", _POSITIONS(5), dict(dim=16, scaling="yarn", factor=4.0, original_length=64)),
        Case("llama3", _POSITIONS(2, 3), dict(dim=12, scaling="llama3", factor=8.0, original_length=32)),
        Case("dynamic", _POSITIONS(4), dict(dim=6, scaling="dynamic", factor=2.0, original_length=8, length=20)),
    ),
    dtypes=("float32", "float64"),
    operands=("positions",),
    differentiable=("positions",),
    outputs=("cos", "sin"),
)
