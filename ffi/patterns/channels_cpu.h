// The channels pattern on CPU threads: the state of each row, a channel of all elements of a batch, and then its
// elements. A task has a chunk of some neighboring channels, as they are in memory, of some elements of the batch. The
// states of a row's chunks are merged in their order.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "../kernels/batch_normalize.h"
#include "rows_cpu.h"

namespace baracuda {
namespace internal {

// Chunks of `rows` neighboring rows: of `count` elements of the batch, and of `space` elements of a channel.
struct ChannelChunks {
  static constexpr int64_t contiguous = 1 << 11, all = 1 << 15, most_count = 1 << 9;
  BatchShape shape;
  int64_t rows, count, space, tiles, counts, spaces;

  explicit ChannelChunks(const BatchShape& shape) : shape(shape) {
    space = std::min(shape.space, contiguous);
    rows = std::min(std::max<int64_t>(contiguous / space, 1), shape.channels);
    count = std::clamp<int64_t>(all / (rows * space), 1, std::min(most_count, shape.count));
    tiles = ceil_div(shape.channels, rows), counts = ceil_div(shape.count, count);
    spaces = ceil_div(shape.space, space);
  }
  int64_t of_row() const { return counts * spaces; }
  int64_t tasks() const { return shape.batches * tiles * of_row(); }
};

struct ChannelChunk {
  int64_t first_row, rows, part, first, count, space;  // `first` is the position of the first element
  int64_t stride, of_channel;

  ChannelChunk(const ChannelChunks& of, int64_t task) {
    const BatchShape& shape = of.shape;
    part = task % of.of_row();
    int64_t tile = task / of.of_row(), batch = tile / of.tiles, channel = (tile - batch * of.tiles) * of.rows;
    int64_t begin = part / of.spaces * of.count, from = part % of.spaces * of.space;
    rows = std::min(of.rows, shape.channels - channel), first_row = batch * shape.channels + channel;
    count = std::min(of.count, shape.count - begin), space = std::min(of.space, shape.space - from);
    stride = shape.stride(), of_channel = shape.space;
    first = shape.first_element(first_row) + begin * stride + from;
  }
  int64_t positions() const { return rows * space; }
  // body(element) for the first of contiguous elements, one for each position: those of whole rows, or of a part of
  // one.
  template <class Body>
  void each(const Body& body) const {
    for (int64_t n = 0; n < count; ++n) body(first + n * stride);
  }
};

// Sums of the elements at each position, and those of rows.
template <class Wide>
class SumsOfPositions {
 public:
  explicit SumsOfPositions(int64_t positions) : sums_(positions) {}
  void clear() { std::fill(sums_.begin(), sums_.end(), Wide(0)); }
  Wide* at(int64_t position = 0) { return sums_.data() + position; }
  Wide of_row(int64_t row, int64_t space) const {
    return reduce_row(SumOfElements<Wide, false>{{}, sums_.data(), 0}, row * space, space).lane[0];
  }

