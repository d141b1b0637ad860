// The channels pattern on a CUDA grid: the state of each row, a channel of all elements of a batch, and then its
// elements. A row stays in the shared memory of a block, or of the blocks of a cluster, so that it is read once. A
// longer one is cut into parts whose states another kernel merges, and which it reads again, the last ones first: these
// are in the cache. Where channels are short, or do not begin at vectors, a block has several neighboring ones.
#pragma once

#include <numeric>

#include "../kernels/batch_normalize.h"
#include "groups_parts_cuda.h"

namespace baracuda {
namespace internal {

// Rows that share vectors are several for a block, a power of two that divides the channels. Their chunks are one of
// `length` contiguous elements, and a part has some of the elements of these chunks, one after another; where rows are
// several, of whole ones, and a thread has one vector of each of some chunks.
struct ChannelParts {
  int rows = 1;        // of a block
  int parts = 1;       // of its rows
  int elements = 0;    // of a part
  int threads = 32;    // of a block
  int vectors = 0;     // of a chunk of several rows
  int groups = 0;      // of threads, of which each has every so manyth chunk
  int64_t length = 0;  // of a chunk
  Divisor<int32_t> by_length;
};

inline constexpr int channels_most_rows = 32, channels_threads = 256;

// The arrays, and what a block needs of memory: for an element of them, a state, a sum of a thread, and what is known
// of a row.
struct ChannelBytes {
  int arrays, element, state, sum, row;

  int64_t of(const ChannelParts& parts) const {
    int64_t states = parts.rows * (2 * (parts.threads / 32) + groups_most_cluster + 1);
    return ceil_div(int64_t(parts.elements) * element, 16) * 16 + ceil_div(states * state, 16) * 16 +
           int64_t(parts.rows) * row + parts.groups * parts.length * sum + 64;
  }
};

// A part of about so many elements.
inline ChannelParts channel_parts(const BatchShape& shape, int V, const ChannelBytes& bytes, int rows, int64_t elements,
                                  int64_t blocks) {
  ChannelParts of;
  of.rows = rows, of.length = rows * shape.space;
  int64_t whole = rows > 1 ? of.length : V, all = shape.count * of.length;
  of.elements = int(std::min(ceil_div(elements, whole) * whole, int64_t(1) << 24));
  of.parts = int(ceil_div(all, of.elements));
  bool many = blocks >= groups_enough;
  if (rows > 1) {
    // Of each array a thread has 256 bytes: it has more of what it knows of channels in registers.
    int64_t threads = threads_for(of.elements * bytes.element / bytes.arrays, many, 64, channels_threads);
    of.vectors = int(of.length / V);
    of.groups = int(std::max<int64_t>(1, std::min<int64_t>(threads / of.vectors, of.elements / of.length)));
    of.threads = int(ceil_div(of.groups * of.vectors, 32)) * 32;
  } else {
    of.threads = threads_for(int64_t(of.elements) * bytes.element, many, 64, groups_most_threads);
  }
  of.by_length = Divisor<int32_t>(std::min(of.length, int64_t(1) << 30));
  return of;
}

// The rows of a block: so many that chunks are whole vectors, if the channels are a multiple of that; and more where
// chunks are shorter than what memory is read by. 0 where vectors cannot be.
inline int rows_of_channels(const BatchShape& shape, int V, int element) {
  constexpr int64_t least = 64, few = 1024;  // bytes of a chunk, elements of a row
  int64_t rows = V / std::gcd(int64_t(V), shape.space);
  if (shape.channels % rows) return 0;
  auto more = [&] {
    if (rows * 2 > channels_most_rows || shape.channels % (rows * 2)) return false;
    if (rows * shape.space * element < least) return true;
    return shape.columns() * rows <= few && shape.rows() >= 2 * rows * groups_enough;
  };
  while (more()) rows *= 2;
  return int(rows);
}

// So many blocks of a block's rows, at most a cluster, as have memory for them, and as fill the device; or, where these
// are longer or there are no clusters, parts whose states another kernel merges.
inline ChannelParts plan_channel_parts(const BatchShape& shape, int V, const ChannelBytes& bytes, int rows,
                                       int64_t most_bytes, bool has_clusters, bool& is_whole) {
  constexpr int64_t little = 4096;  // elements of a part that is not cut for the device's sake
  int64_t all = shape.columns() * rows, tiles = shape.rows() / rows;
  ChannelParts found;
  is_whole = false;
  for (int64_t count = 1; count <= (has_clusters ? groups_most_cluster : 1); count *= 2) {
    if (ceil_div(all, count) * bytes.element > most_bytes) continue;
    auto of = channel_parts(shape, V, bytes, rows, ceil_div(all, count), tiles * count);
    if (bytes.of(of) > most_bytes) continue;
    of.parts = int(count), found = of, is_whole = true;  // the last ones may have nothing
    if (tiles * count >= groups_enough || all <= little * count) break;
  }
  if (is_whole && (has_clusters || tiles >= groups_enough / 2 || all <= 2 * little)) return found;
  is_whole = false;
  int64_t capacity = groups_bytes_of_long / bytes.element, length = rows * shape.space;
  return channel_parts(shape, V, bytes, rows, rows > 1 ? capacity / length * length : capacity, groups_enough);
}

// What a block has: elements [0, elements) of its part, of which element k is element `at(k)` of the array.
struct PartOfChannels {
  int64_t row, origin, jump;
  int part, elements, until;
  Divisor<int32_t> by_length;

