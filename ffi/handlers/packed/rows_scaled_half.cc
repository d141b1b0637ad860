// Products of x in half precision with packed weights of formats with factors that are arrays of their own.
#include "handlers/packed/rows.h"

namespace baracuda {

BARACUDA_SCALED_FORMATS(BARACUDA_ROWS_HALF)

}  // namespace baracuda
