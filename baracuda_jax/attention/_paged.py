"""Rows written into a cache that is made of pages, in place."""

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


@facade_api("xla")
def paged_kv_append(
    pages: ArrayLike,
    new: ArrayLike,
    page_table: ArrayLike,
    position: ArrayLike,
    *,
    implementation: Implementation = None,
) -> Array:
    """Write new rows into a cache of keys or values that is made of pages, in place.

    Formula:
        y[page_table[b, p // n], p % n] = new[b, i] for the rows i of new at positions p = position[b] + i of the sequence
        b, with pages of n rows; all else is as in pages. Rows whose position is negative or after the last page of their
        sequence, or whose page is none of those that there are, are left out. dpages is dy with zeros in the rows that are
        written, and dnew has these rows, and zeros for those left out.

    Args:
        pages: array [number of pages, n, ...] of floats, integers or bool, such as [pages, n, heads, d].
        new: array [batch, rows, ...] of pages' dtype and dimensions.
        page_table: integers [batch, pages of a sequence]. No two rows may be written to one position: then either may win.
        position: integers [batch], the position of each sequence's first new row: its length so far.
        implementation: "xla" (plain JAX), a PlanPreference, or None for automatic; there is no kernel.

    Returns:
        Array of pages' shape and dtype. Under jit, where pages is donated or nobody reads it after, it is pages' memory.

    Raises:
        TypeError, ValueError: for an argument of the wrong type or shape, naming it.

    Precision: values are moved as they are.

    Source: flashinfer.page.append_paged_kv_cache, vLLM's reshape_and_cache.
    """
    op = "paged_kv_append"
    pages, new = checks.array(op, "pages", pages), checks.array(op, "new", new)
    checks.dtype(op, "pages", pages, checks.REAL)
    checks.same_dtype(op, "new", new, "pages", pages)
    if pages.ndim < 2 or pages.ndim != new.ndim or pages.shape[2:] != new.shape[2:]:
        raise ValueError(
            f"{op}: pages must be [pages, n, ...] and new [batch, rows, ...], got {pages.shape} and {new.shape}"
        )
    batch = new.shape[0]
    with_batch = f"the batch of new, {batch}"
    page_table, position = table_of(op, page_table, "position", position, batch, with_batch, "the batch of new")
    if not new.size or not pages.size or not page_table.size:
        return pages
    return _append(pages, new, page_table, position)


def table_of(op, page_table, name, each, batch, with_batch, meaning):
    """A page table and a number for each of its sequences, called `name`, checked."""
    page_table, each = checks.array(op, "page_table", page_table), checks.array(op, name, each)
    for which, x in (("page_table", page_table), (name, each)):
        checks.dtype(op, which, x, checks.INTEGERS)
    if page_table.ndim != 2 or page_table.shape[0] != batch:
        raise ValueError(
            f"{op}: page_table must be [batch, pages of a sequence] with {with_batch}, got shape {page_table.shape}"
        )
    checks.shape(op, name, each, (batch,), meaning)
    return page_table, each


@compiled()
def _append(pages, new, page_table, position):
    count, n, (batch, rows), most = len(pages), pages.shape[1], new.shape[:2], page_table.shape[1]
    info = jnp.iinfo(position.dtype)
    first = jnp.clip(position, max(info.min, -rows), min(info.max, most * n)).astype(jnp.int32)
    at = first[:, None] + jnp.arange(rows, dtype=jnp.int32)[None]
    page = jnp.take_along_axis(page_table, jnp.clip(at // n, 0, most - 1), 1)
    known = (at >= 0) & (at < most * n) & (page >= 0) & (page <= min(count - 1, jnp.iinfo(page.dtype).max))
    # Rows that are left out are at pages after the last one, each at its own, so that the indices are unique.
    nowhere = count + jnp.arange(batch * rows, dtype=jnp.int32).reshape(batch, rows)
    page = jnp.where(known, page.astype(jnp.int32), nowhere)
    return pages.at[page, at % n].set(_as_pages(new, pages), mode="drop", unique_indices=True)


def _as_pages(new, pages):
    """On explicit axes rows may be sharded as those of pages are; else they are gathered."""
    spec = lambda x: tuple(jax.typeof(x).sharding.spec)[2:]
    return explicit.whole(new, (0, 1) if spec(new) == spec(pages) else None)


def _case(name, rows, position, table):
    batch = len(position)
    draw = lambda rng: (
        rng.standard_normal((6, 3, 2, 4)),
        rng.standard_normal((batch, rows, 2, 4)),
        np.array(table),
        np.array(position),
    )
    return Case(name, draw)


facade(
    "paged_kv_append",
    family="attention",
    category=OpCategory.ATTENTION,
    public=paged_kv_append,
    cases=(
        _case("two pages each", 2, [2, 0, 4], [[4, 1], [0, 2], [5, 3]]),
        _case("partly outside", 3, [-1, 5], [[3, 0], [2, -1]]),
    ),
    dtypes=checks.REAL,
    operands=("pages", "new", "page_table", "position"),
    differentiable=("pages", "new"),
    constant={"page_table": "numbers of pages are integers", "position": "positions are integers"},
)
