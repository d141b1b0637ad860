// The FFI target that unpacks formats with blocks of 32 weights.
#include "handlers/packed/unpack.h"

namespace baracuda {
namespace {

BARACUDA_UNPACK_TARGET(unpack_legacy, LegacyFormats);

}  // namespace
}  // namespace baracuda
