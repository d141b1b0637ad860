// FFI targets that join arrays [batches..., n_i] to [batches..., n_1 + ... + n_k], and split it again.
#include "target.h"
#include BARACUDA_DRIVER(join)

#include <numeric>
#include <vector>

#include "cells.h"

namespace baracuda {
namespace {

struct Joining {
  Checks checks;
  const ffi::AnyBuffer& whole;
  std::vector<Pieces> launches;
  int64_t rows = 0, columns = 0, start = 0, common = 0;

  Joining(const char* op, const ffi::AnyBuffer& whole) : checks(op), whole(whole) {
    auto dims = whole.dimensions();
    require_cells(checks, "the whole", whole);
    checks.require(dims.size() >= 1, "the whole must have one dimension or more, got ", describe(dims));
    if (checks.failed()) return;
    rows = product(dims, 0, dims.size() - 1), columns = dims.back();
  }
  void add(size_t i, const ffi::AnyBuffer& piece) {
    auto dims = whole.dimensions(), part = piece.dimensions();
    checks.same_dtype("each piece", piece, "the whole", whole)
        .require(part.size() == dims.size() && std::equal(part.begin(), part.end() - 1, dims.begin()), "piece ", i,
                 " must have the shape of the whole, ", describe(dims), ", but for the last dimension, got ",
                 describe(part));
    if (checks.failed() || part.back() == 0) return;
    if (launches.empty() || launches.back().count == join_pieces) {
      launches.emplace_back();
      launches.back().start[0] = start;
    }
    Pieces& pieces = launches.back();
    pieces.piece[pieces.count++] = piece.untyped_data();
    pieces.start[pieces.count] = start += part.back();
    common = common ? std::gcd(common, part.back()) : part.back();
  }
  template <bool is_split>
  ffi::Error run(const char* op, Device& device) {
    checks.require(start == columns, "the pieces must make up the whole's last dimension, ", columns, ", got ", start);
    if (checks.failed()) return checks.error();
    if (rows * columns == 0) return ffi::Error::Success();
    int64_t bytes = bytes_of(whole.element_type());
    return to_error(op, for_cell(common * bytes, [&](auto cell) {
                      using Cell = decltype(cell);
                      Status status;
                      for (Pieces pieces : launches) {
                        for (int i = 0; i <= pieces.count; ++i)
                          pieces.start[i] = pieces.start[i] * bytes / int64_t(sizeof(Cell));
                        if (status.ok())
                          status = join_rows<is_split>(device.executor(), pieces, rows,
                                                       columns * bytes / int64_t(sizeof(Cell)),
                                                       static_cast<Cell*>(whole.untyped_data()));
                      }
                      return status;
                    }));
  }
};

ffi::Error join_handler(Device device, ffi::RemainingArgs pieces, ffi::Result<ffi::AnyBuffer> y) {
  ffi::AnyBuffer whole = *y;
  Joining joining("concat", whole);
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto piece = pieces.get<ffi::AnyBuffer>(i);
    if (piece.has_error()) return piece.error();
    joining.add(i, *piece);
  }
  return joining.run<false>("concat", device);
}

ffi::Error split_handler(Device device, ffi::AnyBuffer dy, ffi::RemainingRets pieces) {
  Joining joining("concat_backward", dy);
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto piece = pieces.get<ffi::AnyBuffer>(i);
    if (piece.has_error()) return piece.error();
    joining.add(i, **piece);
  }
  return joining.run<true>("concat_backward", device);
}

BARACUDA_TARGET(concat, join_handler, ffi::Ffi::Bind().Ctx<Device>().RemainingArgs().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(concat_backward, split_handler, ffi::Ffi::Bind().Ctx<Device>().Arg<ffi::AnyBuffer>().RemainingRets());

}  // namespace
}  // namespace baracuda