  __device__ PartOfChannels(const BatchShape& shape, const ChannelParts& parts, int64_t block) {
    int64_t tile = block / parts.parts;
    part = int(block - tile * parts.parts), row = tile * parts.rows;
    int64_t begin = int64_t(part) * parts.elements, chunk = begin / parts.length, after = begin - chunk * parts.length;
    int64_t left = shape.count * parts.length - begin, in_chunk = parts.length - after;
    elements = int(left < 0 ? 0 : left < parts.elements ? left : parts.elements);
    until = int(in_chunk < (1 << 30) ? in_chunk : 1 << 30);
    origin = shape.first_element(row) + chunk * shape.stride() + after;
    jump = shape.stride() - parts.length;
    by_length = parts.by_length;
  }
  __device__ int64_t at(int k) const {
    int chunk = k < until ? 0 : 1 + by_length.quotient(k - until);
    return origin + k + chunk * jump;
  }
};

// A part in shared memory, and what its threads share there.
template <int V, bool many, class Functor>
struct HeldChannels {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  using State = typename Functor::State;
  using Sum = typename Functor::Sum;
  static constexpr int arrays = Functor::arrays;

  const Functor& functor;
  const ChannelParts& parts;
  PartOfChannels of;
  T* values[arrays];
  State *own, *all;  // states of this block's rows, and of those of the cluster's blocks
  char* warps[2];
  typename Functor::Row* rows;
  Sum* sums;             // of threads
  int row, lane, lanes;  // the row that this thread merges what there is of
  int position, group;   // of this thread's vectors in chunks of several rows

  __device__ HeldChannels(const Functor& functor, const ChannelParts& parts, int64_t block, char* memory)
      : functor(functor), parts(parts), of(functor.shape, parts, block) {
    for (int a = 0; a < arrays; ++a) values[a] = reinterpret_cast<T*>(memory) + int64_t(a) * parts.elements;
    memory += (int64_t(parts.elements) * arrays * int(sizeof(T)) + 15) / 16 * 16;
    rows = reinterpret_cast<typename Functor::Row*>(memory), memory += parts.rows * sizeof(typename Functor::Row);
    own = reinterpret_cast<State*>(memory), all = own + parts.rows;
    memory += (groups_most_cluster + 1) * parts.rows * sizeof(State);
    int of_warps = parts.rows * (int(blockDim.x) / 32) * int(sizeof(State)), thread = thread_of_block();
    warps[0] = memory, warps[1] = memory + of_warps;
    sums = reinterpret_cast<Sum*>(warps[1] + of_warps);
    row = many ? thread % parts.rows : 0;
    lane = many ? thread / parts.rows : thread, lanes = many ? int(blockDim.x) / parts.rows : int(blockDim.x);
    group = many ? thread / parts.vectors : 0, position = many ? (thread - group * parts.vectors) * V : 0;
  }

  // body(k, element) for this thread's vectors, of which the element is that of the array.
  template <class Body>
  __device__ void each(const Body& body) const {
    if constexpr (many) {
      if (group >= parts.groups) return;
      int length = int(parts.length), k = group * length + position, step = parts.groups * length;
      int64_t stride = functor.shape.stride(), element = of.origin + group * stride + position;
#pragma unroll 4
      for (; k < of.elements; k += step, element += parts.groups * stride) body(k, element);
    } else {
      int step = int(blockDim.x) * V;
#pragma unroll 4
      for (int k = thread_of_block() * V; k < of.elements; k += step) body(k, of.at(k));
    }
  }
  __device__ int row_at(int i) const { return many ? (position + i) / int(functor.shape.space) : 0; }

  __device__ void copy() const {
    for (int a = 0; a < arrays; ++a) {
      const T* from = functor.operand(a);
      each([&](int k, int64_t element) {
        if constexpr (V > 1)
          copy_async(values[a] + k, from + element, 16);
        else
          values[a][k] = from[element];
      });
    }
  }

