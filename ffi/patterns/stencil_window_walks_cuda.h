// The stencil pattern with windows that span up to 7 elements along the last two spatial axes, or 3 along all three,
// and one output for each channel: one way for sequences, images and volumes, with the channels first or last. A
// thread has R neighboring columns of V channels and walks down the rows of a chunk. A row of the source is read once,
// with the few elements at both sides, and used for all rows of the result that it belongs to, whose sums are in
// registers; the weights are in shared memory.
//
// There are kernels for windows of 3, 5 and 7, of which others are parts (stencil_window_taps_cuda.h).
//
// Backward, dx is the same sum, over dy and with the window turned over; and each element of dy that an element of x
// meets there is also a term of dweight. So a walk has as many rows of x too, and sums for all taps. A block adds those
// of its threads, in a fixed order, and so there is one part for each range of walks. With strides of 2, dy has zeros
// between its elements. Forward, strides are 1.
#pragma once

#include <algorithm>

#include "stencil_sums_cuda.h"
#include "stencil_window_columns_cuda.h"
#include "stencil_window_taps_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int walk_block = 128;

// Distances of neighboring elements of an array along each axis.
struct WalkSteps {
  int64_t sequence, channel, plane, row, column;
};

// Extents along planes, rows and columns; walks are along `strips` of columns, planes, chunks of rows and batches. What
// has all windows and elements begins at `x_begin` and `y_begin`, and elements of y are 2^shift from each other there.
struct WindowWalks {
  int64_t channels, batches;
  int in[3], out[3], x_begin[3], y_begin[3], shift[3], all_rows;
  WalkSteps x, y;
  int64_t of_tap, of_channel;  // of weights
  WindowTaps taps;
  int strips, planes, chunks, rows;
  int64_t walks, ranges, of_range;
  int lanes;      // vectors of channels of a block
  int64_t tiles;  // of so many channels
};

// The weights of a block's channels, widened, a row of the window in words of 16 bytes. Vectors of neighboring lanes
// are an odd number of those from each other, so that they are in other banks.
template <int A, int J, int K, class Columns, class T>
struct WalkFactors {
  using Wide = Accumulator<T>;
  static constexpr int V = Columns::V, of_row = K <= 4 ? 4 : 8;
  static constexpr int of_window = A * J * of_row + (A * J * of_row % 8 == 0 ? 4 : 0);
  Wide factor[V][Columns::most_lanes][of_window];

  // Whether all of the block are finite.
  __device__ bool read(bool is_whole, const WindowWalks& work, const T* weight, int64_t first_channel) {
    int channels = work.lanes * V;
    Wide zeros = 0;
    for (int e = threadIdx.x; e < channels * A * J * K; e += walk_block) {
      int tap = e / channels, c = e - tap * channels, row = tap / K;
      if (first_channel + c >= work.channels) continue;
      int a = row / J, number = is_whole ? tap : work.taps.number(a, row - a * J, tap - row * K);
      Wide value = 0;
      if (number >= 0) value = Wide(weight[(first_channel + c) * work.of_channel + number * work.of_tap]);
      factor[c % V][c / V][row * of_row + tap - row * K] = value, zeros += value * Wide(0);
    }
    return __syncthreads_and(zeros == Wide(0));
  }
  __device__ void row(int lane, int index, Wide (&factors)[K][V]) const {
#pragma unroll
    for (int v = 0; v < V; ++v)
#pragma unroll
      for (int c = 0; c < K; c += 4) {
        auto four = load<4>(factor[v][lane] + index * of_row + c);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (c + i < K) factors[c + i][v] = four.lane[i];
      }
  }
};

// Where a walk is.
struct Walk {
  int64_t batch;
  int plane, row, column;

  __device__ Walk(const WindowWalks& work, int64_t index, int columns) {
    int64_t rest = quotient(index, work.strips);
    column = int(index - rest * work.strips) * columns;
    int64_t chunks = quotient(rest, work.planes);
    plane = int(rest - chunks * work.planes);
    batch = quotient(chunks, work.chunks);
    row = int(chunks - batch * work.chunks) * work.rows;
  }
  __device__ int64_t at(const WalkSteps& steps, const int (&begin)[3]) const {
    return batch * steps.sequence + (plane - begin[0]) * steps.plane + (row - begin[1]) * steps.row +
           (column - begin[2]) * steps.column;
  }
};

// What a block has: a range of walks of a tile of channels, of which its threads with the same channels take turns.
struct WalkBlock {
  int64_t group, range, first_channel;
  int lane, worker, workers;

