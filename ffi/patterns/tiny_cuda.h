// The tiny pattern on a CUDA grid. A matrix of at most 4 x 4 is one thread's; a larger one is that of a team of 8, 16
// or 32 neighboring lanes, of which each has a row or a column, or up to three rows or columns. Either way a block has
// some neighboring matrices in shared memory: it reads and writes them as one range, in which neighboring threads have
// neighboring elements.
#pragma once

#include <algorithm>

#include "divisor.h"
#include "shared_memory_cuda.h"
#include "tiny.h"

namespace baracuda {
namespace internal {

inline constexpr int tiny_block = 128;

// Where the elements of an array are in the memory of a block: those of its first matrix, and so many slots to the next
// one. Of a matrix a thread, an array's matrices are neighbors, an odd number of slots apart, and the elements of each
// are; of teams, a matrix has all its arrays together, and rows of an odd length, so that the elements of a column are
// in different banks.
struct TinySlots {
  int first, step, row_step, rows, columns;
  Divisor<int32_t> size, of_row;
};

template <int arrays>
struct TinyPlan {
  TinySlots array[arrays];
  int matrices;  // of a block
};

// Members of a warp that have a matrix together, with up to so many rows each. All teams of a warp are in step.
template <int lanes, int rows_of_member, class T>
struct TinyTeam {
  static constexpr unsigned warp = 0xffffffffu;
  static constexpr int members = lanes, rows = rows_of_member;

  T* pairs;  // shared memory, of two numbers for each two members

  template <class Body>
  __device__ __forceinline__ void each(int first, int last, const Body& body) const {
    for (int i = threadIdx.x % lanes; i < last; i += lanes)
      if (i >= first) body(i);
  }
  __device__ __forceinline__ void sync() const { __syncwarp(); }
  __device__ __forceinline__ int index() const { return threadIdx.x % lanes; }
  template <class S>
  __device__ __forceinline__ S from(S x, int member) const {
    return __shfl_sync(warp, x, member, lanes);
  }
  template <class S>
  __device__ __forceinline__ S largest(S x) const {
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) x = max(x, __shfl_xor_sync(warp, x, distance));
    return x;
  }
  template <class Pair>
  __device__ __forceinline__ void share(int k, const Pair& pair) const {
    reinterpret_cast<Pair*>(pairs)[k] = pair;
  }
  template <class Pair>
  __device__ __forceinline__ Pair shared(int k) const {
    return reinterpret_cast<const Pair*>(pairs)[k];
  }

