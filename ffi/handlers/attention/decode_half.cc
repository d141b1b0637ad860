// Decoding over caches of floats of 16 bits.
#include "handlers/attention/attention.h"

namespace baracuda {

template Status decode(const Executor&, const Decode<Half, float>&);
template Status decode(const Executor&, const Decode<BFloat16, float>&);

}  // namespace baracuda