 private:
  std::vector<Wide> sums_;
};

template <class T, class Wide = Accumulator<T>>
void states_of_chunk(const BatchNormalize<T>& functor, const ChannelChunk& chunk, int64_t step, Moments<Wide>* states) {
  const T* x = functor.x;
  Wide count = Wide(chunk.count * chunk.space);
  int64_t positions = chunk.positions();
  SumsOfPositions<Wide> sums(positions), means(positions);
  chunk.each([&](int64_t element) {
    Wide* to = sums.at();
    const T* from = x + element;
    BARACUDA_INDEPENDENT
    for (int64_t k = 0; k < positions; ++k) to[k] += Wide(from[k]);
  });
  for (int64_t row = 0; row < chunk.rows; ++row) {
    Wide mean = sums.of_row(row, chunk.space) / count;
    std::fill_n(means.at(row * chunk.space), chunk.space, mean);
  }
  sums.clear();
  chunk.each([&](int64_t element) {
    Wide* to = sums.at();
    const Wide* mean = means.at();
    const T* from = x + element;
    BARACUDA_INDEPENDENT
    for (int64_t k = 0; k < positions; ++k) {
      Wide difference = Wide(from[k]) - mean[k];
      to[k] += difference * difference;
    }
  });
  for (int64_t row = 0; row < chunk.rows; ++row)
    states[row * step] = {count, *means.at(row * chunk.space), sums.of_row(row, chunk.space)};
}

template <class T, class Sums, class Wide = Accumulator<T>>
void states_of_chunk(const BatchGradient<T, Sums>& functor, const ChannelChunk& chunk, int64_t step,
                     PairSums<Wide, 1>* states) {
  using Given = typename BatchGradient<T, Sums>::Given;
  const T *x = functor.x, *dy = functor.dy;
  int64_t positions = chunk.positions();
  SumsOfPositions<Wide> of_ndy(positions), of_dy(positions), means(positions), rs(positions);
  for (int64_t row = 0; row < chunk.rows; ++row) {
    Given given = functor.given(chunk.first_row + row);
    std::fill_n(means.at(row * chunk.space), chunk.space, given.mean);
    std::fill_n(rs.at(row * chunk.space), chunk.space, given.r);
  }
  chunk.each([&](int64_t element) {
    Wide *first = of_ndy.at(), *second = of_dy.at();
    const Wide *mean = means.at(), *r = rs.at();
    const T *of_x = x + element, *of_y = dy + element;
    BARACUDA_INDEPENDENT
    for (int64_t k = 0; k < positions; ++k)
      functor.add(first[k], second[k], Wide(of_x[k]), Wide(of_y[k]), Given{mean[k], r[k]});
  });
  for (int64_t row = 0; row < chunk.rows; ++row) {
    PairSums<Wide, 1>& sums = states[row * step];
    sums.first[0] = of_ndy.of_row(row, chunk.space), sums.second[0] = of_dy.of_row(row, chunk.space);
  }
}

// The functor and what is known of the row are copies, and the loop such as the compiler vectorizes.
template <class Functor>
void write_of_row(const Functor functor, const typename Functor::Row of, int64_t first, int64_t count) {
  using T = typename Functor::Element;
  T* to = functor.result();
  const T *x = functor.operand(0), *more = functor.operand(Functor::arrays - 1);
  BARACUDA_INDEPENDENT
  for (int64_t k = first; k < first + count; ++k) {
    if constexpr (Functor::arrays == 1)
      to[k] = Functor::value(of, {x[k]});
    else
      to[k] = Functor::value(of, {x[k], more[k]});
  }
}

template <class Functor>
void write_chunk(const Functor& functor, const ChannelChunk& chunk, int64_t step,
                 const typename Functor::State* states) {
  std::vector<typename Functor::Row> rows(chunk.rows);
  for (int64_t row = 0; row < chunk.rows; ++row) rows[row] = functor.row(chunk.first_row + row, states[row * step]);
  for (int64_t n = 0; n < chunk.count; ++n)
    for (int64_t row = 0; row < chunk.rows; ++row)
      write_of_row(functor, rows[row], chunk.first + n * chunk.stride + row * chunk.of_channel, chunk.space);
}

}  // namespace internal

template <class Functor>
Status run_channels(const Executor& executor, const Functor& functor) {
  using State = typename Functor::State;
  const BatchShape& shape = functor.shape;
  if (shape.rows() * shape.columns() == 0) return {};
  internal::ChannelChunks chunks(shape);
  int64_t parts = chunks.of_row(), cost = chunks.rows * chunks.space * chunks.count;
  std::unique_ptr<State[]> found(new State[shape.rows() * parts]);  // [rows, parts]
  parallel_for(executor, chunks.tasks(), cost, [&](int64_t task) {
    internal::ChannelChunk chunk(chunks, task);
    internal::states_of_chunk(functor, chunk, parts, &found[chunk.first_row * parts + chunk.part]);
    if (parts > 1) return;  // else the chunk is in the cache
    for (int64_t row = chunk.first_row; row < chunk.first_row + chunk.rows; ++row) functor.finish(row, found[row]);
    internal::write_chunk(functor, chunk, 1, &found[chunk.first_row]);
  });
  if (parts == 1) return {};
  for (int64_t row = 0; row < shape.rows(); ++row) {
    State* of_row = &found[row * parts];
    for (int64_t part = 1; part < parts; ++part) of_row[0].add(of_row[part]);
    functor.finish(row, of_row[0]);
  }
  parallel_for(executor, chunks.tasks(), cost, [&](int64_t task) {
    internal::ChannelChunk chunk(chunks, task);
    internal::write_chunk(functor, chunk, parts, &found[chunk.first_row * parts]);
  });
  return {};
}

}  // namespace baracuda
