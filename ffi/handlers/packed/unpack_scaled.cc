// The FFI target that unpacks formats with factors that are arrays of their own.
#include "handlers/packed/unpack.h"

namespace baracuda {
namespace {

BARACUDA_UNPACK_TARGET(unpack_scaled, ScaledFormats);

}  // namespace
}  // namespace baracuda
