// Where handlers of gradients write what belongs to weights and biases.
#pragma once

#include "handlers/normalization/normalization.h"
#include "patterns/rows_with_sums.h"

namespace baracuda {
namespace {

template <class T>
ColumnSums<T> column_sums(Output& array) {
  if (array->element_type() == wide(array->element_type())) return {nullptr, out<Accumulator<T>>(array)};
  return {out<T>(array), nullptr};
}

}  // namespace
}  // namespace baracuda
