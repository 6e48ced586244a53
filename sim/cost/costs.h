#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/cost/uplinks.h"
#include "sim/engine/timing.h"

namespace orrery {

// Bytes of NCCL's buffers per connection and channel: LL 512 KiB, LL128 4.69 MiB, Simple 4 MiB (NCCL 2.28.9, device.h).
inline constexpr Bytes kNcclConnectionBytes = 9'646'899;

// The link over which the transfers of an op go, and their algorithm, in the words of the printed report.
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
  // the transfers whose uplinks a hash chooses, by the number of their connections (hash_draw.h)
  std::map<std::uint64_t, HashedTransfers> hashed;
  UplinkUse busiest;  // the fullest uplinks of all transfers; a share of 0 if no uplink is short or hashed

  // The share of the launch time of a layer's ops in which the host thread is busy. Launches are asynchronous: in the
  // rest of that time the device starts the kernels, while the host already launches later ops.
  double host_part = 1;
  // The value of host_part (the share of the launch time of ops in which the host thread is busy) where the host runs
  // ahead of the device (sim/memory/host_times.cpp).
  double filling_part = 1;
};

// Finds the costs of a plan's ops. If the profile has measured transfers but no constants for formulas, every cost is a
// measurement (measured_costs). Else a transfer takes the time that was measured with as many ranks and nodes, if there
// are such samples for its bytes, and a modelled time if not; NCCL's choice of algorithm follows the tuning table of
// NCCL's log, if the profile has one.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile);
// Finds the costs of a plan that covers only a part of a job of `job_gpus` GPUs. The steps wait for the slowest GPU of
// the complete job.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus);
// Finds the costs for one draw of the hashes that choose uplinks, whatever cluster.network.routing.seed says.
Costs costs_of(const Plan& plan, const Spec& spec, const Profile& profile, std::int64_t job_gpus, const HashDraw& draw);

// Takes all costs from a profile's samples: compute tasks by shape, transfers by kind, number of ranks and bytes.
// Measured waits between tasks are added: for a compute task the wait for its thread; for a transfer the wait for the
// thread that moves the data, and that for the thread which the transfer's end wakes. A rank's threads share one core,
// so compute and a transfer of the same rank slow each other by measured factors. Throws Error for a kind of op that
// was not measured, or not with as many ranks.
Costs measured_costs(const Plan& plan, const Spec& spec, const Profile& profile);

// Returns, for each task of the plan, the bytes of those gradient buffers to which the task is the first to add, so
// that the buffers must hold zeros before. CPU ranks clear the buffers as a part of the task.
std::vector<Bytes> cleared_bytes(const Plan& plan);

// Returns the name of a collective or message in a profile's table of transfers: "all_reduce", "message".
std::string transfer_kind(const Op& op);

}  // namespace orrery
