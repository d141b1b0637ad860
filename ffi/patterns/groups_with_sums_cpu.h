// The groups pattern with sums of channels, on CPU threads: two sums of each channel of each row, a group of channels,
// from which the row's come, and then its elements. A short row is a task, and stays in the cache. Of a long one the
// sums of chunks of channels are added in their order; so are those of a channel over the batch.
#pragma once

#include "groups_cpu.h"
#include "rows_with_sums.h"

namespace baracuda {

template <class Functor, class T = typename Functor::Element>
Status run_groups_with_sums(const Executor& executor, const Functor& functor, ColumnSums<T> of_weight,
                            ColumnSums<T> of_bias) {
  using Sums = typename Functor::template State<1>;
  const GroupShape& shape = functor.shape;
  int64_t rows = shape.rows(), columns = shape.columns(), space = shape.space, every = shape.groups * shape.channels;
  if (rows * columns == 0) return {};
  int64_t cuts = ceil_div(space, internal::groups_chunk), chunk = ceil_div(space, cuts);
  std::unique_ptr<Sums[]> found(new Sums[rows * shape.channels * cuts]);  // [rows, channels, cuts]

  auto sum = [&](int64_t row, int64_t task) {  // of a channel's chunk
    int64_t begin = task % cuts * chunk, count = std::min(chunk, space - begin);
    SumsOfChannel<T> of_channel{{}, functor.x, functor.dy, functor.row(row)};
    found[task] = count > 0 ? internal::reduce_row(of_channel, task / cuts * space + begin, count) : of_channel.start();
  };
  // The row's, once its channels have theirs, the first of their chunks.
  auto means = [&](int64_t row) {
    int64_t parameter = shape.parameter(row);
    Sums total = SumsOfChannel<T>{}.start();
    for (int64_t channel = 0; channel < shape.channels; ++channel) {
      Sums* of_channel = &found[(row * shape.channels + channel) * cuts];
      for (int64_t cut = 1; cut < cuts; ++cut) of_channel[0].add(of_channel[cut]);
      total.add(functor.weighted(of_channel[0], functor.factor(parameter + channel)));
    }
    return functor.means(total);
  };
  auto write = [&](int64_t row, int64_t begin, int64_t end, const typename Functor::Means& of_row) {
    internal::each_channel(shape, row, begin, end, [&](int64_t first, int64_t count, int64_t parameter) {
      internal::write_channel(functor, first, count, functor.row(row), functor.factor(parameter), of_row);
    });
  };

  if (columns <= internal::groups_short_row) {
    internal::each_short_row(executor, rows, columns, [&](int64_t row) {
      int64_t of_row = shape.channels * cuts;
      for (int64_t task = row * of_row; task < (row + 1) * of_row; ++task) sum(row, task);
      write(row, 0, columns, means(row));
    });
  } else {
    int64_t of_row = shape.channels * cuts, chunks = ceil_div(columns, internal::groups_chunk);
    parallel_for(executor, rows * of_row, chunk, [&](int64_t task) { sum(task / of_row, task); });
    std::unique_ptr<typename Functor::Means[]> of_rows(new typename Functor::Means[rows]);
    for (int64_t row = 0; row < rows; ++row) of_rows[row] = means(row);
    parallel_for(executor, rows * chunks, internal::groups_chunk, [&](int64_t task) {
      int64_t row = task / chunks, begin = task % chunks * internal::groups_chunk;
      write(row, begin, std::min(begin + internal::groups_chunk, columns), of_rows[row]);
    });
  }
  parallel_for(executor, shape.batch / shape.of_weight * every, shape.of_weight * 4, [&](int64_t position) {
    int64_t first = position / every * shape.of_weight * every + position % every;
    Sums total = found[first * cuts];
    for (int64_t n = 1; n < shape.of_weight; ++n) total.add(found[(first + n * every) * cuts]);
    of_weight.write(position, total.first[0]), of_bias.write(position, total.second[0]);
  });
  return {};
}

}  // namespace baracuda
