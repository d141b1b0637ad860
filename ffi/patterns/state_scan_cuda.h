// The state scan pattern on a CUDA grid. A team of `lanes` lanes has a channel of a sequence and walks it in chunks,
// each lane with S of the states in registers. What is of a position alone, such as its step, is computed by one lane
// of the team, which sends it to the others.
//
// Backward the chunks come from the end. Each begins with the states that the forward pass saved, computes those
// between again, and keeps what was decayed of them in registers. What a position gives for B and C is added over the
// channels of a warp, by halving, and over the warps of a block, in shared memory; blocks write their sums, and a
// second kernel adds these. All is added in an order that shapes alone decide.
#pragma once

#include <algorithm>

#include "../kernels/selective_scan.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int selective_block = 128, selective_backward_block = 256;

// A lane's part of a chunk: P positions, from the first of the lane, and S states.
template <class T, int lanes, int S>
struct Team {
  using Wide = Accumulator<T>;
  static constexpr int P = lanes < selective_chunk ? selective_chunk / lanes : 1;
  // Positions are read by fours where rows of x, B and C are aligned.
  static constexpr int quarter = 4;

  const SelectiveScan<T>& scan;
  int64_t row, sequence, channel, shared;
  int lane;
  Wide rates[S];

  __device__ Team(const SelectiveScan<T>& scan, int64_t row, int lane)
      : scan(scan),
        row(row),
        sequence(scan.sequence(row)),
        channel(scan.channel(row)),
        shared(scan.shared(row)),
        lane(lane) {
#pragma unroll
    for (int i = 0; i < S; ++i)
      rates[i] = is_state(i) ? Decay<Wide>::rate(scan.a[channel * scan.shape.states + state(i)]) : Wide(0);
  }
  __device__ int64_t state(int i) const { return lane * S + i; }
  __device__ bool is_state(int i) const { return state(i) < scan.shape.states; }

  // x of the lane's positions of a chunk, 0 after the end.
  template <bool aligned>
  __device__ void load_positions(const T* x, int64_t begin, T (&values)[P]) const {
    int64_t first = begin + lane * P;
    const T* from = x + row * scan.shape.length + first;
    bool is_mine = lane * P < selective_chunk;
    if constexpr (aligned && P == quarter) {
      Vector<T, P> vector{};
      if (first < scan.shape.length) vector = load<P>(from);
#pragma unroll
      for (int p = 0; p < P; ++p) values[p] = vector.lane[p];
    } else {
#pragma unroll
      for (int p = 0; p < P; ++p) values[p] = is_mine && first + p < scan.shape.length ? from[p] : T(Wide(0));
    }
  }
  template <bool aligned>
  __device__ void store_positions(T* x, int64_t begin, const Wide (&values)[P]) const {
    int64_t first = begin + lane * P;
    T* to = x + row * scan.shape.length + first;
    if constexpr (aligned && P == quarter) {
      Vector<T, P> vector;
#pragma unroll
      for (int p = 0; p < P; ++p) vector.lane[p] = T(values[p]);
      if (first < scan.shape.length) store<P>(to, vector);
    } else {
#pragma unroll
      for (int p = 0; p < P; ++p)
        if (lane * P < selective_chunk && first + p < scan.shape.length) to[p] = T(values[p]);
    }
  }
  // B or C of the lane's states at four positions.
  template <bool aligned>
  __device__ void load_states(const T* x, int64_t first, T (&values)[S][quarter]) const {
#pragma unroll
    for (int i = 0; i < S; ++i) {
      const T* from = x + (shared * scan.shape.states + state(i)) * scan.shape.length + first;
      if constexpr (aligned) {
        Vector<T, quarter> vector{};
        if (is_state(i) && first < scan.shape.length) vector = load<quarter>(from);
#pragma unroll
        for (int k = 0; k < quarter; ++k) values[i][k] = vector.lane[k];
      } else {
#pragma unroll
        for (int k = 0; k < quarter; ++k)
          values[i][k] = is_state(i) && first + k < scan.shape.length ? from[k] : T(Wide(0));
      }
    }
  }
  __device__ uint32_t load_starts(int64_t begin) const {
    uint32_t bits = 0;
    if (!scan.starts) return bits;
#pragma unroll
    for (int s = 0; s < selective_chunk; ++s)
      bits |= uint32_t(begin + s < scan.shape.length && scan.is_start(sequence, begin + s)) << s;
    return bits;
  }

