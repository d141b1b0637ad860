// The lattice pattern: the states of each sample advance frame by frame, in both directions at once. Where these meet,
// in the middle, the sums over all alignments are known. For the gradient each direction goes on to its end: there each
// frame has the sums of both.
//
// A state is one of a pair, a blank and the label after it, which reads itself and the label before it. The functor is
// Ctc.
#pragma once

#include "../kernels/ctc.h"
#include "executor.h"

namespace baracuda {

// One direction through a sample. Its step i is at frame(i); pair j of its states, counted in this direction, has
// blank(j) and label(j) of the sample's.
struct LatticeDirection {
  CtcSample sample;
  bool reverse;

  BARACUDA_HD int frame(int i) const { return reverse ? sample.frames - 1 - i : i; }
  BARACUDA_HD int blank(int j) const { return reverse ? sample.labels - j : j; }
  BARACUDA_HD int label(int j) const { return reverse ? sample.labels - 1 - j : j; }
  // How many frames have this direction's sums saved for the gradient, which makes the others. The last that is saved
  // is where it starts, except where none is.
  BARACUDA_HD int saved() const { return reverse ? sample.frames - sample.middle() : sample.middle(); }
  BARACUDA_HD int first(bool is_second_half) const { return is_second_half && saved() > 0 ? saved() - 1 : 0; }
  // The directions meet in the sums of the middle frame.
  BARACUDA_HD int last(bool is_second_half) const {
    return is_second_half ? sample.frames - 1 : reverse ? sample.frames - 1 - sample.middle() : sample.middle();
  }
  BARACUDA_HD bool stores(bool is_second_half, int i) const { return is_second_half == (i >= saved()); }
};

}  // namespace baracuda
