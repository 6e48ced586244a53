#pragma once

#include "models/strategy.h"

namespace orrery {

// Whether workers go on at their own pace: a server updates with what each of them pushes as it comes, in no order that
// a plan could know. mode ssp: stale synchronous parallel (Ho et al. 2013, More Effective Distributed ML via a Stale
// Synchronous Parallel Parameter Server): a worker may begin its step c once every worker has pushed c - staleness.
inline bool own_pace(const Strategy& s) { return s.parameter_server && s.parameter_server->mode != "sync"; }
inline bool bounded_staleness(const Strategy& s) { return s.parameter_server && s.parameter_server->mode == "ssp"; }

}  // namespace orrery
