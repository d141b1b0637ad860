"""Times the sum of segments whose rows are sharded over all devices, compared with what XLA makes of jax.ops.segment_sum.

    python benchmarks/sharded.py [--rows N]

Prints the collectives of both compiled programs, their largest difference, and medians of the time of a call: on GPUs among
calls that are enqueued back to back, on CPU of one that is waited for, since several at once may there wait for each other's
threads."""

import argparse
import re
import statistics

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import baracuda_jax
from baracuda_jax.bench.times import Program

COLUMNS, ROWS_PER_SEGMENT, REPEATS = 64, 16, 9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2**22)
    rows = parser.parse_args().rows
    segments = rows // ROWS_PER_SEGMENT
    mesh = jax.make_mesh((jax.device_count(),), ("d",), axis_types=(AxisType.Auto,))
    rng = np.random.default_rng(0)
    put = lambda x: jax.device_put(x, NamedSharding(mesh, P("d")))
    data, ids = put(rng.standard_normal((rows, COLUMNS), np.float32)), put(rng.integers(0, segments, rows, np.int32))
    programs = {
        "baracuda_jax": lambda data, ids: baracuda_jax.segment_sum(data, ids, segments, implementation="native"),
        "XLA": lambda data, ids: jax.ops.segment_sum(data, ids, segments),
    }
    compiled = {name: jax.jit(fun).lower(data, ids).compile() for name, fun in programs.items()}
    results = [program(data, ids) for program in compiled.values()]
    print(
        f"{jax.device_count()} x {jax.devices()[0].device_kind}, jax {jax.__version__}, [{rows}, {COLUMNS}] into {segments}"
    )
    print(f"largest difference {float(jnp.max(jnp.abs(results[0] - results[1]))):.1e}")
    calls = 1 if jax.default_backend() == "cpu" else 50
    for name, program in compiled.items():
        found = re.findall(r" (all-\w+|collective-\w+|reduce-scatter)(?:-start)?\(", program.as_text())
        timed = Program(lambda i, program=program: program(data, ids))
        timed.seconds(calls)
        milliseconds = 1e3 * statistics.median(timed.seconds(calls) for _ in range(REPEATS))
        print(f"{name:5} {milliseconds:8.3f} ms  {', '.join(found) or 'no collective'}")


if __name__ == "__main__":
    main()
