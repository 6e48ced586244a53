#pragma once

#include <cstdint>
#include <string>

#include "models/spec/strategy.h"

namespace orrery {

// These functions say how a parameter server's workers wait for each other. asynchronous_workers: whether workers do
// not wait for each other in every step; a server then updates with the gradients of each worker as they arrive, in an
// order that no plan can fix. bounded_staleness: whether the mode is ssp, stale synchronous parallel (Ho et al. 2013,
// More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server), in which a worker may begin its
// step c once every worker has pushed the gradients of its step c - staleness.
inline bool asynchronous_workers(const Strategy& s) { return s.parameter_server && s.parameter_server->mode != "sync"; }
inline bool bounded_staleness(const Strategy& s) { return s.parameter_server && s.parameter_server->mode == "ssp"; }

// The staleness of weights in a run. mean, most: number of updates with other workers' gradients between the version of
// the weights that a step read and the update with the step's own gradients, on average and at most. most_ahead:
// largest number of steps by which the slowest worker was behind when a worker began a step.
struct Staleness {
  double mean = 0;
  std::int64_t most = 0, most_ahead = 0;
};
// Returns the staleness as a sentence: "servers: weights were 2.9 updates of other workers old on average, 5 at most; a
// worker began a step at most 1 ahead of the slowest"
std::string text_of(const Staleness& s);

}  // namespace orrery
