// What comes before a part of a row, while other blocks form the other parts. Each tells what its part comes to; what
// 32 parts come to, and 32 groups of 32, is told by the last of them. So what is joined, and in which order, depends on
// the parts' numbers alone, and the bits do not depend on which block was first.
#pragma once

#include "executor.h"
#include "warp_states_cuda.h"

namespace baracuda {
namespace internal {

// What is told is in memory as words, each with a mark that it is there: a word and its mark are stored at once, so
// nothing else has to be in order. Blocks begin in the order of their numbers, so what a part waits for has begun.
template <class Functor>
struct LookBack {
  using State = typename Functor::State;
  static constexpr int words = state_words<State>;
  uint64_t* memory;  // zeros: for the parts of each row, then its groups, then groups of these
  int64_t rows, parts;

  static __host__ __device__ int64_t positions_of_row(int64_t parts) { return parts + parts / 32 + parts / 1024 + 3; }
  // Takes its memory, as zeros; false if the workspace has no room for it.
  bool begin(Executor& executor) {
    int64_t size = rows * positions_of_row(parts) * words;
    memory = executor.scratch<uint64_t>(size);
    return memory && cudaMemsetAsync(memory, 0, size_t(size) * sizeof(uint64_t), executor.stream) == cudaSuccess;
  }

  // Called by a warp, with what the part comes to.
  __device__ State before(int64_t row, int64_t part, const State& total) const {
    int lane = threadIdx.x % 32, in_group = int(part % 32), in_large = int(part / 32 % 32);
    int64_t large = part / 1024;
    uint64_t* of_row = memory + row * positions_of_row(parts) * words;
    uint64_t* of_group = of_row + (part - in_group) * words;
    uint64_t* of_large = of_row + (parts + large * 32) * words;
    uint64_t* larges = of_row + (parts + parts / 32 + 1) * words;
    if (lane == 0) tell(of_group + in_group * words, total);
    Awaited a_part{of_group + lane * words, lane < in_group}, a_group{of_large + lane * words, lane < in_large},
        all_before{larges + (large - 1) * words, large > 0};
    bool ends_group = in_group == 31;
    if (ends_group) {
      while (!a_part.is_there()) {
      }
      State sum = Functor::join(sum_of_warp<Functor>(a_part.state()), total);
      if (lane == 0) tell(of_large + in_large * words, sum);
    }
    for (bool all = false; !all;) {
      bool parts_are = a_part.is_there(), groups_are = a_group.is_there(), rest_is = all_before.is_there();
      all = parts_are & groups_are & rest_is;
    }
    State sum = Functor::join(sum_of_warp<Functor>(a_group.state()), sum_of_warp<Functor>(a_part.state()));
    if (large > 0) sum = Functor::join(all_before.state(), sum);
    if (ends_group && in_large == 31 && lane == 0) tell(larges + large * words, Functor::join(sum, total));
    return sum;
  }

 private:
  static constexpr uint64_t mark = uint64_t(1) << 32;

  struct Awaited {
    const uint64_t* from;
    bool is_wanted;
    uint64_t found[words]{};

    // Whether it is there, or not wanted. All words are asked for at once.
    __device__ bool is_there() {
      if (is_wanted)
#pragma unroll
        for (int w = 0; w < words; ++w)
          asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(found[w]) : "l"(from + w) : "memory");
      bool all = true;
#pragma unroll
      for (int w = 0; w < words; ++w) all &= !is_wanted | ((found[w] & mark) != 0);
      return all;
    }
    __device__ State state() const {
      int w = 0;
      State told = moved(State{}, [&](uint32_t) { return uint32_t(found[w++]); });
      return is_wanted ? told : Functor::none();
    }
  };

  __device__ static void tell(uint64_t* to, const State& state) {
    moved(state, [&](uint32_t word) {
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to++), "l"(mark | word) : "memory");
      return word;
    });
  }
};

}  // namespace internal
}  // namespace baracuda
