#pragma once

#include <optional>

#include "models/base/units.h"
#include "models/spec/spec.h"

namespace orrery {

// Failures, checkpoints and restarts of a long training run. All times are in seconds; an unknown time counts as zero,
// so that the resulting goodput is an upper bound.
struct FailurePlan {
  Seconds between_failures = 0;         // mean time between failures of the whole job; 0: it never fails
  std::optional<Seconds> checkpoint{};  // time to write a checkpoint, in which training stands still
  std::optional<Seconds> restart{};     // time from a failure to the first new step after it
  Seconds interval = 0;                 // training time between two checkpoints; 0: the interval with the best goodput

  bool is_complete() const { return between_failures <= 0 || (checkpoint && restart); }
};

// The training time between two checkpoints with which the least time is lost: Daly 2006 (Future Generation Computer
// Systems 22, eq. 37), a refinement of Young's sqrt(2 * checkpoint time * time between failures).
Seconds best_interval(const FailurePlan& plan);

// The share of time spent on steps that no failure undoes: interval / (M e^(R/M) (e^((interval + checkpoint)/M) - 1)),
// where interval is the training time between checkpoints, checkpoint the time to write one, M the mean time between
// failures and R the time to restart (Daly 2006, eq. 20; failures are a Poisson process and may hit a restart).
double goodput(const FailurePlan& plan);

// The failure plan of a job on `nodes` nodes. The mean time between failures is what the cluster states, or the
// built-in rate. Every node writes a part of the checkpoint to its own NVMe disks at the same time. step: seconds of a
// step.
FailurePlan failure_plan(const Cluster& cluster, std::int64_t nodes, double checkpoint_bytes, Seconds step);

// Bytes of a checkpoint of the complete model: weights, master weights if they have more bits than the weights, and
// optimizer moments.
double checkpoint_bytes(const Spec& spec);

}  // namespace orrery
