// Segment reductions: what one segment does with its rows, in row order, V columns at a time.
//
// A reducer has a State of V columns and five steps: start, push (one more row), merge (a state of later rows), finish
// (write the results of a segment that has these rows, at least one) and empty (of one that has none). `element`
// indexes the result [B, S, D]; `segment` indexes what every column shares, [batches of ids, S]. What else a row needs,
// such as its weight, a reducer loads in a step of its own, `more`, so that many rows are on their way at a time.
#pragma once

#include "extreme.h"

namespace baracuda {

inline constexpr uint32_t no_row = 0xffffffffu;

struct SegmentRows {
  const uint32_t* perm;     // null for rows in their own order
  const uint32_t* sources;  // null where each row is its own
  uint32_t rows;            // sources that are not below are none
  uint32_t begin, end;      // positions

  BARACUDA_HD uint32_t count() const { return end - begin; }
  // The first that is not skipped, or none.
  BARACUDA_HD uint32_t first() const {
    uint32_t position = begin;
    while (sources && position < end && sources[position] >= rows) ++position;
    return position == end ? no_row : perm ? perm[position] : position;
  }
};

// A row on its way to a reducer: its number among those of its batch, its index among those of all batches, and the
// first of its V columns, also as an index of x.
struct SegmentRow {
  uint32_t number;
  int64_t index, column, x_element;
};

struct NoMore {};

template <int V, class Reducer>
BARACUDA_HD auto more_of(const Reducer& reducer, const SegmentRow& row) {
  if constexpr (requires { reducer.template more<V>(row); })
    return reducer.template more<V>(row);
  else
    return NoMore{};
}

template <class Reducer, class State, class Element, class More>
BARACUDA_HD void push_row(const Reducer& reducer, State& state, const Element* x, uint32_t number, const More& more) {
  if constexpr (std::is_same_v<More, NoMore>)
    reducer.push(state, x, number);
  else
    reducer.push(state, x, number, more);
}

// Of elements T, written as Out: T, or what sums of T are computed in.
template <class T, class Out = T>
struct SegmentSum {
  using Element = T;
  using Sum = Accumulator<T>;
  static constexpr bool by_buckets = true;                 // see ffi/patterns/segment_by_buckets_cuda.h
  static constexpr bool of_even = std::is_same_v<T, Out>;  // see ffi/patterns/segment_even_cuda.h
  template <int V>
  struct State {
    Sum sum[V];
  };
  Out* y;
  Out empty_value;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.sum[k] = Sum(0);
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    for (int k = 0; k < V; ++k) s.sum[k] += Sum(x[k]);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) s.sum[k] += later.sum[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Vector<Out, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = Out(s.sum[k]);
    store<V>(y + element, out);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
  }
};

// The sum of rows times weights [B, N, heads], each for `width` neighboring columns.
template <class T>
struct SegmentWeightedSum : SegmentSum<T> {
  using Sum = Accumulator<T>;
  template <int V>
  using State = typename SegmentSum<T>::template State<V>;
  static constexpr bool of_even = false;
  const Sum* weights;
  int64_t heads, width;

  template <int V>
  BARACUDA_HD Vector<Sum, V> more(const SegmentRow& row) const {
    const Sum* from = weights + row.index * heads;
    if (width == 1) return load<V>(from + row.column);
    Vector<Sum, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = from[(row.column + k) / width];
    return out;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t, const Vector<Sum, V>& weight) const {
    for (int k = 0; k < V; ++k) s.sum[k] += weight.lane[k] * Sum(x[k]);
  }
};

// The same where the columns that are read together have one weight, and so a row on its way needs few registers.
template <class T>
struct SegmentEvenlyWeightedSum : SegmentWeightedSum<T> {
  using Sum = Accumulator<T>;
  template <int V>
  using State = typename SegmentSum<T>::template State<V>;
  static constexpr bool of_even = true;

