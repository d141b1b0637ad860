// The mass pattern on a CUDA grid. A long row is read twice, by a block or by the blocks of a cluster. Rows in which
// the tokens that matter are many, as of equal ones, are left: the same block then finds each prefix by the digits of
// keys. The tokens of a short row are searched in the registers of a warp or a block.
#pragma once

#include "mass_row_cuda.h"
#include "rank_by_digits_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

// A row of which many tokens have the keys at which prefixes end: each prefix is found by the digits of keys, with a
// read for each digit.
template <class T, class Mass>
struct DigitSearch {
  using Key = typename SortKey<T>::Key;
  static constexpr int threads = mass_threads, digits = rank_digits, own = digits / threads;
  using Loads = RowLoads<threads, Key>;
  using Masses = cub::BlockScan<uint64_t, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  using Counts = cub::BlockScan<uint32_t, threads, cub::BLOCK_SCAN_WARP_SCANS>;

  struct Shared {
    union {
      struct {
        uint32_t low[digits], high[digits];  // while masses are added: there are no 64-bit atomics
      };
      uint64_t masses[digits];  // up to and with each digit
    };
    uint32_t counts[digits];
    union {
      typename Masses::TempStorage of_masses;
      typename Counts::TempStorage of_counts;
    };
  };

  using Last = LastTokens<Key>;

  const SamplingRows<T>& rows;
  Shared& shared;
  int64_t row;
  Mass mass;
  Loads loads;
  KeyOrder<Key> order;

  __device__ DigitSearch(const SamplingRows<T>& rows, Shared& shared, int64_t row, float largest)
      : rows(rows),
        shared(shared),
        row(row),
        mass(rows.template mass<Mass>(row, largest)),
        loads(reinterpret_cast<const Key*>(rows.x) + row * rows.count, 0, uint32_t(rows.count)),
        order(SortKey<T>::order(true)) {}

  __device__ void run() {
    TokenDraw draw = rows.draw(row);
    DrawnTokens drawn;
    auto last = drawn.find(draw, sum_of_all(), *this);
    write_number(last, drawn.kept);
  }

  // Calls body(load, the position of its first element, a bit for each element that there is).
  template <class Body>
  __device__ void each(const Body& body) const {
    loads.template each<2>([&](const auto& load, uint32_t offset) {
      uint32_t position = loads.position(offset);
      body(load, position, loads.mask(position));
    });
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
    for (int i = threadIdx.x; i < digits; i += threads) shared.low[i] = shared.high[i] = shared.counts[i] = 0;
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
    all = sum_of_lanes(all);
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

  // Of all masses.
  __device__ uint64_t sum_of_all() const {
    add(false, [&](Key bits, uint32_t, uint32_t& slot, uint64_t& added) {
      added = mass.mass(float(bit_cast<T>(bits)));
      return added > 0;
    });
    uint64_t sum = uint64_t(shared.high[0]) << 32 | shared.low[0];
    __syncthreads();
    return sum;
  }
  // The prefix of so many tokens, or the shortest of at least such a mass.
  __device__ __noinline__ Last last_of(int step, uint64_t target) const {
    bool by_count = step == 0;
    RankPrefix<Key> prefix(0, 0);
    uint64_t masses = 0, counts = 0;
    while (prefix.end > 0) {
      add(by_count, [&](Key bits, uint32_t, uint32_t& slot, uint64_t& added) {
        Key key = order.of(bits);
        slot = prefix.digit(key), added = mass.mass(float(bit_cast<T>(bits)));
        return prefix.has(key);
      });
      scan();
      int64_t digit = by_count ? first_reaching(shared.counts, digits, uint32_t(target - counts))
                               : first_reaching(shared.masses, digits, target - masses);
      if (digit) masses += shared.masses[digit - 1], counts += shared.counts[digit - 1];
      RankDigit{uint32_t(digit), 0, 0}.add_to(prefix);
      __syncthreads();
    }
    uint64_t each = mass.mass(float(SortKey<T>::number(prefix.found, true)));
    uint64_t number = by_count ? target - counts : number_reaching(target - masses, each);
    return {prefix.found, number, masses + number * each};
  }

  // Finds the token that is the last of so many with its key.
  __device__ void write_number(Last last, uint64_t kept) const {
    uint32_t count = uint32_t(rows.count);
    int shift = 0;
    while ((count - 1) >> shift >= digits) ++shift;
    add(true, [&](Key bits, uint32_t position, uint32_t& slot, uint64_t&) {
      slot = min(position >> shift, uint32_t(digits - 1));  // also where there is no element
      return order.of(bits) == last.key;
    });
    scan();
    if (threadIdx.x >= 32) return;
    uint32_t slot = uint32_t(first_reaching(shared.counts, digits, uint32_t(last.number)));
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

// Not inlined: what it has in registers is not in the way of rows that are not left.
template <class T, class Mass>
__device__ __noinline__ void search_by_digits(const SamplingRows<T>& rows, char* memory, int64_t row, float largest) {
  using Search = DigitSearch<T, Mass>;
  Search(rows, *reinterpret_cast<typename Search::Shared*>(memory), row, largest).run();
}

template <class T, class Mass>
__global__ void __launch_bounds__(mass_threads, 2) sample_rows(const __grid_constant__ SamplingRows<T> rows) {
  using Row = LongRow<T, Mass>;
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<typename Row::Shared*>(memory);
  int64_t step = gridDim.x / blocks_of_cluster();
  for (int64_t row = blockIdx.x / blocks_of_cluster(); row < rows.rows; row += step) {
    float largest;
    if (!Row(rows, shared, row).run(largest)) search_by_digits<T, Mass>(rows, memory, row, largest);
    __syncthreads();
  }
}

// The blocks of a row: so many that each multiprocessor has one. More than four wait longer for each other than they
// read, and are for what a thread's sum has no room for.
inline unsigned blocks_of_row(int64_t rows, int64_t count) {
  unsigned blocks = 1;
  while (blocks < 4 && count / (2 * blocks) >= 8192 && rows * 2 * blocks <= 132) blocks *= 2;
  return count > int64_t(1) << 24 ? mass_most_cluster : blocks;
}

template <class Mass, class T>
Status sample_long(const Executor& executor, const SamplingRows<T>& rows, unsigned blocks) {
  constexpr size_t bytes =
      std::max(sizeof(typename LongRow<T, Mass>::Shared), sizeof(typename DigitSearch<T, Mass>::Shared));
  auto kernel = sample_rows<T, Mass>;
  if (Status status = allow_shared_memory(kernel, int64_t(bytes)); !status.ok()) return status;
  if (!has_clusters(kernel)) blocks = 1;
  unsigned grid = grid_of(rows.rows * blocks) / blocks * blocks;
  return launch_clusters(executor, kernel, grid, blocks, mass_threads, bytes, rows);
}

}  // namespace internal

template <class Mass, class T>
Status sample_tokens(const Executor& executor, const SamplingRows<T>& rows) {
  if (rows.rows * rows.count == 0) return {};
  if (rows.count <= 64) return internal::sample_short<Mass, 8, 8>(executor, rows);
  if (rows.count <= 256) return internal::sample_short<Mass, 32, 8>(executor, rows);
  if (rows.count <= 1024) return internal::sample_short<Mass, 32, 32>(executor, rows);
  if (rows.count <= 4096) return internal::sample_short<Mass, 256, 16>(executor, rows);
  return internal::sample_long<Mass>(executor, rows, internal::blocks_of_row(rows.rows, rows.count));
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
