// Attention of sequences in one array, of floats of 16 bits.
#include "handlers/attention/varlen.h"

namespace baracuda {

BARACUDA_VARLEN_LISTED(extern, Half)
BARACUDA_VARLEN_LISTED(extern, BFloat16)
BARACUDA_VARLEN_OF(, Half)
BARACUDA_VARLEN_OF(, BFloat16)

}  // namespace baracuda
