// The state scan's gradients (see state_scan_tile_cuda.h), and the choice: warps that take turns
// (state_scan_turns_cuda.h), or teams. Tiles come from the end. In each the states are computed again, from those that
// the forward pass saved. What a position gives for B and C is added over a block's channels in shared memory, where
// each sum has one lane; blocks write their sums, and a second kernel adds these. All is added in an order that shapes
// alone decide.
#pragma once

#include <cuda_pipeline.h>

#include "state_scan_turns_cuda.h"

namespace baracuda {
namespace internal {

// How a block's shared memory is used, in numbers.
template <class Wide, int K, bool is_near>
struct BackwardMemory {
  using Row = TileRow<Wide, K>;
  Wide *b, *c, *db, *dc, *steps, *inputs, *dy, *values, *saved, *carry, *rates, *of_a, *of_rows, *of_channels;

  // The address after the last.
  BARACUDA_HD Wide* lay_out(Wide* memory, int64_t states, int64_t channels) {
    auto take = [&](int64_t count) { return memory += count, memory - count; };
    const int64_t of_tile = is_near ? states * Row::positions : 0;
    b = take(of_tile), c = take(of_tile), db = take(of_tile), dc = take(of_tile);
    steps = take(Row::positions), inputs = take(Row::positions), dy = take(Row::positions);
    values = take(3 * selective_warps * Row::positions);  // [warps][of the step, of the input, y][positions]
    saved = take(2 * Row::chunks * (states + 1));         // of two channels
    carry = take(channels * states), rates = take(channels * states), of_a = take(channels * states);
    of_rows = take(channels * selective_warps * 2), of_channels = take(2 * channels);  // the bias and D
    return memory;
  }
  static int64_t bytes(int64_t states, int64_t channels) {
    BackwardMemory memory;
    return (memory.lay_out(nullptr, states, channels) - static_cast<Wide*>(nullptr)) * int64_t(sizeof(Wide));
  }
};

template <int K, bool is_near, class T>
__global__ void __launch_bounds__(selective_block)
    selective_backward(SelectiveScan<T> scan, SelectiveGradients<T> g, SelectiveBlocks blocks,
                       SelectiveSums<Accumulator<T>> sums) {
  using Wide = Accumulator<T>;
  using Row = TileRow<Wide, K>;
  using States = TileStates<is_near, std::conditional_t<is_near, const Wide, const T>, Wide, K>;
  using Sums = TileStates<is_near, Wide, Wide, K>;
  constexpr int of_thread = Row::of_thread;
  extern __shared__ __align__(16) char memory[];
  const SelectiveShape& shape = scan.shape;
  const int64_t length = shape.length;
  const int count = int(shape.states), warp = threadIdx.x / 32, stride = count + 1;
  const SelectiveBlock block(shape, blocks);
  BackwardMemory<Wide, K, is_near> near;
  near.lay_out(reinterpret_cast<Wide*>(memory), count, blocks.channels);
  const int64_t channel = scan.channel(block.row), of_shared = block.shared * count * length;
  Wide* block_sums = sums.shared + int64_t(blockIdx.x) * 2 * count * length;
  for (int e = threadIdx.x; e < block.count * count; e += selective_block) {
    near.carry[e] = g.dfinal[block.row * count + e];
    near.rates[e] = Decay<Wide>::rate(scan.a[channel * count + e]);
    near.of_a[e] = 0;
  }
  for (int e = threadIdx.x; e < block.count * selective_warps * 2; e += selective_block) near.of_rows[e] = 0;
  for (int e = threadIdx.x; is_near && e < 2 * count * Row::positions; e += selective_block) near.db[e] = 0;
  for (int r = threadIdx.x; r < block.count; r += selective_block)
    near.of_channels[2 * r] = scan.bias[channel + r], near.of_channels[2 * r + 1] = scan.skip[channel + r];

  for (int64_t tile = (length + Row::positions - 1) / Row::positions; tile-- > 0;) {
    const int64_t begin = tile * Row::positions;
    ThreadPositions<Wide, K> own(block.row, length, begin);
    T next_u[of_thread], next_dt[of_thread], next_dy[of_thread], next_z[of_thread];
    auto load_next = [&] {
      own.load(scan.u, next_u), own.load(scan.dt, next_dt), own.load(g.dy, next_dy);
      if (scan.z) own.load(scan.z, next_z);
    };
    auto copy_saved = [&](int r) {
      int64_t chunk = begin / selective_chunk;
      int numbers = int(min(int64_t(Row::chunks), shape.chunks() - chunk)) * count;
      const Wide* from = g.states + ((block.row + r) * shape.chunks() + chunk) * count;
      Wide* to = near.saved + r % 2 * Row::chunks * stride;
      for (unsigned e = threadIdx.x; e < numbers; e += selective_block)
        __pipeline_memcpy_async(to + e + e / unsigned(count), from + e, sizeof(Wide));
      __pipeline_commit();
    };
    load_next();
    __syncthreads();  // all are through with the tile before
    copy_saved(0);
    TileLane<Wide, K> lane(scan, block.sequence, begin);
    States b{}, c{};
    Sums db{}, dc{};
    if constexpr (is_near) {
      Row::stage(near.b, near.c, scan.b + of_shared, scan.c + of_shared, count, length, begin);
      b.x = near.b, c.x = near.c, db.x = near.db, dc.x = near.dc;
    } else {
      b = {scan.b + of_shared, length}, c = {scan.c + of_shared, length};
      db = {block_sums, length}, dc = {block_sums + count * length, length};
    }
    for (int r = 0; r < block.count; ++r) {
      const Wide bias = near.of_channels[2 * r], skip = near.of_channels[2 * r + 1];
      const int64_t offset = own.offset;
      Wide u[of_thread], steps[of_thread], step_slopes[of_thread], dy[of_thread], of_gates[of_thread];
#pragma unroll
      for (int i = 0; i < of_thread; ++i) {
        Wide raw = Wide(next_dt[i]) + bias;
        u[i] = Wide(next_u[i]), dy[i] = Wide(next_dy[i]), of_gates[i] = 0;
        steps[i] = scan.step(raw), step_slopes[i] = scan.step_slope(raw);
        if (!own.is_there[i]) steps[i] = 0;
        if (scan.z) {
          Wide z = Wide(next_z[i]);
          of_gates[i] = dy[i] * scan.gate_slope(z), dy[i] *= scan.gate(z);
        }
        own.write(near.steps, i, steps[i]), own.write(near.inputs, i, steps[i] * u[i]), own.write(near.dy, i, dy[i]);
      }
      if (r + 1 < block.count) own.offset += length, load_next();
      __pipeline_wait_prior(0);
      __syncthreads();
      if (r + 1 < block.count) copy_saved(r + 1);

      lane.read_steps(near.steps, near.inputs);
      Wide of_y[K], values[K] = {}, of_steps[K] = {}, of_inputs[K] = {};
      Row::read(near.dy, of_y);
      const Wide* saved = near.saved + r % 2 * Row::chunks * stride + lane.lane * K / selective_chunk * stride;
      const bool has_saved = lane.lane * K % selective_chunk == 0;
      each_state<1>(count, lane.is_plain, [&](int n, bool is_state, auto, auto plain) {
        constexpr bool is_plain = decltype(plain)::value;
        const Wide rate = near.rates[r * count + n];
        Wide of_b[K], of_c[K], factors[K], around[K + 1], all, h[1], decays[1];
        b.read(n, lane, of_b), c.read(n, lane, of_c);
        lane.template factors<is_plain>(rate, factors, all);
        // The states again: where a chunk has several lanes, those before the lane's positions come from the others.
        around[0] = has_saved && lane.inside > 0 ? saved[n] : Wide(0);
        if constexpr (K < selective_chunk) {
          h[0] = around[0], decays[0] = all;
#pragma unroll
          for (int k = 0; k < K; ++k)
            h[0] = lane.template next<is_plain>(k, factors[k], h[0], lane.inputs[k] * of_b[k]);
          lane.template scan_forward<selective_chunk / K>(h, decays);
          Wide other = lane.from_before(h[0], 1);
          if (!has_saved) around[0] = other;
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
          around[k + 1] = lane.template next<is_plain>(k, factors[k], around[k], lane.inputs[k] * of_b[k]);
          if (is_plain || is_state) values[k] += of_c[k] * around[k + 1];
        }
        h[0] = lane.lane == lane.last ? near.carry[r * count + n] : Wide(0), decays[0] = all;
#pragma unroll
        for (int k = K - 1; k >= 0; --k) {
          h[0] = (h[0] + of_y[k] * of_c[k]) * factors[k];
          if (!is_plain && lane.is_start(k)) h[0] = 0;
        }
        lane.scan_backward(h, decays);
        Wide carry = lane.from_after(h[0], 1), of_a = 0;
        if (lane.lane == lane.last) carry = near.carry[r * count + n];
        __syncwarp();
        if (lane.lane == 0 && is_state) near.carry[r * count + n] = h[0];
        Wide to_b[K] = {}, to_c[K] = {};
        if (is_near || r > 0) db.read(n, lane, to_b), dc.read(n, lane, to_c);
#pragma unroll
        for (int k = K - 1; k >= 0; --k) {
          const bool is_start = !is_plain && lane.is_start(k);
          Wide kept = is_start ? Wide(0) : factors[k] * around[k];
          StateGradient<Wide> state(kept, of_b[k], of_c[k], of_y[k], carry);
          of_a += lane.steps[k] * state.decayed;
          if (is_plain || is_state) of_steps[k] += rate * state.decayed, of_inputs[k] += state.of_input;
          to_b[k] += state.dh * lane.inputs[k], to_c[k] += of_y[k] * around[k + 1];
          carry = is_start ? Wide(0) : state.dh * factors[k];
        }
        if (is_state) db.write(n, lane, to_b), dc.write(n, lane, to_c);
        of_a = sum_of_lanes<selective_lanes>(of_a);
        if (lane.lane == 0 && is_state) near.of_a[r * count + n] += of_a;
      });
      Wide* of_warp = near.values + warp * 3 * Row::positions;
      Row::write_sum(of_warp, of_steps);
      Row::write_sum(of_warp + Row::positions, of_inputs);
      Row::write_sum(of_warp + 2 * Row::positions, values);
      __syncthreads();

      Wide of_skip = 0, of_bias = 0;
#pragma unroll
      for (int i = 0; i < of_thread; ++i) {
        constexpr int apart = 3 * Row::positions;
        Wide of_step = own.sum(near.values, i, apart), of_input = own.sum(near.values + Row::positions, i, apart);
        Wide value = own.sum(near.values + 2 * Row::positions, i, apart);
        Wide raw = (of_step * Decay<Wide>::unit() + u[i] * of_input) * step_slopes[i];
        if (!own.is_there[i]) continue;
        int64_t at = offset + i * selective_block;
        g.ddt[at] = T(raw), g.du[at] = T(steps[i] * of_input + dy[i] * skip);
        if (scan.z) g.dz[at] = T(of_gates[i] * (value + skip * u[i]));
        of_bias += raw, of_skip += dy[i] * u[i];
      }
      of_skip = sum_of_lanes(of_skip), of_bias = sum_of_lanes(of_bias);
      if (threadIdx.x % 32 == 0) {
        Wide* of_row = near.of_rows + (r * selective_warps + warp) * 2;
        of_row[0] += of_skip, of_row[1] += of_bias;
      }
    }
    // Those of B and of C are neighbors.
    if constexpr (is_near) Row::flush(near.db, block_sums, 2 * count, length, begin);
  }
  __syncthreads();
  Wide* of_rows =
      sums.rows + block.sequence * (count + 2) * shape.channels + block.row - block.sequence * shape.channels;
  for (int e = threadIdx.x; e < block.count * count; e += selective_block)
    g.dstate[block.row * count + e] = near.carry[e];
  for (int r = threadIdx.x; r < block.count; r += selective_block) {
    for (int n = 0; n < count; ++n) of_rows[n * shape.channels + r] = near.of_a[r * count + n];
    for (int which = 0; which < 2; ++which) {
      Wide total = 0;
      for (int w = 0; w < selective_warps; ++w) total += near.of_rows[(r * selective_warps + w) * 2 + which];
      of_rows[(count + which) * shape.channels + r] = total;
    }
  }
}

// The gradients of B and C, of the blocks' sums in order.
template <class T>
__global__ void __launch_bounds__(selective_block)
    selective_shared(SelectiveShape shape, SelectiveBlocks blocks, SelectiveSums<Accumulator<T>> sums, T* db, T* dc) {
  int64_t size = shape.states * shape.length, all = shape.groups * shape.batches * shape.shared * 2 * size;
  int64_t index = int64_t(blockIdx.x) * selective_block + threadIdx.x;
  if (index >= all) return;
  int64_t of_all = index / (2 * size), at = index - of_all * 2 * size, kind = at / size;
  const Accumulator<T>* from = sums.shared + of_all * blocks.tiles * 2 * size + at;
  Accumulator<T> total = 0;
#pragma unroll 4
  for (int64_t tile = 0; tile < blocks.tiles; ++tile) total += from[tile * 2 * size];
  (kind ? dc : db)[of_all * size + at - kind * size] = T(total);
}

// Those of A, D and the bias, of the sequences' sums in order.
template <class Wide>
__global__ void __launch_bounds__(selective_block)
    selective_rows(SelectiveShape shape, SelectiveSums<Wide> sums, Wide* da, Wide* dskip, Wide* dbias) {
  int64_t size = (shape.states + 2) * shape.channels;
  int64_t index = int64_t(blockIdx.x) * selective_block + threadIdx.x;
  if (index >= shape.groups * size) return;
  int64_t group = index / size, at = index - group * size, n = at / shape.channels, channel = at - n * shape.channels;
  Wide total = 0;
#pragma unroll 4
  for (int64_t k = 0; k < shape.batches; ++k) total += sums.rows[(group * shape.batches + k) * size + at];
  channel += group * shape.channels;
  if (n < shape.states)
    da[channel * shape.states + n] = total;
  else
    (n == shape.states ? dskip : dbias)[channel] = total;
}

}  // namespace internal

template <class T>
Status selective_scan_backward(Executor executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& g) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const SelectiveShape& shape = scan.shape;
  SelectiveBlocks blocks(shape, 2 * 132, 16);
  int64_t all = shape.groups * shape.batches * shape.shared, grid = all * blocks.tiles;
  SelectiveSums<Wide> sums{executor.scratch<Wide>(grid * 2 * shape.states * shape.length),
                           executor.scratch<Wide>(shape.rows() * (shape.states + 2))};
  if (!sums.shared || !sums.rows) return small_workspace;
  int64_t elements = all * 2 * shape.states * shape.length,
          of_rows = shape.groups * (shape.states + 2) * shape.channels;
  for (int64_t some : {grid, ceil_div(elements, selective_block), ceil_div(of_rows, selective_block)})
    if (Status status = check_grid(some); !status.ok()) return status;
  auto run = [&](auto positions, auto near) -> Status {
    constexpr int K = decltype(positions)::value;
    constexpr bool is_near = decltype(near)::value;
    int64_t bytes = BackwardMemory<Wide, K, is_near>::bytes(shape.states, blocks.channels);
    auto kernel = selective_backward<K, is_near, T>;
    if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
    kernel<<<unsigned(grid), selective_block, size_t(bytes), executor.stream>>>(scan, g, blocks, sums);
    return launched();
  };
  // As in the forward pass, of float64 fewer, for which there are registers.
  constexpr int K = sizeof(Wide) == 4 ? 16 : 4, few = sizeof(Wide) == 4 ? 4 : 2;
  using std::integral_constant;
  auto run_some = [&]() -> Status {
    if (shape.rows() == 0) return {};
    if constexpr (sizeof(Wide) == 4) {
      // A group of states is all, or a warp has one channel.
      const bool is_small = grid <= 132, is_one_group = shape.states <= channel_group;
      const int warps = (is_small || !is_one_group) && blocks.channels > turn_warps / 2 ? turn_warps : turn_warps / 2;
      const bool is_aligned =
          has_aligned_rows<T>(shape, {scan.u, scan.dt, scan.b, scan.c, scan.z, g.dy, g.du, g.ddt, g.dz, sums.shared});
      // As measured: where tiles are whole; not of many channels with 16 states whose rows are not aligned.
      if (shape.states > 0 && shape.length >= TurnMemory::Tile::positions &&
          (is_aligned || is_small || !is_one_group) &&
          TurnMemory::bytes(shape.states, blocks.channels, warps) <= selective_memory)
        return run_selective_turns(executor, scan, g, blocks, sums, grid, warps, is_aligned);
    }
    if (shape.length > 64 && BackwardMemory<Wide, K, true>::bytes(shape.states, blocks.channels) <= selective_memory)
      return run(integral_constant<int, K>{}, std::true_type{});
    if (BackwardMemory<Wide, few, true>::bytes(shape.states, blocks.channels) <= selective_memory)
      return run(integral_constant<int, few>{}, std::true_type{});
    return run(integral_constant<int, few>{}, std::false_type{});
  };
  if (Status status = run_some(); !status.ok()) return status;
  if (elements > 0)
    selective_shared<T><<<unsigned(ceil_div(elements, selective_block)), selective_block, 0, executor.stream>>>(
        shape, blocks, sums, g.db, g.dc);
  if (of_rows > 0)
    selective_rows<Wide><<<unsigned(ceil_div(of_rows, selective_block)), selective_block, 0, executor.stream>>>(
        shape, sums, g.da, g.dskip, g.dbias);
  return launched();
}

}  // namespace baracuda
