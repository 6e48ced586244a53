#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "models/base/error.h"

namespace orrery::cuda {

// Throw an Error such as "cudaMalloc(&at, bytes): out of memory" unless the code means success.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw Error(std::string(call) + ": " + cudaGetErrorString(code), 1);
}
inline void check_nccl(ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return;
  throw Error(std::string(call) + ": " + ncclGetErrorString(code), 1);
}

}  // namespace orrery::cuda

// All calls of CUDA and NCCL outside destructors go through these macros, which put the source code of the call into
// the error message.
#define ORRERY_CHECK_CUDA(call) ::orrery::cuda::check_cuda((call), #call)
#define ORRERY_CHECK_NCCL(call) ::orrery::cuda::check_nccl((call), #call)
