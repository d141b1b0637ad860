// The counter pattern on CPU threads: blocks of a stream are computed in lanes of vectors. Bits are copied to where the
// row is; what else is drawn is made of them while they are in the cache.
#pragma once

#include <algorithm>

#include "../kernels/draw.h"
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

// Elements [first, first + count) of a row.
template <class Draw>
void draw_elements(const PhiloxStream& stream, const Draw& draw, int64_t first, int64_t count,
                   const typename Draw::Operand* x, typename Draw::Result* y) {
  using Bits = typename Draw::Bits;
  constexpr int64_t size = sizeof(Bits), chunk = 16 * philox_lanes / size;
  if constexpr (std::is_same_v<Draw, RandomBits<Bits>>) {
    philox_bytes(stream, first * size, count * size, reinterpret_cast<char*>(y));
  } else {
    Bits bits[chunk];
    for (int64_t done = 0; done < count; done += chunk) {
      int64_t now = std::min(chunk, count - done);
      philox_bytes(stream, (first + done) * size, now * size, reinterpret_cast<char*>(bits));
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i < now; ++i) {
        if constexpr (std::is_void_v<typename Draw::Operand>)
          y[done + i] = draw(bits[i]);
        else
          y[done + i] = draw(bits[i], x[done + i]);
      }
    }
  }
}

}  // namespace internal

template <class Draw>
Status draw_rows(const Executor& executor, const DrawnRows<Draw>& rows) {
  constexpr int64_t task = (1 << 16) / sizeof(typename Draw::Bits);
  if (rows.rows * rows.length == 0) return {};
  int64_t width = std::min(rows.length, task), parts = ceil_div(rows.length, width), range = task / width;
  parallel_for(executor, ceil_div(rows.rows, range) * parts, range * width, [&](int64_t i) {
    int64_t row = i / parts * range, end = std::min(rows.rows, row + range);
    int64_t first = i % parts * width, count = std::min(width, rows.length - first);
    for (; row < end; ++row) {
      const uint32_t* words = rows.streams + row * DrawnRows<Draw>::words;
      int64_t at = row * rows.length + first;
      const typename Draw::Operand* x = nullptr;
      if constexpr (!std::is_void_v<typename Draw::Operand>) x = rows.x + at;
      internal::draw_elements(PhiloxStream(words), draw_of<Draw>(words), first, count, x, rows.y + at);
    }
  });
  return {};
}

}  // namespace baracuda
