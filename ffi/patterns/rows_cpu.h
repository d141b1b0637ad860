// The rows pattern on CPU threads: each row is reduced, and then written with what that gave.
//
// The functor reads (`read<V>`), reduces (`start`, `push`, `merge`), turns a row's state into its block (`block`),
// writes what the row has once (`finish`), and then its elements (`write`). One that has `after` reduces twice: what
// that gives for the first state is the functor that goes on. One that has `keeping` stores, by what that gives, what
// it makes of elements as it reduces; `kept` reads that when it writes.
#pragma once

#include "blockwise_cpu.h"
#include "rows.h"

namespace baracuda {

namespace internal {

// The state of the elements [first, first + count). The functor is a copy, and the loop such as the compiler
// vectorizes. Sums of floats have lanes, which are merged in halves; those of chunks are added, so that long sums
// lose no digits.
template <class Functor>
auto reduce_row(const Functor functor, int64_t first, int64_t count) {
  if constexpr (requires { Functor::lanes; }) {
    constexpr int lanes = Functor::lanes;
    constexpr int64_t chunk = 1 << 11;
    auto state = functor.template start<lanes>();
    for (int64_t begin = first; begin < first + count; begin += chunk) {
      auto sums = functor.template start<lanes>();
      int64_t end = begin + chunk < first + count ? begin + chunk : first + count, k = begin;
      int64_t whole = end - (end - begin) % lanes;
      for (; k < whole; k += lanes)
        for (int lane = 0; lane < lanes; ++lane) functor.push_to(sums, lane, functor.template read<1>(k + lane));
      for (; k < end; ++k) functor.push_to(sums, int(k - whole), functor.template read<1>(k));
      functor.merge(state, sums);
    }
    return state.merged();
  } else {
    auto state = functor.start();
    for (int64_t k = first; k < first + count; ++k) functor.push(state, functor.template read<1>(k));
    return state;
  }
}

// One row; the functor is that of the row.
template <class Functor>
void reduce_and_write(const Functor& functor, int64_t row, int64_t columns) {
  // Of a short row stores cost more than they save.
  constexpr int64_t kept_columns = 256;
  if constexpr (requires { functor.keeping(); }) {
    if (columns >= kept_columns) {
      auto block = functor.block(reduce_row(functor.keeping(), row * columns, columns));
      functor.finish(row, block);
      return write_elements(functor.kept(), row * columns, columns, block);
    }
  }
  auto state = reduce_row(functor, row * columns, columns);
  if constexpr (requires { functor.after(state); }) {
    reduce_and_write(functor.after(state), row, columns);
  } else {
    auto block = functor.block(state);
    functor.finish(row, block);
    write_elements(functor, row * columns, columns, block);
  }
}

}  // namespace internal

template <class Functor>
Status run_rows(const Executor& executor, const Functor& functor, int64_t rows, int64_t columns) {
  constexpr int64_t steps = 1 << 14;
  if (rows == 0) return {};
  int64_t range = steps / (columns + 1) + 1;
  parallel_for(executor, ceil_div(rows, range), range * columns, [&](int64_t task) {
    for (int64_t row = task * range; row < std::min((task + 1) * range, rows); ++row)
      internal::reduce_and_write(internal::at_row(functor, row), row, columns);
  });
  return {};
}

}  // namespace baracuda
