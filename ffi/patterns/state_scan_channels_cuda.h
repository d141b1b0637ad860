// The state scan's results of many channels (see state_scan_tile_cuda.h). A warp has a few channels, and of each some
// lanes that have K neighboring positions; it goes from tile to tile, and in a tile from state to state. So what is of
// a position alone stays in registers, and the sum over states too, and warps meet once a tile, for B and C: those of
// the next one are copied meanwhile. Lanes of the same positions are neighbors, so that one read of B serves them all.
#pragma once

#include <cuda_pipeline.h>

#include <initializer_list>

#include "state_scan_tile_cuda.h"

namespace baracuda {
namespace internal {

// Most warps of a block; states whose B and C are in shared memory at once.
inline constexpr int channel_warps = 8, channel_group = 16;

// A tile of which a channel has `lanes` lanes, and a lane `each` positions.
template <class Wide, int lanes, int each = 64 / int(sizeof(Wide))>
struct ChannelTile {
  static constexpr int channels = 32 / lanes, K = each;
  using Row = TileRow<Wide, K, lanes, channels>;
  using Lane = TileLane<Wide, K, lanes, channels>;
  static constexpr int positions = Row::positions;
  // From B of a state to its C, and from one buffer of both to the other.
  static constexpr int of_c = channel_group * positions, buffer = 2 * of_c;
  // Rows in which a warp's lanes exchange elements without conflicts of banks.
  static constexpr int pitch = positions + std::max(Row::vector, lanes), exchanged = channels * pitch;

  // A thread's channel of its warp.
  static __device__ int channel() { return threadIdx.x % channels; }

  // Rows of B and C on their way to shared memory, 0 after the end.
  template <class T>
  static __device__ void stage(Wide* to, const T* b, const T* c, int rows, int64_t length, int64_t begin,
                               bool is_aligned) {
    constexpr bool is_copied = std::is_same_v<T, Wide>;
    constexpr int V = Row::vector;
    const int left = int(min(int64_t(positions), length - begin));
    b += begin, c += begin;
    if (is_aligned && left == positions) {
      constexpr unsigned vectors = positions / V;
#pragma unroll 4
      for (unsigned e = threadIdx.x; e < unsigned(rows) * vectors; e += blockDim.x) {
        const unsigned n = e / vectors, p = e % vectors * V;
        Wide *to_b = to + n * positions + Row::slot(p), *to_c = to_b + of_c;
        if constexpr (is_copied) {
          __pipeline_memcpy_async(to_b, b + n * length + p, 16);
          __pipeline_memcpy_async(to_c, c + n * length + p, 16);
        } else {
          Vector<T, V> some_b = load<V>(b + n * length + p), some_c = load<V>(c + n * length + p);
          Vector<Wide, V> wide_b, wide_c;
#pragma unroll
          for (int i = 0; i < V; ++i) wide_b.lane[i] = Wide(some_b.lane[i]), wide_c.lane[i] = Wide(some_c.lane[i]);
          *reinterpret_cast<Vector<Wide, V>*>(to_b) = wide_b;
          *reinterpret_cast<Vector<Wide, V>*>(to_c) = wide_c;
        }
      }
    } else {
#pragma unroll 4
      for (unsigned e = threadIdx.x; e < unsigned(rows) * positions; e += blockDim.x) {
        const unsigned n = e / positions;
        const int p = e % positions;
        Wide *to_b = to + n * positions + Row::slot(p), *to_c = to_b + of_c;
        const bool is_there = p < left;
        const int64_t at = n * length + (is_there ? p : 0);
        if constexpr (is_copied) {
          __pipeline_memcpy_async(to_b, b + at, sizeof(Wide), is_there ? 0 : sizeof(Wide));
          __pipeline_memcpy_async(to_c, c + at, sizeof(Wide), is_there ? 0 : sizeof(Wide));
        } else {
          *to_b = is_there ? Wide(b[at]) : Wide(0), *to_c = is_there ? Wide(c[at]) : Wide(0);
        }
      }
    }
    __pipeline_commit();
  }
};

// A warp's rows of arrays [rows, length] at the positions of a tile. Lanes have theirs as vectors; where these are not
// aligned or not before the end, neighboring lanes read neighbors, and exchange them through shared memory.
template <class Wide, int lanes, int each = 64 / int(sizeof(Wide))>
struct ChannelRows {
  using Tile = ChannelTile<Wide, lanes, each>;
  using Row = typename Tile::Row;
  static constexpr int K = Tile::K, positions = Tile::positions, channels = Tile::channels;
  int64_t first, length, begin, offset;  // the warp's first row; where the lane's positions are
  int count;                             // of rows, of which one after the last has the last one's elements
  bool is_whole;
  Wide* exchange;

