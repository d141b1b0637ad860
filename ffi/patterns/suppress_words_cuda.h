// The suppress pattern's first kernel: which elements of a later tile each element of an earlier one suppresses, a word
// of 64 bits for each pair of an element and a tile. A block compares half of a tile with four neighboring later ones.
// Words of a tile and the few tiles after it, the band, are stored tile by tile; all others element by element, so that
// what one element suppresses is read in long runs.
#pragma once

#include <limits>

#include "early_cuda.h"
#include "suppress.h"

namespace baracuda {
namespace internal {

inline constexpr int suppress_tile = 64, suppress_group = 4, suppress_band = 5;

struct SuppressTiles {
  int64_t tiles;      // of a batch
  int64_t stride;     // tiles, up to a multiple of suppress_group: 32 bytes of words are written at once
  uint64_t* band;     // [batches, tiles, suppress_band, 64]: of the tile itself, which earlier elements suppress each
  uint64_t* rows;     // [batches, 64 tiles, stride]
  uint64_t* removed;  // [batches, tiles], or null: in shared memory

  static __host__ __device__ int64_t band_words() { return suppress_band * suppress_tile; }
  __host__ __device__ int64_t row_words() const { return suppress_tile * stride; }

  __device__ uint64_t* band_of(int64_t batch, int64_t tile) const {
    return band + (batch * tiles + tile) * band_words();
  }
  __device__ uint64_t* rows_of(int64_t batch, int64_t tile) const {
    return rows + (batch * tiles + tile) * row_words();
  }
};

template <class Sum>
struct BoxTile {
  Vector<Sum, 4> corners[suppress_tile];
  Sum areas[suppress_tile];

  __device__ void set(int i, const Box<Sum>& box) {
    corners[i] = {{box.left, box.top, box.right, box.bottom}}, areas[i] = box.area;
  }
  __device__ Box<Sum> box(int i) const {
    auto corner = corners[i];
    Box<Sum> box;
    box.left = corner.lane[0], box.top = corner.lane[1], box.right = corner.lane[2], box.bottom = corner.lane[3];
    box.area = areas[i];
    return box;
  }
};

template <class T>
__device__ Box<Accumulator<T>> read_box(const T* boxes, int64_t index) {
  if (reinterpret_cast<uintptr_t>(boxes) % sizeof(Vector<T, 4>) != 0) return Box<Accumulator<T>>(boxes + index * 4);
  auto corners = load<4>(boxes + index * 4);
  return Box<Accumulator<T>>(corners.lane);
}

// The sign of a number as the first bit of a word.
__device__ inline uint32_t sign_word(float x) { return __float_as_uint(x); }
__device__ inline uint32_t sign_word(double x) { return uint32_t(__double2hiint(x)); }

// Whether the quotient of an overlap is above a limit, by signs, which take no comparisons. If the intersection is more
// than the union times the next number, the rounded quotient is at least that number; if it is at most the union times
// the limit, the quotient is at most the limit. A fused product and sum has the sign of the exact one.
template <class Sum>
struct QuickOverlap {
  uint32_t is_above, is_unsure;  // their first bits

  // What this is right for: no area is negative, and nothing overflows.
  static __device__ bool holds_for(const Box<Sum>& box) {
    constexpr Sum most = std::numeric_limits<Sum>::max() / 4;
    auto is_small = [](Sum x) { return x >= -most && x <= most; };
    return is_small(box.left) && is_small(box.top) && is_small(box.right) && is_small(box.bottom) && box.area >= 0 &&
           box.area <= most;
  }
  // Where only one side is negative, so is the intersection, and its quotient is not above either.
  __device__ QuickOverlap(const Box<Sum>& a, const Box<Sum>& b, Sum limit, Sum next) {
    Sum width = smaller_of(a.right, b.right) - larger_of(a.left, b.left);
    Sum height = smaller_of(a.bottom, b.bottom) - larger_of(a.top, b.top);
    Sum common = rounded_product(larger_of(width, Sum(0)), height), both = a.area + b.area - common;
    is_above = sign_word(fma(next, both, -common));
    is_unsure = sign_word(fma(limit, both, -common)) & ~is_above;
  }
};

// Blocks of pairs of a group of earlier tiles with itself or a later one: a row has the pairs of group `row` and those
// of the last but `row`, which are as many together for all rows.
struct SuppressPairs {
  int64_t groups;

  static constexpr int parts = 2, of_group = parts * suppress_group;  // of a tile's elements
  static constexpr int elements = suppress_tile / parts, threads = elements * suppress_group;

