// Prefixes of tokens that a warp, a part of it, or a block has in registers. The range of keys in which a prefix ends
// is halved until one key is left: nothing is sorted, and equal tokens are nothing special.
#pragma once

#include "../kernels/sampling.h"
#include "executor.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

// Tokens with one key: so many of them make a prefix's last, and `sum` its mass.
template <class Key>
struct LastTokens {
  Key key;
  uint64_t number, sum;
};

// So many of `total` reach `target`, where each has the mass `each`.
__device__ inline uint64_t number_reaching(uint64_t target, uint64_t each) {
  return target <= each ? 1 : (target + each - 1) / each;
}

// The last of the prefix that is drawn, and the mass of what is kept, as TokenDraw::kept has it, by
// search.last_of(step, target). The first step, 0, is by count. One search in the code finds all prefixes: its
// instructions are read from memory.
struct DrawnTokens {
  uint64_t kept;

  template <class Search>
  __device__ auto find(const TokenDraw& draw, uint64_t total, Search& search) {
    kept = total;
    for (int step = draw.k ? 0 : draw.has_fraction ? 1 : 2;;) {
      uint64_t target = step == 0   ? uint64_t(draw.k)
                        : step == 1 ? draw.part(draw.joint ? total : kept)
                                    : draw.point(kept);
      auto last = search.last_of(step, target);
      if (step == 2) return last;
      kept = min(kept, last.sum);
      step = step == 0 && draw.has_fraction ? 1 : 2;
    }
  }
};

// The threads that have a row: some lanes of a warp, a power of two, or a warp, or a block. All of them call these
// functions together.
template <int threads>
struct SearchTeam {
  static constexpr int warps = threads > 32 ? threads / 32 : 1;
  struct Shared {
    uint64_t values[2][warps];
  };

  Shared& shared;
  int turn = 0;

  __device__ uint64_t sum(uint64_t value) {
    return of_all(
        value, uint64_t(0),
        [](uint64_t value) {
          // 27 bits of each of 32 lanes make 32.
          constexpr int bits = threads > 32 ? 22 : 27;
          uint64_t sum = __reduce_add_sync(~0u, uint32_t(value) & ((1u << bits) - 1));
          if constexpr (threads > 32) {
            sum += uint64_t(__reduce_add_sync(~0u, uint32_t(value >> bits) & ((1u << bits) - 1))) << bits;
            return sum + (uint64_t(__reduce_add_sync(~0u, uint32_t(value >> 2 * bits))) << 2 * bits);
          }
          return sum + (uint64_t(__reduce_add_sync(~0u, uint32_t(value >> bits))) << bits);
        },
        [](uint64_t a, uint64_t b) { return a + b; });
  }
  __device__ uint32_t smallest(uint32_t value) {
    return of_all(
        value, ~0u, [](uint32_t value) { return __reduce_min_sync(~0u, value); },
        [](uint32_t a, uint32_t b) { return min(a, b); });
  }
  __device__ uint32_t largest(uint32_t value) { return ~smallest(~value); }

 private:
  template <class Value, class OfWarp, class OfTwo>
  __device__ Value of_all(Value value, Value neutral, const OfWarp& of_warp, const OfTwo& of_two) {
    if constexpr (threads < 32) {
      uint32_t lanes = ((1u << threads % 32) - 1) << threadIdx.x % 32 / threads * threads;
#pragma unroll
      for (int distance = threads / 2; distance > 0; distance /= 2)
        value = of_two(value, Value(__shfl_xor_sync(lanes, value, distance)));
      return value;
    } else {
      value = of_warp(value);
      if constexpr (warps > 1) {
        auto& values = shared.values[turn];
        uint32_t lane = threadIdx.x % 32;
        turn ^= 1;
        if (lane == 0) values[threadIdx.x / 32] = value;
        __syncthreads();
        value = of_warp(lane < warps ? Value(values[lane]) : neutral);
      }
      return value;
    }
  }
};