  // Of the position s of a chunk, from the lane that has it.
  static __device__ Wide sent(const Wide (&values)[P], int s) { return __shfl_sync(~0u, values[s % P], s / P, lanes); }
  // Keeps the value in the lane that has position s.
  __device__ void keep(Wide (&values)[P], int s, Wide value) const {
    if (lane == s / P) values[s % P] = value;
  }
  // The sum over the team, in all of its lanes.
  static __device__ Wide sum(Wide value) {
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance, lanes);
    return value;
  }

  __device__ void load_h(const Wide* from, Wide (&h)[S]) const {
#pragma unroll
    for (int i = 0; i < S; ++i) h[i] = is_state(i) ? from[state(i)] : Wide(0);
  }
  __device__ void store_h(Wide* to, const Wide (&h)[S]) const {
#pragma unroll
    for (int i = 0; i < S; ++i)
      if (is_state(i)) to[state(i)] = h[i];
  }
};

template <int lanes, int S, bool aligned, class T>
__global__ void __launch_bounds__(selective_block)
    selective_forward(SelectiveScan<T> scan, T* y, Accumulator<T>* last, Accumulator<T>* states) {
  using Wide = Accumulator<T>;
  using Lane = Team<T, lanes, S>;
  constexpr int P = Lane::P, quarter = Lane::quarter, quarters = selective_chunk / quarter;
  const SelectiveShape& shape = scan.shape;
  int64_t row = int64_t(blockIdx.x) * (selective_block / lanes) + threadIdx.x / lanes;
  bool is_row = row < shape.rows();  // the others' lanes take part in what their warp sends, of the last row
  Lane team(scan, is_row ? row : shape.rows() - 1, threadIdx.x % lanes);
  const Wide bias = scan.bias[team.channel], skip = scan.skip[team.channel];
  Wide h[S];
  team.load_h(scan.state + team.row * shape.states, h);
  T next_u[P], next_dt[P], next_z[P], next_b[S][quarter], next_c[S][quarter];
  auto load_next = [&](int64_t begin) {
    team.template load_positions<aligned>(scan.u, begin, next_u);
    team.template load_positions<aligned>(scan.dt, begin, next_dt);
    if (scan.z) team.template load_positions<aligned>(scan.z, begin, next_z);
  };
  auto load_next_states = [&](int64_t first) {
    team.template load_states<aligned>(scan.b, first, next_b);
    team.template load_states<aligned>(scan.c, first, next_c);
  };
  load_next(0), load_next_states(0);
  for (int64_t begin = 0; begin < shape.length; begin += selective_chunk) {
    int count = int(min(int64_t(selective_chunk), shape.length - begin));
    Wide u[P], steps[P], inputs[P], gates[P], results[P] = {};
#pragma unroll
    for (int p = 0; p < P; ++p) {
      u[p] = Wide(next_u[p]), steps[p] = scan.step(Wide(next_dt[p]) + bias), inputs[p] = steps[p] * u[p];
      gates[p] = scan.z ? scan.gate(Wide(next_z[p])) : Wide(1);
    }
    if (states && is_row) team.store_h(states + (row * shape.chunks() + begin / selective_chunk) * shape.states, h);
    load_next(begin + selective_chunk);
    uint32_t starts = team.load_starts(begin);
#pragma unroll
    for (int q = 0; q < quarters; ++q) {
      Wide b[S][quarter], c[S][quarter];
#pragma unroll
      for (int i = 0; i < S; ++i)
#pragma unroll
        for (int k = 0; k < quarter; ++k) b[i][k] = Wide(next_b[i][k]), c[i][k] = Wide(next_c[i][k]);
      load_next_states(begin + (q + 1) * quarter);
#pragma unroll
      for (int k = 0; k < quarter; ++k) {
        int s = q * quarter + k;
        if (s >= count) continue;
        Wide step = Lane::sent(steps, s), input = Lane::sent(inputs, s), value = 0;
        bool is_start = starts >> s & 1;
#pragma unroll
        for (int i = 0; i < S; ++i) {
          Wide kept = is_start ? Wide(0) : Decay<Wide>::factor(step * team.rates[i]) * h[i];
          h[i] = kept + input * b[i][k];
          value += c[i][k] * h[i];
        }
        team.keep(results, s, Lane::sum(value));
      }
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      results[p] += skip * u[p];
      if (scan.z) results[p] *= gates[p];
    }
    if (is_row) team.template store_positions<aligned>(y, begin, results);
  }
  if (last && is_row) team.store_h(last + row * shape.states, h);
}

