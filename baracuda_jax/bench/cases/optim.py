"""One step of an optimizer on a matrix: parameters and moments are read and written once."""

import jax.numpy as jnp

import baracuda_jax
from baracuda_jax.optim import AdamState, DistributedAdamState, SGDState

from ..benchmark import MATRICES, Benchmark

RATE, DECAYS, EPS = 1e-2, (0.9, 0.999), 1e-6


def _adam(p, g, m, v, sqrt):
    m, v = DECAYS[0] * m + (1 - DECAYS[0]) * g, DECAYS[1] * v + (1 - DECAYS[1]) * g * g
    return m / (1 - DECAYS[0]) / (sqrt(v / (1 - DECAYS[1])) + EPS), m, v


def _written(name, package):
    """The step in plain JAX or in PyTorch."""

    def adam(p, g, m, v):
        update, m, v = _adam(p, g, m, v * v, package.sqrt)
        if name == "adamw_step":
            update = update + 1e-2 * p
        if name == "lamb_step":
            update = update * package.sqrt((p * p).sum() / (update * update).sum())
        return package.stack([p - RATE * update, m, v])

    def sgd(p, g, m):
        m = DECAYS[0] * m + g
        return package.stack([p - RATE * m, m])

    return sgd if name == "sgd_step" else adam


def _step(name):
    step = getattr(baracuda_jax, name)

    def adam(p, g, m, v, implementation):
        p, state = step(p, g, AdamState(jnp.int32(0), m, v * v), RATE, eps=EPS, implementation=implementation)
        return jnp.stack([p, state.mu, state.nu])

    def rows(p, g, m, v, implementation):
        p, state = step(
            p, g, DistributedAdamState(jnp.int32(0), m, v * v), RATE, eps=EPS, implementation=implementation
        )
        return jnp.stack([p, state.mu, state.nu])

    def sgd(p, g, m, implementation):
        p, state = step(p, g, SGDState(jnp.int32(1), m), RATE, momentum=DECAYS[0], implementation=implementation)
        return jnp.stack([p, state.momentum])

    return {"sgd_step": sgd, "distributed_adam_step": rows}.get(name, adam)


def steps(name, rows, columns):
    arrays = 3 if name == "sgd_step" else 4
    shape = (rows * columns,) if name == "distributed_adam_step" else (rows, columns)  # of which its state is one row
    return Benchmark(
        name, f"{list(shape)}", "float32",
        lambda draws: tuple(draws.normal(shape) for _ in range(arrays)),
        _step(name), _written(name, jnp), lambda torch, *tensors: _written(name, torch)(*tensors),
        moving=arrays, passes=("forward",),
    )  # fmt: skip


def benchmarks(size):
    for name in ("adam_step", "adamw_step", "lamb_step", "sgd_step", "distributed_adam_step"):
        yield steps(name, *MATRICES[size])
