// Sorts of keys of four and eight bytes.
#include "sort.h"

namespace baracuda {

BARACUDA_WIDE_KEYS(BARACUDA_SORT)

}  // namespace baracuda
