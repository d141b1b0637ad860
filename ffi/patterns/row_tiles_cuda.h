// Reductions of rows that follow each other in memory, of up to 4 KiB, on a CUDA grid.
//
// A warp copies tiles of some KiB to shared memory, of which the next is on its way while one is used: memory is read
// in vectors of 16 bytes, wherever rows begin. There a row belongs to one lane, if it is short, or to a few, so that
// states are merged seldom.
#pragma once

#include <cuda_pipeline.h>

#include "../kernels/number.h"
#include "copy_async_cuda.h"
#include "reduce.h"
#include "row_team_cuda.h"

namespace baracuda {
namespace internal {

// Loads of V neighbors, as n elements of each of V lanes, or as n V elements of a row.
template <class T, int V, int n, bool rows>
struct LoadedElements {
  Vector<T, V> load[n];
  __device__ __forceinline__ const T& operator()(int i, int k) const {
    return rows ? load[i / V].lane[i % V] : load[i].lane[k];
  }
};

// Which lanes have which rows, by the shape alone.
template <class T>
struct RowTiles {
  static constexpr int warps = 4, tile_bytes = 4096, bytes_of_lane = 128, most_turns = 8, V = 16 / int(sizeof(T));
  int64_t slices, tiles;
  int count, lanes, rows, turns;  // elements and lanes of a row, rows of a tile, tiles of a warp

  explicit RowTiles(const ReduceShape& shape) : RowTiles(shape.slices, shape.count) {}
  RowTiles(int64_t slices, int64_t count) : slices(slices), count(int(count)), lanes(1) {
    int bytes = int(count) * int(sizeof(T));
    while (lanes * bytes_of_lane < bytes) lanes *= 2;
    int at_once = 32 / lanes, wanted = tile_bytes / bytes / at_once;
    // Few rows are spread over all warps.
    int64_t most = ceil_div(slices, int64_t(at_once) * 132 * 16);
    if (wanted > most) wanted = int(most);
    rows = at_once * (wanted > 1 ? wanted : 1);
    tiles = ceil_div(slices, rows);
    int64_t of_warp = tiles / (132 * 16 * warps);
    turns = int(of_warp < 1 ? 1 : of_warp < most_turns ? of_warp : most_turns);
  }
  static bool fit(const ReduceShape& shape) {
    return shape.columns == 1 && shape.first == 0 && shape.reduced.rank <= 1 && shape.reduced.inner_step() == 1 &&
           (shape.kept.rank == 0 || (shape.kept.rank == 1 && shape.kept.step[0] == shape.count)) &&
           fit(shape.slices, shape.count);
  }
  // A few long rows are left to blocks.
  static bool fit(int64_t slices, int64_t count) {
    return count > 0 && count * int64_t(sizeof(T)) <= (slices < 132 ? tile_bytes / 8 : tile_bytes);
  }
  int64_t blocks() const { return ceil_div(tiles, int64_t(warps) * turns); }
};

// A tile in shared memory: vectors of 16 bytes, from the one in which the tile begins. In rows of whole vectors these
// change positions, so that lanes whose rows are a power of two apart find them in different banks.
template <class T, bool vectors>
class TileMemory {
 public:
  using Tiles = RowTiles<T>;
  static constexpr int bytes = Tiles::tile_bytes + (vectors ? 0 : 16), V = vectors ? Tiles::V : 1;

  __device__ explicit TileMemory(char* memory) : memory_(memory) {}
  __device__ void copy(const Tiles& tiles, const T* x, int64_t tile) {
    int lane = threadIdx.x;
    int64_t first = tile * tiles.rows, left = tiles.slices - first;
    const char* from = reinterpret_cast<const char*>(x + first * tiles.count);
    rows_ = int(min(left, int64_t(tiles.rows)));
    head_ = vectors ? 0 : int(uintptr_t(from) & 15);
    from += lane * 16 - head_;
    int size = rows_ * tiles.count * int(sizeof(T)) + head_;
    if (size == Tiles::tile_bytes) {
#pragma unroll
      for (int i = 0; i < Tiles::tile_bytes / 512; ++i) copy_async(at(i, lane), from + i * 512);
    } else {
      for (int i = 0; i * 512 + lane * 16 < size; ++i)
        copy_async(at(i, lane), from + i * 512, min(16, size - i * 512 - lane * 16));
    }
  }
  __device__ int rows() const { return rows_; }
  __device__ Vector<T, V> operator[](int i) const {
    if constexpr (vectors)
      return *reinterpret_cast<const Vector<T, V>*>(memory_ + (i ^ ((i >> 3 ^ i >> 6) & 7)) * 16);
    else
      return {{reinterpret_cast<const T*>(memory_ + head_)[i]}};
  }

