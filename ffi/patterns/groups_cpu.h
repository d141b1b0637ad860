// The groups pattern on CPU threads: the moments of each row, a group of channels, and then its elements. A short row
// is a task, and stays in the cache. Of a long one the moments of chunks are merged in their order.
#pragma once

#include <algorithm>
#include <memory>

#include "../kernels/group_normalize.h"
#include "rows_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t groups_chunk = 1 << 14;      // elements
inline constexpr int64_t groups_short_row = 1 << 16;  // of which all are in the cache

template <class T, class Wide = Accumulator<T>>
Moments<Wide> moments_of(const T* x, int64_t first, int64_t count) {
  Wide mean = reduce_row(SumOfElements<T, false>{{}, x, 0}, first, count).lane[0] / Wide(count);
  return {Wide(count), mean, reduce_row(SumOfElements<T, true>{{}, x, mean}, first, count).lane[0]};
}

// body(first, count, parameter) for the part of each channel among the elements [begin, end) of a row.
template <class Body>
void each_channel(const GroupShape& shape, int64_t row, int64_t begin, int64_t end, const Body& body) {
  int64_t element = row * shape.columns(), parameter = shape.parameter(row);
  for (int64_t channel = begin / shape.space; begin < end; ++channel) {
    int64_t last = std::min((channel + 1) * shape.space, end);
    body(element + begin, last - begin, parameter + channel);
    begin = last;
  }
}

// The functor is a copy, and the loops such as the compiler vectorizes. The last elements of a channel are written with
// some before them, once more: short channels have no rest that is left to scalar code.
template <class Functor, class... Values>
void write_channel(const Functor functor, int64_t first, int64_t count, const Values... values) {
  constexpr int64_t width = 16, is_long = 512;
  int64_t k = 0;
  if (count >= is_long || count < width) {
    BARACUDA_INDEPENDENT
    for (k = first; k < first + count; ++k) functor.write(k, functor.template read<1>(k), values...);
    return;
  }
  for (; k < count; k += width) {
    int64_t at = first + std::min(k, count - width);
    BARACUDA_INDEPENDENT
    for (int64_t i = at; i < at + width; ++i) functor.write(i, functor.template read<1>(i), values...);
  }
}

template <class Functor>
void normalize_chunk(const Functor& functor, int64_t row, int64_t begin, int64_t end,
                     const RowMoments<typename Functor::Wide>& of) {
  each_channel(functor.shape, row, begin, end, [&](int64_t first, int64_t count, int64_t parameter) {
    write_channel(functor, first, count, of, functor.channel(parameter));
  });
}

// body(row) for the rows of each task.
template <class Body>
void each_short_row(const Executor& executor, int64_t rows, int64_t columns, const Body& body) {
  int64_t range = groups_chunk / columns + 1;
  parallel_for(executor, ceil_div(rows, range), range * columns, [&](int64_t task) {
    for (int64_t row = task * range; row < std::min((task + 1) * range, rows); ++row) body(row);
  });
}

}  // namespace internal

template <class Functor>
Status run_groups(const Executor& executor, const Functor& functor) {
  using Wide = typename Functor::Wide;
  int64_t rows = functor.shape.rows(), columns = functor.shape.columns();
  if (rows * columns == 0) return {};
  if (columns <= internal::groups_short_row) {
    internal::each_short_row(executor, rows, columns, [&](int64_t row) {
      auto of = functor.row(internal::moments_of(functor.x, row * columns, columns));
      functor.finish(row, of);
      internal::normalize_chunk(functor, row, 0, columns, of);
    });
    return {};
  }
  int64_t chunk = internal::groups_chunk, chunks = ceil_div(columns, chunk);
  std::unique_ptr<Moments<Wide>[]> found(new Moments<Wide>[rows * chunks]);
  parallel_for(executor, rows * chunks, chunk, [&](int64_t task) {
    int64_t row = task / chunks, begin = task % chunks * chunk;
    found[task] = internal::moments_of(functor.x, row * columns + begin, std::min(chunk, columns - begin));
  });
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 1; k < chunks; ++k) found[row * chunks].add(found[row * chunks + k]);
    functor.finish(row, functor.row(found[row * chunks]));
  }
  parallel_for(executor, rows * chunks, chunk, [&](int64_t task) {
    int64_t row = task / chunks, begin = task % chunks * chunk;
    auto of = functor.row(found[row * chunks]);
    internal::normalize_chunk(functor, row, begin, std::min(begin + chunk, columns), of);
  });
  return {};
}

}  // namespace baracuda
