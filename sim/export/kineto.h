#pragma once

#include <string>
#include <string_view>

#include "models/plan/plan.h"

namespace orrery {

// The functions below name and describe tasks as PyTorch's profiler (Kineto) does, so that tools for its traces can
// read Orrery's traces: Holistic Trace Analysis recognises communication by kernel names that match ^nccl.*, and reads
// sizes and groups from the arguments that record_param_comms gives to kernels with these names.

// The text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// The name of a task's kernel. For compute it is the op's name, such as "qkv". For a transfer it is NCCL's name of the
// device function, "ncclDevKernel_AllReduce_Sum_bf16", "ncclDevKernel_AllGather" or "ncclDevKernel_SendRecv", without
// algorithm and protocol, which NCCL picks at run time; an algorithm that the plan names is appended ("..._RING").
std::string kernel_name(const Op& op);

// The members of a kernel's "args" object, without braces: "op":"qkv","phase":"forward","flops":1024,"bytes":96. For
// compute also "kind", "sizes" and "amount" (models/trace/measured_times.h), by which calibrate --import recognises the
// kernel. For transfers "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype", "Process Group
// Name", "Process Group Description", "Process Group Ranks" (those of the first rank of the class), "Src Rank" and "Dst
// Rank".
std::string kernel_arguments(const Plan& plan, std::uint32_t slot, const Op& op);

}  // namespace orrery
