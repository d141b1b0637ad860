// The state scan pattern on a CUDA grid: results, and gradients.
#pragma once

#include "state_scan_backward_cuda.h"
#include "state_scan_forward_cuda.h"
