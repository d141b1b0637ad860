// By what the rows of segments are sorted.
#pragma once

#include "segment.h"

namespace baracuda {
namespace internal {

// The sort key of a row: its batch and its segment, rows of no segment last in their batch. Where a block has a batch,
// `segment` is the key.
template <class Id, class KeyType>
struct SegmentKeys {
  using Key = KeyType;
  const Id* ids;
  int64_t batches, rows, segments;

  __device__ int64_t batch(int64_t i) const { return batches == 1 ? 0 : i / rows; }
  __device__ uint32_t number(int64_t i) const { return uint32_t(i - batch(i) * rows); }
  __device__ Key segment(Id id) const {
    // Negative ids are the largest without a sign.
    if constexpr (sizeof(Id) == 4) return Key(min(uint32_t(id), uint32_t(segments)));
    return Key(min(uint64_t(id), uint64_t(segments)));
  }
  __device__ Key key(int64_t i) const { return Key(batch(i) * (segments + 1)) + segment(ids[i]); }
};

}  // namespace internal
}  // namespace baracuda
