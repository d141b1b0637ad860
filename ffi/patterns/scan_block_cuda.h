// A scan of the states of a block's threads.
#pragma once

#include "scan.h"
#include "warp_states_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int scan_block = 256;  // threads, at most

// A block's scan of one total for each thread and each of its K spans; span k of all threads comes before span k + 1.
template <int K, class Functor>
struct ScanBlock {
  using State = typename Functor::State;
  static constexpr int most = K * scan_block / 32, each = (most + 31) / 32;  // of warps' totals, and of those a lane's

  alignas(16) unsigned char memory[2][most * sizeof(State)];  // in turns: some may still read what was written before

  // What comes before each of the thread's spans, given their totals. `prefix` is called by the first warp, with the
  // total of all, and gives what comes before all.
  template <class Prefix>
  __device__ void scan(int turn, State (&spans)[K], const Prefix& prefix) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    State* totals = reinterpret_cast<State*>(memory[turn % 2]);
    scan_each_in_warp<Functor>(spans);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (lane == 31) totals[k * warps + warp] = spans[k];
      spans[k] = state_above(spans[k], 1);
      if (lane == 0) spans[k] = Functor::none();
    }
    __syncthreads();
    if (warp == 0) {
      int count = K * warps;
      State mine[each], sum = Functor::none();
#pragma unroll
      for (int i = 0; i < each; ++i) {
        mine[i] = each * lane + i < count ? totals[each * lane + i] : Functor::none();
        sum = i ? Functor::join(sum, mine[i]) : mine[i];
      }
      State through[1] = {sum};
      scan_each_in_warp<Functor>(through);
      State before = state_above(through[0], 1), all_before = prefix(state_of_lane(through[0], 31));
      before = lane == 0 ? all_before : Functor::join(all_before, before);
#pragma unroll
      for (int i = 0; i < each; ++i) {
        if (each * lane + i < count) totals[each * lane + i] = before;
        if (i + 1 < each) before = Functor::join(before, mine[i]);
      }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < K; ++k) spans[k] = Functor::join(totals[k * warps + warp], spans[k]);
  }
};

// Whether a functor says what neighboring elements come to, instead of joining them.
template <class Functor, int V>
concept HasTotal = requires(Functor f, ScanRow<V> row) { f.total(f.read(row)); };

// What neighboring elements of a row come to.
template <class Functor, class At, class In>
__device__ typename Functor::State total_of(const Functor& functor, const At& at, const In& in) {
  if constexpr (HasTotal<Functor, At::lanes>) {
    return functor.total(in);
  } else {
    auto total = functor.term(at, in, 0);
#pragma unroll
    for (int v = 1; v < At::lanes; ++v) total = Functor::join(total, functor.term(at, in, v));
    return total;
  }
}
// Writes what these elements see, after what comes before them.
template <class Functor, class At, class In, class State = typename Functor::State>
__device__ void write_span(const Functor& functor, const At& at, const In& in, State state, bool exclusive) {
  State seen[At::lanes];
  bool is_done = false;
  if constexpr (requires { functor.walk(in, state, exclusive, seen); })
    is_done = functor.walk(in, state, exclusive, seen);
  if (!is_done) {
#pragma unroll
    for (int v = 0; v < At::lanes; ++v) {
      State after = Functor::join(state, functor.term(at, in, v));
      seen[v] = exclusive ? state : after;
      state = after;
    }
  }
  functor.write(at, in, seen);
}

}  // namespace internal
}  // namespace baracuda
