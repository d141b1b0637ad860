"""Elements and rows by index."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, PASSES, Benchmark


def looked_up(op, rows, columns, dtype, index, plain, torch):
    """Of x and an index alone."""
    public = getattr(baracuda_jax, op)
    return Benchmark(
        op, f"{list(index)} of [{rows}, {columns}]", dtype,
        lambda draws: (draws.normal((rows, columns)), draws.integers(index, 0, columns if op == "gather" else rows)),
        lambda x, index, *, implementation: public(x, index, implementation=implementation),
        plain, torch, needs=(1,),
    )  # fmt: skip


def gathered(rows, columns, dtype):
    return looked_up(
        "gather", rows, columns, dtype, (rows, columns // 2), lambda x, i: jnp.take_along_axis(x, i, 1),
        lambda torch, x, i: torch.gather(x, 1, i.long()),
    )  # fmt: skip


def written(op, rows, columns, dtype, index, plain, torch):
    """Of x, an index, and what is written or added there."""
    public = getattr(baracuda_jax, op)
    axis = 0 if op == "index_add" else 1

    def draw(draws):
        src = (*index, columns) if op == "index_add" else index
        x = draws.normal((rows, columns))
        if op == "scatter":  # which of duplicates is written, plain JAX does not say
            ids = jnp.argsort(draws.uniform(x.shape), 1)[:, : index[1]].astype(jnp.int32)
        else:
            ids = draws.integers(index, 0, x.shape[axis])
        return x, ids, draws.normal(src)

    return Benchmark(
        op, f"{list(index)} to [{rows}, {columns}]", dtype, draw,
        lambda x, index, src, *, implementation: public(x, index, src, axis, implementation=implementation),
        plain, torch, needs=(1, 2) if op == "scatter_mul" else (1,), rough=4.0,
    )  # fmt: skip


def combined(rows, columns, dtype):
    """Rows that half as many items each are added to, multiplied with, or compared with."""
    some = (rows, columns // 2)
    for name, theirs in (("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")):
        yield written(
            f"scatter_{name}", rows, columns, dtype, some,
            lambda x, i, src, name=name: getattr(x.at[jnp.arange(x.shape[0])[:, None], i], name)(src),
            lambda torch, x, i, src, theirs=theirs: torch.scatter_reduce(x, 1, i.long(), src, theirs),
        )  # fmt: skip


def masked(rows, columns, dtype):
    return Benchmark(
        "masked_fill", f"[{rows}, {columns}]", dtype,
        lambda draws: (draws.normal((rows, columns)), draws.uniform((rows, columns)) < 0.5),
        lambda x, mask, *, implementation: baracuda_jax.masked_fill(x, mask, -1.0, implementation=implementation),
        lambda x, mask: jnp.where(mask, jnp.asarray(-1, x.dtype), x),
        lambda torch, x, mask: x.masked_fill(mask, -1.0),
        needs=(1,),
    )  # fmt: skip


def encoded(rows, columns):
    return Benchmark(
        "one_hot", f"[{rows}], {columns} classes", "int32",
        lambda draws: (draws.integers((rows,), 0, columns),),
        lambda x, *, implementation: baracuda_jax.one_hot(x, columns, dtype=jnp.float32, implementation=implementation),
        lambda x: jax.nn.one_hot(x, columns, dtype=jnp.float32),
        lambda torch, x: torch.nn.functional.one_hot(x.long(), columns).float(),
        moving=0, passes=PASSES[:1],
    )  # fmt: skip


def benchmarks(size):
    rows, columns = MATRICES[size]
    some = rows, columns // 2
    for dtype in DTYPES:
        yield gathered(rows, columns, dtype)
        for op in ("index_select", "gather_rows"):
            yield looked_up(
                op, rows, columns, dtype, (rows,), lambda x, i: jnp.take(x, i, 0),
                lambda torch, x, i: torch.index_select(x, 0, i),
            )  # fmt: skip
        at = lambda x, i: x.at[jnp.arange(x.shape[0])[:, None], i]
        yield written(
            "scatter", rows, columns, dtype, some, lambda x, i, src, at=at: at(x, i).set(src),
            lambda torch, x, i, src: torch.scatter(x, 1, i.long(), src),
        )  # fmt: skip
        yield from combined(rows, columns, dtype)
        yield written(
            "index_add", rows, columns, dtype, (rows,), lambda x, i, src: x.at[i].add(src),
            lambda torch, x, i, src: torch.index_add(x, 0, i, src),
        )  # fmt: skip
        yield masked(rows, columns, dtype)
    yield encoded(rows, columns)
