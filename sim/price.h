#pragma once

#include <string>
#include <vector>

#include "models/plan.h"
#include "models/profile.h"
#include "models/spec.h"
#include "sim/timing.h"

namespace orrery {

// Over which wires a transfer of an op goes, and how: for the report.
struct TransferNote {
  std::string link;       // "nvlink", "pcie", "network"
  std::string algorithm;  // "ring/ll128", "send"
};

// A plan's ops with their durations on a cluster: compute from the profile, collectives from NCCL's own choice of
// algorithm, protocol and channels for where the members of the group lie, the host's cost from the software profile.
struct Prices {
  Timing timing;
  std::vector<TransferNote> notes;  // by op, of the first slot that uses it
  std::vector<Bytes> nccl_bytes;    // by slot: buffers of its communicators, outside the allocator
};

Prices price(const Plan& plan, const Spec& spec, const Profile& profile);

}  // namespace orrery
