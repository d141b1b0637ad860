"""The inner loops of the CPU's patterns vectorize: what GCC's report says of each, where it is the compiler."""

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
#include "kernels/elementwise/activation.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/clamp.h"
#include "kernels/elementwise/comparison.h"
#include "kernels/elementwise/complex.h"
#include "kernels/elementwise/exponential.h"
#include "kernels/elementwise/gated.h"
#include "kernels/elementwise/power.h"
#include "kernels/elementwise/special.h"
#include "kernels/elementwise/weighted.h"
#include "patterns/elementwise_cpu.h"
#define LOOP(...) template void baracuda::internal::elementwise_loop_of<baracuda::op::__VA_ARGS__>( \\
    const void*, const baracuda::ElementwiseArrays&, int64_t);
#define BOTH(NAME) LOOP(NAME<float>) LOOP(NAME##_backward<float>)
BOTH(leaky_relu) BOTH(elu) BOTH(threshold) BOTH(clamp) LOOP(hardtanh_backward<float>) LOOP(softshrink<float>)
LOOP(hardshrink<float>) LOOP(shrink_backward<float>) BOTH(affine) LOOP(lerp<float, float>)
LOOP(lerp_backward<float, float>) LOOP(prelu<float, float>) LOOP(prelu_backward<float, float>)
LOOP(prelu_backward_weight<float, float>) BOTH(relu) BOTH(relu6) BOTH(gelu) BOTH(gelu_tanh) BOTH(sigmoid) BOTH(silu)
BOTH(mish) BOTH(hardsigmoid) BOTH(hardswish) BOTH(softsign) BOTH(neg) BOTH(square) BOTH(reciprocal) BOTH(sqrt) BOTH(rsqrt)
BOTH(exp) BOTH(exp2) BOTH(expm1) LOOP(log<float>) BOTH(log2) BOTH(log10) BOTH(erf) BOTH(erfc) BOTH(add) BOTH(sub)
BOTH(mul) BOTH(div) BOTH(hypot) BOTH(maximum) BOTH(minimum) LOOP(eq<float>) LOOP(lt<float>) BOTH(glu) BOTH(swiglu) BOTH(geglu)
LOOP(add<uint8_t>) LOOP(mul<uint32_t>)
#define COMPLEX(NAME) LOOP(complex::NAME<baracuda::Complex<float>>) LOOP(complex::NAME##_backward<baracuda::Complex<float>>)
COMPLEX(neg) COMPLEX(square) COMPLEX(reciprocal) COMPLEX(add) COMPLEX(mul) COMPLEX(div) LOOP(complex::eq<baracuda::Complex<float>>)
""",
    "blockwise": """
#include "kernels/quantize.h"
#include "patterns/rows_cpu.h"
template <class Functor>
void loop(const Functor& functor, int64_t first, int64_t count, int64_t block) {
  baracuda::internal::write_elements(functor, first, count, functor.template block<1>(block));
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
    "reduce": """
#include "kernels/reduce/backward.h"
#include "patterns/reduce_cpu.h"
template <class Broadcaster, class T>
void loops(const Broadcaster& broadcaster, const typename Broadcaster::Part& part, const T* x, T* dx, int64_t count) {
  baracuda::internal::broadcast_row(broadcaster, part, x, dx, count);
  baracuda::internal::broadcast_columns(broadcaster, count, x, dx, count);
}
#define LOOP(T, ...) \\
  template void loops(const baracuda::__VA_ARGS__&, const baracuda::__VA_ARGS__::Part&, const T*, T*, int64_t);
#define LOOPS(T) \\
  LOOP(T, BroadcastSum<T>) LOOP(T, BroadcastExtremum<T>) LOOP(T, BroadcastProd<T>) LOOP(T, BroadcastLogSumExp<T>) \\
  LOOP(T, BroadcastNorm<T>) LOOP(T, BroadcastVariance<T>)
LOOPS(float) LOOPS(baracuda::Half) LOOPS(baracuda::BFloat16)
""",
}
MORE = {"elementwise": "-fno-thread-jumps", "reduce": "-fno-thread-jumps"}


def _loops(pattern):
    """The lines of the loops that are marked as having no dependences."""
    lines = (PATTERNS / f"{pattern}_cpu.h").read_text().splitlines()
    return {number + 1 for number, line in enumerate(lines, 1) if line.strip() == "BARACUDA_INDEPENDENT"}


@pytest.mark.skipif(not shutil.which("g++") or platform.machine() != "x86_64", reason="the report is of GCC on x86-64")
@pytest.mark.parametrize("pattern", FUNCTORS)
def test_inner_loops_vectorize(tmp_path, pattern):
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