  template <int V>
  BARACUDA_HD Sum more(const SegmentRow& row) const {
    return this->weights[row.index * this->heads + (this->heads == 1 ? 0 : row.column / this->width)];
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t, Sum weight) const {
    for (int k = 0; k < V; ++k) s.sum[k] += weight * Sum(x[k]);
  }
};

// The sum of the rows whose elements `arg`, shaped as x, are their numbers.
template <class T>
struct SegmentSumOfArg : SegmentSum<T> {
  using Sum = Accumulator<T>;
  template <int V>
  using State = typename SegmentSum<T>::template State<V>;
  static constexpr bool of_even = false;
  const uint32_t* arg;

  template <int V>
  BARACUDA_HD Vector<uint32_t, V> more(const SegmentRow& row) const {
    return load<V>(arg + row.x_element);
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t number, const Vector<uint32_t, V>& arg_here) const {
    for (int k = 0; k < V; ++k) s.sum[k] += arg_here.lane[k] == number ? Sum(x[k]) : Sum(0);
  }
};

// The sum over the number of rows: of those here, or, for rows spread over devices, over `counts`, of those of all.
template <class T, bool counted>
struct SegmentMean : SegmentSum<T> {
  using Sum = Accumulator<T>;
  template <int V>
  using State = typename SegmentSum<T>::template State<V>;
  static constexpr bool by_buckets = false, of_even = false;
  const int32_t* counts;

  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows& rows, int64_t segment, int64_t element) const {
    Sum count = counted ? Sum(counts[segment]) : Sum(rows.count());
    State<V> mean;
    for (int k = 0; k < V; ++k) mean.sum[k] = s.sum[k] / count;
    SegmentSum<T>::template finish<V>(mean, rows, segment, element);
  }
};

// The sum over the number of rows, of entries of which some name none.
template <class T>
struct SegmentMeanOfSources : SegmentSum<T> {
  using Sum = Accumulator<T>;
  static constexpr int most_blocks = sizeof(T) == 8 ? 2 : 3;
  template <int V>
  struct State {
    Sum sum[V];
    uint32_t count;
  };

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.sum[k] = Sum(0);
    s.count = 0;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    for (int k = 0; k < V; ++k) s.sum[k] += Sum(x[k]);
    ++s.count;
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) s.sum[k] += later.sum[k];
    s.count += later.count;
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Sum count = Sum(s.count ? s.count : 1);
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.count ? s.sum[k] / count : Sum(this->empty_value));
    store<V>(this->y + element, out);
  }
};

// The extreme value alone; a NaN beats every number, and the first NaN wins. The state begins with a value that beats
// none: where it is still there at the end, all rows have it, or there is none.
template <class T>
struct SegmentExtremumValue {
  using Element = T;
  using Order = Extreme<T>;
  using Value = Comparable<T>;
  template <int V>
  struct State {
    Value value[V];
  };
  static constexpr int most_blocks = sizeof(T) < 4 ? 3 : 4;
  static constexpr bool of_even = true;
  T* y;
  T empty_value;
  Order order;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = Order::weakest();
  }
  static BARACUDA_HD void add(Value& best, Value value) { best = Order::beats(value, best) ? value : best; }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    for (int k = 0; k < V; ++k) add(s.value[k], order.value(x[k]));
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) add(s.value[k], later.value[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows& rows, int64_t segment, int64_t element) const {
    if (rows.sources) {  // of other rows there is one
      bool all_weakest = false;
      for (int k = 0; k < V; ++k) all_weakest |= s.value[k] == Order::weakest();
      if (all_weakest && rows.first() == no_row) return empty<V>(segment, element);
    }
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = order.number(s.value[k]);
    store<V>(y + element, out);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
  }
};

