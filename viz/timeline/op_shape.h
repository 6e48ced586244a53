#pragma once

#include <string>
#include <string_view>

#include "models/trace/measured_times.h"

namespace orrery {

// Returns words for the sizes of an op, the same for the op of a plan and for the operator of a trace, so that ops of
// both can be compared. The three sizes of a matrix product are in descending order, because the gradients of a product
// are products of the same sizes: "gemm 8192x4096x1024". Other ops have their kind without precision:
// "norm/rms/forward 8192x4096".
std::string shape_words(const WorkShape& shape);
// Returns words for a collective ("all_gather"; "message" for a send or a receive) of this many bytes, as NCCL counts
// them: "all_gather 1048576 bytes".
std::string shape_words(std::string_view collective, Bytes bytes);

}  // namespace orrery
