// Reductions: what the cells of a line come to.
//
// A reducer has a State of V lanes, which it treats alike, and
//   none    the state of no cells
//   push    n cells x(0, k) ... x(n - 1, k) of each lane k
//   merge   another state, lane by lane
//   finish  writes the results of V lanes, whose cells of y are neighbours.
// Sums of several cells are formed pairwise.
#pragma once

#include "complex.h"
#include "exponential.h"
#include "power.h"

// Loops over cells that are in registers on CUDA.
#ifdef __CUDA_ARCH__
#define BARACUDA_UNROLL _Pragma("unroll")
#else
#define BARACUDA_UNROLL
#endif

namespace baracuda {

// term(first), ... term(first + n - 1), put together pairwise.
template <int first, int n, class Term, class Join>
BARACUDA_HD auto folded(const Term& term, const Join& join) {
  if constexpr (n == 1)
    return term(first);
  else
    return join(folded<first, n / 2>(term, join), folded<first + n / 2, n - n / 2>(term, join));
}
template <int n, class Term>
BARACUDA_HD auto added(const Term& term) {
  return folded<0, n>(term, [](auto a, auto b) { return a + b; });
}

template <class Wide, int V>
struct LaneState {
  Wide value[V];
  BARACUDA_HD LaneState<Wide, 1> lane(int k) const { return {{value[k]}}; }
  template <int n>
  BARACUDA_HD LaneState<Wide, n> lanes(int first) const {
    LaneState<Wide, n> s;
    for (int k = 0; k < n; ++k) s.value[k] = value[first + k];
    return s;
  }
};
template <class A, class B, int V>
struct LanePair {
  A first[V];
  B second[V];
  BARACUDA_HD LanePair<A, B, 1> lane(int k) const { return {{first[k]}, {second[k]}}; }
  template <int n>
  BARACUDA_HD LanePair<A, B, n> lanes(int from) const {
    LanePair<A, B, n> s;
    for (int k = 0; k < n; ++k) s.first[k] = first[from + k], s.second[k] = second[from + k];
    return s;
  }
};

namespace internal {
template <class T>
struct Sums {
  using Wide = Accumulator<T>;
  using Real = Wide;
};
template <class T>
struct Sums<Complex<T>> {
  using Wide = Complex<T>;
  using Real = T;
};
template <class T>
struct CellBits {
  using type = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
};
}  // namespace internal

// The sum, or the sum of magnitudes, over a divisor.
template <class T>
struct ReduceSum {
  using Element = T;
  using Wide = typename internal::Sums<T>::Wide;
  using Real = typename internal::Sums<T>::Real;
  using Bits = typename internal::CellBits<T>::type;
  template <int V>
  using State = LaneState<Wide, V>;
  T* y;
  Real divisor;
  Bits mask;  // of the bits of a real number that count: all, or all but the sign

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = Wide(0);
  }
  BARACUDA_HD Wide term(T x) const {
    if constexpr (is_complex<T>)
      return x;
    else
      return Wide(bit_cast<T>(Bits(bit_cast<Bits>(x) & mask)));
  }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    for (int k = 0; k < V; ++k) s.value[k] = s.value[k] + added<n>([&](int i) { return term(x(i, k)); });
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) s.value[k] = s.value[k] + other.value[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.value[k] / divisor);
    store<V>(y + cell, out);
  }
};

// Integers: their sum or product, which wrap; or how many cells are not zero, whether any is, or all are.
enum class Counting { sum, prod, count, any, all };

