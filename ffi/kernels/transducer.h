// The transducer: the probability of a target, summed over the ways to read frames and write labels in turn.
//
// A node (t, n) is where t frames are read and n labels written. From it a blank leads to (t + 1, n), and label n to
// (t, n + 1); paths lead from (0, 0) to (frames, labels), so that the last is a blank. What is known of a node are two
// sums, over the paths to it and those from it. The nodes of equal t + n are a row of the lattice, with a state for
// each n: an edge leads from a row to the next.
#pragma once

#include "label_targets.h"

namespace baracuda {

struct TransducerTargets : LabelTargets {
  BARACUDA_HD int64_t batches() const { return shape.batches; }
  BARACUDA_HD int64_t rows() const { return shape.frames + shape.labels + 1; }
  BARACUDA_HD int states() const { return shape.labels + 1; }
  BARACUDA_HD LatticeSample sample(int64_t b) const {
    LabelLengths all = lengths(b);
    return {all.frames == 0 ? 0 : all.frames + all.labels + 1, all.labels + 1};
  }
};

// x [batches, frames, states, classes].
template <class T>
struct Transducer : TransducerTargets {
  using Element = T;
  using Wide = Accumulator<T>;
  const T* x;

  BARACUDA_HD const T* scores(int64_t b, int64_t t, int n) const {
    return x + ((b * shape.frames + t) * states() + n) * shape.classes;
  }
};

// What is kept of each node's scores [batches, frames, 4, states]: the logarithms of the probabilities of its blank and
// of its label, -infinity where it has no label, and its LogitBase.
template <class Wide>
struct TransducerLogs {
  Wide* first;
  int states;

  BARACUDA_HD Wide* of(int64_t frame, int kind) const { return first + (4 * frame + kind) * states; }
};

// The sum of a node of the next row, from those of two nodes of this row and the probabilities of the edges to it.
template <class Wide>
BARACUDA_HD Scaled<Wide> transducer_next(Scaled<Wide> own, Scaled<Wide> stay, Scaled<Wide> before, Scaled<Wide> enter) {
  return own * stay + before * enter;
}

}  // namespace baracuda
