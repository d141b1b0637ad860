// The rows pattern for rows that a block has no registers for, on devices with bulk copies.
//
// Blocks stay for the whole grid, and have a ring of chunks of rows in shared memory, filled by bulk copies. A row
// stays there from the reductions to the writing, so it is read once; what it leaves of the ring is filled with the
// next rows meanwhile, a chunk as soon as all threads have read the one before it for the last time. So memory is never
// without loads that are on their way. A row that is too long for one block is divided among the blocks of a cluster.
//
// The functor reads `arrays` arrays, `array(k)`. Of a copy of a range of each, `step` elements apart, it makes what
// `read` has, `copied(from, step)`. Rows of `most_in_registers` elements are faster in registers, and so are
// those of `most_of_few` that do not outnumber the multiprocessors.
//
// Rows that are no whole number of vectors are copied from 16 bytes to 16 bytes too, and then read element by element:
// a lane has the same elements wherever a row begins, so that equal rows have equal sums.
#pragma once

#include <algorithm>
#include <type_traits>

#include "cluster_cuda.h"
#include "copy_bulk_cuda.h"
#include "device_cuda.h"
#include "executor.h"
#include "row_team_cuda.h"
#include "rows.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr unsigned ring_most_cluster = 8;

// A chunk of the ring has 64 bytes for each thread: fewer leave threads waiting for their loads, and more leave a
// coarse ring. Each of the functor's arrays has its part of them, and where rows are not aligned 16 bytes more.
template <class Functor, int threads_, int per_multiprocessor_, bool aligned_>
struct RingChunk {
  using T = typename Functor::Element;
  static constexpr int threads = threads_, per_multiprocessor = per_multiprocessor_;
  static constexpr bool aligned = aligned_;
  static constexpr int copied = 16 / sizeof(T), V = aligned ? copied : 1;
  static constexpr int vectors = 4 / Functor::arrays * (copied / V), elements = threads * vectors * V;
  static constexpr int stride = elements + (aligned ? 0 : copied);
  static constexpr int bytes = Functor::arrays * stride * int(sizeof(T));
  static constexpr int most = (256 << 10) / bytes / per_multiprocessor;
};

// Copies elements [first, first + count) of an array of `all` to shared memory, by one thread; where they begin inside
// 16 bytes, these whole. Returns the bytes that the barrier is to expect.
template <class Chunk, class T>
__device__ int start_copy(T* to, const T* array, int64_t first, int count, int64_t all, CopyBarrier& barrier) {
  if constexpr (Chunk::aligned) {
    copy_bulk(to, array + first, count * int(sizeof(T)), barrier);
    return count * int(sizeof(T));
  } else {
    int before = int(first % Chunk::copied), words = (before + count + Chunk::copied - 1) / Chunk::copied;
    first -= before;
    bool is_cut = first + words * Chunk::copied > all;  // the last of the array fill no 16 bytes
    if (is_cut) --words;
    if (words > 0) copy_bulk(to, array + first, words * 16, barrier);
    if (is_cut)
#pragma unroll
      for (int i = 0; i < Chunk::copied - 1; ++i) {
        int at = words * Chunk::copied + i;
        if (at < before + count) to[at] = array[first + at];
      }
    return words * 16;
  }
}

// A functor may add to more sums than are merged with those of other threads.
template <class Functor, class State>
__device__ auto merged_of(const Functor& functor, const State& state) {
  if constexpr (requires { functor.merged(state); })
    return functor.merged(state);
  else
    return state;
}

// The state of all threads of a cluster, in each of them. `shared` is of this reduction, and between it and the next of
// the same is another.
template <int warps, class Functor, class State>
__device__ State of_cluster(const Functor& functor, State state, State* shared, unsigned rank, unsigned blocks) {
  state = of_lanes(functor, state, 32);
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (blocks == 1) {
    if (lane == 0) shared[warp] = state;
    __syncthreads();
  } else {
    if (lane < blocks) *of_block(shared + rank * warps + warp, lane) = state;
    sync_cluster(blocks);
  }
  int all = int(blocks) * warps;
  state = shared[lane % unsigned(min(all, 32))];
  for (int k = 32; k < all; k += 32) functor.merge(state, shared[k + lane]);
  return of_lanes(functor, state, min(all, 32));
}

