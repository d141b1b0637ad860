// What the targets of packed weights share. Operands are the data, bytes [batches..., rows, bytes of a row], and the
// factors of formats that have arrays of these, float32 [batches..., rows, groups]; other formats have no groups. Zero
// points are as the scales, or there are none.
#pragma once

#include <string_view>

#include "../../kernels/packed/gguf_k.h"
#include "../../kernels/packed/scaled.h"
#include "../../patterns/unpack.h"
#include "../target.h"

namespace baracuda {

#define BARACUDA_LEGACY_FORMATS(OF) OF(Q4_0) OF(Q4_1) OF(Q5_0) OF(Q5_1) OF(Q8_0) OF(IQ4_NL) OF(MXFP4)
#define BARACUDA_K_FORMATS(OF) OF(Q2_K) OF(Q3_K) OF(Q4_K) OF(Q5_K) OF(Q6_K) OF(Q8_K) OF(IQ4_XS)
#define BARACUDA_SCALED_FORMATS(OF) OF(NF4) OF(FP4) OF(Int4) OF(Int4Centered) OF(Int8) OF(Int8Centered)

using LegacyFormats =
    Types<packed::Q4_0, packed::Q4_1, packed::Q5_0, packed::Q5_1, packed::Q8_0, packed::IQ4_NL, packed::MXFP4>;
using KFormats =
    Types<packed::Q2_K, packed::Q3_K, packed::Q4_K, packed::Q5_K, packed::Q6_K, packed::Q8_K, packed::IQ4_XS>;
using ScaledFormats =
    Types<packed::NF4, packed::FP4, packed::Int4, packed::Int4Centered, packed::Int8, packed::Int8Centered>;

// body(Type<Format>) with the format of a name.
template <class... Formats, class Body>
ffi::Error for_format(const char* op, Types<Formats...>, std::string_view format, const Body& body) {
  std::optional<ffi::Error> result;
  bool is_known = ((format == Formats::name && (result = body(Type<Formats>{}), true)) || ...);
  return is_known ? *result : invalid(op, "format must be one of the target's, got ", format);
}

struct PackedWeights {
  Dimensions dims;  // of the data
  int64_t batches = 0, rows = 0, row_bytes = 0, groups = 0;
  bool has_zero = false;
  const uint8_t* data = nullptr;
  const float *scale = nullptr, *zero = nullptr;

  PackedWeights(Checks& checks, const ffi::AnyBuffer& packed, const ffi::AnyBuffer& scales,
                const ffi::AnyBuffer& zeros) {
    dims = packed.dimensions();
    auto by = scales.dimensions(), minus = zeros.dimensions();
    checks.dtype("data", packed, ffi::DataType::U8)
        .dtype("scale", scales, ffi::DataType::F32)
        .dtype("zero", zeros, ffi::DataType::F32)
        .require(dims.size() >= 2, "data must have rank 2 or more, got ", describe(dims));
    if (checks.failed()) return;
    for (auto other : {by, minus})
      checks.require(other.size() == dims.size() && std::equal(dims.begin(), dims.end() - 1, other.begin()),
                     "factors must have the rows of data, ", describe(dims), ", got ", describe(other));
    if (checks.failed()) return;
    checks.require(minus.back() == 0 || minus.back() == by.back(), "zero must have no groups or those of scale, ",
                   by.back(), ", got ", minus.back());
    batches = product(dims, 0, dims.size() - 2), rows = dims[dims.size() - 2], row_bytes = dims.back();
    groups = by.back(), has_zero = minus.back() > 0;
    data = in<uint8_t>(packed), scale = in<float>(scales), zero = in<float>(zeros);
#ifdef BARACUDA_CUDA
    checks.require(reinterpret_cast<uintptr_t>(data) % 16 == 0, "data must be at a multiple of 16 bytes");
#endif
  }

  // What is wrong with a row of a format, if anything.
  template <class Format>
  void check_row(Checks& checks) const {
    checks.require(row_bytes % Format::bytes == 0, "rows must be whole blocks of ", Format::bytes, " bytes, got ",
                   row_bytes);
    int64_t blocks = row_bytes / Format::bytes;
    if constexpr (Format::has_arrays) {
      checks.require(blocks == 0 || (groups > 0 && blocks % groups == 0), "rows of ", blocks,
                     " blocks must be whole groups, got ", groups);
      checks.require(Format::has_zero == has_zero || groups == 0, "zero must be given for integers alone");
    } else {
      checks.require(groups == 0, "factors are in the data, got ", groups, " groups");
    }
  }

  template <class Format>
  PackedBlocks<Format> blocks() const {
    return {data, scale, zero};
  }
};

}  // namespace baracuda
