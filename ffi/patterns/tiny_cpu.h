// The tiny pattern on CPU threads: eight matrices are computed at a time, in the lanes of vectors. Their elements are
// interleaved in memory that stays in a cache. A matrix that is alone has seven others of zeros next to it.
#pragma once

#include <algorithm>
#include <vector>

#include "square_cpu.h"
#include "tiny.h"

namespace baracuda {
namespace internal {

// Moves the elements of up to eight matrices to the lanes of packs.
template <class T>
void load_packs(const T* from, int64_t count, int64_t size, tiny::Pack<T>* packs) {
  constexpr int lanes = tiny::pack_lanes;
  T* to = reinterpret_cast<T*>(packs);
  if (count < lanes) std::fill(to, to + size * lanes, T(0));
  const T* rows[lanes];
  for (int64_t i = 0; i < count; ++i) rows[i] = from + i * size;
  turn(rows, count, 0, size, to, lanes);
}

template <class T>
void load_packs(const int32_t* from, int64_t count, int64_t size, tiny::Pack<T>* packs) {
  constexpr int lanes = tiny::pack_lanes;
  T* to = reinterpret_cast<T*>(packs);
  if (count < lanes) std::fill(to, to + size * lanes, T(0));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < size; ++j) to[j * lanes + i] = T(from[i * size + j]);
}

template <class T, class To>
void store_packs(const tiny::Pack<T>* packs, int64_t count, int64_t size, To* to) {
  const T* from = reinterpret_cast<const T*>(packs);
  constexpr int64_t lanes = tiny::pack_lanes, most = 64;
  if constexpr (std::is_same_v<T, To>) {
    for (int64_t first = 0; first < size; first += most) {
      const T* rows[most];
      int64_t here = std::min(most, size - first);
      for (int64_t i = 0; i < here; ++i) rows[i] = from + (first + i) * lanes;
      turn(rows, here, 0, count, to + first, size);
    }
  } else {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < size; ++j) to[i * size + j] = To(from[j * lanes + i]);
  }
}

}  // namespace internal

// `steps` is about what one matrix costs.
template <class T, class Functor>
Status tiny_matrices(const Executor& executor, const Tiny<T, Functor>& work, int64_t steps) {
  using Pack = tiny::Pack<T>;
  constexpr int64_t lanes = tiny::pack_lanes;
  int64_t packs = ceil_div(work.batches, lanes), slots = 0;
  for (auto& array : work.array) slots += array.size();
  int64_t of_task = std::max<int64_t>(1, (1 << 14) / (lanes * steps));
  for_tiny_size(work.n, [&](auto size) {
    parallel_for(executor, ceil_div(packs, of_task), of_task * lanes * steps, [&](int64_t task) {
      std::vector<Pack> memory(static_cast<size_t>(slots));
      tiny::View<Pack> views[Functor::arrays];
      Pack* at = memory.data();
      for (int i = 0; i < Functor::arrays; ++i) {
        views[i] = {at, work.array[i].columns};
        at += work.array[i].size();
      }
      for (int64_t pack = task * of_task; pack < std::min(packs, (task + 1) * of_task); ++pack) {
        int64_t first = pack * lanes, count = std::min(lanes, work.batches - first);
        for (int i = 0; i < Functor::arrays; ++i) {
          auto& array = work.array[i];
          if (array.from != nullptr)
            internal::load_packs(array.from + first * array.size(), count, array.size(), views[i].data);
          if (array.from_integers != nullptr)
            internal::load_packs<T>(array.from_integers + first * array.size(), count, array.size(), views[i].data);
        }
        constexpr bool is_unrolled = tiny::is_static<decltype(size)>;
        work.functor(tiny::Alone<is_unrolled>{}, size, work.k, views);
        for (int i = 0; i < Functor::arrays; ++i) {
          auto& array = work.array[i];
          int64_t offset = first * array.size();
          if (array.to != nullptr) internal::store_packs<T>(views[i].data, count, array.size(), array.to + offset);
          if (array.integers != nullptr)
            internal::store_packs<T>(views[i].data, count, array.size(), array.integers + offset);
        }
      }
    });
  });
  return {};
}

}  // namespace baracuda
