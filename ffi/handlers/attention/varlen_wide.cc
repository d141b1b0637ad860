// Attention of sequences in one array, of floats of 32 and 64 bits.
#include "handlers/attention/varlen.h"

namespace baracuda {

BARACUDA_VARLEN_OF(, float)
BARACUDA_VARLEN_OF(, double)

}  // namespace baracuda
