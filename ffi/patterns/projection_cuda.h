// The projection pattern on a CUDA grid: a group of lanes for each row, of a warp or of a block. A row is read once and
// stays in registers while its threshold is found; of longer rows than a block has registers for, the rest is read for
// each sum, or, where one sum finds the threshold, they are in rings (rows_ring_cuda.h), or, where they are few,
// divided among many blocks (rows_parts_cuda.h). The functor is one of sparsemax.h or softmax.h.
#pragma once

#include <algorithm>
#include <limits>

#include "../kernels/greater.h"
#include "../kernels/reduce/log_sum_exp.h"
#include "../kernels/row_sums.h"
#include "executor.h"
#include "rows_parts_cuda.h"
#include "rows_ring_cuda.h"

namespace baracuda {
namespace internal {

// A block's threads: where rows have a warp or less, and the most where each has a block.
inline constexpr int projection_block = 128, projection_most_lanes = 512;

template <class Wide>
struct LargestOfRow {
  static __device__ Wide larger(Wide a, Wide b) {
    if constexpr (std::is_same_v<Wide, float>) return greater(a, b);
    return ((b > a) | (b != b)) ? b : a;
  }
  __device__ void merge(Wide& a, Wide b) const { a = larger(a, b); }
};
// Of two pairs of 16-bit floats, NaN where one is.
template <class Element>
__device__ uint32_t larger_pair(uint32_t a, uint32_t b) {
  uint32_t c;
  if constexpr (std::is_same_v<Element, Half>)
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  else
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
template <class Wide>
struct SumsOfRow {
  __device__ void merge(PairSums<Wide, 1>& a, const PairSums<Wide, 1>& b) const { a.add(b); }
};

// A projection of one step as the rows pattern has it: the largest element, then the sum, then the results.
template <class Projection>
struct SumOfProjection {
  using Element = typename Projection::Element;
  using Wide = typename Projection::Wide;
  static constexpr int sums = 4;  // apart from each other, so that none waits for the one before
  Projection projection;
  Wide largest;

  __device__ Wide part(Element element) const {
    return Projection::part((Wide(element) - largest) * Projection::scale);
  }
  __device__ PairSums<Wide, sums> start() const {
    PairSums<Wide, sums> s;
    s.clear();
    return s;
  }
  template <int V>
  __device__ void push(PairSums<Wide, sums>& s, const Vector<Element, V>& in) const {
#pragma unroll
    for (int k = 0; k < V; ++k) Projection::push(part(in.lane[k]), Wide(-1), s.first[k % sums], s.second[k % sums]);
  }
  __device__ PairSums<Wide, 1> merged(const PairSums<Wide, sums>& s) const { return s.merged(); }
  __device__ void merge(PairSums<Wide, 1>& a, const PairSums<Wide, 1>& b) const { a.add(b); }
  // NaN where the largest element is not finite, and then so is the row.
  __device__ Wide block(const PairSums<Wide, 1>& s) const {
    Wide tau = largest - largest - 1;
    return tau == tau ? Projection::next(tau, s.first[0], s.second[0]) : tau;
  }
  __device__ void finish(int64_t row, Wide tau) const { projection.finish(row, largest, tau); }
  template <int V>
  __device__ Vector<Element, V> copied(const Element* from, int) const {
    return load<V>(from);
  }
  template <int V>
  __device__ void write(int64_t element, const Vector<Element, V>& in, Wide tau) const {
    Vector<Element, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = Projection::value(part(in.lane[k]), tau);
    store<V>(projection.y + element, out);
  }
};
template <class Projection>
struct LargestOfProjection : LargestOfRow<typename Projection::Wide> {
  using Element = typename Projection::Element;
  using Wide = typename Projection::Wide;
  static constexpr int arrays = 1, most_in_registers = projection_most_lanes * 32, most_of_few = 2 * most_in_registers;
  Projection projection;

  explicit LargestOfProjection(const Projection& projection) : projection(projection) {}
  BARACUDA_HD const Element* array(int) const { return projection.x; }
  __device__ Wide start() const { return -std::numeric_limits<Wide>::infinity(); }
  template <int V>
  __device__ void push(Wide& largest, const Vector<Element, V>& in) const {
    if constexpr (V == 8 && has_extreme_instructions) {
      // Words of two elements at a time.
      uint4 words = bit_cast<uint4>(in);
      uint32_t most =
          larger_pair<Element>(larger_pair<Element>(words.x, words.y), larger_pair<Element>(words.z, words.w));
      Vector<Element, 2> pair = bit_cast<Vector<Element, 2>>(most);
      largest = this->larger(largest, this->larger(Wide(pair.lane[0]), Wide(pair.lane[1])));
    } else {
#pragma unroll
      for (int k = 0; k < V; ++k) largest = this->larger(largest, Wide(in.lane[k]));
    }
  }
  __device__ SumOfProjection<Projection> after(Wide largest) const { return {projection, largest}; }
  template <int V>
  __device__ Vector<Element, V> copied(const Element* from, int) const {
    return load<V>(from);
  }
};

// A projection of one step whose largest element and sum of exponentials are found at once, for parts of rows.
template <class Projection>
struct PartOfProjection : ReduceLogSumExp<typename Projection::Element> {
  using Element = typename Projection::Element;
  using Wide = typename Projection::Wide;
  using Base = ReduceLogSumExp<Element>;
  using State = typename Base::template State<1>;
  struct Block {
    Wide largest, tau;
  };
  Projection projection;

  explicit PartOfProjection(const Projection& projection) : Base{nullptr, nullptr}, projection(projection) {}
  static int64_t divided_from(int64_t columns) {
    if (columns % int(16 / sizeof(Element))) return 8192;
    return sizeof(Element) == 2 ? 16384 : 12288;
  }
  bool is_aligned() const {
    return (reinterpret_cast<uintptr_t>(projection.x) | reinterpret_cast<uintptr_t>(projection.y)) % 16 == 0;
  }
  BARACUDA_HD State start() const {
    State s;
    this->none(s);
    return s;
  }
  template <int V>
  __device__ Vector<Element, V> read(int64_t element) const {
    return load<V>(projection.x + element);
  }
  template <int V, int n>
  __device__ void push_all(State& s, const Vector<Element, V> (&in)[n]) const {
    Base::template push<1, n * V>(s, [&](int i, int) { return in[i / V].lane[i % V]; });
  }
  // Adds nothing.
  template <int V>
  __device__ Vector<Element, V> absent() const {
    Vector<Element, V> none;
#pragma unroll
    for (int k = 0; k < V; ++k) none.lane[k] = Element(-std::numeric_limits<Wide>::infinity());
    return none;
  }
  __device__ Block block(const State& s) const {
    PairSums<Wide, 1> sums{{s.second[0]}, {0}};
    return {s.first[0], of(s.first[0]).block(sums)};
  }
  __device__ void finish(int64_t row, const Block& block) const { of(block.largest).finish(row, block.tau); }
  template <int V>
  __device__ void write(int64_t element, const Vector<Element, V>& in, const Block& block) const {
    of(block.largest).write(element, in, block.tau);
  }

 private:
  __device__ SumOfProjection<Projection> of(Wide largest) const { return {projection, largest}; }
};

// How a kernel has rows: a lane has `held` vectors of V elements in registers. Those of a warp are next to each other;
// with `parts` a row has only a part of a warp. With `rest` a row may be longer: the rest is read from memory each
// time.
template <int V_, int held_, bool parts_, bool rest_, int threads_, int blocks_>
struct Lanes {
  static constexpr int V = V_, held = held_, threads = threads_, blocks = blocks_;
  static constexpr bool parts = parts_, rest = rest_;
};

// What a lane has of a row.
template <class Projection, class Lanes>
struct LaneOfRow {
  static constexpr int V = Lanes::V, held = Lanes::held;
  using T = typename Projection::Element;
  using Wide = typename Projection::Wide;
  const T* x;
  T* y;
  int first, step, columns;  // of its vectors in registers, and the number of elements of the row that are in registers
  int64_t end;               // of the rest

  __device__ LaneOfRow(const Projection& projection, int64_t row, int64_t row_columns)
      : x(projection.x + row * row_columns), y(projection.y + row * row_columns), end(row_columns) {
    int thread = threadIdx.x, all = blockDim.x * V * held;
    step = (Lanes::parts ? int(blockDim.x) : 32) * V;
    first = Lanes::parts ? thread * V : thread / 32 * held * step + thread % 32 * V;
    columns = int(row_columns < all ? row_columns : all);
  }
  __device__ bool has(int i) const { return first + i * step < columns; }
  // Calls body(vector, position) for the rest.
  template <class Body>
  __device__ void each_other(const Body& body) const {
    if constexpr (Lanes::rest)
      for (int64_t i = (blockDim.x * held + threadIdx.x) * int64_t(V); i < end; i += blockDim.x * V)
        body(load<V>(x + i), i);
  }
};

// Elements that are not there are -infinity, which adds nothing.
template <class Projection, class Lanes>
__global__ void __launch_bounds__(Lanes::threads, Lanes::blocks)
    project(Projection projection, int64_t rows, int64_t columns) {
  using T = typename Projection::Element;
  using Wide = typename Projection::Wide;
  using Largest = LargestOfRow<Wide>;
  constexpr int V = Lanes::V, held = Lanes::held, warps = Lanes::threads / 32;
  constexpr int sums = sizeof(Wide) == 4 ? 4 : 2;  // apart from each other, so that none waits for the one before
  constexpr Wide infinity = std::numeric_limits<Wide>::infinity();
  __shared__ Wide shared_largest[warps];
  __shared__ PairSums<Wide, 1> shared_sums[2][warps];  // in turn, since one may still be read

  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  LaneOfRow<Projection, Lanes> lane(projection, row < rows ? row : rows - 1, columns);
  if (row >= rows) lane.columns = 0;
  Wide z[held * V], largest = -infinity;
  {
    Vector<T, V> loaded[held];
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (lane.has(i)) loaded[i] = load<V>(lane.x + lane.first + i * lane.step);
#pragma unroll
    for (int i = 0; i < held * V; ++i) {
      z[i] = lane.has(i / V) ? Wide(loaded[i / V].lane[i % V]) : -infinity;
      largest = Largest::larger(largest, z[i]);
    }
  }
  lane.each_other([&](const Vector<T, V>& more, int64_t) {
#pragma unroll
    for (int k = 0; k < V; ++k) largest = Largest::larger(largest, Wide(more.lane[k]));
  });
  largest = of_row(Largest{}, largest, shared_largest);
  auto part = [largest](auto element) { return Projection::part((Wide(element) - largest) * Projection::scale); };
#pragma unroll
  for (int i = 0; i < held * V; ++i) z[i] = part(z[i]);

  Wide tau = largest - largest - 1;  // NaN where the largest element is not finite, and then so is the row
  bool is_open = tau == tau;
  for (int number = 0; number < Projection::steps; ++number) {
    PairSums<Wide, sums> s;
    s.clear();
#pragma unroll
    for (int i = 0; i < held * V; ++i) Projection::push(z[i], tau, s.first[i % sums], s.second[i % sums]);
    lane.each_other([&](const Vector<T, V>& more, int64_t) {
#pragma unroll
      for (int k = 0; k < V; ++k) Projection::push(part(more.lane[k]), tau, s.first[k % sums], s.second[k % sums]);
    });
    PairSums<Wide, 1> total = of_row(SumsOfRow<Wide>{}, s.merged(), shared_sums[number % 2]);
    Wide next = Projection::next(tau, total.first[0], total.second[0]);
    bool rises = next > tau;
    if (is_open) tau = next;  // also a last correction
    is_open &= rises;
    // All lanes of a row agree; a warp may have several rows.
    if (!__any_sync(0xffffffffu, is_open)) break;
  }
  if constexpr (requires { projection.finish(row, largest, tau); })
    if (threadIdx.x == 0 && row < rows) projection.finish(row, largest, tau);

#pragma unroll
  for (int i = 0; i < held; ++i) {
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = Projection::value(z[i * V + k], tau);
    if (lane.has(i)) store<V>(lane.y + lane.first + i * lane.step, out);
  }
  lane.each_other([&](const Vector<T, V>& more, int64_t position) {
    Vector<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.lane[k] = Projection::value(part(more.lane[k]), tau);
    store<V>(lane.y + position, out);
  });
}

template <class Lanes, class Projection>
Status project_by(const Executor& executor, const Projection& projection, int64_t rows, int64_t columns, int lanes) {
  dim3 block(unsigned(lanes),
             unsigned(lanes < projection_block && Lanes::threads == projection_block ? projection_block / lanes : 1));
  project<Projection, Lanes>
      <<<unsigned(ceil_div(rows, block.y)), block, 0, executor.stream>>>(projection, rows, columns);
  return launched();
}

// Rows that a warp has registers for. Lanes are a power of two, so that a warp has whole rows.
template <int V, int held, class Projection>
Status project_by_warps(const Executor& executor, const Projection& projection, int64_t rows, int64_t columns) {
  constexpr int blocks = sizeof(typename Projection::Wide) == 4 ? 8 : 4;
  int lanes = 1;
  while (lanes * V * held < columns) lanes *= 2;
  if constexpr (V > 1 || held <= 8)
    if (lanes < 32)
      return project_by<Lanes<V, held, true, false, projection_block, blocks>>(executor, projection, rows, columns,
                                                                               lanes);
  return project_by<Lanes<V, held, false, false, projection_block, blocks>>(executor, projection, rows, columns, 32);
}

// 32 elements a lane for a warp or a block, 16 of float64, and twice as many for longer rows where all fit in
// registers.
template <int V, class Projection>
Status project_long_rows(const Executor& executor, const Projection& projection, int64_t rows, int64_t columns) {
  constexpr int is_wide = sizeof(typename Projection::Wide) / 8, held = 32 / V / (1 + is_wide);
  constexpr int most = projection_most_lanes, longest = V > 1 && !is_wide ? 2 * held : held;
  auto run = [&](auto lanes) {
    using Lanes = decltype(lanes);
    int64_t warps = ceil_div(columns, 32 * Lanes::V * Lanes::held);
    return project_by<Lanes>(executor, projection, rows, columns, int(std::min<int64_t>(most, 32 * warps)));
  };
  // Few rows have more lanes, with fewer elements each.
  if constexpr (Projection::steps == 1 && !is_wide) {
    constexpr int few = V > 1 ? 16 / V : 8, most_of_few = V > 1 ? 3072 : most * few;
    if (columns > 256 && columns <= most_of_few && rows <= multiprocessors_of_device())
      return run(Lanes<V, few, false, false, most, 2>{});
  }
  if (columns <= 32 * V * held) return project_by_warps<V, held>(executor, projection, rows, columns);
  if (columns <= most * V * held) return run(Lanes<V, held, false, false, most, 2 - is_wide>{});
  if constexpr (Projection::steps == 1 && !is_wide)
    if (Status status; run_ring<(V > 1)>(executor, LargestOfProjection<Projection>(projection), rows, columns, status))
      return status;
  if constexpr (longest > held)
    if (columns <= most * V * longest) return run(Lanes<V, longest, false, false, most, 1>{});
  return run(Lanes<V, longest, false, true, most, 1>{});
}

}  // namespace internal

template <class Projection>
Status project_rows(const Executor& executor, const Projection& projection, int64_t rows, int64_t columns) {
  constexpr int V = 16 / sizeof(typename Projection::Element);
  if (rows * columns == 0) return {};
  if constexpr (Projection::steps == 1) {
    internal::PartOfProjection<Projection> part(projection);
    if (Status status; internal::run_parts(executor, part, rows, columns, status)) return status;
  }
  if (columns % V == 0) return internal::project_long_rows<V>(executor, projection, rows, columns);
  if (columns <= 32 * 4) return internal::project_by_warps<1, 4>(executor, projection, rows, columns);
  if (columns <= 32 * 8) return internal::project_by_warps<1, 8>(executor, projection, rows, columns);
  return internal::project_long_rows<1>(executor, projection, rows, columns);
}

}  // namespace baracuda
