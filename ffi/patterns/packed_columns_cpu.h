// The packed columns pattern on CPU threads: some neighboring words of all rows of W are a task, so that what a row has
// of them is a line of memory. Each row is unpacked once, and multiplied with an element of each row of x.
#pragma once

#include <vector>

#include "executor.h"
#include "packed_columns.h"

namespace baracuda {

template <class Sum>
Status packed_columns(const Executor& executor, const PackedColumns& work) {
  using namespace packed;
  constexpr int held = 16, lanes = held * word_columns;  // words, and their columns
  int64_t tasks = ceil_div(work.words, held), depth = work.depth, count = work.count, columns = work.columns();
  if (work.batches * tasks * count == 0) return {};
  parallel_for(executor, work.batches * tasks, depth * lanes * (count + 2), [&](int64_t task) {
    int64_t batch = task / tasks, first = task % tasks * held, group_depth = work.group_depth();
    int some = int(std::min<int64_t>(held, work.words - first));
    std::vector<Sum> sums(size_t(count) * lanes);
    Sum factor[lanes] = {}, weight[lanes] = {};
    int minus[lanes] = {};
    for (int64_t k = 0; k < depth; ++k) {
      if (k % group_depth == 0) {
        int64_t group = k / group_depth;
        const uint32_t* zero = work.zero + (batch * work.groups + group) * work.words + first;
        for (int j = 0; j < some * word_columns; ++j) {
          factor[j] = work.factor(batch, group, first * word_columns + j);
          minus[j] = awq_field(zero[j / word_columns], j % word_columns);
        }
      }
      const uint32_t* row = work.data + (batch * depth + k) * work.words + first;
      for (int w = 0; w < some; ++w)
        for (int j = 0; j < word_columns; ++j) {
          int at = w * word_columns + j;
          weight[at] = Sum(float(awq_field(row[w], j) - minus[at]) * float(factor[at]));
        }
      for (int64_t m = 0; m < count; ++m) {
        Sum x = element_at(work.x, work.dtype, (batch * count + m) * depth + k, Sum{});
        Sum* sum = sums.data() + m * lanes;
        for (int j = 0; j < lanes; ++j) sum[j] += weight[j] * x;
      }
    }
    for (int64_t m = 0; m < count; ++m)
      for (int j = 0; j < some * word_columns; ++j)
        set_element(work.y, work.dtype, (batch * count + m) * columns + first * word_columns + j,
                    sums[size_t(m) * lanes + j]);
  });
  return {};
}

// Of x in half precision.
inline Status packed_columns_half(const Executor& executor, const PackedColumns& work) {
  return packed_columns<float>(executor, work);
}

// W as floats. A chunk of 32 rows, all of one group, is a task.
template <class T>
Status unpack_columns(const Executor& executor, const PackedColumns& work, T* y) {
  using namespace packed;
  constexpr int chunk = 32;
  int64_t chunks = work.depth / chunk, columns = work.columns();
  parallel_for(executor, work.batches * chunks, chunk * columns, [&](int64_t task) {
    int64_t batch = task / chunks, first = task % chunks * chunk, group = first / work.group_depth();
    const uint32_t* zero = work.zero + (batch * work.groups + group) * work.words;
    for (int64_t w = 0; w < work.words; ++w) {
      float factor[word_columns];
      for (int j = 0; j < word_columns; ++j) factor[j] = work.factor(batch, group, w * word_columns + j);
      for (int64_t k = batch * work.depth + first; k < batch * work.depth + first + chunk; ++k)
        for (int j = 0; j < word_columns; ++j)
          y[k * columns + w * word_columns + j] =
              T(float(awq_field(work.data[k * work.words + w], j) - awq_field(zero[w], j)) * factor[j]);
    }
  });
  return {};
}

}  // namespace baracuda
