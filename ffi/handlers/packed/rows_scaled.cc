// The FFI target that multiplies with packed weights of formats with factors that are arrays of their own.
#include "handlers/packed/rows.h"

namespace baracuda {

BARACUDA_SCALED_FORMATS(BARACUDA_ROWS_HALF_ELSEWHERE)

namespace {

BARACUDA_ROWS_TARGET(packed_rows_scaled, ScaledFormats);

}  // namespace
}  // namespace baracuda
