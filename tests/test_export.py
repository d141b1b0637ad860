"""An op of each kind is exported, forward and gradient, for cpu and cuda, alone and for any batch size, and run by a process that knows
nothing of where it came from."""

import pickle
import subprocess
import sys

import jax
import numpy as np
from examples_of import Example, has_derivative, stacked
from laws.export import stored
from sampling import due, kind

from baracuda_jax._core.op import OPS

RUN = """
import pickle, sys
import jax
import numpy as np
import baracuda_jax

jax.config.update("jax_enable_x64", True)
with open(sys.argv[1], "rb") as file:
    programs = pickle.load(file)
for name, (program, args, want, is_fused) in programs.items():
    for got, y in zip(jax.export.deserialize(program).call(*args), want, strict=True):
        same = np.asarray(got).tobytes() == y.tobytes()  # XLA fuses plain JAX in one program otherwise than in another
        assert same or (is_fused and np.allclose(*(np.asarray(a, np.complex128) for a in (got, y)), 0.05, 0.01)), name
print(len(programs))
"""


def test_exported_programs_run_in_a_fresh_process(tmp_path, pytestconfig):
    programs = {}
    (b,) = jax.export.symbolic_shape("b")
    for i, op in enumerate(due(OPS.values(), kind, pytestconfig.option.sample, 0)):
        e = Example(op, op.cases[i % len(op.cases)], op.dtypes[i % min(4, len(op.dtypes))])

        def both(x):
            return e.fun(x), *([jax.grad(e.loss)(x)] if has_derivative(op) else [])

        xs = stacked([e.x] * 2)
        calls = [(both, e.x, e.x.shape), (jax.vmap(both), xs, (b, *e.x.shape))]
        for fun, x, shape in calls[: 1 if op.library == "cudnn" else 2]:  # JAX has none by a symbolic number of weights
            want = [np.asarray(y) for y in jax.jit(fun)(x)]
            programs[f"{e} {shape}"] = (
                stored(fun, jax.ShapeDtypeStruct(shape, x.dtype)),
                [np.asarray(x)],
                want,
                e.is_fused,
            )
    file = tmp_path / "programs"
    file.write_bytes(pickle.dumps(programs))
    done = subprocess.run([sys.executable, "-c", RUN, file], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == f"{len(programs)}\n", done.stderr
