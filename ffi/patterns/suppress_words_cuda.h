// The suppress pattern's first kernel: which elements of a later tile each element of an earlier one suppresses, a word
// of 64 bits for each pair of an element and a tile. A block compares a tile with four neighboring later ones. Words of
// a tile and the few tiles after it, the band, are stored tile by tile; all others element by element, so that what one
// element suppresses is read in long runs.
#pragma once

#include "suppress.h"

namespace baracuda {
namespace internal {

inline constexpr int suppress_tile = 64, suppress_group = 4, suppress_band = 5;

struct SuppressTiles {
  int64_t tiles;      // of a batch
  int64_t stride;     // tiles, up to a multiple of suppress_group: 32 bytes of words are written at once
  uint64_t* band;     // [batches, tiles, suppress_band, 64]: of the tile itself, which earlier elements suppress each
  uint64_t* rows;     // [batches, 64 tiles, stride]
  uint32_t* removed;  // [batches, 2 tiles], or null: in shared memory

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

template <class T, bool has_classes>
__global__ void __launch_bounds__(suppress_tile* suppress_group)
    suppress_words(Suppression<T> work, SuppressTiles tiles) {
  using Sum = typename Suppression<T>::Sum;
  constexpr int some = 8;  // elements between two looks at what is not sure
  __shared__ BoxTile<Sum> others[suppress_group];
  __shared__ int64_t other_class[has_classes ? suppress_group : 1][suppress_tile];
  __shared__ uint64_t words[suppress_tile][suppress_group + 1];
  int64_t earlier = blockIdx.x, batch = blockIdx.z;
  const T* boxes = work.boxes + batch * work.count * 4;
  const int32_t* order = work.order + batch * work.count;
  int own = threadIdx.x % suppress_tile, column = threadIdx.x / suppress_tile;
  for (int64_t group = blockIdx.y; group * suppress_group < tiles.tiles; group += gridDim.y) {
    int64_t first = group * suppress_group, later = first + column;
    if (first + suppress_group <= earlier) continue;
    int64_t row = earlier * suppress_tile + own, other = later * suppress_tile + own;
    Box<Sum> box, far;
    box.left = box.top = box.right = box.bottom = box.area = 0, far = box;
    int64_t own_class = 0;
    if (row < work.count) {
      int32_t index = order[row];
      box = read_box(boxes, index);
      if constexpr (has_classes) own_class = work.classes.of(batch * work.count + index);
    }
    __syncthreads();  // of the group before
    if (other < work.count) {
      int32_t index = order[other];
      far = read_box(boxes, index);
      if constexpr (has_classes) other_class[column][own] = work.classes.of(batch * work.count + index);
    }
    others[column].set(own, far);
    __syncthreads();
    uint64_t word = 0;
    if (later >= earlier && later < tiles.tiles) {
      for (int begin = 0; begin < suppress_tile; begin += some) {
        uint32_t found = 0, unsure = 0;
#pragma unroll
        for (int i = 0; i < some; ++i) {
          Overlap<Sum> overlap(box, others[column].box(begin + i));
          bool is_above = overlap.is_surely_above(work.next), is_not = overlap.is_surely_not_above(work.limit);
          if constexpr (has_classes) {
            bool is_alike = other_class[column][begin + i] == own_class;
            is_above &= is_alike, is_not |= !is_alike;
          }
          if (is_above) found |= 1u << i;
          if (!(is_above | is_not)) unsure |= 1u << i;
        }
        for (; unsure; unsure &= unsure - 1) {
          int i = __ffs(int(unsure)) - 1;
          if (Overlap<Sum>(box, others[column].box(begin + i)).is_above(work.limit)) found |= 1u << i;
        }
        word |= uint64_t(found) << begin;
      }
      int64_t there = work.count - later * suppress_tile;  // elements of the later tile
      if (there < suppress_tile) word &= (uint64_t(1) << there) - 1;
      if (later == earlier) word &= (uint64_t(1) << own) - 1;
      if (row >= work.count) word = 0;
      if (later - earlier < suppress_band)
        tiles.band_of(batch, earlier)[(later - earlier) * suppress_tile + own] = word;
    }
    if (first + suppress_group <= earlier + suppress_band || tiles.rows == nullptr)
      continue;  // the same for all threads
    words[own][column] = word;
    __syncthreads();
    int element = threadIdx.x / suppress_group, k = threadIdx.x % suppress_group;
    tiles.rows_of(batch, earlier)[element * tiles.stride + first + k] = words[element][k];
  }
}

}  // namespace internal
}  // namespace baracuda
