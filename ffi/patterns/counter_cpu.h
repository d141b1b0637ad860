// The counter pattern on CPU threads: blocks of a stream are computed in lanes of vectors, and copied to where the row
// is.
#pragma once

#include <algorithm>

#include "../kernels/philox.h"
#include "executor.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t philox_lanes = 32;

// So many blocks from one on, `words` having room for philox_lanes.
inline void philox_blocks(const PhiloxStream& stream, uint64_t first, int64_t count, uint32_t* words) {
  constexpr int64_t few = 4;
  if (count <= few) {
    for (int64_t i = 0; i < count; ++i) {
      PhiloxWords found = stream.block(first + uint64_t(i));
      memcpy(words + 4 * i, found.word, sizeof(found.word));
    }
    return;
  }
  uint32_t a[philox_lanes], b[philox_lanes], c[philox_lanes], d[philox_lanes];
  for (int64_t i = 0; i < philox_lanes; ++i) {
    uint64_t index = first + uint64_t(i);
    a[i] = uint32_t(index), b[i] = uint32_t(index >> 32), c[i] = stream.upper0, d[i] = stream.upper1;
  }
  for (int round = 0; round < philox_rounds; ++round) {
    uint32_t key0 = philox_key0(stream.key0, round), key1 = philox_key1(stream.key1, round);
    for (int64_t i = 0; i < philox_lanes; ++i) philox_round(a[i], b[i], c[i], d[i], key0, key1);
  }
  for (int64_t i = 0; i < philox_lanes; ++i)
    words[4 * i] = a[i], words[4 * i + 1] = b[i], words[4 * i + 2] = c[i], words[4 * i + 3] = d[i];
}

// Bytes [first, first + count) of a row.
inline void philox_bytes(const PhiloxStream& stream, int64_t first, int64_t count, char* to) {
  uint32_t words[4 * philox_lanes];
  uint64_t at = stream.start + uint64_t(first);
  while (count > 0) {
    int64_t skipped = int64_t(at % 16), blocks = std::min(philox_lanes, ceil_div(skipped + count, 16));
    philox_blocks(stream, at / 16, blocks, words);
    int64_t taken = std::min(count, 16 * blocks - skipped);
    memcpy(to, reinterpret_cast<const char*>(words) + skipped, size_t(taken));
    to += taken, at += uint64_t(taken), count -= taken;
  }
}

}  // namespace internal

template <class T>
Status fill_rows(const Executor& executor, const PhiloxRows<T>& rows) {
  constexpr int64_t task_bytes = 1 << 16;
  int64_t bytes = rows.length * int64_t(sizeof(T));
  if (rows.rows * bytes == 0) return {};
  int64_t width = std::min(bytes, task_bytes), parts = ceil_div(bytes, width), range = task_bytes / width;
  char* y = reinterpret_cast<char*>(rows.y);
  parallel_for(executor, ceil_div(rows.rows, range) * parts, range * width / 4, [&](int64_t task) {
    int64_t row = task / parts * range, end = std::min(rows.rows, row + range);
    int64_t first = task % parts * width, count = std::min(width, bytes - first);
    for (; row < end; ++row) internal::philox_bytes(rows.stream(row), first, count, y + row * bytes + first);
  });
  return {};
}

}  // namespace baracuda
