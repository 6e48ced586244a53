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
  std::string link;       // kind of link: "nvlink", "pcie", "network"
  std::string algorithm;  // algorithm and protocol: "ring/ll128", "send"
};

// The costs of a plan's ops on a cluster: compute times from the profile, times of collectives from NCCL's own choice
// of algorithm, protocol and channels for the nodes on which the members of the group are, and the host's time from the
// software stack's figures.
struct Costs {
  Timing timing;
  std::vector<TransferNote> notes;  // for each op, the note of the first class of ranks that runs it
  // for each class of ranks, the bytes of NCCL's buffers, which are outside the caching allocator
  std::vector<Bytes> nccl_bytes;

  // Share of the time to issue a layer's ops that the host itself needs; the rest is time that the device needs to
  // launch them.
  double host_part = 1;
  double filling_part = 1;  // the same share while the pipeline fills
};

// Costs of a plan's ops. With a profile of measured transfers and no formulas, every cost is a measurement
// (measured_costs). With a profile of both, a transfer takes the time of samples with as many ranks and nodes where
// these cover its bytes, and a communicator chooses its algorithm by the table in NCCL's log where the profile has one.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile);
// Costs of a plan that covers only a part of a job of `job_gpus` GPUs: a step waits for the slowest GPU of the complete
// job.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus);

// Takes all costs from a profile's samples: compute tasks by shape, transfers by kind, number of ranks and bytes. The
// waits between tasks are added: a compute task waits for its thread, a transfer for the thread that moves it and for
// the thread that it wakes. A rank's threads share one core, so that compute and a transfer of the same rank slow each
// other as measured. Throws Error for a kind of op that was not measured, or not with so many ranks.
Costs measured_costs(const Plan& plan, const Spec& spec, const Profile& profile);

// For each task, the bytes of gradient buffers to which the task is the first to add, so that the buffers must hold
// zeros before. CPU ranks clear the buffers as a part of the task.
std::vector<Bytes> cleared_bytes(const Plan& plan);

// The name of a collective or message in a table of transfers: "all_reduce", "message".
std::string transfer_kind(const Op& op);

}  // namespace orrery
