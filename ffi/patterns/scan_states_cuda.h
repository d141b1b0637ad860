// What the drivers of scans share on CUDA: totals of parts of lines.
#pragma once

#include "scan.h"
#include "warp_states_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int scan_block = 256;  // threads, at most

// Of the parts that lines are to be cut into, as many as the workspace has room for the totals of; at least one.
template <class State>
int64_t parts_that_fit(const Executor& executor, int64_t lines, int64_t parts) {
  int64_t room = int64_t(executor.workspace_bytes / 256 * 256 / (size_t(lines) * sizeof(State)));
  parts = parts < room ? parts : room;
  return parts > 1 ? parts : 1;
}

// Puts what comes before each part of a line in the place of its total.
template <class Functor>
struct ScanTotals {
  using State = typename Functor::State;
  using Element = State;
  static constexpr int inputs = 1;
  State* totals;

  BARACUDA_HD static State none() { return Functor::none(); }
  template <class At>
  BARACUDA_HD State read(const At& at) const {
    return totals[at.cell];
  }
  template <class At>
  BARACUDA_HD State term(const At&, const State& total, int) const {
    return total;
  }
  BARACUDA_HD static State join(const State& a, const State& b) { return Functor::join(a, b); }
  template <class At>
  BARACUDA_HD void write(const At& at, const State&, const State (&s)[1]) const {
    totals[at.cell] = s[0];
  }
};

}  // namespace internal
}  // namespace baracuda