// The tokens that a team has. All its threads call these functions together.
template <class T, class Mass, int threads, int items>
struct HeldTokens {
  static constexpr uint32_t none = ~0u;  // the key where there is no token with a mass
  // Of 2^12 tokens of mass 2^36; or of 2^10, so that a sum has less than 27 + 32 bits.
  static constexpr int count_bit = mass_bits + (threads > 32 ? 13 : 11);
  static constexpr uint64_t one = uint64_t(1) << count_bit;
  static_assert(threads * items <= (threads > 32 ? 4096 : 1024));
  using Team = SearchTeam<threads>;

  Team team;
  uint32_t keys[items];
  uint64_t weights[items];  // the mass, and above its bits a one
  // What is known of the keys among which a prefix ends: those before and up to the last one weigh so much.
  struct Range {
    uint32_t first, last;
    uint64_t before, up_to;

    __device__ uint32_t count() const { return uint32_t(up_to >> count_bit) - uint32_t(before >> count_bit); }
  } all, range;

  __device__ explicit HeldTokens(typename Team::Shared& shared) : team{shared} {}

  static __device__ float value(uint32_t key) { return float(SortKey<T>::number(typename SortKey<T>::Key(key), true)); }
  static __device__ uint64_t mass_of(uint64_t weight) { return weight & (one - 1); }
  __device__ uint64_t total() const { return mass_of(all.up_to); }

  // Takes tokens: key_of(i) is the key of the thread's i-th, or none.
  template <class KeyOf>
  __device__ void take(const Mass& mass, const KeyOf& key_of) {
    uint64_t sum = 0;
    uint32_t first = none, last = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      keys[i] = key_of(i);
      uint64_t of = keys[i] == none ? 0 : mass.mass(value(keys[i]));
      if (!of) keys[i] = none;
      weights[i] = of ? of | one : 0;
      sum += weights[i], first = min(first, keys[i]), last = max(last, of ? keys[i] : 0);
    }
    all = {team.smallest(first), team.largest(last), 0, team.sum(sum)};
  }

  // Whether a sum of weights has so many tokens, or such a mass.
  static __device__ bool reaches(uint64_t sum, bool by_count, uint64_t target) {
    return (by_count ? sum >> count_bit : mass_of(sum)) >= target;
  }

  // The prefix of so many tokens, or the shortest of at least such a mass.
  __device__ LastTokens<uint32_t> last_of(const Mass& mass, bool by_count, uint64_t target) {
    range = all;
    if (by_count && !reaches(all.up_to, true, target)) return {none, 0, total()};
    search(by_count, target,
           [](uint32_t a, uint32_t b) { return uint32_t(SortKey<T>::of(T(Mass::middle(value(a), value(b))), true)); });
    uint32_t key = none;
#pragma unroll
    for (int i = 0; i < items; ++i)
      if (keys[i] >= range.first) key = min(key, keys[i]);
    key = team.smallest(key);
    uint64_t each = mass.mass(value(key)), before = mass_of(range.before);
    uint64_t number = by_count ? target - (range.before >> count_bit) : number_reaching(target - before, each);
    return {key, number, before + number * each};
  }

  // The position of the last of the prefix that was found, where position_of(i) is that of the thread's i-th token. No
  // prefix can be found after.
  template <class PositionOf>
  __device__ uint32_t position(const LastTokens<uint32_t>& last, const PositionOf& position_of) {
    uint32_t first = none, largest = 0;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      bool equal = keys[i] == last.key;
      keys[i] = equal ? position_of(i) : none;
      weights[i] = equal ? one : 0;
      first = min(first, keys[i]);
      if (equal) largest = max(largest, keys[i]);
    }
    if (range.count() == 1) return team.smallest(first);
    range = {team.smallest(first), team.largest(largest), 0, range.count() * one};
    search(true, last.number, [](uint32_t a, uint32_t b) { return a + (b - a) / 2; });
#pragma unroll
    for (int i = 0; i < items; ++i)
      if (keys[i] < range.first) keys[i] = none;
    first = none;
