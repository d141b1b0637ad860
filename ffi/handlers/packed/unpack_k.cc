// The FFI target that unpacks formats with blocks of 256 weights.
#include "handlers/packed/unpack.h"

namespace baracuda {
namespace {

BARACUDA_UNPACK_TARGET(unpack_k, KFormats);

}  // namespace
}  // namespace baracuda