template <class Cell>
struct ReduceIntegers {
  using Element = Cell;
  template <int V>
  using State = LaneState<uint64_t, V>;
  void* y;
  int bytes;  // of a cell of y
  Counting what;
  Cell sign;  // the sign bit of signed integers
  Cell mask;  // the bits that make a cell not zero: all but the sign of floats
  uint64_t count;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = what == Counting::prod;
  }
  BARACUDA_HD uint64_t integer(Cell x) const { return uint64_t(Cell(x ^ sign)) - uint64_t(sign); }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    if (what == Counting::sum) {
      for (int k = 0; k < V; ++k) s.value[k] += added<n>([&](int i) { return integer(x(i, k)); });
    } else if (what == Counting::prod) {
      for (int k = 0; k < V; ++k)
        s.value[k] *= folded<0, n>([&](int i) { return integer(x(i, k)); }, [](auto a, auto b) { return a * b; });
    } else {
      for (int k = 0; k < V; ++k) s.value[k] += added<n>([&](int i) { return uint32_t((x(i, k) & mask) != 0); });
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k)
      s.value[k] = what == Counting::prod ? s.value[k] * other.value[k] : s.value[k] + other.value[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    if (bytes == 8) return write<V, uint64_t>(s, cell);
    if (bytes == 4) return write<V, uint32_t>(s, cell);
    if (bytes == 2) return write<V, uint16_t>(s, cell);
    write<V, uint8_t>(s, cell);
  }

 private:
  template <int V, class Out>
  BARACUDA_HD void write(const State<V>& s, int64_t cell) const {
    Out* to = static_cast<Out*>(y) + cell;
    for (int k = 0; k < V; ++k) {
      uint64_t value = s.value[k];
      if (what == Counting::any) value = value > 0;
      if (what == Counting::all) value = value == count;
      to[k] = Out(value);
    }
  }
};

// The product of the factors that are not zero, and the number of zeros: with both, the gradient is exact at zeros.
template <class T>
struct ReduceProd {
  using Element = T;
  using Wide = typename internal::Sums<T>::Wide;
  // As wide as a product, so that one vector of conditions serves both.
  using Count = std::conditional_t<sizeof(Wide) == 4, uint32_t, uint64_t>;
  template <int V>
  using State = LanePair<Wide, Count, V>;
  T* y;
  Wide* product;  // null when nobody asks for them
  uint8_t* zeros;

  // What stands for a factor: for a zero, 1 with its sign.
  static BARACUDA_HD Wide factor(Wide x) {
    if constexpr (is_complex<T>)
      return x == Wide(0) ? Wide(1) : x;
    else
      return x == Wide(0) ? std::copysign(Wide(1), x) : x;
  }
  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = Wide(1), s.second[k] = 0;
  }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    for (int k = 0; k < V; ++k) {
      auto times = [](auto a, auto b) { return a * b; };
      s.first[k] = s.first[k] * folded<0, n>([&](int i) { return factor(Wide(x(i, k))); }, times);
      s.second[k] += added<n>([&](int i) { return Count(Wide(x(i, k)) == Wide(0)); });
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) s.first[k] = s.first[k] * other.first[k], s.second[k] += other.second[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<T, V> out;
    // Times zero, not zero: an infinite or NaN factor beside a zero gives NaN.
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.second[k] ? s.first[k] * Wide(0) : s.first[k]);
    store<V>(y + cell, out);
    if (product == nullptr) return;
    Vector<uint8_t, V> count;
    for (int k = 0; k < V; ++k)
      product[cell + k] = s.first[k], count.lane[k] = uint8_t(s.second[k] < 2 ? s.second[k] : 2);
    store<V>(zeros + cell, count);
  }
};

// The order that extrema have, as keys of the bits of numbers, the greatest of which is sought. NaN, of which there is
// one, beats all; -0 is less than 0.
template <class Key>
struct ExtremeOrder {
  static constexpr Key high = Key(Key(1) << (8 * sizeof(Key) - 1)), all = Key(~Key(0));
  Key infinity;  // of floats; 0 for integers
  Key flipped;   // what makes unsigned integers of signed ones
  Key inverted;  // all, where the least is sought
  Key mask;      // all, or all but the sign, for magnitudes
  Key weakest;   // the key of what beats nothing