#pragma unroll
    for (int i = 0; i < items; ++i) first = min(first, keys[i]);
    return team.smallest(first);
  }

 private:
  // Halves the range, until one token is left, or several of one key.
  template <class Middle>
  __device__ void search(bool by_count, uint64_t target, const Middle& middle_of) {
    while (range.first != range.last && range.count() > 1) {
      uint32_t middle = middle_of(range.first, range.last);
      if (middle < range.first || middle >= range.last) middle = range.first;
      uint64_t sums[2] = {};
#pragma unroll
      for (int i = 0; i < items; ++i) add_up_to(sums[i % 2], weights[i], keys[i], middle);
      uint64_t sum = team.sum(sums[0] + sums[1]);
      if (reaches(sum, by_count, target))
        range.last = middle, range.up_to = sum;
      else
        range.first = middle + 1, range.before = sum;
    }
  }
  // Adds where key <= last: without a branch, and without a selection of both words.
  static __device__ void add_up_to(uint64_t& sum, uint64_t weight, uint32_t key, uint32_t last) {
    asm("{ .reg .pred p; setp.le.u32 p, %2, %3; @p add.u64 %0, %0, %1; }"
        : "+l"(sum)
        : "l"(weight), "r"(key), "r"(last));
  }
};

// A row of few tokens, by a warp or a block.
template <class T, class Mass, int threads, int items>
struct ShortRow {
  using Key = typename SortKey<T>::Key;
  using Held = HeldTokens<T, Mass, threads, items>;

  const SamplingRows<T>& rows;
  int64_t row;
  Held held;
  Mass mass;

  __device__ ShortRow(const SamplingRows<T>& rows, int64_t row, typename Held::Team::Shared& shared)
      : rows(rows), row(row), held(shared), mass(0, 0, 0) {}

  __device__ void run() {
    const Key* x = reinterpret_cast<const Key*>(rows.x) + row * rows.count;
    auto order = SortKey<T>::order(true);
    uint32_t keys[items], first = Held::none;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      uint32_t at = position(i);
      keys[i] = at < rows.count ? uint32_t(order.of(x[at])) : Held::none;
    }
#pragma unroll
    for (int i = 0; i < items; ++i) first = min(first, keys[i]);
    float largest = Held::value(held.team.smallest(first));
    if (!has_mass<Mass>(largest)) {
      if (is_first()) rows.write_none(row);
      return;
    }
    mass = rows.template mass<Mass>(row, largest);
    TokenDraw draw = rows.draw(row);
    held.take(mass, [&](int i) { return keys[i]; });
    DrawnTokens drawn;
    auto last = drawn.find(draw, held.total(), *this);
    uint32_t token = held.position(last, [&](int i) { return position(i); });
    if (is_first()) rows.write(row, mass, int32_t(token), drawn.kept);
  }

  __device__ LastTokens<uint32_t> last_of(int step, uint64_t target) { return held.last_of(mass, step == 0, target); }

 private:
  static __device__ uint32_t position(int i) { return i * threads + threadIdx.x % threads; }
  static __device__ bool is_first() { return threadIdx.x % threads == 0; }
};

inline constexpr int short_row_block = 128;

template <class T, class Mass, int threads, int items>
__global__ void __launch_bounds__(threads > short_row_block ? threads : short_row_block)
    sample_short_rows(const __grid_constant__ SamplingRows<T> rows) {
  using Row = ShortRow<T, Mass, threads, items>;
  __shared__ typename Row::Held::Team::Shared shared;
  int64_t teams = blockDim.x / threads;
  for (int64_t row = blockIdx.x * teams + threadIdx.x / threads; row < rows.rows; row += gridDim.x * teams) {
    Row(rows, row, shared).run();
    if constexpr (threads > 32) __syncthreads();
  }
}

template <class Mass, int threads, int items, class T>
Status sample_short(const Executor& executor, const SamplingRows<T>& rows) {
  constexpr int block = threads > 32 ? threads : short_row_block;
  unsigned blocks = grid_of(ceil_div(rows.rows, block / threads));
  sample_short_rows<T, Mass, threads, items><<<blocks, block, 0, executor.stream>>>(rows);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
