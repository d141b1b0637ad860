// Maxima and averages over windows, and their gradients.
//
// The maximum of a window is its first NaN, or else the first of its largest elements. `arg` is its index in the plane
// that is pooled, one beyond the last where a window has no elements. Read back, it says which element of x takes the
// gradient of a window, so no gradient reads x.
#pragma once

#include "number.h"

namespace baracuda {

// Indices in a plane, in 16 bits without a sign or in 32 with one.
template <class Byte>
struct Args {
  Byte* data;
  int width;  // bytes

  Args after(int64_t elements) const { return {data == nullptr ? nullptr : data + elements * width, width}; }
  template <int V, class Index, class Arg>
  BARACUDA_HD void load_from(Index element, Arg* args) const {
    if (width == 2)
      copy(load<V>(reinterpret_cast<const uint16_t*>(data) + element).lane, args, Constant<V>{});
    else
      copy(load<V>(reinterpret_cast<const int32_t*>(data) + element).lane, args, Constant<V>{});
  }
  // By store(array, values).
  template <int V, class Arg, class Store>
  BARACUDA_HD void store_by(const Arg* args, const Store& store) const {
    auto as = [&](auto* to) {
      Vector<std::remove_pointer_t<decltype(to)>, V> lanes;
      copy(args, lanes.lane, Constant<V>{});
      store(to, lanes);
    };
    width == 2 ? as(reinterpret_cast<uint16_t*>(data)) : as(reinterpret_cast<int32_t*>(data));
  }
  template <int V, class Index, class Arg>
  BARACUDA_HD void store_to(Index element, const Arg* args) const {
    if (width == 2)
      store_as<V>(reinterpret_cast<uint16_t*>(data) + element, args);
    else
      store_as<V>(reinterpret_cast<int32_t*>(data) + element, args);
  }

 private:
  template <int V>
  using Constant = std::integral_constant<int, V>;
  template <int V, class From, class To>
  static BARACUDA_HD void copy(const From* from, To* to, Constant<V>) {
    for (int k = 0; k < V; ++k) to[k] = To(from[k]);
  }
  template <int V, class To, class Arg>
  static BARACUDA_HD void store_as(To* to, const Arg* args) {
    Vector<To, V> lanes;
    copy(args, lanes.lane, Constant<V>{});
    store<V>(to, lanes);
  }
};

// With `indexed` the index is kept next to the value, for twice the instructions.
template <class T, bool indexed>
struct MaxPool {
  using Element = T;
  using Wide = Accumulator<T>;
  using Arg = std::conditional_t<sizeof(Wide) == 8, int64_t, int32_t>;  // as wide as a value, for the vectorizer
  static constexpr bool vectorizes = true, general = true, merges = true, takes = true;
  static constexpr int row_blocks = indexed ? 12 : 0;  // of more, registers would be spilled
  template <int V>
  struct State {
    Wide best[V];
    Arg arg[indexed ? V : 1];  // of lane 0's element, whichever lane
  };
  template <int V>
  struct Elements {
    Wide value[V];
    Arg arg;
  };
  const T* x;
  Args<char> args;

  MaxPool after(int64_t x_elements, int64_t y_elements) const { return {x + x_elements, args.after(y_elements)}; }

