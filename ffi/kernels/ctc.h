// Connectionist temporal classification: the probability of a target, summed over the ways to align it to the frames.
//
// The states of a sample are a blank, a label, a blank, ..., a blank. From a frame to the next an alignment stays in
// its state, goes to the next, or skips a blank between two different labels. What is known of a frame are two sums,
// over the alignments of the frames before it and of those after it, for each state that it may be in. Either is made
// in the same way, once in the order of time and once, of states in reverse order, against it.
#pragma once

#include "scaled.h"

namespace baracuda {

struct CtcShape {
  int64_t batches, frames, classes;
  int labels;  // the most that a target may have
  int blank;
  bool is_log;  // whether x are logarithms of probabilities, and not yet to be normalized

  // Of a blank and the label after it; the last has a blank alone.
  BARACUDA_HD int pairs() const { return labels + 1; }
  // The elements of a frame's row of sums: of blanks m and e, of labels m and e.
  BARACUDA_HD int64_t row() const { return 4 * int64_t(pairs()); }
};

// The lengths of one sample.
struct CtcSample {
  int frames, labels;

  // The first frame of which sums over the frames before are made in the second half of the work.
  BARACUDA_HD int middle() const { return frames / 2; }
};

// Targets [batches, labels] and their lengths.
struct CtcTargets {
  CtcShape shape;
  const int32_t *targets, *input_lengths, *target_lengths;

  BARACUDA_HD CtcSample sample(int64_t b) const {
    int64_t frames = input_lengths[b], labels = target_lengths[b];
    frames = frames < 0 ? 0 : frames > shape.frames ? shape.frames : frames;
    labels = labels < 0 ? 0 : labels > shape.labels ? shape.labels : labels;
    return {int(frames), int(labels)};
  }
  // The class of label n, or -1 where there is no such label: its probability is 0.
  BARACUDA_HD int label(int64_t b, int n) const {
    int32_t label = targets[b * shape.labels + n];
    return label >= 0 && label < shape.classes && label != shape.blank ? label : -1;
  }
};

// What the logits of a frame are shifted by: their maximum, and the logarithm of the sum of exponentials of what is
// left.
template <class Wide>
struct CtcBase {
  Wide most, log_sum;

  BARACUDA_HD Wide log_probability(Wide x) const { return (x - most) - log_sum; }
};

// x [batches, frames, classes].
template <class T>
struct Ctc : CtcTargets {
  using Element = T;
  using Wide = Accumulator<T>;
  const T* x;

  BARACUDA_HD const T* frame(int64_t b, int t) const { return x + (b * shape.frames + t) * shape.classes; }
  // The loss of a probability, at least 0 where rounding of what was normalized would have left less.
  BARACUDA_HD Wide loss(Scaled<Wide> probability) const {
    Wide loss = -logarithm_of(probability);
    return !shape.is_log && loss < 0 ? Wide(0) : loss;
  }
  // That of no frames.
  BARACUDA_HD Wide loss_of_nothing(CtcSample sample) const {
    return sample.labels == 0 ? Wide(0) : std::numeric_limits<Wide>::infinity();
  }
};

// A blank and the label after it.
template <class Wide>
struct CtcPair {
  Scaled<Wide> blank, label;
};

// Where a direction begins: at the first blank or the first label.
template <class Wide>
BARACUDA_HD CtcPair<Wide> ctc_start(int pair, CtcSample sample) {
  CtcPair<Wide> start{scaled_zero<Wide>(), scaled_zero<Wide>()};
  if (pair == 0) start.blank = scaled_one<Wide>();
  if (pair == 0 && sample.labels > 0) start.label = scaled_one<Wide>();
  return start;
}

// The sums of the next frame's pair, from this frame's with their probabilities, and those of the label before. `skip`
// is 0 where an alignment may come from there to this label, and -infinity elsewhere.
template <class Wide>
BARACUDA_HD CtcPair<Wide> ctc_next(CtcPair<Wide> pair, Scaled<Wide> before, Wide skip) {
  return {pair.blank + before, sum(pair.label, pair.blank, {before.m, before.e + skip})};
}

}  // namespace baracuda