 private:
  // Where vector 32 i + lane is.
  __device__ char* at(int i, int lane) const {
    return memory_ + i * 512 + (vectors ? (lane ^ lane >> 3) ^ ((i * 4 ^ i >> 1) & 7) : lane) * 16;
  }

  char* memory_;
  int head_ = 0, rows_ = 0;
};

// n loads of a row that begins at load `row`, `lanes` apart. A functor may want to know where its elements are.
template <int n, class Reducer, class Memory>
__device__ void push_loads(const Reducer& reducer, typename Reducer::template State<1>& s, const Memory& memory,
                           int row, int first, int lanes) {
  constexpr int V = Memory::V;
  LoadedElements<typename Reducer::Element, V, n, true> loaded;
#pragma unroll
  for (int i = 0; i < n; ++i) loaded.load[i] = memory[row + first + i * lanes];
  if constexpr (requires { reducer.template push_at<V, n>(s, loaded, first, lanes); })
    reducer.template push_at<V, n>(s, loaded, first, lanes);
  else
    reducer.template push<1, n * V>(s, loaded);
}
// `count` loads, n at a time, and then fewer.
template <int n, class Reducer, class Memory>
__device__ void push_all(const Reducer& reducer, typename Reducer::template State<1>& s, const Memory& memory, int row,
                         int first, int lanes, int count) {
  for (; count >= n; count -= n, first += n * lanes) push_loads<n>(reducer, s, memory, row, first, lanes);
  if constexpr (n > 1) push_all<n / 2>(reducer, s, memory, row, first, lanes, count);
}

template <bool vectors, class Reducer>
__global__ void __launch_bounds__(32 * RowTiles<typename Reducer::Element>::warps)
    reduce_tiles(Reducer reducer, RowTiles<typename Reducer::Element> tiles, const typename Reducer::Element* x) {
  using T = typename Reducer::Element;
  using Memory = TileMemory<T, vectors>;
  constexpr int warps = RowTiles<T>::warps, ahead = vectors ? 4 : 8;
  __shared__ alignas(16) char shared[warps][2][Memory::bytes];
  Memory now(shared[threadIdx.y][0]), next(shared[threadIdx.y][1]);
  int64_t first_tile = int64_t(blockIdx.x) * tiles.turns * warps, tile = first_tile + threadIdx.y;
  int64_t end = min(tiles.tiles, first_tile + tiles.turns * warps);
  int lanes = tiles.lanes, lane = threadIdx.x & (lanes - 1), row = threadIdx.x / lanes, rows_at_once = 32 / lanes;
  // All lanes have as many loads, and some one more.
  int loads = tiles.count / Memory::V, each = loads / lanes, extra = each * lanes + lane;
  if (tile < end) now.copy(tiles, x, tile);
  __pipeline_commit();
  for (; tile < end; tile += warps) {
    if (tile + warps < end) next.copy(tiles, x, tile + warps);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncwarp();
    auto reduce = [&](const auto& push) {
      for (int first = 0; first < now.rows(); first += rows_at_once) {
        typename Reducer::template State<1> s;
        reducer.none(s);
        push(s, (first + row) * loads);
        s = of_lanes(reducer, s, lanes);
        if (lane == 0 && first + row < now.rows()) reducer.template finish<1>(s, tile * tiles.rows + first + row);
      }
    };
    if (loads == ahead)
      reduce([&](auto& s, int load) { push_loads<ahead>(reducer, s, now, load, 0, 1); });
    else if (loads == 1)
      reduce([&](auto& s, int load) { push_loads<1>(reducer, s, now, load, 0, 1); });
    else
      reduce([&](auto& s, int load) {
        push_all<ahead>(reducer, s, now, load, lane, lanes, each);
        if (extra < loads) push_loads<1>(reducer, s, now, load, extra, lanes);
      });
    __syncwarp();
    Memory last = now;
    now = next, next = last;
  }
}

template <class Reducer>
Status reduce_row_tiles(const Executor& executor, const Reducer& reducer,
                        const RowTiles<typename Reducer::Element>& tiles, const typename Reducer::Element* x) {
  dim3 threads(32, RowTiles<typename Reducer::Element>::warps);
  if (tiles.count % RowTiles<typename Reducer::Element>::V == 0)
    reduce_tiles<true><<<unsigned(tiles.blocks()), threads, 0, executor.stream>>>(reducer, tiles, x);
  else
    reduce_tiles<false><<<unsigned(tiles.blocks()), threads, 0, executor.stream>>>(reducer, tiles, x);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