  __host__ __device__ explicit SuppressPairs(const SuppressTiles& tiles) : groups(tiles.stride / suppress_group) {}
  __host__ __device__ int64_t columns() const { return (groups + 1) * of_group; }
  __host__ __device__ int64_t rows() const { return (groups + 1) / 2; }
};

template <class T, bool has_classes>
__global__ void __launch_bounds__(SuppressPairs::threads) suppress_words(Suppression<T> work, SuppressTiles tiles) {
  using Sum = typename Suppression<T>::Sum;
  constexpr int some = 8;  // elements between two looks at what is not sure
  constexpr int elements = SuppressPairs::elements, threads = SuppressPairs::threads;
  __shared__ BoxTile<Sum> others[suppress_group];
  __shared__ int64_t other_class[has_classes ? suppress_group : 1][suppress_tile];
  __shared__ uint64_t words[elements][suppress_group + 1];
  SuppressPairs pairs(tiles);
  int part = blockIdx.x % SuppressPairs::of_group;
  int64_t row = blockIdx.y, pair = blockIdx.x / SuppressPairs::of_group, batch = blockIdx.z;
  bool is_first = pair < pairs.groups - row;
  int64_t of_earlier = is_first ? row : pairs.groups - 1 - row;
  if (!is_first && of_earlier == row) return;
  int64_t group = is_first ? row + pair : pair - 1, first = group * suppress_group;
  int64_t earlier = of_earlier * suppress_group + part / SuppressPairs::parts;
  if (earlier >= tiles.tiles) return;
  wait_for_kernel_before();
  const T* boxes = work.boxes + batch * work.count * 4;
  const int32_t* order = work.order + batch * work.count;
  int of_tile = part % SuppressPairs::parts * elements + threadIdx.x % elements, column = threadIdx.x / elements;
  int64_t later = first + column, element = earlier * suppress_tile + of_tile;
  bool is_quick = true;
  auto read = [&](int64_t at, auto& of_class) {
    Box<Sum> box;
    box.left = box.top = box.right = box.bottom = box.area = 0;
    if (at < work.count) {
      int32_t index = order[at];
      box = read_box(boxes, index);
      if constexpr (has_classes) of_class = work.classes.of(batch * work.count + index);
    }
    is_quick &= QuickOverlap<Sum>::holds_for(box);
    return box;
  };
  int64_t own_class = 0;
  Box<Sum> box = read(element, own_class);
#pragma unroll
  for (int i = threadIdx.x; i < suppress_group * suppress_tile; i += threads) {
    int of = i / suppress_tile, k = i % suppress_tile;
    others[of].set(k, read(first * suppress_tile + i, other_class[has_classes ? of : 0][k]));
  }
  is_quick = __syncthreads_and(is_quick);
  uint64_t word = 0;
  if (later >= earlier && later < tiles.tiles) {
    uint32_t halves[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t found = 0, unlike = 0;
#pragma unroll 1
      for (int begin = 32 * half + 32 - some; begin >= 32 * half; begin -= some) {
        uint32_t unsure = is_quick ? 0 : ~0u;
#pragma unroll
        for (int i = some - 1; i >= 0; --i) {
          QuickOverlap<Sum> overlap(box, others[column].box(begin + i), work.limit, work.next);
          found = __funnelshift_l(overlap.is_above, found, 1);
          unsure |= overlap.is_unsure;
          if constexpr (has_classes) unlike = unlike << 1 | uint32_t(other_class[column][begin + i] != own_class);
        }
        if (int32_t(unsure) >= 0) continue;
        found &= ~uint32_t((1 << some) - 1);
#pragma unroll 1
        for (int i = 0; i < some; ++i)
          found |= uint32_t(Overlap<Sum>(box, others[column].box(begin + i)).is_above(work.limit)) << i;
      }
      halves[half] = found & ~unlike;
    }
    word = uint64_t(halves[1]) << 32 | halves[0];
    int64_t there = work.count - later * suppress_tile;  // elements of the later tile
    if (there < suppress_tile) word &= (uint64_t(1) << there) - 1;
    if (later == earlier) word &= (uint64_t(1) << of_tile) - 1;
    if (element >= work.count) word = 0;
    if (later - earlier < suppress_band)
      tiles.band_of(batch, earlier)[(later - earlier) * suppress_tile + of_tile] = word;
  }
  next_may_begin();
  if (first + suppress_group <= earlier + suppress_band || tiles.rows == nullptr) return;  // the same for all threads
  words[of_tile % elements][column] = word;
  __syncthreads();
  int k = threadIdx.x % suppress_group, stored = threadIdx.x / suppress_group;
  int64_t in_tile = part % SuppressPairs::parts * elements + stored;
  tiles.rows_of(batch, earlier)[in_tile * tiles.stride + first + k] = words[stored][k];
}

}  // namespace internal
}  // namespace baracuda