  template <bool is_float>
  BARACUDA_HD Key of(Key bits) const {
    if constexpr (!is_float) return Key(bits ^ flipped) ^ inverted;
    bits &= mask;
    Key key = (bits & high ? Key(~bits) : Key(bits | high)) ^ inverted;
    return Key(bits & Key(~high)) > infinity ? all : key;
  }
  BARACUDA_HD Key bits(Key key) const {
    if (infinity && key == all) return Key(infinity | Key(infinity >> 1));
    key ^= inverted;
    if (infinity) return key & high ? Key(key ^ high) : Key(~key);
    return key ^ flipped;
  }
  // -0 and 0 have neighbouring keys; here the one of the greater, so that they tie.
  BARACUDA_HD Key tied(Key key) const { return key == Key(high - 1) ? high : key; }
};

template <class Key>
struct ReduceExtremum {
  using Element = Key;
  template <int V>
  using State = LaneState<Key, V>;
  ExtremeOrder<Key> order;
  Key* y;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = order.weakest;
  }
  static BARACUDA_HD Key best(Key a, Key b) { return a > b ? a : b; }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    if (sizeof(Key) > 1 && order.infinity) return push_keys<V, n, sizeof(Key) != 1>(s, x);
    push_keys<V, n, false>(s, x);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) s.value[k] = best(s.value[k], other.value[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<Key, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = order.bits(s.value[k]);
    store<V>(y + cell, out);
  }

 private:
  template <int V, int n, bool is_float, class Cells>
  BARACUDA_HD void push_keys(State<V>& s, const Cells& x) const {
    auto key = [&](int i, int k) { return order.template of<is_float>(x(i, k)); };
    auto better = [](Key a, Key b) { return best(a, b); };
    for (int k = 0; k < V; ++k) s.value[k] = best(s.value[k], folded<0, n>([&](int i) { return key(i, k); }, better));
  }
};

// The extreme value of floats, and how many cells have it.
template <class Key>
struct ReduceTies {
  using Element = Key;
  using Count = std::conditional_t<sizeof(Key) == 8, uint64_t, uint32_t>;
  template <int V>
  using State = LanePair<Key, Count, V>;
  ExtremeOrder<Key> order;
  Key* y;
  float* ties;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = order.weakest, s.second[k] = 0;
  }
  BARACUDA_HD void add(Key& best, Count& ties, Key key, Count count) const {
    Key a = order.tied(best), b = order.tied(key);
    ties = b > a ? count : ties + (b == a ? count : 0);
    best = key > best ? key : best;
  }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) add(s.first[k], s.second[k], order.template of<true>(x(i, k)), 1);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) add(s.first[k], s.second[k], other.first[k], other.second[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<Key, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = order.bits(s.first[k]);
    store<V>(y + cell, out);
    for (int k = 0; k < V; ++k) ties[cell + k] = float(s.second[k]);
  }
};

// The greater, NaN where one is.
template <class Wide>
BARACUDA_HD Wide greatest(Wide a, Wide b) {
  return (b > a) | (b != b) ? b : a;
}

// log(sum of e^x): the greatest x, and the sum of e^(x - greatest). Where that is not finite it is the result.
template <class T>
struct ReduceLogSumExp {
  using Element = T;
  using Wide = Comparable<T>;
  using Limits = std::numeric_limits<Wide>;
  template <int V>
  using State = LanePair<Wide, Wide, V>;
  T* y;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = -Limits::infinity(), s.second[k] = 0;
  }
  // What is taken from the exponents: -inf has no difference from itself.
  static BARACUDA_HD Wide base(Wide most) { return most == -Limits::infinity() ? Wide(0) : most; }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    Wide from[V];
    for (int k = 0; k < V; ++k) from[k] = s.first[k];
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) from[k] = greatest(from[k], Wide(x(i, k)));
    rescale(s, from);
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) s.second[k] += exponential<T>(Wide(x(i, k)) - from[k]);
  }
  // To the greatest of more cells, which then is what is taken from them.
  template <int V>
  static BARACUDA_HD void rescale(State<V>& s, Wide (&most)[V]) {
    for (int k = 0; k < V; ++k) {
      Wide before = s.first[k];
      s.first[k] = most[k], most[k] = base(most[k]);
      s.second[k] *= exponential<T>(before - most[k]);
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) {
      Wide most = greatest(s.first[k], other.first[k]), from = base(most);
      s.second[k] =
          s.second[k] * exponential<T>(s.first[k] - from) + other.second[k] * exponential<T>(other.first[k] - from);
      s.first[k] = most;
    }
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      bool is_finite = s.first[k] - s.first[k] == 0;
      out.lane[k] = T(is_finite ? s.first[k] + logarithm(s.second[k]) : s.first[k]);
    }
    store<V>(y + cell, out);
  }
};

