// The state scan's gradients of long sequences (see state_scan_tile_cuda.h). Tiles come from the end. A warp has a
// channel at a time, and each lane K neighboring positions of it, so that what is of a position alone and sums over
// states stay in registers. States are computed again, from those that the forward pass saved. What a position gives
// for B and C is added over a block's channels in shared memory. Warps begin with different states and take turns at
// the sums of each: none meets the others within a tile, and all is added in an order that shapes alone decide.
#pragma once

#include "lane_sum_cuda.h"
#include "state_scan_channels_cuda.h"

namespace baracuda {
namespace internal {

// Sums that blocks and rows leave for the second kernels.
template <class Wide>
struct SelectiveSums {
  Wide* shared;  // [groups * batches * shared, tiles, 2, states, length]: of B and C
  Wide* rows;    // [groups, batches, states + 2, channels]: of A, D and the bias
};

// Which warp may add to a state's sums. It sees what the one before has added.
__device__ inline void await_turn(const int* turn, int warp) {
  const unsigned address = unsigned(__cvta_generic_to_shared(turn));
  int now;
  do {
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(now) : "r"(address) : "memory");
  } while (now != warp);
}
__device__ inline void pass_turn(int* turn, int warp) {
  const unsigned address = unsigned(__cvta_generic_to_shared(turn));
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("st.release.cta.shared.s32 [%0], %1;" ::"r"(address), "r"(warp) : "memory");
}

// Adds what the lane `distance` after has, where there is one: the shuffle says whether.
__device__ inline void add_from_after(float& h, float decay, int distance) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .f32 other;\n"
      "shfl.sync.down.b32 other|p, %0, %2, 31, 0xffffffff;\n"
      "@p fma.rn.f32 %0, %1, other, %0;\n}"
      : "+f"(h)
      : "f"(decay), "r"(distance));
}

// A lane's positions, for which there are registers where a multiprocessor has 16 warps; most warps of a block.
inline constexpr int turn_positions = 8, turn_warps = 16;

// How a block's shared memory is used, in numbers.
struct TurnMemory {
  using Tile = ChannelTile<float, 32, turn_positions>;
  // What a warp has of its channel: states before each chunk, later a chunk's part of the rates' cotangents, in rows
  // without conflicts of banks; and rates. Between states lanes exchange elements of rows there.
  static constexpr int chunks = Tile::positions / selective_chunk, pitch = channel_group + 4;
  static constexpr int of_warp = std::max(chunks * pitch + channel_group, Tile::exchanged);
  float *shared, *own, *carry, *of_a, *of_rows;
  int* turns;

  // The address after the last.
  BARACUDA_HD float* lay_out(float* memory, int64_t states, int64_t channels, int warps) {
    auto take = [&](int64_t count) { return memory += count, memory - count; };
    shared = take(2 * Tile::buffer);  // B, C, and the sums of their cotangents
    own = take(warps * of_warp);
    carry = take(channels * states), of_a = take(channels * states), of_rows = take(2 * channels);  // of D and the bias
    turns = reinterpret_cast<int*>(take(channel_group));
    return memory;
  }
  static int64_t bytes(int64_t states, int64_t channels, int warps) {
    TurnMemory memory;
    return (memory.lay_out(nullptr, states, channels, warps) - static_cast<float*>(nullptr)) * int64_t(sizeof(float));
  }
};

