// The lattice pattern: the states of each sample advance row by row, in both directions at once. Where these meet, in
// the middle, the sums over all paths are known. For the gradient each direction goes on to its end: there each row has
// the sums of both. What a state is, and which others it reads, is the functor's.
//
// A row of Ctc is a frame, and its states are in the frames' order. The rows of Transducer and SoftDtw are the
// antidiagonals of a grid, whose states are its columns.
#pragma once

#include "../kernels/lattice.h"
#include "executor.h"

namespace baracuda {

// One direction through a sample. Its step i is at row(i); state j, counted in this direction, is state(j) of the
// sample's.
struct LatticeDirection {
  LatticeSample sample;
  bool reverse;

  BARACUDA_HD int row(int i) const { return reverse ? sample.rows - 1 - i : i; }
  BARACUDA_HD int state(int j) const { return reverse ? sample.states - 1 - j : j; }
  // What is between states j and j + 1, by the number of the sample's state before it.
  BARACUDA_HD int between(int j) const { return reverse ? sample.states - 2 - j : j; }
  // How many rows have this direction's sums saved for the gradient, which makes the others. The last that is saved is
  // where it starts, except where none is.
  BARACUDA_HD int saved() const { return reverse ? sample.rows - sample.middle() : sample.middle(); }
  BARACUDA_HD int first(bool is_second_half) const { return is_second_half && saved() > 0 ? saved() - 1 : 0; }
  // The directions meet in the sums of the middle row.
  BARACUDA_HD int last(bool is_second_half) const {
    return is_second_half ? sample.rows - 1 : reverse ? sample.rows - 1 - sample.middle() : sample.middle();
  }
  BARACUDA_HD bool stores(bool is_second_half, int i) const { return is_second_half == (i >= saved()); }
};

}  // namespace baracuda
