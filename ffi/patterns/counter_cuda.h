// The counter pattern on a CUDA grid: a thread has a few chunks of 16 bytes of the result, far apart. Each is one block
// of a stream, or two where a row begins inside a block; where rows end inside chunks, elements are computed one by
// one.
#pragma once

#include "../kernels/philox.h"
#include "divisor.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int counter_block = 256, counter_step = 4;

// Rows of whole chunks.
template <class T, class Index>
__global__ void __launch_bounds__(counter_block)
    fill_chunks(PhiloxRows<T> rows, Divisor<Index> of_row, int64_t chunks) {
  int64_t first = int64_t(blockIdx.x) * counter_block * counter_step + threadIdx.x;
#pragma unroll
  for (int i = 0; i < counter_step; ++i) {
    int64_t chunk = first + i * counter_block;
    if (chunk >= chunks) return;
    Index row = of_row.quotient(Index(chunk));
    int64_t position = chunk - int64_t(row) * of_row.value;
    PhiloxWords found = rows.stream(row).bytes(16 * uint64_t(position));
    reinterpret_cast<uint4*>(rows.y)[chunk] = {found.word[0], found.word[1], found.word[2], found.word[3]};
  }
}

// Rows of any length.
template <class T, class Index>
__global__ void __launch_bounds__(counter_block)
    fill_elements(PhiloxRows<T> rows, Divisor<Index> length, int64_t elements) {
  constexpr int vector = 16 / sizeof(T);
  int64_t chunk = int64_t(blockIdx.x) * counter_block + threadIdx.x, first = chunk * vector;
  if (first >= elements) return;
  int64_t row = length.quotient(Index(first)), position = first - row * length.value;
  if (position + vector <= length.value) {
    PhiloxWords found = rows.stream(row).bytes(uint64_t(position) * sizeof(T));
    reinterpret_cast<uint4*>(rows.y)[chunk] = {found.word[0], found.word[1], found.word[2], found.word[3]};
    return;
  }
#pragma unroll 1
  for (int64_t i = first; i < first + vector && i < elements; ++i, ++position) {
    if (position == length.value) ++row, position = 0;
    rows.y[i] = rows.stream(row).template element<T>(uint64_t(position) * sizeof(T));
  }
}

}  // namespace internal

template <class T>
Status fill_rows(const Executor& executor, const PhiloxRows<T>& rows) {
  constexpr int64_t vector = 16 / sizeof(T);
  int64_t elements = rows.rows * rows.length, chunks = ceil_div(elements, vector);
  if (elements == 0) return {};
  bool whole = rows.length % vector == 0;
  auto launch = [&](auto type) {
    using Index = decltype(type);
    if (whole) {
      unsigned blocks = unsigned(ceil_div(chunks, internal::counter_block * internal::counter_step));
      internal::fill_chunks<<<blocks, internal::counter_block, 0, executor.stream>>>(
          rows, Divisor<Index>(rows.length / vector), chunks);
    } else {
      unsigned blocks = unsigned(ceil_div(chunks, internal::counter_block));
      internal::fill_elements<<<blocks, internal::counter_block, 0, executor.stream>>>(
          rows, Divisor<Index>(rows.length), elements);
    }
    return launched();
  };
  return (whole ? chunks : elements) < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