  __device__ WalkBlock(const WindowWalks& work, int V) {
    int64_t part = quotient(int64_t(blockIdx.x), work.tiles);
    first_channel = (int64_t(blockIdx.x) - part * work.tiles) * work.lanes * V;
    group = quotient(part, work.ranges), range = part - group * work.ranges;
    lane = threadIdx.x % work.lanes, worker = threadIdx.x / work.lanes, workers = walk_block / work.lanes;
  }
};

// The zeros around x are multiplied; weights of 0 that are none are not, if that is seen.
template <int A, int J, int K, int R, bool is_whole, class Columns, class T>
__global__ void __launch_bounds__(walk_block)
    window_walks(const __grid_constant__ WindowWalks work, const T* x, const T* weight, const T* bias, T* y) {
  using Wide = Accumulator<T>;
  using Line = typename Columns::template Line<K>;
  constexpr int V = Columns::V, above = J / 2;
  __shared__ __align__(16) WalkFactors<A, J, K, Columns, T> factors;
  const WalkBlock block(work, V);
  factors.read(is_whole, work, weight + block.group * work.channels * work.taps.count, block.first_channel);
  const int64_t channel = block.first_channel + block.lane * V;
  if (channel >= work.channels) return;
  Wide of_bias[V];
#pragma unroll
  for (int v = 0; v < V; ++v) of_bias[v] = Wide(bias[block.group * work.channels + channel + v]);
  const int64_t end = min((block.range + 1) * work.of_range, work.walks);
  for (int64_t i = block.range * work.of_range + block.worker; i < end; i += block.workers) {
    const Walk walk(work, i, R);
    const int rows = min(work.rows, work.out[1] - walk.row);
    if (walk.plane >= work.out[0] || rows <= 0) continue;
    const int plane = walk.plane - work.x_begin[0], row = walk.row - work.x_begin[1],
              column = walk.column - work.x_begin[2];
    const T* from = x + block.group * work.batches * work.x.sequence + channel * work.x.channel +
                    walk.at(work.x, work.x_begin) - above * work.x.row;
    T* to = y + block.group * work.batches * work.y.sequence + channel * work.y.channel + walk.at(work.y, work.y_begin);
    Wide sums[J][R][V];
    Line next[A];
    auto read = [&](int s) {
#pragma unroll
      for (int a = 0; a < A; ++a) {
        next[a] = Line{};
        if (is_index(row - above + s, work.in[1]) && is_index(plane + a - A / 2, work.in[0]))
          next[a].read(from + (a - A / 2) * work.x.plane, work.x.column, column, work.in[2], 0);
      }
    };
    read(0);
    for (int s = 0; s < rows + J - 1; ++s) {
      Line lines[A];
#pragma unroll
      for (int a = 0; a < A; ++a) lines[a] = next[a];
      from += work.x.row;
      if (s + 1 < rows + J - 1) read(s + 1);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v) sums[J - 1][r][v] = 0;
#pragma unroll
      for (int a = 0; a < A; ++a) {
        Wide line[R + K - 1][V];
#pragma unroll
        for (int k = 0; k < R + K - 1; ++k)
#pragma unroll
          for (int v = 0; v < V; ++v) line[k][v] = lines[a](k, v);
        auto add = [&](auto of_all) {
#pragma unroll
          for (int j = 0; j < J; ++j) {
            Wide factor[K][V];
            factors.row(block.lane, a * J + J - 1 - j, factor);
#pragma unroll
            for (int c = 0; c < K; ++c) {
              if (!of_all && work.taps.number(a, J - 1 - j, c) < 0) continue;
#pragma unroll
              for (int r = 0; r < R; ++r)
#pragma unroll
                for (int v = 0; v < V; ++v) sums[j][r][v] += factor[c][v] * line[r + c][v];
            }
          }
        };
        if constexpr (is_whole) {
          add(std::true_type{});
        } else {
          Wide zeros = 0;
#pragma unroll
          for (int k = 0; k < R + K - 1; ++k)
#pragma unroll
            for (int v = 0; v < V; ++v) zeros += line[k][v] * Wide(0);
          // What is 0 and no weight changes no sum of finite numbers.
          if (zeros == Wide(0))
            add(std::true_type{});
          else
            add(std::false_type{});
        }
      }
      if (s >= J - 1) {
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[0][r][v] += of_bias[v];
        Columns::write(to, work.y.column, walk.column, work.out[2], sums[0]);
        to += work.y.row;
      }
#pragma unroll
      for (int j = 0; j + 1 < J; ++j)
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[j][r][v] = sums[j + 1][r][v];
    }
  }
}

