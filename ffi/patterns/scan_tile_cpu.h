// P positions of V slices, or of V ranges of one slice, as a scan on CPU threads sees them: lanes are slices, so what
// follows one another in memory is transposed.
#pragma once

#include <cstring>

#include "../kernels/complex.h"
#include "../kernels/scan.h"
#include "square_cpu.h"

namespace baracuda {

template <int V, int P>
struct ScanTile {
  static constexpr int lanes = V * P;  // lane p * V + v is position p of slice v
  int64_t element, step;               // the next position of a slice is at element + step
  int64_t pitch;                       // the next slice
  int64_t position, apart;             // of slice 0; by how much the next slice's differs
  int64_t count;
  int firsts, lasts;  // lanes below and from which on a slice begins or ends

  ScanTile(int64_t element, int64_t step, int64_t pitch, int64_t position, int64_t apart, int64_t count)
      : element(element), step(step), pitch(pitch), position(position), apart(apart), count(count) {
    firsts = position > 0 ? 0 : apart ? 1 : V;
    int64_t left = count - 1 - position - (V - 1) * apart;  // positions after the last slice's first one
    lasts = left >= P ? lanes : int(left) * V + (apart ? V - 1 : 0);
  }

  BARACUDA_HD bool is_first(int k) const { return k < firsts; }
  BARACUDA_HD bool is_last(int k) const { return k >= lasts; }
  BARACUDA_HD int32_t index(int k) const {
    int32_t at = int32_t(position) + int32_t(unsigned(k) / V) + int32_t(unsigned(k) % V) * int32_t(apart);
    return step < 0 ? int32_t(count) - 1 - at : at;
  }
  BARACUDA_HD int32_t first_index() const { return int32_t(step < 0 ? count - 1 : 0); }

  template <class T>
  BARACUDA_HD Vector<T, lanes> load(const T* x) const {
    Vector<T, lanes> out;
    if constexpr (is_square<T>) {
      each_square<T>([&](auto& square, int v, int p) {
        constexpr int N = std::decay_t<decltype(square)>::N;
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) memcpy(&square.row[i], x + low(v + i, p, N), sizeof(square.row[i]));
        square.transpose();
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) memcpy(out.lane + lane(v, p, i, N), &square.row[i], sizeof(square.row[i]));
      });
    } else {
      for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v) out.lane[p * V + v] = x[element + p * step + v * pitch];
    }
    return out;
  }
  // The elements before; anything where there is none.
  template <class T>
  BARACUDA_HD Vector<T, lanes> before(const T* x) const {
    return with_before(x).first;
  }
  template <class T>
  BARACUDA_HD auto with_before(const T* x) const {
    Vector<T, lanes> here = load(x), out;
    for (int k = V; k < lanes; ++k) out.lane[k] = here.lane[k - V];
    for (int v = 0; v < V; ++v) out.lane[v] = x[element + v * pitch - (v < firsts ? 0 : step)];
    return Pair{out, here};
  }
  template <class T>
  BARACUDA_HD Vector<T, lanes> after(const T* x) const {
    Vector<T, lanes> here = load(x), out;
    for (int k = V; k < lanes; ++k) out.lane[k - V] = here.lane[k];
    for (int v = 0, k = lanes - V; v < V; ++v, ++k)
      out.lane[k] = x[element + v * pitch + (P - (k < lasts ? 0 : 1)) * step];
    return out;
  }
  template <class T, class Value>
  BARACUDA_HD void store(T* y, const Value& value) const {
    Vector<T, lanes> out;
    for (int p = 0; p < P; ++p)  // two loops: GCC would make a call of one that copies
      for (int v = 0; v < V; ++v) {
        out.lane[p * V + v] = value(p * V + v);
        if constexpr (is_complex<T>) asm volatile("" ::: "memory");  // GCC 12 vectorizes products of these wrongly
      }
    if constexpr (is_square<T>) {
      each_square<T>([&](auto& square, int v, int p) {
        constexpr int N = std::decay_t<decltype(square)>::N;
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) memcpy(&square.row[i], out.lane + lane(v, p, i, N), sizeof(square.row[i]));
        square.transpose();
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) memcpy(y + low(v + i, p, N), &square.row[i], sizeof(square.row[i]));
      });
    } else {
      for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v) y[element + p * step + v * pitch] = out.lane[p * V + v];
    }
  }

 private:
  template <class T>
  static constexpr bool is_square = P > 1 && sizeof(T) <= 8;
  template <class T, class Body>
  BARACUDA_HD static void each_square(const Body& body) {
    for (int v = 0; v < V; v += internal::Square<T, V>::N)
      for (int p = 0; p < P; p += internal::Square<T, V>::N) {
        internal::Square<T, V> square;
        body(square, v, p);
      }
  }
  // Where N positions of slice v, from p on, begin in memory, and which lane the i-th of them has in slice v.
  BARACUDA_HD int64_t low(int v, int p, int N) const { return element + v * pitch + (step < 0 ? -p - (N - 1) : p); }
  BARACUDA_HD int lane(int v, int p, int i, int N) const { return (step < 0 ? p + N - 1 - i : p + i) * V + v; }
};

}  // namespace baracuda
