// The counter pattern on a CUDA grid: a thread has a few chunks of the result, far apart. A chunk is 16 bytes of the
// result, or more, so that its bits are whole blocks of a stream; where a row begins inside a block they are in one
// block more. Where rows end inside chunks, elements are computed one by one.
#pragma once

#include "../kernels/draw.h"
#include "../kernels/philox.h"
#include "divisor.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int counter_block = 256;

// The elements of a chunk, the blocks that it takes, and the chunks of a thread.
template <class Draw>
struct Chunk {
  static constexpr int per_block = 16 / sizeof(typename Draw::Bits), per_store = 16 / sizeof(typename Draw::Result);
  static constexpr int elements = per_block > per_store ? per_block : per_store, blocks = elements / per_block;
  static constexpr int step = blocks == 1 ? 4 : blocks == 2 ? 2 : 1;
};

// A row as a thread has it.
template <class Draw>
struct DrawnRow {
  uint32_t words[DrawnRows<Draw>::words];
  __device__ DrawnRow(const DrawnRows<Draw>& rows, int64_t row) {
    constexpr int count = DrawnRows<Draw>::words;
    const uint32_t* from = rows.streams + row * count;
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      Vector<uint32_t, 2> two = load<2>(from + i);
      words[i] = two.lane[0], words[i + 1] = two.lane[1];
    }
  }
};

// The elements of a chunk of memory, of their bits.
template <class Draw, class Operand>
__device__ __forceinline__ void draw_words(const DrawnRows<Draw>& rows, const Draw& draw, const uint32_t* words,
                                           int64_t first, const Operand& x) {
  using Bits = typename Draw::Bits;
  using Shape = Chunk<Draw>;
  Vector<typename Draw::Result, Shape::elements> y;
#pragma unroll
  for (int k = 0; k < Shape::elements; ++k) {
    Bits bits = philox_element<Bits>(words, k);
    if constexpr (std::is_void_v<typename Draw::Operand>)
      y.lane[k] = draw(bits);
    else
      y.lane[k] = draw(bits, x.lane[k]);
  }
  store<Shape::elements>(rows.y + first, y);
}

// The elements of one row from `position` on, which are those of a chunk of memory.
template <class Draw, class Operand>
__device__ __forceinline__ void draw_chunk(const DrawnRows<Draw>& rows, int64_t row, int64_t position, int64_t first,
                                           const Operand& x) {
  using Shape = Chunk<Draw>;
  DrawnRow<Draw> of_row(rows, row);
  uint32_t words[4 * Shape::blocks];
  PhiloxStream(of_row.words).bytes<Shape::blocks>(uint64_t(position) * sizeof(typename Draw::Bits), words);
  draw_words(rows, draw_of<Draw>(of_row.words), words, first, x);
}

template <class Draw>
__device__ __forceinline__ auto load_operand(const DrawnRows<Draw>& rows, int64_t first) {
  if constexpr (std::is_void_v<typename Draw::Operand>)
    return nullptr;
  else
    return load<Chunk<Draw>::elements>(rows.x + first);
}

// Long rows of whole chunks: a block is in one row, whose key and numbers its threads have in common. Where its stream
// begins with a block of 16 bytes no chunk waits for a branch.
template <class Draw>
__global__ void __launch_bounds__(counter_block)
    draw_long_rows(DrawnRows<Draw> rows, Divisor<int32_t> blocks_of_row, int64_t chunks) {
  using Shape = Chunk<Draw>;
  int32_t row = blocks_of_row.quotient(int32_t(blockIdx.x)), block = int32_t(blockIdx.x) - row * blocks_of_row.value;
  int64_t first = int64_t(block) * counter_block * Shape::step + threadIdx.x;
  DrawnRow<Draw> of_row(rows, row);
  const Draw draw = draw_of<Draw>(of_row.words);
  const PhiloxStream stream(of_row.words);
  auto each = [&](const auto& words_of) {
#pragma unroll
    for (int i = 0; i < Shape::step; ++i) {
      int64_t chunk = first + i * counter_block;
      if (chunk >= chunks) return;
      int64_t at = (row * chunks + chunk) * Shape::elements;
      auto x = load_operand(rows, at);
      uint32_t words[4 * Shape::blocks];
      words_of(chunk * Shape::blocks, words);
      draw_words(rows, draw, words, at, x);
    }
  };
  // The last position of a stream is followed by the first one.
  const bool goes_on = stream.start <= ~uint64_t(0) - 16 * uint64_t(chunks * Shape::blocks);
  if (stream.start % 16 == 0 && goes_on)
    each([&](int64_t of_row, uint32_t* words) {
#pragma unroll
      for (int i = 0; i < Shape::blocks; ++i)
        memcpy(words + 4 * i, stream.block(stream.start / 16 + of_row + i).word, 16);
    });
  else
    each([&](int64_t of_row, uint32_t* words) { stream.bytes<Shape::blocks>(16 * uint64_t(of_row), words); });
}

