// The packed rows pattern on CPU threads: a range of rows of W is a task. So many weights of a row as the first-level
// cache holds are unpacked at a time, and multiplied with each row of x, in lanes that are added in order.
#pragma once

#include <vector>

#include "packed_rows.h"
#include "unpack_cpu.h"

namespace baracuda {

namespace internal {

inline constexpr int packed_lanes = 16;

template <class Sum>
struct PackedLanes {
  Sum lane[packed_lanes] = {};
};

template <class Sum>
void multiply(const Sum* weights, const Sum* x, int64_t count, PackedLanes<Sum>& total) {
  PackedLanes<Sum> sum = total;
  for (int64_t k = 0; k < count; k += packed_lanes)
    for (int j = 0; j < packed_lanes; ++j) sum.lane[j] += weights[k + j] * x[k + j];
  total = sum;
}

}  // namespace internal

template <class Sum, class Format>
Status packed_rows(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int64_t held = 2048, steps = 1 << 15;
  int64_t columns = work.columns(), count = work.count;
  if (work.batches * work.rows * count == 0) return {};
  std::vector<Sum> x(size_t(work.batches * count * columns));
  constexpr int64_t chunk = 1 << 14;
  int64_t elements = int64_t(x.size());
  parallel_for(executor, ceil_div(elements, chunk), chunk, [&](int64_t task) {
    for (int64_t i = task * chunk; i < std::min(elements, (task + 1) * chunk); ++i)
      x[size_t(i)] = element_at(work.x, work.dtype, i, Sum{});
  });
  float table[16];
  for (int i = 0; i < 16; ++i) table[i] = table_entry<Format>(i);
  int64_t range = std::max<int64_t>(1, steps / (columns * (count + 1) + 1)), ranges = ceil_div(work.rows, range);
  parallel_for(executor, work.batches * ranges, range * columns * (count + 1), [&](int64_t task) {
    int64_t batch = task / ranges, first = task % ranges * range, matrix = work.matrix(batch);
    Sum weights[held];
    std::vector<internal::PackedLanes<Sum>> sums(static_cast<size_t>(count));
    for (int64_t row = first; row < std::min(work.rows, first + range); ++row) {
      for (auto& sum : sums) sum = {};
      constexpr int64_t blocks = held / Format::block;
      for (int64_t block = 0; matrix >= 0 && block < work.blocks; block += blocks) {
        int64_t some = std::min(blocks, work.blocks - block);
        internal::unpack_blocks(work.weights, matrix * work.rows + row, block, some, work.blocks, work.groups, table,
                                weights);
        for (int64_t c = 0; c < count; ++c)
          internal::multiply(weights, x.data() + (batch * count + c) * columns + block * Format::block,
                             some * Format::block, sums[size_t(c)]);
      }
      for (int64_t c = 0; c < count; ++c) {
        Sum total = 0;
        for (Sum lane : sums[size_t(c)].lane) total += lane;
        set_element(work.y, work.dtype, (batch * count + c) * work.rows + row, total);
      }
    }
  });
  return {};
}

// Of x in half precision.
template <class Format>
Status packed_rows_half(const Executor& executor, const PackedRows<Format>& work) {
  return packed_rows<float>(executor, work);
}

}  // namespace baracuda