// The root of the sum of squares, of which there are three sums, of great, middling and small magnitudes, each scaled
// so that nothing over- or underflows (Blue, A portable Fortran program to find the Euclidean norm, 1978).
template <class T>
struct ReduceNormTwo {
  using Element = T;
  using Wide = Comparable<T>;
  template <int V>
  struct State {
    Wide great[V], middle[V], small[V];
    BARACUDA_HD State<1> lane(int k) const { return {{great[k]}, {middle[k]}, {small[k]}}; }
    template <int n>
    BARACUDA_HD State<n> lanes(int first) const {
      State<n> s;
      for (int k = 0; k < n; ++k)
        s.great[k] = great[first + k], s.middle[k] = middle[first + k], s.small[k] = small[first + k];
      return s;
    }
  };
  static constexpr bool is_double = sizeof(Wide) == 8;
  static constexpr Wide most = is_double ? Wide(0x1p480) : Wide(0x1p47f),
                        least = is_double ? Wide(0x1p-511) : Wide(0x1p-63f),
                        shrink = is_double ? Wide(0x1p-600) : Wide(0x1p-96f),
                        grow = is_double ? Wide(0x1p600) : Wide(0x1p90f),
                        alone = is_double ? Wide(0x1p-400) : Wide(0x1p-53f);  // beside this small ones are nothing
  T* y;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.great[k] = s.middle[k] = s.small[k] = 0;
  }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) {
        Wide a = std::fabs(Wide(x(i, k)));
        Wide great = value_if(!(a <= most), a * shrink), small = value_if(a < least, a * grow);
        Wide middle = value_if((a <= most) & (a >= least), a);
        s.great[k] += great * great, s.middle[k] += middle * middle, s.small[k] += small * small;
      }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k)
      s.great[k] += other.great[k], s.middle[k] += other.middle[k], s.small[k] += other.small[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(root(s.great[k], s.middle[k], s.small[k]));
    store<V>(y + cell, out);
  }

 private:
  static BARACUDA_HD Wide root(Wide great, Wide middle, Wide small) {
    if (!(great == 0)) return std::sqrt(great + middle * shrink * shrink) / shrink;
    if (!(middle <= alone)) return std::sqrt(middle);
    return std::sqrt(small + middle * grow * grow) / grow;
  }
};

// a^p; on CUDA not in the place of each of many calls.
template <class Wide>
#ifdef __CUDACC__
__host__ __device__ __noinline__
#else
BARACUDA_HD
#endif
    Wide called_power(Wide a, double p) {
  return power_of(a, p);
}