// Rows of whole chunks.
template <class Draw, class Index>
__global__ void __launch_bounds__(counter_block)
    draw_chunks(DrawnRows<Draw> rows, Divisor<Index> of_row, int64_t chunks) {
  using Shape = Chunk<Draw>;
  int64_t first = int64_t(blockIdx.x) * counter_block * Shape::step + threadIdx.x;
#pragma unroll
  for (int i = 0; i < Shape::step; ++i) {
    int64_t chunk = first + i * counter_block;
    if (chunk >= chunks) return;
    auto x = load_operand(rows, chunk * Shape::elements);
    Index row = of_row.quotient(Index(chunk));
    int64_t position = (chunk - int64_t(row) * of_row.value) * Shape::elements;
    draw_chunk(rows, row, position, chunk * Shape::elements, x);
  }
}

// Rows of any length.
template <class Draw, class Index>
__global__ void __launch_bounds__(counter_block)
    draw_elements(DrawnRows<Draw> rows, Divisor<Index> length, int64_t elements) {
  using Shape = Chunk<Draw>;
  using Bits = typename Draw::Bits;
  int64_t first = (int64_t(blockIdx.x) * counter_block + threadIdx.x) * Shape::elements;
  if (first >= elements) return;
  int64_t row = length.quotient(Index(first)), position = first - row * length.value;
  if (position + Shape::elements <= length.value)
    return draw_chunk(rows, row, position, first, load_operand(rows, first));
#pragma unroll 1
  for (int64_t i = first; i < first + Shape::elements && i < elements; ++i, ++position) {
    if (position == length.value) ++row, position = 0;
    DrawnRow<Draw> of_row(rows, row);
    Bits bits = PhiloxStream(of_row.words).template element<Bits>(uint64_t(position) * sizeof(Bits));
    Draw draw = draw_of<Draw>(of_row.words);
    if constexpr (std::is_void_v<typename Draw::Operand>)
      rows.y[i] = draw(bits);
    else
      rows.y[i] = draw(bits, rows.x[i]);
  }
}

}  // namespace internal

template <class Draw>
Status draw_rows(const Executor& executor, const DrawnRows<Draw>& rows) {
  using Shape = internal::Chunk<Draw>;
  int64_t elements = rows.rows * rows.length, chunks = ceil_div(elements, Shape::elements);
  if (elements == 0) return {};
  bool whole = rows.length % Shape::elements == 0;
  // An eighth of the threads may have nothing to do.
  constexpr int64_t together = internal::counter_block * Shape::step;
  const int64_t of_row = rows.length / Shape::elements, blocks_of_row = ceil_div(of_row, together);
  if (whole && 8 * (blocks_of_row * together - of_row) <= of_row && blocks_of_row * rows.rows < narrow_reach) {
    internal::draw_long_rows<<<unsigned(blocks_of_row * rows.rows), internal::counter_block, 0, executor.stream>>>(
        rows, Divisor<int32_t>(int32_t(blocks_of_row)), of_row);
    return launched();
  }
  auto launch = [&](auto type) {
    using Index = decltype(type);
    if (whole) {
      unsigned blocks = unsigned(ceil_div(chunks, internal::counter_block * Shape::step));
      internal::draw_chunks<<<blocks, internal::counter_block, 0, executor.stream>>>(
          rows, Divisor<Index>(rows.length / Shape::elements), chunks);
    } else {
      unsigned blocks = unsigned(ceil_div(chunks, internal::counter_block));
      internal::draw_elements<<<blocks, internal::counter_block, 0, executor.stream>>>(
          rows, Divisor<Index>(rows.length), elements);
    }
    return launched();
  };
  return (whole ? chunks : elements) < narrow_reach ? launch(int32_t(0)) : launch(int64_t(0));
}

}  // namespace baracuda
