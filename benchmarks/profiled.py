"""Runs the forward and the backward kernels of benchmarks twice, for a profiler or a sanitizer to look at.

    ncu --kernel-name-base demangled -k regex:baracuda python benchmarks/profiled.py segment_sum elu --dtype float32
    taskset -c 0 compute-sanitizer --tool memcheck --kernel-name kernel_substring=baracuda \\
        python benchmarks/profiled.py --size tiny --part 0 14

A CUDA graph is one step to a profiler, so XLA is told to launch kernels one by one. Where XLA compiles on several threads,
compute-sanitizer may crash: hence the one core. Starts on other cores take the other parts of the benchmarks."""

import argparse
import os

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_gpu_enable_command_buffer= --xla_gpu_force_compilation_parallelism=1"
)

import jax

from baracuda_jax.bench import programs
from baracuda_jax.bench.cases import benchmarks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ops", nargs="*", metavar="OP", help="by default all")
    parser.add_argument("--size", choices=["tiny", "small", "large"], default="small")
    parser.add_argument("--dtype", help="by default all")
    parser.add_argument("--part", nargs=2, type=int, default=(0, 1), metavar=("I", "N"), help="every N-th, from I on")
    options = parser.parse_args()
    chosen = [
        benchmark
        for benchmark in benchmarks(options.size)
        if benchmark.op in (options.ops or [benchmark.op]) and benchmark.dtype == (options.dtype or benchmark.dtype)
    ]
    for benchmark in chosen[options.part[0] :: options.part[1]]:
        how = "native" if benchmark.has_native else None
        native = lambda *arrays, b=benchmark, how=how: b.function(*arrays, implementation=how)
        program = programs.BY_PASS[benchmark.passes[-1]](native, benchmark.moving)
        arrays = jax.jit(benchmark.drawn)(0)
        for _ in range(2):
            jax.block_until_ready(program(*arrays))
        print(benchmark, flush=True)


if __name__ == "__main__":
    main()