// (sum of |x|^p)^(1/p): the greatest magnitude, for p < 0 the least, and the sum of the powers of the ratios to it,
// which are at most 1. Where it is 0, infinite or NaN it is the result.
template <class T>
struct ReduceNorm {
  using Element = T;
  using Wide = Comparable<T>;
  using Limits = std::numeric_limits<Wide>;
  template <int V>
  using State = LanePair<Wide, Wide, V>;
  T* y;
  double p;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = p > 0 ? Wide(0) : Limits::infinity(), s.second[k] = 0;
  }
  BARACUDA_HD Wide extreme(Wide a, Wide b) const { return (p > 0 ? b > a : b < a) | (b != b) ? b : a; }
  static BARACUDA_HD bool is_scale(Wide a) { return (a > 0) & (a <= Limits::max()); }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    Wide scale[V];
    for (int k = 0; k < V; ++k) scale[k] = s.first[k];
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) scale[k] = extreme(scale[k], std::fabs(Wide(x(i, k))));
    for (int k = 0; k < V; ++k) {
      Wide before = s.first[k];
      s.first[k] = scale[k], scale[k] = is_scale(scale[k]) ? scale[k] : Wide(1);
      s.second[k] = raised(s.second[k], before / scale[k]);
    }
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) s.second[k] += called_power(std::fabs(Wide(x(i, k))) / scale[k], p);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) {
      Wide most = extreme(s.first[k], other.first[k]), scale = is_scale(most) ? most : Wide(1);
      s.second[k] = raised(s.second[k], s.first[k] / scale) + raised(other.second[k], other.first[k] / scale);
      s.first[k] = most;
    }
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      Wide most = s.first[k];
      out.lane[k] = T(is_scale(most) ? most * called_power(s.second[k], 1 / p) : most);
    }
    store<V>(y + cell, out);
  }

 private:
  BARACUDA_HD Wide raised(Wide sum, Wide ratio) const { return sum == 0 ? Wide(0) : sum * called_power(ratio, p); }
};

// The sum of squared differences from the mean, over a divisor, or the root of that. A few cells have a mean of their
// own, reckoned from the first of them so that equal cells have none but it; it is joined to the mean of those before
// (Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979).
template <class T>
struct ReduceVariance {
  using Element = T;
  using Wide = Accumulator<T>;
  template <int V>
  struct State {
    double mean[V];  // of which a difference has the digits that cells far from 0 leave it
    Wide squares[V], count;
    BARACUDA_HD State<1> lane(int k) const { return {{mean[k]}, {squares[k]}, count}; }
    template <int n>
    BARACUDA_HD State<n> lanes(int first) const {
      State<n> s;
      for (int k = 0; k < n; ++k) s.mean[k] = mean[first + k], s.squares[k] = squares[first + k];
      s.count = count;
      return s;
    }
  };
  T* y;
  Wide* mean;  // null when nobody asks for it
  Wide divisor;
  bool root;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    s.count = 0;
    for (int k = 0; k < V; ++k) s.mean[k] = 0, s.squares[k] = 0;
  }
  template <int V, int n, class Cells>
  BARACUDA_HD void push(State<V>& s, const Cells& x) const {
    Wide total = s.count + Wide(n), share = Wide(n) / total, weight = s.count * share;
    for (int k = 0; k < V; ++k) {
      Wide first = Wide(x(0, k));
      Wide apart = added<n>([&](int i) { return Wide(x(i, k)) - first; }) / Wide(n);
      Wide squares = added<n>([&](int i) {
        Wide difference = (Wide(x(i, k)) - first) - apart;
        return difference * difference;
      });
      double step = double(first) + double(apart) - s.mean[k];
      s.mean[k] += step * double(share);
      Wide delta = Wide(step);
      s.squares[k] += squares + delta * (delta * weight);
    }
    s.count = total;
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    Wide total = s.count + other.count, share = total > 0 ? other.count / total : Wide(0), weight = s.count * share;
    for (int k = 0; k < V; ++k) {
      double step = other.mean[k] - s.mean[k];
      s.mean[k] += step * double(share);
      Wide delta = Wide(step);
      s.squares[k] += other.squares[k] + delta * (delta * weight);
    }
    s.count = total;
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t cell) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      Wide variance = divisor > 0 ? s.squares[k] / divisor : std::numeric_limits<Wide>::quiet_NaN();
      out.lane[k] = T(root ? std::sqrt(variance) : variance);
    }
    store<V>(y + cell, out);
    if (mean == nullptr) return;
    for (int k = 0; k < V; ++k) mean[cell + k] = Wide(s.mean[k]);
  }
};

}  // namespace baracuda
