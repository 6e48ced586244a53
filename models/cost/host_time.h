#pragma once

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "models/spec/software.h"

namespace orrery {

// How long the host takes to call and launch an op in a software stack, seconds: the call through the framework, which
// is faster when autograd makes it in backward (Software::Host::backward_call_share) and which a compiled graph saves,
// and the launch of the op's kernels or collective. A captured CUDA graph launches all ops at once, so that no op takes
// host time.
Seconds host_time(const Op& op, const Software& software);

// The host time of a transformer layer beyond calling and launching its ops (Software::Host::layer_us), in the forward
// and the backward pass, seconds; backward pays again for the share of forward ops that it recomputes. Other blocks
// take none.
struct LayerHostTime {
  Seconds forward = 0, backward = 0;
};
LayerHostTime layer_host_time(const Plan& plan, const Block& block, const Software& software);

}  // namespace orrery
