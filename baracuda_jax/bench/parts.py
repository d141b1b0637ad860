"""Whether all elements of large results are right: part by part, since the reference of a part needs little memory, and has
no offsets of more than 32 bits itself."""

import jax
from jax import lax

from .checks import errors, refuse_wrong

PART = 2**28  # elements


def number_of_parts(elements):
    """A power of two, so that it divides the axes."""
    return 1 << max(0, (elements // PART).bit_length() - 1)


def program(series, benchmark, program_of, parts):
    """(part, arguments, native's results) -> errors. `program_of` makes a program of a function, as native's was made."""
    reference = program_of(lambda *arrays: benchmark.function(*arrays, implementation="xla"))
    argument_axes = series.result_axis, *series.operand_axes
    result_axes = series.result_axis, *series.operand_axes[: benchmark.moving]

    def compare(part, arguments, results):
        axes = result_axes[: len(results)]
        lengths = [x.shape[axis] for x, axis in zip((*results, *arguments), (*axes, *argument_axes), strict=True)
                   if x is not None and axis is not None]  # fmt: skip

        def cut(arrays, axes):
            return [
                x if x is None or axis is None else _part(x, axis, min(lengths), part, parts)
                for x, axis in zip(arrays, axes, strict=True)
            ]

        return errors(cut(results, axes), reference(*cut(arguments, argument_axes)), benchmark.tolerance)

    return jax.jit(compare)


def _part(x, axis, length, part, parts):
    """Where x is longer than `length` along the axis, it has copies one after the other of what is cut, as repeat's
    result."""
    apart = x.reshape(*x.shape[:axis], -1, length, *x.shape[axis + 1 :])
    some = lax.dynamic_slice_in_dim(apart, part * (length // parts), length // parts, axis + 1)
    return some.reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])


def check(compiled, parts, arguments, results, flips):
    """Raises WrongError. `compiled` is of `program`."""
    for part in range(parts):
        refuse_wrong(compiled(part, arguments, results), flips)