// What is outside of x and of dy is no term: it would be NaN with an infinite factor. Walks cover both.
template <int A, int J, int K, int R, class Columns, class T>
__global__ void __launch_bounds__(walk_block, sizeof(Accumulator<T>) == 8 ? 1
                                              : J >= 5                    ? 3
                                                                          : 4)
    window_walks_backward(const __grid_constant__ WindowWalks work, const T* x, const T* weight, const T* dy, T* dx,
                          Accumulator<T>* parts) {
  using Wide = Accumulator<T>;
  using Line = typename Columns::template Line<K>;
  using Own = typename Columns::template Line<1>;
  constexpr int V = Columns::V, above = J / 2, side = K / 2, taps = A * J * K;
  constexpr bool strided = Columns::strided;
  constexpr int warps = walk_block / 32, most_channels = Columns::most_lanes * V;
  __shared__ __align__(16) union Shared {
    WalkFactors<A, J, K, Columns, T> factors;
    Wide of_warps[warps][taps + 1][most_channels];
  } shared;
  const WalkBlock block(work, V);
  const bool are_finite = shared.factors.read(
      work.taps.is_whole, work, weight + block.group * work.channels * work.taps.count, block.first_channel);
  const int64_t channel = block.first_channel + block.lane * V, group = block.group * work.batches;
  const int64_t end = channel < work.channels ? min((block.range + 1) * work.of_range, work.walks) : 0;
  Wide sums[A][J][K][V] = {}, of_bias[V] = {};
  constexpr bool ahead = !(A == 3 || (J == 3 && Columns::most_lanes > 1));
  for (int64_t i = block.range * work.of_range + block.worker; i < end; i += block.workers) {
    const Walk walk(work, i, R);
    const int x_columns = work.in[2], y_columns = work.out[2];
    const int shift[3] = {strided ? work.shift[0] : 0, strided ? work.shift[1] : 0, strided ? work.shift[2] : 0};
    const int x_column = walk.column - work.x_begin[2], y_column = walk.column - work.y_begin[2];
    const int y_row = walk.row - above - work.y_begin[1], y_plane = walk.plane - work.y_begin[0];
    // The chunk's rows, and those of x among them.
    const int rows = min(work.rows, work.all_rows - walk.row), first_row = max(0, work.x_begin[1] - walk.row);
    const bool is_x = is_index(walk.plane - work.x_begin[0], work.in[0]) && x_column > -R && x_column < x_columns;
    const int x_rows = is_x ? max(0, min(rows, work.x_begin[1] + work.in[1] - walk.row) - first_row) : 0;
    const int64_t x_offset = group * work.x.sequence + channel * work.x.channel + walk.at(work.x, work.x_begin);
    const T* of_x = x + x_offset;
    const T* of_y = dy + (group + walk.batch) * work.y.sequence + channel * work.y.channel +
                    (y_plane >> shift[0]) * work.y.plane + (y_row >> shift[1]) * work.y.row +
                    (y_column >> shift[2]) * work.y.column;
    T* to = dx + x_offset + first_row * work.x.row;
    Wide xs[J][R][V] = {}, dxs[J][R][V] = {};
    Own next_x;
    Line next[A];
    auto has_line = [&](int s, int a) {
      if (!strided) return is_index(y_row + s, work.out[1]) && is_index(y_plane + A / 2 - a, work.out[0]);
      return is_index(y_row + s, work.out[1], shift[1]) && is_index(y_plane + A / 2 - a, work.out[0], shift[0]);
    };
    auto read = [&](int s) {
      next_x = Own{};
      if (is_index(s - first_row, x_rows)) next_x.read(of_x, work.x.column, x_column, x_columns, 0);
#pragma unroll
      for (int a = 0; a < A; ++a) {
        next[a] = Line{};
        if (has_line(s, a))
          next[a].read(
              of_y + (strided ? ((y_plane + A / 2 - a) >> shift[0]) - (y_plane >> shift[0]) : A / 2 - a) * work.y.plane,
              work.y.column, y_column, y_columns, shift[2]);
      }
    };
    if (ahead) read(0);
    int careful = 0;  // so many steps on, a row of x has numbers that are not finite
    for (int s = 0; s < rows + J - 1; ++s) {
      Line lines[A];
      if (!ahead) read(s);
#pragma unroll
      for (int a = 0; a < A; ++a) lines[a] = next[a];
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v) xs[J - 1][r][v] = next_x(r, v), dxs[J - 1][r][v] = 0;
      of_x += work.x.row;
      if (!strided || ((y_row + s + 1) & ((1 << shift[1]) - 1)) == 0) of_y += work.y.row;
      if (ahead && s + 1 < rows + J - 1) read(s + 1);
      Wide line[A][R + K - 1][V], zeros = 0, x_zeros = 0;
#pragma unroll
      for (int a = 0; a < A; ++a)
#pragma unroll
        for (int k = 0; k < R + K - 1; ++k)
#pragma unroll
          for (int v = 0; v < V; ++v) line[a][k][v] = lines[a](k, v), zeros += line[a][k][v] * Wide(0);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v) x_zeros += xs[J - 1][r][v] * Wide(0);
      careful = x_zeros == Wide(0) ? max(careful - 1, 0) : J;
      auto add = [&](auto all_finite) {
        constexpr bool finite = decltype(all_finite)::value;
        auto has = [&](int k) { return finite || Line::has(k, y_column, y_columns, shift[2]); };
#pragma unroll
        for (int a = 0; a < A; ++a) {
          if (!has_line(s, a)) continue;
          if (a == A / 2 && is_index(s - above, rows))
#pragma unroll
            for (int r = 0; r < R; ++r)
              if (has(side + r))
#pragma unroll
                for (int v = 0; v < V; ++v) of_bias[v] += line[a][side + r][v];
#pragma unroll
          for (int j = 0; j < J; ++j) {
            if (!finite && !is_index(s - (J - 1) + j - first_row, x_rows)) continue;
            Wide factor[K][V];
            shared.factors.row(block.lane, a * J + j, factor);
#pragma unroll
            for (int c = 0; c < K; ++c)
#pragma unroll
              for (int r = 0; r < R; ++r) {
                const int k = r + K - 1 - c;
                if (!has(k) || (!finite && !(Own::has(r, x_column, x_columns, 0) && work.taps.number(a, j, c) >= 0)))
                  continue;
#pragma unroll
                for (int v = 0; v < V; ++v) {
                  dxs[j][r][v] += factor[c][v] * line[a][k][v];
                  sums[a][j][c][v] += xs[j][r][v] * line[a][k][v];
                }
              }
          }
        }
      };
      // Zeros instead of what is outside, where they change no sum.
      if (are_finite && careful == 0 && zeros == Wide(0))
        add(std::true_type{});
      else
        add(std::false_type{});
      if (is_index(s - (J - 1) - first_row, x_rows)) {
        Columns::write(to, work.x.column, x_column, x_columns, dxs[0]);
        to += work.x.row;
      }
#pragma unroll
      for (int j = 0; j + 1 < J; ++j)
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int v = 0; v < V; ++v) xs[j][r][v] = xs[j + 1][r][v], dxs[j][r][v] = dxs[j + 1][r][v];
    }
  }

  // Lanes with the same channels, then warps.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, channels = work.lanes * V;
  __syncthreads();
  auto add_lanes = [&](int slot, const Wide(&of_thread)[V]) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      Wide sum = of_thread[v];
      if (Columns::most_lanes == 1 || work.lanes < 32) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
          Wide other = __shfl_xor_sync(~0u, sum, distance);
          if (Columns::most_lanes == 1 || distance >= work.lanes) sum += other;
        }
      }
      if (lane < work.lanes) shared.of_warps[warp][slot][lane * V + v] = sum;
    }
  };
