// How blocks of 1024 threads, of which a multiprocessor has one at a time, share the tiles of planes. A block that goes
// through all tiles of a few planes finds them in its first-level cache, wherever positions are; a span of the tiles is
// for planes that would be too few blocks.
#pragma once

#include <algorithm>

#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int plane_block = 1024;

struct PlaneSpans {
  int64_t chunk;        // planes of a block
  int64_t each, spans;  // tiles of a span; spans of the tiles

  // Planes of so many bytes, `together` at once; a chunk is a multiple of these, of at most `most` planes.
  PlaneSpans(int64_t batches, int64_t channels, int64_t tiles, int64_t bytes, int together, int most_planes = 16) {
    constexpr int64_t cache = 200 * 1024;
    chunk = std::clamp<int64_t>(cache / std::max<int64_t>(bytes, 1), 1, most_planes);
    chunk = std::max<int64_t>(chunk / together, 1) * together;
    int64_t units = batches * ceil_div(channels, chunk), most = std::clamp<int64_t>(tiles, 1, 64), best = -1;
    for (int64_t n = 1; n <= most; ++n)
      if (int64_t now = time(units, tiles, n); best < 0 || now < best) best = now;
    // The fewest spans that take about as long as the best number.
    for (spans = 1; spans < most && time(units, tiles, spans) * 10 > best * 11;) ++spans;
    each = std::max<int64_t>(ceil_div(tiles, spans), 1), spans = ceil_div(tiles, each);
  }
  // Whether there is about a block for each multiprocessor twice.
  static bool are_enough(int64_t batches, int64_t channels, int64_t tiles, int together) {
    return batches * ceil_div(channels, together) * tiles >= 2 * multiprocessors;
  }

 private:
  static constexpr int64_t multiprocessors = 132;
  // In tiles.
  static int64_t time(int64_t units, int64_t tiles, int64_t spans) {
    return ceil_div(units * spans, multiprocessors) * ceil_div(tiles, spans);
  }
};

}  // namespace internal
}  // namespace baracuda