  // What the threads of each row have, merged in the order of warps, in all of them. `merge` is the first or the second
  // of the kernel.
  template <class Any>
  __device__ Any merged(Any sum, int merge) const {
    int thread = thread_of_block(), warp = thread / 32, rows_of_block = many ? parts.rows : 1;
    auto* shared = reinterpret_cast<Any*>(warps[merge]);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
      if (!many || offset >= rows_of_block) sum.add(from_lane(sum, offset));
    if (thread % 32 < rows_of_block) shared[warp * rows_of_block + thread % 32] = sum;
    __syncthreads();
    sum = shared[row];
    for (int other = 1; other < int(blockDim.x) / 32; ++other) sum.add(shared[other * rows_of_block + row]);
    return sum;
  }

  // A row's sum from those of this thread's elements: one, or one for each lane of its vectors.
  template <int W>
  __device__ Sum sum_of_row(const Sum (&of_lanes)[W], int merge) const {
    if constexpr (!many) {
      return merged(of_lanes[0], merge);
    } else {
      int length = int(parts.length), space = int(functor.shape.space);
      if (group < parts.groups)
#pragma unroll
        for (int i = 0; i < W; ++i) sums[group * length + position + i] = of_lanes[i];
      __syncthreads();
      Sum sum;
      sum.clear();
      for (int i = lane; i < parts.groups * space; i += lanes) {
        int of = i / space;
        sum.add(sums[of * length + row * space + i - of * space]);
      }
      return merged(sum, merge);
    }
  }

  // Of the part's elements of this thread's row.
  __device__ State state() const {
    constexpr int W = many ? V : 1;
    Sum found[W];
#pragma unroll
    for (int i = 0; i < W; ++i) found[i].clear();
    if constexpr (arrays == 1) {
      Wide count = Wide(many ? of.elements / parts.rows : of.elements), means[W];
      each([&](int k, int64_t) {
        auto x = load<V>(values[0] + k);
#pragma unroll
        for (int i = 0; i < V; ++i) found[i % W].lane[0] += Wide(x.lane[i]);
      });
      Wide mean = sum_of_row(found, 0).lane[0] / (count > 0 ? count : Wide(1));
      if constexpr (many) {
        if (thread_of_block() < parts.rows) own[row].mean = mean;
        __syncthreads();
      }
#pragma unroll
      for (int i = 0; i < W; ++i) {
        means[i] = mean, found[i].clear();
        if constexpr (many)
          if (group < parts.groups) means[i] = own[row_at(i)].mean;
      }
      each([&](int k, int64_t) {
        auto x = load<V>(values[0] + k);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          Wide difference = Wide(x.lane[i]) - means[i % W];
          found[i % W].lane[0] += difference * difference;
        }
      });
      return {count, mean, sum_of_row(found, 1).lane[0]};
    } else {
      typename Functor::Given given[W];
#pragma unroll
      for (int i = 0; i < W; ++i) given[i] = functor.given(of.row + (group < parts.groups ? row_at(i) : 0));
      each([&](int k, int64_t) {
        auto x = load<V>(values[0] + k), dy = load<V>(values[1] + k);
#pragma unroll
        for (int i = 0; i < V; ++i)
          functor.add(found[i % W].first[0], found[i % W].second[0], Wide(x.lane[i]), Wide(dy.lane[i]), given[i % W]);
      });
      return sum_of_row(found, 0);
    }
  }

  // The states of the cluster's blocks, added in order. All threads call `leave_cluster` at the end.
  __device__ State of_cluster(State state) const {
#if __CUDA_ARCH__ >= 900
    auto cluster = cooperative_groups::this_cluster();
    int thread = thread_of_block();
    if (thread < parts.rows) own[thread] = state;
    cluster.sync();
    for (int k = thread; k < parts.rows * parts.parts; k += int(blockDim.x))
      all[k] = cluster.map_shared_rank(own, k / parts.rows)[k % parts.rows];
    __syncthreads();
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    state = all[row];
    for (int part = 1; part < parts.parts; ++part) state.add(all[part * parts.rows + row]);
#endif
    return state;
  }

