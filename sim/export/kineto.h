#pragma once

#include <string>
#include <string_view>

#include "models/plan/plan.h"

namespace orrery {

// The functions below name and describe tasks as PyTorch's profiler (Kineto) does, so that tools for its traces read
// Orrery's traces: Holistic Trace Analysis tells communication from compute by kernels called ^nccl.*, and reads their
// sizes and groups from the arguments that record_param_comms gives them.

// The text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// The name of a kernel: "qkv"; "ncclDevKernel_AllReduce_Sum_bf16", "ncclDevKernel_AllGather", "ncclDevKernel_SendRecv"
// as NCCL calls its device functions, without the algorithm and protocol that NCCL picks at run time; a named algorithm
// is added ("..._RING").
std::string kernel_name(const Op& op);

// Members of the kernel's "args" object, without braces: "op":"qkv","phase":"forward","flops":1024,"bytes":96; for
// compute also "kind", "sizes" and "amount" (models/trace/measured_times.h), by which calibrate --import recognises it;
// for transfers "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group Name",
// "Process Group Description" and "Process Group Ranks" of the first rank of the class, and "Src Rank" and "Dst Rank".
std::string kernel_arguments(const Plan& plan, std::uint32_t slot, const Op& op);

}  // namespace orrery
