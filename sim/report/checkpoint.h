#pragma once

#include <string>
#include <string_view>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns the bytes of a checkpoint for each weight that trains: the weight, its master weight if that has more bits,
// and the optimizer's moments.
Bytes checkpoint_width(const Spec& spec);

// The cost of checkpoints (strategy.checkpoint). Every weight and state that trains is written once: the ranks that
// hold the same data divide it among them. While a checkpoint is written all ranks wait; their copies to the hosts
// overlap with the writing. With asynchronous checkpoints ranks wait only for their copies to the hosts, and for the
// previous checkpoint if it is still being written.
struct CheckpointCost {
  Bytes bytes = 0;      // bytes of one checkpoint
  Bytes of_node = 0;    // bytes written by the node that writes most
  Seconds copies = 0;   // time in which ranks copy their parts to their hosts
  Seconds writing = 0;  // time in which nodes write
  Seconds stall = 0;    // time by which the step with a checkpoint is longer than others
  // memory of a host that holds the copies of its ranks while an asynchronous checkpoint is written
  Bytes host_bytes = 0;
  double step_share = 0;  // stall divided by the time between two checkpoints
  // The time of a step while a checkpoint leaves over the training's NICs, and by how much all of these steps together
  // are longer, which is in `stall`; 0 where it leaves over others.
  Seconds step_in_flight = 0, slowed = 0;
  double run_share = 0;  // share of a run's time that checkpoints, failures and restarts take (goodput.h)
};

// of_rank: bytes written by the rank that writes most; step: time of a step without a checkpoint.
// spec.strategy.checkpoint must be set.
CheckpointCost checkpoint_cost(const Spec& spec, Bytes bytes, Bytes of_rank, Seconds step);
CheckpointCost checkpoint_cost(const Spec& spec, const Plan& plan, Seconds step);

// Returns the rate at which every NIC of a job sends an asynchronous checkpoint beside the training's transfers, Gb/s;
// 0 where it does not leave over their NICs.
double storage_Gbps(const Spec& spec);
// Adds to the cost that steps take `step_in_flight` instead of `step` while a checkpoint is written.
void slow_steps(CheckpointCost& cost, const Spec& spec, Seconds step, Seconds step_in_flight);

// Returns lines for people about the cost of checkpoints.
std::string checkpoint_text(const Spec& spec, const CheckpointCost& cost, std::string_view indent);

}  // namespace orrery