template <class T>
__global__ void __launch_bounds__(32 * turn_warps)
    selective_turns(SelectiveScan<T> scan, SelectiveGradients<T> g, SelectiveBlocks blocks,
                    SelectiveSums<Accumulator<T>> sums, bool is_aligned) {
  using Wide = Accumulator<T>;
  static_assert(std::is_same_v<Wide, float>);  // float64 was not measured
  using Memory = TurnMemory;
  using Tile = Memory::Tile;
  using Row = Tile::Row;
  using Lane = Tile::Lane;
  constexpr int K = turn_positions, positions = Tile::positions, V = Row::vector, across = selective_chunk / K;
  extern __shared__ __align__(16) char memory[];
  const SelectiveShape& shape = scan.shape;
  const int64_t length = shape.length;
  const int count = int(shape.states), warp = uniform_warp(), warps = blockDim.x / 32;
  const int next_warp = warp == 0 ? warps - 1 : warp - 1, part = threadIdx.x % 32;
  const SelectiveBlock block(shape, blocks);
  Memory near;
  near.lay_out(reinterpret_cast<Wide*>(memory), count, blocks.channels, warps);
  Wide* const own = near.own + warp * Memory::of_warp;
  Wide *const rates = own + Memory::chunks * Memory::pitch, *const near_saved = own + part / across * Memory::pitch;
  const int64_t block_channel = scan.channel(block.row);
  const bool begins_chunk = part % across == 0;
  const int64_t of_shared = block.shared * count * length;
  Wide* const block_sums = sums.shared + int64_t(blockIdx.x) * 2 * count * length;
  for (int e = threadIdx.x; e < block.count * count; e += blockDim.x)
    near.carry[e] = g.dfinal[block.row * count + e], near.of_a[e] = 0;
  for (int e = threadIdx.x; e < 2 * block.count; e += blockDim.x) near.of_rows[e] = 0;
  for (int e = threadIdx.x; e < Tile::buffer; e += blockDim.x) near.shared[Tile::buffer + e] = 0;

  // Writes a group's sums from a position, and makes them 0.
  auto flush = [&](int64_t begin, int group) {
    const unsigned of_group = min(channel_group, count - group);
    constexpr unsigned vectors = positions / V;
    Wide* const to = block_sums + group * length + begin;
#pragma unroll 2
    for (unsigned e = threadIdx.x; e < of_group * vectors; e += blockDim.x) {
      const int n = e / vectors, p = e % vectors * V;
      auto* from = reinterpret_cast<Vector<Wide, V>*>(near.shared + Tile::buffer + n * positions + Row::slot(p));
#pragma unroll
      for (int kind = 0; kind < 2; ++kind, from += Tile::of_c / V) {
        Wide* at = to + (kind * count + n) * length + p;
        const Vector<Wide, V> some = *from;
        *from = {};
        if (is_aligned && begin + p + V <= length) {
          store(at, some);
        } else {
#pragma unroll
          for (int i = 0; i < V; ++i)
            if (begin + p + i < length) at[i] = some.lane[i];
        }
      }
    }
  };
  // All warps meet: the sums of the tile or group before are written, B and C of this one are copied.
  int64_t flush_begin = -1;
  int flush_group = 0;
  auto turn_over = [&](int64_t begin, int group) {
    const int of_group = min(channel_group, count - group);
    __syncthreads();
    const int64_t at = of_shared + group * length;
    Tile::stage(near.shared, scan.b + at, scan.c + at, of_group, length, begin, is_aligned);
    if (flush_begin >= 0) flush(flush_begin, flush_group);
    flush_begin = begin, flush_group = group;
    // The warp that begins with the state, or with the last one before that any begins with.
    if (int(threadIdx.x) < of_group) near.turns[threadIdx.x] = ((int(threadIdx.x) + 1) * warps - 1) / of_group;
    __pipeline_wait_prior(0);
    __syncthreads();
  };

  for (int64_t tile = (length + positions - 1) / positions; tile-- > 0;) {
    const int64_t begin = tile * positions;
    Lane lane(scan, block.sequence, begin);
    for (int first = 0; first < block.count; first += warps) {
      const int r = first + warp;
      const bool is_channel = r < block.count;  // the same for all lanes
      const int near_r = min(r, block.count - 1);
      const int64_t row = block.row + near_r, channel = block_channel + near_r;
      const Wide bias = scan.bias[channel];
      const ChannelRows<Wide, 32, K> rows(block, r, part, length, begin, is_aligned, own);
      Wide of_y[K], values[K] = {}, of_steps[K] = {}, of_inputs[K] = {};
      Wide reach[5];  // sums of steps over 1, 2, 4 and more lanes from this one
      auto copy_saved = [&](int group) {
        const int of_group = min(channel_group, count - group);
        __syncwarp();
        const int64_t chunk = begin / selective_chunk;
        const int numbers = int(min(int64_t(Memory::chunks), shape.chunks() - chunk)) * of_group;
        const Wide* from = g.states + (row * shape.chunks() + chunk) * count + group;
        if (count == channel_group) {  // vectors are aligned
#pragma unroll
          for (int e = part * V; e < Memory::chunks * channel_group; e += 32 * V)
            if (e < numbers)
              __pipeline_memcpy_async(own + e / channel_group * Memory::pitch + e % channel_group, from + e, 16);
        } else {
          for (unsigned e = part; e < numbers; e += 32) {
            const unsigned c = e / unsigned(of_group), n = e - c * of_group;
            __pipeline_memcpy_async(own + c * Memory::pitch + n, from + int64_t(c) * count + n, sizeof(Wide));
          }
        }
        __pipeline_commit();
        if (part < of_group) rates[part] = Decay<Wide>::rate(scan.a[channel * count + group + part]);
      };
      if (is_channel) {
        Wide z[K];
        rows.load(scan.dt, lane.steps), rows.load(scan.u, lane.inputs), rows.load(g.dy, of_y);
        if (scan.z) rows.load(scan.z, z);
        copy_saved(0);
        const bool has_more = r + warps < block.count;
        if (has_more ? lane.inside > 0 : tile > 0) {
          const int64_t at = rows.offset + (has_more ? warps * length : -(first * length + positions));
          prefetch(scan.dt + at), prefetch(scan.u + at), prefetch(g.dy + at);
          if (scan.z) prefetch(scan.z + at);
          // A chunk's lanes divide its states.
          const int64_t other = row + (has_more ? warps : -first);
          const int64_t chunk = lane.first / selective_chunk - (has_more ? 0 : Memory::chunks);
          prefetch(g.states + (other * shape.chunks() + chunk) * count + part % across * (count / across));
        }
        scan.to_steps(lane.steps, bias);
        if (scan.z) {
#pragma unroll
          for (int k = 0; k < K; ++k) of_y[k] *= scan.gate(z[k]);
        }
        lane.total = 0;
#pragma unroll
        for (int k = 0; k < K; ++k) {
          const Wide step = k < lane.inside ? lane.steps[k] : Wide(0);
          lane.steps[k] = step, lane.inputs[k] *= step, lane.total += step;
        }
        reach[0] = lane.total;
#pragma unroll
        for (int i = 0; i < 4; ++i) reach[i + 1] = reach[i] + lane.from_after(reach[i], 1 << i);
      }

      for (int group = 0; group < count; group += channel_group) {
        const int of_group = min(channel_group, count - group);
        if (is_channel && group > 0) copy_saved(group);
        if (first == 0) {
          turn_over(begin, group);
        } else {
          __pipeline_wait_prior(0);
          __syncwarp();
        }
        Wide* const carries = near.carry + r * count + group;
        auto run = [&](int n, auto plain) {
          constexpr bool is_plain = decltype(plain)::value;
          Wide* const at = near.shared + n * positions;
          const Wide rate = rates[n], after = carries[n];
          Wide of_b[K], of_c[K], factors[K], around[K + 1], all, h[1], decays[1];
          around[0] = begins_chunk && (is_plain || lane.inside > 0) ? near_saved[n] : Wide(0);
          Row::read(at, of_b), Row::read(at + Tile::of_c, of_c);
          lane.template factors<is_plain>(rate, factors, all);
          // The states again: those before the lane's positions come from the other lanes of the chunk.
          h[0] = around[0], decays[0] = all;
#pragma unroll
          for (int k = 0; k < K; ++k)
            h[0] = lane.template next<is_plain>(k, factors[k], h[0], lane.inputs[k] * of_b[k]);
          lane.template scan_forward<across>(h, decays);
          Wide other = lane.from_before(h[0], 1);
          if (!begins_chunk) around[0] = other;
#pragma unroll
          for (int k = 0; k < K; ++k) {
            around[k + 1] = lane.template next<is_plain>(k, factors[k], around[k], lane.inputs[k] * of_b[k]);
            values[k] += of_c[k] * around[k + 1];
          }
          h[0] = part == Lane::last ? after : Wide(0);
#pragma unroll
          for (int k = K - 1; k >= 0; --k) {
            h[0] = (h[0] + of_y[k] * of_c[k]) * factors[k];
            if (!is_plain && lane.is_start(k)) h[0] = 0;
          }
          if constexpr (is_plain) {
#pragma unroll
            for (int i = 0; i < 5; ++i) add_from_after(h[0], Decay<Wide>::factor(rate * reach[i]), 1 << i);
          } else {
            decays[0] = all;
            lane.scan_backward(h, decays);
          }
          Wide dh = lane.from_after(h[0], 1), of_rate = 0;
          if (part == Lane::last) dh = after;
          if (part == 0) carries[n] = h[0];
          await_turn(near.turns + n, warp);
#pragma unroll
          for (int k = K - V; k >= 0; k -= V) {
            Wide* const of_lane = at + Tile::buffer + (k * 32 + part * V);
            auto *db = reinterpret_cast<Vector<Wide, V>*>(of_lane),
                 *dc = reinterpret_cast<Vector<Wide, V>*>(of_lane + Tile::of_c);
            Vector<Wide, V> to_b = *db, to_c = *dc;
#pragma unroll
            for (int i = V - 1; i >= 0; --i) {
              const int at = k + i;
              dh += of_y[at] * of_c[at];
              to_b.lane[i] += dh * lane.inputs[at], to_c.lane[i] += of_y[at] * around[at + 1];
              of_inputs[at] += dh * of_b[at];
              dh = !is_plain && lane.is_start(at) ? Wide(0) : dh * factors[at];
              const Wide decayed = dh * around[at];
              of_rate += lane.steps[at] * decayed, of_steps[at] += rate * decayed;
            }
            *db = to_b, *dc = to_c;
          }
          pass_turn(near.turns + n, next_warp);
          of_rate = sum_of_lanes<across>(of_rate);
          if (begins_chunk) near_saved[n] = of_rate;
        };
        auto go_round = [&](auto body) {
          int n = warp * of_group / warps;
#pragma unroll 1
          for (int left = of_group; left > 0; --left) {
            body(n);
            if (++n == of_group) n = 0;
          }
        };
        if (!is_channel) {
          go_round([&](int n) { await_turn(near.turns + n, warp), pass_turn(near.turns + n, next_warp); });
          continue;
        }
        if (lane.is_plain)
          go_round([&](int n) { run(n, std::true_type{}); });
        else
          go_round([&](int n) { run(n, std::false_type{}); });
        __syncwarp();
        const int n = part % channel_group, half = part / channel_group;
        Wide of_a = 0;
#pragma unroll
        for (int c = 0; c < Memory::chunks / 2; ++c) of_a += own[(half * (Memory::chunks / 2) + c) * Memory::pitch + n];
        of_a += __shfl_xor_sync(~0u, of_a, channel_group);
        if (part < of_group) near.of_a[r * count + group + n] += of_a;
      }
      if (!is_channel) continue;

      // What the steps came from is read again.
      Wide raw[K], u[K], dy[K], z[K], of_skip = 0, of_bias = 0;
      const Wide skip = scan.skip[channel];
      rows.load(scan.dt, raw), rows.load(scan.u, u);
      if (scan.z) rows.load(scan.z, z), rows.load(g.dy, dy);
      if (scan.z) {
#pragma unroll
        for (int k = 0; k < K; ++k) dy[k] *= scan.gate_slope(z[k]) * (values[k] + skip * u[k]);
      }
      scan.to_step_slopes(raw, bias);
#pragma unroll
      for (int k = 0; k < K; ++k) {
        const Wide of_raw = (of_steps[k] * Decay<Wide>::unit() + u[k] * of_inputs[k]) * raw[k];
        if (k < lane.inside) of_bias += of_raw, of_skip += of_y[k] * u[k];
        raw[k] = of_raw, u[k] = lane.steps[k] * of_inputs[k] + of_y[k] * skip;
      }
      rows.store(g.ddt, raw), rows.store(g.du, u);
      if (scan.z) rows.store(g.dz, dy);
      of_skip = sum_of_lanes(of_skip), of_bias = sum_of_lanes(of_bias);
      if (part == 0) near.of_rows[2 * r] += of_skip, near.of_rows[2 * r + 1] += of_bias;
    }
  }
  __syncthreads();
  if (flush_begin >= 0) flush(flush_begin, flush_group);
  Wide* of_rows =
      sums.rows + block.sequence * (count + 2) * shape.channels + block.row - block.sequence * shape.channels;
  for (int e = threadIdx.x; e < block.count * count; e += blockDim.x) g.dstate[block.row * count + e] = near.carry[e];
  for (int r = threadIdx.x; r < block.count; r += blockDim.x) {
    for (int n = 0; n < count; ++n) of_rows[n * shape.channels + r] = near.of_a[r * count + n];
    for (int which = 0; which < 2; ++which) of_rows[(count + which) * shape.channels + r] = near.of_rows[2 * r + which];
  }
}

template <class T>
Status run_selective_turns(const Executor& executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& g,
                           const SelectiveBlocks& blocks, const SelectiveSums<float>& sums, int64_t grid, int warps,
                           bool is_aligned) {
  const int64_t bytes = TurnMemory::bytes(scan.shape.states, blocks.channels, warps);
  auto kernel = selective_turns<T>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<unsigned(grid), 32 * warps, size_t(bytes), executor.stream>>>(scan, g, blocks, sums, is_aligned);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
