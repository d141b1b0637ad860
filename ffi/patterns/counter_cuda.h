// The counter pattern on a CUDA grid: a thread has a few chunks of the result, far apart. A chunk is 16 bytes of the
// result, or more, so that its bits are whole blocks of a stream; where a row begins inside a block they are in one
// block more. Where rows end inside chunks, elements are computed one by one.
#pragma once

#include "../kernels/draw.h"
#include "../kernels/philox.h"
#include "divisor.h"
#include "executor.h"
#include "streaming_cuda.h"
#include "uniform_warp_cuda.h"

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
  // Where nothing but keys is read, plain stores are slower.
  if constexpr (std::is_void_v<typename Draw::Operand>)
    store_streaming(reinterpret_cast<decltype(y)*>(rows.y + first), y);
  else
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
    return 0;
  else
    return load<Chunk<Draw>::elements>(rows.x + first);
}

// The part of a row that a warp has: some tiles, one after the other, for which the row's words are read once. All
// lanes have the row's key and numbers in common, and the blocks that a lane has of a tile each round's keys. Of narrow
// elements a block makes many, whose work keeps a lane busy enough.
template <class Draw>
struct RowPart {
  static constexpr int least = Chunk<Draw>::per_block < 16 ? 4 : 2,
                       blocks = Chunk<Draw>::blocks > least ? Chunk<Draw>::blocks : least, lanes = 32,
                       chunks_of_lane = blocks / Chunk<Draw>::blocks, chunks = lanes * chunks_of_lane,
                       warps = counter_block / lanes;

  // More tiles are slower where memory is the bound: of bits alone, of wide operands, and of results of 16 bits.
  static constexpr int most_tiles() {
    if constexpr (std::is_void_v<typename Draw::Operand>)
      return Draw::numbers > 0 && sizeof(typename Draw::Result) <= 4 && sizeof(typename Draw::Result) != 2 ? 2 : 1;
    else
      return sizeof(typename Draw::Operand) == 2 ? 4 : 1;
  }
};

// Blocks of a run, of their indices' lower words, round by round.
template <int count>
__device__ __forceinline__ void philox_blocks(const PhiloxRun& run, const uint32_t (&index)[count],
                                              uint32_t (&words)[count][4]) {
#pragma unroll
  for (int i = 0; i < count; ++i) run.begin(index[i], words[i][0], words[i][1], words[i][2], words[i][3]);
#pragma unroll
  for (int round = PhiloxRun::rounds; round < philox_rounds; ++round) {
    const uint32_t key0 = philox_key0(run.key0, round), key1 = philox_key1(run.key1, round);
#pragma unroll
    for (int i = 0; i < count; ++i) philox_round(words[i][0], words[i][1], words[i][2], words[i][3], key0, key1);
  }
}

// Rows of whole parts, or nearly: warps have one each.
template <class Draw>
__global__ void __launch_bounds__(counter_block)
    draw_parts(DrawnRows<Draw> rows, Divisor<int32_t> parts_of_row, int32_t parts, int32_t tiles, int32_t chunks) {
  using Shape = Chunk<Draw>;
  using Part = RowPart<Draw>;
  const int lane = threadIdx.x % Part::lanes;
  const int32_t part = int32_t(blockIdx.x) * Part::warps + uniform_warp();
  if (part >= parts) return;
  const int32_t row = parts_of_row.quotient(part);
  const int32_t begin = (part - row * parts_of_row.value) * tiles * Part::chunks, first = begin + lane;
  const int32_t end = min(begin + tiles * Part::chunks, chunks);
  const DrawnRow<Draw> of_row(rows, row);
  const PhiloxStream stream(of_row.words);
  const Draw draw = draw_of<Draw>(of_row.words);
  const int64_t of_chunks = int64_t(row) * chunks;
  const uint64_t block = stream.start / 16 + uint32_t(begin) * uint64_t(Shape::blocks);
  // A stream that begins inside a block needs one block more for each chunk.
  if (stream.start % 16 != 0 || uint32_t(block) > ~0u - tiles * Part::chunks * Shape::blocks) {
#pragma unroll 1
    for (int32_t i = first; i < end; i += Part::lanes) {
      uint32_t words[4 * Shape::blocks];
      const int64_t at = (of_chunks + i) * Shape::elements;
      stream.bytes<Shape::blocks>(16 * uint64_t(i) * Shape::blocks, words);
      draw_words(rows, draw, words, at, load_operand(rows, at));
    }
    return;
  }
  constexpr int apart = Part::lanes * Shape::elements;
  const PhiloxRun run(stream, uint32_t(block >> 32));
  uint32_t lower = uint32_t(block) + lane * Shape::blocks;
  int64_t at = (of_chunks + first) * Shape::elements;
#pragma unroll 1
  for (int32_t left = end - first; left > 0; left -= Part::chunks) {
    decltype(load_operand(rows, at)) x[Part::chunks_of_lane];
#pragma unroll
    for (int i = 0; i < Part::chunks_of_lane; ++i)
      if (i * Part::lanes < left) x[i] = load_operand(rows, at + i * apart);
    uint32_t index[Part::blocks], words[Part::blocks][4];
#pragma unroll
    for (int i = 0; i < Part::blocks; ++i)
      index[i] = lower + i / Shape::blocks * Part::lanes * Shape::blocks + i % Shape::blocks;
    philox_blocks(run, index, words);
#pragma unroll
    for (int i = 0; i < Part::chunks_of_lane; ++i)
      if (i * Part::lanes < left) draw_words(rows, draw, words[i * Shape::blocks], at + i * apart, x[i]);
    if (Part::most_tiles() == 1) return;
    lower += Part::chunks * Shape::blocks, at += Part::chunks_of_lane * apart;
  }
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
  using RowPart = internal::RowPart<Draw>;
  const int64_t of_row = rows.length / Shape::elements;
  // An eighth of the lanes may have nothing to do. Of few elements parts are small, so that they are many.
  for (int64_t tiles = whole ? RowPart::most_tiles() : 0; tiles > 0; tiles /= 2) {
    const int64_t chunks = tiles * RowPart::chunks, parts_of_row = ceil_div(of_row, chunks),
                  parts = parts_of_row * rows.rows;
    if (8 * (parts_of_row * chunks - of_row) > of_row || parts >= narrow_reach || of_row + chunks >= narrow_reach ||
        (tiles > 1 && parts < 1 << 14))
      continue;
    internal::draw_parts<<<unsigned(ceil_div(parts, RowPart::warps)), internal::counter_block, 0, executor.stream>>>(
        rows, Divisor<int32_t>(int32_t(parts_of_row)), int32_t(parts), int32_t(tiles), int32_t(of_row));
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
