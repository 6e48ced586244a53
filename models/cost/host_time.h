#pragma once

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/spec/software.h"

namespace orrery {

// How long a stack's host takes to call and launch an op, seconds: its call, which autograd makes faster in backward
// (Software::Host::backward_call_share) and a compiled graph saves, and the launch of its kernels or of its collective.
// A captured graph launches all ops at once: none takes time.
Seconds host_time(const Op& op, const Software& software);

// The time that a stack's host takes for a layer beyond calling and launching its ops (Software::Host::layer_us), in
// forward and in backward, seconds: ops that backward runs again are called again. Other blocks take nothing.
struct LayerHostTime {
  Seconds forward = 0, backward = 0;
};
LayerHostTime layer_host_time(const Plan& plan, const Block& block, const Software& software);

}  // namespace orrery