template <class Chunk, class Functor>
__global__ void __launch_bounds__(Chunk::threads, Chunk::per_multiprocessor)
    reduce_and_write_ring(const __grid_constant__ Functor every, int64_t rows, int64_t columns, int slots) {
  using T = typename Functor::Element;
  using State = decltype(every.start());
  constexpr int V = Chunk::V, warps = Chunk::threads / 32, elements = Chunk::elements, apart = Chunk::threads * V;
  extern __shared__ __align__(128) unsigned char room[];
  __shared__ CopyBarrier copied[Chunk::most], read[Chunk::most];
  __shared__ State shared[2][warps * ring_most_cluster];  // in turn, since one may still be read

  // The range of each row that is this block's.
  unsigned blocks = blocks_of_cluster(), rank = rank_in_cluster();
  int64_t words = (columns + Chunk::copied - 1) / Chunk::copied, each = (words + blocks - 1) / blocks * Chunk::copied;
  int64_t begin = min(columns, rank * each);
  int length = int(min(columns - begin, each)), chunks = (length + elements - 1) / elements;
  int64_t first_row = blockIdx.x / blocks, step = gridDim.x / blocks;

  for (int k = threadIdx.x; k < slots; k += Chunk::threads) copied[k].init(1), read[k].init(warps);
  sync_cluster(blocks);

  // By the first thread.
  int64_t next_row = chunks > 0 ? first_row : rows;
  int next_chunk = 0, next_slot = 0;
  auto copy_next = [&]() {
    if (next_row >= rows) return;
    int count = min(elements, length - next_chunk * elements);
    int64_t from = next_row * columns + begin + int64_t(next_chunk) * elements;
    T* to = reinterpret_cast<T*>(room + next_slot * Chunk::bytes);
    int bytes = 0;
#pragma unroll
    for (int k = 0; k < Functor::arrays; ++k)
      bytes +=
          start_copy<Chunk>(to + k * Chunk::stride, every.array(k), from, count, rows * columns, copied[next_slot]);
    copied[next_slot].arrive_expecting(bytes);
    if (++next_slot == slots) next_slot = 0;
    if (++next_chunk == chunks) next_chunk = 0, next_row += step;
  };
  if (threadIdx.x == 0)
    for (int k = 0; k < slots; ++k) copy_next();

  int slot = 0, parity = 0, turn = 0;  // of the row's first chunk, and of the row
  Functor next = at_row(every, min(first_row, rows - 1));
  for (int64_t row = first_row; row < rows; row += step) {
    Functor functor = next;
    next = at_row(every, min(row + step, rows - 1));  // its loads are not waited for here
    int before = Chunk::aligned ? 0 : int((row * columns + begin) % Chunk::copied);

    // Calls body(vector, its first element) for each vector of this thread, and after(slot, parity) for each chunk,
    // when its vectors are in registers.
    auto each_chunk = [&](const auto& functor, auto waits, const auto& body, const auto& after) {
      int here = slot, parity_here = parity;
#pragma unroll 1
      for (int k = 0; k < chunks; ++k) {
        if constexpr (decltype(waits)::value) copied[here].wait(parity_here);
        int position = k * elements + int(threadIdx.x) * V;
        int64_t element = row * columns + begin + position;  // and vectors of a chunk at steps that the compiler knows
        const T* from = reinterpret_cast<const T*>(room + here * Chunk::bytes) + before + threadIdx.x * V;
        decltype(functor.template copied<V>(from, 0)) values[Chunk::vectors];
#pragma unroll
        for (int u = 0; u < Chunk::vectors; ++u)
          values[u] = functor.template copied<V>(from + u * apart, Chunk::stride);
        after(here, parity_here);
        if ((k + 1) * elements <= length) {
#pragma unroll
          for (int u = 0; u < Chunk::vectors; ++u) body(values[u], element + u * apart);
        } else {
#pragma unroll
          for (int u = 0; u < Chunk::vectors; ++u)
            if (position + u * apart < length) body(values[u], element + u * apart);
        }
        if (++here == slots) here = 0, parity_here ^= 1;
      }
    };
    auto reduced = [&](const auto& functor, auto waits, auto* shared) {
      auto state = functor.start();
      each_chunk(functor, waits, [&](const auto& values, int64_t) { functor.push(state, values); }, [](int, int) {});
      return of_cluster<warps>(functor, merged_of(functor, state), shared, rank, blocks);
    };
    auto finish = [&](const auto& functor, const auto& state) {
      auto block = functor.block(state);
      if (threadIdx.x == 0 && rank == 0) functor.finish(row, block);
      int last = -1, parity_of_last = 0;
      auto refill = [&]() {
        if (last >= 0 && threadIdx.x == 0) read[last].wait(parity_of_last), copy_next();
      };
      each_chunk(
          functor, std::false_type{},
          [&](const auto& values, int64_t element) { functor.write(element, values, block); },
          [&](int here, int parity_here) {
            __syncwarp();
            if (threadIdx.x % 32 == 0) read[here].arrive();
            refill();
            last = here, parity_of_last = parity_here;
          });
      refill();
      if (last + 1 == slots)
        slot = 0, parity = parity_of_last ^ 1;
      else if (last >= 0)
        slot = last + 1, parity = parity_of_last;
    };
    State state = reduced(functor, std::true_type{}, shared[turn]);
    turn ^= 1;
    if constexpr (requires { functor.after(state); }) {
      auto next = functor.after(state);
      using Again = decltype(merged_of(next, next.start()));
      __shared__ Again again[warps * ring_most_cluster];
      finish(next, reduced(next, std::false_type{}, again));
    } else {
      finish(functor, state);
    }
  }
}