  // Of the block's channels from `of_warp`: there may be none.
  __device__ ChannelRows(const SelectiveBlock& block, int of_warp, int part, int64_t length, int64_t begin,
                         bool is_aligned, Wide* exchange)
      : length(length), begin(begin), exchange(exchange) {
    first = block.row + min(of_warp, block.count - 1), count = max(0, min(channels, block.count - of_warp));
    is_whole = __all_sync(~0u, is_aligned && begin + positions <= length);  // the same for all lanes
    offset = (first + near(Tile::channel())) * length + begin + part * K;
  }
  __device__ int near(int c) const { return max(0, min(c, count - 1)); }

  template <class T>
  __device__ void load(const T* x, Wide (&values)[K]) const {
    constexpr int V = std::min(K, 16 / int(sizeof(T)));
    if (is_whole) {
#pragma unroll
      for (int k = 0; k < K; k += V) {
        Vector<T, V> some = baracuda::load<V>(x + offset + k);
#pragma unroll
        for (int i = 0; i < V; ++i) values[k + i] = Wide(some.lane[i]);
      }
      return;
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      const T* row = x + (first + near(c)) * length + begin;
#pragma unroll
      for (int i = 0; i < positions; i += 32) {
        const int p = i + threadIdx.x % 32;
        if (positions >= 32 || p < positions)
          exchange[c * Tile::pitch + Row::slot(p)] = begin + p < length ? Wide(row[p]) : Wide(0);
      }
    }
    __syncwarp();
    Row::read(exchange + Tile::channel() * Tile::pitch, values);
  }
  template <class T>
  __device__ void store(T* x, const Wide (&values)[K]) const {
    constexpr int V = std::min(K, 16 / int(sizeof(T)));
    if (is_whole) {
#pragma unroll
      for (int k = 0; k < K; k += V) {
        Vector<T, V> some;
#pragma unroll
        for (int i = 0; i < V; ++i) some.lane[i] = T(values[k + i]);
        if (Tile::channel() < count) baracuda::store(x + offset + k, some);
      }
      return;
    }
    __syncwarp();
    Row::write(exchange + Tile::channel() * Tile::pitch, values);
    __syncwarp();
#pragma unroll
    for (int c = 0; c < channels; ++c) {
      T* row = x + (first + c) * length + begin;
#pragma unroll
      for (int i = 0; i < positions; i += 32) {
        const int p = i + threadIdx.x % 32;
        if (c < count && (positions >= 32 || p < positions) && begin + p < length)
          row[p] = T(exchange[c * Tile::pitch + Row::slot(p)]);
      }
    }
  }
};

// How a block's shared memory is used, in numbers.
template <class Wide, int lanes>
struct ChannelMemory {
  using Tile = ChannelTile<Wide, lanes>;
  Wide *shared, *exchange, *h, *rates;

