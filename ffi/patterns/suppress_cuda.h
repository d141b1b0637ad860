// The suppress pattern on a CUDA grid. Elements are in tiles of 64, in order. First all blocks find which pairs of
// elements suppress each other (suppress_words_cuda.h), then a block for each batch decides tile after tile
// (suppress_walk_cuda.h).
#pragma once

#include <algorithm>

#include "suppress_walk_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t suppress_shared = 24 << 10;  // bytes at most for what is removed of a batch
inline constexpr int64_t suppress_most_blocks = 65535;

template <class T>
Status write_suppress_words(Executor executor, const Suppression<T>& work, const SuppressTiles& tiles) {
  auto kernel = work.classes.are_many() ? suppress_words<T, true> : suppress_words<T, false>;
  for (int64_t first = 0; first < work.batches; first += suppress_most_blocks) {
    Suppression<T> some = work;
    SuppressTiles of_some = tiles;
    some.batches = std::min(suppress_most_blocks, work.batches - first);
    some.boxes += first * work.count * 4, some.order += first * work.count;
    if (some.classes.narrow != nullptr) some.classes.narrow += first * work.count;
    if (some.classes.wide != nullptr) some.classes.wide += first * work.count;
    of_some.band += first * tiles.tiles * tiles.band_words();
    if (tiles.rows != nullptr) of_some.rows += first * tiles.tiles * tiles.row_words();
    SuppressPairs pairs(tiles);
    dim3 blocks(unsigned(pairs.columns()), unsigned(pairs.rows()), unsigned(some.batches));
    Status status = launch_early(executor, kernel, blocks, SuppressPairs::threads, 0, some, of_some);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace internal

template <class T>
Status suppress(Executor executor, const Suppression<T>& work) {
  using namespace internal;
  int64_t count = ceil_div(work.count, suppress_tile);
  SuppressTiles tiles{count, ceil_div(count, suppress_group) * suppress_group, nullptr, nullptr, nullptr};
  int64_t all = work.batches * count, bytes = count * int64_t(sizeof(uint64_t));
  bool is_shared = bytes <= suppress_shared, is_long = count > suppress_band;
  if (count > 0) tiles.band = executor.scratch<uint64_t>(all * tiles.band_words());
  if (is_long) tiles.rows = executor.scratch<uint64_t>(all * tiles.row_words());
  if (!is_shared) tiles.removed = executor.scratch<uint64_t>(all);
  if ((count > 0 && tiles.band == nullptr) || (is_long && tiles.rows == nullptr) ||
      (!is_shared && tiles.removed == nullptr))
    return small_workspace;
  if (count > 0)
    if (Status status = write_suppress_words(executor, work, tiles); !status.ok()) return status;
  // Of many batches, several blocks are on a multiprocessor.
  auto walk = [&](auto warps) {
    constexpr int of_team = decltype(warps)::value;
    auto kernel = is_shared ? suppress_walk<of_team, true> : suppress_walk<of_team, false>;
    return launch_early(executor, kernel, dim3(unsigned(work.batches)), SuppressWalk<of_team>::threads,
                        is_shared ? size_t(bytes) : 0, work.order, work.indices, work.kept, work.count, work.size,
                        tiles);
  };
  if (work.batches <= 264) return walk(std::integral_constant<int, 4>());
  return walk(std::integral_constant<int, 1>());
}

}  // namespace baracuda
