#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

namespace orrery::kernels::cuda {

// Throws "cudaMemsetAsync(...): invalid argument" for an error. call: the call's text, or the kernel's name.
inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code));
}

// Throws `what` where a caller's arguments violate a requirement.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace orrery::kernels::cuda

// The one way to call the CUDA runtime; a macro, so that the call can be quoted.
#define ORRERY_CHECK_CUDA(call) ::orrery::kernels::cuda::check((call), #call)