  template <int V, class Window>
  BARACUDA_HD void start(State<V>& s, const Window& window) const {
    for (int k = 0; k < V; ++k) s.best[k] = -std::numeric_limits<Wide>::infinity();
    if constexpr (indexed)
      for (int k = 0; k < V; ++k) s.arg[k] = Arg(window.index);
  }
  template <int V, class Index, class Step>
  BARACUDA_HD Elements<V> stage(Index x_element, Step step, Index index) const {
    Vector<T, V> value = load<V>(x + x_element, step);
    Elements<V> elements;
    for (int k = 0; k < V; ++k) elements.value[k] = Wide(value.lane[k]);
    elements.arg = Arg(index);
    return elements;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const Elements<V>& elements) const {
    for (int k = 0; k < V; ++k) {
      Wide value = elements.value[k], best = s.best[k];
      if constexpr (indexed) {
        bool is_better = !(value <= best) & (best == best);
        s.best[k] = is_better ? value : best;
        s.arg[k] = is_better ? elements.arg : s.arg[k];
      } else {
        s.best[k] = ((value > best) | (value != value)) ? value : best;
      }
    }
  }
  // Elements that a driver has read.
  template <int V, class Index>
  BARACUDA_HD void take(State<V>& s, const Vector<T, V>& values, Index index) const {
    Elements<V> elements;
    for (int k = 0; k < V; ++k) elements.value[k] = Wide(values.lane[k]);
    elements.arg = Arg(index);
    push(s, elements);
  }
  // What has been pushed into another state: the elements are any, so that of equal ones the lower index is the first.
  BARACUDA_HD void merge(State<1>& s, const State<1>& other) const {
    Wide value = other.best[0], best = s.best[0];
    bool is_better = !(value <= best) & (best == best);
    if constexpr (indexed) {
      bool is_equal = (value == best) | ((value != value) & (best != best));
      is_better |= is_equal & (other.arg[0] < s.arg[0]);
      s.arg[0] = is_better ? other.arg[0] : s.arg[0];
    }
    s.best[0] = is_better ? value : best;
  }
  // One lane of neighbors along W.
  template <int V>
  BARACUDA_HD State<1> lane(const State<V>& s, int k) const {
    State<1> one;
    one.best[0] = s.best[k];
    if constexpr (indexed) one.arg[0] = s.arg[k] + k;
    return one;
  }
  template <int V, class Geometry, class Step>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s, const Geometry& windows, const typename Geometry::Position& window,
                                  Step step) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.best[k]);
    if constexpr (indexed) {
      Arg own[V], none = Arg(windows.in[0] * windows.in[1] * windows.in[2]);
      for (int k = 0; k < V; ++k) own[k] = s.arg[k] == none ? none : s.arg[k] + Arg(k * windows.between_lanes(step));
      args.template store_to<V>(window.y_element, own);
    }
    return out;
  }
  // Neighbors along W, whose positions are window(k), and, by store(array, values), what there is besides.
  template <int V, class Geometry, class Window>
  BARACUDA_HD Vector<T, V> finish_all(const State<1> (&states)[V], const Geometry&, const Window&) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(states[k].best[0]);
    return out;
  }
  template <int V, class Store>
  BARACUDA_HD void finish_more(const State<1> (&states)[V], const Store& store) const {
    if constexpr (indexed) {
      Vector<Arg, V> own;
      for (int k = 0; k < V; ++k) own.lane[k] = states[k].arg[0];
      args.template store_by<V>(own.lane, store);
    }
  }
};

// Each element of x takes the gradients of the windows whose arg it is.
template <class T>
struct MaxPoolBackward {
  using Element = T;
  using Wide = Accumulator<T>;
  using Arg = typename MaxPool<T, true>::Arg;
  static constexpr bool vectorizes = true, general = true, is_quick = true, reads_x = false;
  template <int V>
  struct State {
    Arg own[V];
    Wide sum[V];
  };
  template <int V>
  struct Terms {
    Arg arg[V];
    Wide change[V];
  };
  Args<const char> args;
  const T* dy;

  MaxPoolBackward after(int64_t, int64_t y_elements) const { return {args.after(y_elements), dy + y_elements}; }

