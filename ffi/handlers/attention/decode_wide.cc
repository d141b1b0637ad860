// Decoding over caches of floats of 32 and 64 bits.
#include "handlers/attention/attention.h"

namespace baracuda {

template Status decode(const Executor&, const Decode<float, float>&);
template Status decode(const Executor&, const Decode<double, double>&);

}  // namespace baracuda