struct RingDevice {
  int multiprocessors = 0, bytes = 0;  // of shared memory of each

  Status read() {
    cudaError_t error = device_attribute(cudaDevAttrMultiProcessorCount, multiprocessors);
    if (error == cudaSuccess) error = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, bytes);
    return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
  }
  template <class Chunk>
  int slots() const {
    constexpr int others = 5 << 10;  // what a block has besides the ring
    return std::min((bytes / Chunk::per_multiprocessor - others) / Chunk::bytes, Chunk::most);
  }
};

// Whether the device has room for such clusters; then they are launched, with this status.
template <class Chunk, class Functor>
bool launch_ring(const Executor& executor, const RingDevice& device, const Functor& functor, int64_t rows,
                 int64_t columns, unsigned cluster, Status& status) {
  auto* kernel = reduce_and_write_ring<Chunk, Functor>;
  int slots = device.slots<Chunk>(), bytes = slots * Chunk::bytes;
  if (status = allow_shared_memory(kernel, bytes); !status.ok()) return true;
  int clusters = device.multiprocessors * Chunk::per_multiprocessor / int(cluster);
  // Multiprocessors come in groups of an even number, in which larger clusters leave some.
  if (cluster > 2)
    if (status = most_clusters(kernel, cluster, Chunk::threads, bytes, clusters); !status.ok()) return true;
  clusters = int(std::min<int64_t>(rows, clusters));
  if (clusters == 0) return false;
  status = launch_clusters(executor, kernel, unsigned(clusters) * cluster, cluster, Chunk::threads, bytes, functor,
                           rows, columns, slots);
  return true;
}

// Whether rows of so many elements fit in rings, the device has these, and they are faster; then it is done, with this
// status.
template <bool aligned, class Functor>
bool run_ring(const Executor& executor, const Functor& functor, int64_t rows, int64_t columns, Status& status) {
  using Small = RingChunk<Functor, 256, 2, aligned>;
  using Large = RingChunk<Functor, 512, 1, aligned>;
  RingDevice device;
  if (status = device.read(); !status.ok()) return true;
  // Then there is nothing to copy while a row is computed.
  if (aligned && rows <= device.multiprocessors && columns <= Functor::most_of_few) return false;
  for (int k = 0; k < Functor::arrays; ++k)
    if (reinterpret_cast<uintptr_t>(functor.array(k)) % 16) return false;
  if (!has_bulk_copies(reduce_and_write_ring<Large, Functor>)) return false;
  auto chunks = [&](int elements, unsigned cluster) { return ceil_div(ceil_div(columns, elements), cluster); };
  // Of two blocks one computes while the other waits. Of gradients one block is faster: 204 us instead of 220.
  if constexpr (Functor::arrays == 1 && Functor::most_in_registers < 4 * Small::elements)
    if (chunks(Small::elements, 1) < device.slots<Small>())
      return launch_ring<Small>(executor, device, functor, rows, columns, 1, status);
  // Few rows are divided among more blocks than they need.
  unsigned least = 1;
  while (least < ring_most_cluster && rows * 2 * least <= device.multiprocessors && chunks(Large::elements, least) > 1)
    least *= 2;
  for (unsigned cluster = least; cluster <= ring_most_cluster; cluster *= 2)
    if (chunks(Large::elements, cluster) < device.slots<Large>())
      return launch_ring<Large>(executor, device, functor, rows, columns, cluster, status);
  return false;
}

}  // namespace internal
}  // namespace baracuda
