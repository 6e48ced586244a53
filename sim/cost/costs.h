#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/engine/timing.h"

namespace orrery {

// Bytes of NCCL's buffers per connection and channel: LL 512 KiB, LL128 4.69 MiB, Simple 4 MiB (NCCL 2.28.9, device.h).
inline constexpr Bytes kNcclConnectionBytes = 9'646'899;

// The link over which the transfers of an op go, and their algorithm, as the report names them.
struct TransferNote {
  std::string link;       // kind of link: "nvlink", "pcie", "network"
  std::string algorithm;  // algorithm and protocol: "ring/ll128", "send"
};

// The costs of a plan's ops on a cluster: compute times from the profile, times of collectives from NCCL's own choice
// of algorithm, protocol and channels for the nodes that the members of the group are on, and host times from the
// figures of the software stack.
struct Costs {
  Timing timing;
  // for each op of the plan, the link and algorithm of its transfers on the first class of ranks that runs the op
  std::vector<TransferNote> notes;
  // for each class of ranks, the bytes of NCCL's buffers, which lie outside the caching allocator
  std::vector<Bytes> nccl_bytes;

  // The fraction of the time to issue a layer's ops that the host itself needs; the device needs the rest, to launch
  // them.
  double host_part = 1;
  // The same fraction as host_part, but for the time in which the pipeline fills, that is, before the first backward.
  double filling_part = 1;
};

// Finds the costs of a plan's ops. With a profile of measured transfers and no formulas, every cost is a measurement
// (measured_costs). With a profile of both, a transfer takes the time of samples with as many ranks and nodes if the
// samples cover its bytes, and a communicator chooses its algorithm by the table in NCCL's log if the profile has such
// a log.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile);
// Finds the costs of a plan that covers only a part of a job of `job_gpus` GPUs. The steps wait for the slowest GPU of
// the complete job.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus);

// Takes all costs from a profile's samples: compute tasks by shape, transfers by kind, number of ranks and bytes.
// Measured waits between tasks are added: the wait of a compute task for its thread, and the waits of a transfer for
// the thread that moves it and for the thread that the transfer wakes. A rank's threads share one core, so compute and
// a transfer of the same rank slow each other by measured factors. Throws Error for a kind of op that was not measured,
// or not with as many ranks.
Costs measured_costs(const Plan& plan, const Spec& spec, const Profile& profile);

// Returns, for each task of the plan, the bytes of gradient buffers that the task is the first to add to, so that the
// buffers must hold zeros before. CPU ranks clear the buffers as a part of the task.
std::vector<Bytes> cleared_bytes(const Plan& plan);

// Returns the name of a collective or message in a profile's table of transfers: "all_reduce", "message".
std::string transfer_kind(const Op& op);

}  // namespace orrery
