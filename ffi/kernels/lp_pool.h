// LP pooling over windows: y = (sum |x|^p)^(1/p), the maximum of |x| for an infinite p, and its derivatives.
//
// A power says what p is: magnitudes are summed as `raise` makes them, `root` ends the sum, and `slope` is
// (|x| / y)^(p - 1), from what `hold` keeps of y. The ratio is at most 1: y^(1 - p) alone would overflow.
#pragma once

#include "power.h"

namespace baracuda {

// The cube root. The library's, on CPU, is a call for each lane; this is free of branches and so vectorizes: a third of
// the exponent, by the bits, and Halley's iteration, which triples the number of right digits.
template <class Wide>
BARACUDA_HD Wide cube_root(Wide a) {
#ifdef __CUDA_ARCH__
  return cbrt(a);
#else
  using Bits = std::conditional_t<sizeof(Wide) == 8, uint64_t, uint32_t>;
  constexpr bool is_double = sizeof(Wide) == 8;
  Wide x;
  bool tiny = a < std::numeric_limits<Wide>::min();
  Wide normal = tiny ? a * Wide(0x1p54) : a;
  if constexpr (is_double)
    x = bit_cast<Wide>((((bit_cast<Bits>(normal) >> 32) * 0xaaaaaaabu >> 33) + 0x2a9f7893u) << 32);
  else
    x = bit_cast<Wide>(bit_cast<Bits>(normal) / 3 + 0x2a514067u);
  for (int i = 0; i < (is_double ? 3 : 2); ++i) {
    Wide ratio = normal / (x * x);
    x += x * ((ratio - x) / (x + x + ratio));
  }
  x = tiny ? x * Wide(0x1p-18) : x;
  // Zero, infinity and NaN are their own roots.
  return ((a == Wide(0)) | !(a <= std::numeric_limits<Wide>::max())) ? a : x;
#endif
}

// 1 / y, or 0 where y is 0. As a root of a sum of squares or cubes y is never near the ends of a float's range: the
// fast division of CUDA is then right to 2 ulp.
template <class Wide>
BARACUDA_HD Wide inverse_of_root(Wide y) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<Wide, float>) return y == 0 ? 0.f : __fdividef(1.f, y);
#endif
  return y == Wide(0) ? Wide(0) : 1 / y;
}

template <class Wide>
struct PowerOne {
  static constexpr bool is_max = false, vectorizes = true, needs_ratio = false, is_quick = true;
  BARACUDA_HD Wide raise(Wide magnitude) const { return magnitude; }
  BARACUDA_HD Wide root(Wide sum) const { return sum; }
  BARACUDA_HD Wide hold(Wide) const { return Wide(1); }
  BARACUDA_HD Wide slope(Wide, Wide) const { return Wide(1); }
};

template <class Wide>
struct PowerTwo {
  static constexpr bool is_max = false, vectorizes = true, needs_ratio = true, is_quick = true;
  BARACUDA_HD Wide raise(Wide magnitude) const { return magnitude * magnitude; }
  BARACUDA_HD Wide root(Wide sum) const { return std::sqrt(sum); }
  BARACUDA_HD Wide hold(Wide y) const { return inverse_of_root(y); }
  BARACUDA_HD Wide slope(Wide magnitude, Wide inverse) const { return magnitude * inverse; }
};

template <class Wide>
struct PowerThree {
  static constexpr bool is_max = false, vectorizes = true, needs_ratio = true, is_quick = true;
  BARACUDA_HD Wide raise(Wide magnitude) const { return magnitude * magnitude * magnitude; }
  BARACUDA_HD Wide root(Wide sum) const { return cube_root(sum); }
  BARACUDA_HD Wide hold(Wide y) const { return inverse_of_root(y); }
  BARACUDA_HD Wide slope(Wide magnitude, Wide inverse) const {
    Wide ratio = magnitude * inverse;
    return ratio * ratio;
  }
};