// Sums of `count` values over the teams of a warp: each step halves what a lane has of them. At the end it has those
// from the one that is returned.
template <int lanes, int count, int distance, class Wide>
__device__ int sum_over_teams(Wide (&values)[count]) {
  if constexpr (distance < lanes) {
    return 0;
  } else {
    constexpr int half = count / 2;
    static_assert(half > 0);
    bool is_upper = threadIdx.x & distance;
    Wide kept[half];
#pragma unroll
    for (int i = 0; i < half; ++i) {
      Wide sent = is_upper ? values[i] : values[i + half];
      kept[i] = (is_upper ? values[i + half] : values[i]) + __shfl_xor_sync(~0u, sent, distance);
    }
    int first = sum_over_teams<lanes, half, distance / 2>(kept);
#pragma unroll
    for (int i = 0; i < half; ++i) values[i] = kept[i];
    return first + (is_upper ? half : 0);
  }
}

// Sums that blocks and rows leave for the second kernels.
template <class Wide>
struct SelectiveSums {
  Wide* shared;  // [groups * batches * shared, tiles, 2, states, length]: of B and C
  Wide* rows;    // [groups, batches, states + 2, channels]: of A, D and the bias
  int64_t tiles;
};

// A block has a tile of channels that share B and C.
template <int lanes, int S, bool aligned, class T>
__global__ void __launch_bounds__(selective_backward_block)
    selective_backward(SelectiveScan<T> scan, SelectiveGradients<T> g, SelectiveSums<Accumulator<T>> sums) {
  using Wide = Accumulator<T>;
  using Lane = Team<T, lanes, S>;
  constexpr int P = Lane::P, quarter = Lane::quarter, quarters = selective_chunk / quarter;
  constexpr int warps = selective_backward_block / 32, teams = 32 / lanes, left = 2 * S / teams;
  // Positions whose sums are in shared memory at once.
  constexpr int all_states = lanes * S, batch = 512 / (2 * all_states) > 0 ? 512 / (2 * all_states) : 1;
  static_assert(selective_chunk % batch == 0);
  __shared__ Wide of_warps[warps][batch][2 * all_states];
  const SelectiveShape& shape = scan.shape;
  int64_t of_all = int64_t(blockIdx.x) / sums.tiles, tile = int64_t(blockIdx.x) - of_all * sums.tiles;
  int64_t sequence = of_all / shape.shared, each = shape.channels_each();
  int64_t within = tile * (selective_backward_block / lanes) + threadIdx.x / lanes;
  bool is_row = within < each;
  int64_t row = sequence * shape.channels + (of_all - sequence * shape.shared) * each + (is_row ? within : each - 1);
  int warp = threadIdx.x / 32;
  Lane team(scan, row, threadIdx.x % lanes);
  const Wide bias = scan.bias[team.channel], skip = scan.skip[team.channel];
  Wide carry[S], of_a[S] = {}, of_skip = 0, of_bias = 0;
  team.load_h(g.dfinal + row * shape.states, carry);
  for (int64_t chunk = shape.chunks(); chunk-- > 0;) {
    int64_t begin = chunk * selective_chunk;
    int count = int(min(int64_t(selective_chunk), shape.length - begin));
    uint32_t starts = team.load_starts(begin);
    Wide u[P], raws[P], steps[P], inputs[P], z[P], dy[P], dz[P] = {}, values[P] = {};
    {
      T of_u[P], of_dt[P], of_z[P], of_y[P];
      team.template load_positions<aligned>(scan.u, begin, of_u);
      team.template load_positions<aligned>(scan.dt, begin, of_dt);
      team.template load_positions<aligned>(g.dy, begin, of_y);
      if (scan.z) team.template load_positions<aligned>(scan.z, begin, of_z);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        u[p] = Wide(of_u[p]), raws[p] = Wide(of_dt[p]) + bias, steps[p] = scan.step(raws[p]),
        inputs[p] = steps[p] * u[p];
        dy[p] = Wide(of_y[p]);
        z[p] = scan.z ? Wide(of_z[p]) : Wide(0);
      }
    }
    // The states again: what is kept of them at each position.
    Wide h[S], kept[selective_chunk][S];
    team.load_h(g.states + (row * shape.chunks() + chunk) * shape.states, h);
#pragma unroll
    for (int q = 0; q < quarters; ++q) {
      T b[S][quarter], c[S][quarter];
      team.template load_states<aligned>(scan.b, begin + q * quarter, b);
      if (scan.z) team.template load_states<aligned>(scan.c, begin + q * quarter, c);
#pragma unroll
      for (int k = 0; k < quarter; ++k) {
        int s = q * quarter + k;
        if (s >= count) continue;
        Wide step = Lane::sent(steps, s), input = Lane::sent(inputs, s), value = 0;
        bool is_start = starts >> s & 1;
#pragma unroll
        for (int i = 0; i < S; ++i) {
          kept[s][i] = is_start ? Wide(0) : Decay<Wide>::factor(step * team.rates[i]) * h[i];
          h[i] = kept[s][i] + input * Wide(b[i][k]);
          if (scan.z) value += Wide(c[i][k]) * h[i];
        }
        if (scan.z) team.keep(values, s, Lane::sum(value));
      }
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (!scan.z) continue;
      dz[p] = dy[p] * (values[p] + skip * u[p]) * scan.gate_slope(z[p]);
      dy[p] *= scan.gate(z[p]);
    }
    Wide du[P] = {}, draw[P] = {};
#pragma unroll
    for (int q = quarters - 1; q >= 0; --q) {
      T b[S][quarter], c[S][quarter];
      team.template load_states<aligned>(scan.b, begin + q * quarter, b);
      team.template load_states<aligned>(scan.c, begin + q * quarter, c);
#pragma unroll
      for (int k = quarter - 1; k >= 0; --k) {
        int s = q * quarter + k;
        if (s < count) {
          Wide step = Lane::sent(steps, s), input = Lane::sent(inputs, s), dy_here = Lane::sent(dy, s);
          bool is_start = starts >> s & 1;
          Wide of_step = 0, of_input = 0, of_shared[2 * S];  // of the rates' unit; of B's, and then of C's
#pragma unroll
          for (int i = 0; i < S; ++i) {
            Wide b_here = Wide(b[i][k]), h_here = kept[s][i] + input * b_here;
            StateGradient<Wide> state(kept[s][i], b_here, Wide(c[i][k]), dy_here, carry[i]);
            of_shared[i] = is_row ? state.dh * input : Wide(0);
            of_shared[S + i] = is_row ? dy_here * h_here : Wide(0);
            of_a[i] += step * state.decayed;
            of_step += team.rates[i] * state.decayed, of_input += state.of_input;
            carry[i] = is_start ? Wide(0) : state.dh * Decay<Wide>::factor(step * team.rates[i]);
          }
          of_step = Lane::sum(of_step), of_input = Lane::sum(of_input);
          team.keep(draw, s, of_step * Decay<Wide>::unit());
          team.keep(du, s, of_input);
          int first = sum_over_teams<lanes, 2 * S, 16>(of_shared);
#pragma unroll
          for (int i = 0; i < left; ++i) {
            int which = first + i, kind = which / S;
            of_warps[warp][s % batch][kind * all_states + team.state(which - kind * S)] = of_shared[i];
          }
        }
        if (s % batch > 0) continue;
        // The warps' sums of positions s ... s + batch - 1, in order; neighbors in memory are neighboring positions.
        __syncthreads();
        for (int e = threadIdx.x; e < batch * 2 * all_states; e += selective_backward_block) {
          int at = e % batch, which = e / batch, kind = which / all_states, n = which - kind * all_states;
          if (s + at >= count || n >= shape.states) continue;
          Wide total = 0;
#pragma unroll
          for (int w = 0; w < warps; ++w) total += of_warps[w][at][which];
          int64_t block_sum = ((int64_t(blockIdx.x) * 2 + kind) * shape.states + n) * shape.length;
          sums.shared[block_sum + begin + s + at] = total;
        }
        __syncthreads();
      }
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      Wide of_input = du[p];
      draw[p] = (draw[p] + u[p] * of_input) * scan.step_slope(raws[p]);
      du[p] = steps[p] * of_input + dy[p] * skip;
      bool is_position = team.lane * P < selective_chunk && begin + team.lane * P + p < shape.length;
      if (is_position) of_bias += draw[p], of_skip += dy[p] * u[p];
    }
    if (is_row) {
      team.template store_positions<aligned>(g.du, begin, du);
      team.template store_positions<aligned>(g.ddt, begin, draw);
      if (scan.z) team.template store_positions<aligned>(g.dz, begin, dz);
    }
  }
  of_skip = Lane::sum(of_skip), of_bias = Lane::sum(of_bias);
  if (!is_row) return;
  team.store_h(g.dstate + row * shape.states, carry);
  Wide* of_row = sums.rows + sequence * (shape.states + 2) * shape.channels + row - sequence * shape.channels;
