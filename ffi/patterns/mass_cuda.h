// The mass pattern on a CUDA grid. A long row has a block, which reads it three times. First it finds the largest
// element. Then it adds masses by levels of probability, which say in which levels the wanted prefixes end. The tokens
// of these are few, mostly: they are put into shared memory, and searched there. Rows in which they are many, as of
// equal ones, are left to another kernel, which finds each prefix by the digits of keys. The tokens of a short row are
// searched in the registers of a warp or a block.
#pragma once

#include "key_at_cuda.h"
#include "mass_search_cuda.h"
#include "rank_by_digits_cuda.h"
#include "row_loads_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

// The larger ones of one or two numbers that a word has; NaN if any is NaN.
template <class T>
__device__ uint32_t larger_in_word(uint32_t a, uint32_t b) {
  if constexpr (std::is_same_v<T, Half>)
    asm("max.NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  else if constexpr (std::is_same_v<T, BFloat16>)
    asm("max.NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  else
    asm("max.NaN.f32 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}

template <class T, class Mass>
struct TokenSearch {
  using Key = typename SortKey<T>::Key;
  using Element = KeyAt<Key>;
  static constexpr int threads = 512, own = mass_levels / threads;
  static constexpr uint32_t few = 4096;
  static constexpr int32_t left = -2;  // the token of a row that is not done
  using Loads = RowLoads<threads, Key>;
  using Masses = cub::BlockScan<uint64_t, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Counts = cub::BlockScan<uint32_t, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Finite = typename Mass::Finite;
  using Held = HeldTokens<T, Finite, threads, 4>;
  static constexpr uint32_t most_held = 4 * threads;  // of one level
  static_assert(rank_digits == mass_levels);

  struct Shared {
    union {
      struct {
        uint32_t low[mass_levels], high[mass_levels];  // while masses are added: there are no 64-bit atomics
      };
      uint64_t masses[mass_levels];  // up to and with each level, or digit
    };
    uint32_t counts[mass_levels];
    Element elements[few];
    uint16_t held[most_held];  // which of them
    union {
      typename Masses::TempStorage of_masses;
      typename Counts::TempStorage of_counts;
    };
    typename Held::Team::Shared team;
    LevelRanges noted;
    float high_end[3], low_end[3];  // of them
    uint32_t largest[threads / 32];
    uint32_t found, of_level;
  };

  using Last = LastTokens<Key>;

  const SamplingRows<T>& rows;
  Shared& shared;
  int64_t row;
  Loads loads;
  KeyOrder<Key> order;

  __device__ TokenSearch(const SamplingRows<T>& rows, Shared& shared, int64_t row)
      : rows(rows),
        shared(shared),
        row(row),
        loads(reinterpret_cast<const Key*>(rows.x) + row * rows.count, 0, uint32_t(rows.count)),
        order(SortKey<T>::order(true)) {}

  // Leaves a row whose listed tokens would be too many, or where some have all of the mass.
  __device__ void run() const {
    float largest = find_largest();
    if (!has_mass<Mass>(largest)) {
      if (threadIdx.x == 0) rows.write_none(row);
      return;
    }
    if (largest == std::numeric_limits<float>::infinity()) return leave();
    Finite mass = rows.template mass<Finite>(row, largest);
    TokenDraw draw = rows.draw(row);
    add_levels(mass, draw.k);
    note_levels(draw);
    find_ends(mass);
    collect();
    finish(mass, draw);
  }
  __device__ void finish(const Finite& mass, const TokenDraw& draw) const {
    if (shared.found > few) return leave();
    Listed listed{*this, mass, Held(shared.team), true};
    DrawnTokens drawn;
    auto last = drawn.find(draw, level_prefixes().total(), listed);
    if (!listed.fits) return leave();
    uint32_t token = listed.held.position(last, [&](int i) { return listed.element(i).at(); });
    if (threadIdx.x == 0) rows.write(row, mass, int32_t(token), drawn.kept);
  }
  __device__ void leave() const {
    if (threadIdx.x == 0) rows.tokens[row] = left;
  }

  // Finds the token of a row that was left, by more reads.
  __device__ void run_by_digits() const {
    if (rows.tokens[row] != left) return;
    Mass mass = rows.template mass<Mass>(row, find_largest());
    TokenDraw draw = rows.draw(row);
    uint64_t total = sum_of(mass);
    ByDigits by_digits{*this, mass};
    DrawnTokens drawn;
    auto last = drawn.find(draw, total, by_digits);
    write_number(mass, last, drawn.kept);
  }

  __device__ LevelPrefixes level_prefixes() const { return {shared.masses, shared.counts}; }

  // Calls body(load, the position of its first element, a bit for each element that there is).
  template <class Body>
  __device__ void each(const Body& body) const {
    loads.template each<2>([&](const auto& load, uint32_t offset) {
      uint32_t position = loads.position(offset);
      body(load, position, loads.mask(position));
    });
  }

  static __device__ Key nothing() { return bit_cast<Key>(T(-std::numeric_limits<float>::infinity())); }
  static __device__ float element(const typename Loads::Words& words, uint32_t j) {
    return float(bit_cast<T>(Loads::element(words, j)));
  }

  __device__ float find_largest() const {
    constexpr uint32_t words = 4;
    const uint32_t smallest = sizeof(Key) == 4 ? uint32_t(nothing()) : uint32_t(nothing()) << 16 | nothing();
    uint32_t found[words] = {smallest, smallest, smallest, smallest};
    loads.template each_words<4>(nothing(), [&](const auto& of, uint32_t) {
#pragma unroll
      for (uint32_t j = 0; j < words; ++j) found[j] = larger_in_word<T>(found[j], of.lane[j]);
    });
    uint32_t largest = larger_in_word<T>(larger_in_word<T>(found[0], found[1]), larger_in_word<T>(found[2], found[3]));
    for (int distance = 16; distance > 0; distance /= 2)
      largest = larger_in_word<T>(largest, __shfl_xor_sync(~0u, largest, distance));
    if (threadIdx.x % 32 == 0) shared.largest[threadIdx.x / 32] = largest;
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < threads / 32; ++warp) largest = larger_in_word<T>(largest, shared.largest[warp]);
    if constexpr (sizeof(Key) == 2) largest = larger_in_word<T>(largest, largest >> 16 | largest << 16);
    return float(bit_cast<T>(Key(largest)));
  }

  // Adds masses, and counts if these are wanted, by slots: slot_of(bits of an element, position, slot, mass) is whether
  // an element is added.
  template <class Slot>
  __device__ void add(bool counts, const Slot& slot_of) const {
    constexpr int n = Loads::elements;
    clear();
    each([&](const auto& load, uint32_t position, uint32_t mask) {
      uint32_t slots[n];
      uint64_t masses[n];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        slots[j] = 0, masses[j] = 0;
        if (!slot_of(load.lane[j], position + j, slots[j], masses[j])) mask &= ~(1u << j);
      }
      if (__any_sync(~0u, mask) && !add_alike(slots, masses, mask == Loads::whole, counts))
#pragma unroll
        for (int j = 0; j < n; ++j)
          if (mask >> j & 1) {
            add_high(slots[j], masses[j], add_low(slots[j], masses[j]));
            if (counts) atomicAdd(&shared.counts[slots[j]], 1u);
          }
    });
    __syncthreads();
  }
  __device__ void clear() const {
    for (int i = threadIdx.x; i < mass_levels; i += threads) shared.low[i] = shared.high[i] = shared.counts[i] = 0;
    __syncthreads();
  }
  // Each carry is seen by the one who makes it: the sum depends on no order.
  __device__ uint32_t add_low(uint32_t slot, uint64_t mass) const {
    return atomicAdd(&shared.low[slot], uint32_t(mass));
  }
  __device__ void add_high(uint32_t slot, uint64_t mass, uint32_t before) const {
    uint32_t high = uint32_t((mass + before) >> 32);
    if (high) atomicAdd(&shared.high[slot], high);
  }
  // Many with one slot would wait for each other. Whether it was so, in all lanes.
  template <int n>
  __device__ bool add_alike(const uint32_t (&slots)[n], const uint64_t (&masses)[n], bool whole, bool counts) const {
    if (!__all_sync(~0u, whole && slots[0] == slots[n - 1])) return false;
    bool alike = true;
    int same = 0;
#pragma unroll
    for (int j = 1; j < n; ++j) alike &= slots[j] == slots[0];
    if (__all_sync(~0u, alike)) __match_all_sync(~0u, slots[0], &same);
    if (!same) return false;
    uint64_t all = 0;
#pragma unroll
    for (int j = 0; j < n; ++j) all += masses[j];
    for (int distance = 16; distance > 0; distance /= 2) all += __shfl_xor_sync(~0u, all, distance);
    if (threadIdx.x % 32 == 0) {
      add_high(slots[0], all, add_low(slots[0], all));
      if (counts) atomicAdd(&shared.counts[slots[0]], 32u * n);
    }
    return true;
  }
  // Each becomes the sum up to and with it.
  __device__ void scan() const {
    uint64_t masses[own], mass = 0;
    uint32_t counts[own], count = 0;
    int first = threadIdx.x * own;
#pragma unroll
    for (int i = 0; i < own; ++i) {
      masses[i] = mass += uint64_t(shared.high[first + i]) << 32 | shared.low[first + i];
      counts[i] = count += shared.counts[first + i];
    }
    __syncthreads();
    Masses(shared.of_masses).ExclusiveSum(mass, mass);
    __syncthreads();
    Counts(shared.of_counts).ExclusiveSum(count, count);
#pragma unroll
    for (int i = 0; i < own; ++i)
      shared.masses[first + i] = mass + masses[i], shared.counts[first + i] = count + counts[i];
    __syncthreads();
  }

  // What is in the last level has no mass, and its count is not needed. The row was read before, from its beginning.
  __device__ void add_levels(const Finite& mass, bool counts) const {
    constexpr int n = 4;
    clear();
    loads.template each_words<2, true>(nothing(), [&](const auto& words, uint32_t) {
#pragma unroll
      for (int first = 0; first < int(Loads::elements); first += n) {
        uint32_t levels[n], before[n];
        uint64_t masses[n];
        bool whole = true;
#pragma unroll
        for (int j = 0; j < n; ++j) {
          float x = element(words, first + j);
          levels[j] = mass.level(x), masses[j] = mass.mass(x);
          whole &= levels[j] < mass_levels - 1;
        }
        if (__all_sync(~0u, whole)) {
          // Nearly always, and then without a branch for each.
          if (add_alike(levels, masses, true, counts)) continue;
#pragma unroll
          for (int j = 0; j < n; ++j) before[j] = add_low(levels[j], masses[j]);
          if (counts)
#pragma unroll
            for (int j = 0; j < n; ++j) atomicAdd(&shared.counts[levels[j]], 1u);
#pragma unroll
          for (int j = 0; j < n; ++j) add_high(levels[j], masses[j], before[j]);
        } else {
#pragma unroll
          for (int j = 0; j < n; ++j)
            if (levels[j] < mass_levels - 1) {
              add_high(levels[j], masses[j], add_low(levels[j], masses[j]));
              if (counts) atomicAdd(&shared.counts[levels[j]], 1u);
            }
        }
      }
    });
    __syncthreads();
    scan();
  }
  // Of all masses.
  __device__ uint64_t sum_of(const Mass& mass) const {
    add(false, [&](Key bits, uint32_t, uint32_t& slot, uint64_t& added) {
      added = mass.mass(float(bit_cast<T>(bits)));
      return added > 0;
    });
    uint64_t sum = uint64_t(shared.high[0]) << 32 | shared.low[0];
    __syncthreads();
    return sum;
  }
  __device__ void note_levels(const TokenDraw& draw) const {
    if (threadIdx.x == 0) {
      LevelPrefixes prefixes = level_prefixes();
      prefixes.reaching(draw.point(draw.kept(prefixes.total(), prefixes)));
      shared.noted = prefixes.noted;
      shared.found = 0;
    }
    __syncthreads();
  }

  // Finds which numbers have the noted levels: a thread each end of a range.
  __device__ void find_ends(const Finite& mass) const {
    if (threadIdx.x < 6) {
      int range = int(threadIdx.x) / 2, is_low = int(threadIdx.x) % 2;
      int32_t level = is_low ? shared.noted.last[range] + 1 : shared.noted.first[range];
      int64_t first = order.of(bit_cast<Key>(T(mass.largest))), number = order.of(nothing()) - first + 1;
      Key key = Key(first - is_low + first_index(number, [&](int64_t i) {
                      return int32_t(mass.level(Held::value(uint32_t(first + i)))) >= level;
                    }));
      (is_low ? shared.low_end : shared.high_end)[range] = Held::value(key);
    }
    __syncthreads();
  }

  // Puts the tokens of the noted levels into shared memory, unless they are too many.
  __device__ void collect() const {
    float high[3], low[3];
#pragma unroll
    for (int range = 0; range < 3; ++range) high[range] = shared.high_end[range], low[range] = shared.low_end[range];
    bool more = shared.noted.last[2] >= 0;
    loads.template each_words<2>(nothing(), [&](const auto& words, uint32_t offset) {
      constexpr uint32_t n = Loads::elements;
      uint32_t hits = 0;
#pragma unroll
      for (uint32_t j = 0; j < n; ++j) {
        float x = element(words, j);
        if (((x <= high[0]) & (x >= low[0])) | ((x <= high[1]) & (x >= low[1]))) hits |= 1u << j;
      }
      if (more)
#pragma unroll
        for (uint32_t j = 0; j < n; ++j) {
          float x = element(words, j);
          if ((x <= high[2]) & (x >= low[2])) hits |= 1u << j;
        }
      for (; hits; hits &= hits - 1) {
        uint32_t at = atomicAdd(&shared.found, 1u);
        if (at < few) shared.elements[at] = Element(Key(0), loads.position(offset) + uint32_t(__ffs(int(hits)) - 1));
      }
    });
    __syncthreads();
    // Read again, all at once: no read before had to wait for a key.
    for (uint32_t i = threadIdx.x; i < min(shared.found, few); i += threads) {
      uint32_t at = shared.elements[i].at();
      shared.elements[i] = Element(order.of(key_bits(at)), at);
    }
    __syncthreads();
  }

  // The listed tokens: those of one level, in which a prefix ends, are held at a time, if they fit.
  struct Listed {
    const TokenSearch& search;
    const Finite& mass;
    Held held;
    bool fits;

    __device__ const Element& element(int i) const {
      return search.shared.elements[search.shared.held[threadIdx.x + i * threads]];
    }

    __device__ LastTokens<uint32_t> last_of(bool by_count, uint64_t target) {
      LevelPrefixes prefixes = search.level_prefixes();
      int64_t level =
          by_count ? prefixes.level_of(int64_t(target)) : first_reaching(prefixes.masses, mass_levels, target);
      if (by_count && level == mass_levels - 1) return {Held::none, 0, prefixes.total()};
      uint32_t number = choose(uint32_t(level));
      fits &= number <= most_held;
      held.take(mass, [&](int i) {
        return threadIdx.x + i * threads < min(number, most_held) ? uint32_t(element(i).key()) : Held::none;
      });
      uint64_t before = prefixes.mass_before(level);
      auto last = held.last_of(mass, by_count,
                               by_count ? uint64_t(prefixes.position(int64_t(target), level)) + 1 : target - before);
      last.sum += before;
      return last;
    }
    // Lists those of a level, and returns how many they are.
    __device__ uint32_t choose(uint32_t level) const {
      Shared& shared = search.shared;
      __syncthreads();
      if (threadIdx.x == 0) shared.of_level = 0;
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < shared.found; i += threads) {
        if (mass.level(Held::value(shared.elements[i].key())) != level) continue;
        uint32_t at = atomicAdd(&shared.of_level, 1u);
        if (at < most_held) shared.held[at] = uint16_t(i);
      }
      __syncthreads();
      return shared.of_level;
    }
  };

  // The prefix of so many tokens, or the shortest of at least such a mass.
  __device__ __noinline__ Last last_of(const Mass& mass, bool by_count, uint64_t target) const {
    RankPrefix<Key> prefix(0, 0);
    uint64_t masses = 0, counts = 0;
    while (prefix.end > 0) {
      add(by_count, [&](Key bits, uint32_t, uint32_t& slot, uint64_t& added) {
        Key key = order.of(bits);
        slot = prefix.digit(key), added = mass.mass(float(bit_cast<T>(bits)));
        return prefix.has(key);
      });
      scan();
      int64_t digit = by_count ? first_reaching(shared.counts, mass_levels, uint32_t(target - counts))
                               : first_reaching(shared.masses, mass_levels, target - masses);
      if (digit) masses += shared.masses[digit - 1], counts += shared.counts[digit - 1];
      RankDigit{uint32_t(digit), 0, 0}.add_to(prefix);
      __syncthreads();
    }
    uint64_t each = mass.mass(float(SortKey<T>::number(prefix.found, true)));
    uint64_t number = by_count ? target - counts : number_reaching(target - masses, each);
    return {prefix.found, number, masses + number * each};
  }

  struct ByDigits {
    const TokenSearch& search;
    const Mass& mass;

    __device__ Last last_of(bool by_count, uint64_t target) const { return search.last_of(mass, by_count, target); }
  };

  // Finds the token that is the last of so many with its key.
  __device__ void write_number(const Mass& mass, Last last, uint64_t kept) const {
    uint32_t count = uint32_t(rows.count);
    int shift = 0;
    while ((count - 1) >> shift >= mass_levels) ++shift;
    add(true, [&](Key bits, uint32_t position, uint32_t& slot, uint64_t&) {
      slot = min(position >> shift, uint32_t(mass_levels - 1));  // also where there is no element
      return order.of(bits) == last.key;
    });
    scan();
    if (threadIdx.x >= 32) return;
    uint32_t slot = uint32_t(first_reaching(shared.counts, mass_levels, uint32_t(last.number)));
    uint32_t number = uint32_t(last.number) - (slot ? shared.counts[slot - 1] : 0),
             end = min(count, (slot + 1) << shift);
    for (uint32_t first = slot << shift; first < end; first += 32) {
      uint32_t i = first + threadIdx.x;
      uint32_t equal = __ballot_sync(~0u, i < end && order.of(key_bits(i)) == last.key), many = __popc(equal);
      if (number <= many) {
        for (; number > 1; --number) equal &= equal - 1;
        if (threadIdx.x == 0) rows.write(row, mass, int32_t(first + __ffs(int(equal)) - 1), kept);
        return;
      }
      number -= many;
    }
  }
  __device__ Key key_bits(uint32_t i) const { return bit_cast<Key>(rows.x[row * rows.count + i]); }
};

template <class T, class Mass, bool by_digits>
__global__ void __launch_bounds__(TokenSearch<T, Mass>::threads, 2)
    sample_rows(const __grid_constant__ SamplingRows<T> rows) {
  using Search = TokenSearch<T, Mass>;
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<typename Search::Shared*>(memory);
  for (int64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    Search search(rows, shared, row);
    if constexpr (by_digits)
      search.run_by_digits();
    else
      search.run();
    __syncthreads();
  }
}

template <class Mass, bool by_digits, class T>
Status sample_by(const Executor& executor, const SamplingRows<T>& rows) {
  using Search = TokenSearch<T, Mass>;
  constexpr int bytes = int(sizeof(typename Search::Shared));
  auto kernel = sample_rows<T, Mass, by_digits>;
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<grid_of(rows.rows), Search::threads, bytes, executor.stream>>>(rows);
  return launched();
}

}  // namespace internal

