// Long rows in order: CUB's radix sort of keys, with the positions that they are from or alone. Single ones, of which
// all elements are wanted, are sorted by sort_numbers_cuda.h.
//
// Some rows are sorted as one, by keys that have the row's number above the element's: all multiprocessors share every
// row, and it takes but one launch for each digit. Of many rows a block sorts each; and of those with keys of 64 bits,
// which have no room for more, or all blocks sort one row after the other.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <bit>
#include <cub/device/device_segmented_radix_sort.cuh>

#include "sort_numbers_cuda.h"
#include "sort_zeros_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int64_t most_joined_rows = 64;

// As CUB sorts them.
template <class Key>
struct KeysOfOneRow {
  static constexpr bool has_row = false;
  using Large = std::conditional_t<sizeof(Key) == 1, uint16_t, Key>;
  static __device__ Large of(Key key, int64_t) { return key; }
};
template <class Key>
struct KeysOfRows {
  static constexpr bool has_row = true;
  using Large = std::conditional_t<sizeof(Key) < 4, uint32_t, uint64_t>;
  static __device__ Large of(Key key, int64_t row) { return Large(row) << (8 * sizeof(Key)) | key; }
};

// Calls run(how keys are sorted), of elements with so many bytes of their positions.
template <class Key, class Run>
Status by_number_of_rows(const Executor& executor, const Rows<Key>& rows, int64_t positions, const Run& run) {
  if constexpr (sizeof(Key) < 8) {
    int64_t of_element = 2 * (int64_t(sizeof(typename KeysOfRows<Key>::Large)) + positions);
    int64_t elements = rows.rows * rows.count, counters = elements / 2 + 65536;
    // Whoever had other numbers of rows in mind has left less room.
    bool has_room = int64_t(executor.workspace_bytes) >= elements * of_element + counters;
    if (rows.rows > 1 && rows.rows <= most_joined_rows && has_room) return run(KeysOfRows<Key>{});
  }
  return run(KeysOfOneRow<Key>{});
}

template <class Keys, class Key>
__global__ void __launch_bounds__(elements_block)
    write_keys(Rows<Key> rows, typename Keys::Large* keys, uint32_t* positions) {
  each_element(rows.rows, rows.count, [&](int64_t row, int64_t i) {
    keys[row * rows.count + i] = Keys::of(rows.order.of(rows.x[row * rows.count + i]), row);
    if (positions) positions[row * rows.count + i] = uint32_t(i);
  });
}

template <class Key, class Large, class Output>
__global__ void __launch_bounds__(elements_block)
    write_sorted(Rows<Key> rows, const Large* keys, const uint32_t* positions, Output out, int64_t first_row) {
  each_element(rows.rows, out.items, [&](int64_t row, int64_t item) {
    int64_t at = row * rows.count + out.rank(first_row + row, item);
    Key key = Key(keys[at]);
    uint32_t position = positions[at];
    Key value = rows.order.shared(key) ? rows.x[row * rows.count + position] : rows.order.bits(key);
    out.write(first_row + row, item, value, position);
  });
}

template <class Key, class Large>
__global__ void __launch_bounds__(elements_block) write_numbers(Rows<Key> rows, const Large* keys, Key* values) {
  each_element(rows.rows, rows.count, [&](int64_t row, int64_t i) {
    values[row * rows.count + i] = rows.order.bits(Key(keys[row * rows.count + i]));
  });
}

// So many keys, by so many bits.
template <class Key>
Status sort_all_keys(const Executor& executor, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<uint32_t>& positions,
                     int64_t count, int bits) {
  bool alone = positions.Current() == nullptr;
  return with_memory(executor, [&](void* memory, size_t& bytes) {
    return alone ? cub::DeviceRadixSort::SortKeys(memory, bytes, keys, uint32_t(count), 0, bits, executor.stream)
                 : cub::DeviceRadixSort::SortPairs(memory, bytes, keys, positions, uint32_t(count), 0, bits,
                                                   executor.stream);
  });
}

struct RowBegin {
  int count;
  __host__ __device__ int operator()(int row) const { return row * count; }
};

