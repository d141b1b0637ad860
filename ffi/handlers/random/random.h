// What handlers of random numbers share: streams [batches..., words], of which each row has a key of four words, the
// first byte and the words of the numbers of a Draw, give y [batches..., n].
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(counter)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

// `x` is null where the Draw has no operand.
template <class Draw>
ffi::Error draw(const char* op, Device& device, const Array& streams, const void* x, Output& y) {
  constexpr int words = DrawnRows<Draw>::words;
  Checks checks(op);
  auto in = streams.dimensions(), found = y->dimensions();
  checks.dtype("streams", streams, ffi::DataType::U32)
      .require(in.size() >= 1 && in.back() == words, "streams must have ", words, " words a row, got ", describe(in))
      .require(found.size() == in.size() && std::equal(in.begin(), in.end() - 1, found.begin()),
               "the result must have one row for each of streams, ", describe(in), ", got ", describe(found));
  if (checks.failed()) return checks.error();
  DrawnRows<Draw> rows{baracuda::in<uint32_t>(streams), static_cast<const typename Draw::Operand*>(x),
                       out<typename Draw::Result>(y), product(in, 0, in.size() - 1), found.back()};
  return to_error(op, draw_rows(device.executor(), rows));
}

}  // namespace
}  // namespace baracuda
