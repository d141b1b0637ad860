// What FFI targets of selective scans share: u, dt and z are [batches..., b, channels, length], A [batches...,
// channels, states], B and C [batches..., b, shared, states, length], D and the bias of dt [batches..., channels], the
// state [batches..., b, channels, states], and starts [batches..., b, length]; z and starts may be of length 0: there
// are none. A, D, the bias and states have the dtype that is computed in.
#pragma once

#include "handlers/state_space/scan_operands.h"
#include BARACUDA_DRIVER(state_scan)

namespace baracuda {

struct ScanArguments {
  const ffi::AnyBuffer &u, &dt, &a, &b, &c, &skip, &z, &bias, &state, &starts;
  bool softplus;
  SelectiveShape shape{};

  std::optional<ffi::Error> problem(const char* op) {
    Checks checks(op);
    auto d = u.dimensions(), of_b = b.dimensions();
    checks.require(d.size() >= 3, "u must have rank 3 or more, got ", describe(d))
        .require(of_b.size() == d.size() + 1, "B must have a dimension more than u, got ", describe(of_b));
    if (checks.failed()) return checks.error();
    size_t lead = d.size() - 3;
    int64_t batches = d[lead], channels = d[lead + 1], length = d[lead + 2], shared = of_b[lead + 1],
            states = of_b[lead + 2];
    const ffi::DataType exact = wide(u.element_type());
    RequireFit check{checks, "u", u, b, lead};
    check("dt", dt, u.element_type(), {batches, channels, length});
    check("A", a, exact, {channels, states});
    check("B", b, u.element_type(), {batches, shared, states, length});
    check("C", c, u.element_type(), {batches, shared, states, length});
    check("D", skip, exact, {channels});
    check("z", z, u.element_type(), {batches, channels, length}, true);
    check("the bias", bias, exact, {channels});
    check("the state", state, exact, {batches, channels, states});
    check("starts", starts, ffi::DataType::PRED, {batches, length}, true);
    checks.require(shared > 0 ? channels % shared == 0 : channels == 0, "the groups of B, ", shared,
                   ", must divide the channels, ", channels);
    if (checks.failed()) return checks.error();
    shape = {product(d, 0, lead), batches, channels, shared, states, length};
    return std::nullopt;
  }

  // Of the states before each chunk.
  template <class Array>
  void check_saved(Checks& checks, const Array& states) const {
    auto d = u.dimensions();
    std::vector<int64_t> expected(d.begin(), d.end() - 1);
    expected.push_back(shape.chunks()), expected.push_back(shape.states);
    require_saved(checks, states, a.element_type(), expected);
  }

  template <class T>
  SelectiveScan<T> scan() const {
    using Wide = Accumulator<T>;
    auto is_there = [](const ffi::AnyBuffer& array) { return array.element_count() > 0; };
    return {shape,
            in<T>(u),
            in<T>(dt),
            in<Wide>(a),
            in<T>(b),
            in<T>(c),
            in<Wide>(skip),
            is_there(z) ? in<T>(z) : nullptr,
            in<Wide>(bias),
            in<Wide>(state),
            is_there(starts) ? in<uint8_t>(starts) : nullptr,
            softplus};
  }
};

// Compiled by itself for 16-bit floats.
template <class T>
Status run_backward(Executor executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& gradients);

}  // namespace baracuda