template <class Wide>
struct PowerAny {
  static constexpr bool is_max = false, vectorizes = std::is_same_v<Wide, float>, needs_ratio = true, is_quick = false;
  double p;
  BARACUDA_HD Wide raise(Wide magnitude) const { return power_of(magnitude, p); }
  BARACUDA_HD Wide root(Wide sum) const { return power_of(sum, 1 / p); }
  BARACUDA_HD Wide hold(Wide y) const { return y; }
  BARACUDA_HD Wide slope(Wide magnitude, Wide y) const {
    Wide slope = power_of(magnitude / y, p - 1);
    return y == Wide(0) ? Wide(0) : slope;
  }
};

template <class Wide>
struct PowerMax {
  static constexpr bool is_max = true, vectorizes = true, needs_ratio = false, is_quick = false;
  BARACUDA_HD Wide raise(Wide magnitude) const { return magnitude; }
  BARACUDA_HD Wide root(Wide best) const { return best; }
  BARACUDA_HD Wide hold(Wide y) const { return y; }
  // Whether an element has its window's maximum.
  static BARACUDA_HD bool has(Wide magnitude, Wide y) {
    return (magnitude == y) | ((magnitude != magnitude) & (y != y));
  }
};

template <class T, class P>
struct LpPool {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr bool vectorizes = P::vectorizes, general = false, merges = false, takes = P::is_quick;
  static constexpr int row_blocks = 0;
  template <int V>
  struct State {
    Wide sum[V];
  };
  template <int V>
  struct Elements {
    Wide raised[V];
  };
  const T* x;
  Wide* wide;  // y before it is rounded; null when nobody asks for it
  P power;

  LpPool after(int64_t x_elements, int64_t y_elements) const {
    LpPool later = *this;
    later.x += x_elements;
    if (wide != nullptr) later.wide += y_elements;
    return later;
  }

  template <int V, class Window>
  BARACUDA_HD void start(State<V>& s, const Window&) const {
    for (int k = 0; k < V; ++k) s.sum[k] = Wide(0);
  }
  template <int V, class Index, class Step>
  BARACUDA_HD Elements<V> stage(Index x_element, Step step, Index) const {
    Vector<T, V> value = load<V>(x + x_element, step);
    Elements<V> elements;
    for (int k = 0; k < V; ++k) elements.raised[k] = power.raise(std::fabs(Wide(value.lane[k])));
    return elements;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const Elements<V>& elements) const {
    for (int k = 0; k < V; ++k) {
      Wide more = elements.raised[k], sum = s.sum[k];
      s.sum[k] = !P::is_max ? sum + more : ((more > sum) | (more != more)) ? more : sum;
    }
  }
  template <int V, class Index>
  BARACUDA_HD void take(State<V>& s, const Vector<T, V>& values, Index) const {
    Elements<V> elements;
    for (int k = 0; k < V; ++k) elements.raised[k] = power.raise(std::fabs(Wide(values.lane[k])));
    push(s, elements);
  }
  template <int V, class Geometry, class Step>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s, const Geometry&, const typename Geometry::Position& window,
                                  Step) const {
    Vector<T, V> out;
    Wide root[V];
    for (int k = 0; k < V; ++k) out.lane[k] = T(root[k] = power.root(s.sum[k]));
    if constexpr (is_half<T>) {  // of other types that is y
      if (wide != nullptr)
        for (int k = 0; k < V; ++k) wide[window.y_element + k] = root[k];
    }
    return out;
  }
  // Neighbors along W, and, by store(array, values), the same before it is rounded.
  template <int V, class Geometry, class Window>
  BARACUDA_HD Vector<T, V> finish_all(const State<1> (&states)[V], const Geometry&, const Window&) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T(power.root(states[k].sum[0]));
    return out;
  }
  template <int V, class Store>
  BARACUDA_HD void finish_more(const State<1> (&states)[V], const Store& store) const {
    if constexpr (is_half<T>) {
      if (wide == nullptr) return;
      Vector<Wide, V> root;
      for (int k = 0; k < V; ++k) root.lane[k] = power.root(states[k].sum[0]);
      store(wide, root);
    }
  }
};

