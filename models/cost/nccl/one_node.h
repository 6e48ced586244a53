#pragma once

#include "models/cost/nccl/model.h"

namespace orrery {

// The times of NCCL's kernels among the GPUs of one node, launched one after another as nccl-tests launches them.
// NCCL's own tables (table.cpp) are there to choose an algorithm: what they say of short messages is up to twice the
// measured time. The laws keep what NCCL's source says of steps, channels and protocols, and take the time of a step
// and the rates from FittedCollectives::one_node. A step of training pays FittedCollectives::start_us in addition.

// Returns the time of a ring, seconds: start + steps * hop + bytes / rate. A hop of LL128 and of Simple takes as many
// times longer than one of LL as in NCCL's table of latencies. A ring of s steps has the rate s / (s + ring_end) of
// that of a long one: every rank also copies its own part and unpacks the last.
Seconds ring_on_one_node(const NcclModel& model, CollectiveKind kind, NcclProtocol protocol, Bytes bytes);

// Returns the time of an all-to-all over NVLink, seconds, which is sends and receives on channels of their own. What a
// rank sends to itself passes a channel too, and the slower of channels and NVLink sets the time. bytes: of the buffer
// of one rank.
Seconds exchange_on_one_node(const NcclModel& model, Bytes bytes);

// Returns whether NCCL sends messages of so many bytes to each of the other GPUs of a node with its protocol LL.
bool exchange_is_ll(const NcclTopology& topology, Bytes each);

// Returns the microseconds of a kernel that does nothing else than start and end.
double start_on_one_node_us(const NcclTopology& topology);

}  // namespace orrery
