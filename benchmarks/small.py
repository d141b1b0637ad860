"""Times small segment reductions with their gradients: a jitted call, and 32 in a chain, by the kernel, by XLA, and as
chosen where the order of sums does not matter, as under `patch_jax()`.

    python benchmarks/small.py [ROWS ...]

[ROWS, 64] in float32 into ROWS / 8 segments, ids in no order. Each step of a chain is the gradient of half the sum of
squares, which has the shape of its rows. Microseconds until the result is there, of a call and of a step; versions are
called in turn, and the median counts."""

import sys

import jax
import jax.numpy as jnp
from jax import lax

import baracuda_jax
from baracuda_jax.bench.overhead import waited_for

ROWS, COLUMNS, CHAIN, CALLS = (256, 1024, 4096, 16384, 65536), 64, 32, 300


def step(op, implementation):
    fun = getattr(jax.ops if implementation == "xla" else baracuda_jax, op)
    options = {} if implementation == "xla" else {"implementation": implementation}

    def gradient(x, ids):
        return jax.grad(lambda x: (fun(x, ids, len(ids) // 8, **options) ** 2).sum() / 2)(x)

    return gradient


def chain(gradient):
    def program(x, ids):
        for _ in range(CHAIN):
            x = lax.optimization_barrier(gradient(x, ids))
        return x

    return program


def main(rows):
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}")
    print(f"{'op':12} {'rows':>6} {'':16} {'kernel':>8} {'XLA':>8} {'chosen':>8}")
    for op in ("segment_sum", "segment_max"):
        for n in rows:
            x = jax.random.normal(jax.random.key(0), (n, COLUMNS), jnp.float32) / n
            ids = jax.random.randint(jax.random.key(1), (n,), 0, n // 8)
            chosen = baracuda_jax.PlanPreference(deterministic=False)
            of = {"native": step(op, "native"), "xla": step(op, "xla"), "chosen": step(op, chosen)}
            for what, count, make in (("a call", 1, lambda f: f), (f"of {CHAIN} in a chain", CHAIN, chain)):
                made = {name: jax.jit(make(gradient)) for name, gradient in of.items()}
                took = waited_for(made, (x, ids), CALLS)
                print(f"{op:12} {n:6} {what:16}", *(f"{took[name] / count:8.1f}" for name in of))


if __name__ == "__main__":
    main([int(n) for n in sys.argv[1:]] or ROWS)
