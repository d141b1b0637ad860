// Reductions of longer rows that begin anywhere, on a CUDA grid: the rows that tiles (row_tiles_cuda.h) are too short
// for, and that are no whole number of vectors. The warps of a row take turns at chunks of it, which they copy to
// shared memory in vectors of 16 bytes, the next while one is used. A lane has the same elements wherever the row
// begins.
#pragma once

#include <cuda_pipeline.h>

#include <algorithm>

#include "copy_async_cuda.h"
#include "reduce.h"
#include "row_team_cuda.h"
#include "row_tiles_cuda.h"

namespace baracuda {
namespace internal {

// A warp's chunk: from the 16 bytes in which it begins.
template <class T>
struct RowChunk {
  static constexpr int V = 1, bytes = 2048, room = bytes + 16, elements = bytes / int(sizeof(T));
  char* memory;
  int head = 0, count = 0;

  __device__ explicit RowChunk(char* memory) : memory(memory) {}
  // Elements first ... of a row that has `left` from there on, or none.
  __device__ void copy(const T* first, int64_t left) {
    count = int(max(int64_t(0), min(left, int64_t(elements))));
    const char* from = reinterpret_cast<const char*>(first);
    head = int(uintptr_t(from) & 15);
    int size = count > 0 ? head + count * int(sizeof(T)) : 0;
    for (int i = threadIdx.x % 32 * 16; i < size; i += 512) copy_async(memory + i, from - head + i, min(16, size - i));
  }
  __device__ Vector<T, 1> operator[](int i) const { return {{reinterpret_cast<const T*>(memory + head)[i]}}; }
};

// Which warps have which rows, by the shape alone.
template <class T>
struct RowChunks {
  static constexpr int warps = 8;
  static constexpr int64_t few = 132 * 16;  // rows, for a warp each
  int of_row, rows;                         // warps of a row, and rows of a block
  int64_t parts, length;                    // of a row, each of so many elements

  RowChunks(const ReduceShape& shape, int64_t most_states) {
    constexpr int64_t chunk = RowChunk<T>::elements, wanted = 132 * 5;  // blocks
    of_row = shape.slices >= few && shape.count < 1 << 16 ? 1 : warps;
    rows = warps / of_row;
    int64_t blocks = ceil_div(shape.slices, rows), chunks = ceil_div(shape.count, chunk);
    // Two chunks of each warp, at least; and no more than a sum may have without losing digits.
    int64_t most = std::max<int64_t>(1, chunks / (2 * of_row)), least = ceil_div(chunks, int64_t(64) * of_row);
    parts = std::max(std::min(wanted / blocks, most), least);
    parts =
        std::clamp<int64_t>(parts, 1, std::clamp<int64_t>(most_states / std::max<int64_t>(1, shape.slices), 1, 65535));
    length = ceil_div(ceil_div(shape.count, parts), chunk * of_row) * chunk * of_row;
    parts = ceil_div(shape.count, length);
  }
  // Of elements of more than 16 bits a block reads a row as fast without: then where a row would have a block each and
  // is short for it.
  static bool fit(const ReduceShape& shape) {
    bool is_row = shape.columns == 1 && shape.reduced.rank <= 1 && shape.reduced.inner_step() == 1;
    return is_row && (sizeof(T) <= 2 || (few <= shape.slices && shape.slices < 4 * few && shape.count < 1 << 16));
  }
};

// Where there are several parts, `states` are [slices, parts].
template <class Reducer>
__global__ void __launch_bounds__(32 * RowChunks<typename Reducer::Element>::warps)
    reduce_row_chunks(Reducer reducer, ReduceShape shape, RowChunks<typename Reducer::Element> chunks,
                      const typename Reducer::Element* x, typename Reducer::template State<1>* states) {
  using T = typename Reducer::Element;
  using State = typename Reducer::template State<1>;
  using Chunk = RowChunk<T>;
  constexpr int warps = RowChunks<T>::warps, ahead = 8;
  __shared__ alignas(16) char memory[warps][2][Chunk::room];
  __shared__ State shared[warps];
  int warp = threadIdx.y * chunks.of_row + threadIdx.x / 32, lane = threadIdx.x % 32;
  int64_t slice = int64_t(blockIdx.x) * chunks.rows + threadIdx.y, step = int64_t(chunks.of_row) * Chunk::elements;
  int64_t first = blockIdx.y * chunks.length, end = min(first + chunks.length, shape.count);
  first += threadIdx.x / 32 * Chunk::elements;
  if (slice >= shape.slices) first = end;
  const T* row = x + shape.first + (slice < shape.slices ? shape.kept.offset(slice) : 0);
  Chunk now(memory[warp][0]), next(memory[warp][1]);
  State s;
  reducer.none(s);
  now.copy(row + first, end - first);
  __pipeline_commit();
  for (; first < end; first += step) {
    next.copy(row + first + step, end - first - step);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();
    int each = now.count / 32, extra = each * 32 + lane;
    push_all<ahead>(reducer, s, now, 0, lane, 32, each);
    if (extra < now.count) push_loads<1>(reducer, s, now, 0, extra, 32);
    __syncwarp();
    Chunk last = now;
    now = next, next = last;
  }
  s = of_row(reducer, s, shared);
  if (threadIdx.x > 0 || slice >= shape.slices) return;
  if (states)
    states[slice * chunks.parts + blockIdx.y] = s;
  else
    reducer.template finish<1>(s, slice);
}

}  // namespace internal
}  // namespace baracuda
