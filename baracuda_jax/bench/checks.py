"""What must hold before a time counts: the kernel ran, its results are right, and the same on every run."""

import jax
import jax.numpy as jnp
from jax import lax

from .benchmark import is_code

TOLERANCE = {"float32": 1e-5, "bfloat16": 3e-2}
RUNS = 10


class WrongError(Exception):
    """The kernel was not called, or computes something else than the reference."""


def check(benchmark, program_of, native, inputs):
    """Results and gradients against our reference, the first result also against the plain program in float32; runs with
    each other, bit by bit. `program_of` makes a program of a function, as `native` was made."""
    if "baracuda." not in native.as_text():
        raise WrongError("the native program calls no kernel of ours")
    allowed = TOLERANCE[benchmark.dtype], benchmark.flips
    ours = native(*inputs)
    _compare(ours, program_of(lambda *a: benchmark.ours(*a, prefer="xla"))(*inputs), *allowed)
    if benchmark.plain:
        wide = [x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in inputs[1:]]
        _compare(ours[:1], [jax.jit(benchmark.plain)(*wide)], *allowed)
    for _ in range(RUNS - 1):
        if not all(bool(_same_bits(a, b)) for a, b in zip(native(*inputs), ours, strict=True)):
            raise WrongError("two runs on the same inputs differ")


def _compare(ours, expected, tolerance, flips):
    for i, (a, b) in enumerate(zip(ours, expected, strict=True)):
        allowed = 32 if a.dtype.name.startswith("float8") else 1 if is_code(a) else tolerance
        largest, wrong = map(float, _errors(a, b, allowed))
        if wrong > flips * a.size:
            raise WrongError(f"result {i} is wrong: error {largest:.1e}, allowed {allowed:.0e}, in {wrong:.0f} cells")


@jax.jit
def _errors(ours, expected, allowed):
    """The largest error, relative to the largest finite cell, or in steps where these are codes; and how many are not
    allowed."""
    wide_ours, wide = ours.astype(jnp.float32), expected.astype(jnp.float32)
    # Equal infinities, as of the maximum of no rows, differ by NaN. Other NaNs are errors, which max may not see on a CPU.
    error = jnp.where(wide_ours == wide, 0, jnp.abs(wide_ours - wide))
    error = jnp.where(jnp.isnan(error), jnp.inf, error)
    if not is_code(ours):
        error /= jnp.maximum(1, jnp.max(jnp.where(jnp.isfinite(wide), jnp.abs(wide), 0)))
    return jnp.max(error), jnp.sum(error > allowed)


@jax.jit
def _same_bits(a, b):
    unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[a.dtype.itemsize]
    return jnp.array_equal(lax.bitcast_convert_type(a, unsigned), lax.bitcast_convert_type(b, unsigned))
