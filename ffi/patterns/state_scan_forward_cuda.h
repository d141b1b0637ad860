// The state scan's results: the kernel of few channels, whose states teams divide (see state_scan_tile_cuda.h), and the
// choice.
#pragma once

#include "state_scan_channels_cuda.h"

namespace baracuda {
namespace internal {

// How a block's shared memory is used, in numbers.
template <class Wide, int K, bool is_near>
struct ForwardMemory {
  using Row = TileRow<Wide, K>;
  Wide *b, *c, *steps, *inputs, *values, *saved, *h, *rates, *of_channels;

  // The address after the last.
  BARACUDA_HD Wide* lay_out(Wide* memory, int64_t states, int64_t channels) {
    auto take = [&](int64_t count) { return memory += count, memory - count; };
    b = take(is_near ? states * Row::positions : 0), c = take(is_near ? states * Row::positions : 0);
    steps = take(Row::positions), inputs = take(Row::positions), values = take(selective_warps * Row::positions);
    saved = take(Row::chunks * (states + 1)), h = take(channels * states), rates = take(channels * states);
    of_channels = take(2 * channels);  // the bias and D
    return memory;
  }
  static int64_t bytes(int64_t states, int64_t channels) {
    ForwardMemory memory;
    return (memory.lay_out(nullptr, states, channels) - static_cast<Wide*>(nullptr)) * int64_t(sizeof(Wide));
  }
};

template <int K, bool is_near, class T>
__global__ void __launch_bounds__(selective_block)
    selective_forward(SelectiveScan<T> scan, SelectiveBlocks blocks, T* y, Accumulator<T>* last,
                      Accumulator<T>* states) {
  using Wide = Accumulator<T>;
  using Row = TileRow<Wide, K>;
  using States = TileStates<is_near, std::conditional_t<is_near, const Wide, const T>, Wide, K>;
  constexpr int of_thread = Row::of_thread;
  extern __shared__ __align__(16) char memory[];
  const SelectiveShape& shape = scan.shape;
  const int64_t length = shape.length;
  const int count = int(shape.states), warp = threadIdx.x / 32;
  const SelectiveBlock block(shape, blocks);
  ForwardMemory<Wide, K, is_near> near;
  near.lay_out(reinterpret_cast<Wide*>(memory), count, blocks.channels);
  const int64_t channel = scan.channel(block.row), of_shared = block.shared * count * length;
  for (int e = threadIdx.x; e < block.count * count; e += selective_block) {
    near.h[e] = scan.state[block.row * count + e];
    near.rates[e] = Decay<Wide>::rate(scan.a[channel * count + e]);
  }
  for (int r = threadIdx.x; r < block.count; r += selective_block)
    near.of_channels[2 * r] = scan.bias[channel + r], near.of_channels[2 * r + 1] = scan.skip[channel + r];

  for (int64_t begin = 0; begin < length; begin += Row::positions) {
    ThreadPositions<Wide, K> own(block.row, length, begin);
    T next_u[of_thread], next_dt[of_thread], next_z[of_thread];
    auto load_next = [&] {
      own.load(scan.u, next_u), own.load(scan.dt, next_dt);
      if (scan.z) own.load(scan.z, next_z);
    };
    load_next();
    TileLane<Wide, K> lane(scan, block.sequence, begin);
    States b{}, c{};
    __syncthreads();  // all are through with the tile before
    if constexpr (is_near) {
      Row::stage(near.b, near.c, scan.b + of_shared, scan.c + of_shared, count, length, begin);
      b.x = near.b, c.x = near.c;
    } else {
      b = {scan.b + of_shared, length}, c = {scan.c + of_shared, length};
    }
    for (int r = 0; r < block.count; ++r) {
      const Wide bias = near.of_channels[2 * r], skip = near.of_channels[2 * r + 1];
      const int64_t offset = own.offset;
      Wide u[of_thread], gates[of_thread];
#pragma unroll
      for (int i = 0; i < of_thread; ++i) {
        u[i] = Wide(next_u[i]), gates[i] = scan.z ? scan.gate(Wide(next_z[i])) : Wide(1);
        Wide step = scan.step(Wide(next_dt[i]) + bias);
        if (!own.is_there[i]) step = 0;
        own.write(near.steps, i, step), own.write(near.inputs, i, step * u[i]);
      }
      if (r + 1 < block.count) own.offset += length, load_next();
      __syncthreads();

      lane.read_steps(near.steps, near.inputs);
      Wide values[K] = {};
      each_state<2>(count, lane.is_plain, [&](int n, bool is_state, auto pair, auto plain) {
        constexpr int J = decltype(pair)::value;
        constexpr bool is_plain = decltype(plain)::value;
        Wide factors[J][K], added[J][K], h[J], all[J];
#pragma unroll
        for (int j = 0; j < J; ++j) {
          int here = n + j * selective_teams;
          b.read(here, lane, added[j]);
          lane.template factors<is_plain>(near.rates[r * count + here], factors[j], all[j]);
          h[j] = lane.lane == 0 ? near.h[r * count + here] : Wide(0);
#pragma unroll
          for (int k = 0; k < K; ++k) {
            added[j][k] *= lane.inputs[k];
            h[j] = lane.template next<is_plain>(k, factors[j][k], h[j], added[j][k]);
          }
        }
        lane.template scan_forward<selective_lanes>(h, all);
#pragma unroll
        for (int j = 0; j < J; ++j) {
          int here = n + j * selective_teams;
          Wide of_c[K], state = lane.from_before(h[j], 1);
          if (lane.lane == 0) state = near.h[r * count + here];
          __syncwarp();
          if (lane.lane == lane.last && is_state) near.h[r * count + here] = h[j];
          if (lane.lane * K % selective_chunk == 0 && is_state)
            near.saved[lane.lane * K / selective_chunk * (count + 1) + here] = state;
          c.read(here, lane, of_c);
#pragma unroll
          for (int k = 0; k < K; ++k) {
            state = lane.template next<is_plain>(k, factors[j][k], state, added[j][k]);
            if (is_plain || is_state) values[k] += of_c[k] * state;
          }
        }
      });
      Row::write_sum(near.values + warp * Row::positions, values);
      __syncthreads();

#pragma unroll
      for (int i = 0; i < of_thread; ++i) {
        Wide value = own.sum(near.values, i, Row::positions) + skip * u[i];
        if (scan.z) value *= gates[i];
        if (own.is_there[i]) y[offset + i * selective_block] = T(value);
      }
      if (states) {
        int64_t chunk = begin / selective_chunk;
        int numbers = int(min(int64_t(Row::chunks), shape.chunks() - chunk)) * count;
        Wide* to = states + ((block.row + r) * shape.chunks() + chunk) * count;
        for (unsigned e = threadIdx.x; e < numbers; e += selective_block) to[e] = near.saved[e + e / unsigned(count)];
      }
    }
  }
  __syncthreads();
  if (!last) return;
  for (int e = threadIdx.x; e < block.count * count; e += selective_block) last[block.row * count + e] = near.h[e];
}

}  // namespace internal

// y; where they are not null, the last state and the states before each chunk.
template <class T>
Status selective_scan(const Executor& executor, const SelectiveScan<T>& scan, T* y, Accumulator<T>* last,
                      Accumulator<T>* states) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const SelectiveShape& shape = scan.shape;
  if (shape.rows() == 0) return {};
  if (has_many_channels(shape)) return selective_scan_of_many(executor, scan, y, last, states);
  SelectiveBlocks blocks(shape, 3 * 132, 1);
  int64_t grid = shape.groups * shape.batches * shape.shared * blocks.tiles;
  if (Status status = check_grid(grid); !status.ok()) return status;
  auto run = [&](auto positions, auto near) -> Status {
    constexpr int K = decltype(positions)::value;
    constexpr bool is_near = decltype(near)::value;
    int64_t bytes = ForwardMemory<Wide, K, is_near>::bytes(shape.states, blocks.channels);
    auto kernel = selective_forward<K, is_near, T>;
    if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
    kernel<<<unsigned(grid), selective_block, size_t(bytes), executor.stream>>>(scan, blocks, y, last, states);
    return launched();
  };
  // A lane's positions: fewer where most of the tile would be after the end, or large.
  constexpr int K = 64 / int(sizeof(Wide)), few = K / 4;
  using std::integral_constant;
  if (shape.length > 64 && ForwardMemory<Wide, K, true>::bytes(shape.states, blocks.channels) <= selective_memory)
    return run(integral_constant<int, K>{}, std::true_type{});
  if (ForwardMemory<Wide, few, true>::bytes(shape.states, blocks.channels) <= selective_memory)
    return run(integral_constant<int, few>{}, std::true_type{});
  return run(integral_constant<int, few>{}, std::false_type{});
}

}  // namespace baracuda
