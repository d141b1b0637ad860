// Products of x in half precision with packed weights of formats with blocks of 32 weights.
#include "handlers/packed/rows.h"

namespace baracuda {

BARACUDA_LEGACY_FORMATS(BARACUDA_ROWS_HALF)

}  // namespace baracuda