#pragma unroll
  for (int t = 0; t < taps; ++t) add_lanes(t, sums[t / (J * K)][t / K % J][t % K]);
  add_lanes(taps, of_bias);
  __syncthreads();
  for (int e = threadIdx.x; e < (taps + 1) * channels; e += walk_block) {
    int slot = e / channels, c = e - slot * channels;
    if (block.first_channel + c >= work.channels) continue;
    int row = slot / K, a = row / J, to = slot;
    if (!work.taps.is_whole)
      to = slot == taps ? int(work.taps.count) : work.taps.number(a, row - a * J, slot - row * K);
    if (to < 0) continue;
    Wide total = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += shared.of_warps[w][slot][c];
    parts[((block.group * work.ranges + block.range) * (work.taps.count + 1) + to) * work.channels +
          block.first_channel + c] = total;
  }
}

// Windows of 49 doubles and as many sums would not be in registers. Strides are backward's.
template <class T>
bool has_walks(const DepthwiseShape& shape) {
  constexpr int64_t most = int64_t(1) << 28;
  int64_t rows = span_of(shape, 1), size = std::max(rows, span_of(shape, 2)), planes = span_of(shape, 0);
  for (int a = 0; a < 3; ++a)
    if (shape.in[a] >= most || shape.out[a] >= most || shape.before[a] >= most || shape.stride[a] > 2) return false;
  return shape.multiplier == 1 && size > 1 && size <= 7 && (planes == 1 || (planes <= 3 && size <= 3)) &&
         (sizeof(Accumulator<T>) == 4 || rows == 1 || size <= 5);
}

