// Reductions to the largest and the smallest element.
#pragma once

#include "extremum_instructions.h"

namespace baracuda {

// The order that extrema have, as keys of the bits of numbers, the largest of which is sought. NaN, of which there is
// one, beats all; -0 is less than 0.
template <class Key>
struct ExtremeOrder {
  static constexpr Key high = Key(Key(1) << (8 * sizeof(Key) - 1)), all = Key(~Key(0));
  Key infinity;  // of floats; 0 for integers
  Key flipped;   // what makes unsigned integers of signed ones
  Key inverted;  // all, where the smallest is sought
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
  // -0 and 0 have neighboring keys; here the one of the greater, so that they tie.
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
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    if (sizeof(Key) > 1 && order.infinity) {
      if constexpr (has_extremum<Key>) {
        Key bits[V];
        extremum<V, n>(order, x, bits);
        for (int k = 0; k < V; ++k) s.value[k] = best(s.value[k], order.template of<true>(bits[k]));
      } else {
        push_keys<V, n, sizeof(Key) != 1>(s, x);
      }
    } else {
      push_keys<V, n, false>(s, x);
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) s.value[k] = best(s.value[k], other.value[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<Key, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = order.bits(s.value[k]);
    store<V>(y + element, out);
  }

 private:
  template <int V, int n, bool is_float, class Elements>
  BARACUDA_HD void push_keys(State<V>& s, const Elements& x) const {
    auto key = [&](int i, int k) { return order.template of<is_float>(x(i, k)); };
    auto better = [](Key a, Key b) { return best(a, b); };
    for (int k = 0; k < V; ++k) s.value[k] = best(s.value[k], folded<0, n>([&](int i) { return key(i, k); }, better));
  }
};

// The extreme value of floats, and how many elements have it.
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
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    if constexpr (has_extremum<Key>) {
      // Elements are counted where some are as good as those before, which is seldom.
      Key bits[V];
      extremum<V, n>(order, x, bits);
      for (int k = 0; k < V; ++k) {
        Key key = order.template of<true>(bits[k]), level = order.tied(key);
        if (level < order.tied(s.first[k])) continue;
        add(s.first[k], s.second[k], key,
            added<n>([&](int i) { return Count(order.tied(order.template of<true>(x(i, k))) == level); }));
      }
    } else {
      BARACUDA_UNROLL
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < V; ++k) add(s.first[k], s.second[k], order.template of<true>(x(i, k)), 1);
    }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) add(s.first[k], s.second[k], other.first[k], other.second[k]);
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<Key, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = order.bits(s.first[k]);
    store<V>(y + element, out);
    for (int k = 0; k < V; ++k) ties[element + k] = float(s.second[k]);
  }
};

}  // namespace baracuda
