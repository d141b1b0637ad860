// Decoding over caches of floats of 8 bits.
#include "handlers/attention/attention.h"

namespace baracuda {

template Status decode(const Executor&, const Decode<Float8E4M3, float>&);
template Status decode(const Executor&, const Decode<Float8E5M2, float>&);

}  // namespace baracuda