// Calls run(A, J, K).
template <class T, class Run>
Status by_walk_window(const DepthwiseShape& shape, const Run& run) {
  using One = std::integral_constant<int, 1>;
  auto of_size = [&](auto k) {
    if (shape.window[1] == 1 && shape.window[0] == 1) return run(One{}, One{}, k);
    if constexpr (k == 3)
      if (shape.window[0] > 1) return run(k, k, k);
    if constexpr (k < 7 || sizeof(Accumulator<T>) == 4) return run(One{}, k, k);
    return Status{"a window without walks"};
  };
  int64_t size = kernel_window(shape);
  if (size == 3) return of_size(std::integral_constant<int, 3>{});
  if (size == 5) return of_size(std::integral_constant<int, 5>{});
  return of_size(std::integral_constant<int, 7>{});
}

// Calls run(R, columns).
template <int A, int J, int K, bool is_forward, class T, class Run>
Status by_walk_columns(const DepthwiseShape& shape, const Run& run) {
  auto of_first = [&](auto r) { return run(r, AlignedColumns<r, T>{}); };
  auto of_any = [&](auto v, auto strided) {
    constexpr int R = 4;
    return run(std::integral_constant<int, R>{}, SpreadColumns<R, v, strided, T>{});
  };
  using One = std::integral_constant<int, 1>;
  constexpr int R = sizeof(T) == 2 && K == 3 && A == 1 ? 8 : 4;
  if constexpr (!is_forward)
    if (shape.stride[0] * shape.stride[1] * shape.stride[2] > 1) return of_any(One{}, std::true_type{});
  if (are_columns_aligned<R>(shape)) return of_first(std::integral_constant<int, R>{});
  if constexpr (K == 3 && A == 1)
    if (shape.channels_last && shape.channels % 2 == 0)
      return of_any(std::integral_constant<int, 2>{}, std::false_type{});
  return of_any(One{}, std::false_type{});
}

