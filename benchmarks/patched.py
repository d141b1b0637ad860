"""Times programs of other libraries as they are and under `patch_jax()`, on the default device.

    pip install jraph jax-md
    python benchmarks/patched.py

Each program is a jitted step that returns its gradients. Both versions run in turn; the median of rounds counts. Results are
compared."""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import baracuda_jax

ROUNDS, STEPS = 15, 10


def graph(nodes=20_000, edges=200_000, features=64):
    """(a random jraph graph, a function that draws parameters)"""
    import jraph

    rng = np.random.default_rng(0)
    normal = lambda *shape: jnp.asarray(rng.standard_normal(shape) / 8, jnp.float32)
    index = lambda: jnp.asarray(rng.integers(0, nodes, edges), jnp.int32)
    return jraph.GraphsTuple(
        nodes=normal(nodes, features), edges=None, globals=None, senders=index(), receivers=index(),
        n_node=jnp.asarray([nodes]), n_edge=jnp.asarray([edges]),
    ), normal  # fmt: skip


def graph_network(features=64):
    """One layer of a jraph.GraphNetwork that takes the largest message, and its gradients."""
    import jraph

    data, normal = graph(features=features)

    def loss(params):
        of_edges, of_nodes = params
        net = jraph.GraphNetwork(
            update_edge_fn=lambda _, senders, receivers, __: jnp.tanh(senders @ of_edges),
            update_node_fn=lambda x, _, received, __: jnp.tanh(jnp.concatenate([x, received], 1) @ of_nodes),
            aggregate_edges_for_nodes_fn=jraph.segment_max,
        )
        return (net(data).nodes ** 2).sum()

    return lambda: jax.jit(jax.grad(loss)), (normal(features, features), normal(2 * features, features))


def attention(features=64):
    """One layer of a jraph.GAT, and its gradients."""
    import jraph

    data, normal = graph(features=features)

    def loss(params):
        of_nodes, of_pairs = params
        net = jraph.GAT(
            attention_query_fn=lambda x: x @ of_nodes,
            attention_logit_fn=lambda a, b, _: jax.nn.leaky_relu(jnp.concatenate([a, b], 1) @ of_pairs),
        )
        return (net(data).nodes ** 2).sum()

    return lambda: jax.jit(jax.grad(loss)), (normal(features, features), normal(2 * features, 1))


def particles(count=32_768):
    """The energies of particles by a neighbor list of jax_md, and the forces."""
    from jax_md import energy, partition, space

    side = (count / 1.2) ** (1 / 3)
    displacement, _ = space.periodic(side)
    positions = jnp.asarray(np.random.default_rng(0).uniform(0, side, (count, 3)), jnp.float32)
    neighbors_of, of_particles = energy.soft_sphere_neighbor_list(
        displacement, side, per_particle=True, format=partition.Sparse
    )
    neighbors = neighbors_of.allocate(positions)
    loss = lambda positions: (of_particles(positions, neighbor=neighbors) ** 2).sum()
    return lambda: jax.jit(jax.grad(loss)), positions


def compare(program):
    """(seconds a step as it is, patched, the largest difference over the largest magnitude)"""
    step_of, arguments = program()
    plain = step_of().lower(arguments).compile()
    with baracuda_jax.patch_jax():
        patched = step_of().lower(arguments).compile()
    want, got = (jax.tree.leaves(step(arguments)) for step in (plain, patched))
    off = max(float(jnp.abs(a - b).max() / jnp.abs(b).max()) for a, b in zip(got, want, strict=True))
    times = {plain: [], patched: []}
    for _ in range(ROUNDS):
        for step, seconds in times.items():
            jax.block_until_ready(step(arguments))
            start = time.perf_counter()
            for _ in range(STEPS):
                y = step(arguments)
            jax.block_until_ready(y)
            seconds.append((time.perf_counter() - start) / STEPS)
    return *(statistics.median(seconds) for seconds in times.values()), off


if __name__ == "__main__":
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}")
    for program in (graph_network, attention, particles):
        plain, patched, off = compare(program)
        print(
            f"{program.__doc__.splitlines()[0]:75} {1e3 * plain:8.3f} ms, patched {1e3 * patched:8.3f} ms: "
            f"{plain / patched:.2f}x, results differ by {off:.1e}"
        )
