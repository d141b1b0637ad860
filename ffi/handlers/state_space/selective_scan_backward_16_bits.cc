// The gradients of selective scans of 16-bit floats.
#include "selective_scan.h"

namespace baracuda {

template <class T>
Status run_backward(Executor executor, const SelectiveScan<T>& scan, const SelectiveGradients<T>& gradients) {
  return selective_scan_backward(executor, scan, gradients);
}
template Status run_backward(Executor, const SelectiveScan<Half>&, const SelectiveGradients<Half>&);
template Status run_backward(Executor, const SelectiveScan<BFloat16>&, const SelectiveGradients<BFloat16>&);

}  // namespace baracuda
