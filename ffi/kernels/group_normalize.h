// Normalization of groups of channels: y = weight (x - mean) r + bias with r = 1 / sqrt(mean of (x - mean)^2 + eps), a
// weight and a bias for each channel, and its gradient. A row is a group of an element of the batch.
#pragma once

#include <cmath>

#include "column_numbers.h"
#include "row_sums.h"

namespace baracuda {

// Rows are the groups of each element of the batch. Of neighboring elements, so many share a weight and a bias.
struct GroupShape {
  int64_t batch, of_weight, groups;
  int64_t channels, space;  // of a row, and elements of a channel

  BARACUDA_HD int64_t rows() const { return batch * groups; }
  BARACUDA_HD int64_t columns() const { return channels * space; }
  // The position of the weight of a row's first channel.
  BARACUDA_HD int64_t parameter(int64_t row) const {
    int64_t element = row / groups, group = row - element * groups;
    int64_t of = element < of_weight ? 0 : element / of_weight;
    return (of * groups + group) * channels;
  }
};

// The number of elements, their mean, and the sum of squared differences from it. Merged as Chan, Golub and LeVeque do
// (Updating formulae and a pairwise algorithm for computing sample variances, 1979): never negative.
template <class Wide>
struct Moments {
  Wide count, mean, squares;

  BARACUDA_HD void add(const Moments& other) {
    if (other.count == 0) return;
    if (count == 0) {
      *this = other;
      return;
    }
    Wide total = count + other.count, part = other.count / total, difference = other.mean - mean;
    mean += difference * part;
    squares += other.squares + difference * difference * count * part;
    count = total;
  }
};

// What is known of a row: the mean, and r.
template <class Wide>
struct RowMoments {
  Wide mean, r;
};

// The sum of x, or with `squares` that of squares of differences from the mean. For the rows pattern's reduction.
template <class T, bool squares>
struct SumOfElements : OfSums<RowSum, Accumulator<T>> {
  using Wide = Accumulator<T>;
  static constexpr int lanes = 16;
  const T* x;
  Wide mean;

  template <int V>
  using State = RowSum<Wide, V>;

  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return load<V>(x + element);
  }
  BARACUDA_HD Wide term(T x) const {
    if constexpr (!squares) return Wide(x);
    Wide difference = Wide(x) - mean;
    return difference * difference;
  }
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, const Vector<T, 1>& x) const {
    s.lane[lane] += term(x.lane[0]);
  }
};

template <class T>
struct GroupNormalize {
  using Element = T;
  using Wide = Accumulator<T>;
  const T* x;
  T* y;
  ColumnNumbers<T> weight, bias;
  Wide *mean, *r;  // of rows, or null
  Wide eps;
  GroupShape shape;

  // What multiplies the elements of a channel, and what is added to them.
  struct Channel {
    Wide weight, bias;
  };

  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return load<V>(x + element);
  }
  BARACUDA_HD Channel channel(int64_t parameter) const {
    return {weight.template read<1>(parameter).lane[0], bias.template read<1>(parameter).lane[0]};
  }
  BARACUDA_HD RowMoments<Wide> row(const Moments<Wide>& of) const {
    return {of.mean, Wide(1) / std::sqrt(of.squares / of.count + eps)};
  }
  BARACUDA_HD void finish(int64_t row, const RowMoments<Wide>& of) const {
    if (mean) mean[row] = of.mean;
    if (r) r[row] = of.r;
  }
  static BARACUDA_HD Wide value(Wide x, const RowMoments<Wide>& of, const Channel& channel) {
    return (x - of.mean) * of.r * channel.weight + channel.bias;
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& x, const RowMoments<Wide>& of,
                         const Channel& channel) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(value(Wide(x.lane[k]), of, channel));
    store<V>(y + element, out);
  }

  // What is known of a channel of a row.
  struct alignas(16) ChannelInRow {
    RowMoments<Wide> row;
    Channel channel;
  };
  // The first `left` elements are of one channel, and the others of the next one.
  template <int V>
  BARACUDA_HD void write_in_two(int64_t element, const Vector<T, V>& x, int left, const ChannelInRow& here,
                                const ChannelInRow& next) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      bool is_here = k < left;
      RowMoments<Wide> row{is_here ? here.row.mean : next.row.mean, is_here ? here.row.r : next.row.r};
      Channel channel{is_here ? here.channel.weight : next.channel.weight,
                      is_here ? here.channel.bias : next.channel.bias};
      out.lane[k] = T(value(Wide(x.lane[k]), row, channel));
    }
    store<V>(y + element, out);
  }
};

