#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "models/base/error.h"

namespace orrery::cuda {

// Throw Error "cudaMalloc(&at, bytes): out of memory".
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw Error(std::string(call) + ": " + cudaGetErrorString(code), 1);
}
inline void check_nccl(ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return;
  throw Error(std::string(call) + ": " + ncclGetErrorString(code), 1);
}

}  // namespace orrery::cuda

// The one way to call CUDA and NCCL outside destructors; macros, so that the call can be quoted.
#define ORRERY_CHECK_CUDA(call) ::orrery::cuda::check_cuda((call), #call)
#define ORRERY_CHECK_NCCL(call) ::orrery::cuda::check_nccl((call), #call)