// The extreme value and the lowest row that has it; a NaN beats every number, and the first NaN wins. The state begins
// with a value that beats none: where it is still there at the end, all rows have it, and the first one wins.
template <class T>
struct SegmentExtremum {
  using Element = T;
  using Order = Extreme<T>;
  using Value = Comparable<T>;
  template <int V>
  struct State {
    Value value[V];
    uint32_t row[V];
  };
  static constexpr bool of_even = true;
  T* y;
  uint32_t* arg;
  T empty_value;
  uint32_t empty_arg;
  Order order;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = Order::weakest(), s.row[k] = no_row;
  }
  static BARACUDA_HD void add(Value& best, uint32_t& best_row, Value value, uint32_t row) {
    bool take = Order::beats(value, best);
    best = take ? value : best;
    best_row = take ? row : best_row;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t row) const {
    for (int k = 0; k < V; ++k) add(s.value[k], s.row[k], order.value(x[k]), row);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) add(s.value[k], s.row[k], later.value[k], later.row[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows& rows, int64_t segment, int64_t element) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = order.number(s.value[k]);
    Vector<uint32_t, V> won;
    bool all_weakest = false;
    for (int k = 0; k < V; ++k) won.lane[k] = s.row[k], all_weakest |= s.row[k] == no_row;
    if (all_weakest) {
      uint32_t first = rows.first();
      if (first == no_row) return empty<V>(segment, element);
      for (int k = 0; k < V; ++k) won.lane[k] = won.lane[k] == no_row ? first : won.lane[k];
    }
    store<V>(y + element, out);
    store<V>(arg + element, won);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
    fill<V>(arg + element, empty_arg);
  }
};

template <class Value>
BARACUDA_HD bool same(Value x, Value y) {
  return (x == y) | ((x != x) & (y != y));
}

// The extreme value and how many rows have it; NaNs are the same.
template <class T>
struct SegmentTies {
  using Element = T;
  using Order = Extreme<T>;
  using Value = Comparable<T>;
  template <int V>
  struct State {
    Value value[V];
    uint32_t ties[V];
  };
  T* y;
  float* ties;
  T empty_value;
  Order order;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = Order::weakest(), s.ties[k] = 0;
  }
  static BARACUDA_HD void add(Value& best, uint32_t& ties, Value value, uint32_t count) {
    bool take = Order::beats(value, best);
    ties = take ? count : ties + (same(value, best) ? count : 0);
    best = take ? value : best;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    for (int k = 0; k < V; ++k) add(s.value[k], s.ties[k], order.value(x[k]), 1);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) add(s.value[k], s.ties[k], later.value[k], later.ties[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Vector<T, V> out;
    Vector<float, V> counts;
    for (int k = 0; k < V; ++k) out.lane[k] = order.number(s.value[k]), counts.lane[k] = float(s.ties[k]);
    store<V>(y + element, out);
    store<V>(ties + element, counts);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
    fill<V>(ties + element, 0.0f);
  }
};

// The product of the factors that are not zero, and the number of zeros: with both, the gradient is exact at zeros.
template <class T>
struct SegmentProd {
  using Element = T;
  using Product = Accumulator<T>;
  template <int V>
  struct State {
    Product product[V];
    uint32_t zeros[V];
  };
  T* y;
  Product* product;  // null when nobody asks for them
  uint8_t* zeros;
  T empty_value;

  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.product[k] = Product(1), s.zeros[k] = 0;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    for (int k = 0; k < V; ++k) {
      Product factor = Product(x[k]);
      bool is_zero = factor == Product(0);
      s.product[k] *= is_zero ? Product(1) : factor;
      s.zeros[k] += is_zero;
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    for (int k = 0; k < V; ++k) s.product[k] *= later.product[k], s.zeros[k] += later.zeros[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Vector<T, V> out;
    // Times zero, not zero: an infinite or NaN factor next to a zero gives NaN.
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.zeros[k] ? s.product[k] * Product(0) : s.product[k]);
    store<V>(y + element, out);
    if (product == nullptr) return;
    Vector<Product, V> factors;
    Vector<uint8_t, V> count;
    for (int k = 0; k < V; ++k) factors.lane[k] = s.product[k];
    for (int k = 0; k < V; ++k) count.lane[k] = uint8_t(s.zeros[k] < 2 ? s.zeros[k] : 2);
    store<V>(product + element, factors);
    store<V>(zeros + element, count);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
    if (product == nullptr) return;
    fill<V>(product + element, Product(1)), fill<V>(zeros + element, uint8_t(0));
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Gradients: what a segment gives each of its rows. A broadcaster has a Part of V columns, which `part` reads once for
// a segment, and `row` makes the row's elements of dx of it. `segment` and `element` are a reduction's, `x_element`
// indexes dx [B, N, D]. Rows of no segment get zero.

struct SegmentShape {
  int64_t batches, rows, segments, columns;
  int64_t sharing;  // how many neighboring batches have the same ids
  int64_t entries;  // of the index, for each batch: `rows` where each row is in one segment at most

  BARACUDA_HD int64_t ids_batch(int64_t batch) const { return sharing == 1 ? batch : batch / sharing; }
};

template <class T>
struct SegmentSumBackward {
  using Element = T;
  template <int V>
  using Part = Vector<T, V>;
  const T* dy;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t, int64_t element) const {
    return load<V>(dy + element);
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t) const {
    return part;
  }
};

template <class T>
struct SegmentMeanBackward : SegmentSumBackward<T> {
  using Wide = Accumulator<T>;
  template <int V>
  using Part = Vector<T, V>;
  const int32_t* counts;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t segment, int64_t element) const {
    Part<V> part = load<V>(this->dy + element);
    for (int k = 0; k < V; ++k) part.lane[k] = T(Wide(part.lane[k]) / Wide(counts[segment]));
    return part;
  }
};