// The gradient: with n the normalized x and g = weight dy, dx = r (g - mean(g) - n mean(g n)). All that is read for it
// are two sums of each channel of each element of the batch, of n dy and of dy: those of a row are theirs by weights.
template <class T>
struct GroupGradient {
  using Element = T;
  using Wide = Accumulator<T>;
  const T *x, *dy;
  T* dx;
  ColumnNumbers<T> weight;
  const Wide *mean, *r;  // of rows
  GroupShape shape;

  template <int V>
  struct Elements {
    Vector<T, V> x, dy;
  };
  template <int V>
  using State = PairSums<Wide, V>;  // of n dy, and of dy
  // Of a row, mean(g n) and mean(g).
  struct Means {
    Wide of_gn, of_g;
  };

  BARACUDA_HD RowMoments<Wide> row(int64_t row) const { return {mean[row], r[row]}; }
  BARACUDA_HD Wide factor(int64_t parameter) const { return weight.template read<1>(parameter).lane[0]; }
  template <int V>
  BARACUDA_HD Elements<V> read(int64_t element) const {
    return {load<V>(x + element), load<V>(dy + element)};
  }
  static BARACUDA_HD void add(Wide& of_weight, Wide& of_bias, Wide x, Wide dy, const RowMoments<Wide>& of) {
    of_weight += dy * ((x - of.mean) * of.r), of_bias += dy;
  }
  // What a channel's sums add to those of its row.
  static BARACUDA_HD State<1> weighted(const State<1>& s, Wide factor) {
    State<1> g;
    g.first[0] = factor * s.first[0], g.second[0] = factor * s.second[0];
    return g;
  }
  BARACUDA_HD Means means(const State<1>& s) const {
    Wide count = Wide(shape.columns());
    return {s.first[0] / count, s.second[0] / count};
  }
  static BARACUDA_HD Wide value(Wide x, Wide dy, const RowMoments<Wide>& of, Wide factor, const Means& means) {
    Wide n = (x - of.mean) * of.r;
    return of.r * (factor * dy - means.of_g - n * means.of_gn);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Elements<V>& in, const RowMoments<Wide>& of, Wide factor,
                         const Means& means) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(value(Wide(in.x.lane[k]), Wide(in.dy.lane[k]), of, factor, means));
    store<V>(dx + element, out);
  }

  // What is known of a channel of a row.
  struct alignas(16) ChannelInRow {
    RowMoments<Wide> row;
    Wide factor;
    Means means;
  };
  // The first `left` elements are of one channel, and the others of the next one.
  template <int V>
  BARACUDA_HD void write_in_two(int64_t element, const Elements<V>& in, int left, const ChannelInRow& here,
                                const ChannelInRow& next) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      bool is_here = k < left;
      RowMoments<Wide> row{is_here ? here.row.mean : next.row.mean, is_here ? here.row.r : next.row.r};
      Means means{is_here ? here.means.of_gn : next.means.of_gn, is_here ? here.means.of_g : next.means.of_g};
      Wide factor = is_here ? here.factor : next.factor;
      out.lane[k] = T(value(Wide(in.x.lane[k]), Wide(in.dy.lane[k]), row, factor, means));
    }
    store<V>(dx + element, out);
  }
};

// The two sums of a channel of a row. For the rows pattern's reduction.
template <class T>
struct SumsOfChannel : OfSums<PairSums, Accumulator<T>> {
  using Gradient = GroupGradient<T>;
  using Wide = Accumulator<T>;
  static constexpr int lanes = 16;
  const T *x, *dy;
  RowMoments<Wide> row;

  template <int V>
  using State = PairSums<Wide, V>;

  template <int V>
  BARACUDA_HD typename Gradient::template Elements<V> read(int64_t element) const {
    return {load<V>(x + element), load<V>(dy + element)};
  }
  template <int K>
  BARACUDA_HD void push_to(State<K>& s, int lane, const typename Gradient::template Elements<1>& in) const {
    Gradient::add(s.first[lane], s.second[lane], Wide(in.x.lane[0]), Wide(in.dy.lane[0]), row);
  }
};

}  // namespace baracuda