  // The address after the last.
  BARACUDA_HD Wide* lay_out(Wide* memory, int64_t states, int warps) {
    auto take = [&](int64_t count) { return memory += count, memory - count; };
    shared = take(2 * Tile::buffer), exchange = take(warps * Tile::exchanged);
    h = take(warps * Tile::channels * states), rates = take(warps * Tile::channels * states);
    return memory;
  }
  static int64_t bytes(int64_t states, int warps) {
    ChannelMemory memory;
    return (memory.lay_out(nullptr, states, warps) - static_cast<Wide*>(nullptr)) * int64_t(sizeof(Wide));
  }
};

__device__ inline void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

template <int lanes, class T>
__global__ void __launch_bounds__(32 * channel_warps, 2)
    selective_channels(SelectiveScan<T> scan, SelectiveBlocks blocks, bool is_aligned, T* y, Accumulator<T>* last,
                       Accumulator<T>* states) {
  using Wide = Accumulator<T>;
  using Tile = ChannelTile<Wide, lanes>;
  using Row = typename Tile::Row;
  constexpr int K = Tile::K, positions = Tile::positions;
  extern __shared__ __align__(16) char memory[];
  const SelectiveShape& shape = scan.shape;
  const int64_t length = shape.length;
  const int count = int(shape.states), warp = uniform_warp();
  const SelectiveBlock block(shape, blocks);
  ChannelMemory<Wide, lanes> near;
  near.lay_out(reinterpret_cast<Wide*>(memory), count, blockDim.x / 32);
  // Threads after the block's last channel have it again, and write nothing.
  const int of_warp = warp * Tile::channels, r = of_warp + Tile::channel();
  const bool is_channel = r < block.count;
  const int64_t row = block.row + min(r, block.count - 1);
  const int64_t channel = scan.channel(row), of_shared = block.shared * count * length;
  const Wide bias = scan.bias[channel], skip = scan.skip[channel];
  Wide *const carry = near.h + r * count, *const rates = near.rates + r * count;
  const int part = lane_of_tile<lanes, Tile::channels>();
  for (int n = part; n < count; n += lanes) {
    carry[n] = scan.state[row * count + n];
    rates[n] = Decay<Wide>::rate(scan.a[channel * count + n]);
  }

  auto stage = [&](int64_t begin, int group, int buffer) {
    const int64_t at = of_shared + group * length;
    if (begin < length && group < count)
      Tile::stage(near.shared + buffer * Tile::buffer, scan.b + at, scan.c + at, min(channel_group, count - group),
                  length, begin, is_aligned);
  };
  int buffer = 0;
  stage(0, 0, 0);
  for (int64_t begin = 0; begin < length; begin += positions) {
    typename Tile::Lane lane(scan, block.sequence, begin);
    const ChannelRows<Wide, lanes> rows(block, of_warp, part, length, begin, is_aligned,
                                        near.exchange + warp * Tile::exchanged);
    Wide values[K];
    rows.load(scan.u, values), rows.load(scan.dt, lane.steps);
    if (lane.first + positions < length)
      prefetch(scan.u + rows.offset + positions), prefetch(scan.dt + rows.offset + positions);
    if (scan.z && lane.inside > 0) prefetch(scan.z + rows.offset);
    lane.total = 0;
    scan.to_steps(lane.steps, bias);
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const Wide step = k < lane.inside ? lane.steps[k] : Wide(0);
      lane.steps[k] = step, lane.inputs[k] = step * values[k], lane.total += step, values[k] *= skip;
    }
    Wide* saved = states + (row * shape.chunks() + lane.first / selective_chunk) * count;
    const bool is_saved = states && is_channel && lane.inside > 0 && lane.first % selective_chunk == 0;

    for (int group = 0; group < count; group += channel_group) {
      const int of_group = min(channel_group, count - group);
      __pipeline_wait_prior(0);
      __syncthreads();  // and all are through with those before
      const Wide* const of_tile = near.shared + buffer * Tile::buffer;
      buffer ^= 1;
      if (group + channel_group < count)
        stage(begin, group + channel_group, buffer);
      else
        stage(begin + positions, 0, buffer);
      // Adds to the values what a state gives; returns it before the lane's positions.
      auto run = [&](int at, auto plain) {
        constexpr bool is_plain = decltype(plain)::value;
        Wide factors[K], added[K], of_c[K], h[1], all[1];
        const Wide before = carry[group + at];
        Row::read(of_tile + at * positions, added);
        lane.template factors<is_plain>(rates[group + at], factors, all[0]);
        h[0] = part == 0 ? before : Wide(0);
#pragma unroll
        for (int k = 0; k < K; ++k) {
          added[k] *= lane.inputs[k];
          h[0] = lane.template next<is_plain>(k, factors[k], h[0], added[k]);
        }
        lane.template scan_forward<lanes>(h, all);
        Wide state = lane.from_before(h[0], 1);
        if (part == 0) state = before;
        __syncwarp();
        if (part == lane.last) carry[group + at] = h[0];
        const Wide first = state;
        Row::read(of_tile + Tile::of_c + at * positions, of_c);
#pragma unroll
        for (int k = 0; k < K; ++k) {
          state = lane.template next<is_plain>(k, factors[k], state, added[k]);
          values[k] += of_c[k] * state;
        }
        return first;
      };
      int at = 0;
      if (lane.is_plain && count % 4 == 0)
        for (; at < of_group; at += 4) {
          Vector<Wide, 4> four;
#pragma unroll
          for (int j = 0; j < 4; ++j) four.lane[j] = run(at + j, std::true_type{});
          if (is_saved) store(saved + group + at, four);
        }
      for (; at < of_group; ++at) {
        Wide one = lane.is_plain ? run(at, std::true_type{}) : run(at, std::false_type{});
        if (is_saved) saved[group + at] = one;
      }
    }

    if (scan.z) {
      Wide z[K];
      rows.load(scan.z, z);
#pragma unroll
      for (int k = 0; k < K; ++k) values[k] *= scan.gate(z[k]);
    }
    rows.store(y, values);
  }
  __syncwarp();
  if (!last || !is_channel) return;
  for (int n = part; n < count; n += lanes) last[row * count + n] = carry[n];
}

// Whether the rows of all arrays begin at multiples of 16 bytes.
template <class T>
bool has_aligned_rows(const SelectiveShape& shape, std::initializer_list<const void*> arrays) {
  uintptr_t addresses = uintptr_t(shape.length * int64_t(sizeof(T)));  // all of them, by their last bits
  for (const void* array : arrays) addresses |= reinterpret_cast<uintptr_t>(array);
  return addresses % 16 == 0;
}

template <int lanes, class T>
Status run_selective_channels(const Executor& executor, const SelectiveScan<T>& scan, T* y, Accumulator<T>* last,
                              Accumulator<T>* states) {
  using Memory = ChannelMemory<Accumulator<T>, lanes>;
  const SelectiveShape& shape = scan.shape;
  // Of many states fewer warps, whose states fit.
  int warps = channel_warps;
  while (Memory::bytes(shape.states, warps) > selective_memory) warps /= 2;
  const int64_t channels = std::min<int64_t>(warps * Memory::Tile::channels, shape.channels_each());
  const SelectiveBlocks blocks{ceil_div(shape.channels_each(), channels), channels};
  const int64_t grid = shape.groups * shape.batches * shape.shared * blocks.tiles;
  if (Status status = check_grid(grid); !status.ok()) return status;
  const int64_t bytes = Memory::bytes(shape.states, warps);
  auto kernel = selective_channels<lanes, T>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  const bool is_aligned = has_aligned_rows<T>(shape, {scan.u, scan.dt, scan.b, scan.c, scan.z, y});
  kernel<<<unsigned(grid), 32 * warps, size_t(bytes), executor.stream>>>(scan, blocks, is_aligned, y, last, states);
  return launched();
}

// Whether there are channels enough for warps that have several, as measured.
inline bool has_many_channels(const SelectiveShape& shape) { return shape.rows() >= 2048; }

template <class T>
Status selective_scan_of_many(const Executor& executor, const SelectiveScan<T>& scan, T* y, Accumulator<T>* last,
                              Accumulator<T>* states) {
  // The fewer lanes a channel has, the fewer steps has their scan, but the fewer warps there are.
  if (scan.shape.rows() < 4224) return run_selective_channels<16>(executor, scan, y, last, states);
  if (scan.shape.length <= 32) return run_selective_channels<2>(executor, scan, y, last, states);
  return run_selective_channels<8>(executor, scan, y, last, states);
}

}  // namespace internal
}  // namespace baracuda
