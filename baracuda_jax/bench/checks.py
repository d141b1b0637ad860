"""What must hold before a time counts: the kernel ran, its results are right, and the same on every run."""

import functools
import typing
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from .benchmark import is_code
from .programs import results

RUNS = 10


class WrongError(Exception):
    """The kernel was not called, or computes something else than the reference."""


class Expected(typing.NamedTuple):
    """Compiled programs of what a benchmark's results are compared with.

    reference   the op's
    plain       plain JAX's, forward in float32, of (*arrays as they came); None where the benchmark has none
    errors      what `errors` is, by types of results
    """

    reference: Callable
    plain: Callable | None
    errors: Callable


def expected(benchmark, program_of, inputs, reference=None):
    """Compiles them for inputs of these types. `program_of` makes a program of a function, as native's was made; a
    reference that is compiled already can be given."""
    program = program_of(lambda *a: benchmark.function(*a, implementation="xla"))
    types = jax.eval_shape(program, *inputs)
    plain = benchmark.plain and jax.jit(lambda *arrays: results(benchmark.plain(*map(_wide, arrays))))
    return Expected(
        reference or program.lower(*inputs).compile(),
        plain and plain.lower(*inputs[1:]).compile(),
        errors.lower(types, types, tolerance=benchmark.tolerance).compile(),
    )


def _wide(x):
    return x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x


def check(benchmark, expected, native, inputs):
    """Results and gradients against the reference, the results also against the plain program in float32; runs with
    each other, bit by bit."""
    if benchmark.has_native:
        demand_kernel(native)
    computed = native(*inputs)
    refuse_wrong(expected.errors(computed, expected.reference(*inputs)), benchmark.flips)
    if expected.plain:
        wide = expected.plain(*inputs[1:])
        refuse_wrong(errors(computed[: len(wide)], wide, benchmark.tolerance), benchmark.flips)
    if benchmark.differs and len(computed) > 1:
        return
    for _ in range(RUNS - 1):
        if not all(bool(_same_bits(a, b)) for a, b in zip(native(*inputs), computed, strict=True)):
            raise WrongError("two runs on the same inputs differ")


def demand_kernel(native):
    """Refuses a compiled program that calls no kernel of baracuda_jax."""
    if "baracuda." not in native.as_text():
        raise WrongError("the native program calls no kernel of baracuda_jax")


def refuse_wrong(found, flips):
    """`found` is what `errors` returns."""
    for i, (largest, allowed, share) in enumerate([tuple(map(float, of)) for of in found]):
        if share > flips:
            raise WrongError(
                f"result {i} is wrong: error {largest:.1e}, allowed {allowed:.0e}, in {share:.1e} of its elements"
            )


@functools.partial(jax.jit, static_argnames="tolerance")
def errors(computed, expected, tolerance):
    """Of each result, in a program: the largest error, what is allowed, and the fraction of elements where it is more."""
    return [_error(a, b, tolerance) for a, b in zip(computed, expected, strict=True)]


def _error(computed, expected, tolerance):
    """Relative to the largest finite element, or in steps where these are quantized values."""
    if computed.size == 0:
        return jnp.float32(0), jnp.float32(tolerance), jnp.float32(0)
    allowed = 32 if computed.dtype.name.startswith("float8") else 1 if is_code(computed) else tolerance
    wide_computed, wide = (_parts(y).astype(jnp.float32) for y in (computed, expected))
    # Equal infinities, as of the maximum of no rows, differ by NaN. Other NaNs are errors, which max may not see on a CPU.
    error = jnp.where(wide_computed == wide, 0, jnp.abs(wide_computed - wide))
    error = jnp.where(jnp.isnan(error), jnp.inf, error)
    if not is_code(computed):
        error /= jnp.maximum(1, jnp.max(jnp.where(jnp.isfinite(wide), jnp.abs(wide), 0)))
    return jnp.max(error), jnp.float32(allowed), jnp.mean(error > allowed)


def _parts(x):
    """Of complex numbers, the real and the imaginary parts."""
    return jnp.stack([x.real, x.imag]) if jnp.iscomplexobj(x) else x


@jax.jit
def _same_bits(a, b):
    a, b = _parts(a), _parts(b)
    if a.dtype == bool:
        return jnp.array_equal(a, b)
    unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[a.dtype.itemsize]
    return jnp.array_equal(lax.bitcast_convert_type(a, unsigned), lax.bitcast_convert_type(b, unsigned))
