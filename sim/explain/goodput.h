#pragma once

#include <optional>

#include "models/base/units.h"
#include "models/spec/spec.h"

namespace orrery {

// How failures and what is done against them stretch a long run. All in seconds; what is not known counts as nothing,
// so that goodput is at most what comes out.
struct FailurePlan {
  Seconds between_failures = 0;         // of the whole job; 0: it never fails
  std::optional<Seconds> checkpoint{};  // to write one, training stands still
  std::optional<Seconds> restart{};     // from a failure to the first new step
  Seconds interval = 0;                 // of training between two checkpoints; 0: the best one

  bool is_complete() const { return between_failures <= 0 || (checkpoint && restart); }
};

// Training between checkpoints that loses least: Daly 2006 (Future Generation Computer Systems 22, eq. 37), a higher
// order form of Young's sqrt(2 checkpoint * between_failures).
Seconds best_interval(const FailurePlan& plan);

// The share of the time in which steps are made that last: interval / (M e^(R/M) (e^((interval + checkpoint)/M) - 1)),
// with M between failures and R the restart (Daly 2006, eq. 20; failures are a Poisson process and may hit a restart).
double goodput(const FailurePlan& plan);

// Of a job on `nodes` nodes: its cluster's failures, or the rate above. Every node writes its part of a checkpoint to
// its own NVMe at the same time. step: seconds.
FailurePlan failure_plan(const Cluster& cluster, std::int64_t nodes, double checkpoint_bytes, Seconds step);

// A checkpoint of a whole model: weights, a master copy where it is wider, and moments.
double checkpoint_bytes(const Spec& spec);

}  // namespace orrery
