"""Arrays of more than 2^31 elements, an op for each pattern of data flow: all elements of the result and of the gradients, by the
op's definition on parts of the arrays. On a GPU, which computes these in seconds."""

import jax
import pytest

from baracuda_jax.bench import parts, programs
from baracuda_jax.bench.cases.by_size import SERIES

ELEMENTS = 2**31 + 2**20
BYTES = 24 * ELEMENTS  # operands, cotangent, result and gradients in bfloat16, and what drawing them takes


@pytest.fixture
def device(platform):
    """A GPU with enough memory, and numbers as in a fresh Python, not with the 64 bits of the other tests."""
    if platform == "cpu":
        pytest.skip("takes some 50 GB and long on a CPU")
    found = jax.devices(platform)[0]
    stats = found.memory_stats() or {}
    free = stats.get("bytes_limit", 0) - stats.get("bytes_in_use", 0)
    if free < BYTES:
        pytest.skip(f"takes {BYTES / 1e9:.0f} GB of device memory, of which {free / 1e9:.0f} GB are free")
    with jax.enable_x64(False), jax.default_device(found):
        yield found


@pytest.mark.parametrize("series", SERIES, ids=str)
def test_ops_beyond_2_31_elements(series, device):
    benchmark = series.of(ELEMENTS, "bfloat16")
    arguments = jax.jit(benchmark.drawn)(0)
    number = parts.number_of_parts(ELEMENTS)
    for title in benchmark.passes:
        program_of = lambda fun, title=title: programs.BY_PASS[title](fun, benchmark.moving)
        results = program_of(lambda *arrays: benchmark.function(*arrays, implementation="native"))(*arguments)
        assert max(x.size for x in (*results, *arguments[1:])) == ELEMENTS
        parts.check(parts.program(series, benchmark, program_of, number), number, arguments, results, benchmark.flips)
        del results
