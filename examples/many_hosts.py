"""Message passing on edges that are sharded over all devices of all hosts: on one host as it is, on many unchanged.

One host:    python examples/many_hosts.py
Many hosts:  python examples/many_hosts.py --coordinator HOST:PORT --processes N --process I     on each, I = 0 ... N - 1
             (on a cluster that JAX knows, such as Slurm, --coordinator auto alone)

Each host holds its own part of the edges. A receiver's feature is the maximum of its messages (`segment_max`), whose parts
the devices combine; the gradient goes back to the sender's features. Prints a few numbers that are the same however many
devices there are."""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from baracuda_jax import segment_max

NODES, EDGES, WIDTH = 500, 8192, 16


def join():
    """Makes this process one of many, if the arguments say so."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="of process 0, or auto")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--process", type=int)
    options = parser.parse_args()
    if options.coordinator == "auto":
        jax.distributed.initialize()
    elif options.coordinator:
        jax.distributed.initialize(options.coordinator, options.processes, options.process)


def load(sharding, draw, *shape):
    """An array of which each host makes its own shards alone, from the numbers of their rows."""
    return jax.make_array_from_callback(shape, sharding, lambda index: draw(np.arange(shape[0])[index[0]]))


def features_of(rows):
    return np.stack([np.random.default_rng(int(row)).standard_normal(WIDTH, np.float32) for row in rows])


def loss(weight, messages, receivers):
    received = segment_max(messages @ weight, receivers, NODES, empty_value=0)
    return jnp.mean(jnp.tanh(received) ** 2)


def main():
    join()
    mesh = jax.make_mesh((jax.device_count(),), ("edges",), axis_types=(jax.sharding.AxisType.Auto,))
    by_edge = NamedSharding(mesh, P("edges"))
    messages = load(by_edge, features_of, EDGES, WIDTH)
    receivers = load(by_edge, lambda rows: (rows * 7919 % NODES).astype(np.int32), EDGES)
    weight = jax.device_put(np.eye(WIDTH, dtype=np.float32), NamedSharding(mesh, P()))
    value, gradient = jax.jit(jax.value_and_grad(loss))(weight, messages, receivers)
    if jax.process_index() == 0:
        print(f"loss {float(value):.6f}, norm of the gradient {float(jnp.linalg.norm(jax.device_get(gradient))):.6f}")


if __name__ == "__main__":
    main()
