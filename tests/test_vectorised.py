"""The inner loops of the CPU's patterns vectorise: what GCC's report says of each, where it is the compiler."""

import pathlib
import platform
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PATTERNS = ROOT / "ffi/patterns"
FLAGS = "-O3 -fno-math-errno -fno-trapping-math --param=max-completely-peel-times=3 --param=max-unswitch-insns=200"
FUNCTORS = {
    "elementwise": """
#include "kernels/elementwise.h"
#include "patterns/elementwise_cpu.h"
template <class Functor>
void loop(const baracuda::Elementwise<Functor>& work, int64_t count) {
  constexpr int operands = baracuda::Elementwise<Functor>::operands;
  baracuda::internal::elementwise_loop(work, count, std::make_integer_sequence<int, operands>());
}
#define LOOP(...) template void loop(const baracuda::Elementwise<baracuda::__VA_ARGS__>&, int64_t);
#define LOOPS(T) \\
  LOOP(LeakyRelu<T>) LOOP(LeakyReluBackward<T>) LOOP(Elu<T>) LOOP(EluBackward<T>) LOOP(Threshold<T>) \\
  LOOP(ThresholdBackward<T>) LOOP(Clamp<T>) LOOP(ClampBackward<T>) LOOP(HardtanhBackward<T>) LOOP(Softshrink<T>) \\
  LOOP(Hardshrink<T>) LOOP(ShrinkBackward<T>) LOOP(Affine<T>) LOOP(AffineBackward<T>) LOOP(Lerp<T, float>) \\
  LOOP(LerpBackward<T, float>) LOOP(Prelu<T, T>) LOOP(PreluBackward<T, T>) LOOP(PreluBackwardWeight<T, float>)
LOOPS(float) LOOPS(baracuda::Half) LOOPS(baracuda::BFloat16)
""",
    "blocks": """
#include "kernels/quantize.h"
#include "patterns/rows_cpu.h"
template <class Functor>
void loop(const Functor& functor, int64_t first, int64_t count, int64_t block) {
  baracuda::internal::write_cells(functor, first, count, functor.template block<1>(block));
}
template <class Functor>
void columns(const Functor& functor, int64_t first, int64_t count, int64_t block) {
  baracuda::internal::write_columns(functor, first, count, block);
}
#define LOOP(...) \\
  template void loop(const baracuda::__VA_ARGS__&, int64_t, int64_t, int64_t); \\
  template void columns(const baracuda::__VA_ARGS__&, int64_t, int64_t, int64_t);
#define LOOPS(T) \\
  LOOP(Quantize<T, int8_t>) LOOP(Quantize<T, uint8_t>) LOOP(Quantize<T, baracuda::Integer4<true>>) \\
  LOOP(Quantize<T, baracuda::Float8E4M3>) LOOP(Dequantize<T, int8_t>) LOOP(Dequantize<T, baracuda::Integer4<true>>) \\
  LOOP(Dequantize<T, baracuda::Float8E4M3>) LOOP(FakeQuantize<T>) LOOP(QuantizeBackward<T, false>) \\
  LOOP(QuantizeBackward<T, true>)
LOOPS(float) LOOPS(baracuda::Half) LOOPS(baracuda::BFloat16)
""",
}
MORE = {"elementwise": "-fno-thread-jumps"}


def _loops(pattern):
    """The lines of the loops that are marked as having no dependences."""
    lines = (PATTERNS / f"{pattern}_cpu.h").read_text().splitlines()
    return {number + 1 for number, line in enumerate(lines, 1) if line.startswith("#pragma GCC ivdep")}


@pytest.mark.skipif(not shutil.which("g++") or platform.machine() != "x86_64", reason="the report is of GCC on x86-64")
@pytest.mark.parametrize("pattern", FUNCTORS)
def test_inner_loops_vectorise(tmp_path, pattern):
    source, flags = tmp_path / "loops.cc", f"{FLAGS} {MORE.get(pattern, '')}".split()
    assert all(flag in (ROOT / "CMakeLists.txt").read_text() for flag in flags)
    source.write_text(FUNCTORS[pattern])
    report = subprocess.run(
        ["g++", "-std=c++20", "-w", "-march=x86-64-v3", *flags, "-fopt-info-vec-optimized-missed", f"-I{ROOT}/ffi", "-c", source,
         "-o", tmp_path / "loops.o"],
        check=True, capture_output=True, text=True,
    ).stderr  # fmt: skip
    said = lambda words: {
        int(line) for line in re.findall(rf"{pattern}_cpu\.h:(\d+):\d+: {words}", report)
    } & _loops(pattern)  # fmt: skip
    assert said("optimized: loop vectorized") == _loops(pattern)
    assert not said("missed: couldn't vectorize loop")
