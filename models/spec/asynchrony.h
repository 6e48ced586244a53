#pragma once

#include <cstdint>
#include <string>

#include "models/spec/strategy.h"

namespace orrery {

// Whether workers go on at their own pace: a server updates with what each of them pushes as it comes, in no order that
// a plan could know. mode ssp: stale synchronous parallel (Ho et al. 2013, More Effective Distributed ML via a Stale
// Synchronous Parallel Parameter Server): a worker may begin its step c once every worker has pushed c - staleness.
inline bool own_pace(const Strategy& s) { return s.parameter_server && s.parameter_server->mode != "sync"; }
inline bool bounded_staleness(const Strategy& s) { return s.parameter_server && s.parameter_server->mode == "ssp"; }

// How old weights were. Of a step: updates with other workers' gradients between the weights that it read and the
// update with its own. ahead: at a step's begin, steps that the slowest worker had yet to make to come as far.
struct Staleness {
  double mean = 0;
  std::int64_t most = 0, most_ahead = 0;
};
// "servers: weights were 2.9 updates of other workers old on average, 5 at most; a worker began a step at most 1 ahead
// of the slowest"
std::string text_of(const Staleness& s);

}  // namespace orrery