  template <int V, class Index>
  BARACUDA_HD void start(State<V>& s, const Vector<T, V>&, Index index, Index between_lanes) const {
    for (int k = 0; k < V; ++k) s.own[k] = Arg(index + k * between_lanes), s.sum[k] = Wide(0);
  }
  template <int V, class Geometry>
  BARACUDA_HD Terms<V> stage(const Geometry&, const typename Geometry::Position& window) const {
    Vector<T, V> change = load<V>(dy + window.y_element);
    Terms<V> terms;
    for (int k = 0; k < V; ++k) terms.change[k] = Wide(change.lane[k]);
    args.template load_from<V>(window.y_element, terms.arg);
    return terms;
  }
  // Those of neighbors along W which are there; their positions are window(w).
  template <int count, class Geometry, class Window, class IsThere>
  BARACUDA_HD void stage_all(Terms<1> (&terms)[count], const Geometry& windows, const Window& window,
                             const IsThere& is_there) const {
    for (int w = 0; w < count; ++w)
      if (is_there(w)) terms[w] = stage<1>(windows, window(w));
  }
  // What no window gives.
  static BARACUDA_HD Terms<1> nothing() { return {{Arg(-1)}, {Wide(0)}}; }
  template <int V>
  BARACUDA_HD void set(Terms<V>& lanes, int k, const Terms<1>& terms) const {
    lanes.arg[k] = terms.arg[0], lanes.change[k] = terms.change[0];
  }
  template <int V, class... Window>
  BARACUDA_HD void push(State<V>& s, const Terms<V>& terms, const Window&...) const {
    for (int k = 0; k < V; ++k) s.sum[k] += value_if(terms.arg[k] == s.own[k], terms.change[k]);
  }
  template <int V>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.sum[k]);
    return out;
  }
};

// What the sum of a window is divided by: its elements in x, those in the padding too, or a given number.
struct WindowDivisor {
  bool counts_padding;
  double given;  // 0 for none

  template <class Wide, class Geometry>
  BARACUDA_HD Wide of(const Geometry& windows, const typename Geometry::Position& window) const {
    if (given != 0) return Wide(given);
    auto count = window.extent[0] * window.extent[1] * window.extent[2];
    if (counts_padding)
      count = windows.padded(0, window.at[0]) * windows.padded(1, window.at[1]) * windows.padded(2, window.at[2]);
    return Wide(count > 0 ? count : 1);
  }
};

// a / b, given 1 / b: the rounding of the product is mended by its remainder (Markstein, Computation of elementary
// functions on the IBM RISC System/6000 processor, 1990). Where there is none the product is infinite or NaN.
template <class Wide>
BARACUDA_HD Wide quotient(Wide a, Wide b, Wide inverse) {
  Wide product = a * inverse, remainder = std::fma(-product, b, a), mended = std::fma(remainder, inverse, product);
  return mended == mended ? mended : product;
}

template <class T>
struct AveragePool {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr bool vectorizes = true, general = true, merges = true, takes = true;
  static constexpr int row_blocks = 0;
  template <int V>
  struct State {
    Wide sum[V];
  };
  template <int V>
  struct Elements {
    Wide value[V];
  };
  const T* x;
  WindowDivisor divisor;

  AveragePool after(int64_t x_elements, int64_t) const { return {x + x_elements, divisor}; }

