// The attention pattern on a CUDA grid without tensor cores, of any dtype and any number of columns. A block has a
// chunk of the keys of a head, and up to eight of the queries that share it. A team of lanes reads a few rows at a
// time, each lane its columns of all of them; the products of a key are summed over the lanes while keys are dealt out
// to them, so that each lane has the score of one key. Then each lane adds its columns of the values. States of a
// block's teams are merged in a fixed order, and by a second kernel those of chunks.
#pragma once

#include "attention_merge_cuda.h"

namespace baracuda {
namespace internal {

// How many rows a team reads at a time. Of many queries the sums take the registers.
template <int queries>
inline constexpr int decode_keys = queries > 4 ? 4 : 8;

// The columns of a lane: one load of up to 16 bytes, and what its registers have room for.
template <class Stored>
inline constexpr int decode_columns = sizeof(Stored) == 1 ? 8 : 16 / int(sizeof(Stored));

struct DecodeGrid {
  int64_t tiles, slices, chunks;  // of the queries of a group, of the columns of values, of keys
};

// A lane's columns of a row: 0 after its end, unless rows are whole numbers of slices, `full`.
template <int columns, bool full, class T>
__device__ Vector<T, columns> load_columns(const T* row, int64_t first, int64_t count) {
  if constexpr (full) return load<columns>(row + first);
  Vector<T, columns> some{};
#pragma unroll
  for (int i = 0; i < columns; ++i)
    if (first + i < count) some.lane[i] = row[first + i];
  return some;
}

// The columns of `rows` rows; 0 of those that are missing, whose row is negative. They are read from row 0 instead:
// loads that depend on no condition do not wait for each other.
template <int columns, bool full, int rows, class T, class Offset>
__device__ void load_rows(Vector<T, columns> (&to)[rows], const T* from, const Offset& offset,
                          const int32_t (&row)[rows], int64_t first, int64_t count) {
#pragma unroll
  for (int j = 0; j < rows; ++j)
    to[j] = load_columns<columns, full>(from + offset(row[j] < 0 ? 0 : row[j]), first, count);
#pragma unroll
  for (int j = 0; j < rows; ++j)
    if (row[j] < 0) to[j] = Vector<T, columns>{};
}

// Sums over the lanes of a team of some numbers each: lane i gets the sum of number i % count.
template <int lanes, int count, class Wide>
__device__ Wide sum_of_own(Wide (&parts)[count]) {
#pragma unroll
  for (int half = count / 2; half > 0; half /= 2) {
    bool upper = threadIdx.x & half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      Wide sent = upper ? parts[i] : parts[i + half], kept = upper ? parts[i + half] : parts[i];
      parts[i] = kept + __shfl_xor_sync(~0u, sent, half);
    }
  }
  Wide sum = parts[0];
#pragma unroll
  for (int step = count; step < lanes; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

template <int lanes, int queries, bool full, class Stored, class Wide>
__global__ void __launch_bounds__(decode_block)
    decode_chunks(Decode<Stored, Wide> work, DecodeGrid grid, SoftmaxState<Wide>* states, Wide* partial_sums) {
  using State = SoftmaxState<Wide>;
  constexpr int columns = decode_columns<Stored>, slice = lanes * columns, teams = decode_block / lanes, warps = 4;
  constexpr int rows = decode_keys<queries>;  // of a team, in a turn
  const DecodeShape& shape = work.shape;
  int64_t block = blockIdx.x, number = block % grid.chunks;
  block /= grid.chunks;
  int64_t first_column = block % grid.slices * slice;
  block /= grid.slices;
  int64_t tile = block % grid.tiles;
  block /= grid.tiles;
  int64_t kv_head = block % shape.kv_heads, sequence = block / shape.kv_heads;
  KeyRange keys = work.in_chunk(work.seen(sequence), number);
  if (keys.begin >= keys.end) return;

  int lane = threadIdx.x % lanes, team = threadIdx.x / lanes;
  int group = int(shape.group()), first_query = int(tile) * queries;
  int64_t first_head = kv_head * group;
  Wide at = Wide(work.length(sequence) - 1);
  auto head = [&](int g) {  // the last one again where there are fewer
    return first_head + min(first_query + g, group - 1);
  };
  State own[queries];
  Wide sums[queries][columns];
#pragma unroll
  for (int g = 0; g < queries; ++g) {
    own[g] = State::empty();
#pragma unroll
    for (int i = 0; i < columns; ++i) sums[g][i] = 0;
  }

  // Teams take turns at a few keys. All take as many turns, also with no key left: lanes of a warp work together.
  // The table is read a turn ahead.
  int64_t start = keys.begin / rows * rows;
  auto row_of = [&](int64_t key) { return key >= keys.begin && key < keys.end ? work.row(sequence, key) : -1; };
  int32_t next_row = row_of(start + team * rows + lane % rows);
  for (int64_t turn = start; turn < keys.end; turn += teams * rows) {
    int64_t key = turn + team * rows + lane % rows;
    int32_t row = next_row;
    next_row = row_of(key + teams * rows);
    int32_t of_keys[rows];
#pragma unroll
    for (int j = 0; j < rows; ++j) of_keys[j] = __shfl_sync(~0u, row, j, lanes);
    auto offset = [&](int64_t of_row, int64_t count) { return work.offset(sequence, int32_t(of_row), kv_head, count); };
    Vector<Stored, columns> values[rows];
    load_rows<columns, full>(
        values, work.v, [&](int32_t r) { return offset(r, shape.values); }, of_keys, first_column + lane * columns,
        shape.values);
    Wide scores[queries];
#pragma unroll
    for (int g = 0; g < queries; ++g) scores[g] = 0;
    for (int64_t before = 0; before < shape.d; before += slice) {
      int64_t first = before + lane * columns;
      Vector<Stored, columns> k[rows];
      load_rows<columns, full>(k, work.k, [&](int32_t r) { return offset(r, shape.d); }, of_keys, first, shape.d);
#pragma unroll
      for (int g = 0; g < queries; ++g) {
        Vector<Wide, columns> own_q =
            load_columns<columns, full>(work.q + (sequence * shape.heads + head(g)) * shape.d, first, shape.d);
        Wide products[rows];
#pragma unroll
        for (int j = 0; j < rows; ++j) {
          products[j] = 0;
#pragma unroll
          for (int i = 0; i < columns; ++i) products[j] += own_q.lane[i] * Wide(k[j].lane[i]);
        }
        scores[g] += sum_of_own<lanes>(products);
      }
    }
    Wide weights[queries];
#pragma unroll
    for (int g = 0; g < queries; ++g) {
      Wide score = row < 0 ? State::nothing : work.score(scores[g], work.slope(sequence, head(g)), Wide(key) - at);
      Wide largest = State::larger(own[g].largest, score);
#pragma unroll
      for (int step = rows / 2; step > 0; step /= 2)
        largest = State::larger(largest, __shfl_xor_sync(~0u, largest, step));
      Wide kept = State::weight(own[g].largest, largest);
      weights[g] = State::weight(score, largest);
      own[g] = {largest, own[g].total * kept + weights[g]};  // of one key of each turn
#pragma unroll
      for (int i = 0; i < columns; ++i) sums[g][i] *= kept;
    }
#pragma unroll
    for (int j = 0; j < rows; ++j) {
#pragma unroll
      for (int g = 0; g < queries; ++g) {
        Wide weight = __shfl_sync(~0u, weights[g], j, lanes);
#pragma unroll
        for (int i = 0; i < columns; ++i) sums[g][i] += weight * Wide(values[j].lane[i]);
      }
    }
  }

  // The states of a team's lanes, of a warp's teams, and of the block's warps.
  __shared__ State shared_states[warps][queries];
  __shared__ Wide shared_sums[warps][queries][slice];
  int warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
#pragma unroll
  for (int g = 0; g < queries; ++g) {
#pragma unroll
    for (int step = 1; step < rows; step *= 2) own[g].total += __shfl_xor_sync(~0u, own[g].total, step);
#pragma unroll
    for (int step = lanes; step < 32; step *= 2) {
      Wide other = __shfl_xor_sync(~0u, own[g].largest, step), largest = State::larger(own[g].largest, other);
      Wide kept = State::weight(own[g].largest, largest), added = State::weight(other, largest);
      Wide total = __shfl_xor_sync(~0u, own[g].total, step);
      own[g] = {largest, own[g].total * kept + total * added};
#pragma unroll
      for (int i = 0; i < columns; ++i) {
        Wide sum = __shfl_xor_sync(~0u, sums[g][i], step);
        sums[g][i] = sums[g][i] * kept + sum * added;
      }
    }
    if (in_warp == 0) shared_states[warp][g] = own[g];
    if (in_warp < lanes)
#pragma unroll
      for (int i = 0; i < columns; ++i) shared_sums[warp][g][lane * columns + i] = sums[g][i];
  }
  __syncthreads();
  int some = min(queries, group - first_query);
  for (int at_once = threadIdx.x; at_once < some * slice; at_once += decode_block) {
    int g = at_once / slice;
    int64_t column = first_column + at_once % slice;
    State whole = State::empty();
#pragma unroll
    for (int w = 0; w < warps; ++w) whole.largest = State::larger(whole.largest, shared_states[w][g].largest);
    Wide sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      Wide weight = State::weight(shared_states[w][g].largest, whole.largest);
      whole.total += weight * shared_states[w][g].total;
      sum += weight * shared_sums[w][g][at_once % slice];
    }
    int64_t part = (sequence * shape.heads + first_head + first_query + g) * grid.chunks + number;
    if (column < shape.values) partial_sums[part * shape.values + column] = sum;
    if (column == 0) states[part] = whole;
  }
}

template <int lanes, int queries, class Stored, class Wide>
Status decode_by(Executor executor, const Decode<Stored, Wide>& work) {
  constexpr int columns = decode_columns<Stored>;
  const DecodeShape& shape = work.shape;
  int64_t all = shape.all_sequences(), chunks = work.chunks();
  DecodeGrid grid{ceil_div(shape.group(), queries), ceil_div(shape.values, lanes * columns), chunks};
  int64_t blocks = all * shape.kv_heads * grid.tiles * grid.slices * chunks, most = (int64_t(1) << 31) - 1;
  if (blocks > most || all * shape.heads > most) return {"there are more than 2^31 - 1 blocks of keys"};
  auto* states = executor.scratch<SoftmaxState<Wide>>(all * shape.heads * chunks);
  Wide* sums = executor.scratch<Wide>(all * shape.heads * chunks * shape.values);
  if (states == nullptr || sums == nullptr) return small_workspace;
  bool full = shape.d % (lanes * columns) == 0 && shape.values % (lanes * columns) == 0;
  auto chunk =
      full ? decode_chunks<lanes, queries, true, Stored, Wide> : decode_chunks<lanes, queries, false, Stored, Wide>;
  if (blocks > 0) chunk<<<unsigned(blocks), decode_block, 0, executor.stream>>>(work, grid, states, sums);
  if (Status status = launched(); !status.ok()) return status;
  return decode_merge_of(executor, work, states, sums);
}

template <int queries, class Stored, class Wide>
Status decode_of(const Executor& executor, const Decode<Stored, Wide>& work) {
  int64_t loads = ceil_div(std::max(work.shape.d, work.shape.values), decode_columns<Stored>);
  if (loads <= 8) return decode_by<8, queries>(executor, work);
  if (loads <= 16) return decode_by<16, queries>(executor, work);
  return decode_by<32, queries>(executor, work);
}

template <class Stored, class Wide>
Status decode_of_any(const Executor& executor, const Decode<Stored, Wide>& work) {
  if (work.shape.group() == 1) return decode_of<1>(executor, work);
  if (sizeof(Wide) == 8 || work.shape.group() <= 4) return decode_of<4>(executor, work);
  if constexpr (sizeof(Wide) == 4) return decode_of<8>(executor, work);
  return {};
}

}  // namespace internal
}  // namespace baracuda
