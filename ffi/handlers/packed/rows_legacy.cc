// The FFI targets that multiply with packed weights of formats with blocks of 32 weights.
#include "handlers/packed/rows.h"

namespace baracuda {

BARACUDA_LEGACY_FORMATS(BARACUDA_ROWS_HALF_ELSEWHERE)

namespace {

BARACUDA_ROWS_TARGET(packed_rows_legacy, LegacyFormats);
BARACUDA_ROWS_BY_EXPERT_TARGET(packed_rows_by_expert_legacy, LegacyFormats);

}  // namespace
}  // namespace baracuda
