// Long rows in order: CUB's radix sort of keys, with the positions that they are from or alone. Few of them, of which
// all elements are wanted, are sorted by sort_numbers_cuda.h.
#pragma once

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_segmented_radix_sort.cuh>

#include "sort_numbers_cuda.h"
#include "sort_zeros_cuda.h"

namespace baracuda {
namespace internal {

// CUB sorts keys of 16, 32 and 64 bits here.
template <class Key>
using LargeKey = std::conditional_t<sizeof(Key) == 1, uint16_t, Key>;

template <class Key>
__global__ void __launch_bounds__(elements_block) write_keys(Rows<Key> rows, LargeKey<Key>* keys, uint32_t* positions) {
  each_element(rows.rows, rows.count, [&](int64_t row, int64_t i) {
    keys[row * rows.count + i] = rows.order.of(rows.x[row * rows.count + i]);
    if (positions) positions[row * rows.count + i] = uint32_t(i);
  });
}

template <class Key, class Output>
__global__ void __launch_bounds__(elements_block)
    write_sorted(Rows<Key> rows, const LargeKey<Key>* keys, const uint32_t* positions, Output out, int64_t first_row) {
  each_element(rows.rows, out.items, [&](int64_t row, int64_t item) {
    int64_t at = row * rows.count + out.rank(first_row + row, item);
    Key key = Key(keys[at]);
    uint32_t position = positions[at];
    Key value = rows.order.shared(key) ? rows.x[row * rows.count + position] : rows.order.bits(key);
    out.write(first_row + row, item, value, position);
  });
}

template <class Key>
__global__ void __launch_bounds__(elements_block)
    write_numbers(Rows<Key> rows, const LargeKey<Key>* keys, Key* values) {
  each_element(rows.rows, rows.count, [&](int64_t row, int64_t i) {
    values[row * rows.count + i] = rows.order.bits(Key(keys[row * rows.count + i]));
  });
}

struct RowBegin {
  int count;
  __host__ __device__ int operator()(int row) const { return row * count; }
};

// One row after the other where they are few with positions, which all blocks share; else a block of CUB's for each.
template <class Key>
Status sort_keys_of_rows(Executor executor, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<uint32_t>& positions,
                         int64_t rows, int64_t count) {
  constexpr int bits = 8 * sizeof(Key);
  bool alone = positions.Current() == nullptr;
  if (alone || rows > few_rows) {
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
    Status status = with_memory(executor, [&](void* memory, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, positions, uint32_t(count), 0, bits, executor.stream);
    });
    if (!status.ok()) return status;
  }
  // Rows are alike, so all ended in the same of the two arrays.
  first_keys.selector = keys.selector, first_positions.selector = positions.selector;
  keys = first_keys, positions = first_positions;
  return {};
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
  int64_t range = range_of(all);
  TwoArrays<LargeKey<Key>> keys(executor, range * all.count);
  TwoArrays<uint32_t> positions(executor, range * all.count);
  if (!keys.ok() || !positions.ok()) return small_workspace;
  return by_ranges(all, range, [&](const Rows<Key>& rows, int64_t first) {
    auto sorted_keys = keys.buffer();
    auto sorted_positions = positions.buffer();
    write_keys<<<blocks_for(rows.rows, rows.count), elements_block, 0, executor.stream>>>(rows, sorted_keys.Current(),
                                                                                          sorted_positions.Current());
    Status status = sort_keys_of_rows(executor, sorted_keys, sorted_positions, rows.rows, rows.count);
    if (!status.ok()) return status;
    write_sorted<<<blocks_for(rows.rows, out.items), elements_block, 0, executor.stream>>>(
        rows, sorted_keys.Current(), sorted_positions.Current(), out, first);
    return launched();
  });
}

// Without positions. Which zero, and which NaN, was where is found again for those alone.
template <class Key>
Status sort_long_values(Executor executor, const Rows<Key>& all, Key* values) {
  int64_t range = range_of(all);
  TwoArrays<LargeKey<Key>> keys(executor, range * all.count);
  if (!keys.ok()) return small_workspace;
  return by_ranges(all, range, [&](const Rows<Key>& rows, int64_t first) {
    auto sorted_keys = keys.buffer();
    cub::DoubleBuffer<uint32_t> none;
    Key* to = values + first * rows.count;
    dim3 blocks = blocks_for(rows.rows, rows.count);
    write_keys<<<blocks, elements_block, 0, executor.stream>>>(rows, sorted_keys.Current(), none.Current());
    Status status = sort_keys_of_rows(executor, sorted_keys, none, rows.rows, rows.count);
    if (!status.ok()) return status;
    write_numbers<<<blocks, elements_block, 0, executor.stream>>>(rows, sorted_keys.Current(), to);
    return rows.order.infinity ? restore_shared(executor, rows, to) : launched();
  });
}

}  // namespace internal
}  // namespace baracuda
