// Which tile of the grouped pattern a block of a CUDA grid has. `Shape` has a tile's rows and columns.
#pragma once

#include "grouped.h"

namespace baracuda {
namespace internal {

// The last group that has at most `tile` tiles before it, found by all lanes of a warp.
__device__ inline int group_of_tile(const int32_t* first, int groups, int tile) {
  int lane = threadIdx.x % 32, begin = 0, count = groups;
  while (count > 1) {
    int range = (count + 31) / 32, at = lane * range;
    bool is_before = at < count && first[begin + at] <= tile;
    int last = __popc(__ballot_sync(~0u, is_before)) - 1;
    begin += last * range;
    count = min(range, count - last * range);
  }
  return begin;
}

// Rows of one group, and columns. After a batch's last tile there are none.
template <class T, class Shape>
struct GroupedRowTile {
  GroupedProducts<T> work;  // of the batch
  int first_column, columns, group = 0, rows = 0;
  const uint32_t* order;

  __device__ GroupedRowTile(const GroupedProducts<T>& all, int tiles, int across)
      : work(all.of(int(blockIdx.x) / across / tiles)), first_column(int(blockIdx.x) % across * Shape::columns) {
    const int tile = int(blockIdx.x) / across % tiles, groups = int(work.by.groups) + 1;
    columns = min(int(work.columns) - first_column, Shape::columns);
    if (tile >= work.first[groups]) return;
    group = group_of_tile(work.first, groups, tile);
    int begin = work.by.edges[group] + (tile - work.first[group]) * Shape::rows;
    rows = min(work.by.edges[group + 1] - begin, Shape::rows);
    order = work.by.order + begin;
  }
  // Where the tile's part of a row of the result begins.
  __device__ T* row(int i) const { return work.y + order[i] * work.columns + first_column; }
};

// Rows and columns of the sums of one group, which has `count` rows.
template <class T, class Shape>
struct GroupedSumTile {
  GroupedSums<T> work;  // of the batch
  int first_row, first_column, rows, columns, group, count;
  const uint32_t* order;

  __device__ GroupedSumTile(const GroupedSums<T>& all, int tiles, int across)
      : work(all.of(int(blockIdx.x) / across / tiles)) {
    const int tile = int(blockIdx.x) / across % tiles, down = tiles / int(work.by.groups);
    first_row = tile % down * Shape::rows, first_column = int(blockIdx.x) % across * Shape::columns;
    rows = min(int(work.left) - first_row, Shape::rows);
    columns = min(int(work.right) - first_column, Shape::columns);
    group = tile / down;
    const int begin = work.by.edges[group];
    count = work.by.edges[group + 1] - begin;
    order = work.by.order + begin;
  }
  __device__ T* row(int i) const { return work.sums + (group * work.left + first_row + i) * work.right + first_column; }
};

}  // namespace internal
}  // namespace baracuda
