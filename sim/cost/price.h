#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/engine/timing.h"

namespace orrery {

// NCCL's buffers of one connection and channel: LL 512 KiB, LL128 4.69 MiB, Simple 4 MiB (2.28.9, device.h).
inline constexpr Bytes kNcclConnectionBytes = 9'646'899;

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
  double host_part = 1;             // of a layer's issue time, what the host needs; the rest its device takes to launch
  double filling_part = 1;          // the same while a pipeline fills
};

// A profile that has measured transfers and no formulas prices everything by what was measured (price_measured). One
// that has both takes a transfer from its samples where they cover it, by the number of ranks and nodes, and a
// communicator's table from NCCL's log where there is one.
Prices price(const Plan& plan, const Spec& spec, const Profile& profile);
// Of a plan that is a part of a job: a step waits for the slowest of all the job's GPUs.
Prices price(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus);

// Everything from a profile's samples: computing tasks by shape, transfers by kind, ranks and bytes. What lies between
// tasks is added to them: a compute task waits for its thread, a transfer for the thread that moves it and for the one
// that it wakes. A rank's threads share one core, so that compute and a transfer of the same rank slow each other as
// measured. Throws Error for a kind that was not measured, or not with so many ranks.
Prices price_measured(const Plan& plan, const Spec& spec, const Profile& profile);

// By task: bytes of sums of gradients that appear with it and hold zeros before it adds to them. CPU ranks clear them
// as a part of the task.
std::vector<Bytes> cleared_bytes(const Plan& plan);

// How a table of transfers names what a collective or message does: "all_reduce", "message".
std::string transfer_kind(const Op& op);

}  // namespace orrery
