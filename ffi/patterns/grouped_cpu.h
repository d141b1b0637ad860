// The grouped pattern on CPU threads: blocks of sums, to which rows are added in order.
#pragma once

#include <algorithm>
#include <vector>

#include "grouped.h"
#include "vectorize_cpu.h"

namespace baracuda {

// A task has a tile of rows and 64 columns, of which the matrix is widened once.
template <class T>
Status grouped_products(const Executor& executor, const GroupedProducts<T>& all) {
  using Wide = Accumulator<T>;
  constexpr int64_t width = 64, together = 4;
  const int64_t across = ceil_div(all.columns, width), tiles = all.tiles();
  parallel_for(executor, all.by.batches * tiles * across, all.tile * width * all.inner / 8, [&](int64_t task) {
    const GroupedProducts<T> work = all.of(task / across / tiles);
    const GroupedRows& by = work.by;
    const int64_t tile = task / across % tiles, column = task % across * width;
    if (tile >= work.first[by.groups + 1]) return;
    const int64_t columns = std::min(width, work.columns - column);
    const int64_t group = std::upper_bound(work.first, work.first + by.groups + 1, int32_t(tile)) - work.first - 1;
    const int64_t begin = by.edges[group] + (tile - work.first[group]) * work.tile;
    const int64_t end = std::min<int64_t>(begin + work.tile, by.edges[group + 1]);
    if (group == by.groups) {
      for (int64_t i = begin; i < end; ++i)
        std::fill_n(work.y + by.order[i] * work.columns + column, columns, T(Wide(0)));
      return;
    }
    std::vector<Wide> panel(size_t(work.inner * width));
    const T* b = work.b + group * work.inner * work.columns;
    for (int64_t k = 0; k < work.inner; ++k)
      for (int64_t j = 0; j < columns; ++j)
        panel[size_t(k * width + j)] =
            Wide(work.transposed ? b[(column + j) * work.inner + k] : b[k * work.columns + column + j]);
    for (int64_t i = begin; i < end; i += together) {
      Wide sum[together][width] = {};
      const T* row[together];
      for (int64_t r = 0; r < together; ++r) row[r] = work.a + by.order[std::min(i + r, end - 1)] * work.inner;
      for (int64_t k = 0; k < work.inner; ++k) {
        const Wide* from = panel.data() + k * width;
        for (int64_t r = 0; r < together; ++r) {
          const Wide a = Wide(row[r][k]);
          BARACUDA_INDEPENDENT
          for (int64_t j = 0; j < width; ++j) sum[r][j] += a * from[j];
        }
      }
      for (int64_t r = 0; r < std::min(together, end - i); ++r) {
        T* to = work.y + by.order[i + r] * work.columns + column;
        for (int64_t j = 0; j < columns; ++j) to[j] = T(sum[r][j]);
      }
    }
  });
  return {};
}

// A task has 8 rows of a group's sums and 64 columns.
template <class T>
Status grouped_sums(const Executor& executor, const GroupedSums<T>& all) {
  using Wide = Accumulator<T>;
  constexpr int64_t width = 64, together = 8;
  const int64_t groups = all.by.groups, across = ceil_div(all.right, width), down = ceil_div(all.left, together);
  const int64_t cost = ceil_div(all.by.rows, std::max<int64_t>(groups, 1)) * width + width;
  parallel_for(executor, all.by.batches * groups * down * across, cost, [&](int64_t task) {
    const int64_t column = task % across * width, first = task / across % down * together;
    const GroupedSums<T> work = all.of(task / across / down / groups);
    const GroupedRows& by = work.by;
    const int64_t group = task / across / down % groups;
    const int64_t columns = std::min(width, work.right - column), rows = std::min(together, work.left - first);
    Wide sum[together][width] = {}, from[width] = {}, a[together] = {};
    for (int64_t i = by.edges[group]; i < by.edges[group + 1]; ++i) {
      const T *left = work.a + by.order[i] * work.left + first, *right = work.b + by.order[i] * work.right + column;
      for (int64_t j = 0; j < columns; ++j) from[j] = Wide(right[j]);
      for (int64_t r = 0; r < rows; ++r) a[r] = Wide(left[r]);
      for (int64_t r = 0; r < together; ++r) {
        BARACUDA_INDEPENDENT
        for (int64_t j = 0; j < width; ++j) sum[r][j] += a[r] * from[j];
      }
    }
    T* to = work.sums + (group * work.left + first) * work.right + column;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < columns; ++j) to[r * work.right + j] = T(sum[r][j]);
  });
  return {};
}

}  // namespace baracuda
