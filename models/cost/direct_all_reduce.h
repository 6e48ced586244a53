#pragma once

#include "models/base/units.h"
#include "models/cost/nccl/model.h"

namespace orrery {

// Returns the faster of NCCL's choice for an all-reduce and the direct all-reduce of inference stacks (vLLM, SGLang,
// TensorRT-LLM), in which a kernel on each rank reads the other ranks' buffers over NVLink and sums them. In the
// one-shot variant every rank reads the complete buffers; in the two-shot variant every rank sums one part of the
// buffer and then reads the summed parts of the other ranks. Buffers above 8 MiB, and communicators on several nodes or
// without NVLink, keep NCCL's choice (vllm/distributed/device_communicators/custom_all_reduce.py).
NcclChoice with_direct_all_reduce(const NcclModel& model, Bytes bytes, const NcclChoice& nccl);

}  // namespace orrery
