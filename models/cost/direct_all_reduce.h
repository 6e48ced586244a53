#pragma once

#include "models/base/units.h"
#include "models/cost/nccl/model.h"

namespace orrery {

// The all-reduce of inference stacks (vLLM, SGLang, TensorRT-LLM) for small buffers of ranks that NVLink joins: a
// kernel of each rank reads the other ranks' buffers itself and sums them. One shot: every rank reads all of them; two
// shots: every rank sums its part, then reads the other parts. Replaces NCCL's choice where it is faster; buffers above
// 8 MiB, and ranks on several nodes or without NVLink, are left to NCCL (vllm/distributed/device_communicators/
// custom_all_reduce.py).
NcclChoice with_direct_all_reduce(const NcclModel& model, Bytes bytes, const NcclChoice& nccl);

}  // namespace orrery
