// What FFI targets of chunk scans share: x and z are [batches..., b, length, heads, rows], dt [batches..., b, length,
// heads], A and the bias of dt [batches..., heads], B and C [batches..., b, length, shared, columns], D [batches...,
// heads, rows or 1], the state [batches..., b, heads, rows, columns], and starts [batches..., b, length]; z may have 0
// rows and starts no length: there are none. A, D, the bias and states have the dtype that is computed in; those that
// are saved for the gradient of bfloat16 are rounded to it.
#pragma once

#include "handlers/state_space/scan_operands.h"
#include BARACUDA_DRIVER(chunk_scan)

namespace baracuda {

struct ChunkArguments {
  const ffi::AnyBuffer &x, &dt, &a, &b, &c, &skip, &z, &bias, &state, &starts;
  bool softplus;
  ChunkShape shape{};

  std::optional<ffi::Error> problem(const char* op) {
    Checks checks(op);
    auto d = x.dimensions(), of_b = b.dimensions(), of_skip = skip.dimensions();
    checks.require(d.size() >= 4, "x must have rank 4 or more, got ", describe(d))
        .require(of_b.size() == d.size(), "B must have the rank of x, got ", describe(of_b))
        .require(of_skip.size() + 2 == d.size(), "D must have two dimensions less than x, got ", describe(of_skip));
    if (checks.failed()) return checks.error();
    size_t lead = d.size() - 4;
    int64_t batches = d[lead], length = d[lead + 1], heads = d[lead + 2], rows = d[lead + 3];
    int64_t shared = of_b[lead + 2], columns = of_b[lead + 3], skips = of_skip[lead + 1];
    const ffi::DataType exact = wide(x.element_type());
    RequireFit check{checks, "x", x, b, lead};
    check("dt", dt, x.element_type(), {batches, length, heads});
    check("A", a, exact, {heads});
    check("B", b, x.element_type(), {batches, length, shared, columns});
    check("C", c, x.element_type(), {batches, length, shared, columns});
    check("D", skip, exact, {heads, skips == 1 ? 1 : rows});
    check("z", z, x.element_type(), {batches, length, heads, rows}, true);
    check("the bias", bias, exact, {heads});
    check("the state", state, exact, {batches, heads, rows, columns});
    check("starts", starts, ffi::DataType::PRED, {batches, length}, true);
    checks
        .require(shared > 0 ? heads % shared == 0 : heads == 0, "the groups of B, ", shared,
                 ", must divide the heads, ", heads)
        .require(columns <= most_columns, "states may have at most ", most_columns, " columns, got ", columns);
    if (checks.failed()) return checks.error();
    shape = {product(d, 0, lead), batches, length, heads, rows, shared, columns, skips};
    return std::nullopt;
  }

  // Of the states before each chunk.
  template <class Array>
  void check_saved(Checks& checks, const Array& states) const {
    int64_t chunk = x.element_type() == ffi::DataType::F64 ? scan_chunk<double> : scan_chunk<float>;
    auto d = state.dimensions();
    std::vector<int64_t> expected(d.begin(), d.end());
    expected.insert(expected.end() - 2, ceil_div(shape.length, chunk));
    const bool is_rounded = x.element_type() == ffi::DataType::BF16;
    require_saved(checks, states, is_rounded ? ffi::DataType::BF16 : a.element_type(), expected);
  }

  template <class T>
  ChunkScan<T> scan() const {
    using Wide = Accumulator<T>;
    auto is_there = [](const ffi::AnyBuffer& array) { return array.element_count() > 0; };
    return {shape,
            in<T>(x),
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

}  // namespace baracuda