// Of `blocks` blocks of a group, at least so many rows a walk. Forward, walks are along y alone.
template <int A, int J, int K, int R, int V>
WindowWalks window_walks_of(const DepthwiseShape& shape, bool is_forward, int64_t most_ranges, int64_t least_rows) {
  WindowWalks work{};
  int64_t batches = shape.batches, in[3], out[3];
  std::copy(shape.in, shape.in + 3, in), std::copy(shape.out, shape.out + 3, out);
  auto steps_of = [&](const int64_t (&extent)[3]) {
    int64_t apart = shape.channels_last ? shape.channels : 1, plane = extent[0] * extent[1] * extent[2];
    return WalkSteps{plane * shape.channels, shape.channels_last ? 1 : plane, extent[1] * extent[2] * apart,
                     extent[2] * apart, apart};
  };
  work.x = steps_of(in), work.y = steps_of(out);
  const int64_t sizes[3] = {A, J, K};
  int64_t extent[3];
  work.taps = WindowTaps(shape, sizes);
  for (int a = 0; a < 3; ++a) {
    int64_t begin = window_begin(shape, a, sizes[a]);
    int64_t least = is_forward ? begin : std::min<int64_t>(begin, 0);
    work.x_begin[a] = int(-least), work.y_begin[a] = int(begin - least), work.shift[a] = shape.stride[a] == 2;
    extent[a] = begin - least + (out[a] > 0 ? (out[a] - 1) * shape.stride[a] + 1 : 0);
    if (!is_forward) extent[a] = std::max(extent[a], in[a] - least);
  }
  // Of sequences, walks go from one batch to the next.
  if (in[0] * in[1] * out[0] * out[1] == 1 && extent[0] * extent[1] == 1 && J == 1 &&
      shape.before[0] + shape.before[1] == 0 && batches < (int64_t(1) << 28)) {
    extent[1] = batches;
    in[1] = out[1] = batches;
    work.x.row = work.x.sequence, work.y.row = work.y.sequence;
    work.x.sequence *= batches, work.y.sequence *= batches;
    batches = 1;
  }
  work.channels = shape.channels, work.batches = batches;
  for (int a = 0; a < 3; ++a) work.in[a] = int(in[a]), work.out[a] = int(out[a]);
  work.all_rows = int(extent[1]);
  work.of_tap = shape.channels_last ? shape.channels : 1, work.of_channel = shape.channels_last ? 1 : shape.taps();
  work.lanes = shape.channels_last ? stencil_lanes<V>(shape.channels) : 1;
  work.tiles = ceil_div(shape.channels, work.lanes * V);
  work.strips = int(ceil_div(extent[2], R)), work.planes = int(extent[0]);
  int64_t rows = extent[1], workers = walk_block / work.lanes;
  int64_t columns = std::max<int64_t>(1, batches * work.planes * work.strips);
  int64_t most_chunks = std::max<int64_t>(1, most_ranges * workers / columns);
  int64_t chunks = std::clamp<int64_t>(rows / least_rows, 1, most_chunks);
  // Shorter walks where the GPU would be partly idle.
  constexpr int64_t few = 512;
  if (chunks * columns * work.tiles < few * workers)
    chunks = std::clamp<int64_t>(ceil_div(few * workers, columns * std::max<int64_t>(1, work.tiles)), 1,
                                 std::min(most_chunks, std::max<int64_t>(1, rows / 2)));
  work.rows = int(std::max<int64_t>(1, ceil_div(rows, chunks)));
  work.chunks = int(ceil_div(rows, work.rows));
  work.walks = batches * work.planes * work.strips * work.chunks;
  work.of_range =
      std::max(ceil_div(work.walks, most_ranges), std::min<int64_t>(workers, std::max<int64_t>(1, work.walks)));
  work.ranges = std::max<int64_t>(1, ceil_div(work.walks, work.of_range));
  return work;
}

template <class T>
Status run_walks(const Executor& executor, const Depthwise<T>& conv, const T* bias, T* y) {
  const DepthwiseShape& shape = conv.shape;
  return by_walk_window<T>(shape, [&](auto a, auto j, auto k) {
    return by_walk_columns<a, j, k, true, T>(shape, [&](auto r, auto columns) {
      using Columns = decltype(columns);
      // Several blocks for each that runs at a time.
      constexpr int64_t enough = 2048;
      int64_t tiles = ceil_div(shape.channels, shape.channels_last ? 32 * Columns::V : 1);
      auto work =
          window_walks_of<a, j, k, r, Columns::V>(shape, true, ceil_div(enough, std::max<int64_t>(1, tiles)), 2 * j);
      work.of_range = std::min<int64_t>(work.of_range, walk_block / work.lanes);
      work.ranges = work.walks > 0 ? ceil_div(work.walks, work.of_range) : 0;
      int64_t blocks = shape.groups * work.ranges * work.tiles;
      if (!is_grid(blocks)) return too_large();
      auto launch = [&](auto whole) {
        if (blocks > 0)
          window_walks<a, j, k, r, whole, Columns>
              <<<unsigned(blocks), walk_block, 0, executor.stream>>>(work, conv.x, conv.weight, bias, y);
        return launched();
      };
      return work.taps.is_whole ? launch(std::true_type{}) : launch(std::false_type{});
    });
  });
}

// dx, and the sums of at most `ranges` parts for weights and bias, whose number it becomes.
template <class T>
Status run_walks_backward(const Executor& executor, const Depthwise<T>& conv, const T* dy, T* dx, Accumulator<T>* parts,
                          int64_t& ranges) {
  const DepthwiseShape& shape = conv.shape;
  return by_walk_window<T>(shape, [&](auto a, auto j, auto k) {
    return by_walk_columns<a, j, k, false, T>(shape, [&](auto r, auto columns) {
      using Columns = decltype(columns);
      auto work = window_walks_of<a, j, k, r, Columns::V>(shape, false, ranges, 4 * j);
      ranges = work.ranges;
      int64_t blocks = shape.groups * ranges * work.tiles;
      if (!is_grid(blocks)) return too_large();
      if (blocks > 0)
        window_walks_backward<a, j, k, r, Columns>
            <<<unsigned(blocks), walk_block, 0, executor.stream>>>(work, conv.x, conv.weight, dy, dx, parts);
      return launched();
    });
  });
}

}  // namespace internal
}  // namespace baracuda
