"""Runs the forward and the backward kernels of benchmarks twice, for a profiler to look at.

    ncu --kernel-name-base demangled -k regex:baracuda python benchmarks/profiled.py segment_sum elu [--size large]

A CUDA graph is one step to a profiler, so XLA is told to launch kernels one by one."""

import argparse
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer="

import jax

from baracuda_jax.bench import programs
from baracuda_jax.bench.cases import benchmarks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="+", metavar="OP")
    parser.add_argument("--size", choices=["small", "large"], default="small")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    for benchmark in benchmarks(options.size):
        if benchmark.op in options.ops and benchmark.dtype == options.dtype:
            native = lambda *arrays, b=benchmark: b.ours(*arrays, prefer="native")
            program = programs.BY_PASS[benchmark.passes[-1]](native, benchmark.moving)
            arrays = jax.jit(benchmark.drawn)(0)
            for _ in range(2):
                jax.block_until_ready(program(*arrays))
            print(benchmark, flush=True)


if __name__ == "__main__":
    main()