// The winning row takes the whole gradient.
template <class T>
struct SegmentExtremumBackward : SegmentSumBackward<T> {
  template <int V>
  struct Part {
    Vector<T, V> dy;
    Vector<uint32_t, V> arg;
  };
  const uint32_t* arg;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t, int64_t element) const {
    return {load<V>(this->dy + element), load<V>(arg + element)};
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t row, int64_t) const {
    Vector<T, V> dx;
    for (int k = 0; k < V; ++k) dx.lane[k] = part.arg.lane[k] == row ? part.dy.lane[k] : T{};
    return dx;
  }
};

// The rows that have the extreme value share the gradient.
template <class T>
struct SegmentTiesBackward : SegmentSumBackward<T> {
  using Wide = Accumulator<T>;
  template <int V>
  struct Part {
    Vector<T, V> dy, y;
  };
  const T* x;
  const T* y;
  const float* ties;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t, int64_t element) const {
    Part<V> part{load<V>(this->dy + element), load<V>(y + element)};
    Vector<float, V> count = load<V>(ties + element);
    for (int k = 0; k < V; ++k)
      part.dy.lane[k] = T(Wide(part.dy.lane[k]) / Wide(count.lane[k] > 1 ? count.lane[k] : 1));
    return part;
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t x_element) const {
    Vector<T, V> dx = load<V>(x + x_element);
    for (int k = 0; k < V; ++k) dx.lane[k] = same(Wide(dx.lane[k]), Wide(part.y.lane[k])) ? part.dy.lane[k] : T{};
    return dx;
  }
};

// dy times the product of the segment's other factors.
template <class T>
struct SegmentProdBackward : SegmentSumBackward<T> {
  using Wide = Accumulator<T>;
  template <int V>
  struct Part {
    Vector<T, V> dy;
    Vector<Wide, V> product;
    Vector<uint8_t, V> zeros;
  };
  const T* x;
  const Wide* product;
  const uint8_t* zeros;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t, int64_t element) const {
    return {load<V>(this->dy + element), load<V>(product + element), load<V>(zeros + element)};
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t x_element) const {
    Vector<T, V> dx = load<V>(x + x_element);
    for (int k = 0; k < V; ++k) {
      Wide factor = Wide(dx.lane[k]), others = part.product.lane[k];
      bool is_zero = factor == Wide(0);
      int other_zeros = part.zeros.lane[k] - is_zero;
      if (!is_zero) others /= factor;
      dx.lane[k] = T(Wide(part.dy.lane[k]) * (other_zeros > 0 ? others * Wide(0) : others));
    }
    return dx;
  }
};

}  // namespace baracuda
