// Normalization of channels over a batch: y = weight (x - mean) r + bias with r = 1 / sqrt(variance + eps), a weight
// and a bias for each channel, and its gradient. A row is a channel, of all elements of a batch.
#pragma once

#include <cmath>

#include "column_numbers.h"
#include "group_normalize.h"

namespace baracuda {

// Arrays are [batches, count, channels, space]. A row is a chunk of `space` elements of each of `count` elements.
struct BatchShape {
  int64_t batches, count, channels, space;

  BARACUDA_HD int64_t rows() const { return batches * channels; }
  BARACUDA_HD int64_t columns() const { return count * space; }
  // The distance between a row's chunks.
  BARACUDA_HD int64_t stride() const { return channels * space; }
  BARACUDA_HD int64_t first_element(int64_t row) const {
    int64_t batch = row / channels;
    return (batch * count * channels + row - batch * channels) * space;
  }
};

template <class T>
struct BatchNormalize {
  using Element = T;
  using Wide = Accumulator<T>;
  using State = Moments<Wide>;
  using Sum = RowSum<Wide, 1>;
  static constexpr int arrays = 1;
  const T* x;
  T* y;
  ColumnNumbers<T> weight, bias;
  Wide *mean, *variance;  // of rows
  Wide eps;
  BatchShape shape;

  // What is known of a row before its elements are read: nothing.
  struct Given {};
  struct alignas(16) Row {
    Wide mean, r, weight, bias;
  };

  BARACUDA_HD const T* operand(int) const { return x; }
  BARACUDA_HD T* result() const { return y; }
  BARACUDA_HD State empty() const { return {0, 0, 0}; }
  BARACUDA_HD Given given(int64_t) const { return {}; }
  BARACUDA_HD Row row(int64_t row, const State& of) const {
    return {of.mean, Wide(1) / std::sqrt(of.squares / of.count + eps), weight.template read<1>(row).lane[0],
            bias.template read<1>(row).lane[0]};
  }
  BARACUDA_HD void finish(int64_t row, const State& of) const {
    mean[row] = of.mean, variance[row] = of.squares / of.count;
  }
  static BARACUDA_HD T value(const Row& of, const T (&in)[1]) {
    return T((Wide(in[0]) - of.mean) * of.r * of.weight + of.bias);
  }
};

// The gradient: with n the normalized x, dx = r weight (dy - mean(dy) - n mean(n dy)). A row's sums are the gradients
// of its weight and bias, which Sums write.
template <class T, class Sums>
struct BatchGradient {
  using Element = T;
  using Wide = Accumulator<T>;
  using State = PairSums<Wide, 1>;  // of n dy, and of dy
  using Sum = State;
  static constexpr int arrays = 2;
  const T *x, *dy;
  T* dx;
  ColumnNumbers<T> weight;
  const Wide *mean, *variance;  // of rows
  Sums of_weight, of_bias;
  Wide eps;
  BatchShape shape;

  using Given = RowMoments<Wide>;
  struct alignas(16) Row {
    Given of;
    Wide factor, of_ndy, of_dy;  // r weight, and two means
  };

  BARACUDA_HD const T* operand(int which) const { return which == 0 ? x : dy; }
  BARACUDA_HD T* result() const { return dx; }
  BARACUDA_HD State empty() const {
    State s;
    s.clear();
    return s;
  }
  BARACUDA_HD Given given(int64_t row) const { return {mean[row], Wide(1) / std::sqrt(variance[row] + eps)}; }
  static BARACUDA_HD void add(Wide& of_ndy, Wide& of_dy, Wide x, Wide dy, const Given& of) {
    of_ndy += dy * ((x - of.mean) * of.r), of_dy += dy;
  }
  BARACUDA_HD Row row(int64_t row, const State& sums) const {
    Given of = given(row);
    Wide columns = Wide(shape.columns());
    return {of, of.r * weight.template read<1>(row).lane[0], sums.first[0] / columns, sums.second[0] / columns};
  }
  BARACUDA_HD void finish(int64_t row, const State& sums) const {
    of_weight.write(row, sums.first[0]), of_bias.write(row, sums.second[0]);
  }
  static BARACUDA_HD T value(const Row& of, const T (&in)[2]) {
    Wide n = (Wide(in[0]) - of.of.mean) * of.of.r;
    return T(of.factor * (Wide(in[1]) - of.of_dy - n * of.of_ndy));
  }
};

}  // namespace baracuda
