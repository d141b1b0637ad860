// Lattices whose rows are the antidiagonals of a grid, on CPU threads: what sweeps along them have in common.
#pragma once

#include "lattice_cpu.h"

namespace baracuda {
namespace internal {

// One direction through a grid of nodes: step i is at those whose row and column, counted in this direction, add to i,
// and state j is the one in column j: [begin(i), end(i)).
struct GridDirection : LatticeDirection {
  int height() const { return sample.rows - sample.states + 1; }
  int begin(int i) const { return std::max(0, i - (height() - 1)); }
  int end(int i) const { return std::min(sample.states, i + 1); }
  // The row of the grid, in the sample's order.
  int grid_row(int i, int j) const { return reverse ? height() - 1 - (i - j) : i - j; }
  // Where node j of step i is in a matrix whose rows have `width` elements: at origin + j step.
  int64_t origin(int i, int64_t width) const { return grid_row(i, 0) * width + state(0); }
  int64_t step(int64_t width) const { return reverse ? width - 1 : 1 - width; }
};

// One direction of one sample. Its sums are those of a step's nodes, and zeros around them: a node that is one no
// longer is not read either. A row of memory has of all states m, then e.
template <class Wide>
class GridSweep {
 public:
  template <class F>
  GridSweep(const F& f, int64_t b, bool reverse, int arrays)
      : direction_{{f.sample(b), reverse}},
        width_(f.states()),
        memory_(arrays + 1, f.states() + 1),
        now_(memory_.scaled_after_zero()) {
    now_.set(0, scaled_one<Wide>());
  }

  template <class F>
  static int64_t row_size(const F& f) {
    return 2 * int64_t(f.states());
  }
  template <class F>
  static void clear(const F& f, Wide* row) {
    ScaledArray<Wide>{row, row + f.states()}.fill_zero(0, f.states());
  }

  const GridDirection& direction() const { return direction_; }
  void store(Wide* row) const { store(row, now_); }

 protected:
  int begin(int i) const { return direction_.begin(i); }
  int end(int i) const { return direction_.end(i); }
  int first_in_memory(int i) const { return direction_.reverse ? direction_.state(end(i) - 1) : begin(i); }

  // Also zeros of all other states.
  void store(Wide* row, ScaledArray<Wide> sums) const {
    int first = begin(step_), to = first_in_memory(step_);
    ScaledArray<Wide> all{row, row + width_};
    all.fill_zero(0, to);
    ScaledArray<Wide>{sums.m + first, sums.e + first}.store({all.m + to, all.e + to}, end(step_) - first, width_ - to,
                                                            direction_.reverse);
  }
  // Those of step i, in the order of the direction.
  void read(int i, const Wide* row, ScaledArray<Wide> to) const {
    int first = begin(i), from = first_in_memory(i);
    Wide* all = const_cast<Wide*>(row);
    ScaledArray<Wide>{to.m + first, to.e + first}.load({all + from, all + width_ + from}, end(i) - first,
                                                       direction_.reverse);
  }
  // now_ has become the sums of the next step.
  void advanced() {
    ++step_;
    if (++steps_ % lattice_growing == 0) now_.normalize(begin(step_), end(step_));
  }

  GridDirection direction_;
  int width_;
  LatticeArrays<Wide> memory_;
  ScaledArray<Wide> now_;
  int step_ = 0, steps_ = 0;
};

}  // namespace internal
}  // namespace baracuda