  // Magnitudes; NaN is the largest where it is the first, and smaller than all others elsewhere, as for tiny::Alone.
  template <class Value>
  __device__ __forceinline__ auto first_largest(int first, int last, const Value& value) const {
    using S = decltype(value(first));
    S best = S(-2);
    int index = last;
    each(first, last, [&](int i) {
      S found = value(i);
      if (!(found >= 0)) found = i == first ? std::numeric_limits<S>::infinity() : S(-1);
      if (found > best) best = found, index = i;
    });
#pragma unroll
    for (int distance = 1; distance < lanes; distance *= 2) {
      S other = __shfl_xor_sync(warp, best, distance);
      int of_other = __shfl_xor_sync(warp, index, distance);
      if (other > best || (other == best && of_other < index)) best = other, index = of_other;
    }
    return S(index);
  }
  // Which member has the largest x, of several the one with the smallest position. None is NaN, and the largest is not
  // negative: so its bits are those of the largest integer.
  __device__ __forceinline__ int first_of_largest(float x, int position) const {
    const int number = __float_as_int(x), most = largest_of_team(number, std::numeric_limits<int>::min());
    return first_of(number == most, position);
  }
  __device__ __forceinline__ int first_of_largest(double x, int position) const {
    const int high = __double2hiint(x), most = largest_of_team(high, std::numeric_limits<int>::min());
    const unsigned low = high == most ? unsigned(__double2loint(x)) : 0u, most_low = largest_of_team(low, 0u);
    return first_of(high == most && low == most_low, position);
  }
  // The warp's for each team in turn: halving a team takes a shuffle each time, of which none begins before the last.
  template <class Integer>
  __device__ __forceinline__ Integer largest_of_team(Integer x, Integer none) const {
    Integer most = none;
#pragma unroll
    for (int team = 0; team < 32 / lanes; ++team) {
      const bool is_own = lanes == 32 || int(threadIdx.x) % 32 / lanes == team;
      const Integer found = __reduce_max_sync(warp, is_own ? x : none);
      most = is_own ? found : most;
    }
    return most;
  }
  __device__ __forceinline__ int first_of(bool condition, int position) const {
    constexpr unsigned all = lanes == 32 ? warp : (1u << lanes % 32) - 1;
    const int shift = int(threadIdx.x) % 32 / lanes * lanes;
    unsigned which = __ballot_sync(warp, condition) >> shift & all;
    if (__any_sync(warp, (which & (which - 1)) != 0)) {
      const int least = -largest(condition ? -position : std::numeric_limits<int>::min());
      which = __ballot_sync(warp, condition && position == least) >> shift & all;
    }
    return __ffs(int(which)) - 1;
  }
  __device__ __forceinline__ bool of_matrix(bool condition) const {
    constexpr unsigned members = lanes == 32 ? warp : (1u << lanes % 32) - 1;
    return __ballot_sync(warp, condition) >> threadIdx.x % 32 / lanes * lanes & members;
  }
  __device__ __forceinline__ bool any(bool condition) const { return __any_sync(warp, condition); }
};

// Neighbors to neighbors, of which one side is memory and the other one shared: 16 bytes at a time where they may be.
template <bool to_memory, class From, class To>
__device__ void tiny_copy(const From* from, To* to, int count) {
  constexpr int V = 16 / std::max(sizeof(From), sizeof(To));
  bool is_aligned = (to_memory ? reinterpret_cast<uintptr_t>(to) : reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  int whole = is_aligned ? count / V * V : 0;
  for (int e = int(threadIdx.x) * V; e < whole; e += int(blockDim.x) * V) {
    Vector<From, V> some = load<V>(from + e);
    Vector<To, V> moved;
#pragma unroll
    for (int i = 0; i < V; ++i) moved.lane[i] = To(some.lane[i]);
    if constexpr (to_memory)
      store<V>(to + e, moved);
    else
      *reinterpret_cast<Vector<To, V>*>(to + e) = moved;
  }
  for (int e = whole + int(threadIdx.x); e < count; e += int(blockDim.x)) to[e] = To(from[e]);
}

// What each of the block's matrices has in its slots, from or to a range of memory, of which a thread waits for so many
// loads of 16 bytes at once.
template <bool to_memory, int lanes, int loads, bool is_aligned, class T, class Other>
__device__ void tiny_move(const TinySlots& slots, int matrices, T* memory, Other* other) {
  int size = slots.rows * slots.columns, count = matrices * size;
  if (lanes == 1 && slots.step == size) {
    if constexpr (to_memory)
      tiny_copy<true>(memory + slots.first, other, count);
    else
      tiny_copy<false>(other, memory + slots.first, count);
    return;
  }
  auto slot_of = [&](int e) {
    int matrix = slots.size.quotient(e), element = e - matrix * size;
    int slot = matrix * slots.step + slots.first + element;
    if constexpr (lanes > 1) slot += slots.of_row.quotient(element) * (slots.row_step - slots.columns);
    return memory + slot;
  };
  constexpr int V = 16 / std::max(sizeof(T), sizeof(Other));
  if (lanes > 1 && slots.columns % V == 0 && reinterpret_cast<uintptr_t>(other) % 16 == 0) {
    constexpr int ahead = to_memory ? 1 : loads;
    const int step = int(blockDim.x) * V;
    for (int start = int(threadIdx.x) * V; start < count; start += ahead * step) {
      Vector<std::remove_const_t<Other>, V> some[ahead];
#pragma unroll
      for (int h = 0; h < ahead; ++h)
        if (int e = start + h * step; !to_memory && e < count) some[h] = load<V>(other + e);
#pragma unroll
      for (int h = 0; h < ahead; ++h) {
        int e = start + h * step;
        if (e >= count) break;
        T* slot = slot_of(e);
        Vector<T, V> moved;
        if constexpr (to_memory && is_aligned) moved = load<V>(slot);
#pragma unroll
        for (int i = 0; i < V; ++i) {
          if constexpr (to_memory)
            some[h].lane[i] = Other(is_aligned ? moved.lane[i] : slot[i]);
          else if constexpr (is_aligned)
            moved.lane[i] = T(some[h].lane[i]);
          else
            slot[i] = T(some[h].lane[i]);
        }
        if constexpr (!to_memory && is_aligned) *reinterpret_cast<Vector<T, V>*>(slot) = moved;
        if constexpr (to_memory) store<V>(other + e, some[h]);
      }
    }
    return;
  }
  for (int e = int(threadIdx.x); e < count; e += int(blockDim.x)) {
    if constexpr (to_memory)
      other[e] = Other(*slot_of(e));
    else
      *slot_of(e) = T(other[e]);
  }
}

// Whether rows of teams begin at multiples of 16 bytes, of which there are an odd number from row to row, and have room
// for as many columns as a team has lanes, or for panels where a lane has several rows.
template <int lanes, int rows, class Functor>
inline constexpr bool tiny_aligned =
    lanes > 1 && (requires { Functor::aligned_rows; } || (lanes * rows > 32 && requires { Functor::aligned_panels; }));

// Blocks on a multiprocessor that registers are to leave room for, 0 for as many as the compiler thinks best. Four of
// those whose lanes have rows of 32 float32 take 15 to 22 % less than three.
template <int lanes, int rows, class T, class Functor>
inline constexpr int tiny_blocks =
    tiny_aligned<lanes, rows, Functor> && lanes == 32 && rows == 1 && sizeof(T) == 4 ? 4 : 0;

// `lanes` is 1 for a matrix a thread, and otherwise times `rows` at least the size of a matrix.
template <int lanes, int rows, int loads, class T, class Functor, class Size>
__global__ __launch_bounds__(tiny_block,
                             tiny_blocks<lanes, rows, T, Functor>) void tiny_kernel(Tiny<T, Functor> work,
                                                                                    TinyPlan<Functor::arrays> plan,
                                                                                    Size n) {
  constexpr bool is_aligned = tiny_aligned<lanes, rows, Functor>;
  extern __shared__ __align__(16) unsigned char tiny_memory[];
  T* memory = reinterpret_cast<T*>(tiny_memory);
  int64_t first = int64_t(blockIdx.x) * plan.matrices;
  int matrices = int(min(int64_t(plan.matrices), work.batches - first));
#pragma unroll
  for (int k = 0; k < Functor::arrays; ++k) {
    int64_t offset = first * work.array[k].size();
    if (const T* from = work.array[k].from; from != nullptr)
      tiny_move<false, lanes, loads, is_aligned>(plan.array[k], matrices, memory, from + offset);
    if (const int32_t* from = work.array[k].from_integers; from != nullptr)
      tiny_move<false, lanes, loads, is_aligned>(plan.array[k], matrices, memory, from + offset);
  }
  __syncthreads();
  // Teams after the last matrix compute with what is in their memory, since those of a warp stay in step.
  tiny::View<T> views[Functor::arrays];
#pragma unroll
  for (int k = 0; k < Functor::arrays; ++k)
    views[k] = {memory + plan.array[k].first + int(threadIdx.x) / lanes * plan.array[k].step, plan.array[k].row_step};
  if constexpr (lanes == 1) {
    work.functor(tiny::Alone<true>{}, n, work.k, views);
  } else {
    __shared__ __align__(16) T pairs[tiny_block];
    work.functor(TinyTeam<lanes, rows, T>{pairs + int(threadIdx.x) / lanes * lanes}, n, work.k, views);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Functor::arrays; ++k) {
    int64_t offset = first * work.array[k].size();
    if (T* to = work.array[k].to; to != nullptr)
      tiny_move<true, lanes, loads, is_aligned>(plan.array[k], matrices, memory, to + offset);
    if (int32_t* to = work.array[k].integers; to != nullptr)
      tiny_move<true, lanes, loads, is_aligned>(plan.array[k], matrices, memory, to + offset);
  }
}

template <int lanes, int rows, class T, class Functor, class Size>
Status tiny_launch(Executor executor, const Tiny<T, Functor>& work, Size n) {
  constexpr int64_t most_bytes = 96 << 10;  // two blocks on a multiprocessor, and more where one needs less
  TinyPlan<Functor::arrays> plan;
  int slots = 0;
  for (int k = 0; k < Functor::arrays; ++k) {
    auto& array = work.array[k];
    int row_step = lanes == 1 || array.columns == 1 ? array.columns : array.columns | 1;
    int step = array.rows * row_step;
    if (lanes == 1) step |= 1;
    if constexpr (tiny_aligned<lanes, rows, Functor>) {
      constexpr int V = 16 / int(sizeof(T));
      const int room = rows > 1 ? ceil_div(array.columns, 8) * 8 : std::max(array.columns, lanes);
      if (k == 0 || array.columns > 1) row_step = V * (ceil_div(room, V) | 1);
      step = V * ceil_div(array.rows * row_step, V);
    }
    plan.array[k] = {slots, step, row_step, array.rows, array.columns, {}, {}};
    plan.array[k].size = Divisor<int32_t>(std::max(1, array.size()));
    plan.array[k].of_row = Divisor<int32_t>(std::max(1, array.columns));
    slots += step;
  }
  // The banks of a team's rows, or columns, come after those of the team before it.
  if (lanes > 1) slots += (lanes - slots) & 31;
  int threads = tiny_block;
  auto bytes = [&] { return int64_t(threads) / lanes * slots * int64_t(sizeof(T)); };
  while (threads > 32 && bytes() > most_bytes) threads /= 2;
  plan.matrices = threads / lanes;
  for (TinySlots& array : plan.array) {
    if (lanes == 1)
      array.first *= plan.matrices;  // a multiple of 16 bytes
    else
      array.step = slots;
  }
  // All of a thread's loads of a square matrix at once, if they take no registers from further blocks: so it is if
  // there are few, or rows are in registers, or there is shared memory for at most six blocks on a multiprocessor.
  constexpr int most = std::clamp(lanes * rows * rows * int(sizeof(T)) / 16, 1, 8),
                few = rows > 1 || tiny_aligned<lanes, rows, Functor> || most <= 4 ? most : 1;
  auto kernel = tiny_kernel<lanes, rows, few, T, Functor, Size>;
  if constexpr (most > few)
    if (bytes() > 32 << 10) kernel = tiny_kernel<lanes, rows, most, T, Functor, Size>;
  if (Status status = allow_shared_memory(kernel, bytes()); !status.ok()) return status;
  kernel<<<unsigned(ceil_div(work.batches, plan.matrices)), threads, size_t(bytes()), executor.stream>>>(work, plan, n);
  return launched();
}

template <class T, class Functor>
Status tiny_teams(Executor executor, const Tiny<T, Functor>& work, int side) {
  constexpr bool several_rows = requires { Functor::several_rows; };  // of a member
  if (side <= 8) return tiny_launch<8, 1>(executor, work, work.n);
  if (side <= 16) return tiny_launch<several_rows ? 8 : 16, several_rows ? 2 : 1>(executor, work, work.n);
  if constexpr (several_rows)
    if (side <= 24) return tiny_launch<8, 3>(executor, work, work.n);
  // Functors of which 64 rows take longer than a library have a `largest`.
  if constexpr (requires { Functor::largest; })
    static_assert(Functor::largest <= 32);
  else if (side > 32)
    return tiny_launch<32, 2>(executor, work, work.n);
  return tiny_launch<several_rows ? 16 : 32, several_rows ? 2 : 1>(executor, work, work.n);
}

}  // namespace internal

// Functors whose matrices are not square have n = 0, and tell by `side` how many rows a team has.
template <class T, class Functor>
Status tiny_matrices(Executor executor, const Tiny<T, Functor>& work, int64_t) {
  if (work.batches >= int64_t(1) << 31) return {"there may be 2^31 - 1 matrices"};
  int side = work.n;
  for (auto& array : work.array) side = std::max(side, array.rows);
  if constexpr (requires { Functor::aligned_rows; }) side = std::max(side, work.array[0].columns);
  return for_tiny_size(work.n, [&](auto n) {
    if constexpr (tiny::is_static<decltype(n)>)
      return internal::tiny_launch<1, 1>(executor, work, n);
    else
      return internal::tiny_teams(executor, work, side);
  });
}

}  // namespace baracuda
