// Gradients of scans: scans in the other direction, each a linear recurrence. `after` is what comes before in the
// forward scan.
#pragma once

#include "scan.h"

namespace baracuda {

// s_i = dy_i + x_{i+1} s_{i+1}, of factors x and a result y.
template <class T>
struct LinearAdjoint : LinearStep<Accumulator<T>> {
  using Wide = Accumulator<T>;
  using State = LinearStep<Wide>;
  using Element = T;
  static constexpr int inputs = 3;
  const T* x;
  const Ranged<T>* y;
  const T* dy;
  T* dx;

  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return Triple{at.before(x), at.load(dy), at.after(y)};
  }
  template <class At, class In>
  BARACUDA_HD State term(const At& at, const In& in, int k) const {
    return {at.is_first(k) ? Wide(0) : Wide(in.first.lane[k]), Wide(in.second.lane[k])};
  }
};

// dx_i = y_{i-1} s_i: no division, so exact where x is zero.
template <class T>
struct CumProdBackward : LinearAdjoint<T> {
  using Wide = Accumulator<T>;
  using State = LinearStep<Wide>;

  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In& in, const States& s) const {
    at.store(this->dx, [&](int k) { return T((at.is_last(k) ? Wide(1) : Wide(in.third.lane[k])) * s[k].b); });
  }
};

// Of factors x = a: da_i = h_{i-1} s_i, db_i = s_i.
template <class T>
struct LinearScanBackward : LinearAdjoint<T> {
  using Wide = Accumulator<T>;
  using State = LinearStep<Wide>;
  T* db;

  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In& in, const States& s) const {
    at.store(this->dx, [&](int k) { return T(at.is_last(k) ? Wide(0) : Wide(in.third.lane[k]) * s[k].b); });
    at.store(db, [&](int k) { return T(s[k].b); });
  }
};

// s_i = dy_i + e^(y_i - y_{i+1}) s_{i+1}, dx_i = e^(x_i - y_i) s_i: y rises, so that no exponential exceeds 1. Each y
// has a rest, which rounding took from it.
template <class T>
struct LogCumSumExpBackward : LinearStep<Accumulator<T>> {
  using Wide = Accumulator<T>;
  using State = LinearStep<Wide>;
  using Element = T;
  static constexpr int inputs = 4;
  const T* x;
  const T* y;
  const Wide* rest;
  const T* dy;
  T* dx;

  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return Triple{at.with_before(y), at.with_before(rest), Pair{at.load(dy), at.load(x)}};
  }
  template <class At, class In>
  BARACUDA_HD State term(const At& at, const In& in, int k) const {
    const auto& [later, here] = in.first;
    const auto& [later_rest, here_rest] = in.second;
    Wide rest = here_rest.lane[k] - later_rest.lane[k];
    return {at.is_first(k) ? Wide(0) : exp_of_difference(Wide(here.lane[k]), Wide(later.lane[k]), rest),
            Wide(in.third.first.lane[k])};
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In& in, const States& s) const {
    at.store(dx, [&](int k) {
      Wide term = Wide(in.third.second.lane[k]);
      bool nothing = term == -std::numeric_limits<Wide>::infinity();
      Wide own = exp_of_difference(term, Wide(in.first.second.lane[k]), -in.second.second.lane[k]);
      return T(nothing ? Wide(0) : own * s[k].b);
    });
  }
};

// The element at the arg takes the sum of dy over its run of elements, which ends there in this direction.
template <class T>
struct CumExtremumBackward {
  using Wide = Accumulator<T>;
  using Element = T;
  static constexpr int inputs = 2;
  struct State {
    Wide sum;
    bool restart;  // the sum begins here, whatever is before
  };
  const int32_t* index;
  const T* dy;
  T* dx;

  BARACUDA_HD static State none() { return {Wide(0), false}; }
  template <class At>
  BARACUDA_HD auto read(const At& at) const {
    return Pair{at.with_before(index), at.load(dy)};
  }
  template <class At, class In>
  BARACUDA_HD State term(const At& at, const In& in, int k) const {
    return {Wide(in.second.lane[k]), !at.is_first(k) && in.first.first.lane[k] != in.first.second.lane[k]};
  }
  BARACUDA_HD static State join(const State& a, const State& later) {
    return {later.restart ? later.sum : a.sum + later.sum, later.restart || a.restart};
  }
  template <class At, class In, class States>
  BARACUDA_HD void write(const At& at, const In& in, const States& s) const {
    at.store(dx, [&](int k) { return T(in.first.second.lane[k] == at.index(k) ? s[k].sum : Wide(0)); });
  }
};

}  // namespace baracuda
