// Reductions that add or multiply: of floats and complex numbers, and of integers, which are also counted.
#pragma once

#include "factor.h"
#include "lanes.h"

namespace baracuda {

// The sum, or the sum of magnitudes, over a divisor.
template <class T>
struct ReduceSum {
  using Element = T;
  using Wide = typename internal::Sums<T>::Wide;
  using Real = typename internal::Sums<T>::Real;
  using Bits = typename internal::ElementBits<T>::type;
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
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    for (int k = 0; k < V; ++k) s.value[k] = s.value[k] + added<n>([&](int i) { return term(x(i, k)); });
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) s.value[k] = s.value[k] + other.value[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.value[k] / divisor);
    store<V>(y + element, out);
  }
};

// Integers: their sum or product, which wrap; or how many elements are not zero, whether any is, or all are.
enum class Counting { sum, prod, count, any, all };

template <class T>
struct ReduceIntegers {
  using Element = T;
  template <int V>
  using State = LaneState<uint64_t, V>;
  void* y;
  int bytes;  // of an element of y
  Counting what;
  T sign;  // the sign bit of signed integers
  T mask;  // the bits that make an element not zero: all but the sign of floats
  uint64_t count;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.value[k] = what == Counting::prod;
  }
  BARACUDA_HD uint64_t integer(T x) const { return uint64_t(T(x ^ sign)) - uint64_t(sign); }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    if (what == Counting::sum) {
      for (int k = 0; k < V; ++k) s.value[k] += added<n>([&](int i) { return integer(x(i, k)); });
    } else if (what == Counting::prod) {
      for (int k = 0; k < V; ++k)
        s.value[k] *= folded<0, n>([&](int i) { return integer(x(i, k)); }, [](auto a, auto b) { return a * b; });
    } else {
      count_elements<V, n>(s, x);
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k)
      s.value[k] = what == Counting::prod ? s.value[k] * other.value[k] : s.value[k] + other.value[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    if (bytes == 8) return write<V, uint64_t>(s, element);
    if (bytes == 4) return write<V, uint32_t>(s, element);
    if (bytes == 2) return write<V, uint16_t>(s, element);
    write<V, uint8_t>(s, element);
  }

 private:
#ifdef __CUDACC__
  // Two neighbors: the upper bit of a half is set where it was, or where adding all the others carries into it.
  BARACUDA_HD uint32_t counted(const uint16_t& first) const {
    uint32_t both = pair_from(first) & (mask * 0x10001u);
    return (((both & 0x7fff7fffu) + 0x7fff7fffu) | both) >> 15 & 0x10001u;
  }
#endif
  template <int V, int n, class Elements>
  BARACUDA_HD void count_elements(State<V>& s, const Elements& x) const {
#ifdef __CUDACC__
    constexpr bool pairs = sizeof(T) == 2;
#else
    constexpr bool pairs = false;
#endif
    if constexpr (pairs && V % 2 == 0) {
      for (int k = 0; k < V; k += 2) {
        uint32_t both = added<n>([&](int i) { return counted(x(i, k)); });
        s.value[k] += both & 0xffff, s.value[k + 1] += both >> 16;
      }
    } else if constexpr (pairs && n % 2 == 0) {
      uint32_t both = added<n / 2>([&](int i) { return counted(x(2 * i, 0)); });
      s.value[0] += (both & 0xffff) + (both >> 16);
    } else {
      for (int k = 0; k < V; ++k) s.value[k] += added<n>([&](int i) { return uint32_t((x(i, k) & mask) != 0); });
    }
  }
  template <int V, class Out>
  BARACUDA_HD void write(const State<V>& s, int64_t element) const {
    Out* to = static_cast<Out*>(y) + element;
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

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = Wide(1), s.second[k] = 0;
  }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    for (int k = 0; k < V; ++k) {
      auto times = [](auto a, auto b) { return a * b; };
      s.first[k] = s.first[k] * folded<0, n>([&](int i) { return factor_of(Wide(x(i, k))); }, times);
      s.second[k] += added<n>([&](int i) { return Count(Wide(x(i, k)) == Wide(0)); });
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) s.first[k] = s.first[k] * other.first[k], s.second[k] += other.second[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<T, V> out;
    // Times zero, not zero: an infinite or NaN factor next to a zero gives NaN.
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.second[k] ? s.first[k] * Wide(0) : s.first[k]);
    store<V>(y + element, out);
    if (product == nullptr) return;
    Vector<uint8_t, V> count;
    for (int k = 0; k < V; ++k)
      product[element + k] = s.first[k], count.lane[k] = uint8_t(s.second[k] < 2 ? s.second[k] : 2);
    store<V>(zeros + element, count);
  }
};

}  // namespace baracuda
