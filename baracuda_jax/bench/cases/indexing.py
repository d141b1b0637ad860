"""Elements and rows by index."""

import jax
import jax.numpy as jnp

import baracuda_jax

from ..benchmark import DTYPES, MATRICES, PASSES, Benchmark, along


def looked_up(op, rows, columns, dtype, index, plain, torch):
    """Rows of x, of an index alone."""
    public = getattr(baracuda_jax, op)
    return Benchmark(
        op, f"{list(index)} of [{rows}, {columns}]", dtype,
        lambda draws: (draws.normal((rows, columns)), draws.integers(index, 0, rows)),
        lambda x, index, *, implementation: public(x, index, implementation=implementation),
        plain, torch, needs=(1,),
    )  # fmt: skip


def _half(shape, axis):
    return tuple(max(1, n // 2) if i == axis else n for i, n in enumerate(shape))


def gathered(shape, axis, dtype):
    """Half as many elements as there are along the axis."""
    index = _half(shape, axis)
    return Benchmark(
        "gather", f"{list(index)} of {list(shape)}{along(shape, axis)}", dtype,
        lambda draws: (draws.normal(shape), draws.integers(index, 0, shape[axis])),
        lambda x, index, *, implementation: baracuda_jax.gather(x, index, axis, implementation=implementation),
        lambda x, i: jnp.take_along_axis(x, i, axis),
        lambda torch, x, i: torch.gather(x, axis, i.long()),
        needs=(1,),
    )  # fmt: skip


def _at(x, index, axis):
    """The elements of x that an index along the axis names, to be written."""
    positions = [jnp.arange(n).reshape([-1 if i == k else 1 for k in range(x.ndim)]) for i, n in enumerate(index.shape)]
    positions[axis] = index
    return x.at[tuple(positions)]


def written(op, shape, axis, dtype, index, src, plain, torch):
    """Of x, an index, and what is written or added there."""
    public = getattr(baracuda_jax, op)

    def draw(draws):
        x = draws.normal(shape)
        if op == "scatter":  # which of duplicates is written, plain JAX does not say
            ids = jnp.argsort(draws.uniform(x.shape), axis)[:, : index[axis]].astype(jnp.int32)
        else:
            ids = draws.integers(index, 0, x.shape[axis])
        return x, ids, draws.normal(src)

    return Benchmark(
        op, f"{list(index)} to {list(shape)}{along(shape, axis) if len(index) > 1 else ''}", dtype, draw,
        lambda x, index, src, *, implementation: public(x, index, src, axis, implementation=implementation),
        plain, torch, needs=(1, 2) if op == "scatter_mul" else (1,), rough=4.0,
    )  # fmt: skip


def combined(shape, axis, dtype):
    """Elements to which half as many are added, by which they are multiplied, or with which they are compared."""
    some = _half(shape, axis)
    for name, theirs in (("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")):
        yield written(
            f"scatter_{name}", shape, axis, dtype, some, some,
            lambda x, i, src, name=name: getattr(_at(x, i, axis), name)(src),
            lambda torch, x, i, src, theirs=theirs: torch.scatter_reduce(x, axis, i.long(), src, theirs),
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
        shape = rows, columns
        yield gathered(shape, 1, dtype)
        for op in ("index_select", "gather_rows"):
            yield looked_up(
                op, rows, columns, dtype, (rows,), lambda x, i: jnp.take(x, i, 0),
                lambda torch, x, i: torch.index_select(x, 0, i),
            )  # fmt: skip
        yield written(
            "scatter", shape, 1, dtype, some, some, lambda x, i, src: _at(x, i, 1).set(src),
            lambda torch, x, i, src: torch.scatter(x, 1, i.long(), src),
        )  # fmt: skip
        yield from combined(shape, 1, dtype)
        yield written(
            "index_add", shape, 0, dtype, (rows,), shape, lambda x, i, src: x.at[i].add(src),
            lambda torch, x, i, src: torch.index_add(x, 0, i, src),
        )  # fmt: skip
        yield masked(rows, columns, dtype)
    yield encoded(rows, columns)
