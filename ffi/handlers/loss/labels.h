// The operands of losses that sum over alignments of labels to frames: x [batches..., frames, ..., classes], targets
// [batches..., labels], lengths of both [batches...].
#pragma once

#include "../../kernels/label_targets.h"
#include "../saved.h"
#include "../target.h"

namespace baracuda {

struct LabelOperands {
  using Array = ffi::AnyBuffer;

  const char* op;
  Checks checks;
  const Array &x, &targets, &input_lengths, &target_lengths;
  size_t batch_rank = 0;
  LabelShape shape{};

  // `rank` is that of a sample's x.
  LabelOperands(const char* op, size_t rank, const Array& x, const Array& targets, const Array& input_lengths,
                const Array& target_lengths, int64_t blank, bool is_log)
      : op(op), checks(op), x(x), targets(targets), input_lengths(input_lengths), target_lengths(target_lengths) {
    auto dims = x.dimensions(), labels = targets.dimensions();
    checks.require(dims.size() >= rank, "x must have rank ", rank, " or more, got ", describe(dims))
        .dtype("targets", targets, ffi::DataType::S32)
        .dtype("input_lengths", input_lengths, ffi::DataType::S32)
        .dtype("target_lengths", target_lengths, ffi::DataType::S32);
    if (checks.failed()) return;
    batch_rank = dims.size() - rank;
    checks
        .require(has_batches(labels, 1), "targets must have the batches of x, ", describe(dims), ", and labels, got ",
                 describe(labels))
        .require(blank >= 0 && blank < dims.back(), "blank must be one of ", dims.back(), " classes, got ", blank);
    if (checks.failed()) return;
    per_sample("input_lengths", input_lengths);
    per_sample("target_lengths", target_lengths);
    constexpr int64_t most = 1 << 30;
    checks
        .require(labels.back() < most && dims[batch_rank] < most && dims.back() < most,
                 "there may be at most 2^30 frames, labels and classes, got ", describe(dims), " and ",
                 describe(labels))
        .require(rank == 2 || dims[dims.size() - 2] == labels.back() + 1,
                 "x must have scores for each number of labels, 0 to ", labels.back(), ", got ", describe(dims));
    if (checks.failed()) return;
    shape = {product(dims, 0, batch_rank), dims[batch_rank], dims.back(), int(labels.back()), int(blank), is_log};
  }

  bool has_batches(Dimensions got, size_t rank) const {
    return got.size() == batch_rank + rank && std::equal(got.begin(), got.begin() + batch_rank, x.dimensions().begin());
  }
  void per_sample(const char* name, const Array& array) {
    checks.require(has_batches(array.dimensions(), 0), name, " must have the batches of x, ", describe(x.dimensions()),
                   ", got ", describe(array.dimensions()));
  }
  // What is saved for a gradient: `sizes` of numbers that are computed in.
  template <size_t rank>
  void saved(const char* name, const Array& array, const int64_t (&sizes)[rank]) {
    checks.dtype(name, array, wide(x.element_type()));
    auto got = array.dimensions();
    checks.require(has_batches(got, rank) && std::equal(sizes, sizes + rank, got.end() - rank), name,
                   " must have the batches of x, ", describe(x.dimensions()), ", and ",
                   describe(Dimensions(sizes, rank)), ", got ", describe(got));
  }
  LabelTargets labels() const {
    return {shape, in<int32_t>(targets), in<int32_t>(input_lengths), in<int32_t>(target_lengths)};
  }
};

}  // namespace baracuda