// sum of t * sign(x) * (|x| / y)^(p - 1); a term with x == 0 or y == 0 is 0. With p = 1 there is no ratio and no y.
// With an infinite p the first element that has the maximum takes it all, and a NaN has sign 1.
template <class T, class P>
struct LpPoolTangent {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr bool vectorizes = P::vectorizes, general = false, merges = false, takes = false;
  static constexpr int row_blocks = 0;
  template <int V>
  struct State {
    Wide y[V], held[V], sum[V];
    Wide open[V];  // 1 until the maximum is found
  };
  template <int V>
  struct Elements {
    Wide x[V], t[V];
  };
  const T* x;
  const Wide* y;
  const T* t;
  P power;

  LpPoolTangent after(int64_t x_elements, int64_t y_elements) const {
    LpPoolTangent later = *this;
    later.x += x_elements;
    later.t += x_elements;
    later.y += y_elements;
    return later;
  }

  template <int V, class Window>
  BARACUDA_HD void start(State<V>& s, const Window& window) const {
    for (int k = 0; k < V; ++k) {
      s.y[k] = y[window.y_element + k], s.held[k] = power.hold(s.y[k]);
      s.sum[k] = Wide(0), s.open[k] = Wide(1);
    }
  }
  template <int V, class Index, class Step>
  BARACUDA_HD Elements<V> stage(Index x_element, Step step, Index) const {
    Vector<T, V> value = load<V>(x + x_element, step), tangent = load<V>(t + x_element, step);
    Elements<V> elements;
    for (int k = 0; k < V; ++k) elements.x[k] = Wide(value.lane[k]), elements.t[k] = Wide(tangent.lane[k]);
    return elements;
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const Elements<V>& elements) const {
    for (int k = 0; k < V; ++k) {
      Wide element = elements.x[k], change = elements.t[k], magnitude = std::fabs(element);
      if constexpr (P::is_max) {
        bool first = (s.open[k] != Wide(0)) & P::has(magnitude, s.held[k]);
        s.sum[k] = first ? (element < Wide(0) ? -change : change) : s.sum[k];
        s.open[k] = first ? Wide(0) : s.open[k];
      } else {
        Wide term = change * (element > Wide(0) ? Wide(1) : element < Wide(0) ? Wide(-1) : element);
        if constexpr (P::needs_ratio) term *= power.slope(magnitude, s.held[k]);
        s.sum[k] += element == Wide(0) ? Wide(0) : term;
      }
    }
  }
  template <int V, class Geometry, class Step>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s, const Geometry&, const typename Geometry::Position&, Step) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k)
      out.lane[k] = T((P::is_max || P::needs_ratio) && s.y[k] == Wide(0) ? Wide(0) : s.sum[k]);
    return out;
  }
};

// The transpose of the tangent, by the same rules.
template <class T, class P>
struct LpPoolBackward {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr bool vectorizes = P::vectorizes, general = false, is_quick = P::is_quick, reads_x = true;
  template <int V>
  struct State {
    Wide x[V], sum[V];
  };
  template <int V>
  struct Terms {
    Wide change[V], held[V];
  };
  const T* x;
  const Wide* y;
  const T* dy;
  P power;

  LpPoolBackward after(int64_t x_elements, int64_t y_elements) const {
    LpPoolBackward later = *this;
    later.x += x_elements;
    later.y += y_elements;
    later.dy += y_elements;
    return later;
  }

