#pragma once

#include <cstdint>
#include <string>

#include "models/spec/strategy.h"

namespace orrery {

// asynchronous_workers: whether workers go on at their own pace: a server then updates with what each worker pushes as
// it comes, in no order that a plan could know. bounded_staleness: mode ssp, stale synchronous parallel (Ho et al.
// 2013, More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server): a worker may begin its step c
// once every worker has pushed c - staleness.
inline bool asynchronous_workers(const Strategy& s) { return s.parameter_server && s.parameter_server->mode != "sync"; }
inline bool bounded_staleness(const Strategy& s) { return s.parameter_server && s.parameter_server->mode == "ssp"; }

// How old weights were. mean, most: updates with other workers' gradients between the weights that a step read and the
// update with the step's own. most_ahead: at a step's begin, steps that the slowest worker had yet to make to come as
// far.
struct Staleness {
  double mean = 0;
  std::int64_t most = 0, most_ahead = 0;
};
// The staleness in words: "servers: weights were 2.9 updates of other workers old on average, 5 at most; a worker began
// a step at most 1 ahead of the slowest"
std::string text_of(const Staleness& s);

}  // namespace orrery
