// The second pass of the attention pattern on a CUDA grid: it merges the states and sums of a query's chunks of keys.
#pragma once

#include "attention.h"

namespace baracuda {
namespace internal {

inline constexpr int decode_block = 128;

// A block has a query: first a thread the state of a chunk, then of the sums a column. Chunks that the query sees
// nothing of were not written.
template <class Stored, class Wide>
__global__ void __launch_bounds__(decode_block)
    decode_merge(Decode<Stored, Wide> work, int64_t chunks, const SoftmaxState<Wide>* states,
                 const Wide* partial_sums) {
  using State = SoftmaxState<Wide>;
  static_assert(DecodeShape::most_chunks <= decode_block);
  constexpr int warps = decode_block / 32;
  constexpr Wide empty = -1;  // the weight of a chunk whose sums are of nothing
  __shared__ Wide weights[DecodeShape::most_chunks], largest_of[warps], total_of[warps];
  const DecodeShape& shape = work.shape;
  int64_t query = blockIdx.x, chunk = work.chunk();
  KeyRange seen = work.seen(query / shape.heads);
  int first = int(seen.begin / chunk), last = seen.begin < seen.end ? int((seen.end - 1) / chunk) + 1 : first;
  states += query * chunks, partial_sums += query * chunks * shape.values;
  int own = int(threadIdx.x), warp = own / 32;
  State state = own >= first && own < last ? states[own] : State::empty();
  Wide largest = state.largest;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) largest = State::larger(largest, __shfl_xor_sync(~0u, largest, step));
  if (own % 32 == 0) largest_of[warp] = largest;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < warps; ++i) largest = i == 0 ? largest_of[0] : State::larger(largest, largest_of[i]);
  Wide weight = state.is_empty() ? empty : State::weight(state.largest, largest);
  Wide total = state.is_empty() ? Wide(0) : weight * state.total;
  if (own < DecodeShape::most_chunks) weights[own] = weight;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (own % 32 == 0) total_of[warp] = total;
  __syncthreads();
  State whole{largest, 0};
#pragma unroll
  for (int i = 0; i < warps; ++i) whole.total += total_of[i];
  for (int64_t column = own; column < shape.values; column += decode_block) {
    Wide sum = 0;
#pragma unroll 8
    for (int i = first; i < last; ++i) {
      Wide part = partial_sums[i * shape.values + column];
      sum += weights[i] < 0 ? Wide(0) : weights[i] * part;
    }
    work.y[query * shape.values + column] = whole.is_empty() ? Wide(0) : sum / whole.total;
  }
  if (own == 0) work.lse[query] = whole.log_sum_exp();
}

template <class Stored, class Wide>
Status decode_merge_of(const Executor& executor, const Decode<Stored, Wide>& work, const SoftmaxState<Wide>* states,
                       const Wide* sums) {
  const DecodeShape& shape = work.shape;
  decode_merge<<<unsigned(shape.all_sequences() * shape.heads), decode_block, 0, executor.stream>>>(work, work.chunks(),
                                                                                                    states, sums);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