  template <int V, class Window>
  BARACUDA_HD void start(State<V>& s, const Window&) const {
    for (int k = 0; k < V; ++k) s.sum[k] = Wide(0);
  }
  template <int V, class Index, class Step>
  BARACUDA_HD Elements<V> stage(Index x_element, Step step, Index) const {
    Vector<T, V> value = load<V>(x + x_element, step);
    Elements<V> elements;
    for (int k = 0; k < V; ++k) elements.value[k] = Wide(value.lane[k]);
    return elements;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const Elements<V>& elements) const {
    for (int k = 0; k < V; ++k) s.sum[k] += elements.value[k];
  }
  template <int V, class Index>
  BARACUDA_HD void take(State<V>& s, const Vector<T, V>& values, Index) const {
    for (int k = 0; k < V; ++k) s.sum[k] += Wide(values.lane[k]);
  }
  BARACUDA_HD void merge(State<1>& s, const State<1>& other) const { s.sum[0] += other.sum[0]; }
  template <int V>
  BARACUDA_HD State<1> lane(const State<V>& s, int k) const {
    return {{s.sum[k]}};
  }
  template <int V, class Geometry, class Step>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s, const Geometry& windows, const typename Geometry::Position& window,
                                  Step) const {
    Wide count = divisor.of<Wide>(windows, window);
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.sum[k] / count);
    return out;
  }
  // Most neighbors are divided by one number: its inverse serves all of them.
  template <int V, class Geometry, class Window>
  BARACUDA_HD Vector<T, V> finish_all(const State<1> (&states)[V], const Geometry& windows,
                                      const Window& window) const {
    Wide count[V];
    bool are_equal = true;
    for (int k = 0; k < V; ++k) count[k] = divisor.of<Wide>(windows, window(k)), are_equal &= count[k] == count[0];
    Vector<T, V> out;
    if (are_equal) {
      Wide inverse = 1 / count[0];
      for (int k = 0; k < V; ++k) out.lane[k] = T(quotient(states[k].sum[0], count[0], inverse));
    } else {
      for (int k = 0; k < V; ++k) out.lane[k] = T(states[k].sum[0] / count[k]);
    }
    return out;
  }
  template <int V, class Store>
  BARACUDA_HD void finish_more(const State<1> (&)[V], const Store&) const {}
};

// Each element of x takes its part of the gradients of the windows that hold it.
template <class T>
struct AveragePoolBackward {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr bool vectorizes = true, general = true, is_quick = true, reads_x = false;
  template <int V>
  struct State {
    Wide sum[V];
  };
  template <int V>
  struct Terms {
    Wide change[V];
  };
  const T* dy;
  WindowDivisor divisor;

  AveragePoolBackward after(int64_t, int64_t y_elements) const { return {dy + y_elements, divisor}; }

  template <int V, class Index>
  BARACUDA_HD void start(State<V>& s, const Vector<T, V>&, Index, Index) const {
    for (int k = 0; k < V; ++k) s.sum[k] = Wide(0);
  }
  template <int V, class Geometry>
  BARACUDA_HD Terms<V> stage(const Geometry& windows, const typename Geometry::Position& window) const {
    Vector<T, V> change = load<V>(dy + window.y_element);
    Wide count = divisor.of<Wide>(windows, window);
    Terms<V> terms;
    for (int k = 0; k < V; ++k) terms.change[k] = Wide(change.lane[k]) / count;
    return terms;
  }
  // Those of neighbors along W which are there, most of which are divided by one number.
  template <int count, class Geometry, class Window, class IsThere>
  BARACUDA_HD void stage_all(Terms<1> (&terms)[count], const Geometry& windows, const Window& window,
                             const IsThere& is_there) const {
    Wide divisors[count];
    bool are_equal = is_there(0);
    for (int w = 0; w < count; ++w)
      if (is_there(w)) {
        auto position = window(w);
        terms[w].change[0] = Wide(dy[position.y_element]);
        divisors[w] = divisor.of<Wide>(windows, position);
        are_equal &= divisors[w] == divisors[0];
      }
    if (are_equal) {
      Wide inverse = 1 / divisors[0];
      for (int w = 0; w < count; ++w)
        if (is_there(w)) terms[w].change[0] = quotient(terms[w].change[0], divisors[0], inverse);
    } else {
      for (int w = 0; w < count; ++w)
        if (is_there(w)) terms[w].change[0] /= divisors[w];
    }
  }
  static BARACUDA_HD Terms<1> nothing() { return {{Wide(0)}}; }
  template <int V>
  BARACUDA_HD void set(Terms<V>& lanes, int k, const Terms<1>& terms) const {
    lanes.change[k] = terms.change[0];
  }
  template <int V, class... Window>
  BARACUDA_HD void push(State<V>& s, const Terms<V>& terms, const Window&...) const {
    for (int k = 0; k < V; ++k) s.sum[k] += terms.change[k];
  }
  template <int V>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(s.sum[k]);
    return out;
  }
};

}  // namespace baracuda
