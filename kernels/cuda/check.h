#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

namespace orrery::kernels::cuda {

// Throws an error such as "cudaMemsetAsync(...): invalid argument". call: the text of the call, or the kernel's name.
inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(code));
}

// Throws an exception with the message `what` if a requirement on the caller's arguments does not hold.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace orrery::kernels::cuda

// All calls of the CUDA runtime go through this macro, which puts the text of the call into the error.
#define ORRERY_CHECK_CUDA(call) ::orrery::kernels::cuda::check((call), #call)
