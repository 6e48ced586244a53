#pragma once

#include "models/base/units.h"
#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/software.h"

namespace orrery {

// Returns the time that the host takes to call and launch an op in a software stack, seconds: the time of the call
// through the framework, which is shorter if autograd makes the call in backward (Software::Host::backward_call_share)
// and which compiled code does not take, and the time to launch the op's kernels or collective. A captured CUDA graph
// launches all ops at once, so that no op takes host time.
Seconds host_time(const Op& op, const Software& software);

// The same of an inference stack, which fuses ops as kernels_of(work, profile) says and launches each of the others in
// one call.
Seconds served_host_time(const Op& op, const Software& software, const Profile& profile);

// Returns whether the profile is from `orrery calibrate`. Such a profile has waits between tasks, which profiles made
// from other tools' measurements lack.
bool is_calibrated(const Profile& profile);

// Returns the time in which a stack's host issues an op: the one that was measured if the profile is from `orrery
// calibrate` and no CUDA graph launches the op, else host_time, or served_host_time where a text is generated.
Seconds issue_time(const Op& op, const Software& software, const Profile& profile);

// The host time of a transformer layer in addition to calling and launching its ops (Software::Host::layer_us), in the
// forward and the backward pass, seconds. Backward takes this time once, and again for the share of forward ops that
// backward recomputes. Blocks other than layers have no such time.
struct LayerHostTime {
  Seconds forward = 0, backward = 0;
};
LayerHostTime layer_host_time(const Plan& plan, const Block& block, const Software& software);

}  // namespace orrery
