// Connectionist temporal classification: the probability of a target, summed over the ways to align it to the frames.
//
// The states of a sample are a blank, a label, a blank, ..., a blank. From a frame to the next an alignment stays in
// its state, goes to the next, or skips a blank between two different labels. What is known of a frame are two sums,
// over the alignments of the frames before it and of those after it, for each state that it may be in. Either is made
// in the same way, once in the order of time and once, of states in reverse order, against it.
#pragma once

#include "label_targets.h"

namespace baracuda {

// A row of its lattice is a frame, a state a blank and the label after it; the last has a blank alone.
struct CtcTargets : LabelTargets {
  BARACUDA_HD int64_t batches() const { return shape.batches; }
  BARACUDA_HD int64_t rows() const { return shape.frames; }
  BARACUDA_HD int states() const { return shape.labels + 1; }
  BARACUDA_HD LatticeSample sample(int64_t b) const {
    LabelLengths all = lengths(b);
    return {all.frames, all.labels + 1};
  }
};

// x [batches, frames, classes].
template <class T>
struct Ctc : CtcTargets {
  using Element = T;
  using Wide = Accumulator<T>;
  const T* x;

  BARACUDA_HD const T* frame(int64_t b, int t) const { return x + (b * shape.frames + t) * shape.classes; }
};

// A blank and the label after it.
template <class Wide>
struct CtcPair {
  Scaled<Wide> blank, label;
};

// Where a direction begins: at the first blank or the first label.
template <class Wide>
BARACUDA_HD CtcPair<Wide> ctc_start(int pair, int labels) {
  CtcPair<Wide> start{scaled_zero<Wide>(), scaled_zero<Wide>()};
  if (pair == 0) start.blank = scaled_one<Wide>();
  if (pair == 0 && labels > 0) start.label = scaled_one<Wide>();
  return start;
}

// The sums of the next frame's pair, from this frame's with their probabilities, and those of the label before. `skip`
// is 0 where an alignment may come from there to this label, and -infinity elsewhere.
template <class Wide>
BARACUDA_HD CtcPair<Wide> ctc_next(CtcPair<Wide> pair, Scaled<Wide> before, Wide skip) {
  return {pair.blank + before, sum(pair.label, pair.blank, {before.m, before.e + skip})};
}

}  // namespace baracuda
