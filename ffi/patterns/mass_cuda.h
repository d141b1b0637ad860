// The mass pattern on a CUDA grid. The tokens of a short row are searched in the registers of a part of a warp, a warp
// or a block. A long row has a block, which reads it three times. First it finds the largest element. Then it adds
// masses by levels of probability, which say in which levels the wanted prefixes end. The tokens of these are few,
// mostly: they are put into shared memory, sorted there, and their masses added. Rows in which they are many, as of
// equal ones, are left to another kernel, which finds each prefix by the digits of keys.
#pragma once

#include "key_at_cuda.h"
#include "mass_search_cuda.h"
#include "rank_by_digits_cuda.h"
#include "row_loads_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

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
  static_assert(rank_digits == mass_levels);

  struct Shared {
    union {
      struct {
        uint32_t low[mass_levels], high[mass_levels];  // while masses are added: there are no 64-bit atomics
      };
      uint64_t masses[mass_levels];  // up to and with each level, or digit
    };
    uint32_t counts[mass_levels];
    uint64_t sums[few];
    Element elements[few];
    union {
      typename Masses::TempStorage of_masses;
      typename Counts::TempStorage of_counts;
    };
    LevelRanges noted;
    Key first[threads / 32];
    uint32_t found;
  };

  // Tokens with one key: so many of them make a prefix's last, and `sum` its mass.
  struct Last {
    Key key;
    uint32_t number;
    uint64_t sum;
  };

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

  // Leaves a row whose listed tokens would be too many.
  __device__ void run() const {
    float largest = value(first_key());
    if (!has_mass<Mass>(largest)) {
      if (threadIdx.x == 0) rows.write_none(row);
      return;
    }
    Mass mass = rows.template mass<Mass>(row, largest);
    TokenDraw draw = rows.draw(row);
    bool has_levels = rows.count > few;
    if (has_levels) {
      add_levels(mass, draw.k);
      if (threadIdx.x == 0) {
        LevelPrefixes prefixes = level_prefixes();
        prefixes.reaching(draw.point(draw.kept(prefixes.total(), prefixes)));
        shared.noted = prefixes.noted;
      }
      __syncthreads();
    }
    collect(mass, has_levels);
    if (shared.found > few) {
      if (threadIdx.x == 0) rows.tokens[row] = left;
      return;
    }
    sort_in_block(shared.elements, shared.found);
    if (has_levels)
      sum_up(mass,
             [&](uint32_t i) { return level_prefixes().mass_before(level(mass, i)) - mass_of_level_of(mass, i); });
    else
      sum_up(mass, [](uint32_t) { return uint64_t(0); });
    if (threadIdx.x == 0) write(mass, draw, has_levels);
  }

  // Finds the token of a row that was left, by more reads.
  __device__ void run_by_digits() const {
    if (rows.tokens[row] != left) return;
    Mass mass = rows.template mass<Mass>(row, value(first_key()));
    TokenDraw draw = rows.draw(row);
    add_levels(mass, false);
    uint64_t total = shared.masses[mass_levels - 1];
    __syncthreads();
    DigitPrefixes prefixes{*this, mass};
    uint64_t kept = draw.kept(total, prefixes).low;
    write_number(mass, last_of(mass, false, draw.point(kept)), kept);
  }

 private:
  static __device__ float value(Key key) { return float(SortKey<T>::number(key, true)); }
  __device__ LevelPrefixes level_prefixes() const { return {shared.masses, shared.counts}; }
  __device__ uint32_t level(const Mass& mass, uint32_t i) const { return mass.level(value(shared.elements[i].key())); }

  // Calls body(load, the position of its first element, a bit for each element that there is).
  template <int ahead = 2, class Body>
  __device__ void each(const Body& body) const {
    loads.template each<ahead>([&](const auto& load, uint32_t offset) {
      uint32_t position = loads.position(offset);
      body(load, position, loads.mask(position));
    });
  }

  // The key of the largest element.
  __device__ Key first_key() const {
    Key first = Key(~Key(0));
    each<int(sizeof(Key))>([&](const auto& load, uint32_t, uint32_t mask) {
    // What is before or after the row is 0: it is not looked at.
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j)
        first = min(first, Key(order.of(load.lane[j]) | (mask >> j & 1 ? Key(0) : Key(~Key(0)))));
    });
    for (int distance = 16; distance > 0; distance /= 2)
      first = min(first, Key(__shfl_xor_sync(~0u, uint32_t(first), distance)));
    if (threadIdx.x % 32 == 0) shared.first[threadIdx.x / 32] = first;
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < threads / 32; ++warp) first = min(first, shared.first[warp]);
    return first;
  }

  // Adds masses, and counts if these are wanted, by slots: slot_of(bits of an element, position, slot, mass) is whether
  // an element is added.
  template <class Slot>
  __device__ void add(bool counts, const Slot& slot_of) const {
    for (int i = threadIdx.x; i < mass_levels; i += threads) shared.low[i] = shared.high[i] = shared.counts[i] = 0;
    __syncthreads();
    each([&](const auto& load, uint32_t position, uint32_t mask) {
      constexpr uint32_t n = Loads::elements;
      uint32_t slots[n];
      uint64_t masses[n];
      bool alike = true;
#pragma unroll
      for (uint32_t j = 0; j < n; ++j) {
        slots[j] = 0, masses[j] = 0;
        if (!slot_of(load.lane[j], position + j, slots[j], masses[j])) mask &= ~(1u << j);
        alike &= slots[j] == slots[0];
      }
      if (!__any_sync(~0u, mask)) return;
      // Many with one slot would wait for each other.
      int same = 0;
      if (__all_sync(~0u, alike && mask == Loads::whole)) __match_all_sync(~0u, slots[0], &same);
      if (same) {
        uint64_t all = 0;
#pragma unroll
        for (uint32_t j = 0; j < n; ++j) all += masses[j];
        for (int distance = 16; distance > 0; distance /= 2) all += __shfl_xor_sync(~0u, all, distance);
        if (threadIdx.x % 32 == 0) add_to(slots[0], all, counts ? 32 * n : 0);
        return;
      }
#pragma unroll
      for (uint32_t j = 0; j < n; ++j)
        if (mask >> j & 1) add_to(slots[j], masses[j], counts);
    });
    __syncthreads();
  }
  // Each carry is seen by the one who makes it: the sum depends on no order.
  __device__ void add_to(uint32_t slot, uint64_t mass, uint32_t count) const {
    if (mass) {
      uint32_t low = uint32_t(mass), before = atomicAdd(&shared.low[slot], low);
      uint32_t high = uint32_t(mass >> 32) + (before + low < low);
      if (high) atomicAdd(&shared.high[slot], high);
    }
    if (count) atomicAdd(&shared.counts[slot], count);
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

  // What is in the last level has no mass, and its count is not needed.
  __device__ void add_levels(const Mass& mass, bool counts) const {
    add(counts, [&](Key bits, uint32_t, uint32_t& slot, uint64_t& added) {
      float x = float(bit_cast<T>(bits));
      slot = mass.level(x), added = mass.mass(x);
      return slot < mass_levels - 1;
    });
    scan();
  }

  // Puts the tokens of the noted levels, or all, into shared memory, unless they are too many.
  __device__ void collect(const Mass& mass, bool has_levels) const {
    if (threadIdx.x == 0) shared.found = 0;
    __syncthreads();
    LevelRanges noted = shared.noted;
    each([&](const auto& load, uint32_t position, uint32_t mask) {
      uint32_t hits = mask;
      if (has_levels) {
        hits = 0;
#pragma unroll
        for (uint32_t j = 0; j < Loads::elements; ++j)
          hits |= uint32_t(noted.has(mass.level(float(bit_cast<T>(load.lane[j]))))) << j;
        hits &= mask;
      }
      if (!hits) return;
#pragma unroll
      for (uint32_t j = 0; j < Loads::elements; ++j) {
        if (!(hits >> j & 1)) continue;
        uint32_t at = atomicAdd(&shared.found, 1u);
        if (at < few) shared.elements[at] = Element(order.of(load.lane[j]), position + j);
      }
    });
    __syncthreads();
  }

  // Of the level of the element before; 0 of the first.
  __device__ uint64_t mass_of_level_of(const Mass& mass, uint32_t i) const {
    return i ? shared.masses[level(mass, i - 1)] : 0;
  }
  // The sums up to and with each element. gap_before(i) is what the tokens between two of them have, where they are of
  // two levels.
  template <class Gap>
  __device__ void sum_up(const Mass& mass, const Gap& gap_before) const {
    constexpr uint32_t items = few / threads;
    uint32_t first = threadIdx.x * items;
    uint64_t sum = 0, before;
#pragma unroll 1
    for (uint32_t i = first; i < first + items; ++i) {
      if (i < shared.found) {
        sum += mass.mass(value(shared.elements[i].key()));
        if (i == 0 || level(mass, i) != level(mass, i - 1)) sum += gap_before(i);
      }
      shared.sums[i] = sum;
    }
    Masses(shared.of_masses).ExclusiveSum(sum, before);
    for (uint32_t i = first; i < first + items; ++i) shared.sums[i] += before;
    __syncthreads();
  }

  __device__ void write(const Mass& mass, const TokenDraw& draw, bool has_levels) const {
    int64_t found = shared.found, kth = draw.k - 1;
    uint64_t total = shared.sums[found - 1];
    if (has_levels) {
      LevelPrefixes prefixes = level_prefixes();
      total = prefixes.total();
      int64_t last = prefixes.level_of(draw.k);
      kth = last == mass_levels - 1 ? found : prefixes.position(draw.k, last) + first_index(found, [&](int64_t i) {
                                                return level(mass, uint32_t(i)) >= last;
                                              });
    }
    ListPrefixes list{shared.sums, found, kth, total};
    uint64_t kept = draw.kept(total, list).low;
    rows.write(row, mass, int32_t(shared.elements[list.index(draw.point(kept))].at()), kept);
  }

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
    uint64_t each = mass.mass(value(prefix.found));
    uint64_t number = by_count ? target - counts : (target - masses + each - 1) / each;
    return {prefix.found, uint32_t(number), masses + number * each};
  }

  struct DigitPrefixes {
    const TokenSearch& search;
    const Mass& mass;

    __device__ MassRange of(bool by_count, uint64_t target) const {
      uint64_t sum = search.last_of(mass, by_count, target).sum;
      return {sum, sum};
    }
    __device__ MassRange of_count(int64_t k) const { return of(true, uint64_t(k)); }
    __device__ MassRange reaching(MassRange mass) const { return of(false, mass.low); }
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
    uint32_t slot = uint32_t(first_reaching(shared.counts, mass_levels, last.number));
    uint32_t number = last.number - (slot ? shared.counts[slot - 1] : 0), end = min(count, (slot + 1) << shift);
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
