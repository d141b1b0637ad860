// Products of many rows of x in half precision with packed weights of formats with factors that are arrays of their
// own, by the warpgroups of Hopper.
#ifdef BARACUDA_CUDA
#include "handlers/packed/packed.h"
#include "patterns/packed_wgmma_cuda.h"

namespace baracuda {

BARACUDA_SCALED_FORMATS(BARACUDA_ROWS_WGMMA)

}  // namespace baracuda
#endif