#pragma unroll
  for (int i = 0; i < S; ++i)
    if (team.is_state(i)) of_row[team.state(i) * shape.channels] = of_a[i];
  if (team.lane == 0) {
    of_row[shape.states * shape.channels] = of_skip;
    of_row[(shape.states + 1) * shape.channels] = of_bias;
  }
}

// The gradients of B and C, of the blocks' sums in order.
template <class T>
__global__ void __launch_bounds__(selective_backward_block)
    selective_shared(SelectiveShape shape, SelectiveSums<Accumulator<T>> sums, T* db, T* dc) {
  int64_t size = shape.states * shape.length, all = shape.groups * shape.batches * shape.shared * 2 * size;
  int64_t index = int64_t(blockIdx.x) * selective_backward_block + threadIdx.x;
  if (index >= all) return;
  int64_t of_all = index / (2 * size), at = index - of_all * 2 * size, kind = at / size;
  const Accumulator<T>* from = sums.shared + of_all * sums.tiles * 2 * size + at;
  Accumulator<T> total = 0;
#pragma unroll 4
  for (int64_t tile = 0; tile < sums.tiles; ++tile) total += from[tile * 2 * size];
  (kind ? dc : db)[of_all * size + at - kind * size] = T(total);
}

// Those of A, D and the bias, of the sequences' sums in order.
template <class Wide>
__global__ void __launch_bounds__(selective_backward_block)
    selective_rows(SelectiveShape shape, SelectiveSums<Wide> sums, Wide* da, Wide* dskip, Wide* dbias) {
  int64_t size = (shape.states + 2) * shape.channels;
  int64_t index = int64_t(blockIdx.x) * selective_backward_block + threadIdx.x;
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

// Calls run(lanes, states of a lane, aligned).
template <class T, class Run>
Status by_states(const SelectiveShape& shape, const Run& run) {
  using std::integral_constant;
  if (shape.states <= 16) {
    if (sizeof(T) < 8 && shape.length % 4 == 0)
      return run(integral_constant<int, 4>{}, integral_constant<int, 4>{}, integral_constant<bool, sizeof(T) < 8>{});
    return run(integral_constant<int, 4>{}, integral_constant<int, 4>{}, std::false_type{});
  }
  if (shape.states <= 64) return run(integral_constant<int, 16>{}, integral_constant<int, 4>{}, std::false_type{});
  if (shape.states <= 256) return run(integral_constant<int, 32>{}, integral_constant<int, 8>{}, std::false_type{});
  return {"there may be at most 256 states"};
}

inline Status check_grid(int64_t blocks) {
  return {blocks < (int64_t(1) << 31) ? nullptr : "the grid would have more than 2^31 - 1 blocks"};
}

}  // namespace internal

