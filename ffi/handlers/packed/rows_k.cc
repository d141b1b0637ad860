// The FFI targets that multiply with packed weights of formats with blocks of 256 weights.
#include "handlers/packed/rows.h"

namespace baracuda {

BARACUDA_K_FORMATS(BARACUDA_ROWS_HALF_ELSEWHERE)

namespace {

BARACUDA_ROWS_TARGET(packed_rows_k, KFormats);
BARACUDA_ROWS_BY_EXPERT_TARGET(packed_rows_by_expert_k, KFormats);

}  // namespace
}  // namespace baracuda
