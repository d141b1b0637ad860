// The operands of losses that sum over alignments of labels to frames: scores of classes, targets, and the lengths of
// both.
#pragma once

#include "lattice.h"

namespace baracuda {

struct LabelShape {
  int64_t batches, frames, classes;
  int labels;  // the most that a target may have
  int blank;
  bool is_log;  // whether x are logarithms of probabilities, and not yet to be normalized
};

// The lengths of one sample.
struct LabelLengths {
  int frames, labels;
};

// Targets [batches, labels] and their lengths.
struct LabelTargets {
  LabelShape shape;
  const int32_t *targets, *input_lengths, *target_lengths;

  BARACUDA_HD LabelLengths lengths(int64_t b) const {
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
  // The loss of a probability, at least 0 where rounding of what was normalized would have left less.
  template <class Wide>
  BARACUDA_HD Wide loss(Scaled<Wide> probability) const {
    Wide loss = -logarithm_of(probability);
    return !shape.is_log && loss < 0 ? Wide(0) : loss;
  }
  // That of no frames.
  template <class Wide>
  BARACUDA_HD Wide loss_of_nothing(int64_t b) const {
    return lengths(b).labels == 0 ? Wide(0) : std::numeric_limits<Wide>::infinity();
  }
};

// What the logits of a row are shifted by: their maximum, and the logarithm of the sum of exponentials of what is left.
template <class Wide>
struct LogitBase {
  Wide most, log_sum;

  BARACUDA_HD Wide log_probability(Wide x) const { return (x - most) - log_sum; }
};

}  // namespace baracuda
