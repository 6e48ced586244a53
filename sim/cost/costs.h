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

// The link over which the transfers of an op go, and the algorithm: for the report.
struct TransferNote {
  std::string link;       // "nvlink", "pcie", "network"
  std::string algorithm;  // "ring/ll128", "send"
};

// The costs of a plan's ops on a cluster: compute times from the profile, collectives by NCCL's own choice of
// algorithm, protocol and channels for the nodes on which the members of the group lie, the time of the host from the
// software profile.
struct Costs {
  Timing timing;
  std::vector<TransferNote> notes;  // by op, for the first slot that uses the op
  std::vector<Bytes> nccl_bytes;    // by slot: bytes of the buffers of its communicators, outside the allocator

  // Share of a layer's issue time that the host needs; the device takes the rest to launch.
  double host_part = 1;
  double filling_part = 1;  // host_part while a pipeline fills
};

// Costs a plan. A profile that has measured transfers and no formulas gives every cost by measurements
// (measured_costs). One that has both gives a transfer the time of its samples where they cover the transfer, by the
// number of ranks and nodes, and a communicator the table of NCCL's log where there is one.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile);
// Costs a plan that is a part of a job: a step waits for the slowest of all the job's GPUs.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus);

// Takes all costs from a profile's samples: computing tasks by shape, transfers by kind, ranks and bytes. The waits
// between tasks are added: a compute task waits for its thread, a transfer for the thread that moves it and for the
// thread that it wakes. A rank's threads share one core, so that compute and a transfer of the same rank slow each
// other as measured. Throws Error for a kind that was not measured, or not with so many ranks.
Costs measured_costs(const Plan& plan, const Spec& spec, const Profile& profile);

// By task: bytes of sums of gradients that begin to exist with the task and hold zeros before the task adds to them.
// CPU ranks clear them as a part of the task.
std::vector<Bytes> cleared_bytes(const Plan& plan);

// The name of a collective or message in a table of transfers: "all_reduce", "message".
std::string transfer_kind(const Op& op);

}  // namespace orrery