  // The results, from the state of this thread's row.
  __device__ void write(const State& state) const {
    int thread = thread_of_block(), rows_of_block = many ? parts.rows : 1;
    if (of.part == 0 && thread < rows_of_block) functor.finish(of.row + row, state);
    constexpr int W = many ? V : 1;
    typename Functor::Row here[W];
    here[0] = functor.row(of.row + row, state);
    if constexpr (many) {
      if (thread < rows_of_block) rows[thread] = here[0];
      __syncthreads();
      if (group < parts.groups)
#pragma unroll
        for (int i = 0; i < W; ++i) here[i] = rows[row_at(i)];
    }
    each([&](int k, int64_t element) {
      Vector<T, V> in[arrays], out;
#pragma unroll
      for (int a = 0; a < arrays; ++a) in[a] = load<V>(values[a] + k);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        T one[arrays];
#pragma unroll
        for (int a = 0; a < arrays; ++a) one[a] = in[a].lane[i];
        out.lane[i] = Functor::value(here[i % W], one);
      }
      store<V>(functor.result() + element, out);
    });
  }
};

// Writes results, or where `found` is not null the states of parts alone.
template <int V, bool many, class Functor>
__global__ void __launch_bounds__(groups_most_threads, many ? 1 : 2)
    channels_of_parts(const __grid_constant__ Functor functor, const __grid_constant__ ChannelParts parts,
                      typename Functor::State* found) {
  extern __shared__ __align__(16) char memory[];
  HeldChannels<V, many, Functor> held(functor, parts, blockIdx.x, memory);
  held.copy();
  wait_for_copies();
  auto state = held.state();
  if (found) {
    if (thread_of_block() < parts.rows) found[int64_t(blockIdx.x) * parts.rows + held.row] = state;
    return;
  }
  if (parts.parts > 1) state = held.of_cluster(state);
  held.write(state);
  if (parts.parts > 1) leave_cluster();
}

// The state of a row from those of its parts, and a part of the results.
template <int V, bool many, class Functor>
__global__ void __launch_bounds__(groups_most_threads, many ? 1 : 2)
    channels_by_states(const __grid_constant__ Functor functor, const __grid_constant__ ChannelParts parts,
                       const typename Functor::State* found) {
  extern __shared__ __align__(16) char memory[];
  HeldChannels<V, many, Functor> held(functor, parts, gridDim.x - 1 - int64_t(blockIdx.x), memory);
  held.copy();
  auto state = functor.empty();
  int64_t first = held.of.row * parts.parts;
  for (int part = held.lane; part < parts.parts; part += held.lanes)
    state.add(found[first + int64_t(part) * parts.rows + held.row]);
  state = held.merged(state, 0);
  wait_for_copies();
  held.write(state);
}

template <int V, bool many, class Functor>
Status run_channels_by(Executor executor, const Functor& functor, int rows) {
  using State = typename Functor::State;
  constexpr ChannelBytes bytes{Functor::arrays, Functor::arrays * int(sizeof(typename Functor::Element)),
                               int(sizeof(State)), int(sizeof(typename Functor::Sum)),
                               int(sizeof(typename Functor::Row))};
  int64_t most = 0;
  if (Status status = most_bytes_of_part(most); !status.ok()) return status;
  bool is_whole, clusters = has_clusters(channels_of_parts<V, many, Functor>);
  auto parts = plan_channel_parts(functor.shape, V, bytes, rows, most, clusters, is_whole);
  if (is_whole)
    return launch_parts(executor, channels_of_parts<V, many, Functor>, functor.shape, parts, bytes, true, functor,
                        parts, nullptr);
  auto* found = executor.scratch<State>(functor.shape.rows() * parts.parts);
  if (!found) return small_workspace;
  Status status = launch_parts(executor, channels_of_parts<V, many, Functor>, functor.shape, parts, bytes, false,
                               functor, parts, found);
  if (!status.ok()) return status;
  return launch_parts(executor, channels_by_states<V, many, Functor>, functor.shape, parts, bytes, false, functor,
                      parts, found);
}

}  // namespace internal

// The workspace has room for the states of the parts of all rows.
template <class Functor>
Status run_channels(const Executor& executor, const Functor& functor) {
  using T = typename Functor::Element;
  constexpr int V = 16 / sizeof(T);
  const BatchShape& shape = functor.shape;
  if (shape.rows() * shape.columns() == 0) return {};
  int rows = internal::rows_of_channels(shape, V, int(sizeof(T)));
  if (rows == 1) return internal::run_channels_by<V, false>(executor, functor, 1);
  // Chunks of several rows that are more than a block has threads for, or memory, are read by elements.
  constexpr int64_t most = internal::groups_bytes_of_long / (Functor::arrays * int(sizeof(T)));
  if (rows > 1 && rows * shape.space <= std::min<int64_t>(most, internal::groups_most_threads * V))
    return internal::run_channels_by<V, true>(executor, functor, rows);
  return internal::run_channels_by<1, false>(executor, functor, 1);
}

}  // namespace baracuda
