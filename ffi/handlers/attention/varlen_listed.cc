// Attention of sequences in one array whose keys are listed, of floats of 16 bits.
#include "handlers/attention/varlen.h"

namespace baracuda {

BARACUDA_VARLEN_LISTED(, Half)
BARACUDA_VARLEN_LISTED(, BFloat16)

}  // namespace baracuda