// y; where they are not null, the last state and the states before each chunk.
template <class T>
Status selective_scan(const Executor& executor, const SelectiveScan<T>& scan, T* y, Accumulator<T>* last,
                      Accumulator<T>* states) {
  using namespace internal;
  if (scan.shape.rows() == 0) return {};
  return by_states<T>(scan.shape, [&](auto lanes_of, auto states_of, auto aligned_of) {
    constexpr int lanes = decltype(lanes_of)::value, S = decltype(states_of)::value;
    int64_t blocks = ceil_div(scan.shape.rows(), selective_block / lanes);
    if (Status status = check_grid(blocks); !status.ok()) return status;
    selective_forward<lanes, S, decltype(aligned_of)::value>
        <<<unsigned(blocks), selective_block, 0, executor.stream>>>(scan, y, last, states);
    return launched();
  });
}

template <class T>
Status selective_scan_backward(Executor executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& g) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const SelectiveShape& shape = scan.shape;
  return by_states<T>(shape, [&](auto lanes_of, auto states_of, auto aligned_of) {
    constexpr int lanes = decltype(lanes_of)::value, S = decltype(states_of)::value;
    int64_t all = shape.groups * shape.batches * shape.shared;
    SelectiveSums<Wide> sums{};
    sums.tiles = ceil_div(shape.channels_each(), selective_backward_block / lanes);
    sums.shared = executor.scratch<Wide>(all * sums.tiles * 2 * shape.states * shape.length);
    sums.rows = executor.scratch<Wide>(shape.rows() * (shape.states + 2));
    if (!sums.shared || !sums.rows) return small_workspace;
    int64_t elements = all * 2 * shape.states * shape.length,
            of_rows = shape.groups * (shape.states + 2) * shape.channels;
    for (int64_t blocks :
         {all * sums.tiles, ceil_div(elements, selective_backward_block), ceil_div(of_rows, selective_backward_block)})
      if (Status status = check_grid(blocks); !status.ok()) return status;
    if (shape.rows() > 0)
      selective_backward<lanes, S, decltype(aligned_of)::value>
          <<<unsigned(all * sums.tiles), selective_backward_block, 0, executor.stream>>>(scan, g, sums);
    if (Status status = launched(); !status.ok()) return status;
    if (elements > 0)
      selective_shared<T>
          <<<unsigned(ceil_div(elements, selective_backward_block)), selective_backward_block, 0, executor.stream>>>(
              shape, sums, g.db, g.dc);
    if (of_rows > 0)
      selective_rows<Wide>
          <<<unsigned(ceil_div(of_rows, selective_backward_block)), selective_backward_block, 0, executor.stream>>>(
              shape, sums, g.da, g.dskip, g.dbias);
    return launched();
  });
}

}  // namespace baracuda
