#pragma once

#include "models/cost/nccl/model.h"
#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// What a push to a plan's servers, or a pull from them, takes: every server has a message from every worker, or for it.
// Those that leave a machine share its ports, and the busiest one sets the time. A server uses one NIC: on a machine of
// its own that machine's, else one of the workers'. With S servers that each have a NIC of B, W workers' whole weights
// of Psi bytes take Psi W / (S B), as long as the workers' own NICs are not what is full. On the workers' only machine
// they go over each GPU's link to the host, and in and out of the host's memory.
// Where servers work in order of arrival it is one worker's transfer alone.
// A push to chains of R servers ends when the sums have gone R - 1 servers further, all chains at once: it brings every
// server's machine (W + R - 1) Psi / S.
NcclChoice served(const Collective& c, const Plan& plan, const Spec& spec, const Profile& profile);

}  // namespace orrery