  template <int V, class Index>
  BARACUDA_HD void start(State<V>& s, const Vector<T, V>& x, Index, Index) const {
    for (int k = 0; k < V; ++k) s.x[k] = Wide(x.lane[k]), s.sum[k] = Wide(0);
  }
  template <int V, class Geometry>
  BARACUDA_HD Terms<V> stage(const Geometry&, const typename Geometry::Position& window) const {
    Vector<T, V> change = load<V>(dy + window.y_element);
    Vector<Wide, V> root{};
    if constexpr (P::is_max || P::needs_ratio) root = load<V>(y + window.y_element);
    Terms<V> terms;
    for (int k = 0; k < V; ++k) {
      Wide top = root.lane[k];
      terms.held[k] = power.hold(top);
      terms.change[k] = P::needs_ratio && top == Wide(0) ? Wide(0) : Wide(change.lane[k]);
    }
    return terms;
  }
  // Those of neighbors along W which are there; their positions are window(w).
  template <int count, class Geometry, class Window, class IsThere>
  BARACUDA_HD void stage_all(Terms<1> (&terms)[count], const Geometry& windows, const Window& window,
                             const IsThere& is_there) const {
    for (int w = 0; w < count; ++w)
      if (is_there(w)) terms[w] = stage<1>(windows, window(w));
  }
  template <int V, class Geometry, class Index, class Step, class Position>
  BARACUDA_HD void push(State<V>& s, const Terms<V>& terms, const Geometry& windows, Index x_element, Step step,
                        const Position& position) const {
    if constexpr (P::is_max) {
      Flags<V> takes = tops(s, terms);
      Flag any = 0;
      for (int k = 0; k < V; ++k) any |= takes.flag[k];
      if (any) leave_first(takes, windows, x_element, step, position, terms);
      for (int k = 0; k < V; ++k) s.sum[k] += takes.flag[k] ? terms.change[k] : Wide(0);
    } else if constexpr (P::needs_ratio) {
      for (int k = 0; k < V; ++k) s.sum[k] += terms.change[k] * power.slope(std::fabs(s.x[k]), terms.held[k]);
    } else {
      for (int k = 0; k < V; ++k) s.sum[k] += s.x[k] == s.x[k] ? terms.change[k] : s.x[k];
    }
  }
  template <int V>
  BARACUDA_HD Vector<T, V> finish(const State<V>& s) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      Wide sum = s.x[k] < Wide(0) ? -s.sum[k] : s.sum[k];
      if constexpr (!P::is_max) sum = s.x[k] == Wide(0) ? Wide(0) : sum;
      out.lane[k] = T(sum);
    }
    return out;
  }

 private:
  using Flag = std::conditional_t<sizeof(Wide) == 8, int64_t, int32_t>;  // as wide as a sum, for the vectorizer
  template <int V>
  struct Flags {
    Flag flag[V];
  };

  template <int V>
  BARACUDA_HD Flags<V> tops(const State<V>& s, const Terms<V>& terms) const {
    Flags<V> flags;
    for (int k = 0; k < V; ++k) flags.flag[k] = P::has(std::fabs(s.x[k]), terms.held[k]) & (terms.held[k] != Wide(0));
    return flags;
  }
  // Clears the flags of the lanes where an earlier element of the window has the maximum too.
  template <int V, class Geometry, class Index, class Step, class Position>
  BARACUDA_HD void leave_first(Flags<V>& flags, const Geometry& windows, Index x_element, Step step,
                               const Position& position, const Terms<V>& terms) const {
    for (Index d = 0; d < position.extent[0]; ++d)
      for (Index h = 0; h < position.extent[1]; ++h) {
        Index element = position.first + (d * windows.in[1] + h) * windows.in[2] * windows.channels;
        for (Index w = 0; w < position.extent[2]; ++w, element += windows.channels) {
          if (element == x_element) return;
          Vector<T, V> value = load<V>(x + element, step);
          for (int k = 0; k < V; ++k) flags.flag[k] &= !P::has(std::fabs(Wide(value.lane[k])), terms.held[k]);
        }
      }
  }
};

}  // namespace baracuda