// One row after the other where they are few with positions, which all blocks share; else a block of CUB's for each.
template <class Key>
Status sort_keys_by_rows(Executor executor, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<uint32_t>& positions,
                         int64_t rows, int64_t count) {
  constexpr int bits = 8 * sizeof(Key);
  bool alone = positions.Current() == nullptr;
  if (alone || rows > few_rows<Key>) {
    auto begins = thrust::make_transform_iterator(thrust::counting_iterator<int>(0), RowBegin{int(count)});
    auto ends = begins + 1;
    return with_memory(executor, [&](void* memory, size_t& bytes) {
      return alone ? cub::DeviceSegmentedRadixSort::SortKeys(memory, bytes, keys, int(rows * count), int(rows), begins,
                                                             ends, 0, bits, executor.stream)
                   : cub::DeviceSegmentedRadixSort::SortPairs(memory, bytes, keys, positions, int(rows * count),
                                                              int(rows), begins, ends, 0, bits, executor.stream);
    });
  }
  auto first_keys = keys;
  auto first_positions = positions;
  for (int64_t row = 0; row < rows; ++row) {
    auto of_row = [&](auto buffer) {
      for (auto& array : buffer.d_buffers) array += row * count;
      return buffer;
    };
    keys = of_row(first_keys), positions = of_row(first_positions);
    if (Status status = sort_all_keys(executor, keys, positions, count, bits); !status.ok()) return status;
  }
  // Rows are alike, so all ended in the same of the two arrays.
  first_keys.selector = keys.selector, first_positions.selector = positions.selector;
  keys = first_keys, positions = first_positions;
  return {};
}

template <class Keys, class Key, class Large>
Status sort_keys_of_rows(const Executor& executor, cub::DoubleBuffer<Large>& keys,
                         cub::DoubleBuffer<uint32_t>& positions, const Rows<Key>& rows) {
  if (!Keys::has_row && rows.rows > 1) return sort_keys_by_rows(executor, keys, positions, rows.rows, rows.count);
  return sort_all_keys(executor, keys, positions, rows.rows * rows.count,
                       8 * int(sizeof(Key)) + std::bit_width(uint64_t(rows.rows - 1)));
}

// Room for keys, and for positions, of the most rows that are sorted together: less than 2^31 elements.
template <class T>
struct TwoArrays {
  T* arrays[2];
  TwoArrays(Executor& executor, int64_t elements)
      : arrays{executor.scratch<T>(elements), executor.scratch<T>(elements)} {}
  bool ok() const { return arrays[0] && arrays[1]; }
  cub::DoubleBuffer<T> buffer() const { return {arrays[0], arrays[1]}; }
};

// Runs body(rows, the first of them) over ranges of rows.
template <class Key, class Body>
Status by_ranges(const Rows<Key>& rows, int64_t range, const Body& body) {
  for (int64_t row = 0; row < rows.rows; row += range)
    if (Status status = body(rows.some(row, std::min(range, rows.rows - row)), row); !status.ok()) return status;
  return {};
}

template <class Key>
int64_t range_of(const Rows<Key>& rows) {
  return std::min<int64_t>(rows.rows, std::max<int64_t>(1, 0x7fffffff / rows.count));
}

template <class Key, class Output>
Status sort_long_rows(Executor executor, const Rows<Key>& all, const Output& out) {
  return by_number_of_rows(executor, all, sizeof(uint32_t), [&](auto keys_of) {
    using Keys = decltype(keys_of);
    int64_t range = range_of(all);
    TwoArrays<typename Keys::Large> keys(executor, range * all.count);
    TwoArrays<uint32_t> positions(executor, range * all.count);
    if (!keys.ok() || !positions.ok()) return small_workspace;
    return by_ranges(all, range, [&](const Rows<Key>& rows, int64_t first) {
      auto sorted_keys = keys.buffer();
      auto sorted_positions = positions.buffer();
      write_keys<Keys><<<blocks_for(rows.rows, rows.count), elements_block, 0, executor.stream>>>(
          rows, sorted_keys.Current(), sorted_positions.Current());
      Status status = sort_keys_of_rows<Keys>(executor, sorted_keys, sorted_positions, rows);
      if (!status.ok()) return status;
      write_sorted<<<blocks_for(rows.rows, out.items), elements_block, 0, executor.stream>>>(
          rows, sorted_keys.Current(), sorted_positions.Current(), out, first);
      return launched();
    });
  });
}

// Without positions. Which zero, and which NaN, was where is found again for those alone.
template <class Key>
Status sort_long_values(Executor executor, const Rows<Key>& all, Key* values) {
  return by_number_of_rows(executor, all, 0, [&](auto keys_of) {
    using Keys = decltype(keys_of);
    int64_t range = range_of(all);
    TwoArrays<typename Keys::Large> keys(executor, range * all.count);
    if (!keys.ok()) return small_workspace;
    return by_ranges(all, range, [&](const Rows<Key>& rows, int64_t first) {
      auto sorted_keys = keys.buffer();
      cub::DoubleBuffer<uint32_t> none;
      Key* to = values + first * rows.count;
      dim3 blocks = blocks_for(rows.rows, rows.count);
      write_keys<Keys><<<blocks, elements_block, 0, executor.stream>>>(rows, sorted_keys.Current(), none.Current());
      Status status = sort_keys_of_rows<Keys>(executor, sorted_keys, none, rows);
      if (!status.ok()) return status;
      write_numbers<<<blocks, elements_block, 0, executor.stream>>>(rows, sorted_keys.Current(), to);
      return rows.order.infinity ? restore_shared(executor, rows, to) : launched();
    });
  });
}

}  // namespace internal
}  // namespace baracuda
