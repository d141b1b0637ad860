"""JAX's persistent compilation cache holds programs with kernels: a second process compiles none of them again."""

import os
import subprocess
import sys

from sampling import due, kind

from baracuda_jax._core.op import OPS

RUN = """
import collections, sys
import jax
import numpy as np
import baracuda_jax
from baracuda_jax._core.op import OPS

counts = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: counts.update([event.rpartition("/")[2]]))
for op in map(OPS.__getitem__, sys.argv[1:]):
    dtype = next((dtype for dtype in ("float32", "int32") if dtype in op.dtypes), op.dtypes[0])
    args = op.cases[0].arguments(np.random.default_rng(0), dtype)

    def program(*args):
        implementation = "native" if op.has_kernels else None
        call = lambda *args: jax.tree.leaves(op.public(*args, **op.cases[0].kwargs, implementation=implementation))[0]
        if not op.differentiable or op.quantized:
            return call(*args)
        cotangents = jax.tree.leaves(jax.vjp(call, *args)[1](call(*args)))
        return [ct for ct in cotangents if ct.dtype != jax.dtypes.float0]

    jax.jit(program)(*args)
print(counts["cache_hits"], counts["cache_misses"])
"""


def test_a_second_process_finds_the_programs_of_the_first(tmp_path, pytestconfig):
    names = [op.name for op in due(OPS.values(), kind, pytestconfig.option.sample, 0)]
    options = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    counts = []
    for _ in range(2):
        command = [sys.executable, "-c", RUN, *names]
        done = subprocess.run(command, env=os.environ | options, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        counts.append(tuple(map(int, done.stdout.split())))
    (hits, misses), again = counts
    assert misses >= len(names) - hits and misses > len(names) / 2
    assert again == (hits + misses, 0)