template <class Mass, class T>
Status sample_tokens(const Executor& executor, const SamplingRows<T>& rows) {
  if (rows.rows * rows.count == 0) return {};
  if (rows.count <= 64) return internal::sample_short<Mass, 8, 8>(executor, rows);
  if (rows.count <= 256) return internal::sample_short<Mass, 32, 8>(executor, rows);
  if (rows.count <= 1024) return internal::sample_short<Mass, 32, 32>(executor, rows);
  if (rows.count <= 4096) return internal::sample_short<Mass, 256, 16>(executor, rows);
  if (Status status = internal::sample_by<Mass, false>(executor, rows); !status.ok()) return status;
  return internal::sample_by<Mass, true>(executor, rows);
}

namespace internal {

inline constexpr int digit_block = 512, digit_copies = 8;

// A block for each row. Neighboring threads add to different copies of a digit's sums: most keys begin alike, and what
// is added to one address waits for each other.
template <class T, class Mass>
__global__ void __launch_bounds__(digit_block) add_digits(const __grid_constant__ MassDigits<T> rows) {
  constexpr int digits = MassDigits<T>::digits, all = digits * digit_copies;
  __shared__ uint32_t low[all], high[all], counts[all];
  for (int64_t row = blockIdx.x; row < rows.rows; row += gridDim.x) {
    for (int i = threadIdx.x; i < all; i += digit_block) low[i] = high[i] = counts[i] = 0;
    __syncthreads();
    const T* x = rows.x + row * rows.count;
    Mass mass = rows.template mass<Mass>(row);
    uint32_t prefix = rows.keys_of(row)[1];
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < rows.count; i += digit_block) {
      float value = float(x[i]);
      int32_t digit = MassDigits<T>::digit(value, prefix, rows.shift);
      if (digit < 0) continue;
      int slot = digit * digit_copies + threadIdx.x % digit_copies;
      atomicAdd(&counts[slot], 1u);
      uint64_t added = mass.mass(value);
      if (!added) continue;
      // Each carry is seen by the one who makes it: the sum depends on no order.
      uint32_t part = uint32_t(added), before = atomicAdd(&low[slot], part);
      uint32_t rest = uint32_t(added >> 32) + (before + part < part);
      if (rest) atomicAdd(&high[slot], rest);
    }
    __syncthreads();
    uint32_t* sums = rows.sums + row * 3 * digits;
    for (int digit = threadIdx.x; digit < digits; digit += digit_block) {
      uint64_t total = 0;
      uint32_t count = 0;
#pragma unroll
      for (int i = 0; i < digit_copies; ++i) {
        int slot = digit * digit_copies + i;
        total += uint64_t(high[slot]) << 32 | low[slot], count += counts[slot];
      }
      sums[digit] = uint32_t(total), sums[digits + digit] = uint32_t(total >> 32), sums[2 * digits + digit] = count;
    }
    __syncthreads();
  }
}

}  // namespace internal

template <class Mass, class T>
Status add_mass_digits(const Executor& executor, const MassDigits<T>& rows) {
  if (rows.rows == 0) return {};
  internal::add_digits<T, Mass><<<internal::grid_of(rows.rows), internal::digit_block, 0, executor.stream>>>(rows);
  return launched();
}

}  // namespace baracuda
